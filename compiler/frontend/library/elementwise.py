"""NumPy's elementwise functions: one row of `TABLE` each.

A row is the ufunc, the code for one element by kind of dtype (`f` floats, `i` integers, `b` bool),
and the calls under which its values are compared with NumPy's. Which dtypes it computes in and
returns, NumPy itself says (`ufunc.resolve_dtypes`). A derivative is not the row's business: it
follows from the ops that the row emits.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from ....dialects import array
from ...scalar_types import RANGE, SIGNED, UNSIGNED
from ..emitter import Emitter
from ..values import NUMPY_DTYPE, Array, NoneValue, Scalar, Tuple, Value
from . import folding, special
from .assignment import require_same_kind, write_out
from .cases import Case
from .dtypes import FLOATS, INTEGERS, common_dtype, dtype_of, element_type_cast, resolve, truth
from .element_code import (
    Elements,
    OpKind,
    absolute_int,
    always,
    clip,
    float_comparison,
    fmod_float,
    heaviside,
    hypot,
    int_comparison,
    invert,
    is_infinite,
    is_nan,
    like,
    logaddexp,
    logical,
    logical_not,
    negate_int,
    op,
    reciprocal,
    scaled,
    shift,
    sign_bit,
    sign_float,
    sign_int,
    sign_unsigned,
    square,
)
from .maps import Lowering, Operand, elementwise, operand, same
from .powers import is_square_of_bools, power
from .read_only import OUTPUT, require_writable
from .ways_out import unknown_argument


@dataclass(frozen=True)
class Elementwise:
    """A ufunc: its code for floats, integers and bools (None: refused), and how it is tested.

    `u` is the code for integers without a sign, where it is other code.
    """

    ufunc: np.ufunc
    f: Lowering | None = None
    i: Lowering | None = None
    b: Lowering | None = None
    cases: tuple[Case, ...] = field(default=())
    u: Lowering | None = None

    def lowering(self, dtype: str) -> Lowering | None:
        """The code for a loop whose first operand has this dtype."""
        if dtype in UNSIGNED and self.u is not None:
            return self.u
        return self.f if dtype in FLOATS else self.i if dtype in INTEGERS else self.b


# --- The table --------------------------------------------------------------------------------


def unary(text: str, kind: str = "real") -> tuple[Case, ...]:
    return (Case(text, {"x": kind}),)


def binary(text: str, x: str = "real", y: str = "real") -> tuple[Case, ...]:
    return (Case(text, {"x": x, "y": y}),)


def float_function(ufunc: np.ufunc, kind: OpKind, domain: str = "real") -> Elementwise:
    """A function of floats that is one op."""
    names = ("x", "y")[: ufunc.nin]
    text = f"np.{ufunc.__name__}({', '.join(names)})"
    return Elementwise(ufunc, f=op(kind), cases=(Case(text, dict.fromkeys(names, domain)),))


def comparison(ufunc: np.ufunc, f: str, i: str, b: str, operator: str) -> Elementwise:
    cases = (*binary(f"x {operator} y"), *binary(f"x {operator} y", "integer", "integer"))
    return Elementwise(
        ufunc, float_comparison(f), int_comparison(i), int_comparison(b), cases, int_comparison(b)
    )


_ROWS: tuple[Elementwise, ...] = (
    # arithmetic
    Elementwise(np.add, op(arith.AddfOp), op(arith.AddiOp), op(arith.OrIOp), binary("x + y")),
    Elementwise(np.subtract, op(arith.SubfOp), op(arith.SubiOp), None, binary("x - y")),
    Elementwise(np.multiply, op(arith.MulfOp), op(arith.MuliOp), op(arith.AndIOp), binary("x * y")),
    Elementwise(np.divide, op(arith.DivfOp), cases=binary("x / y")),
    Elementwise(
        np.floor_divide,
        op(array.FloorDivOp),
        op(array.FloorDivOp),
        u=op(arith.DivUIOp),
        cases=(*binary("x // y"), *binary("x // y", "integer", "integer")),
    ),
    Elementwise(
        np.remainder,
        op(array.FloorModOp),
        op(array.FloorModOp),
        u=op(arith.RemUIOp),
        cases=(*binary("x % y"), *binary("x % y", "integer", "integer")),
    ),
    Elementwise(
        np.fmod,
        fmod_float,
        op(arith.RemSIOp),
        cases=(*binary("np.fmod(x, y)"), *binary("np.fmod(x, y)", "integer", "integer")),
        u=op(arith.RemUIOp),
    ),
    Elementwise(np.float_power, op(math.PowFOp), cases=binary("np.float_power(x, y)", "positive")),
    Elementwise(np.negative, op(arith.NegfOp), negate_int, cases=unary("-x")),
    Elementwise(np.positive, same, same, cases=unary("+x")),
    Elementwise(np.absolute, op(math.AbsFOp), absolute_int, same, unary("abs(x)"), u=same),
    Elementwise(np.fabs, op(math.AbsFOp), cases=unary("np.fabs(x)")),
    Elementwise(np.sign, sign_float, sign_int, cases=unary("np.sign(x)"), u=sign_unsigned),
    Elementwise(
        np.heaviside,
        heaviside,
        cases=(
            *binary("np.heaviside(x, y)"),
            *binary("np.heaviside(x, y)", "special", "special"),
            *binary("np.heaviside(np.rint(x), y)"),
            *binary("np.heaviside(x, y)", "integer", "integer"),
        ),
    ),
    Elementwise(np.square, square(arith.MulfOp), square(arith.MuliOp), cases=unary("np.square(x)")),
    Elementwise(np.reciprocal, reciprocal, cases=unary("np.reciprocal(x)")),
    # powers, exponentials, logarithms
    float_function(np.exp, math.ExpOp),
    float_function(np.exp2, math.Exp2Op),
    float_function(np.expm1, math.ExpM1Op),
    float_function(np.log, math.LogOp, "positive"),
    float_function(np.log2, math.Log2Op, "positive"),
    float_function(np.log10, math.Log10Op, "positive"),
    float_function(np.log1p, math.Log1pOp, "positive"),
    float_function(np.sqrt, math.SqrtOp, "positive"),
    float_function(np.cbrt, math.CbrtOp),
    Elementwise(np.hypot, hypot, cases=binary("np.hypot(x, y)")),
    Elementwise(np.logaddexp, logaddexp, cases=binary("np.logaddexp(x, y)")),
    # trigonometry
    float_function(np.sin, math.SinOp),
    float_function(np.cos, math.CosOp),
    float_function(np.tan, math.TanOp),
    float_function(np.arcsin, math.AsinOp, "unit"),
    float_function(np.arccos, math.AcosOp, "unit"),
    float_function(np.arctan, math.AtanOp),
    float_function(np.arctan2, math.Atan2Op),
    float_function(np.sinh, math.SinhOp),
    float_function(np.cosh, math.CoshOp),
    float_function(np.tanh, math.TanhOp),
    float_function(np.arcsinh, math.AsinhOp),
    float_function(np.arccosh, math.AcoshOp, "above_one"),
    float_function(np.arctanh, math.AtanhOp, "unit"),
    Elementwise(np.deg2rad, scaled(python_math.pi / 180), cases=unary("np.deg2rad(x)")),
    Elementwise(np.radians, scaled(python_math.pi / 180), cases=unary("np.radians(x)")),
    Elementwise(np.rad2deg, scaled(180 / python_math.pi), cases=unary("np.rad2deg(x)")),
    Elementwise(np.degrees, scaled(180 / python_math.pi), cases=unary("np.degrees(x)")),
    # extremes: minimum and maximum propagate NaN, fmin and fmax ignore it
    Elementwise(
        np.minimum,
        op(arith.MinimumfOp),
        op(arith.MinSIOp),
        op(arith.AndIOp),
        binary("np.minimum(x, y)"),
        op(arith.MinUIOp),
    ),
    Elementwise(
        np.maximum,
        op(arith.MaximumfOp),
        op(arith.MaxSIOp),
        op(arith.OrIOp),
        binary("np.maximum(x, y)"),
        op(arith.MaxUIOp),
    ),
    Elementwise(
        np.fmin,
        op(arith.MinnumfOp),
        op(arith.MinSIOp),
        op(arith.AndIOp),
        binary("np.fmin(x, y)"),
        op(arith.MinUIOp),
    ),
    Elementwise(
        np.fmax,
        op(arith.MaxnumfOp),
        op(arith.MaxSIOp),
        op(arith.OrIOp),
        binary("np.fmax(x, y)"),
        op(arith.MaxUIOp),
    ),
    # rounding and parts of floats
    Elementwise(np.floor, op(math.FloorOp), same, same, unary("np.floor(x)")),
    Elementwise(np.ceil, op(math.CeilOp), same, same, unary("np.ceil(x)")),
    Elementwise(np.trunc, op(math.TruncOp), same, same, unary("np.trunc(x)")),
    Elementwise(np.rint, op(math.RoundEvenOp), cases=unary("np.rint(x)")),
    float_function(np.copysign, math.CopySignOp),
    Elementwise(np.signbit, sign_bit, cases=unary("np.signbit(x)")),
    Elementwise(np.isnan, is_nan, always(False), always(False), unary("np.isnan(x)", "special")),
    Elementwise(
        np.isinf, is_infinite("oeq"), always(False), always(False), unary("np.isinf(x)", "special")
    ),
    Elementwise(
        np.isfinite,
        is_infinite("olt"),
        always(True),
        always(True),
        unary("np.isfinite(x)", "special"),
    ),
    # comparisons
    comparison(np.less, "olt", "slt", "ult", "<"),
    comparison(np.less_equal, "ole", "sle", "ule", "<="),
    comparison(np.greater, "ogt", "sgt", "ugt", ">"),
    comparison(np.greater_equal, "oge", "sge", "uge", ">="),
    comparison(np.equal, "oeq", "eq", "eq", "=="),
    comparison(np.not_equal, "une", "ne", "ne", "!="),
    # logic and bits
    Elementwise(
        np.logical_and,
        *[logical(arith.AndIOp)] * 3,
        cases=binary("np.logical_and(x, y)", "bool", "integer"),
    ),
    Elementwise(
        np.logical_or,
        *[logical(arith.OrIOp)] * 3,
        cases=binary("np.logical_or(x, y)", "bool", "real"),
    ),
    Elementwise(
        np.logical_xor,
        *[logical(arith.XOrIOp)] * 3,
        cases=binary("np.logical_xor(x, y)", "bool", "bool"),
    ),
    Elementwise(np.logical_not, logical_not, logical_not, logical_not, unary("np.logical_not(x)")),
    Elementwise(
        np.bitwise_and,
        None,
        op(arith.AndIOp),
        op(arith.AndIOp),
        binary("x & y", "integer", "integer"),
    ),
    Elementwise(
        np.bitwise_or, None, op(arith.OrIOp), op(arith.OrIOp), binary("x | y", "bool", "bool")
    ),
    Elementwise(
        np.bitwise_xor,
        None,
        op(arith.XOrIOp),
        op(arith.XOrIOp),
        binary("x ^ y", "integer", "integer"),
    ),
    Elementwise(np.invert, None, invert, invert, unary("~x", "integer")),
    Elementwise(
        np.left_shift, None, shift(arith.ShLIOp, right=False), cases=binary("x << 3", "integer")
    ),
    Elementwise(
        np.right_shift,
        None,
        shift(arith.ShRSIOp, right=True),
        cases=binary("x >> 3", "integer"),
        u=shift(arith.ShRUIOp, right=False),
    ),
)

TABLE: dict[np.ufunc, Elementwise] = {row.ufunc: row for row in _ROWS}

OPERATORS: dict[str, np.ufunc] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mult": np.multiply,
    "Div": np.divide,
    "FloorDiv": np.floor_divide,
    "Mod": np.remainder,
    "Pow": np.power,
    "BitAnd": np.bitwise_and,
    "BitOr": np.bitwise_or,
    "BitXor": np.bitwise_xor,
    "LShift": np.left_shift,
    "RShift": np.right_shift,
    "Lt": np.less,
    "LtE": np.less_equal,
    "Gt": np.greater,
    "GtE": np.greater_equal,
    "Eq": np.equal,
    "NotEq": np.not_equal,
    "UAdd": np.positive,
    "USub": np.negative,
    "Invert": np.invert,
}
"""The ufunc behind each operator, by its class in `ast`."""

_MIXED: dict[np.ufunc, str] = {
    np.less: "ult",
    np.less_equal: "ule",
    np.greater: "ugt",
    np.greater_equal: "uge",
    np.equal: "eq",
    np.not_equal: "ne",
}
"""The comparisons, of numbers without a sign."""


# --- Calls ------------------------------------------------------------------------------------


def is_elementwise(function: object) -> bool:
    if not isinstance(function, np.ufunc):
        return False
    return function in TABLE or function is np.power or special.lowering(function) is not None


def apply(
    e: Emitter,
    ufunc: np.ufunc,
    values: Sequence[Value],
    *,
    out: Array | None = None,
    operator: bool = False,
) -> Operand:
    """A ufunc of any operands. With `operator` it came from `**` and the like, not from a call."""
    operands = [operand(e, v) for v in values]
    if len(operands) != ufunc.nin:
        e.fail(f"{ufunc.__name__} takes {ufunc.nin} operands, not {len(operands)}")
    if ufunc in _MIXED:
        operands = [exact_in_comparison(e, v, operands) for v in operands]
    if operator and ufunc is np.power and is_square_of_bools(*operands):
        return apply(e, np.square, operands[:1])
    loop = resolve(e, ufunc, operands, None if out is None else out.dtype)
    said = None if out is not None else folding.said_by_numpy(e, ufunc, operands, {})
    if said is not None and said.type == loop[-1]:
        return said
    if ufunc is np.power:
        return power(e, operands, loop, operator=operator)
    lower = TABLE[ufunc].lowering(loop[0]) if ufunc in TABLE else special.lowering(ufunc)
    if ufunc in _MIXED and loop[0] != loop[1]:
        lower = compare_mixed(ufunc, swapped=loop[0] == "u64")
    if lower is None:
        e.fail(f"{ufunc.__name__} of dtype {NUMPY_DTYPE[loop[0]]} is not supported")
    return elementwise(e, operands, loop, lower, out=out)


def call(e: Emitter, ufunc: np.ufunc, args: Sequence[Value], kwargs: dict[str, Value]) -> Value:
    """`ufunc(*args, out=..., where=...)`: the one or the other keyword."""
    args, kwargs = list(args), dict(kwargs)
    if len(args) == ufunc.nin + 1:
        kwargs.setdefault("out", args.pop())
    out, mask = kwargs.pop("out", None), kwargs.pop("where", None)
    if kwargs:
        e.fail(*unknown_argument(ufunc.__name__, next(iter(kwargs))))
    if isinstance(mask, Scalar) and mask.constant is True:
        mask = None
    if out is None or isinstance(out, NoneValue):
        if mask is not None:
            e.fail(
                f"{ufunc.__name__} with `where` and without `out` leaves elements uninitialized",
                way_out="say what they are: out=np.zeros_like(x)",
            )
        return apply(e, ufunc, args)
    out = output(e, out)
    result = apply(e, ufunc, args, out=out)
    if mask is not None:
        require_same_kind(e, ufunc.__name__, dtype_of(result), out.dtype)
        result = where(e, (mask, result, out))
    write_out(e, ufunc.__name__, result, out)
    return out


def output(e: Emitter, out: Value) -> Array:
    """The array that `out=` names, which is not read-only."""
    if isinstance(out, Tuple) and len(out.items) == 1:
        out = out.items[0]
    if not isinstance(out, Array):
        e.fail("out= takes an array")
    require_writable(e, out.memref, OUTPUT)
    return out


def augmented(e: Emitter, operator: str, target: Array, value: Value) -> None:
    """`target += value` and the others, on an array or a view: in place, as a ufunc with `out=`."""
    ufunc = OPERATORS[operator]
    write_out(
        e, ufunc.__name__, apply(e, ufunc, [target, value], out=target, operator=True), target
    )


def exact_in_comparison(e: Emitter, value: Operand, operands: Sequence[Operand]) -> Operand:
    """Python ints compare exactly: those that may not fit the other operand's dtype are an int64."""
    if not isinstance(value, Scalar) or value.type != "py_int":
        return value
    ranges = [RANGE.get(v.type if isinstance(v, Scalar) else v.dtype) for v in operands]
    fits = all(r is None or r[0] <= value.low <= value.high <= r[1] for r in ranges)
    return value if fits else element_type_cast(e, value, "i64")


