"""Derivatives of the `math` ops.

Partials that are infinite at the edge of a function's domain (sqrt, cbrt and a power below one at
0, asin, acos at -1 and 1) count as 0 there; a pole (log, division) stays infinite. Sources: the
usual tables; erf: Abramowitz and Stegun 7.1.19.
"""

from __future__ import annotations

from math import log as ln
from math import pi, sqrt

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from .scalars import Row, scalar_rules
from .table import LINEAR, ByOne, Scalars, Term

PLAIN = (
    *(math.AbsFOp, math.CopySignOp, math.FmaOp, math.SqrtOp),
    *(math.FloorOp, math.CeilOp, math.TruncOp, math.RoundEvenOp),
)
"""Ops of the dialect that are an instruction or two."""


def is_transcendental(op: Operation) -> bool:
    """Whether an op of the `math` or `special` dialect takes a polynomial, or a call."""
    return op.name.startswith(("math.", "special.")) and not isinstance(op, PLAIN)


def by_result(formula: ByOne) -> Term:
    """A rule that reads what the op computed, not what it computed it from."""
    return Term(("result",), formula)


def finite_over(s: Scalars, bar: SSAValue, divisor: SSAValue) -> SSAValue:
    """`bar / divisor`, and 0 where the divisor is 0."""
    edge = s.at_edge("oeq", divisor, s.constant(0.0, divisor))
    return s.zero_where(edge, s.over(bar, divisor))


def abs_(s: Scalars, bar: SSAValue, x: SSAValue) -> SSAValue:
    """1 at 0, as JAX has it."""
    return s.select(s.at_edge("oge", x, s.constant(0.0, x)), bar, s.neg(bar))


def sqrt_(s: Scalars, bar: SSAValue, y: SSAValue) -> SSAValue:
    return finite_over(s, bar, s.scaled(y, 2.0))


def rsqrt(s: Scalars, bar: SSAValue, y: SSAValue) -> SSAValue:
    return s.times(bar, s.scaled(s.mul(s.square(y), y), -0.5))


def cbrt(s: Scalars, bar: SSAValue, y: SSAValue) -> SSAValue:
    return finite_over(s, bar, s.scaled(s.square(y), 3.0))


