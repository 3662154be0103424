"""Python's `math` module and numeric builtins on scalars, with CPython's domain and range errors.

Each function of `math` is a row: the op that computes it, where its argument is outside the domain
(ValueError), and for which finite arguments the result overflows (OverflowError).
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from . import scalars
from .emitter import Emitter
from .library import element_code, special
from .values import INT64_MAX, INT64_MIN, Scalar

DOMAIN = ("ValueError", "math domain error")
RANGE = ("OverflowError", "math range error")

Condition = Callable[[Emitter, SSAValue], SSAValue]


def outside(predicate: str, bound: float) -> Condition:
    """x `predicate` bound: the arguments that raise."""

    def condition(e: Emitter, x: SSAValue) -> SSAValue:
        return e.emit(arith.CmpfOp(x, e.constant(bound, "py_float").ssa, predicate))

    return condition


def magnitude_outside(predicate: str, bound: float) -> Condition:
    inner = outside(predicate, bound)
    return lambda e, x: inner(e, e.emit(math.AbsFOp(x)))


def finite_beyond(largest: float, *, of_magnitude: bool = False) -> Condition:
    """The finite arguments above the largest one that gives a finite result.

    Asked of the argument, so that it can be asked before a loop. Around these bounds the results
    differ by a hundred units in the last place: no libm takes one for the other.
    """

    def condition(e: Emitter, x: SSAValue) -> SSAValue:
        size = e.emit(math.AbsFOp(x)) if of_magnitude else x
        above = outside("ogt", largest)(e, size)
        return e.emit(arith.AndIOp(above, outside("olt", python_math.inf)(e, size)))

    return condition


EXP_OVERFLOWS = finite_beyond(709.782712893384)
COSH_OVERFLOWS = finite_beyond(710.4758600739439, of_magnitude=True)


@dataclass(frozen=True)
class Row:
    """One function: how it is computed, what it does not take, whether it overflows."""

    compute: Callable[[SSAValue], Operation]
    domain: Condition | None = None
    overflows: Condition | None = None


UNARY: dict[object, Row] = {
    python_math.sin: Row(math.SinOp, scalars.is_infinite),
    python_math.cos: Row(math.CosOp, scalars.is_infinite),
    python_math.tan: Row(math.TanOp, scalars.is_infinite),
    python_math.asin: Row(math.AsinOp, magnitude_outside("ogt", 1.0)),
    python_math.acos: Row(math.AcosOp, magnitude_outside("ogt", 1.0)),
    python_math.atan: Row(math.AtanOp),
    python_math.sinh: Row(math.SinhOp, overflows=COSH_OVERFLOWS),
    python_math.cosh: Row(math.CoshOp, overflows=COSH_OVERFLOWS),
    python_math.tanh: Row(math.TanhOp),
    python_math.asinh: Row(math.AsinhOp),
    python_math.acosh: Row(math.AcoshOp, outside("olt", 1.0)),
    python_math.atanh: Row(math.AtanhOp, magnitude_outside("oge", 1.0)),
    python_math.exp: Row(math.ExpOp, overflows=EXP_OVERFLOWS),
    python_math.expm1: Row(math.ExpM1Op, overflows=EXP_OVERFLOWS),
    python_math.log: Row(math.LogOp, outside("ole", 0.0)),
    python_math.log2: Row(math.Log2Op, outside("ole", 0.0)),
    python_math.log10: Row(math.Log10Op, outside("ole", 0.0)),
    python_math.log1p: Row(math.Log1pOp, outside("ole", -1.0)),
    python_math.sqrt: Row(math.SqrtOp, outside("olt", 0.0)),
    python_math.cbrt: Row(math.CbrtOp),
    python_math.fabs: Row(math.AbsFOp),
    python_math.erf: Row(math.ErfOp),
    **{function: Row(*parts) for function, parts in special.MATH.items()},
    **(
        {python_math.exp2: Row(math.Exp2Op, overflows=finite_beyond(1023.9999999999999))}
        if hasattr(python_math, "exp2")
        else {}
    ),
}
ROUNDING: dict[object, Callable[[SSAValue], Operation]] = {
    python_math.floor: math.FloorOp,
    python_math.ceil: math.CeilOp,
    python_math.trunc: math.TruncOp,
}
NAMES = {
    "fmod",
    "hypot",
    "pow",
    "atan2",
    "copysign",
    "degrees",
    "radians",
    "isnan",
    "isinf",
    "isfinite",
}


def knows(function: object) -> bool:
    known = type(function).__hash__ and (function in UNARY or function in ROUNDING)
    return bool(known) or getattr(function, "__name__", "") in NAMES


def call(e: Emitter, function: object, args: list[Scalar]) -> Scalar:
    """`math.function(*args)`."""
    name = getattr(function, "__name__", "")
    wanted = 2 if name in ("fmod", "pow", "atan2", "copysign") else 1
    if name in ("log", "hypot") and len(args) in (1, 2):
        wanted = len(args)
    if len(args) != wanted:
        e.fail(f"math.{name} is called with {len(args)} arguments", f"it is compiled for {wanted}")
    if (folded := fold(e, function, args)) is not None:
        return folded
    if function in ROUNDING:
        return rounded(e, ROUNDING[function], args[0])
    x, *rest = (scalars.convert(e, a, "py_float") for a in args)
    if function is python_math.log and rest:
        numerator, denominator = (call(e, python_math.log, [a]) for a in (x, rest[0]))
        return scalars.floating(e, "Div", numerator, denominator)
    if function in UNARY:
        return unary(e, function, x, is_int=args[0].type == "py_int")
    return SPECIAL[name](e, x, *rest)


def fold(e: Emitter, function: object, args: list[Scalar]) -> Scalar | None:
    """The result where every argument is known and CPython has one."""
    constants = [a.constant for a in args]
    if any(c is None for c in constants) or not callable(function):
        return None
    try:
        value = function(*constants)
    except (ArithmeticError, ValueError):
        return None
    if isinstance(value, bool):
        return e.constant(value, "py_bool")
    if isinstance(value, int):
        return e.constant(value, "py_int") if INT64_MIN <= value <= INT64_MAX else None
    return e.constant(value, "py_float") if isinstance(value, float) else None


@cache
def domain_error(function: Callable[[float], float], *, is_int: bool) -> str:
    """What this Python says of an argument outside the domain, `{}` for the argument."""
    outsiders = (-1, 2, -2, 0) if is_int else (python_math.inf, -1.5, 2.0, 0.5, -2.0)
    for argument in outsiders:
        try:
            function(argument)
        except ValueError as error:
            return str(error).replace(str(float(argument)), "{}")
        except OverflowError:
            pass
    return DOMAIN[1]


def unary(e: Emitter, function: object, x: Scalar, *, is_int: bool) -> Scalar:
    row = UNARY[function]
    if row.domain is not None:
        assert callable(function)
        message = domain_error(function, is_int=is_int)
        shown = [x.ssa] * message.count("{}")
        e.insert(array.RaiseIfOp(row.domain(e, x.ssa), "ValueError", message, shown))
    if row.overflows is not None:
        scalars.raise_if(e, row.overflows(e, x.ssa), RANGE)
    return Scalar("py_float", e.emit(row.compute(x.ssa)))


def raise_overflow(e: Emitter, result: SSAValue, *arguments: SSAValue) -> None:
    """OverflowError where finite arguments gave an infinity."""
    condition = scalars.is_infinite(e, result)
    for x in arguments:
        condition = e.emit(arith.AndIOp(condition, scalars.is_finite(e, x)))
    scalars.raise_if(e, condition, RANGE)


def rounded(e: Emitter, op: Callable[[SSAValue], Operation], x: Scalar) -> Scalar:
    """An int, by floor, ceil, trunc or round-half-even."""
    if not scalars.is_float(x.type):
        return scalars.convert(e, x, "py_int")
    wide = scalars.convert(e, x, "py_float")
    return scalars.float_to_int(e, Scalar("py_float", e.emit(op(wide.ssa))))


def fmod(e: Emitter, x: Scalar, y: Scalar) -> Scalar:
    """C's fmod: |x| - |y| * n with the sign of x, exact; built on Python's `%` of magnitudes."""
    zero = scalars.compare_ssa(e, "Eq", y.ssa, e.constant(0.0, "py_float").ssa, "py_float")
    bad = e.emit(arith.OrIOp(zero, scalars.is_infinite(e, x.ssa)))
    ordered = e.emit(arith.CmpfOp(x.ssa, y.ssa, "ord"))
    scalars.raise_if(e, e.emit(arith.AndIOp(bad, ordered)), DOMAIN)
    remainder = scalars.floating(
        e,
        "Mod",
        Scalar("py_float", e.emit(math.AbsFOp(x.ssa))),
        Scalar("py_float", e.emit(math.AbsFOp(y.ssa))),
    )
    return Scalar("py_float", e.emit(math.CopySignOp(remainder.ssa, x.ssa)))


def hypot(e: Emitter, x: Scalar, y: Scalar | None = None) -> Scalar:
    """NumPy's, with an error where the result overflows; of one number its magnitude."""
    if y is None:
        return Scalar("py_float", e.emit(math.AbsFOp(x.ssa)))
    result = element_code.hypot(e, [x.ssa, y.ssa])
    raise_overflow(e, result, x.ssa, y.ssa)
    return Scalar("py_float", result)