def compare_mixed(ufunc: np.ufunc, *, swapped: bool) -> Lowering:
    """A comparison of an int64 with a uint64 (or `swapped`), without a loss: below 0 is below all."""
    same, below = ("ne", True) if ufunc is np.not_equal else (_MIXED[ufunc], False)
    if ufunc in (np.less, np.less_equal, np.greater, np.greater_equal):
        below = (ufunc in (np.less, np.less_equal)) != swapped

    def lower(e: Emitter, xs: Elements) -> SSAValue:
        negative = e.emit(arith.CmpiOp(xs[swapped], like(e, xs[swapped], 0), "slt"))
        found = e.emit(arith.CmpiOp(xs[0], xs[1], same))
        return e.emit(arith.SelectOp(negative, e.constant(below, "b1").ssa, found))

    return lower


# --- where and clip ---------------------------------------------------------------------------


def where(e: Emitter, values: Sequence[Value]) -> Operand:
    """`np.where(condition, x, y)`."""
    if len(values) != 3:
        e.fail("np.where takes one argument or three", way_out="give all three arguments")
    condition, x, y = (operand(e, v) for v in values)
    dtype = common_dtype(e, [x, y])
    test = condition.type if isinstance(condition, Scalar) else condition.dtype

    def lower(e: Emitter, xs: Elements) -> SSAValue:
        return e.emit(arith.SelectOp(truth(e, xs[0], test), xs[1], xs[2]))

    return elementwise(e, [condition, x, y], (test, dtype, dtype, dtype), lower)


