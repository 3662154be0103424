"""Let an innermost loop that counts down count up, where its iterations may come in any order.

A reverse sweep runs the program's loops backwards, so that its arrays are read and written from their
ends: a shuffle of every vector. Part of `reorder_loops`.

Before::

    %last = arith.subi %n, %c1
    array.loop %i to %n do {
      %j = arith.subi %last, %i
      %x = memref.load %y_shadow[%j]
      ...                                        // x_shadow[%j] += ...

After::

    array.loop %i to %n do {
      %x = memref.load %y_shadow[%i]
      ...
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from ...dialects import array
from ..analysis.affine import Subscripts
from .counters import count_with
from .hoist_checks import Before


def run_upwards(loop: array.LoopOp) -> None:
    """Replace the counter by what is left of the count."""
    assert loop.count is not None
    before, induction = Before(loop), loop.induction
    last = before.minus_one(loop.count)
    mirrored = arith.SubiOp(last, induction)
    count_with(loop, mirrored)
    forms = Subscripts()
    for use in list(mirrored.result.uses):
        op = use.operation
        if not isinstance(op, arith.SubiOp) or use.index != 1 or is_inside(op.lhs.owner, loop):
            continue
        # x - (last - i) = (x - last) + i
        gap = forms.affine(op.lhs) - forms.affine(last)
        if gap.is_constant and gap.constant == 0:
            Rewriter.replace_op(op, [], [induction])
            continue
        offset = before.emit(arith.SubiOp(op.lhs, last))
        counted = arith.AddiOp(offset, induction)
        counted.location = op.location
        Rewriter.replace_op(op, counted)
    if mirrored.result.first_use is None:
        Rewriter.erase_op(mirrored)


def is_inside(owner: object, loop: array.LoopOp) -> bool:
    if isinstance(owner, Operation):
        return loop.is_ancestor(owner)
    return owner is loop.body.block
