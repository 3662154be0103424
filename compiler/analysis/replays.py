"""Loops that launch the same kernels in each iteration: a driver can replay them as a graph.

Such a loop only launches kernels and puts elements. Their arguments are computed from values before the loop,
and from arrays that take turns. After some iterations, the *period*, each array is in its own place again. So
every period launches the same kernels, takes the same branches (conditions are computed of nothing else), and
only the first one can raise. Loops that allocate, fetch or save are left alone; what a branch that ends in an
exception does is not looked at, as it is not taken any more.
"""

from __future__ import annotations

from math import lcm

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure

from ...dialects import array, device
from ...dialects.within import every_op
from .alias import AliasAnalysis

REPLAYED = (
    device.LaunchOp, device.PutOp, array.LoopOp, array.YieldOp, array.ViewOp, array.CollapseOp,
    array.RaiseIfOp, array.IndexOp, memref.DimOp, memref.CastOp, scf.IfOp, scf.YieldOp,
)  # fmt: skip
"""What the body of a loop that is replayed consists of, beside scalars."""

COMPUTED = (array.ViewOp, array.CollapseOp, memref.CastOp, memref.DimOp)
"""What is computed of arrays, without looking at their elements."""

LONGEST = 4
"""Iterations of a period."""


def period_of(loop: array.LoopOp, alias: AliasAnalysis) -> int | None:
    """After how many iterations a loop launches the same again; None where it never does, or does more."""
    return None if needs_counter(loop) else period_but_counter(loop, alias)


def period_but_counter(loop: array.LoopOp, alias: AliasAnalysis) -> int | None:
    """The same, whatever is computed of the loop's own counter."""
    if loop.count is None or loop.condition_block is not None:
        return None
    inside = beside_exceptions(loop)
    if not all(map(may_be_replayed, inside)):
        return None
    launches = any(isinstance(inner, device.LaunchOp) for inner in inside)
    return cycle(loop, alias) if launches else None


def needs_counter(loop: array.LoopOp) -> bool:
    """Whether anything but an exception depends on how many iterations there have been."""
    moving: set[SSAValue] = {loop.induction}
    for op in beside_exceptions(loop):
        if not moving.isdisjoint(op.operands):
            if not (isinstance(op, COMPUTED) or is_scalar(op)):
                return True
            moving.update(op.results)
    return False


def beside_exceptions(loop: array.LoopOp) -> list[Operation]:
    """What is in a loop, but for branches that end in an exception."""
    inside = every_op(loop)[1:]
    ends = [op for op in inside if isinstance(op, scf.IfOp) and only_raises(op)]
    gone = {inner for op in ends for inner in every_op(op)[1:]}
    return [op for op in inside if op not in gone] if gone else inside


def only_raises(op: scf.IfOp) -> bool:
    """Whether nothing happens where the branch does not end in an exception."""
    if array.RAISES not in op.attributes:
        return False
    otherwise = op.false_region.blocks
    return all(isinstance(inner, scf.YieldOp) for block in otherwise for inner in block.ops)


def may_be_replayed(op: Operation) -> bool:
    if isinstance(op, array.LoopOp):
        return op.condition_block is None
    return isinstance(op, REPLAYED) or is_scalar(op)


def is_scalar(op: Operation) -> bool:
    """Whether an op computes numbers, of numbers alone."""
    values = (*op.operands, *op.results)
    of_arrays = any(isinstance(v.type, MemRefType) for v in values)
    return not of_arrays and (op.has_trait(Pure) or op.dialect_name() == "arith")


def cycle(loop: array.LoopOp, alias: AliasAnalysis) -> int | None:
    """After how many iterations all carried arrays are at their places; None where that is not known."""
    permutation = alias.permutation(loop)
    found = 1
    for slot in range(len(permutation)):
        length, at = 1, permutation[slot]
        while at is not None and at != slot and length <= len(permutation):
            length, at = length + 1, permutation[at]
        if at != slot:
            return None
        found = lcm(found, length)
    return found if found <= LONGEST else None
