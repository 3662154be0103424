"""Pure scalar ops: one function for each, on NumPy's numbers or on arrays of them, one for each point.

An `index` is an int64, an `i1` a bool, other integers are signed, a vector is an array with its lanes last.
Integers wrap around. No op is undefined for any operand: divisions, shifts and conversions give what NumPy
gives, as in `codegen.scalars_to_llvm`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, VectorType
from xdsl.ir import Attribute, Operation

from ...dialects import ad, array, foreign, special
from .libm import gamma, libm, polygamma
from .memory import dtype_of, lanes_of

Rule = Callable[..., Any]
"""Takes the op and its operands."""


def constant(op: arith.ConstantOp) -> Any:
    type_ = op.result.type
    dtype, value = dtype_of(type_), cast(Attribute, op.value)
    if isinstance(value, DenseIntOrFPElementsAttr):
        return np.array(list(value.iter_values()), dtype).reshape(lanes_of(type_))
    if isinstance(value, FloatAttr):
        return dtype.type(value.value.data)
    number = cast("IntegerAttr[Any]", value).value.data
    return bool_of(number) if dtype.kind == "b" else np.array(number & MASK).astype(dtype)[()]


MASK = 2**63 - 1 + 2**63
"""64 bits."""


def bool_of(number: int) -> np.bool_:
    return np.bool_(number & 1)


def plain(function: Callable[..., Any]) -> Rule:
    """A function of the operands alone."""

    def rule(_op: Operation, *values: Any) -> Any:
        return function(*values)

    return rule


def where(condition: Any, one: Any, other: Any) -> Any:
    return np.where(condition, one, other)[()]


def on_bits(numbers: Callable[..., Any], bits: Callable[..., Any]) -> Rule:
    """Arithmetic of integers; of `i1`, which NumPy takes for truth values, what it comes to on bits.

    The one bit is the sign: a number is 0 or -1, and the least by -1 is the least.
    """

    def rule(_op: Operation, a: Any, b: Any) -> Any:
        return (bits if a.dtype.kind == "b" else numbers)(a, b)

    return rule


def neither(a: Any, b: Any) -> Any:
    return a & b & np.False_


def first_alone(a: Any, b: Any) -> Any:
    return a & ~b


def first(a: Any, b: Any) -> Any:
    return a | (a & b)


def unsigned(value: Any) -> Any:
    """An integer's bits without a sign."""
    return value.astype(np.uint8) if value.dtype.kind == "b" else value.view(f"u{value.itemsize}")


def signed(value: Any, dtype: np.dtype[Any]) -> Any:
    """An integer's bits, with a sign again."""
    return value.astype(np.bool_) if dtype.kind == "b" else value.view(dtype)


def without_sign(function: Callable[[Any, Any], Any]) -> Rule:
    """A function of integers that are read without a sign."""

    def rule(_op: Operation, a: Any, b: Any) -> Any:
        return signed(np.asarray(function(unsigned(a), unsigned(b))), a.dtype)[()]

    return rule


def remainder(a: Any, b: Any) -> Any:
    """With the sign of the dividend; 0 where the divisor is 0."""
    return np.fmod(a, guarded(a, b))


