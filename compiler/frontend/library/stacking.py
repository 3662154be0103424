"""np.stack and np.concatenate."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from ....dialects import array
from ..emitter import Emitter
from ..values import (
    Array,
    Scalar,
    Tuple,
    Value,
)
from . import shapes, views
from .assignment import assign_view
from .dtypes import (
    common_dtype,
    dtype_argument,
    dtype_of,
    element_type_cast,
)
from .maps import allocate, extents_of, operand
from .reductions import one_axis

RAGGED = (
    "setting an array element with a sequence. The requested array has an inhomogeneous shape after {}"
    " dimensions. The detected shape was {} + inhomogeneous part."
)


def of_tuple(e: Emitter, value: Tuple, dtype: Value | None, outer: tuple[int, ...] = ()) -> Array:
    """`np.array((a, b, c))`, the items numbers, arrays or again tuples; of what is in so many others."""
    outer = (*outer, len(value.items))
    items = [of_tuple(e, i, None, outer) if isinstance(i, Tuple) else i for i in value.items]
    if not items:
        return allocate(e, [e.index(0)], dtype_argument(e, dtype, "f64"), "array")
    return stack(e, items, 0, dtype, RAGGED.format(len(outer), outer))


def stack(
    e: Emitter,
    values: Sequence[Value],
    axis: int,
    dtype: Value | None = None,
    unlike: str = "all input arrays must have the same shape",
) -> Array:
    """`np.stack`: the items along a new axis. Numbers are arrays of rank 0: a Python float is a float64.

    `unlike` is what is said where they have several shapes.
    """
    if not values:
        e.fail("need at least one array to stack", "write np.zeros of the shape that is meant")
    items = [operand(e, v, "an item") for v in values]
    arrays = [Scalar(dtype_of(i), i.ssa) if isinstance(i, Scalar) else i for i in items]
    element = dtype_argument(e, dtype, common_dtype(e, arrays))
    own = [() if isinstance(v, Scalar) else extents_of(e, v) for v in items]
    for other in own[1:]:
        require_same_shape(e, own[0], other, unlike)
    axis %= len(own[0]) + 1
    extents = [*own[0][:axis], e.index(len(items)), *own[0][axis:]]
    result = allocate(e, extents, element, "stack")
    for k, item in enumerate(items):
        offsets = [e.index(k if d == axis else 0) for d in range(len(extents))]
        axes = [d for d in range(len(extents)) if d != axis]
        if isinstance(item, Scalar):
            stored = element_type_cast(e, item, element).ssa
            e.insert(memref.StoreOp.get(stored, result.memref, offsets))
            continue
        part = views.view(e, result, offsets, axes, own[0], [e.index(1)] * len(axes))
        assign_view(e, part, item)
    return result


def concatenate(e: Emitter, values: Sequence[Value], axis: Value | None) -> Array:
    """`np.concatenate` along an existing axis."""
    items = [operand(e, v, "an item") for v in values]
    arrays = [v for v in items if not isinstance(v, Scalar)]
    if not arrays or len(arrays) < len(items):
        e.fail("zero-dimensional arrays cannot be concatenated", way_out="use np.array((a, b))")
    rank = arrays[0].rank
    if any(a.rank != rank for a in arrays):
        e.fail("all the input array dimensions must match", way_out="add an axis with [None]")
    along = 0 if axis is None else one_axis(e, axis, rank)
    own = [extents_of(e, a) for a in arrays]
    for other in own[1:]:
        rest = [(n, m) for d, (n, m) in enumerate(zip(own[0], other, strict=True)) if d != along]
        message = (
            "all the input array dimensions except for the concatenation axis must match exactly"
        )
        require_same_shape(e, [n for n, _ in rest], [m for _, m in rest], message)
    starts = [e.index(0)]
    for n in own:
        starts.append(shapes.sum_of(e, starts[-1], n[along]))
    extents = [starts[-1] if d == along else n for d, n in enumerate(own[0])]
    result = allocate(e, extents, common_dtype(e, arrays), "concatenation")
    for a, first, n in zip(arrays, starts, own, strict=False):
        offsets = [first if d == along else e.index(0) for d in range(rank)]
        sizes = [n[along] if d == along else extents[d] for d in range(rank)]
        part = views.view(e, result, offsets, list(range(rank)), sizes, [e.index(1)] * rank)
        assign_view(e, part, a)
    return result


def require_same_shape(
    e: Emitter, left: Sequence[SSAValue], right: Sequence[SSAValue], message: str
) -> None:
    if len(left) != len(right):
        e.fail(message, "join items of one shape: make numbers arrays, and add axes with [None]")
    wrong = [
        shapes.compare(e, "ne", n, m)
        for n, m in zip(left, right, strict=True)
        if not shapes.equal(n, m)
    ]
    if wrong:
        e.insert(array.RaiseIfOp(shapes.either(e, wrong), "ValueError", message))
