"""Powers: by squares and roots where the exponent is known."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from ....dialects import array
from ...scalar_types import SIGNED, UNSIGNED
from ..emitter import Emitter
from ..values import Array, Scalar
from .dtypes import FLOATS, INTEGERS
from .element_code import (
    Elements,
    OpKind,
    like,
    op,
    reciprocal,
)
from .maps import Lowering, Operand, converted, elementwise

_MULTIPLIED = 6
"""Up to this exponent a power of floats is a chain of products: within 3 ulp of `pow`."""


def power(
    e: Emitter, operands: Sequence[Operand], loop: Sequence[str], *, operator: bool
) -> Operand:
    """`base ** exponent`, without `pow` for the small constant exponents."""
    base, exponent = operands
    constant = exponent.constant if isinstance(exponent, Scalar) else None
    if loop[0] in INTEGERS:
        return _integer_power(e, base, exponent, loop)
    if loop[0] not in FLOATS:
        e.fail("powers of bools are not supported", way_out="convert to int64 first")
    lower = None if constant is None else _constant_power(float(constant))
    if (
        lower is None
        and constant == 0.5
        and operator
        and isinstance(exponent, Scalar)
        and exponent.type == "py_float"
        and not isinstance(base, Scalar)
    ):
        lower = op(math.SqrtOp)
    if lower is None:
        return elementwise(e, operands, loop, op(math.PowFOp))
    return elementwise(e, [base], (loop[0], loop[2]), lower)


def is_square_of_bools(base: Operand, exponent: Operand) -> bool:
    """`mask ** 2` of an array: NumPy's operator calls `np.square` of Python's 2, whose result is an int8."""
    return (
        isinstance(base, Array)
        and base.dtype == "b1"
        and isinstance(exponent, Scalar)
        and exponent.type == "py_int"
        and exponent.constant == 2
    )


def _constant_power(exponent: float) -> Lowering | None:
    if exponent == -1:
        return reciprocal
    if exponent == 0:
        return lambda e, xs: like(e, xs[0], 1)
    if exponent.is_integer() and 0 < exponent <= _MULTIPLIED:
        return repeated(arith.MulfOp, int(exponent))
    return None


def repeated(kind: OpKind, exponent: int) -> Lowering:
    """x to a constant power by squaring."""

    def lower(e: Emitter, xs: Elements) -> SSAValue:
        factor, result, left = xs[0], None, exponent
        while left:
            if left & 1:
                result = factor if result is None else e.emit(kind(result, factor))
            left >>= 1
            if left:
                factor = e.emit(kind(factor, factor))
        return like(e, xs[0], 1) if result is None else result

    return lower


def _integer_power(e: Emitter, base: Operand, exponent: Operand, loop: Sequence[str]) -> Operand:
    lower = unsigned_power if loop[0] in UNSIGNED else op(math.IPowIOp)
    message = "Integers to negative integer powers are not allowed."
    if not isinstance(exponent, Scalar):
        if loop[1] in SIGNED:
            negative = lowest_is_negative(e, exponent)
            e.insert(array.RaiseIfOp(negative, "ValueError", message))
        return elementwise(e, [base, exponent], loop, lower)
    if exponent.constant is not None and exponent.constant >= 0:
        return elementwise(
            e, [base], (loop[0], loop[2]), repeated(arith.MuliOp, int(exponent.constant))
        )
    if exponent.constant is not None:
        e.fail(message, way_out="use a float base")
    if exponent.type in ("py_int", *SIGNED) and exponent.low < 0 and loop[1] in SIGNED:
        zero = e.index(0) if exponent.type == "py_int" else like(e, exponent.ssa, 0)
        negative = e.emit(arith.CmpiOp(exponent.ssa, zero, "slt"))
        e.insert(array.RaiseIfOp(negative, "ValueError", message))
    return elementwise(e, [base, exponent], loop, lower)


def unsigned_power(e: Emitter, xs: Elements) -> SSAValue:
    """By half of the exponent, which has no sign: `ipowi` takes its highest bit for one."""
    base, exponent = xs
    one = like(e, exponent, 1)
    half = e.emit(math.IPowIOp(base, e.emit(arith.ShRUIOp(exponent, one))))
    odd = e.emit(arith.CmpiOp(e.emit(arith.AndIOp(exponent, one)), one, "eq"))
    factor = e.emit(arith.SelectOp(odd, base, like(e, base, 1)))
    return e.emit(arith.MuliOp(e.emit(arith.MuliOp(half, half)), factor))


def lowest_is_negative(e: Emitter, exponents: Array) -> SSAValue:
    """The condition that one of the exponents is negative."""
    from .reductions import MINIMUM, reduce  # which itself builds on this module

    x = converted(e, exponents, "i64")
    lowest = reduce(e, MINIMUM, x, range(x.rank))
    assert isinstance(lowest, Scalar)
    return e.emit(arith.CmpiOp(lowest.ssa, like(e, lowest.ssa, 0), "slt"))
