"""New arrays: zeros, ones, empty, full, the *_like functions, ranges, copies, stacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects import arith, memref
from xdsl.dialects import math as math_ops
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue

from ....dialects import array
from ...analysis.views import strip_casts
from ..emitter import Emitter
from ..values import (
    EXTENT_MAX,
    INT64_MAX,
    NUMPY_DTYPE,
    Array,
    NoneValue,
    Scalar,
    Static,
    Tuple,
    Value,
)
from . import elementwise, read_only, shapes, views
from .assignment import assign_view
from .cases import Case
from .dtypes import (
    FLOATS,
    INTEGERS,
    cast,
    common_dtype,
    dtype_argument,
    dtype_of,
    element_type_cast,
)
from .indexing import as_index
from .maps import Operand, allocate, extents_of, is_fortran, operand, viewable
from .reductions import constant_bool, one_axis
from .stacking import of_tuple
from .ways_out import unknown_argument

Arguments = dict[str, Value]


def bound(
    e: Emitter,
    name: str,
    names: Sequence[str],
    args: Sequence[Value],
    kwargs: Arguments,
    required: int = 1,
) -> Arguments:
    """Arguments by name; refuses those that are unknown or missing."""
    if len(args) > len(names):
        e.fail(f"{name} takes at most {len(names)} arguments here")
    given = dict(zip(names, args, strict=False))
    for key, value in kwargs.items():
        if key not in names:
            e.fail(*unknown_argument(name, key))
        if key in given:
            e.fail(f"{name}: the argument {key!r} is given twice")
        given[key] = value
    for key in names[:required]:
        if key not in given:
            e.fail(f"{name}: the argument {key!r} is missing")
    return {k: v for k, v in given.items() if not isinstance(v, NoneValue)}


# --- zeros, ones, empty, full and what is like them -------------------------------------------


ALLOCATED_MAX = 2.0**47
"""Bytes: no machine gives a process more. Checked where an array is made, which may be fused away."""

TOO_BIG = (
    "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."
)


def extents_argument(e: Emitter, value: Value, dtype: str | None = None) -> list[SSAValue]:
    """A shape: an int or a tuple of ints; ValueError where one is negative.

    With the dtype of a new array: also where it is larger than can be addressed, MemoryError where
    it is larger than any memory.
    """
    items = value.items if isinstance(value, Tuple) else (value,)
    lengths = [as_index(e, item) for item in items]
    unsure = [n for n in lengths if n.low < 0]
    if unsure:
        negative = [shapes.compare(e, "slt", n.ssa, e.index(0)) for n in unsure]
        message = "negative dimensions are not allowed"
        e.insert(array.RaiseIfOp(shapes.either(e, negative), "ValueError", message))
    if dtype is not None:
        refuse_huge(e, lengths, dtype)
    return [n.ssa for n in lengths]


def refuse_huge(e: Emitter, lengths: Sequence[Scalar], dtype: str) -> None:
    """Raise where no array of these extents can be."""
    item = NUMPY_DTYPE[dtype].itemsize
    if math.prod(max(n.high, 1) for n in lengths) * item < ALLOCATED_MAX:
        return
    if are_extents_of_one_array(lengths):
        return
    size = e.constant(item, "f64").ssa
    for n in lengths:
        # NumPy multiplies the others even where an extent is 0.
        positive = n.ssa if n.low > 0 else e.emit(arith.MaxSIOp(n.ssa, e.index(1)))
        size = e.emit(arith.MulfOp(size, cast(e, positive, "py_int", "f64")), "bytes")
    for limit, exception, message in (
        (2.0**63, "ValueError", TOO_BIG),
        (ALLOCATED_MAX, "MemoryError", "the array is larger than any memory"),
    ):
        beyond = e.emit(arith.CmpfOp(size, e.constant(limit, "f64").ssa, "oge"))
        e.insert(array.RaiseIfOp(beyond, exception, message))


def are_extents_of_one_array(lengths: Sequence[Scalar]) -> bool:
    """True where an array that exists has these extents, constants and at most one other apart."""
    unknown = [n for n in lengths if n.low < n.high]
    if any(n.high > EXTENT_MAX for n in unknown):
        return False
    if len(unknown) <= 1:
        return True
    dims = [n.ssa.owner for n in unknown]
    sources = {strip_casts(d.source) for d in dims if isinstance(d, memref.DimOp)}
    distinct = len(set(dims)) == len(dims)
    return distinct and len(sources) == 1 and all(isinstance(d, memref.DimOp) for d in dims)


def check_order(e: Emitter, name: str, order: Value | None, allowed: str) -> str:
    text = order.object if isinstance(order, Static) else "C" if order is None else None
    if not isinstance(text, str) or text not in allowed:
        e.fail(f"{name}: this order= is not supported", way_out='leave it out, or use "C" or "F"')
    return text


def filled(e: Emitter, name: str, args: Sequence[Value], kwargs: Arguments) -> Array:
    """`np.zeros`, `np.ones`, `np.empty`, `np.full`."""
    value = ["fill_value"] if name == "full" else []
    names = ["shape", *value, "dtype", "order"]
    given = bound(e, name, names, args, kwargs, 1 + len(value))
    default = "f64"
    if name == "full":
        default = dtype_of(operand(e, given["fill_value"], "the fill value"))
    dtype = dtype_argument(e, given.get("dtype"), default)
    extents = extents_argument(e, given["shape"], dtype)
    fortran = check_order(e, name, given.get("order"), "CF") == "F"
    axes = list(range(len(extents)))[::-1] if fortran else None
    result = allocate(e, extents, dtype, name, axes)
    start(e, name, result, given.get("fill_value"))
    return result


def uninitialized(e: Emitter, args: Sequence[Value], kwargs: Arguments) -> Array:
    """`np.ndarray(shape, dtype)`: `np.empty`."""
    if len(args) > 2 or kwargs.keys() - {"shape", "dtype", "order"}:
        e.fail("ndarray(...) of a buffer is not compiled", way_out="use slices, or np.empty")
    return filled(e, "empty", args, {"dtype": Static(float), **kwargs} if len(args) < 2 else kwargs)


def start(e: Emitter, name: str, result: Array, value: Value | None) -> None:
    """The contents of a new array."""
    if name.startswith("full"):
        assert value is not None
        assign_view(e, result, value)
    elif not name.startswith("empty"):
        assign_view(e, result, e.constant(name.startswith("ones"), result.dtype))


def filled_like(e: Emitter, name: str, args: Sequence[Value], kwargs: Arguments) -> Array:
    """`np.zeros_like` and the others: shape, dtype and memory order of the prototype."""
    value = ["fill_value"] if name == "full_like" else []
    names = ["a", *value, "dtype", "order", "subok", "shape"]
    given = bound(e, name, names, args, kwargs, 1 + len(value))
    if "subok" in given or "order" in given:
        e.fail(f"{name}: order= and subok= are not supported", "leave them out")
    prototype = operand(e, given["a"], "the prototype")
    dtype = dtype_argument(e, given.get("dtype"), dtype_of(prototype))
    if "shape" in given:
        extents = extents_argument(e, given["shape"], dtype)
    else:
        extents = [] if isinstance(prototype, Scalar) else list(extents_of(e, prototype))
    result = allocate(e, extents, dtype, name, order_like(prototype, len(extents)))
    start(e, name, result, given.get("fill_value"))
    return result


def order_like(prototype: Operand, rank: int) -> list[int] | None:
    keeps = isinstance(prototype, Array) and prototype.rank == rank and is_fortran(prototype)
    return list(range(rank))[::-1] if keeps else None


# --- Ranges -----------------------------------------------------------------------------------


def by_position(
    e: Emitter, length: SSAValue, dtype: str, hint: str, element: Callable[[SSAValue], SSAValue]
) -> Array:
    """A vector whose element i is `element(i)`."""
    result = allocate(e, [length], dtype, hint)
    body = Block(arg_types=[IndexType()])
    body.args[0].name_hint = "i"
    with e.at(body):
        value = element(body.args[0])
        e.insert(memref.StoreOp.get(value, result.memref, [body.args[0]]))
        e.insert(array.YieldOp())
    e.insert(array.LoopOp(length, [], body), "trips")
    return result


def arange(e: Emitter, args: Sequence[Value], kwargs: Arguments) -> Array:
    """`np.arange([start,] stop[, step])` of ints or floats."""
    if len(args) == 1 and not ({"start", "stop"} & kwargs.keys()):
        args = [e.constant(0, "py_int"), args[0]]
    given = bound(e, "arange", ["start", "stop", "step", "dtype"], args, kwargs, 2)
    step = given.get("step", e.constant(1, "py_int"))
    first, stop, step = (operand(e, v, "a bound") for v in (given["start"], given["stop"], step))
    if not (isinstance(first, Scalar) and isinstance(stop, Scalar) and isinstance(step, Scalar)):
        e.fail("arange takes numbers")
    natural = common_dtype(e, [first, stop, step])
    if natural == "b1":
        e.fail("arange of bools is not supported")
    natural = "f64" if natural in FLOATS else "i64"  # of np.float32 and np.int32, too
    dtype = dtype_argument(e, given.get("dtype"), natural)
    if dtype == "b1" or (natural in FLOATS and dtype not in FLOATS):
        e.fail("arange: this dtype= is not supported", way_out="convert with astype")
    if natural not in FLOATS:
        return int_range(e, first, stop, step, dtype)
    return float_range(e, first, stop, step, dtype)


def int_range(e: Emitter, first: Scalar, stop: Scalar, step: Scalar, dtype: str) -> Array:
    first, stop, step = (element_type_cast(e, v, "py_int") for v in (first, stop, step))
    if step.constant == 0:
        e.fail("Maximum allowed size exceeded")  # what NumPy says of a zero step
    if step.constant is None:
        e.fail("arange with a step known only at run time is not supported", way_out="multiply")
    by = int(step.constant)
    low, high = (first, stop) if by > 0 else (stop, first)
    if high.high - low.low > INT64_MAX:
        top = e.emit(arith.MaxSIOp(high.ssa, low.ssa))
        span = e.emit(array.CheckedSubOp(top, low.ssa), "span")
    else:
        span = shapes.at_least(e, shapes.minus(e, high.ssa, low.ssa), 0)
    if high.high - low.low > EXTENT_MAX and abs(by) > 1:
        length = e.emit(arith.CeilDivSIOp(span, e.index(abs(by))))
    else:
        length = shapes.divided_up(e, span, abs(by))
    most = -(-max(high.high - low.low, 0) // abs(by))
    refuse_huge(e, [Scalar("py_int", length, low=0, high=min(most, INT64_MAX))], dtype)

    def element(i: SSAValue) -> SSAValue:
        value = shapes.sum_of(e, first.ssa, shapes.times(e, i, e.index(by)))
        return cast(e, value, "py_int", dtype)

    return by_position(e, length, dtype, "range", element)


def float_range(e: Emitter, first: Scalar, stop: Scalar, step: Scalar, dtype: str) -> Array:
    """Element i is first + i * delta, with delta = (first + step) - first as NumPy has it."""
    a, b, s = (element_type_cast(e, v, "f64").ssa for v in (first, stop, step))
    quotient = e.emit(arith.DivfOp(e.emit(arith.SubfOp(b, a)), s))
    ceiling = elementwise.apply(e, np.ceil, [Scalar("f64", quotient)])
    assert isinstance(ceiling, Scalar)
    endless = e.emit(arith.CmpfOp(ceiling.ssa, e.constant(2.0**62, "f64").ssa, "uge"))
    e.insert(array.RaiseIfOp(endless, "ValueError", "Maximum allowed size exceeded"))
    count = cast(e, ceiling.ssa, "f64", "py_int")
    length = e.emit(arith.MaxSIOp(count, e.index(0)), "length")
    refuse_huge(e, [Scalar("py_int", length, low=0)], dtype)
    first_t = cast(e, a, "f64", dtype)
    second = cast(e, e.emit(arith.AddfOp(a, s)), "f64", dtype)
    delta = e.emit(arith.SubfOp(second, first_t))

    def element(i: SSAValue) -> SSAValue:
        offset = e.emit(arith.MulfOp(cast(e, i, "py_int", dtype), delta))
        return e.emit(arith.AddfOp(first_t, offset))

    return by_position(e, length, dtype, "range", element)


def linspace(e: Emitter, args: Sequence[Value], kwargs: Arguments) -> Value:
    """`np.linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None)` of numbers."""
    names = ["start", "stop", "num", "endpoint", "retstep", "dtype"]
    given = bound(e, "linspace", names, args, kwargs, 2)
    ends = [operand(e, given[k], k) for k in ("start", "stop")]
    if not all(isinstance(v, Scalar) for v in ends):
        e.fail("linspace takes numbers")
    singles = [isinstance(v, Scalar) and v.type == "f32" for v in ends]
    others = [isinstance(v, Scalar) and v.type in ("f32", "py_int", "py_float") for v in ends]
    dtype = "f32" if any(singles) and all(others) else "f64"
    a, b = (element_type_cast(e, v, dtype).ssa for v in ends if isinstance(v, Scalar))
    endpoint = given.get("endpoint")
    if endpoint is not None and not (
        isinstance(endpoint, Scalar) and endpoint.constant is not None
    ):
        e.fail("linspace: endpoint= must be known while compiling")
    closed = not isinstance(endpoint, Scalar) or bool(endpoint.constant)
    num = as_index(e, given.get("num", e.constant(50, "py_int")))
    if num.low < 0:
        negative = shapes.compare(e, "slt", num.ssa, e.index(0))
        message = "Number of samples, {}, must be non-negative."
        e.insert(array.RaiseIfOp(negative, "ValueError", message, [num.ssa]))
    last = shapes.plus(e, num.ssa, -1)
    refuse_huge(e, [num], dtype)
    parts = shapes.at_least(e, last if closed else num.ssa, 1)
    delta = e.emit(arith.SubfOp(b, a))
    step = e.emit(arith.DivfOp(delta, cast(e, parts, "py_int", dtype)))

    def element(i: SSAValue) -> SSAValue:
        value = e.emit(arith.AddfOp(e.emit(arith.MulfOp(cast(e, i, "py_int", dtype), step)), a))
        if not closed:
            return value
        # The last sample is `stop` itself, unless it is the only one.
        at_end = shapes.compare(e, "eq", i, last)
        several = shapes.compare(e, "sgt", last, e.index(0))
        return e.emit(arith.SelectOp(e.emit(arith.AndIOp(at_end, several)), b, value))

    asked = dtype_argument(e, given.get("dtype"), dtype)
    if asked == "b1":
        e.fail("linspace: this dtype= is not supported", way_out="convert with astype")

    def converted(i: SSAValue) -> SSAValue:
        value = element(i)
        if asked in INTEGERS:
            value = e.emit(math_ops.FloorOp(value))
        return cast(e, value, dtype, asked)

    found = by_position(e, num.ssa, asked, "linspace", converted)
    if "retstep" not in given or not constant_bool(e, given["retstep"], "retstep"):
        return found
    several = shapes.compare(e, "sgt", last if closed else num.ssa, e.index(0))
    nothing = e.constant(math.nan, dtype).ssa
    return Tuple((found, Scalar(dtype, e.emit(arith.SelectOp(several, step, nothing)))))


def identity(e: Emitter, name: str, args: Sequence[Value], kwargs: Arguments) -> Array:
    """`np.eye(n, m)` and `np.identity(n)`."""
    names = ["N", "M", "k", "dtype"] if name == "eye" else ["n", "dtype"]
    given = bound(e, name, names, args, kwargs)
    if "k" in given:
        e.fail("eye: k= is not supported", "set the elements of np.zeros in a loop")
    dtype = dtype_argument(e, given.get("dtype"), "f64")
    rows = given[names[0]]
    n, m = extents_argument(e, Tuple((rows, given.get("M", rows))), dtype)
    result = allocate(e, [n, m], dtype, name)
    assign_view(e, result, e.constant(0, dtype))
    body = Block(arg_types=[IndexType()])
    body.args[0].name_hint = "i"
    one = e.constant(1, dtype).ssa
    with e.at(body):
        e.insert(memref.StoreOp.get(one, result.memref, [body.args[0]] * 2))
        e.insert(array.YieldOp())
    e.insert(array.LoopOp(shapes.at_most(e, n, m), [], body), "trips")
    return result


# --- From values that exist -------------------------------------------------------------------


FIRST = {"array": "object"}
"""What NumPy calls the first parameter, where that is not `a`."""


def transpose(e: Emitter, value: Value, axes: Value | None) -> Value:
    """`np.transpose(a, axes)` and `a.transpose(axes)`: a view."""
    if isinstance(value, Tuple):
        value = of_tuple(e, value, None)
    if not isinstance(value, Array):
        return value
    a = value
    if axes is None or isinstance(axes, NoneValue):
        return views.transposed(e, a)
    items = axes.items if isinstance(axes, Tuple) else (axes,)
    order = [one_axis(e, i, a.rank) for i in items]
    if sorted(order) != list(range(a.rank)):
        e.fail("axes don't match array")
    return views.transposed(e, a, order)


def broadcast_to(e: Emitter, value: Value, shape: Value) -> Array:
    """`np.broadcast_to(a, shape)`: a view, read-only."""
    return read_only.mark(e, broadcast(e, value, shape))


def broadcast(e: Emitter, value: Value, shape: Value) -> Array:
    """A view of this shape."""
    source = viewable(e, value)
    extents = extents_argument(e, shape)
    if isinstance(source, Scalar):
        a = allocate(e, [], dtype_of(source), "number")
        assign_view(e, a, source)
    else:
        a = source
    if a.rank > len(extents):
        e.fail("input operand has more dimensions than allowed by the axis remapping")
    message = "operands could not be broadcast together with remapped shapes"
    own = shapes.extents_of(e, a.memref)
    targets = extents[len(extents) - a.rank :]
    found = shapes.Mismatches()
    for n, t in zip(own, targets, strict=True):
        found.require(e, n, t)
    found.raise_all(e, message, [])
    return views.broadcast_to(e, a, extents)


CASES: tuple[Case, ...] = (
    Case("np.asarray(x, dtype=None, order=None) * 2.0", {"x": "real"}),
    *(Case(f"np.{name}(n)", {"n": "count"}) for name in ("zeros", "ones", "arange", "eye")),
    Case("np.full((n, 2), 7)", {"n": "count"}),
    Case("np.zeros((2, n), dtype=np.int32)", {"n": "count"}),
    *(Case(f"np.{name}(x)", {"x": "real"}) for name in ("zeros_like", "ones_like", "copy")),
    Case("np.full_like(x, 2.5)", {"x": "integer"}),
    *(Case(f"np.arange({text})", {}) for text in ("2, 9", "9, 2, -2", "0.5, 2.0, 0.25", "3, 1")),
    *(
        Case(f"np.linspace({text})", {})
        for text in ("0, 1, 5", "2.0, -1.0, 7", "0, 1, 1", "0, 1, 0")
    ),
    Case("np.linspace(0, 5, 7, dtype=np.int64), np.linspace(-1.5, 2, 4, dtype=np.float32)"),
    Case("np.linspace(0, s, 4, retstep=True)", {"s": "scalar"}),
    Case("np.linspace(0, 1, n, False, True)", {"n": "count"}),
    Case("np.ndarray((n, 2)).shape, np.ndarray(n, np.int32).dtype.itemsize", {"n": "count"}),
    Case("np.mgrid[0:n, 1:4], np.mgrid[2:9:3], np.mgrid[:n, 3:0:-1, :2]", {"n": "count"}),
    Case(
        "np.ogrid[0:n, 1:4][1], np.ogrid[:5], np.mgrid[: x.size] * x", {"x": "vector", "n": "count"}
    ),
    Case("np.mgrid[0:1:5j], np.mgrid[-1:1:4j, 0:n, :2:3j], np.ogrid[:1:3j]", {"n": "count"}),
    Case("np.mgrid[0:1:0.25], np.mgrid[0:n, 1:0:-0.3], np.mgrid[2:5:1j, :1:0j]", {"n": "count"}),
    Case("np.mgrid[0 : 1 : n * 1j], np.ogrid[0 : 2.5 : -3j, : n - 0.5][0]", {"n": "count"}),
    Case("np.mgrid[s : s + 2 : 4j], np.ogrid[: s * s : 3j, s : s + 1 : 0.3]", {"s": "scalar"}),
    Case("np.mgrid[x[0] : x[1] : 4j] * x[2]", {"x": "vector"}),
    Case("x[np.s_[1:]], x[np.s_[::-1]], x[np.index_exp[:2]]", {"x": "vector"}),
    Case("x[np.s_[1:, ::-1]], x[np.s_[..., None, 0]]", {"x": "matrix"}),
    Case("np.array((1, 2.5, 3))"),
    Case("np.stack((x, y))", {"x": "vector", "y": "vector"}),
    Case("np.concatenate((x, y, x))", {"x": "vector", "y": "vector"}),
    Case("x.astype(np.int64)", {"x": "real"}),
    Case("np.transpose(x)", {"x": "real"}),
)