def power_base(s: Scalars, bar: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
    """y * x**(y-1), of which a zero of y is strong; 0 where the power is infinite because x is 0."""
    zero, one = s.constant(0.0, y), s.constant(1.0, y)
    partial = s.times_both(y, s.emit(math.PowFOp(x, s.sub(y, one))))
    at_zero, below_one = s.at_edge("oeq", x, zero), s.at_edge("olt", y, one)
    return s.zero_where(s.emit(arith.AndIOp(at_zero, below_one)), s.times(bar, partial))


def power_exponent(s: Scalars, bar: SSAValue, x: SSAValue, result: SSAValue) -> SSAValue:
    """x**y * log(x); 0 where x is not positive."""
    partial = s.mul(result, s.emit(math.LogOp(x)))
    zero = s.constant(0.0, bar)
    return s.select(s.at_edge("ogt", x, s.constant(0.0, x)), s.times(bar, partial), zero)


def integer_power(s: Scalars, bar: SSAValue, x: SSAValue, n: SSAValue) -> SSAValue:
    """n * x**(n-1) for an integer n."""
    exponent = s.cast(n, x.type)
    return power_base(s, bar, x, exponent)


def arctan2_first(s: Scalars, bar: SSAValue, y: SSAValue, x: SSAValue) -> SSAValue:
    return finite_over(s, s.times(bar, x), s.add(s.square(x), s.square(y)))


def arctan2_second(s: Scalars, bar: SSAValue, y: SSAValue, x: SSAValue) -> SSAValue:
    return s.neg(finite_over(s, s.times(bar, y), s.add(s.square(x), s.square(y))))


def one_minus_square(s: Scalars, a: SSAValue) -> SSAValue:
    return s.sub(s.constant(1.0, a), s.square(a))


def one_plus_square(s: Scalars, a: SSAValue) -> SSAValue:
    return s.add(s.constant(1.0, a), s.square(a))


def copysign_magnitude(s: Scalars, bar: SSAValue, x: SSAValue, sign: SSAValue) -> SSAValue:
    one = s.constant(1.0, x)
    product = s.mul(s.emit(math.CopySignOp(one, x)), s.emit(math.CopySignOp(one, sign)))
    return s.mul(bar, product)


def erf(s: Scalars, bar: SSAValue, x: SSAValue) -> SSAValue:
    bell = s.emit(math.ExpOp(s.neg(s.square(x))))
    return s.times(bar, s.scaled(bell, 2.0 / sqrt(pi)))


TERMS: dict[type[Operation], Row] = {
    math.AbsFOp: (Term(("operand",), abs_),),
    math.ExpOp: (by_result(lambda s, bar, y: s.times(bar, y)),),
    math.Exp2Op: (by_result(lambda s, bar, y: s.times(bar, s.scaled(y, ln(2.0)))),),
    math.ExpM1Op: (by_result(lambda s, bar, y: s.times(bar, s.add(y, s.constant(1.0, y)))),),
    math.LogOp: (Term(("operand",), lambda s, bar, x: s.over(bar, x)),),
    math.Log2Op: (Term(("operand",), lambda s, bar, x: s.over(bar, s.scaled(x, ln(2.0)))),),
    math.Log10Op: (Term(("operand",), lambda s, bar, x: s.over(bar, s.scaled(x, ln(10.0)))),),
    math.Log1pOp: (
        Term(("operand",), lambda s, bar, x: s.over(bar, s.add(x, s.constant(1.0, x)))),
    ),
    math.SqrtOp: (by_result(sqrt_),),
    math.RsqrtOp: (by_result(rsqrt),),
    math.CbrtOp: (by_result(cbrt),),
    math.SinOp: (Term(("operand",), lambda s, bar, x: s.times(bar, s.emit(math.CosOp(x)))),),
    math.CosOp: (Term(("operand",), lambda s, bar, x: s.neg(s.times(bar, s.emit(math.SinOp(x))))),),
    math.TanOp: (by_result(lambda s, bar, y: s.times(bar, one_plus_square(s, y))),),
    math.AsinOp: (
        Term(("operand",), lambda s, bar, x: finite_over(s, bar, s.sqrt(one_minus_square(s, x)))),
    ),
    math.AcosOp: (
        Term(
            ("operand",),
            lambda s, bar, x: s.neg(finite_over(s, bar, s.sqrt(one_minus_square(s, x)))),
        ),
    ),
    math.AtanOp: (Term(("operand",), lambda s, bar, x: s.over(bar, one_plus_square(s, x))),),
    math.Atan2Op: (Term(("lhs", "rhs"), arctan2_first), Term(("lhs", "rhs"), arctan2_second)),
    math.SinhOp: (Term(("operand",), lambda s, bar, x: s.times(bar, s.emit(math.CoshOp(x)))),),
    math.CoshOp: (Term(("operand",), lambda s, bar, x: s.times(bar, s.emit(math.SinhOp(x)))),),
    math.TanhOp: (by_result(lambda s, bar, y: s.times(bar, one_minus_square(s, y))),),
    math.AsinhOp: (
        Term(("operand",), lambda s, bar, x: s.over(bar, s.sqrt(one_plus_square(s, x)))),
    ),
    math.AcoshOp: (
        Term(
            ("operand",),
            lambda s, bar, x: finite_over(s, bar, s.sqrt(s.sub(s.square(x), s.constant(1.0, x)))),
        ),
    ),
    math.AtanhOp: (Term(("operand",), lambda s, bar, x: s.over(bar, one_minus_square(s, x))),),
    math.PowFOp: (Term(("lhs", "rhs"), power_base), Term(("lhs", "result"), power_exponent)),
    math.FPowIOp: (Term(("lhs", "rhs"), integer_power), None),
    math.CopySignOp: (Term(("lhs", "rhs"), copysign_magnitude), None),
    math.ErfOp: (Term(("operand",), erf),),
    math.FmaOp: (
        Term(("b",), lambda s, bar, b: s.times(bar, b)),
        Term(("a",), lambda s, bar, a: s.times(bar, a)),
        LINEAR,
    ),
    math.FloorOp: (None,),
    math.CeilOp: (None,),
    math.TruncOp: (None,),
    math.RoundOp: (None,),
    math.RoundEvenOp: (None,),
}

KEEPING: dict[type[Operation], tuple[int, ...]] = {
    **dict.fromkeys(
        (math.SqrtOp, math.ExpOp, math.SinOp, math.CosOp, math.TanhOp, math.AbsFOp), (0,)
    ),
    math.FmaOp: (0, 1, 2),
}

RULES = scalar_rules(TERMS, KEEPING)
