"""Reductions: a map whose output stands still along the reduced axes.

`x.sum()` adds every element into a rank-0 cell that is viewed with stride 0; `x.sum(axis=0)` adds
into a fresh array of the kept axes.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ....dialects import array
from ....dialects.array import constant_value
from ...scalar_types import RANGE, UNSIGNED
from ..emitter import Emitter
from ..values import (
    IR_TYPE,
    Array,
    NoneValue,
    Scalar,
    Static,
    Tuple,
    Value,
)
from . import elementwise, shapes, views
from .assignment import assign_view, require_same_kind
from .cases import Case
from .dtypes import (
    FLOATS,
    NUMPY_FORM,
    cast,
    common_dtype,
    dtype_argument,
    dtype_of,
    element_type_cast,
    truth,
)
from .maps import Operand, allocate, converted, extents_of, load, map_into, mapped, operand, same
from .ways_out import unknown_argument


@dataclass(frozen=True)
class Reduction:
    """How a reduction combines: the map's kind, and the value that it starts from."""

    name: str
    kind: array.MapKind
    start: float


SUM = Reduction("add", "add", 0)
PRODUCT = Reduction("multiply", "mul", 1)
MINIMUM = Reduction("minimum", "min", python_math.inf)
MAXIMUM = Reduction("maximum", "max", -python_math.inf)


# --- The general reduction --------------------------------------------------------------------


def reduce(
    e: Emitter,
    how: Reduction,
    x: Array,
    axes: Sequence[int],
    *,
    keepdims: bool = False,
) -> Scalar | Array:
    """Combine the elements of `x` along `axes`; a NumPy scalar where nothing else is left."""
    start = e.constant(start_value(how, x.dtype), x.dtype)
    kept = [d for d in range(x.rank) if d not in axes]
    if not kept and not keepdims:
        cell = e.cell(IR_TYPE[x.dtype], how.name)
        e.store(start.ssa, cell)
        accumulate(e, how, x, Array(cell, x.dtype), [-1] * x.rank)
        return load(e, Array(cell, x.dtype), ())
    extents = [
        e.index(1) if d in axes else n
        for d, n in enumerate(extents_of(e, x))
        if keepdims or d not in axes
    ]
    result = allocate(e, extents, x.dtype, how.name)
    map_into(e, [start], [x.dtype], same, result.memref, extents)
    position = {d: d if keepdims else i for i, d in enumerate(kept)}
    accumulate(e, how, x, result, [position.get(d, -1) for d in range(x.rank)])
    return result


def accumulate(e: Emitter, how: Reduction, x: Array, into: Array, walked: Sequence[int]) -> None:
    """The map: dimension d of `x` walks dimension `walked[d]` of the result, or stands still."""
    zero, one, extents = e.index(0), e.index(1), extents_of(e, x)
    steps = [zero if w < 0 else one for w in walked]
    seen = views.view(e, into, [zero] * into.rank, walked, extents, steps)
    map_into(e, [x], [x.dtype], same, seen.memref, extents, how.kind)


def start_value(how: Reduction, dtype: str) -> float | int:
    if dtype in FLOATS or python_math.isfinite(how.start):
        return how.start
    low, high = RANGE[dtype]
    return high if how.start > 0 else low


def whole_sum(e: Emitter, x: Array) -> Scalar:
    """The sum of all elements, in the array's own dtype."""
    total = reduce(e, SUM, x, range(x.rank))
    assert isinstance(total, Scalar)
    return total


# --- Arguments --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arguments:
    """The arguments that all reductions share."""

    axes: tuple[int, ...]
    keepdims: bool
    dtype: Value | None
    out: Array | None
    initial: Scalar | None = None
    where: Operand | None = None


def arguments(
    e: Emitter,
    name: str,
    rank: int,
    args: Sequence[Value],
    kwargs: dict[str, Value],
    *,
    dtype: bool,
) -> Arguments:
    """`(axis=None, [dtype=None,] out=None, keepdims=False, [initial,] where)`, positional or by name."""
    names = ["axis", *(["dtype"] if dtype else []), "out", "keepdims"]
    names += ["where"] if name in ("mean", "any", "all") else ["initial", "where"]
    if len(args) > len(names):
        e.fail(f"{name} takes at most {len(names)} arguments here")
    given = dict(zip(names, args, strict=False)) | kwargs
    for key in given:
        if key not in names:
            e.fail(*unknown_argument(name, key))
    keepdims = given.get("keepdims")
    out = given.get("out")
    if out is not None and not isinstance(out, Array | NoneValue):
        e.fail(f"{name}: out= takes an array")
    initial, where = given.get("initial"), given.get("where")
    if initial is not None and not isinstance(initial, Scalar | NoneValue):
        e.fail(f"{name}: initial= takes a number")
    if where is not None:
        where = operand(e, where, "where=")
        if not isinstance(where, Scalar) and where.rank > rank:
            e.fail(f"{name}: where= has more axes than the array")
    return Arguments(
        axes_of(e, given.get("axis"), rank),
        False if keepdims is None else constant_bool(e, keepdims, "keepdims"),
        given.get("dtype"),
        out if isinstance(out, Array) else None,
        initial if isinstance(initial, Scalar) else None,
        None if isinstance(where, Scalar) and where.constant is True else where,
    )


