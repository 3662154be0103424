"""Tapes that say how much they hold at most, so that their segments need no chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.ir import SSAValue

from ...dialects import ad

if TYPE_CHECKING:
    from .work_size import Measure


def reserve_tapes(kernel: func.FuncOp, measure: Measure) -> None:
    """Say at each tape how many bytes it holds at most, computed where the kernel begins."""
    for tape, size in measure.tapes().items():
        if not size.is_zero:
            reserve(tape, measure.a.value(size.number))
    top, first = kernel.body.block, kernel.body.block.first_op
    assert first is not None
    for op in list(measure.a.block.ops):
        op.detach()
        top.insert_op_before(op, first)


def reserve(tape: ad.TapeOp, size: SSAValue) -> ad.TapeOp:
    """The same tape, which says how many bytes it holds at most."""
    fresh = ad.TapeOp(size)
    fresh.location, fresh.attributes = tape.location, tape.attributes
    fresh.tape.name_hint = tape.tape.name_hint
    tape.tape.replace_all_uses_with(fresh.tape)
    block = tape.parent
    assert block is not None
    block.insert_op_before(fresh, tape)
    tape.detach()
    tape.erase()
    return fresh
