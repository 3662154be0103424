"""NumPy's elementwise functions: one row of `TABLE` each.

A row is the ufunc, the code for one element by kind of dtype (`f` floats, `i` integers, `b` bool),
and the calls under which its values are compared with NumPy's. Which dtypes it computes in and
returns, NumPy itself says (`ufunc.resolve_dtypes`). A derivative is not the row's business: it
follows from the ops that the row emits.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, IntegerType, i1
from xdsl.ir import Operation, SSAValue

from ....dialects import array
from ...scalar_types import RANGE, SIGNED, UNSIGNED
from ..emitter import Emitter
from ..values import NUMPY_DTYPE, Array, NoneValue, Scalar, Tuple, Value
from . import folding, special
from .assignment import require_same_kind, write_out
from .cases import Case
from .dtypes import FLOATS, INTEGERS, common_dtype, dtype_of, element_type_cast, resolve, truth
from .maps import Lowering, Operand, converted, elementwise, operand, same
from .read_only import OUTPUT, require_writable
from .ways_out import unknown_argument

Elements = list[SSAValue]


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


# --- Code for one element ---------------------------------------------------------------------


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


# --- Powers -----------------------------------------------------------------------------------

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