def power(e: Emitter, x: Scalar, y: Scalar) -> Scalar:
    """math.pow: ValueError for 0 ** negative and negative ** fraction, OverflowError."""
    zero = e.constant(0.0, "py_float").ssa
    result = e.emit(math.PowFOp(x.ssa, y.ssa))
    finite = e.emit(arith.AndIOp(scalars.is_finite(e, x.ssa), scalars.is_finite(e, y.ssa)))
    nan = e.emit(arith.CmpfOp(result, result, "uno"))
    base_zero = scalars.compare_ssa(e, "Eq", x.ssa, zero, "py_float")
    down = scalars.compare_ssa(e, "Lt", y.ssa, zero, "py_float")
    pole = e.emit(arith.AndIOp(base_zero, down))
    scalars.raise_if(e, e.emit(arith.AndIOp(finite, e.emit(arith.OrIOp(nan, pole)))), DOMAIN)
    raise_overflow(e, result, x.ssa, y.ssa)
    return Scalar("py_float", result)


def scaled_by(factor: float) -> Callable[[Emitter, Scalar], Scalar]:
    return lambda e, x: Scalar(
        "py_float", e.emit(arith.MulfOp(x.ssa, e.constant(factor, "py_float").ssa))
    )


Two = Callable[[SSAValue, SSAValue], Operation]


def binary(op: Two) -> Callable[[Emitter, Scalar, Scalar], Scalar]:
    """A function of two floats that is one op."""
    return lambda e, x, y: Scalar("py_float", e.emit(op(x.ssa, y.ssa)))


def predicate(test: Condition) -> Callable[[Emitter, Scalar], Scalar]:
    return lambda e, x: Scalar("py_bool", test(e, x.ssa))


SPECIAL: dict[str, Callable[..., Scalar]] = {
    "fmod": fmod,
    "hypot": hypot,
    "pow": power,
    "atan2": binary(math.Atan2Op),
    "copysign": binary(math.CopySignOp),
    "degrees": scaled_by(180.0 / python_math.pi),
    "radians": scaled_by(python_math.pi / 180.0),
    "isnan": predicate(lambda e, x: element_code.is_nan(e, [x])),
    "isinf": predicate(scalars.is_infinite),
    "isfinite": predicate(scalars.is_finite),
}
