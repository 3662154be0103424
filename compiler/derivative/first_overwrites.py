"""Which instance of which store is the first to overwrite what was read.

The *old contents* of a store are what it overwrites. Saved in the store's own iteration domain they
serve every read, of any iteration, whose location this store is the first to overwrite::

    array.loop %i to %n do {          // for k in range(n, 0, -1): u[k] = u[k - 1] * u[k]
      %k = arith.subi %n, %i
      %a = memref.load %u[%k1]        // %k1 = %k - 1: overwritten one iteration later, if there is one
      %b = memref.load %u[%k]         // overwritten in this iteration
      %c = arith.mulf %a, %b : f64
      memref.store %c, %u[%k]
    }

An instance is found by solving "the store's subscripts at q are the read's at p" for q. It is then
proved, with the inequalities that `analysis.dependence` states for each write that may touch the
location after p:

- no write touches it between p and q, where q is an iteration of the store;
- no write touches it at all after p, where q is none: the memory survives.

Where a proof fails there is no answer, and the plan saves the read itself.

A map is a store with an index space of its own, whose subscripts are counters like those of the loops around
it; all its points are one moment, before which the old contents are copied. What a map, or an operation on
whole arrays, reads is asked for at a symbolic point.

Not handled: stores by other whole-array operations, stores in branches inside the loops that index
their segment, and subscripts that do not give the counters one after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import memref
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...dialects import array
from ..analysis.affine import Affine
from ..analysis.dependence import Dependence, Problem
from ..analysis.footprint import Dimension, Point, Region
from ..analysis.kills import Kills
from ..rules import Access, Contents
from .overwritten import Answer, Instance, Overwritten
from .segments import Margins, encloses, rectangular
from .store_iterations import Conditions, Equation, Iterations, least, negated, solve

MOST_INSTANCES = 3
"""A read that more stores than this may be the first to overwrite is not served."""

MOST_WRITES = 12
"""Nor one that more writes than this may overwrite later: the proofs would take too long."""


@dataclass(frozen=True)
class Later:
    """A write that may touch the location later, at a level, and what is known if it does.

    Without a problem nothing is known.
    """

    write: Access
    level: array.LoopOp | None
    problem: Problem | None

    def may_happen(self, where: Iterable[Affine]) -> bool:
        """False when it never touches the location where these conditions hold."""
        return self.problem is None or may_hold(self.problem, where)


@dataclass(frozen=True)
class Question:
    """A read (or a store, whose value is to be had again) with all that may overwrite its location."""

    access: Access
    touched: Region
    dims: tuple[SSAValue, ...]
    counts: tuple[Affine, ...]
    """Of each of `dims`."""
    context: Problem
    later: list[Later]


def places_of(value: SSAValue | Contents) -> Iterator[Access]:
    """Where in memory a value is, or was: what it was read from, and the stores of it in its block."""
    if isinstance(value, Contents):
        yield Access(value.op, value.memref, "write" if value.after else "read", whole=True)
        return
    home = value.owner if isinstance(value.owner, Block) else value.owner.parent
    parent = home.parent_op() if home is not None else None
    if isinstance(value.owner, memref.LoadOp):
        yield Access(value.owner, value.owner.memref, "read")
    elif isinstance(value, BlockArgument) and isinstance(parent, array.MapOp):
        yield Access(parent, parent.ins[value.index], "read")
    for use in value.uses:
        op = use.operation
        if op.parent is not home:
            continue
        if isinstance(op, memref.StoreOp) and op.value is value:
            yield Access(op, op.memref, "write")
        elif isinstance(parent, array.MapOp) and isinstance(op, array.YieldOp):
            target, kind = parent.outs[use.index], parent.out_kinds[use.index]
            yield from [Access(parent, target, "write")] if kind == "store" else []


class Overwrites:
    """Finds and proves instances, for one function."""

    def __init__(self, kills: Kills) -> None:
        self.kills = kills
        self.dependence = kills.dependence
        self.subscripts = self.dependence.footprints.subscripts
        self.affine = self.subscripts.affine
        self._dims: dict[tuple[Operation, SSAValue | None], tuple[SSAValue, ...]] = {}

    def first(self, access: Access) -> Answer | None:
        """The first overwriting of what an access touches; None where unproved."""
        question = self._question(access)
        if question is None:
            return None
        found: list[Instance] = []
        while (culprit := self._unexplained(question, found)) is not None:
            instance = self._instance(question, culprit, found)
            if instance is None or len(found) == MOST_INSTANCES:
                return None
            found.append(instance)
        if not found:
            return None
        if not any(may_hold(question.context, case) for case in none_of(found)):
            found[-1] = replace(found[-1], where=())
        elif not self.kills.outlives_the_primal(access):
            return None
        return Answer(access, tuple(found), question.dims)

    # The question.

    def _question(self, access: Access) -> Question | None:
        dims, counts = self._index_space(access)
        touched = self.dependence.region(access)
        if dims:
            touched = self._touched(access.memref, dims)
        if not all(isinstance(d, Point) for d in touched.dimensions):
            return None
        writes = list(itertools.islice(self.kills.later_writes(access), MOST_WRITES + 1))
        if not 0 < len(writes) <= MOST_WRITES:
            return None
        context = Problem(self.dependence, None)
        context.state_context(access.op, 0)
        context.state_equal(touched, touched)
        state_dims(context, dims, counts)
        later: list[Later] = []
        for write, level in writes:
            problem = self.dependence.problem(access, write, level, touched)
            if not isinstance(problem, bool):
                state_dims(problem, dims, counts)
            later.append(Later(write, level, None if isinstance(problem, bool) else problem))
        return Question(access, touched, dims, counts, context, later)

    def _index_space(self, access: Access) -> tuple[tuple[SSAValue, ...], tuple[Affine, ...]]:
        """Symbols for the subscripts of what is accessed as a whole, with their extents."""
        op = access.op
        if access.whole:
            assert isinstance(access.memref.type, MemRefType)
            rank = access.memref.type.get_num_dims()
            counts = [self.subscripts.extent(access.memref, axis) for axis in range(rank)]
        elif isinstance(op, array.MapOp):
            counts = list(map(self.affine, op.extents))
        else:
            return (), ()
        return self._symbols((op, access.memref), len(counts)), tuple(counts)

    def _symbols(self, key: tuple[Operation, SSAValue | None], count: int) -> tuple[SSAValue, ...]:
        if key not in self._dims:
            self._dims[key] = Block(arg_types=[IndexType()] * count).args
        return self._dims[key]

    def _touched(self, accessed: SSAValue, dims: Sequence[SSAValue]) -> Region:
        """What the point `dims` of a memref is, of the memory behind it."""
        points: list[Dimension] = [Point(Affine.of(d)) for d in dims]
        return self.dependence.footprints.through_views(accessed, points)

    # Finding.

    def _unexplained(self, question: Question, found: Sequence[Instance]) -> Access | None:
        """A write that may touch the location although nothing found so far says so."""
        for later in question.later:
            if any(later.may_happen(case) for case in none_of(found)):
                return later.write
        return None

    def _instance(
        self, question: Question, write: Access, found: Sequence[Instance]
    ) -> Instance | None:
        """An instance of this write that is the first to overwrite, where none of `found` is."""
        segment = self._segment(question, write)
        if segment is None:
            return None
        around = self.dependence.loops(question.access.op.parent)
        common = [lp for lp in segment.loops if lp in around]
        seen: set[tuple[Affine, ...]] = set()
        for level in (None, *reversed(common)):
            solution = solve(segment, common, level)
            if solution is None or solution[0] in seen:
                continue
            at, conditions = solution
            seen.add(at)
            order = self._order(question, write, segment, at, common)
            where = (
                None
                if order is None
                else self._needed(question, segment, at, (*conditions, *order))
            )
            if where is None:
                continue
            margins = self._margins(question, segment, at)
            instance = Instance(segment.of, at, where, margins)
            if all(self._none_before(later, instance, segment, found) for later in question.later):
                return instance
        return None

    def _segment(self, question: Question, write: Access) -> Segment | None:
        """The loops over which the store's subscripts are linear and its segment is alive for the read."""
        store = write.op
        if not isinstance(store, memref.StoreOp | array.MapOp):
            return None
        of = Overwritten(store, write.memref)
        loops, push_before = rectangular(store, of.extents)
        dims = self._symbols((store, None), len(of.extents))
        stored = self._touched(write.memref, dims) if dims else self.dependence.region(write)
        touched = question.touched
        home = push_before.parent
        if (
            stored.base is not touched.base
            or home is None
            or not encloses(home, question.access.op)
        ):
            return None
        outermost = loops[0] if loops else None
        if self.dependence.varies(stored.base, outermost):
            return None
        inductions = [*(lp.induction for lp in loops), *dims]
        equations: list[Equation] = []
        for s, r in zip(stored.dimensions, touched.dimensions, strict=True):
            assert isinstance(r, Point)
            if not isinstance(s, Point):
                return None
            unknown = {k: s.at.terms.get(i, 0) for k, i in enumerate(inductions)}
            rest = Affine(
                {v: f for v, f in s.at.terms.items() if v not in inductions}, s.at.constant
            )
            if any(self.dependence.varies(v, outermost) for v in rest.terms):
                return None
            equations.append(({k: f for k, f in unknown.items() if f}, rest - r.at))
        counts = [self.affine(lp.count) for lp in loops if lp.count is not None]
        counts += map(self.affine, of.extents)
        if any(self.dependence.varies(v, outermost) for c in counts for v in c.terms):
            return None
        return Segment(loops, counts, equations, of)

    def _order(
        self,
        question: Question,
        write: Access,
        segment: Segment,
        at: Sequence[Affine],
        common: Sequence[array.LoopOp],
    ) -> Conditions | None:
        """When iteration `at` comes after the read; None where never, or where more than one number says."""
        runs_after = self.kills.runs_after(write, question.access)
        counters = zip(segment.loops, at, strict=False)
        ahead = [q - Affine.of(lp.induction) for lp, q in counters if lp in common]
        for position, difference in enumerate(ahead):
            if not difference.is_constant:
                equal_inside = all(d == Affine() for d in ahead[position + 1 :])
                return (difference if equal_inside and runs_after else difference - 1,)
            if difference.constant:
                return () if difference.constant > 0 else None
        return () if runs_after else None

    def _needed(
        self, question: Question, segment: Segment, at: Sequence[Affine], more: Conditions
    ) -> Conditions | None:
        """When the instance exists, without what always holds; None where it never does."""
        where = list(more)
        for q, count in zip(at, segment.counts, strict=True):
            where += [q, count - 1 - q]
        where = [w for w in where if not always_holds(question.context, w)]
        if not may_hold(question.context, where):
            return None
        for condition in tuple(where):
            others = [w for w in where if w is not condition]
            if not may_hold(question.context, (*others, negated(condition))):
                where = others
        return tuple(where)

    def _margins(self, question: Question, segment: Segment, at: Sequence[Affine]) -> Margins:
        ranges = self._ranges(question)
        margins: list[tuple[int, int]] = []
        for q, count, _ in zip(at, segment.counts, segment.loops, strict=False):
            low, high = least(q, ranges), least(count - 1 - q, ranges)
            margins.append((max(low, 0), max(high, 0)))
        return tuple(margins)

    def _ranges(self, question: Question) -> list[tuple[SSAValue, Affine | None]]:
        """The counters that the read depends on, innermost first, with their counts."""
        ranges: list[tuple[SSAValue, Affine | None]] = []
        ranges += zip(question.dims, question.counts, strict=True)
        for loop in reversed(self.dependence.loops(question.access.op.parent)):
            ranges.append((loop.induction, None if loop.count is None else self.affine(loop.count)))
        return ranges

    # Proving.

    def _none_before(
        self, later: Later, instance: Instance, segment: Segment, found: Sequence[Instance]
    ) -> bool:
        """True when `later` never touches the location before `instance` does, where that is the answer."""
        if later.problem is None:
            return False
        other, store = later.write.op, segment.of.store
        counters = dict(zip(segment.loops, instance.at, strict=False))
        shared = common_prefix(self.dependence, other, store)
        gaps: list[Row] = []
        for loop in shared:
            own = Affine.of(loop.induction)
            gaps.append(difference(later.problem, counters.get(loop, own), own))
        order = self.kills.ssa.order
        for depth in range(len(shared) + 1):
            if depth == len(shared) and (other is store or order[other] > order[store]):
                continue
            earlier = later.problem.copy()
            for terms, constant in gaps[:depth]:
                earlier.system.zero(terms, constant)
            if depth < len(shared):
                terms, constant = gaps[depth]
                earlier.system.at_least_zero(terms, constant - 1)
            if not may_hold(earlier, instance.where):
                continue  # in none of the cases, which double with each instance
            if not found or any(
                may_hold(earlier, (*instance.where, *case)) for case in none_of(found)
            ):
                return False
        return True