def divide_unsigned(a: Any, b: Any) -> Any:
    return unless_zero(b, a // guarded(a, b))


def guarded(a: Any, b: Any) -> Any:
    """The divisor, but 1 where there is no quotient: by 0, and the least integer by -1."""
    bad = b == 0
    if b.dtype.kind == "i":
        bad = bad | ((a == np.iinfo(a.dtype).min) & (b == -1))
    return where(bad, b.dtype.type(1), b)


def unless_zero(b: Any, quotient: Any) -> Any:
    return where(b == 0, quotient.dtype.type(0), quotient)


def divide(a: Any, b: Any) -> Any:
    """Truncated; 0 where the divisor is 0."""
    divisor = guarded(a, b)
    floor = a // divisor
    inexact = a - floor * divisor != 0
    negative = inexact & ((a < 0) != (divisor < 0))
    return unless_zero(b, floor + negative.astype(floor.dtype))


def floor_divide(a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":
        return np.floor_divide(a, b)
    return unless_zero(b, a // guarded(a, b))


def modulo(a: Any, b: Any) -> Any:
    return np.mod(a, b if a.dtype.kind == "f" else guarded(a, b))


def ceil_divide(a: Any, b: Any) -> Any:
    return -floor_divide(-a, b)


def ceil_divide_unsigned(a: Any, b: Any) -> Any:
    divisor = guarded(a, b)
    return unless_zero(b, a // divisor + (a % divisor != 0).astype(a.dtype))


def shift(
    function: Callable[[Any, Any], Any], *, keeps_sign: bool = False
) -> Callable[[Any, Any], Any]:
    """A shift; by the width and more it gives 0, or the sign."""

    def shifted_by(a: Any, b: Any) -> Any:
        bits = 8 * a.dtype.itemsize
        inside = (b >= 0) & (b < bits)
        by = where(inside, b, b.dtype.type(bits - 1 if keeps_sign else 0))
        shifted = function(a, by)
        return shifted if keeps_sign else where(inside, shifted, a.dtype.type(0))

    return shifted_by


def shift_right_without_sign(a: Any, b: Any) -> Any:
    return (unsigned(a) >> unsigned(b)).view(a.dtype)


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def compare_integers(op: arith.CmpiOp, a: Any, b: Any) -> Any:
    predicate = arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]
    if predicate in COMPARISONS:
        return COMPARISONS[predicate](a, b)
    if predicate[0] == "u":
        a, b = unsigned(a), unsigned(b)
    elif a.dtype.kind == "b":
        a, b = resize(a, np.dtype(np.int8)), resize(b, np.dtype(np.int8))
    return COMPARISONS[predicate[1:]](a, b)


def compare_floats(op: arith.CmpfOp, a: Any, b: Any) -> Any:
    """Ordered predicates are false where one is NaN, unordered ones true."""
    predicate = arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]
    nan = np.isnan(a) | np.isnan(b)
    match predicate:
        case "false" | "true":
            return np.broadcast_to(np.bool_(predicate == "true"), np.shape(nan))[()]
        case "ord":
            return ~nan
        case "uno":
            return nan
        case _:
            found = COMPARISONS[predicate[1:]](a, b)
            return found | nan if predicate[0] == "u" else found & ~nan


def select(op: arith.SelectOp, condition: Any, one: Any, other: Any) -> Any:
    return where(beside_lanes(condition, op.result.type), one, other)


def beside_lanes(value: Any, type_: Attribute) -> Any:
    """A number for each point, so that it meets the vectors of `type_` there."""
    return np.asarray(value)[..., None] if isinstance(type_, VectorType) else value


def broadcast(op: vector.BroadcastOp, value: Any) -> Any:
    lanes = lanes_of(op.vector.type)
    return np.broadcast_to(np.asarray(value)[..., None], (*np.shape(value), *lanes)).copy()


def extract(op: vector.ExtractOp, value: Any, lane: Any) -> Any:
    return np.take_along_axis(value, np.asarray(lane)[..., None], -1)[..., 0]


def insert(op: vector.InsertOp, number: Any, value: Any, lane: Any) -> Any:
    made = np.array(value)
    np.put_along_axis(made, np.asarray(lane)[..., None], np.asarray(number)[..., None], -1)
    return made


def strong_product(op: ad.MulOp, bar: Any, partial: Any) -> Any:
    masked = where(bar == 0, bar.dtype.type(0), partial)
    if op.both is not None:
        bar = where(partial == 0, bar.dtype.type(0), bar)
    return bar * masked


def strong_quotient(_op: ad.DivOp, bar: Any, divisor: Any) -> Any:
    return where(bar == 0, bar.dtype.type(0), bar / divisor)


def with_known_sides(exact: Any, of_numbers: Any) -> Rule:
    """A minimum, or maximum, of the first two operands; the others say which side that is."""

    def rule(op: Operation, one: Any, other: Any, _below: Any, _above: Any) -> Any:
        assert isinstance(op, ad.ExtremeOp)
        return (exact if op.of_numbers is None else of_numbers)(one, other)

    return rule


# Conversions.


def resize(value: Any, dtype: np.dtype[Any], *, sign: bool = True) -> Any:
    """An integer in another width."""
    if dtype.kind == "b":
        return (value & 1).astype(np.bool_)
    if value.dtype.kind == "b":
        found = value.astype(dtype)
        return -found if sign else found
    return (value if sign else unsigned(value)).astype(dtype)


def to_integer(value: Any, dtype: np.dtype[Any]) -> Any:
    """Truncation; NaN and what does not fit become the least integer, of 32 bits at least."""
    bits = 8 * dtype.itemsize
    if bits < 32:
        return resize(to_integer(value, np.dtype(np.int32)), dtype)
    least = -(2.0 ** (bits - 1))
    below = value > least - 1 if value.dtype == np.float64 and bits == 32 else value >= least
    fits = below & (value < -least)
    return where(fits, where(fits, value, 0).astype(dtype), np.iinfo(dtype).min).astype(dtype)


def to_unsigned(value: Any, dtype: np.dtype[Any]) -> Any:
    """Truncation modulo 2**bits of what fits 64 bits with a sign, or without."""
    if dtype.itemsize < 8:
        return resize(to_integer(value, np.dtype(f"i{8 if dtype.itemsize == 4 else 4}")), dtype)
    half = value.dtype.type(2.0**63)
    upper = to_integer(value - half, dtype) ^ np.iinfo(dtype).min
    return where(value >= half, upper, to_integer(value, dtype))


def cast_number(op: array.CastOp, value: Any) -> Any:
    """NumPy's `astype` for one element."""
    source, dtype, sign = value.dtype, dtype_of(op.result.type), op.unsigned is None
    if source == dtype:
        return value
    if dtype.kind == "b":
        return value != 0
    if source.kind == "b" or (source.kind, dtype.kind) == ("f", "f"):
        return value.astype(dtype)
    if source.kind == "f":
        return (to_integer if sign else to_unsigned)(value, dtype)
    if dtype.kind == "f":
        return (value if sign else unsigned(value)).astype(dtype)
    return resize(value, dtype, sign=sign)


def into(function: Callable[[Any, np.dtype[Any]], Any]) -> Rule:
    """A conversion into the dtype of the result."""

    def rule(op: Operation, value: Any) -> Any:
        return function(value, dtype_of(op.results[0].type))

    return rule


def astype(value: Any, dtype: np.dtype[Any]) -> Any:
    return value.astype(dtype)


def same_bits(value: Any, dtype: np.dtype[Any]) -> Any:
    return value.view(dtype)


def without_its_sign(value: Any, dtype: np.dtype[Any]) -> Any:
    """An integer that is read without a sign, in a wider width."""
    return resize(value, dtype, sign=False)


def from_signed(value: Any, dtype: np.dtype[Any]) -> Any:
    return resize(value, np.dtype(np.int64)).astype(dtype)


def from_unsigned(value: Any, dtype: np.dtype[Any]) -> Any:
    return unsigned(value).astype(dtype)


# Integers.


def reciprocal_root(x: Any) -> Any:
    return x.dtype.type(1) / np.sqrt(x)


def float_to_integer_power(x: Any, n: Any) -> Any:
    return libm("pow")(x, n.astype(x.dtype))


def integer_power(a: Any, b: Any) -> Any:
    """By squaring, modulo the width; a negative exponent gives 0."""

    def power(x: Any, n: Any) -> int:
        bits = 8 * a.dtype.itemsize
        return 0 if n < 0 else pow(int(x), int(n), 1 << bits)

    found = np.asarray(np.frompyfunc(power, 2, 1)(a, b))
    return found.astype(np.uint64).astype(a.dtype)[()]


def on_bit_text(function: Callable[[str], int]) -> Rule:
    """A function of an integer's bits, the highest first."""

    def rule(_op: Operation, a: Any) -> Any:
        bits = 8 * a.dtype.itemsize
        found = np.frompyfunc(lambda x: function(f"{int(x) % (1 << bits):0{bits}b}"), 1, 1)(a)
        return np.asarray(found).astype(a.dtype)[()]

    return rule


def leading_zeros(bits: str) -> int:
    return len(bits) - len(bits.lstrip("0"))


def trailing_zeros(bits: str) -> int:
    return len(bits) - len(bits.rstrip("0"))


def same(_op: Operation, value: Any) -> Any:
    return value


def polygamma_function(op: special.PolygammaOp, x: Any) -> Any:
    return polygamma(op.ORDER)(x)


LIBM: dict[type[Operation], str] = {
    math.ExpOp: "exp",
    math.Exp2Op: "exp2",
    math.ExpM1Op: "expm1",
    math.LogOp: "log",
    math.Log2Op: "log2",
    math.Log10Op: "log10",
    math.Log1pOp: "log1p",
    math.SinOp: "sin",
    math.CosOp: "cos",
    math.TanOp: "tan",
    math.AsinOp: "asin",
    math.AcosOp: "acos",
    math.AtanOp: "atan",
    math.SinhOp: "sinh",
    math.CoshOp: "cosh",
    math.TanhOp: "tanh",
    math.AsinhOp: "asinh",
    math.AcoshOp: "acosh",
    math.AtanhOp: "atanh",
    math.Atan2Op: "atan2",
    math.PowFOp: "pow",
    math.CbrtOp: "cbrt",
    math.ErfOp: "erf",
    math.FmaOp: "fma",
    math.RoundOp: "round",
    special.ErfcOp: "erfc",
    special.LogGammaOp: "lgamma",
}

SCALARS: dict[type[Operation], Rule] = {
    arith.ConstantOp: constant,
    arith.AddfOp: plain(np.add),
    arith.SubfOp: plain(np.subtract),
    arith.MulfOp: plain(np.multiply),
    arith.DivfOp: plain(np.divide),
    arith.NegfOp: plain(np.negative),
    arith.MinimumfOp: plain(np.minimum),
    arith.MaximumfOp: plain(np.maximum),
    arith.MinnumfOp: plain(np.fmin),
    arith.MaxnumfOp: plain(np.fmax),
    ad.MinimumOp: with_known_sides(np.minimum, np.fmin),
    ad.MaximumOp: with_known_sides(np.maximum, np.fmax),
    ad.MulOp: strong_product,
    ad.DivOp: strong_quotient,
    vector.BroadcastOp: broadcast,
    vector.ExtractOp: extract,
    vector.InsertOp: insert,
    arith.AddiOp: on_bits(np.add, np.bitwise_xor),
    arith.SubiOp: on_bits(np.subtract, np.bitwise_xor),
    arith.MuliOp: on_bits(np.multiply, np.bitwise_and),
    arith.DivSIOp: on_bits(divide, np.bitwise_and),
    arith.RemSIOp: on_bits(remainder, neither),
    arith.DivUIOp: without_sign(divide_unsigned),
    arith.RemUIOp: without_sign(remainder),
    arith.CeilDivSIOp: on_bits(ceil_divide, np.bitwise_and),
    arith.CeilDivUIOp: without_sign(ceil_divide_unsigned),
    arith.FloorDivSIOp: on_bits(floor_divide, np.bitwise_and),
    arith.MinSIOp: on_bits(np.minimum, np.bitwise_or),
    arith.MaxSIOp: on_bits(np.maximum, np.bitwise_and),
    arith.MinUIOp: without_sign(np.minimum),
    arith.MaxUIOp: without_sign(np.maximum),
    arith.AndIOp: plain(np.bitwise_and),
    arith.OrIOp: plain(np.bitwise_or),
    arith.XOrIOp: plain(np.bitwise_xor),
    arith.ShLIOp: on_bits(shift(np.left_shift), first_alone),
    arith.ShRSIOp: on_bits(shift(np.right_shift, keeps_sign=True), first),
    arith.ShRUIOp: on_bits(shift(shift_right_without_sign), first_alone),
    arith.CmpiOp: compare_integers,
    arith.CmpfOp: compare_floats,
    arith.SelectOp: select,
    arith.BitcastOp: into(same_bits),
    arith.IndexCastOp: into(resize),
    arith.FPToSIOp: into(to_integer),
    arith.SIToFPOp: into(from_signed),
    arith.UIToFPOp: into(from_unsigned),
    arith.ExtFOp: into(astype),
    arith.TruncFOp: into(astype),
    arith.TruncIOp: into(resize),
    arith.ExtSIOp: into(resize),
    arith.ExtUIOp: into(without_its_sign),
    array.CastOp: cast_number,
    array.FloorDivOp: plain(floor_divide),
    array.FloorModOp: plain(modulo),
    foreign.StopGradientOp: same,
    foreign.NoDerivativeOp: same,
    math.AbsFOp: plain(np.abs),
    math.AbsIOp: plain(np.abs),
    math.CeilOp: plain(np.ceil),
    math.FloorOp: plain(np.floor),
    math.TruncOp: plain(np.trunc),
    math.RoundEvenOp: plain(np.rint),
    math.CopySignOp: plain(np.copysign),
    math.SqrtOp: plain(np.sqrt),
    math.CountLeadingZerosOp: on_bit_text(leading_zeros),
    math.CountTrailingZerosOp: on_bit_text(trailing_zeros),
    math.CtPopOp: on_bit_text(lambda bits: bits.count("1")),
    math.RsqrtOp: plain(reciprocal_root),
    math.FPowIOp: plain(float_to_integer_power),
    math.IPowIOp: plain(integer_power),
    special.GammaOp: plain(gamma),
    special.DigammaOp: polygamma_function,
    special.TrigammaOp: polygamma_function,
    special.TetragammaOp: polygamma_function,
    **{kind: plain(libm(name)) for kind, name in LIBM.items()},
}
"""What each op computes."""
