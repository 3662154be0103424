"""Maps of one block that can go through their rows together, and how many rows each stays behind.

`fuse-rows` asks; its docstring says why the answers are right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects import func, memref
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import NoMemoryEffect

from ...dialects import array
from ..analysis.affine import Affine
from ..analysis.alias import AliasAnalysis
from ..analysis.dependence import Dependence
from ..analysis.views import strip_casts
from ..rules import Access
from .gather_adds import may_scatter
from .memory_effects import MemoryEffects
from .unify_extents import equalities

FURTHEST = 8
"""The most rows that one map stays behind another."""
INDEPENDENT = -FURTHEST
"""How far a map may be ahead of one that it has nothing to do with: no shift follows from it."""
MOST = 16
"""The most maps in one loop."""


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

    def walk(self, operand: SSAValue) -> Walk | None:
        """How rows go through the memory of an operand; None where they stand still, or nobody knows."""
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

    def distance(
        self, earlier: array.MapOp, a: SSAValue, later: array.MapOp, b: SSAValue
    ) -> int | None:
        """How many rows behind `earlier` the map `later` has to stay for these operands, one of which is
        written; below 0 where it may be ahead, None where that is not known."""
        if not self.alias.may_alias(a, b):
            return INDEPENDENT
        one, other = self.walk(a), self.walk(b)
        if one is not None and other is not None and one.is_like(other):
            apart = one.start - other.start
            if apart.is_constant:
                rows, rest = divmod(apart.constant, one.step)
                return INDEPENDENT if rest else -rows
        meet = self.dependence.may_meet(
            Access(earlier, a, "write" if a in earlier.outs else "read"),
            Access(later, b, "write" if b in later.outs else "read"),
            None,
        )
        return None if meet else INDEPENDENT


@dataclass
class Run:
    """Maps of one block over the same rows, and how many rows each stays behind."""

    maps: list[array.MapOp]
    shifts: list[int]
    touched: dict[SSAValue, list[tuple[int, SSAValue, bool]]] = field(
        default_factory=dict[SSAValue, list[tuple[int, SSAValue, bool]]]
    )
    """By root the operands that touch it: of which map, and whether it is written."""
    equal: set[frozenset[Affine]] = field(default_factory=set[frozenset[Affine]])
    """Numbers of rows that are equal, or a check between the maps has raised."""

    def part(self, first: int, last: int) -> Run:
        """The maps from the one to the other, of which one stays behind nobody."""
        shifts = self.shifts[first : last + 1]
        return Run(self.maps[first : last + 1], [s - min(shifts) for s in shifts])

    def admits(self, op: array.MapOp, analyses: Analyses) -> int | None:
        """The shift of one more map; None where it cannot join."""
        if not self.maps:
            return 0
        rows = analyses.affine(self.maps[0].extents[0])
        own = analyses.affine(op.extents[0])
        if len(self.maps) == MOST or (own != rows and frozenset((own, rows)) not in self.equal):
            return None
        shift = 0
        for b, written in operands_of(op):
            for root in analyses.effects.roots(b):
                for k, a, was_written in self.touched.get(root, ()):
                    if written or was_written:
                        behind = analyses.distance(self.maps[k], a, op, b)
                        if behind is None:
                            return None
                        shift = max(shift, self.shifts[k] + behind)
        return shift if shift <= FURTHEST else None

    def add(self, op: array.MapOp, shift: int, analyses: Analyses) -> None:
        for operand, written in operands_of(op):
            for root in analyses.effects.roots(operand):
                self.touched.setdefault(root, []).append((len(self.maps), operand, written))
        self.maps.append(op)
        self.shifts.append(shift)

    def is_unseen(self) -> bool:
        """True where the maps write nothing that is left behind by an exception."""
        return all(
            isinstance(root.owner, array.AllocOp | memref.AllocaOp)
            for root, touching in self.touched.items()
            if any(written for _, _, written in touching)
        )

    def lets_pass(self, op: Operation, analyses: Analyses) -> bool:
        """True for an op that may just as well run before all these maps."""
        if isinstance(op, array.RaiseIfOp):
            pairs = equalities(op.condition)
            self.equal |= {frozenset((analyses.affine(a), analyses.affine(b))) for a, b in pairs}
            return self.is_unseen()
        if op.has_trait(NoMemoryEffect) or isinstance(op, array.AllocOp | memref.AllocaOp):
            return not op.regions and not array.is_operation_that_may_raise(op)
        if isinstance(
            op, array.MapOp
        ):  # of few elements; another of as many begins a run of its own
            if len(op.extents) >= max((len(m.extents) for m in self.maps), default=0):
                return False
        elif not isinstance(op, memref.LoadOp | memref.StoreOp):
            return False
        effects = analyses.effects.of(op)
        for root in effects.reads | effects.writes:
            for _, _, written in self.touched.get(root, ()):
                if written or root in effects.writes:
                    return False
        return True


def operands_of(op: array.MapOp) -> Iterator[tuple[SSAValue, bool]]:
    """The arrays that a map touches, and whether it writes them."""
    yield from ((m, False) for m in op.ins)
    yield from ((m, True) for m in op.outs)


def runs_of(block: Block, analyses: Analyses) -> Iterator[Run]:
    """The longest runs of maps, from the first op of the block to the last."""
    run = Run([], [])
    for op in block.ops:
        joins = op if isinstance(op, array.MapOp) and may_join(op) else None
        shift = None if joins is None else run.admits(joins, analyses)
        if shift is None and run.lets_pass(op, analyses):
            continue
        if shift is None:
            yield run
            run, shift = Run([], []), 0
        if joins is not None:
            run.add(joins, shift, analyses)
    yield run


def may_join(op: array.MapOp) -> bool:
    """True for a map over rows that does all it does for a row at once: `gather-adds` takes those that may
    scatter, whole."""
    return bool(op.extents) and op.gathers is None and not may_scatter(op) and rows_are_slow(op)


def rows_are_slow(op: array.MapOp) -> bool:
    """False where an array is known to lie column by column: a block of rows would be none of memory."""
    if len(op.extents) == 1:
        return True
    strides = [array.strides_of(m.type) for m in (*op.ins, *op.outs)]  # pyright: ignore
    return not any(s[0] == 1 and s[-1] not in (0, 1) for s in strides)
