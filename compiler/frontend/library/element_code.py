"""Code for one element of ufuncs: what the rows of `elementwise` name."""

from __future__ import annotations

import math as python_math
from collections.abc import Callable

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, IntegerType, i1
from xdsl.ir import Operation, SSAValue

from ....dialects import array
from ..emitter import Emitter
from .dtypes import truth
from .maps import Lowering

Elements = list[SSAValue]
OpKind = Callable[..., Operation]
"""An op type, called with as many operands as it takes."""


def op(kind: OpKind) -> Lowering:
    """The operands go into one op."""
    return lambda e, xs: e.emit(kind(*xs))


def like(e: Emitter, x: SSAValue, value: float) -> SSAValue:
    """A constant of the type of `x`."""
    type_ = x.type
    if isinstance(type_, IntegerType):
        return e.constant(int(value), type_name(x)).ssa
    return e.constant(value, "f32" if isinstance(type_, Float32Type) else "f64").ssa


def float_comparison(predicate: str) -> Lowering:
    return lambda e, xs: e.emit(arith.CmpfOp(xs[0], xs[1], predicate))


def int_comparison(predicate: str) -> Lowering:
    return lambda e, xs: e.emit(arith.CmpiOp(xs[0], xs[1], predicate))


def invert(e: Emitter, xs: Elements) -> SSAValue:
    ones = like(e, xs[0], True if xs[0].type == i1 else -1)
    return e.emit(arith.XOrIOp(xs[0], ones))


def negate_int(e: Emitter, xs: Elements) -> SSAValue:
    return e.emit(arith.SubiOp(like(e, xs[0], 0), xs[0]))


def absolute_int(e: Emitter, xs: Elements) -> SSAValue:
    return e.emit(arith.MaxSIOp(xs[0], negate_int(e, xs)))


def sign_float(e: Emitter, xs: Elements) -> SSAValue:
    """1, -1, 0, or NaN: a zero of either sign gives 0."""
    (x,) = xs
    zero = like(e, x, 0)
    nonzero = e.emit(math.CopySignOp(like(e, x, 1), x))
    ordered = e.emit(arith.CmpfOp(x, zero, "one"))
    equal = e.emit(arith.CmpfOp(x, zero, "oeq"))
    return e.emit(arith.SelectOp(ordered, nonzero, e.emit(arith.SelectOp(equal, zero, x))))


def sign_int(e: Emitter, xs: Elements) -> SSAValue:
    low = e.emit(arith.MaxSIOp(xs[0], like(e, xs[0], -1)))
    return e.emit(arith.MinSIOp(low, like(e, xs[0], 1)))


def sign_unsigned(e: Emitter, xs: Elements) -> SSAValue:
    return e.emit(arith.MinUIOp(xs[0], like(e, xs[0], 1)))


def heaviside(e: Emitter, xs: Elements) -> SSAValue:
    """0 below zero, 1 above, the second operand at zero; of NaN NaN."""
    x, at_zero = xs
    zero, one = like(e, x, 0), like(e, x, 1)
    side = e.emit(arith.SelectOp(e.emit(arith.CmpfOp(x, zero, "ogt")), one, zero))
    ordered, equal = (e.emit(arith.CmpfOp(x, zero, how)) for how in ("one", "oeq"))
    return e.emit(arith.SelectOp(ordered, side, e.emit(arith.SelectOp(equal, at_zero, x))))


def square(kind: OpKind) -> Lowering:
    return lambda e, xs: e.emit(kind(xs[0], xs[0]))


def reciprocal(e: Emitter, xs: Elements) -> SSAValue:
    return e.emit(arith.DivfOp(like(e, xs[0], 1), xs[0]))


def scaled(factor: float) -> Lowering:
    return lambda e, xs: e.emit(arith.MulfOp(xs[0], like(e, xs[0], factor)))


def fmod_float(e: Emitter, xs: Elements) -> SSAValue:
    """C's remainder has the dividend's sign: that of the absolute values, signed."""
    sizes = [e.emit(math.AbsFOp(x)) for x in xs]
    return e.emit(math.CopySignOp(e.emit(array.FloorModOp(*sizes)), xs[0]))


