"""The transposed copies of `transpose-matrices`: which one may be used again, and what one holds at first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, func, memref
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis
from ..rules import accesses
from .saved_steps import namings


@dataclass(frozen=True)
class ColumnCopy:
    """The copy of a matrix that a nest of loops works on."""

    columns: SSAValue
    since: Operation
    """The map behind which it has the elements of the matrix, until that is stored to."""

    def lasts(self, function: func.FuncOp, matrix: SSAValue, nest: Operation) -> bool:
        """Whether it has them before another nest, too."""
        alias, op = AliasAnalysis(function), self.since.next_op
        while op is not None and op is not nest:
            touched = (a for inner in every_op(op) for a in accesses(inner))
            if any(a.kind != "read" and alias.may_alias(a.memref, matrix) for a in touched):
                return False
            op = op.next_op
        return op is nest


def only_fill(matrix: SSAValue, nest: Operation) -> array.MapOp | None:
    """The map that fills a new matrix with one number, where nothing else touches it before the nest."""
    made, block = matrix.owner, nest.parent
    if not isinstance(made, array.AllocOp) or made.parent is not block or block is None:
        return None
    if {array.GROWABLE, array.STACK, array.CLEARED} & made.attributes.keys():
        return None
    before: list[Operation] = []
    for op, _ in namings(matrix):
        around = block.find_ancestor_op_in_block(op)
        if around is None:
            return None
        if around.is_before_in_block(nest) and not isinstance(op, memref.DimOp):
            before.append(op)
    fill = before[0] if len(before) == 1 else None
    if not isinstance(fill, array.MapOp) or fill.parent is not block:
        return None
    plain = all(isinstance(op, arith.ConstantOp | array.YieldOp) for op in fill.body.block.ops)
    alone = not fill.ins and [*fill.outs] == [matrix] and fill.out_kinds == ("store",)
    return fill if plain and alone else None


def filled(fill: array.MapOp, target: SSAValue, extents: Sequence[SSAValue]) -> array.MapOp:
    """The same for other memory."""
    return array.MapOp(extents, [], [target], ["store"], fill.body.clone())
