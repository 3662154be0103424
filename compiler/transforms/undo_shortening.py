"""Give a loop its chains back as the program has them: part of `distribute_loops`.

A chain that is shortened, and checks its factors (`shorten_recurrences`), gains by what is beside it in
vectors. Without these, and in blocks of a few iterations, it would do more for each iteration, for nothing.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.rewriter import Rewriter

from ...dialects import array
from .stage_plan import WORTH, cost, is_pure, scalar_ops, waits_for_chains


def pays_alone(loop: array.LoopOp) -> bool:
    """Whether an iteration of a loop that stays one waits for its chains longer than for all else it does."""
    ops = scalar_ops(loop)
    return waits_for_chains(ops) > WORTH * sum(map(cost, ops))


def is_shortened(loop: array.LoopOp) -> bool:
    return any(array.SHORTENED in op.attributes for op in scalar_ops(loop))


def undo_shortening(loop: array.LoopOp) -> None:
    """Put the program's own value in the place of each that a shortened chain computes."""
    shortened = [op for op in scalar_ops(loop) if array.SHORTENED in op.attributes]
    for op in shortened:
        assert isinstance(op, scf.IfOp)
        take_second(op)
    for op in reversed(scalar_ops(loop)) if shortened else ():
        if is_pure(op) and all(r.first_use is None for r in op.results):
            Rewriter.erase_op(op)


def take_second(op: scf.IfOp) -> None:
    made, block = op.false_region.block, op.parent
    end = made.last_op
    assert isinstance(end, scf.YieldOp)
    assert block is not None
    for inner in list(made.ops)[:-1]:
        inner.detach()
        block.insert_op_before(inner, op)
    Rewriter.replace_op(op, [], list(end.operands))
