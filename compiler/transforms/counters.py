"""Loops that count in another way."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ..diagnostics import locate


def count_with(loop: array.LoopOp, op: Operation) -> SSAValue:
    """Let an op of the counter's be the counter of a body."""
    locate(op, loop.location)
    Rewriter.insert_op(op, InsertPoint.at_start(loop.body.block))
    for use in [use for use in loop.induction.uses if use.operation is not op]:
        use.operation.operands[use.index] = op.results[0]
    return op.results[0]


def count_from(first: SSAValue, loop: array.LoopOp) -> SSAValue:
    """Let the iterations of a loop be those from the first on; the new counter."""
    counter = count_with(loop, arith.AddiOp(first, loop.induction))
    counter.name_hint = loop.induction.name_hint
    return counter


def do_the_rest(loop: array.LoopOp, count: SSAValue, done: SSAValue, left: SSAValue) -> None:
    """Let a loop do the iterations that are left of all, behind those that are done."""
    loop.trips.replace_all_uses_with(count)
    loop.operands[0] = left
    count_from(done, loop)
