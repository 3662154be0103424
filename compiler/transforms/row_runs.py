"""Maps of one block that can go through their rows together, and how many rows each stays behind.

`fuse-rows` asks; its docstring says why the answers are right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects import func, memref
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator, NoMemoryEffect

from ...dialects import ad, array
from ..analysis.affine import Affine, Term
from ..analysis.alias import AliasAnalysis
from ..analysis.dependence import Dependence
from ..analysis.equal_extents import equalities
from ..analysis.views import strip_casts
from ..rules import Access
from ..rules.rule import rank_of
from .memory_effects import Effects, MemoryEffects

FURTHEST = 8
"""The most rows that one map stays behind another."""
INDEPENDENT = -FURTHEST
"""How far a map may be ahead of one that it has nothing to do with: no shift follows from it."""
MOST = 32
"""The most maps in one loop."""

UNSEEN = (array.AllocOp, memref.AllocaOp, ad.TapeOp)
"""Ops that make memory which is not observable after an exception."""


@dataclass(frozen=True)
class Walk:
    """Row i of a map's operand is at `start + step * i` along `axis` of `base`, which is no view."""

    base: SSAValue
    axis: int
    start: Affine
    step: int

    def is_like(self, other: Walk) -> bool:
        """True for a walk along the same axis in the same steps, from any start."""
        return self.base is other.base and (self.axis, self.step) == (other.axis, other.step)


class Analyses:
    """What is asked of the memory of one function."""

    def __init__(self, function: func.FuncOp) -> None:
        self.alias = AliasAnalysis(function)
        self.dependence = Dependence(function, self.alias)
        self.effects = MemoryEffects(function)
        self.affine = self.dependence.footprints.subscripts.affine
        self._walks: dict[SSAValue, Walk | None] = {}

    def walk(self, operand: SSAValue) -> Walk | None:
        """How rows go through the memory of an operand; None where they stand still, or if it is unknown."""
        if operand not in self._walks:
            self._walks[operand] = self._walked(operand)
        return self._walks[operand]

    def _walked(self, operand: SSAValue) -> Walk | None:
        axis, start, step = 0, Affine(), 1
        while True:
            operand = strip_casts(operand)
            owner = operand.owner
            if isinstance(owner, array.ViewOp):
                walked = owner.source_dims[axis]
                by = array.constant_value(owner.steps[axis])
                if walked < 0 or not by or owner.source_dims.count(walked) > 1:
                    return None
                start, step = self.affine(owner.offsets[walked]) + start * by, step * by
                axis, operand = walked, owner.source
            elif isinstance(owner, array.CollapseOp):
                first, end = owner.merged
                if axis == first and end - first > 1:
                    return None
                axis, operand = axis + (end - first - 1) * (axis > first), owner.source
            else:
                held = self.alias.held(operand)
                if held is operand:
                    return Walk(operand, axis, start, step)
                operand = held

    def fixed_places(self, operand: SSAValue) -> tuple[tuple[int, Affine], ...]:
        """Where an operand is along the axes that it does not have: at which version of a tape, say."""
        found: list[tuple[int, Affine]] = []
        while isinstance(owner := strip_casts(operand).owner, array.ViewOp):
            fixed = sorted({*range(len(owner.offsets))} - {*owner.source_dims})
            found += [(d, self.affine(owner.offsets[d])) for d in fixed]
            operand = owner.source
        return tuple(found)

    def walks_alike(self, a: SSAValue, b: SSAValue) -> bool:
        """Whether rows go the same way through the same memory."""
        one, other = self.walk(a), self.walk(b)
        return one is not None and other is not None and one.is_like(other)

    def distance(self, earlier: array.MapOp, a: Use, later: array.MapOp, b: Use) -> int | None:
        """How many rows behind `earlier` the map `later` has to stay for these operands, one of which is
        written; below 0 where it may be ahead, None where that is not known."""
        one, other = self.walk(a.operand), self.walk(b.operand)
        if one is not None and other is not None and one.is_like(other):
            apart = one.start - other.start
            if apart.is_constant:
                rows, rest = divmod(apart.constant, one.step)
                return INDEPENDENT if rest else reach_of(earlier, a) - rows
        if not self.alias.may_alias(a.operand, b.operand):
            return INDEPENDENT
        if self.alias.apart_in_turn(a.operand, b.operand):
            return INDEPENDENT
        meet = self.dependence.may_meet(a.access(earlier), b.access(later), None)
        return None if meet else INDEPENDENT