Row = tuple[dict[Hashable, int], int]


@dataclass(frozen=True)
class Segment(Iterations):
    """The iterations of a store, which index the segment of its old contents."""

    of: Overwritten


def state_dims(problem: Problem, dims: Sequence[SSAValue], counts: Sequence[Affine]) -> None:
    """State that each of `dims` is a subscript."""
    for dim, count in zip(dims, counts, strict=True):
        problem.at_least(Affine(), Affine.of(dim), 0)
        problem.below(problem.row(Affine.of(dim), 0), 0, count, 0)


def none_of(found: Sequence[Instance]) -> Iterator[Conditions]:
    """The cases in which none of these instances exists."""
    return itertools.product(*([negated(w) for w in one.where] for one in found))


def always_holds(problem: Problem, condition: Affine) -> bool:
    """True when the problem states the condition, on the read's side; it may follow in other ways, too."""
    if condition.is_constant:
        return condition.constant >= 0
    return problem.system.states(problem.row(condition, 0), condition.constant)


def may_hold(problem: Problem, where: Iterable[Affine]) -> bool:
    """False when the conditions, on the read's side of the problem, contradict it."""
    stated = problem.copy()
    for condition in where:
        stated.at_least(Affine(), condition, 0)
    return stated.may_hold()


def difference(problem: Problem, instance: Affine, other: Affine) -> Row:
    """A counter of an instance, in terms of the read's, less one of the other write."""
    terms = problem.row(instance, 0)
    for variable, factor in problem.row(other, 1).items():
        terms[variable] = terms.get(variable, 0) - factor
    return terms, instance.constant - other.constant


def common_prefix(dependence: Dependence, a: Operation, b: Operation) -> tuple[array.LoopOp, ...]:
    """The loops around both."""
    pairs = zip(dependence.loops(a.parent), dependence.loops(b.parent), strict=False)
    return tuple(x for x, _ in itertools.takewhile(lambda pair: pair[0] is pair[1], pairs))