def in_order(e: Emitter, x: SSAValue, y: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The larger and the smaller, as a choice: of what is symmetric in both that has every derivative."""
    first = e.emit(arith.CmpfOp(x, y, "oge"))
    return e.emit(arith.SelectOp(first, x, y)), e.emit(arith.SelectOp(first, y, x))


def hypot(e: Emitter, xs: Elements) -> SSAValue:
    """Without overflow: the larger size times sqrt(1 + ratio**2). At (0, 0) and infinity the larger."""
    x, y = e.emit(math.AbsFOp(xs[0])), e.emit(math.AbsFOp(xs[1]))
    large, small = in_order(e, x, y)
    one, infinity = like(e, x, 1), like(e, x, python_math.inf)
    ratio = e.emit(arith.DivfOp(small, large))
    root = e.emit(math.SqrtOp(e.emit(arith.AddfOp(one, e.emit(arith.MulfOp(ratio, ratio))))))
    zero = e.emit(arith.CmpfOp(large, like(e, x, 0), "oeq"))
    shared = e.emit(arith.MaximumfOp(x, y))
    result = e.emit(arith.SelectOp(zero, shared, e.emit(arith.MulfOp(large, root))))
    infinite = e.emit(arith.CmpfOp(e.emit(arith.MaxnumfOp(x, y)), infinity, "oeq"))
    return e.emit(arith.SelectOp(infinite, infinity, result))


def logaddexp(e: Emitter, xs: Elements) -> SSAValue:
    """The larger plus log1p(exp(smaller - larger)); of equal infinities the larger."""
    x, y = xs
    large, small = in_order(e, x, y)
    difference = e.emit(arith.SubfOp(small, large))
    rest = e.emit(math.Log1pOp(e.emit(math.ExpOp(difference))))
    same = e.emit(arith.CmpfOp(x, y, "oeq"))
    size = e.emit(math.AbsFOp(x))
    infinite = e.emit(arith.CmpfOp(size, like(e, x, python_math.inf), "oeq"))
    both = e.emit(arith.AndIOp(same, infinite))
    shared = e.emit(arith.MaximumfOp(x, y))
    return e.emit(arith.SelectOp(both, shared, e.emit(arith.AddfOp(large, rest))))


def shift(kind: OpKind, *, right: bool) -> Lowering:
    """A shift by the width or more shifts everything out; to the `right` the sign remains."""

    def lower(e: Emitter, xs: Elements) -> SSAValue:
        x, by = xs
        assert isinstance(x.type, IntegerType)
        width = x.type.width.data
        inside = e.emit(arith.CmpiOp(by, like(e, x, width), "ult"))
        if right:
            by = e.emit(arith.SelectOp(inside, by, like(e, x, width - 1)))
            return e.emit(kind(x, by))
        by = e.emit(arith.SelectOp(inside, by, like(e, x, 0)))
        return e.emit(arith.SelectOp(inside, e.emit(kind(x, by)), like(e, x, 0)))

    return lower


def is_infinite(predicate: str) -> Lowering:
    """Compare the absolute value with infinity."""

    def lower(e: Emitter, xs: Elements) -> SSAValue:
        size = e.emit(math.AbsFOp(xs[0]))
        return e.emit(arith.CmpfOp(size, like(e, xs[0], python_math.inf), predicate))

    return lower


def is_nan(e: Emitter, xs: Elements) -> SSAValue:
    return e.emit(arith.CmpfOp(xs[0], xs[0], "uno"))


def always(value: bool) -> Lowering:
    return lambda e, xs: e.constant(value, "b1").ssa


def sign_bit(e: Emitter, xs: Elements) -> SSAValue:
    one = e.emit(math.CopySignOp(like(e, xs[0], 1), xs[0]))
    return e.emit(arith.CmpfOp(one, like(e, one, 0), "olt"))


def logical(kind: OpKind) -> Lowering:
    return lambda e, xs: e.emit(kind(*(truth(e, x, type_name(x)) for x in xs)))


def logical_not(e: Emitter, xs: Elements) -> SSAValue:
    return invert(e, [truth(e, xs[0], type_name(xs[0]))])


def type_name(x: SSAValue) -> str:
    """A dtype of this IR type: of integers the one with a sign."""
    if isinstance(x.type, IntegerType):
        return "b1" if x.type == i1 else f"i{x.type.width.data}"
    return "f32" if isinstance(x.type, Float32Type) else "f64"


def clip(lower: OpKind, upper: OpKind) -> Lowering:
    return lambda e, xs: e.emit(upper(e.emit(lower(xs[0], xs[1])), xs[2]))