CLIP: dict[str, tuple[OpKind, OpKind]] = {
    **dict.fromkeys(FLOATS, (arith.MaximumfOp, arith.MinimumfOp)),
    **dict.fromkeys(SIGNED, (arith.MaxSIOp, arith.MinSIOp)),
    **dict.fromkeys(UNSIGNED, (arith.MaxUIOp, arith.MinUIOp)),
}


def clip_call(
    e: Emitter,
    value: Value,
    low: Value | None,
    high: Value | None,
    out: Value | None,
    minimum: Value | None = None,
    maximum: Value | None = None,
) -> Value:
    """`np.clip(value, low, high, out=..., min=..., max=...)`."""
    if (low or high) and (minimum or maximum):
        e.fail("np.clip takes `a_min` and `a_max`, or `min` and `max`")
    low, high = (v or w or NoneValue() for v, w in ((low, minimum), (high, maximum)))
    if out is None:
        return clipped(e, value, low, high)
    out = output(e, out)
    write_out(e, "clip", clipped(e, value, low, high), out)
    return out


def clipped(e: Emitter, value: Value, low: Value, high: Value) -> Operand:
    """`np.clip(value, low, high)`, either bound possibly None."""
    if isinstance(low, NoneValue) and isinstance(high, NoneValue):
        return apply(e, np.positive, [value])
    if isinstance(low, NoneValue):
        return apply(e, np.minimum, [value, high])
    if isinstance(high, NoneValue):
        return apply(e, np.maximum, [value, low])
    operands = [operand(e, v) for v in (value, low, high)]
    clip_ufunc: Any = np._core.umath.clip  # pyright: ignore  # the ufunc behind np.clip
    loop = resolve(e, clip_ufunc, operands)
    if loop[0] not in CLIP:
        e.fail("np.clip of bools is not supported")
    return elementwise(e, operands, loop, clip(*CLIP[loop[0]]))


CASES: tuple[Case, ...] = (
    *(case for row in _ROWS for case in row.cases),
    *special.CASES,
    Case("x ** y", {"x": "positive", "y": "real"}),
    *(Case(f"x ** {n}", {"x": "real"}) for n in (0, 1, 2, 3, 4, 7, -1, -2)),
    Case("x ** 0.5", {"x": "positive"}),
    Case("x ** 3", {"x": "integer"}),
    Case("x ** y", {"x": "integer", "y": "natural"}),
    Case("2 ** y", {"y": "natural"}),
    Case("np.where(x > 0, x, y)", {"x": "real", "y": "real"}),
    Case("np.where(x > 0, 1, 0.5)", {"x": "real"}),
    Case("np.clip(x, -0.5, 0.5)", {"x": "real"}),
    Case("np.divide(x, y, out=np.zeros_like(x), where=y > 0)", {"x": "real", "y": "real"}),
    Case("np.clip(x, None, 1)", {"x": "integer"}),
    Case("np.clip(x, min=y, max=1, out=np.zeros_like(x))", {"x": "real", "y": "real"}),
)
