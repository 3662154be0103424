"""Arithmetic on Python's own scalars: bool, int (64 bits, exact or OverflowError) and float.

The rules are CPython's, exceptions included, and so are the messages (asked of the running
interpreter, whose wording changes between versions). What is known while compiling is folded; what
is known of an int's range proves that it cannot overflow::

    i + 1        with i in [0, 2**48]      arith.addi            (index)
    n * m        nothing known             array.checked_mul     (or OverflowError)
    a / b        floats                    array.raise_if b == 0; arith.divf

NumPy's scalars are not handled here but by the library, as rank-0 arrays are.
"""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import Block, SSAValue

from ...dialects import array
from ..analysis.known_values import known_value
from ..diagnostics import CompileError
from ..scalar_types import RANGE, UNSIGNED
from . import checks
from .emitter import TOO_LARGE, Emitter
from .values import (
    INT64_MAX,
    INT64_MIN,
    IR_TYPE,
    NUMPY_DTYPE,
    PYTHON_SCALARS,
    NoneValue,
    Scalar,
    Static,
    Value,
)

MARK = "\x1fexception "
"""How the recipe of an exception begins, which is more than a text: `raised.MARK` of the runtime."""


def python_exception(function: Callable[[], Any]) -> tuple[str, str]:
    """The name and text (or recipe) of the exception that this CPython raises from `function`."""
    try:
        function()
    except Exception as error:
        if len(error.args) == 1:
            return type(error).__name__, str(error)
        return type(error).__name__, MARK + json.dumps({"args": [["c", a] for a in error.args]})
    raise AssertionError("no exception")


