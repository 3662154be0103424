"""Which parts of a loop's body may run one after the other, each of them for all iterations?

The ops of the body are the nodes of a graph. An edge says that one op must come before another: the other
takes its value, or both may touch one element or cell, in this iteration or in a later one. Ops on a cycle
are one *part*. A part is *ordered* if its iterations depend on each other. Other parts may be vectors::

    %x = memref.load %a[%i]            a part
    %y = math.exp %x                   a part
    %s = memref.load %total[]          one part, and ordered: a sum in the program's order
    %t = arith.addf %s, %y
    memref.store %t, %total[]

What computes with several tangents of a number, which are a vector already, is ordered, too. Not ordered are
sums of the adjoint, which may come in any order, and cells that only hand a value to the next iteration.
Additions of the adjoint to elements may be made in any order, too: they have no edges between them, but two
that meet in different iterations are kept apart (`conflicts`), for no vector has both.

Parts along the edges make *stages*: ordered parts together, others together where no edge between them goes
to a later iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..rules import Access, accesses
from ..rules.table import ADJOINT
from .additions import place_of
from .affine import Affine
from .carried_cells import cell_of, is_outside
from .dependence import Dependence
from .footprint import Point

PAIRS = 500
"""Bodies in which more pairs of accesses would have to be compared are one part."""


@dataclass(eq=False)
class Edges:
    """What must come after one op: `after`, in any way; `carried`: in a later iteration, through an array;
    `flow`: because a value goes there."""

    after: dict[Operation, None] = field(default_factory=dict[Operation, None])
    carried: set[Operation] = field(default_factory=set[Operation])
    flow: set[Operation] = field(default_factory=set[Operation])


@dataclass(eq=False)
class Part:
    """Ops that are together, in the order of the program."""

    ops: list[Operation]
    ordered: bool


@dataclass(eq=False)
class Stage:
    """Parts that run together, for all iterations, before the next stage does."""

    ordered: bool
    parts: list[Part] = field(default_factory=list[Part])

    @property
    def ops(self) -> list[Operation]:
        return [op for part in self.parts for op in part.ops]


class LoopParts:
    """The graph of one innermost loop.

    `ops`: what of its body counts; `additions` may come in any order, and so may the terms of the `sums`.
    """

    def __init__(
        self,
        loop: array.LoopOp,
        ops: Sequence[Operation],
        dependence: Dependence,
        additions: set[Operation],
        sums: set[SSAValue],
    ) -> None:
        self.loop = loop
        self.ops = list(ops)
        self.dependence = dependence
        self._additions = additions
        self._sums = sums
        self._place = {op: k for k, op in enumerate(self.ops)}
        self._edges = {op: Edges() for op in self.ops}
        self._conflicts: set[frozenset[Operation]] = set()
        self._scattering: set[Operation] = set()
        self._bound: set[Operation] = additions & set(self.ops)
        self.known = self._connect()
        """Whether the graph is there; else there were too many pairs."""

    # Edges.

    def _connect(self) -> bool:
        for op in self.ops:
            inside = set(every_op(op))
            for used in {o for inner in inside for o in inner.operands}:
                owner = used.owner
                if isinstance(owner, Operation) and owner in self._edges and owner is not op:
                    self._edges[owner].after[op] = None
                    self._edges[owner].flow.add(op)
        touched = [(op, a) for op in self.ops for inner in every_op(op) for a in accesses(inner)]
        elements = [(op, a) for op, a in touched if cell_of(a.memref) is None]
        writes = sum(a.kind == "write" for _, a in elements)
        if writes * len(elements) > PAIRS:
            return False
        for k, (op, a) in enumerate(elements):
            for other, b in elements[k:]:
                if "write" in (a.kind, b.kind):
                    self._meet(op, a, other, b)
        self._keep_additions()
        cells: dict[SSAValue, list[Operation]] = {}
        for op, a in touched:
            cell = cell_of(a.memref)
            if cell is not None:
                cells.setdefault(cell, []).append(op)
        for cell, users in cells.items():
            self._chain(cell, users)
        return True

    def _meet(self, op: Operation, a: Access, other: Operation, b: Access) -> None:
        """Edges between two ops that may touch one element."""
        if not self.dependence.alias.may_alias(a.memref, b.memref):
            return
        apart = self._distance(a, b)
        same, later, earlier = self._when(a, b, apart)
        if a.op in self._additions and b.op in self._additions:
            if later or earlier:
                if still(a, self.loop) or still(b, self.loop):
                    return  # Summed apart, and added after the loop.
                if same_statement(a.op, b.op):
                    self._scattering.add(op)
                self._conflicts.add(frozenset((op, other)))
            return
        if same and op is not other:
            self._edge(op, other, carried=False)
        if later:
            # Vectors read before they are stored over, where LLVM sees how far apart that is.
            self._edge(op, other, carried=a.kind == "write" or apart is None)
        if earlier:
            self._edge(other, op, carried=True)

    def _when(self, a: Access, b: Access, apart: int | str | None) -> tuple[bool, bool, bool]:
        """Whether b may meet a in the same iteration, in a later and in an earlier one."""
        if isinstance(apart, int):
            return apart == 0, apart > 0, apart < 0
        if apart is not None:
            return False, False, False
        meet, loop = self.dependence.may_meet, self.loop
        return meet(a, b, None), meet(a, b, loop), meet(b, a, loop)

    def _distance(self, a: Access, b: Access) -> int | str | None:
        """How many iterations after a b touches the same element; "never", or None where that is unknown."""
        x, y = self.dependence.region(a), self.dependence.region(b)
        if x.base is not y.base or self.dependence.varies(x.base, self.loop):
            return None
        turns: set[int] = set()
        for p, q in zip(x.dimensions, y.dimensions, strict=True):
            if not isinstance(p, Point) or not isinstance(q, Point):
                return None
            step = p.at.terms.get(self.loop.induction, 0)
            rest = p.at - Affine({self.loop.induction: step})
            gap = p.at - q.at
            if any(self.dependence.varies(s, self.loop) for s in rest.terms):
                return None
            if not gap.is_constant:
                return None
            if step == 0:
                if gap.constant:
                    return "never"
            elif gap.constant % step:
                return "never"
            else:
                turns.add(gap.constant // step)
        if not turns:
            return None
        return turns.pop() if len(turns) == 1 else "never"

    def _edge(self, op: Operation, other: Operation, *, carried: bool) -> None:
        edges = self._edges[op]
        edges.after[other] = None
        edges.flow.add(other)
        self._bound |= {op, other}
        if carried:
            edges.carried.add(other)

    def _keep_additions(self) -> None:
        """An addition is loaded, added and stored together."""
        for op in self.ops:
            if op in self._additions and isinstance(op, memref.StoreOp):
                total = op.value.owner
                assert isinstance(total, Operation)
                for term in total.operands:
                    load = term.owner
                    if load in self._additions and isinstance(load, memref.LoadOp):
                        self._edges[op].after[load] = None

    def _chain(self, cell: SSAValue, users: Sequence[Operation]) -> None:
        """What uses a cell is a circle, if any of it stores there. Values go from a store to a load."""
        stores = {op for op in users if isinstance(op, memref.StoreOp)}
        if not stores:
            return
        self._bound.update(users)
        for op, following in zip(users, [*users[1:], users[0]], strict=True):
            if op is not following:
                self._edges[op].after[following] = None
        for store in () if cell in self._sums else stores:
            self._edges[store].flow.update(op for op in users if op not in stores)

    # Parts.

    def parts(self) -> list[Part]:
        """All of the body, each part after those that it waits for."""
        circles = components(self.ops, lambda op: self._edges[op].after)
        made = [Part(sorted(c, key=self._place.__getitem__), self._ordered(c)) for c in circles]
        return self._sorted(made)

    def _ordered(self, ops: Sequence[Operation]) -> bool:
        """Values go round, or to an unknown place; or are vectors already."""
        inside = set(ops)
        if any(map(is_wide, ops)):
            return True
        if inside & self._scattering or any(self._edges[op].carried & inside for op in ops):
            return True

        def flow(op: Operation) -> Iterable[Operation]:
            return (o for o in self._edges[op].flow if o in inside)

        if any(op in self._edges[op].flow for op in ops):
            return True
        return any(len(c) > 1 for c in components(ops, flow))

    def _sorted(self, parts: Sequence[Part]) -> list[Part]:
        """Topologically, as near to the order of the program as can be."""
        part_of = {op: p for p in parts for op in p.ops}
        waits = dict.fromkeys(parts, 0)
        following: dict[Part, dict[Part, None]] = {p: {} for p in parts}
        for p in parts:
            for op in p.ops:
                for other in self._edges[op].after:
                    if part_of[other] is not p:
                        following[p][part_of[other]] = None
        for p in parts:
            for q in following[p]:
                waits[q] += 1
        starting = {self._place[p.ops[0]]: p for p in parts}
        ready = [k for k, p in starting.items() if not waits[p]]
        heapify(ready)
        done: list[Part] = []
        while ready:
            done.append(starting[heappop(ready)])
            for q in following[done[-1]]:
                waits[q] -= 1
                if not waits[q]:
                    heappush(ready, self._place[q.ops[0]])
        return done

    # Stages.

    def stages(self, first: set[Operation] | None = None) -> list[Stage]:
        """The parts in stages; `first`: ops that are a stage by themselves, before all others."""
        leading = first or set()
        least = 0 if first is None else 1
        stages = [Stage(ordered=False) for _ in range(least)]
        at: dict[Operation, int] = {}
        for part in self.parts():
            known = not leading.isdisjoint(part.ops)
            where = 0 if known else self._stage_for(part, stages, at, least)
            if where == len(stages):
                stages.append(Stage(part.ordered))
            stages[where].parts.append(part)
            at.update(dict.fromkeys(part.ops, where))
        for stage in stages:
            stage.parts.sort(key=lambda p: self._place[p.ops[0]])
        return stages

    @cached_property
    def before(self) -> dict[Operation, list[Operation]]:
        """What each op must come after."""
        before: dict[Operation, list[Operation]] = {op: [] for op in self.ops}
        for op, edges in self._edges.items():
            for other in edges.after:
                before[other].append(op)
        return before

    def _stage_for(
        self,
        part: Part,
        stages: Sequence[Stage],
        at: dict[Operation, int],
        least: int,
    ) -> int:
        """The first stage of the part's kind that comes late enough; as many as there are: a new one."""
        inside = set(part.ops)
        for op in part.ops:
            for earlier in self.before[op]:
                if earlier in inside:
                    continue
                where = at[earlier]
                together = stages[where].ordered is part.ordered and (
                    part.ordered or op not in self._edges[earlier].carried
                )
                least = max(least, where if together else where + 1)
        for where in range(least, len(stages)):
            if stages[where].ordered is part.ordered and (
                part.ordered or not self._conflict(part, stages[where])
            ):
                return where
        return len(stages)

    def _conflict(self, part: Part, stage: Stage) -> bool:
        others = stage.ops
        return any(frozenset((a, b)) in self._conflicts for a in part.ops for b in others)

    # What others ask.

    def closure(self, values: Iterable[SSAValue]) -> set[Operation] | None:
        """The ops that compute the values; None where they need what the loop stores, or an ordered part."""
        before = self.before
        pending = [v.owner for v in values]
        found: set[Operation] = set()
        while pending:
            op = pending.pop()
            if not isinstance(op, Operation) or op not in self._edges or op in found:
                continue
            if isinstance(op, memref.StoreOp):
                return None
            found.add(op)
            pending += before[op]
        return found

    def latency(self, part: Part) -> float:
        """Cycles from one iteration of an ordered part to the next, roughly: its longest way through."""
        if not part.ordered:
            return 0.0
        until: dict[Operation, float] = {}
        for op in part.ops:
            flow = (o for o in self.before[op] if o in until and op in self._edges[o].flow)
            until[op] = cycles(op) + max((until[o] for o in flow), default=0.0)
        return max(until.values())

    def touches_only_what_is_read(self, op: Operation) -> bool:
        """The op reads nothing that the loop may store to: it may be there more than once."""
        return op not in self._bound