@dataclass(frozen=True)
class Use:
    """An operand of a map, and whether the map writes it."""

    operand: SSAValue
    written: bool

    def access(self, op: array.MapOp) -> Access:
        return Access(op, self.operand, "write" if self.written else "read")


def uses_of(op: array.MapOp) -> Iterator[Use]:
    """The arrays that a map touches."""
    yield from (Use(m, False) for m in op.ins)
    yield from (Use(m, True) for m in op.outs)


def reach_of(op: array.MapOp, use: Use) -> int:
    """How many rows before its own a map touches of an operand, beside its own."""
    gathers = op.gathers
    return 0 if gathers is None or use.written else max((s[0] for s in gathers.shifts), default=0)


@dataclass
class Run:
    """Maps of one block over rows, and how many rows each stays behind."""

    maps: list[array.MapOp]
    shifts: list[int]
    touched: dict[SSAValue, list[tuple[int, Use]]] = field(
        default_factory=dict[SSAValue, list[tuple[int, Use]]]
    )
    """By root the operands that touch it, and of which map."""
    equal: set[frozenset[Affine]] = field(default_factory=set[frozenset[Affine]])
    """Numbers of rows that are equal, or a check between the maps has raised."""
    waiting: dict[Operation, Effects] = field(default_factory=dict[Operation, Effects])
    """The ops between the maps that run behind all of them."""

    def part(self, first: int, last: int) -> Run:
        """The maps from the one to the other, of which one lags behind no other."""
        shifts = self.shifts[first : last + 1]
        shifts = [s - min(shifts) for s in shifts]
        return Run(self.maps[first : last + 1], shifts, waiting=self.waiting)

    def rows_held(self, analyses: Analyses) -> tuple[int, int]:
        """How many arrays of the largest rank the maps walk along, and how many rows more than a block has
        lie between the first and the last that it touches, of all of them together."""
        rank = max(len(m.extents) for m in self.maps)
        spans: dict[object, list[int]] = {}
        for op, shift in zip(self.maps, self.shifts, strict=True):
            for use in uses_of(op):
                walk = analyses.walk(use.operand)
                if walk is None or rank_of(use.operand) < rank:
                    continue
                start = walk.start
                rest = start - Affine(constant=start.constant)
                place = analyses.fixed_places(use.operand)
                last = start.constant // walk.step - shift
                span = spans.setdefault((walk.base, walk.axis, walk.step, rest, place), [])
                span += [last, last - reach_of(op, use)]
        return len(spans), sum(max(span) - min(span) for span in spans.values())

    def admits(self, op: array.MapOp, analyses: Analyses) -> int | None:
        """The shift of one more map; None where it cannot join."""
        if not self.maps:
            return 0
        if len(self.maps) == MOST or not self.goes_along(op, analyses) or self.waits(op, analyses):
            return None
        shift = 0
        for use in uses_of(op):
            for root in analyses.effects.roots(use.operand):
                for k, other in self.touched.get(root, ()):
                    if use.written or other.written:
                        behind = analyses.distance(self.maps[k], other, op, use)
                        if behind is None:
                            return None
                        shift = max(shift, self.shifts[k] + behind)
        return shift if shift <= FURTHEST else None

    def goes_along(self, op: array.MapOp, analyses: Analyses) -> bool:
        """Whether the map has about as many rows as one of these, or those of an array of theirs."""
        own = rows_of(op, analyses)
        if len(op.extents) == 1:
            return own == rows_of(self.maps[0], analyses) or any(
                frozenset((own, rows_of(m, analyses))) in self.equal for m in self.maps
            )
        for other in self.maps:
            rows = rows_of(other, analyses)
            if (own - rows).is_constant or frozenset((own, rows)) in self.equal:
                return True
        return any(
            analyses.walks_alike(use.operand, other.operand)
            and len(self.maps[k].extents) == len(op.extents)
            for use in uses_of(op)
            for root in analyses.effects.roots(use.operand)
            for k, other in self.touched.get(root, ())
        )

    def add(self, op: array.MapOp, shift: int, analyses: Analyses) -> None:
        for use in uses_of(op):
            for root in analyses.effects.roots(use.operand):
                self.touched.setdefault(root, []).append((len(self.maps), use))
        self.maps.append(op)
        self.shifts.append(shift)

    def is_unseen(self) -> bool:
        """True where nothing that is put off is seen when an exception is raised."""
        written = {root for effects in self.waiting.values() for root in effects.writes}
        for root, touching in self.touched.items():
            if any(use.written for _, use in touching):
                written.add(root)
        return all(isinstance(root.owner, UNSEEN) for root in written)

    def waits(self, op: Operation, analyses: Analyses) -> bool:
        """True where an op needs what runs behind the maps, or changes what that needs."""
        if not self.waiting:
            return False
        if any(v.owner in self.waiting for o in op.walk() for v in o.operands):
            return True
        own = analyses.effects.of(op)
        return any(conflict(own, effects) for effects in self.waiting.values())

    def lets_pass(self, op: Operation, analyses: Analyses) -> bool:
        """True for an op that may just as well run before all these maps."""
        if isinstance(op, array.RaiseIfOp):
            pairs = equalities(op.condition)
            self.equal |= {
                frozenset((without_floor(analyses.affine(a)), without_floor(analyses.affine(b))))
                for a, b in pairs
            }
            return self.is_unseen() and not self.waits(op, analyses)
        if op.has_trait(NoMemoryEffect) or isinstance(op, array.AllocOp | memref.AllocaOp):
            plain = not op.regions and not array.is_operation_that_may_raise(op)
            return plain and not self.waits(op, analyses)
        if not self.is_small(op):
            return False
        effects = analyses.effects.of(op)
        for root in effects.reads | effects.writes:
            for _, use in self.touched.get(root, ()):
                if use.written or root in effects.writes:
                    return False
        return not self.waits(op, analyses)

    def lets_wait(self, op: Operation, analyses: Analyses) -> bool:
        """True for an op that may just as well run behind all these maps, and those that come."""
        pure = op.has_trait(NoMemoryEffect) and not op.has_trait(IsTerminator) and not op.regions
        if not self.maps or array.is_operation_that_may_raise(op):
            return False
        if not pure and not self.is_small(op):
            return False
        self.waiting[op] = analyses.effects.of(op)
        return True

    def is_small(self, op: Operation) -> bool:
        """Whether it touches few elements: another map of as many begins a run of its own."""
        if isinstance(op, array.MapOp):
            return len(op.extents) < max((len(m.extents) for m in self.maps), default=0)
        return isinstance(op, memref.LoadOp | memref.StoreOp)