ZERO, ONE = 0, 1
INT_DIVISION = python_exception(lambda: ONE // ZERO)
INT_MODULO = python_exception(lambda: ONE % ZERO)
INT_TRUE_DIVISION = python_exception(lambda: ONE / ZERO)
FLOAT_DIVISION = python_exception(lambda: 1.0 / float(ZERO))
FLOAT_FLOOR_DIVISION = python_exception(lambda: 1.0 // float(ZERO))
FLOAT_MODULO = python_exception(lambda: 1.0 % float(ZERO))
ZERO_TO_NEGATIVE = python_exception(lambda: float(ZERO) ** -1.0)
POWER_OVERFLOW = python_exception(lambda: 1e300 ** float(ONE + 1))
NEGATIVE_SHIFT = python_exception(lambda: ONE >> (ZERO - 1))
NAN_TO_INT = python_exception(lambda: int(float("nan")))
INFINITY_TO_INT = python_exception(lambda: int(float("inf")))
NEGATIVE_INT_POWER = (
    "NotImplementedError",
    "mutad: int ** int gives a float for a negative exponent: write float(a) ** b",
)
COMPLEX_POWER = ("ValueError", "a negative number to a fractional power is complex")

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
}
SYMBOL = {
    "Add": "+",
    "Sub": "-",
    "Mult": "*",
    "Div": "/",
    "FloorDiv": "//",
    "Mod": "%",
    "Pow": "**",
    "LShift": "<<",
    "RShift": ">>",
    "BitAnd": "&",
    "BitOr": "|",
    "BitXor": "^",
    "MatMult": "@",
}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
INT_PREDICATE = {"Eq": "eq", "NotEq": "ne", "Lt": "slt", "LtE": "sle", "Gt": "sgt", "GtE": "sge"}
FLOAT_PREDICATE = {
    "Eq": "oeq",
    "NotEq": "une",
    "Lt": "olt",
    "LtE": "ole",
    "Gt": "ogt",
    "GtE": "oge",
}


def is_python(value: Value) -> TypeGuard[Scalar]:
    """True for a Python scalar, which does not bring NumPy's rules."""
    return isinstance(value, Scalar) and value.type in PYTHON_SCALARS


def is_float(type_: str) -> bool:
    return type_ in ("py_float", "f32", "f64")


def is_bool(type_: str) -> bool:
    return type_ in ("py_bool", "b1")


# Conversions and joins


def convert(e: Emitter, scalar: Scalar, type_: str) -> Scalar:
    """The scalar as another type, as NumPy's `astype` or Python's widening does it."""
    if scalar.type == type_:
        return scalar
    if scalar.constant is not None:
        return e.constant(converted_constant(scalar.constant, type_), type_)
    low, high = RANGE.get(scalar.type, RANGE["py_int"]) if type_ == "py_int" else RANGE["py_int"]
    return Scalar(type_, e.cast(scalar.ssa, scalar.type, type_), None, low, min(high, INT64_MAX))


def converted_constant(value: bool | int | float, type_: str) -> bool | int | float:
    if is_bool(type_):
        return bool(value)
    if type_ in ("py_int", "py_float"):
        return int(value) if type_ == "py_int" else float(value)
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(NUMPY_DTYPE[type_]).item()


def truth(e: Emitter, value: Value) -> Scalar:
    """`bool(value)`."""
    if isinstance(value, Scalar):
        number = known_value(value.ssa) if value.constant is None else value.constant
        if number is not None:
            return e.constant(bool(number), "py_bool")
        if is_bool(value.type):
            return convert(e, value, "py_bool")
        zero = e.constant(0, value.type)
        return Scalar("py_bool", compare_ssa(e, "NotEq", value.ssa, zero.ssa, value.type))
    if isinstance(value, NoneValue):
        return e.constant(False, "py_bool")
    raise CompileError(
        e.span,
        "the truth value of this is not defined"
        if isinstance(value, Static)
        else "the truth value of an array is ambiguous",
        "reduce it: `(x > 0).any()`; join masks by `&`, `|` and `~`: `(0 < x) & (x < 1)`",
    )


def raise_if(e: Emitter, condition: SSAValue, exception: tuple[str, str]) -> None:
    e.insert(array.RaiseIfOp(condition, exception[0], exception[1]))


def raise_where(
    e: Emitter, lhs: Scalar, op: str, rhs: int, exception: tuple[str, str], *shown: SSAValue
) -> None:
    """Raise where `lhs op rhs` holds of an int."""
    wrong = compare(e, op, lhs, e.constant(rhs, "py_int"))
    e.insert(array.RaiseIfOp(wrong.ssa, exception[0], exception[1], shown))


def compare_ssa(e: Emitter, op: str, lhs: SSAValue, rhs: SSAValue, type_: str) -> SSAValue:
    if is_float(type_):
        return e.emit(arith.CmpfOp(lhs, rhs, FLOAT_PREDICATE[op]))
    if type_ in ("py_bool", "b1", *UNSIGNED) and op not in ("Eq", "NotEq"):
        predicate = INT_PREDICATE[op].replace("s", "u", 1)  # True is 1, not -1
        return e.emit(arith.CmpiOp(lhs, rhs, predicate))
    return e.emit(arith.CmpiOp(lhs, rhs, INT_PREDICATE[op]))


# Comparison


def compare(e: Emitter, op: str, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`lhs < rhs` and the like for Python scalars. What the ranges decide is a constant."""
    if lhs.constant is not None and rhs.constant is not None:
        return e.constant(COMPARISONS[op](lhs.constant, rhs.constant), "py_bool")
    if is_float(lhs.type) or is_float(rhs.type):
        type_ = "py_float"
    else:
        type_ = "py_int"
    lhs, rhs = convert(e, lhs, type_), convert(e, rhs, type_)
    if type_ == "py_int" and (known := decided(op, lhs, rhs)) is not None:
        return e.constant(known, "py_bool")
    return Scalar("py_bool", compare_ssa(e, op, lhs.ssa, rhs.ssa, type_))


def decided(op: str, lhs: Scalar, rhs: Scalar) -> bool | None:
    """What the ranges of two ints say of a comparison."""
    match op:
        case "Lt":
            return True if lhs.high < rhs.low else False if lhs.low >= rhs.high else None
        case "LtE":
            return True if lhs.high <= rhs.low else False if lhs.low > rhs.high else None
        case "Gt":
            return decided("Lt", rhs, lhs)
        case "GtE":
            return decided("LtE", rhs, lhs)
        case _:
            apart = lhs.high < rhs.low or rhs.high < lhs.low
            return (op == "NotEq") if apart else None


# Unary operators


def unary(e: Emitter, op: str, x: Scalar) -> Scalar:
    """`-x`, `+x`, `~x`, `not x` for a Python scalar."""
    if op == "Not":
        t = truth(e, x)
        if t.constant is not None:
            return e.constant(not t.constant, "py_bool")
        return Scalar("py_bool", logical_not(e, t.ssa))
    if is_bool(x.type):
        x = convert(e, x, "py_int")
    if op == "UAdd":
        return x
    if is_float(x.type):
        if op == "Invert":
            raise CompileError(e.span, "bad operand type for unary ~: 'float'")
        if x.constant is not None:
            return e.constant(-x.constant, "py_float")
        return Scalar("py_float", e.emit(arith.NegfOp(x.ssa)))
    zero = e.constant(0 if op == "USub" else -1, "py_int")
    return integer(e, "Sub", zero, x)


def logical_not(e: Emitter, ssa: SSAValue) -> SSAValue:
    return e.emit(arith.XOrIOp(ssa, e.constant(True, "py_bool").ssa))


# Binary operators


def binary(e: Emitter, op: str, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`lhs op rhs` for two Python scalars, as CPython computes it or raises."""
    if op == "MatMult":
        raise CompileError(e.span, "`@` needs arrays", "use `*`")
    if (folded := fold(e, op, lhs, rhs)) is not None:
        return folded
    if op in ("BitAnd", "BitOr", "BitXor") and lhs.type == rhs.type == "py_bool":
        return Scalar("py_bool", e.emit(BITWISE[op](lhs.ssa, rhs.ssa)))
    if is_float(lhs.type) or is_float(rhs.type):
        if op in ("LShift", "RShift", "BitAnd", "BitOr", "BitXor"):
            raise CompileError(e.span, f"unsupported operand type(s) for {SYMBOL[op]}: a float")
        return floating(e, op, lhs, rhs)
    return integer(e, op, convert(e, lhs, "py_int"), convert(e, rhs, "py_int"))


def fold(e: Emitter, op: str, lhs: Scalar, rhs: Scalar) -> Scalar | None:
    """The result where both operands are known and CPython has a 64-bit answer."""
    if lhs.constant is None or rhs.constant is None:
        return None
    value = computed(op, lhs.constant, rhs.constant)
    if isinstance(value, bool):
        return e.constant(value, "py_bool")
    if isinstance(value, int):
        return e.constant(value, "py_int") if INT64_MIN <= value <= INT64_MAX else None
    return None if value is None else e.constant(value, "py_float")


def computed(op: str, a: float, b: float) -> float | None:
    """What CPython makes of two numbers; None where it raises, or has to work for it."""
    if op in ("Pow", "LShift") and isinstance(a, int) and abs(a) > 1 and abs(b) > 1024:
        return None
    try:
        value = OPERATORS[op](a, b)
    except (ArithmeticError, KeyError, ValueError, TypeError):
        return None
    return value if isinstance(value, int | float) else None


def small_number(node: ast.expr) -> int | None:
    """The int of 64 bits that an expression of literals is."""
    value = whole_number(node)
    return value if value is not None and INT64_MIN <= value <= INT64_MAX else None


def whole_number(node: ast.expr) -> int | None:
    """The int that an expression of literals is, computed without bound: `-(2**63)` fits."""
    value = None
    match node:
        case ast.Constant(int(literal)):
            return literal
        case ast.UnaryOp(ast.USub()) if (a := whole_number(node.operand)) is not None:
            return -a
        case ast.BinOp() if (b := whole_number(node.right)) is not None:
            if (a := whole_number(node.left)) is not None:
                value = computed(type(node.op).__name__, a, b)
        case _:
            pass
    return value if isinstance(value, int) else None


BITWISE = {"BitAnd": arith.AndIOp, "BitOr": arith.OrIOp, "BitXor": arith.XOrIOp}
PLAIN = {"Add": arith.AddiOp, "Sub": arith.SubiOp, "Mult": arith.MuliOp}
CHECKED = {"Add": array.CheckedAddOp, "Sub": array.CheckedSubOp, "Mult": array.CheckedMulOp}


def integer(e: Emitter, op: str, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`lhs op rhs` for two Python ints."""
    if (folded := fold(e, op, lhs, rhs)) is not None:
        return folded
    neutral = 1 if op == "Mult" else 0
    match op:
        case "Add" | "Sub" | "Mult" if rhs.constant == neutral:
            return lhs
        case "Add" | "Mult" if lhs.constant == neutral:
            return rhs
        case "Add" | "Sub" | "Mult":
            low, high = interval(op, lhs, rhs)
            fits = low >= INT64_MIN and high <= INT64_MAX
            ssa = e.emit((PLAIN if fits else CHECKED)[op](lhs.ssa, rhs.ssa))
            return Scalar("py_int", ssa, None, max(low, INT64_MIN), min(high, INT64_MAX))
        case "FloorDiv" | "Mod":
            return floor_division(e, op, lhs, rhs)
        case "Div":
            return floating(e, op, lhs, rhs)
        case "Pow":
            return integer_power(e, lhs, rhs)
        case "LShift":
            return shifted_left(e, lhs, rhs)
        case "RShift":
            if rhs.low < 0:
                zero = e.index(0)
                raise_if(e, compare_ssa(e, "Lt", rhs.ssa, zero, "py_int"), NEGATIVE_SHIFT)
            by = e.emit(arith.MinSIOp(rhs.ssa, e.index(63))) if rhs.high > 63 else rhs.ssa
            return Scalar(
                "py_int",
                e.emit(arith.ShRSIOp(lhs.ssa, by)),
                None,
                min(lhs.low, 0),
                max(lhs.high, -1),
            )
        case _:
            low, high = INT64_MIN, INT64_MAX
            if op == "BitAnd" and (lhs.low >= 0 or rhs.low >= 0):
                low, high = 0, min(s.high for s in (lhs, rhs) if s.low >= 0)
            return Scalar("py_int", e.emit(BITWISE[op](lhs.ssa, rhs.ssa)), None, low, high)


def shifted_left(e: Emitter, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`lhs << rhs`, exact or OverflowError: what does not fit is not what it was when shifted back."""
    zero, last = e.index(0), e.index(63)
    if rhs.low < 0:
        raise_if(e, compare_ssa(e, "Lt", rhs.ssa, zero, "py_int"), NEGATIVE_SHIFT)
    if rhs.low >= 0 and rhs.high <= 62:
        factor = Scalar(
            "py_int", e.emit(arith.ShLIOp(e.index(1), rhs.ssa)), None, 2**rhs.low, 2**rhs.high
        )
        return integer(e, "Mult", lhs, factor)
    by = e.emit(arith.MinSIOp(e.emit(arith.MaxSIOp(rhs.ssa, zero)), last))
    shifted = e.emit(arith.ShLIOp(lhs.ssa, by))
    lost = compare_ssa(e, "NotEq", e.emit(arith.ShRSIOp(shifted, by)), lhs.ssa, "py_int")
    something = compare_ssa(e, "NotEq", lhs.ssa, zero, "py_int")
    far = e.emit(arith.AndIOp(compare_ssa(e, "Gt", rhs.ssa, last, "py_int"), something))
    raise_if(e, e.emit(arith.OrIOp(lost, far)), TOO_LARGE)
    return Scalar("py_int", shifted, None, 0 if lhs.low >= 0 else INT64_MIN, INT64_MAX)


def interval(op: str, lhs: Scalar, rhs: Scalar) -> tuple[int, int]:
    """The least and greatest value of `lhs op rhs` over the operands' ranges, in unbounded ints."""
    if op == "Add":
        return lhs.low + rhs.low, lhs.high + rhs.high
    if op == "Sub":
        return lhs.low - rhs.high, lhs.high - rhs.low
    corners = [a * b for a in (lhs.low, lhs.high) for b in (rhs.low, rhs.high)]
    return min(corners), max(corners)


def floor_division(e: Emitter, op: str, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`//` and `%` of ints: a divisor 0 raises, and so does the one quotient beyond 64 bits."""
    if rhs.low <= 0 <= rhs.high:
        is_zero = compare_ssa(e, "Eq", rhs.ssa, e.index(0), "py_int")
        raise_if(e, is_zero, INT_DIVISION if op == "FloorDiv" else INT_MODULO)
    if op == "FloorDiv" and lhs.low == INT64_MIN and rhs.low <= -1 <= rhs.high:
        lowest = compare_ssa(e, "Eq", lhs.ssa, e.index(INT64_MIN), "py_int")
        minus = compare_ssa(e, "Eq", rhs.ssa, e.index(-1), "py_int")
        raise_if(e, e.emit(arith.AndIOp(lowest, minus)), TOO_LARGE)
    if lhs.low >= 0 and rhs.low >= 0:
        ssa = e.emit((arith.DivSIOp if op == "FloorDiv" else arith.RemSIOp)(lhs.ssa, rhs.ssa))
    else:
        ssa = e.emit((array.FloorDivOp if op == "FloorDiv" else array.FloorModOp)(lhs.ssa, rhs.ssa))
    low, high = (quotient_range if op == "FloorDiv" else remainder_range)(lhs, rhs)
    return Scalar("py_int", ssa, None, max(low, INT64_MIN), min(high, INT64_MAX))


def quotient_range(lhs: Scalar, rhs: Scalar) -> tuple[int, int]:
    if rhs.low <= 0 <= rhs.high:
        if lhs.low >= 0 and rhs.low == 0:
            return 0, lhs.high
        most = max(abs(lhs.low), abs(lhs.high))
        return -most, most
    corners = [a // b for a in (lhs.low, lhs.high) for b in (rhs.low, rhs.high)]
    return min(corners), max(corners)


def remainder_range(lhs: Scalar, rhs: Scalar) -> tuple[int, int]:
    low, high = min(rhs.low + 1, 0), max(rhs.high - 1, 0)
    return low, min(high, lhs.high) if lhs.low >= 0 and rhs.low >= 0 else high


def integer_power(e: Emitter, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`lhs ** rhs` of ints: an int for exponents >= 0, a float for a constant negative one."""
    if rhs.high < 0:
        return floating(e, "Pow", lhs, rhs)
    if rhs.low < 0:
        negative = compare_ssa(e, "Lt", rhs.ssa, e.index(0), "py_int")
        base_zero = compare_ssa(e, "Eq", lhs.ssa, e.index(0), "py_int")
        raise_if(e, e.emit(arith.AndIOp(negative, base_zero)), ZERO_TO_NEGATIVE)
        raise_if(e, negative, NEGATIVE_INT_POWER)
    if rhs.constant is None:
        return power_loop(e, lhs, rhs)
    result, square, exponent = e.constant(1, "py_int"), lhs, int(rhs.constant)
    if exponent > 128:
        return power_loop(e, lhs, rhs)
    while exponent:
        if exponent & 1:
            result = square if result.constant == 1 else integer(e, "Mult", result, square)
        exponent >>= 1
        if exponent:
            square = integer(e, "Mult", square, square)
    return result


def power_loop(e: Emitter, lhs: Scalar, rhs: Scalar) -> Scalar:
    """Square and multiply, for an exponent known at run time."""
    index = IR_TYPE["py_int"]
    beyond = None if e.catch is None else e.cell(IR_TYPE["py_bool"], "beyond")
    if beyond is not None:
        e.store(e.constant(False, "py_bool").ssa, beyond)

    def times(a: SSAValue, b: SSAValue) -> SSAValue:
        """Where a handler may catch the overflow, it is raised behind the loop."""
        op = array.CheckedMulOp(a, b)
        if beyond is None:
            return e.emit(op)
        e.store(e.emit(arith.OrIOp(e.load(beyond), checks.overflows(e, op))), beyond)
        unchecked = checks.wrapped(op)
        op.erase()
        return e.emit(unchecked)

    result, square, left = (e.cell(index, hint) for hint in ("power", "square", "exponent"))
    for value, cell in ((e.index(1), result), (lhs.ssa, square), (rhs.ssa, left)):
        e.store(value, cell)
    condition, body = Block(arg_types=[index]), Block(arg_types=[index])
    with e.at(condition):
        more = compare_ssa(e, "Gt", e.load(left), e.index(0), "py_int")
        e.insert(array.ConditionOp(more))
    with e.at(body):
        now = e.load(left)
        one = e.index(1)
        odd = compare_ssa(e, "Eq", e.emit(arith.AndIOp(now, one)), one, "py_int")
        factor = e.emit(arith.SelectOp(odd, e.load(square), one))
        e.store(times(e.load(result), factor), result)
        after = e.emit(arith.ShRSIOp(now, one))
        e.store(after, left)
        again = compare_ssa(e, "Gt", after, e.index(0), "py_int")
        base = e.emit(arith.SelectOp(again, e.load(square), one))
        e.store(times(base, base), square)
        e.insert(array.YieldOp())
    e.insert(array.LoopOp(None, [], body, condition))
    if beyond is not None:
        raise_if(e, e.load(beyond), TOO_LARGE)
    return Scalar("py_int", e.load(result), None, 0 if lhs.low >= 0 else INT64_MIN)


FLOAT_OPERATION = {
    "Add": arith.AddfOp,
    "Sub": arith.SubfOp,
    "Mult": arith.MulfOp,
    "Div": arith.DivfOp,
    "FloorDiv": array.FloorDivOp,
    "Mod": array.FloorModOp,
}


def floating(e: Emitter, op: str, left: Scalar, right: Scalar) -> Scalar:
    """`lhs op rhs` where one is a float (or both are ints and `op` is `/`)."""
    lhs, rhs = convert(e, left, "py_float"), convert(e, right, "py_float")
    if op == "Pow":
        return float_power(e, lhs, rhs)
    if op in ("Div", "FloorDiv", "Mod"):
        ints = not (is_float(left.type) or is_float(right.type))
        exception = {
            "Div": INT_TRUE_DIVISION if ints else FLOAT_DIVISION,
            "FloorDiv": FLOAT_FLOOR_DIVISION,
            "Mod": FLOAT_MODULO,
        }[op]
        known = rhs.constant is not None and rhs.constant != 0
        excluded = not is_float(right.type) and not (right.low <= 0 <= right.high)
        if not known and not excluded:
            zero = e.constant(0.0, "py_float")
            raise_if(e, compare_ssa(e, "Eq", rhs.ssa, zero.ssa, "py_float"), exception)
    return Scalar("py_float", e.emit(FLOAT_OPERATION[op](lhs.ssa, rhs.ssa)))


def float_power(e: Emitter, lhs: Scalar, rhs: Scalar) -> Scalar:
    """`lhs ** rhs` of floats, with CPython's exceptions: 0.0 ** -1.0, overflow, a complex result."""
    exponent = rhs.constant
    zero = e.constant(0.0, "py_float").ssa
    if exponent == 0.0:
        return e.constant(1.0, "py_float")
    if exponent == 1.0:
        return lhs
    if exponent is None:
        down = compare_ssa(e, "Lt", rhs.ssa, zero, "py_float")
        base_zero = compare_ssa(e, "Eq", lhs.ssa, zero, "py_float")
        raise_if(e, e.emit(arith.AndIOp(down, base_zero)), ZERO_TO_NEGATIVE)
    elif exponent < 0.0:
        raise_if(e, compare_ssa(e, "Eq", lhs.ssa, zero, "py_float"), ZERO_TO_NEGATIVE)
    if exponent is None or not float(exponent).is_integer():
        negative = compare_ssa(e, "Lt", lhs.ssa, zero, "py_float")
        if exponent is None:
            whole = e.emit(math.FloorOp(rhs.ssa))
            fraction = e.emit(arith.CmpfOp(whole, rhs.ssa, "one"))
            negative = e.emit(arith.AndIOp(negative, fraction))
        finite_base = is_finite(e, lhs.ssa)
        raise_if(e, e.emit(arith.AndIOp(negative, finite_base)), COMPLEX_POWER)
    if exponent == 2.0:
        ssa = e.emit(arith.MulfOp(lhs.ssa, lhs.ssa))
    elif exponent == 3.0:
        ssa = e.emit(arith.MulfOp(e.emit(arith.MulfOp(lhs.ssa, lhs.ssa)), lhs.ssa))
    else:
        ssa = e.emit(math.PowFOp(lhs.ssa, rhs.ssa))
    if exponent is None or not 0.0 < exponent <= 1.0:
        overflow = e.emit(arith.AndIOp(is_infinite(e, ssa), is_finite(e, lhs.ssa)))
        if exponent is None:
            overflow = e.emit(arith.AndIOp(overflow, is_finite(e, rhs.ssa)))
        raise_if(e, overflow, POWER_OVERFLOW)
    return Scalar("py_float", ssa)


def is_infinite(e: Emitter, x: SSAValue) -> SSAValue:
    infinity = e.constant(float("inf"), "py_float").ssa
    return e.emit(arith.CmpfOp(e.emit(math.AbsFOp(x)), infinity, "oeq"))


def is_finite(e: Emitter, x: SSAValue) -> SSAValue:
    infinity = e.constant(float("inf"), "py_float").ssa
    return e.emit(arith.CmpfOp(e.emit(math.AbsFOp(x)), infinity, "olt"))


def float_to_int(e: Emitter, x: Scalar) -> Scalar:
    """The int of a float that is already whole: NaN, infinity and more than 64 bits raise."""
    raise_if(e, e.emit(arith.CmpfOp(x.ssa, x.ssa, "uno")), NAN_TO_INT)
    raise_if(e, is_infinite(e, x.ssa), INFINITY_TO_INT)
    above = e.emit(arith.CmpfOp(x.ssa, e.constant(2.0**63, "py_float").ssa, "oge"))
    below = e.emit(arith.CmpfOp(x.ssa, e.constant(-(2.0**63), "py_float").ssa, "olt"))
    raise_if(e, e.emit(arith.OrIOp(above, below)), TOO_LARGE)
    return Scalar("py_int", e.emit(array.CastOp(x.ssa, IR_TYPE["py_int"])))