def axes_of(e: Emitter, value: Value | None, rank: int) -> tuple[int, ...]:
    """The axes that `axis=` names, all of them for None."""
    if value is None or isinstance(value, NoneValue):
        return tuple(range(rank))
    items = value.items if isinstance(value, Tuple) else (value,)
    axes = tuple(one_axis(e, item, rank) for item in items)
    if len(set(axes)) < len(axes):
        e.fail("duplicate value in 'axis'")
    return axes


def one_axis(e: Emitter, value: Value, rank: int) -> int:
    axis = constant_int(e, value, "axis")
    if rank == 0 and axis in (0, -1):
        return 0  # NumPy lets a number have one axis
    if not -rank <= axis < rank:
        e.fail(f"axis {axis} is out of bounds for array of dimension {rank}")
    return axis % rank


def constant_int(e: Emitter, value: Value, what: str) -> int:
    if isinstance(value, Static) and isinstance(value.object, int):
        return value.object
    if not isinstance(value, Scalar) or not isinstance(value.constant, int):
        e.fail(f"{what} must be known while compiling", way_out="write it as a number")
    return value.constant


def constant_bool(e: Emitter, value: Value, what: str) -> bool:
    return bool(constant_int(e, value, what))


# --- sum, prod, mean, min, max, any, all ------------------------------------------------------

Rule = Callable[[Emitter, Operand, Arguments], Value]


def call(
    e: Emitter, name: str, value: Value, args: Sequence[Value], kwargs: dict[str, Value]
) -> Value:
    """`np.<name>(value, ...)` or `value.<name>(...)`."""
    x = operand(e, value, f"the operand of {name}")
    rank = 0 if isinstance(x, Scalar) else x.rank
    given = arguments(e, name, rank, args, kwargs, dtype=name in ("sum", "prod", "mean"))
    result = _REDUCE[name](e, masked(e, name, x, given), given)
    if given.initial is not None:
        initial = element_type_cast(e, given.initial, dtype_of(result))  # pyright: ignore
        result = elementwise.apply(e, COMBINED[name], [result, initial])
    if given.out is None:
        return result
    if not isinstance(result, Operand):
        e.fail(f"{name}: out= is not supported here")
    require_same_kind(e, name, dtype_of(result), given.out.dtype)
    require_shape(e, name, result, given.out)
    assign_view(e, given.out, result)
    return given.out


COMBINED: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
NEUTRAL = {"sum": 0, "mean": 0, "prod": 1, "any": False, "all": True}


def masked(e: Emitter, name: str, x: Operand, given: Arguments) -> Operand:
    """The elements, those that `where=` leaves out replaced by what changes nothing."""
    if given.where is None:
        return x
    neutral = given.initial
    if name in NEUTRAL:
        neutral = e.constant(NEUTRAL[name], "b1" if name in ("any", "all") else "py_int")
        if name in ("any", "all"):
            x = elementwise.apply(e, np.not_equal, [x, e.constant(0, "py_int")])
    if neutral is None:
        e.fail(
            f"reduction operation '{COMBINED[name].__name__}' does not have an identity, so to use a "
            "where mask one has to specify 'initial'"
        )
    if isinstance(x, Scalar):
        e.fail(f"{name}: where= of a number is not compiled")
    return elementwise.where(e, [given.where, x, element_type_cast(e, neutral, x.dtype)])


def require_shape(e: Emitter, name: str, result: Value, out: Array) -> None:
    """The array that a reduction goes to has the very shape of the result."""
    own = extents_of(e, result)  # pyright: ignore
    if len(own) != out.rank:
        e.fail(
            f"output parameter for reduction operation {name} has the wrong number of dimensions:"
            f" Found {out.rank} but expected {len(own)}"
        )
    pairs = zip(own, extents_of(e, out), strict=True)
    wrong = [shapes.compare(e, "ne", n, m) for n, m in pairs if not shapes.equal(n, m)]
    if wrong:
        message = f"{name}: the output parameter has another shape than the result"
        e.insert(array.RaiseIfOp(shapes.either(e, wrong), "ValueError", message))


