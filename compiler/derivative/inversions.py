"""Operations that are undone exactly: where their result survives in memory, the operand comes back.

    x[i] = -x[i]           the old x[i] is -x[i]
    counts[k] += 1         the old counts[k] is counts[k] - 1

Negation is exact, and integers wrap: adding, subtracting and `xor` lose nothing. Nothing else is here: a
product or a sum of floats, divided or subtracted again, is rounded.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue, Use

from ...dialects import array

ADDING = (arith.AddiOp, array.CheckedAddOp)
SUBTRACTING = (arith.SubiOp, array.CheckedSubOp)


def kept_operands(use: Use) -> tuple[SSAValue, ...] | None:
    """What else undoing the operation takes, to have back the operand used; None where it cannot be."""
    op = use.operation
    match op:
        case arith.NegfOp():
            return ()
        case arith.MulfOp() if is_minus_one(op.operands[1 - use.index]):
            return ()
        case arith.AddiOp() | arith.SubiOp() | arith.XOrIOp() if op.lhs is not op.rhs:
            return (op.operands[1 - use.index],)
        case array.CheckedAddOp() | array.CheckedSubOp() if op.lhs is not op.rhs:
            return (op.operands[1 - use.index],)
        case _:
            return None


def is_minus_one(value: SSAValue) -> bool:
    owner = value.owner
    return (
        isinstance(owner, arith.ConstantOp)
        and isinstance(owner.value, FloatAttr)
        and owner.value.value.data == -1.0
    )


def undone(
    op: Operation, operand: SSAValue, result: SSAValue, get: Callable[[SSAValue], SSAValue]
) -> Operation:
    """The operation that makes `operand` of the `result` of `op`; `get` finds what else it takes."""
    if isinstance(op, arith.NegfOp | arith.MulfOp):
        return arith.NegfOp(result)
    lhs, rhs = op.operands
    other = get(rhs if lhs is operand else lhs)
    if isinstance(op, arith.XOrIOp):
        return arith.XOrIOp(result, other)
    if isinstance(op, ADDING):
        return arith.SubiOp(result, other)
    assert isinstance(op, SUBTRACTING)
    return arith.AddiOp(result, other) if lhs is operand else arith.SubiOp(other, result)
