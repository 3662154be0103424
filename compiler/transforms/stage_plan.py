"""Which stage of a distributed loop computes what, and what the stages cost. Part of `distribute_loops`.

A stage computes what it stores, and what that takes. A value of an earlier stage comes through memory, unless
it costs less to compute it once more: what follows from the counter, or a sum of two numbers that the loop
only reads. A product that an adjoint adds is computed where its sum is, which is contracted with it. Parts
that are not wanted where they are vanish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import arith, math, memref, scf, vector
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import ad, array
from ...dialects.within import every_op
from ..analysis.carried_cells import Role, cell_of, is_outside
from ..analysis.loop_parts import LoopParts, Stage, is_by_constant, is_wide
from ..analysis.strides import stride
from ..rules import accesses
from ..rules.table import ADJOINT, COLLECTED, constant_float

WORTH, WORTH_BESIDE_LANES = 1.2, 1.02
"""An iteration must be so much cheaper; where it has vectors of tangents, its numbers are none otherwise."""

ROUND = 0.3
"""What a loop costs each iteration: its counter, and its part of what is before and after it."""

AGAIN = 0.7
"""A value that costs no more is computed again rather than kept."""

LEAST = 3.0
"""Bodies that cost less are kept."""

VECTORS = 0.15
"""What one of several iterations side by side costs, against one by itself."""

FAR = 1.0
"""What a load or store of a vector of elements that are not neighbours costs more, for each."""


def scalar_ops(loop: array.LoopOp) -> list[Operation]:
    return list(loop.body.block.ops)[:-1]


PURE = ("arith.", "math.", "special.")


def is_pure(op: Operation) -> bool:
    """Scalar code that touches no memory and does not raise."""
    if array.is_operation_that_may_raise(op) or op.regions:
        return False
    known = isinstance(op, array.IndexOp | array.CastOp | ad.MulOp | ad.DivOp | vector.BroadcastOp)
    return (known or op.name.startswith(PURE)) and all(is_value(r.type) for r in op.results)


def is_value(type_: Attribute) -> bool:
    """A number, or the tangents of one, which are a vector."""
    kinds = Float32Type | Float64Type | IntegerType | IndexType | VectorType
    return isinstance(type_, kinds)


@dataclass(frozen=True)
class Candidate:
    """A loop whose body may be taken apart."""

    loop: array.LoopOp
    ops: Sequence[Operation]
    free: frozenset[Operation]
    """What is cheap and follows from the counter: computed where it is read."""
    kept: dict[SSAValue, memref.LoadOp]
    """Cells that each iteration leaves as it finds them, and the load that reads one."""
    raising: Sequence[array.RaiseIfOp]

    @staticmethod
    def of(loop: array.LoopOp, cells: dict[SSAValue, Role]) -> Candidate:
        ops = scalar_ops(loop)
        kept: dict[SSAValue, memref.LoadOp] = {}
        for op in (o for o in ops if isinstance(o, memref.LoadOp)):
            role = cells.get(op.memref)
            if role is not None and role.name == "kept":
                kept[op.memref] = op
        free: set[Operation] = set()
        for op in ops:
            if (
                is_pure(op)
                and cost(op) < LEAST
                and all(is_given(o, loop, free) for o in op.operands)
            ):
                free.add(op)
        raising = [op for op in ops if isinstance(op, array.RaiseIfOp)]
        return Candidate(loop, ops, frozenset(free), kept, raising)

    @property
    def nodes(self) -> list[Operation]:
        """What has a place of its own."""
        skipped = {*self.free, *self.raising}
        return [op for op in self.ops if op not in skipped and not self.touches_kept(op)]

    def touches_kept(self, op: Operation) -> bool:
        return isinstance(op, memref.LoadOp | memref.StoreOp) and op.memref in self.kept


def is_given(value: SSAValue, loop: array.LoopOp, free: set[Operation]) -> bool:
    return value is loop.induction or value.owner in free or is_outside(value, loop)


class Plan:
    """Which ops each stage computes, and which values go to later ones through memory."""

    def __init__(self, candidate: Candidate, parts: LoopParts, stages: Sequence[Stage]) -> None:
        self.candidate = candidate
        self.parts = parts
        self.stages = stages
        self.buffered: dict[SSAValue, int] = {}
        """Values that later stages read, by the stage that computes them."""
        self.loaded: list[dict[SSAValue, None]] = [{} for _ in stages]
        self._needed: list[set[Operation]] = [set() for _ in stages]
        self._stage = {op: k for k, stage in enumerate(stages) for op in stage.ops}
        for k, stage in enumerate(stages):
            for op in stage.ops:
                if isinstance(op, memref.StoreOp):
                    self._compute(op, k)
        for op in candidate.raising:
            self._want(op.condition, 0)

    def ops(self, stage: int) -> list[Operation]:
        """What a stage computes, in order."""
        return [op for op in self.candidate.ops if op in self._needed[stage]]

    @property
    def words(self) -> int:
        """The numbers in the values that go on, for each iteration."""
        kinds = (value.type for value in self.buffered)
        return sum(t.element_count() if isinstance(t, VectorType) else 1 for t in kinds)

    def _want(self, value: SSAValue, stage: int, *, with_sum: bool = False) -> None:
        """The value is read in a stage; one that goes `with_sum` is computed there."""
        op = value.owner
        if not isinstance(op, Operation) or op.parent is not self.candidate.loop.body.block:
            return
        if op in self._needed[stage] or self.candidate.touches_kept(op):
            return
        own = op in self.candidate.free or self._stage[op] == stage or with_sum
        if own or self._again(value) <= AGAIN:
            self._compute(op, stage)
            return
        self.loaded[stage][value] = None
        self.buffered[value] = self._stage[op]
        self._compute(op, self._stage[op])

    def _compute(self, op: Operation, stage: int) -> None:
        if op not in self._needed[stage]:
            self._needed[stage].add(op)
            for inner in every_op(op):
                product = product_of(inner)
                for operand in inner.operands:
                    self._want(operand, stage, with_sum=operand is product)

    def _again(self, value: SSAValue, most: float = AGAIN) -> float:
        """What it costs to compute a value once more; anything above `most` where it costs more."""
        op = value.owner
        if not isinstance(op, Operation) or op.parent is not self.candidate.loop.body.block:
            return 0.0
        if op in self.candidate.free or self.candidate.touches_kept(op):
            return 0.0
        if op.regions or not self.parts.touches_only_what_is_read(op):
            return most + 1.0
        total = cost(op)
        for operand in op.operands:
            if total <= most:
                total += self._again(operand, most - total)
        return total

    def worthwhile(self) -> bool:
        """Whether all stages together are much cheaper than the loop."""
        slow = [k for k, stage in enumerate(self.stages) if stage.ordered]
        waits = max(
            (self.parts.latency(p) for k in slow for p in self.stages[k].parts), default=0.0
        )
        waited = waits_for_chains(self.candidate.ops)
        before = max(sum(map(cost, self.candidate.ops)), waits, waited)
        after = sum(self._handed_on(v) for v in self.buffered)
        for k, stage in enumerate(self.stages):
            after += ROUND
            if stage.ordered:
                after += max(sum(map(cost, self.ops(k))), waits)
            else:
                after += sum(map(self._side_by_side, self.ops(k)))
        return before > (WORTH_BESIDE_LANES if self.has_lanes else WORTH) * after

    @cached_property
    def has_lanes(self) -> bool:
        """Whether the loop has vectors of tangents."""
        return any(map(is_wide, self.candidate.ops))

    def _handed_on(self, value: SSAValue) -> float:
        """What it costs that a value goes to another stage through memory. A truth that lanes are chosen by
        would go to a mask in any case."""
        if not self.goes_far(value):
            return 0.25
        return 0.4 if self.has_lanes and value.type == i1 else 0.6

    def _side_by_side(self, op: Operation) -> float:
        """What an op costs of one of several iterations in a vector."""
        loop, dependence = self.candidate.loop, self.parts.dependence
        touched = [a for inner in every_op(op) for a in accesses(inner)]
        far = sum(
            stride(dependence, a, loop) == "far" for a in touched if cell_of(a.memref) is None
        )
        return VECTORS * cost(op) + FAR * far

    def goes_far(self, value: SSAValue) -> bool:
        return any(
            value in loaded and self.stages[k].ordered for k, loaded in enumerate(self.loaded)
        )


def product_of(op: Operation) -> SSAValue | None:
    """The product with which codegen contracts a sum of adjoint code: it goes with the sum.

    So sums are contracted in blocks that are taken apart as in those of few iterations, and in peeled ones.
    """
    if not isinstance(op, arith.AddfOp | arith.SubfOp) or ADJOINT not in op.attributes:
        return None
    return next((v for v in reversed(op.operands) if may_be_contracted(v.owner, op)), None)


def may_be_contracted(made: Operation | Block, user: Operation) -> bool:
    if not isinstance(made, Operation) or made.parent is not user.parent:
        return False
    by_number = isinstance(made, arith.DivfOp) and constant_float(made.rhs) is not None
    plain = ADJOINT in made.attributes and COLLECTED not in made.attributes
    return plain and (by_number or isinstance(made, arith.MulfOp | ad.MulOp))


def waits_for_chains(ops: Sequence[Operation]) -> float:
    """Cycles that an iteration would wait for the next if chains were not shortened."""
    lengths = (op.attributes.get(array.SHORTENED) for op in ops)
    return max((4.0 * n.value.data for n in lengths if isinstance(n, IntegerAttr)), default=0.0)


WIDE = 2.0
"""What an op on a vector of tangents costs, against one on a number."""

SLOW = ("exp", "log", "sin", "cos", "tan", "pow", "atan", "asin", "acos", "erf", "cbrt", "gamma")


def cost(op: Operation) -> float:
    """Of one iteration by itself, in cycles, roughly: several simple ops begin in each."""
    if isinstance(op, array.IndexOp | arith.ConstantOp | scf.YieldOp | array.RaiseIfOp):
        return 0.0
    if array.SHORTENED in op.attributes:
        return 0.5
    if op.regions:
        return 1.0 + sum(map(cost, every_op(op)[1:]))
    if isinstance(op, memref.LoadOp | memref.StoreOp):
        elements = cell_of(op.memref) is None
        return (0.4 if isinstance(op, memref.LoadOp) else 1.0) if elements else 0.0
    if any(isinstance(r.type, VectorType) for r in op.results):
        return WIDE * cost_of_number(op)
    return cost_of_number(op)


def cost_of_number(op: Operation) -> float:
    if ("div" in op.name or isinstance(op, math.SqrtOp | ad.DivOp)) and not is_by_constant(op):
        return 4.0
    if op.name.startswith(("math.", "special.")) and any(s in op.name for s in SLOW):
        return 20.0
    return 0.75 if isinstance(op, ad.MulOp) else 0.25