def summed(how: Reduction) -> Rule:
    """sum and prod: narrow integers add up in int64, or uint64."""

    def run(e: Emitter, x: Operand, given: Arguments) -> Value:
        own = dtype_of(x)
        wide = own if own in FLOATS else "u64" if own in UNSIGNED else "i64"
        dtype = dtype_argument(e, given.dtype, with_output(e, wide, x, given))
        if dtype == "b1":
            e.fail("sums and products of dtype bool are not supported", way_out="use any or all")
        if isinstance(x, Scalar):
            return element_type_cast(e, x, dtype)
        return reduce(e, how, converted(e, x, dtype), given.axes, keepdims=given.keepdims)

    return run


def with_output(e: Emitter, dtype: str, x: Operand, given: Arguments) -> str:
    """The dtype that a sum is computed in: an output has a say in it."""
    return dtype if given.out is None else common_dtype(e, [x, given.out])


def mean(e: Emitter, x: Operand, given: Arguments) -> Value:
    own = dtype_of(x)
    wide = with_output(e, own, x, given) if own in FLOATS else "f64"
    dtype = dtype_argument(e, given.dtype, wide)
    if dtype not in FLOATS:
        e.fail("mean in an integer dtype is not supported")
    if isinstance(x, Scalar):
        return element_type_cast(e, x, dtype)
    extents = extents_of(e, x)
    total = reduce(e, SUM, converted(e, x, dtype), given.axes, keepdims=given.keepdims)
    if given.where is not None:
        counted = converted(e, converted(e, given.where, "b1"), dtype, extents)
        number = reduce(e, SUM, counted, given.axes, keepdims=given.keepdims)
        return elementwise.apply(e, np.divide, [total, number])
    count = shapes.product(e, [extents[d] for d in given.axes])
    divisor = element_type_cast(e, Scalar("py_int", count, constant_value(count)), dtype)
    return elementwise.apply(e, np.divide, [total, divisor])


def extreme(how: Reduction) -> Rule:
    """min and max: NaN propagates, nothing to choose from is a ValueError."""

    def run(e: Emitter, x: Operand, given: Arguments) -> Value:
        if isinstance(x, Scalar):
            return element_type_cast(e, x, NUMPY_FORM.get(x.type, x.type))
        if given.initial is None:
            require_elements(e, how, extents_of(e, x), given.axes)
        if x.dtype == "b1":
            return logical(how)(e, x, given)
        if x.dtype in UNSIGNED:
            return unsigned_extreme(e, how, x, given)
        return reduce(e, how, x, given.axes, keepdims=given.keepdims)

    return run


def unsigned_extreme(e: Emitter, how: Reduction, x: Array, given: Arguments) -> Value:
    """Numbers without a sign are in the order of those with one that have the other highest bit."""
    signed = x.dtype.replace("u", "i")
    highest = 2 ** (int(signed[1:]) - 1)

    def flipped(dtype: str) -> Callable[[Emitter, list[SSAValue]], SSAValue]:
        return lambda e, xs: e.emit(arith.XOrIOp(xs[0], e.constant(-highest, dtype).ssa))

    turned = mapped(e, [x], (x.dtype, signed), extents_of(e, x), flipped(signed))
    found = reduce(e, how, turned, given.axes, keepdims=given.keepdims)
    return elementwise.elementwise(e, [found], (signed, x.dtype), flipped(x.dtype))


def require_elements(
    e: Emitter, how: Reduction, extents: Sequence[SSAValue], axes: Sequence[int]
) -> None:
    """ValueError where there are no elements to choose from."""
    reduced = [extents[d] for d in axes if not constant_value(extents[d])]
    if reduced:
        empty = [shapes.compare(e, "eq", n, e.index(0)) for n in reduced]
        message = f"zero-size array to reduction operation {how.name} which has no identity"
        e.insert(array.RaiseIfOp(shapes.either(e, empty), "ValueError", message))


