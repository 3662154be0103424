"""Loops that count in another way."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ..diagnostics import locate
from .hoist_checks import Before


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


@dataclass(frozen=True)
class Groups:
    """A loop's iterations, as many at a time; what is left is the loop's own."""

    number: SSAValue
    """How many groups there are."""
    count: SSAValue
    done: SSAValue
    left: SSAValue

    def do_the_rest(self, loop: array.LoopOp) -> None:
        """Let the loop do the iterations that are left, behind those that are done."""
        loop.trips.replace_all_uses_with(self.count)
        loop.operands[0] = self.left
        count_from(self.done, loop)


def in_groups(
    loop: array.LoopOp, size: SSAValue, before: Before, if_: SSAValue | None = None
) -> Groups:
    """The loop's iterations in groups of a size; none where a condition does not hold."""
    assert loop.count is not None
    zero = before.constant(0)
    count = before.emit(arith.MaxSIOp(loop.count, zero))
    number = before.emit(arith.DivSIOp(count, size))
    if if_ is not None:
        number = before.emit(arith.SelectOp(if_, number, zero))
    done = before.emit(arith.MuliOp(number, size))
    return Groups(number, count, done, before.emit(arith.SubiOp(count, done)))
