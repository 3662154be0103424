"""The bits of numbers, as integers that compare as the numbers do."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from ..emitter import Emitter
from ..values import Array, Scalar, Value
from .dtypes import FLOATS, cast, element_type_cast
from .maps import extents_of, load, mapped, operand

SIGN, LARGEST = -(2**63), 2**63 - 1


def ordered(e: Emitter, value: Value) -> Value:
    """Of each element an i64 that compares as it does, the same for equal ones: there is one zero.

    NaN is the largest.
    """
    a = operand(e, value)
    assert isinstance(a, Array)

    def lower(e: Emitter, xs: list[SSAValue]) -> SSAValue:
        if a.dtype in FLOATS:
            return of_float(e, xs[0])
        wide = cast(e, xs[0], a.dtype, "i64")
        return e.emit(arith.XOrIOp(wide, integer(e, SIGN))) if a.dtype == "u64" else wide

    return mapped(e, [a], (a.dtype, "i64"), extents_of(e, a), lower, "keys")


def known_element(e: Emitter, vector: Value, place: Value) -> Value:
    """The element of a vector at a place that is known to be one."""
    a = operand(e, vector)
    assert isinstance(a, Array)
    assert isinstance(place, Scalar)
    return load(e, a, [element_type_cast(e, place, "py_int").ssa])


def of_float(e: Emitter, x: SSAValue) -> SSAValue:
    """The bits, those behind the sign turned where it is one; 0.0 is added, so that -0.0 is no other zero."""
    wide = x if x.type == f64 else e.emit(arith.ExtFOp(x, f64))
    bits = e.emit(arith.BitcastOp(e.emit(arith.AddfOp(wide, zero(e))), i64))
    negative = e.emit(arith.ShRSIOp(bits, integer(e, 63)))
    turned = e.emit(arith.XOrIOp(bits, e.emit(arith.AndIOp(negative, integer(e, LARGEST)))))
    number = e.emit(arith.CmpfOp(wide, wide, "ord"))
    return e.emit(arith.SelectOp(number, turned, integer(e, LARGEST)))


def zero(e: Emitter) -> SSAValue:
    return e.constant(0.0, "f64").ssa


def integer(e: Emitter, value: int) -> SSAValue:
    return e.constant(value, "i64").ssa
