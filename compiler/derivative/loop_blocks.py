"""A loop of numbers goes in blocks, before its body becomes a step: part of `checkpoint_loops`.

The adjoint of such a loop is computed in blocks, in vectors (`transforms.distribute_loops`), and so are its
sums over iterations. Where a step is such a block, it computes what the whole loop computes there. A step of
one iteration could not: alone, it is a vector of nothing. It would also do less work than its bookkeeping.

The adjoint counts blocks from the last iteration on, so the first block is the short one::

    for i in range(n):              for block in range(ceil(n / 128)):
        ...                             start = max(0, n - 128 * (blocks - block))
                                        for k in range(end - start): ... i = start + k
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ..diagnostics import locate
from ..transforms.counters import count_from
from ..transforms.distribute_loops import BLOCK, is_leaf
from ..transforms.hoist_checks import Before


def is_loop_of_numbers(loop: array.LoopOp) -> bool:
    """Whether a loop, counted before it begins, has nothing but scalar code in it, and several blocks."""
    known = None if loop.count is None else array.constant_value(loop.count)
    return (known is None or known > BLOCK) and is_leaf(loop)


def in_blocks(loop: array.LoopOp, size: int = BLOCK) -> array.LoopOp:
    """Put a loop over blocks, which is returned, in the place of the loop."""
    assert loop.count is not None
    before = Before(loop)
    zero, length = before.constant(0), before.constant(size)
    count = before.emit(arith.MaxSIOp(loop.count, zero))
    number = before.emit(arith.CeilDivSIOp(count, length))
    body = Block(arg_types=[IndexType()])
    body.args[0].name_hint = "block"

    def added(op: Operation) -> SSAValue:
        locate(op, loop.location)
        body.add_op(op)
        return op.results[0]

    left = added(arith.SubiOp(number, body.args[0]))
    past = added(arith.SubiOp(count, added(arith.MuliOp(left, length))))
    start = added(arith.MaxSIOp(past, zero))
    here = added(arith.SubiOp(added(arith.AddiOp(past, length)), start))
    blocks = array.LoopOp(number, (), body)
    locate(blocks, loop.location)
    before.insert(blocks)
    loop.trips.replace_all_uses_with(count)
    loop.detach()
    body.add_op(loop)
    loop.operands[0] = here
    count_from(start, loop)
    end = array.YieldOp()
    locate(end, loop.location)
    body.add_op(end)
    return blocks
