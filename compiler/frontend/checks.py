"""When checks raise, as code of its own: what a handler catches is a branch on it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from .emitter import Emitter
from .values import INT64_MIN

CHECKED: dict[type[Operation], tuple[str, type[Operation]]] = {
    array.CheckedAddOp: ("+", arith.AddiOp),
    array.CheckedSubOp: ("-", arith.SubiOp),
    array.CheckedMulOp: ("*", arith.MuliOp),
}


def described(op: Operation) -> tuple[str, str, Sequence[SSAValue]]:
    """The exception that an op may raise, its message and what that shows."""
    match op:
        case array.IndexOp():
            return "IndexError", out_of_bounds(op.axis.value.data), (op.index, op.extent)
        case array.CheckedIntOp():
            text = f"{{}} {CHECKED[type(op)][0]} {{}} does not fit in 64 bits"
            return "OverflowError", text, (op.lhs, op.rhs)
        case _:
            assert isinstance(op, array.RaiseIfOp)
            return op.exception.data, op.message.data, tuple(op.operands_shown)


def out_of_bounds(axis: int) -> str:
    return f"index {{}} is out of bounds for axis {axis} with size {{}}"


def outside(e: Emitter, index: SSAValue, extent: SSAValue, sign: str) -> SSAValue:
    """Whether a subscript is out of range."""
    ready = index
    if sign != "nonneg":
        ready = e.emit(arith.AddiOp(index, extent))
    if sign == "any":
        negative = e.emit(arith.CmpiOp(index, e.index(0), "slt"))
        ready = e.emit(arith.SelectOp(negative, ready, index))
    return e.emit(arith.CmpiOp(ready, extent, "uge"))


def wrapped(op: array.CheckedIntOp) -> Operation:
    """The op without its check: right where the result fits 64 bits."""
    return CHECKED[type(op)][1].create(operands=[op.lhs, op.rhs], result_types=[IndexType()])


def overflows(e: Emitter, op: array.CheckedIntOp) -> SSAValue:
    """Whether the exact result needs more than 64 bits."""
    a, b, result = op.lhs, op.rhs, e.emit(wrapped(op))
    if isinstance(op, array.CheckedMulOp):
        return product_overflows(e, a, b, result)
    # The sign is wrong: of a + b where it is that of neither, of a - b where it is b's and not a's.
    other = e.emit(arith.XOrIOp(*((result, b) if isinstance(op, array.CheckedAddOp) else (a, b))))
    both = e.emit(arith.AndIOp(e.emit(arith.XOrIOp(result, a)), other))
    return e.emit(arith.CmpiOp(both, e.index(0), "slt"))


def product_overflows(e: Emitter, a: SSAValue, b: SSAValue, result: SSAValue) -> SSAValue:
    """Whether `result / a` is not b; the factors 0 and -1, which do not divide everything, apart."""
    minus = e.emit(arith.CmpiOp(a, e.index(-1), "eq"))
    small = e.emit(arith.OrIOp(minus, e.emit(arith.CmpiOp(a, e.index(0), "eq"))))
    divisor = e.emit(arith.SelectOp(small, e.index(1), a))
    product = e.emit(arith.SelectOp(small, b, result))
    differs = e.emit(arith.CmpiOp(e.emit(arith.DivSIOp(product, divisor)), b, "ne"))
    lowest = e.emit(arith.CmpiOp(b, e.index(INT64_MIN), "eq"))
    return e.emit(arith.OrIOp(differs, e.emit(arith.AndIOp(minus, lowest))))