def is_wide(op: Operation) -> bool:
    """Whether the op computes with the tangents of a number, which are a vector."""
    values = (*op.operands, *op.results)
    return any(isinstance(v.type, VectorType) for v in values)


def cycles(op: Operation) -> float:
    """Until the result of an op is there."""
    if isinstance(op, memref.LoadOp):
        return 0.0 if cell_of(op.memref) is not None else 2.0
    if isinstance(op, memref.StoreOp) or array.SHORTENED in op.attributes:
        return 0.0
    if "div" in op.name or "sqrt" in op.name:
        return 4.0 if is_by_constant(op) else 13.0
    if op.name.startswith(("math.", "special.")):
        return 1.0 if "abs" in op.name else 30.0
    return 1.0 if any(word in op.name for word in ("cmp", "select")) else 4.0


def is_by_constant(op: Operation) -> bool:
    """A quotient of the adjoint: times the reciprocal."""
    return (
        isinstance(op, arith.DivfOp)
        and ADJOINT in op.attributes
        and isinstance(op.rhs.owner, arith.ConstantOp)
    )


def same_statement(a: Operation, b: Operation) -> bool:
    """Both are of one addition to one place."""
    if isinstance(a, memref.LoadOp | memref.StoreOp) and isinstance(
        b, memref.LoadOp | memref.StoreOp
    ):
        return place_of(a) == place_of(b)
    return False


def still(access: Access, loop: array.LoopOp) -> bool:
    """The place is named by values from outside the loop."""
    op = access.op
    if not isinstance(op, memref.LoadOp | memref.StoreOp):
        return False
    return all(is_outside(v, loop) for v in (op.memref, *op.indices))


def components(
    nodes: Iterable[Operation], after: Callable[[Operation], Iterable[Operation]]
) -> list[list[Operation]]:
    """Strongly connected components (Tarjan's algorithm, without recursion)."""
    number: dict[Operation, int] = {}
    low: dict[Operation, int] = {}
    stack: list[Operation] = []
    found: list[list[Operation]] = []
    done: set[Operation] = set()
    for root in nodes:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        stack.append(root)
        path = [(root, iter(list(after(root))))]
        while path:
            node, rest = path[-1]
            following = next(rest, None)
            if following is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == number[node]:
                    found.append([stack.pop()])
                    while found[-1][-1] is not node:
                        found[-1].append(stack.pop())
                    done.update(found[-1])
            elif following not in number:
                number[following] = low[following] = len(number)
                stack.append(following)
                path.append((following, iter(list(after(following)))))
            elif following not in done:
                low[node] = min(low[node], number[following])
    return found