def conflict(a: Effects, b: Effects) -> bool:
    """Whether one writes what the other touches."""
    return (
        a.opaque
        or b.opaque
        or not a.writes.isdisjoint(b.reads | b.writes)
        or not b.writes.isdisjoint(a.reads)
    )


def rows_of(op: array.MapOp, analyses: Analyses) -> Affine:
    return without_floor(analyses.affine(op.extents[0]))


def without_floor(rows: Affine) -> Affine:
    """A number of rows as if no part of it were held at 0: `max(n - 2, 0) + 1` is about `n - 1`."""
    total = Affine(constant=rows.constant)
    for symbol, factor in rows.terms.items():
        inner = Affine.of(symbol)
        if isinstance(symbol, Term) and symbol.kind == "max":
            varying = [a for a in symbol.args if not a.is_constant]
            inner = varying[0] if len(varying) == 1 else inner
        total += inner * factor
    return total


def runs_of(block: Block, analyses: Analyses) -> Iterator[Run]:
    """The longest runs of maps, from the first op of the block to the last."""
    run = Run([], [])
    for op in block.ops:
        joins = op if isinstance(op, array.MapOp) and may_join(op, analyses) else None
        shift = None if joins is None else run.admits(joins, analyses)
        if shift is None and (run.lets_pass(op, analyses) or run.lets_wait(op, analyses)):
            continue
        if shift is None:
            yield run
            run, shift = Run([], []), 0
        if joins is not None:
            run.add(joins, shift, analyses)
    yield run


def may_join(op: array.MapOp, analyses: Analyses) -> bool:
    """True for a map over rows that may do them one after the other."""
    return bool(op.extents) and rows_are_slow(op) and reads_around(op, analyses)


def reads_around(op: array.MapOp, analyses: Analyses) -> bool:
    """Whether a map that gathers reads the rows behind its own, and as many as it has more of: nothing else
    is then near a row where there is none. Vectors that are gathered from stay whole."""
    gathers = op.gathers
    if gathers is None:
        return True
    if len(op.extents) == 1:
        return False
    shifts = [s[0] for s in gathers.shifts]
    more = analyses.affine(op.extents[0]) - analyses.affine(gathers.window[0])
    return bool(shifts) and min(shifts) == 0 and more == Affine(constant=max(shifts))


def rows_are_slow(op: array.MapOp) -> bool:
    """False where an array is known to lie column by column: a block of rows would be none of memory."""
    if len(op.extents) == 1:
        return True
    strides = [array.strides_of(m.type) for m in (*op.ins, *op.outs)]  # pyright: ignore
    return not any(s[0] == 1 and s[-1] not in (0, 1) for s in strides)