def logical(how: Reduction) -> Rule:
    """any and all (and max and min of bools): the largest or smallest of zeros and ones."""

    def run(e: Emitter, x: Operand, given: Arguments) -> Value:
        own = dtype_of(x)
        if isinstance(x, Scalar):
            return Scalar("b1", truth(e, x.ssa, x.type))

        def as_number(e: Emitter, xs: list[SSAValue]) -> SSAValue:
            return cast(e, truth(e, xs[0], own), "b1", "i32")

        numbers = mapped(e, [x], (own, "i32"), extents_of(e, x), as_number)
        bounded = Reduction(how.name, how.kind, 1 if how is MINIMUM else 0)
        found = reduce(e, bounded, numbers, given.axes, keepdims=given.keepdims)
        return elementwise.apply(e, np.not_equal, [found, e.constant(0, "i32")])

    return run


def norm(e: Emitter, value: Value) -> Scalar:
    """`np.linalg.norm(x)`: the square root of the sum of squares."""
    x = operand(e, value)
    dtype = dtype_of(x) if dtype_of(x) in FLOATS else "f64"
    squares = elementwise.apply(e, np.square, [converted(e, x, dtype)])
    total = whole_sum(e, converted(e, squares, dtype))
    root = elementwise.apply(e, np.sqrt, [total])
    assert isinstance(root, Scalar)
    return root


_REDUCE: dict[str, Rule] = {
    "sum": summed(SUM),
    "prod": summed(PRODUCT),
    "mean": mean,
    "min": extreme(MINIMUM),
    "max": extreme(MAXIMUM),
    "any": logical(MAXIMUM),
    "all": logical(MINIMUM),
}

FUNCTIONS = {
    np.sum: "sum",
    np.prod: "prod",
    np.mean: "mean",
    np.min: "min",
    np.amin: "min",
    np.max: "max",
    np.amax: "max",
    np.any: "any",
    np.all: "all",
}
"""The NumPy functions; the methods have the same names."""

METHODS = frozenset(FUNCTIONS.values())

UFUNCS: dict[np.ufunc, str] = {
    np.add: "sum",
    np.multiply: "prod",
    np.minimum: "min",
    np.maximum: "max",
    np.logical_or: "any",
    np.logical_and: "all",
}
"""Those whose `reduce` is one of them."""

CASES: tuple[Case, ...] = (
    *(Case(f"x.{name}()", {"x": "real"}) for name in ("sum", "mean", "min", "max", "prod")),
    *(Case(f"np.{name}(x, axis=0)", {"x": "matrix"}) for name in ("sum", "mean", "min", "max")),
    *(Case(f"np.{name}(x, axis=-1)", {"x": "matrix"}) for name in ("sum", "prod", "min", "max")),
    Case("x.sum(axis=(0, 1))", {"x": "matrix"}),
    Case("x.sum(axis=1, keepdims=True)", {"x": "matrix"}),
    Case("x.mean(keepdims=True)", {"x": "matrix"}),
    Case("x.sum()", {"x": "integer"}),
    Case("x.mean()", {"x": "integer"}),
    Case("x.max()", {"x": "integer"}),
    Case("x.sum()", {"x": "bool"}),
    Case("np.any(x)", {"x": "bool"}),
    Case("np.all(x, axis=0)", {"x": "bool"}),
    Case("np.sum(x * x)", {"x": "real"}),
    *(
        Case(f"np.{f}(x, where=x > 0), np.{f}(x, axis=0, where=x[0] > 0)", {"x": "matrix"})
        for f in ("sum", "prod", "any", "all")
    ),
    Case(
        "np.mean(x, where=x > -9), np.mean(x, axis=1, where=x > -9, keepdims=True)", {"x": "matrix"}
    ),
    Case("np.max(x, initial=0.5), np.min(x, 0, initial=-1, where=x < 0)", {"x": "matrix"}),
    Case("x.sum(initial=3), np.prod(x, initial=2.0), x.max(initial=5)", {"x": "integer"}),
    Case(
        "np.sum(x, axis=0, out=np.ones(n)), np.max(x, 1, None, True)", {"x": "matrix", "n": "count"}
    ),
    Case(
        "np.add.reduce(x), np.multiply.reduce(x, axis=1), np.maximum.reduce(x, 0)", {"x": "matrix"}
    ),
    Case("np.minimum.reduce(x, axis=None), np.add.reduce(x, axis=(0, 1))", {"x": "matrix"}),
    Case("np.add.reduce(x), np.multiply.reduce(x), np.maximum.reduce(x)", {"x": "integer"}),
    Case("np.logical_or.reduce(x), np.logical_and.reduce(x, axis=None)", {"x": "bool"}),
    Case("np.linalg.norm(x)", {"x": "vector"}),
)
