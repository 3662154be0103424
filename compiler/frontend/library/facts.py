"""Questions about arguments whose answers are known while compiling, and views that ranks decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....dialects import array
from ..emitter import Emitter
from ..values import NUMPY_DTYPE, Array, NoneValue, Scalar, Static, Struct, Tuple, Value
from . import creation, read_only, shapes, views
from .cases import Case
from .dtypes import common_dtype, dtype_of
from .maps import extents_of, operand, viewable
from .shapes import constant_value

Arguments = dict[str, Value]

CONSTANT_OBJECTS = (np.finfo, np.iinfo, np.dtype)
"""Objects whose attributes are constants."""


def isscalar(e: Emitter, value: Value) -> Value:
    known = isinstance(value, Static) and np.isscalar(value.object)
    return e.constant(known or isinstance(value, Scalar), "py_bool")


def is_real(e: Emitter, _: Value) -> Value:
    return e.constant(True, "py_bool")


def is_complex(e: Emitter, _: Value) -> Value:
    return e.constant(False, "py_bool")


def limits(kind: Any) -> Any:
    """`np.finfo(dtype)` and `np.iinfo(dtype)`."""

    def call(e: Emitter, value: Value) -> Value:
        known = (
            value.object if isinstance(value, Static) else NUMPY_DTYPE[dtype_of(operand(e, value))]
        )
        try:
            return Static(kind(known))
        except (TypeError, ValueError) as error:
            e.fail(str(error))

    return call


def result_type(e: Emitter, *values: Value) -> Value:
    """`np.result_type` of arrays and numbers."""
    if not values:
        e.fail("at least one array or dtype is required")
    return Static(NUMPY_DTYPE[common_dtype(e, [operand(e, v, "result_type") for v in values])])


def of_dtypes(function: Callable[..., Any]) -> Callable[..., Value]:
    """A function of dtypes and words, which NumPy answers while compiling."""

    def call(e: Emitter, *values: Value | None) -> Value:
        given = [v for v in values if v is not None]
        name = function.__name__
        if not all(isinstance(v, Static) for v in given):
            e.fail(f"{name} is compiled for dtypes that are known while compiling", "pass x.dtype")
        try:
            found = function(*(v.object for v in given if isinstance(v, Static)))
        except TypeError as error:
            e.fail(str(error))
        return e.constant(found, "py_bool") if isinstance(found, bool) else Static(found)

    return call


def issubdtype(e: Emitter, value: Value, kind: Value) -> Value:
    if not isinstance(value, Static) or not isinstance(kind, Static):
        e.fail("issubdtype is compiled for dtypes that are known while compiling")
    return e.constant(bool(np.issubdtype(value.object, kind.object)), "py_bool")


def squeeze(e: Emitter, value: Value, axis: Value | None = None) -> Value:
    """`np.squeeze`: a view without the axes of extent 1, or without one that is named."""
    x = viewable(e, value)
    if isinstance(x, Scalar):
        return x
    a = x
    extents = extents_of(e, a)
    if axis is None or isinstance(axis, NoneValue):
        gone = {d for d, n in enumerate(extents) if constant_value(n) == 1}
        others = [n for d, n in enumerate(extents) if d not in gone and constant_value(n) is None]
        units = [shapes.compare(e, "eq", n, e.index(1)) for n in others]
        message = "mutad: squeeze of an axis that turns out to have one element: name the axis"
        kind = "NotImplementedError"
    else:
        gone = {creation.one_axis(e, axis, a.rank)}
        units = [
            shapes.compare(e, "ne", extents[d], e.index(1))
            for d in gone
            if constant_value(extents[d]) != 1
        ]
        message = "cannot select an axis to squeeze out which has size not equal to one"
        kind = "ValueError"
    if units:
        e.insert(array.RaiseIfOp(shapes.either(e, units), kind, message))
    kept = [d for d in range(a.rank) if d not in gone]
    zero, one = e.index(0), e.index(1)
    view = array.ViewOp(
        a.memref, [zero] * a.rank, kept, [extents[d] for d in kept], [one] * len(kept)
    )
    return Array(e.emit(view, "squeezed"), a.dtype)


def broadcast_arrays(e: Emitter, args: list[Value], kwargs: Arguments) -> Value:
    """A tuple of views of one shape."""
    if kwargs:
        e.fail("broadcast_arrays takes no keywords here")
    items = [viewable(e, v) for v in args]
    arrays = [creation.broadcast(e, i, Tuple(())) if isinstance(i, Scalar) else i for i in items]
    extents = shapes.broadcast_extents(e, [extents_of(e, a) for a in arrays])
    return Tuple(tuple(views.broadcast_to(e, a, extents) for a in arrays))


def broadcast(e: Emitter, args: list[Value], kwargs: Arguments) -> Value:
    """`np.broadcast(a, b)`, of which the shape is asked."""
    if kwargs:
        e.fail("np.broadcast takes no keywords")
    items = [operand(e, v) for v in args]
    own = [() if isinstance(i, Scalar) else extents_of(e, i) for i in items]
    extents = shapes.broadcast_extents(e, own)
    parts = (
        shapes.shape_tuple(extents),
        e.constant(len(extents), "py_int"),
        shapes.length(shapes.product(e, extents)),
    )
    return Struct(parts, ("shape", "ndim", "size"), np.broadcast)


def item_size(e: Emitter, value: Value) -> Value:
    return e.constant(NUMPY_DTYPE[dtype_of(operand(e, value))].itemsize, "py_int")


def bytes_in_all(e: Emitter, value: Value) -> Value:
    """`a.nbytes`."""
    x = operand(e, value)
    size = e.index(NUMPY_DTYPE[dtype_of(x)].itemsize)
    extents = () if isinstance(x, Scalar) else extents_of(e, x)
    return shapes.length(shapes.product(e, [*extents, size]))


def strides(e: Emitter, value: Value) -> Value:
    """`a.strides`, in bytes."""
    x = operand(e, value)
    if isinstance(x, Scalar):
        return Tuple(())
    a = x
    size = NUMPY_DTYPE[a.dtype].itemsize
    known = array.strides_of(a.type)
    found = [
        e.emit(array.StrideOp(a.memref, d)) if s is None else e.index(s)
        for d, s in enumerate(known)
    ]
    return Tuple(
        tuple(
            Scalar("py_int", shapes.times(e, s, e.index(size)), None, -(2**60), 2**60)
            if (n := constant_value(s)) is None
            else e.constant(n * size, "py_int")
            for s in found
        )
    )


def require_one_element(e: Emitter, x: Array) -> None:
    """ValueError where an array of another size is taken for a number."""
    wrong = [
        shapes.compare(e, "ne", n, e.index(1)) for n in extents_of(e, x) if constant_value(n) != 1
    ]
    if wrong:
        message = "can only convert an array of size 1 to a Python scalar"
        e.insert(array.RaiseIfOp(shapes.either(e, wrong), "ValueError", message))


def real_part(_: Emitter, value: Value) -> Value:
    return value


def imaginary_part(e: Emitter, value: Value) -> Value:
    """`a.imag` of real numbers: zeros, read-only."""
    if isinstance(value, Array):
        return read_only.mark(e, creation.filled_like(e, "zeros_like", [value], {}))
    assert isinstance(value, Scalar)
    return e.constant(0, value.type)


CASES: tuple[Case, ...] = (
    Case("np.squeeze(x[:, None])", {"x": "vector"}),
    Case("np.squeeze(x[None], axis=0)", {"x": "matrix"}),
    Case("x[None, :].squeeze(0) * 2", {"x": "vector"}),
    Case("np.broadcast_arrays(x, x[0])[1] * x", {"x": "matrix"}),
    Case("np.zeros(np.broadcast(x, x[0]).shape) + np.broadcast(x, 1.0).size", {"x": "matrix"}),
    Case("np.finfo(x.dtype).eps * x", {"x": "real"}),
    Case("x.astype(np.promote_types(x.dtype, np.float64))", {"x": "real"}),
    Case("x.astype(np.dtype('float64')) * (x.dtype == np.dtype(float))", {"x": "real"}),
    Case("x * np.can_cast(x.dtype, np.float32)", {"x": "real"}),
    Case("x * np.can_cast(x.dtype, np.float32, 'same_kind')", {"x": "real"}),
    Case("np.isscalar(x)", {"x": "real"}),
    Case("np.isscalar(s)", {"s": "scalar"}),
    Case("x.real + x.imag", {"x": "real"}),
    Case("np.iscomplexobj(x)", {"x": "real"}),
    Case("(x.strides, x.T.strides, x[::-1, 1:].strides, x.nbytes, x.itemsize)", {"x": "matrix"}),
    Case("(x[:1].item(), x.item(0), x.item(-1), x[0].item())", {"x": "vector"}),
    Case("(x.item(1), x.item(0, 1), x.item((-1, 0)))", {"x": "matrix"}),
)
