"""`np.stack` and `np.concatenate`: of arrays in a tuple, and of the rows of an array, as many as there are.

A list that grows is an array of its items to NumPy's functions, so a list is joined by its rows::

    np.stack(rows, axis=1)         result[:, k] = rows[k]             one copy, its axes in another order
    np.concatenate(rows, axis=1)   the same, two axes seen as one
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ....dialects import array
from ..emitter import Emitter
from ..values import Array, NoneValue, Scalar, Tuple, Value
from . import creation, reshape, shapes, stacking, views
from .assignment import assign_view
from .cases import Case
from .dtypes import strong
from .maps import allocate, extents_of, operand
from .reductions import one_axis

Arguments = dict[str, Value]


def stack(e: Emitter, args: list[Value], kwargs: Arguments) -> Value:
    """`np.stack(arrays, axis)`."""
    values = joined(e, "stack", args, kwargs)
    if isinstance(values, Array):
        axis = axis_of(e, args, kwargs, values.rank)
        count, *own = rows_of(e, values, "stack")
        result = allocate(e, [*own[:axis], count, *own[axis:]], values.dtype, "stack")
        return filled(e, result, values, axis, result)
    rank = max((rank_of(e, v) for v in values.items), default=0)
    return stacking.stack(e, values.items, axis_of(e, args, kwargs, rank + 1))


def concatenate(e: Emitter, args: list[Value], kwargs: Arguments) -> Value:
    """`np.concatenate(arrays, axis)`; without an axis (None) of all elements, flattened."""
    values = joined(e, "concatenate", args, kwargs)
    if isinstance(axis_argument(args, kwargs), NoneValue):
        parts = values.items if isinstance(values, Tuple) else (values,)
        minus_one = [e.constant(-1, "py_int")]
        flat = [reshape.reshape(e, strong(e, operand(e, part)), minus_one) for part in parts]
        return stacking.concatenate(e, flat, None)
    if isinstance(values, Tuple):
        return stacking.concatenate(e, values.items, axis_argument(args, kwargs))
    if values.rank < 2:
        e.fail("zero-dimensional arrays cannot be concatenated", way_out="use the array itself")
    along = axis_of(e, args, kwargs, values.rank - 1)
    count, *own = rows_of(e, values, "concatenate")
    whole = shapes.times(e, count, own[along])
    extents = [*own[:along], whole, *own[along + 1 :]]
    result = allocate(e, extents, values.dtype, "concatenation")
    return filled(e, reshape.split(e, result, along, [count, own[along]]), values, along, result)


def joined(e: Emitter, name: str, args: list[Value], kwargs: Arguments) -> Tuple | Array:
    """What is joined."""
    values = creation.bound(e, name, ("arrays", "axis"), args, kwargs)["arrays"]
    if isinstance(values, Array) and values.rank:
        return values
    if not isinstance(values, Tuple):
        e.fail(f"{name} takes a tuple or a list of arrays")
    return values


def axis_argument(args: Sequence[Value], kwargs: Arguments) -> Value | None:
    """The axis as the call says it; None where it says nothing."""
    return args[1] if len(args) > 1 else kwargs.get("axis")


def axis_of(e: Emitter, args: Sequence[Value], kwargs: Arguments, rank: int) -> int:
    """The axis of such a call, the first by default."""
    axis = axis_argument(args, kwargs)
    if isinstance(axis, NoneValue):
        e.fail("these are not joined without an axis", way_out="join them along one, then .ravel()")
    return 0 if axis is None else one_axis(e, axis, rank)


def rank_of(e: Emitter, value: Value) -> int:
    item = operand(e, value, "an item")
    return 0 if isinstance(item, Scalar) else item.rank


def rows_of(e: Emitter, rows: Array, name: str) -> tuple[SSAValue, ...]:
    """The extents of an array that has rows; ValueError where it has none."""
    extents = extents_of(e, rows)
    none = shapes.compare(e, "eq", extents[0], e.index(0))
    message = f"need at least one array to {name}"
    e.insert(array.RaiseIfOp(none, "ValueError", message))
    return extents


def filled(e: Emitter, view: Array, rows: Array, axis: int, result: Array) -> Array:
    """`result`, of which `view` has the rows along `axis`."""
    order = [axis, *(d for d in range(rows.rank) if d != axis)]
    assign_view(e, views.transposed(e, view, order), rows)
    return result


CASES: tuple[Case, ...] = (
    Case("np.stack((x, x * x), axis=-1)", {"x": "matrix"}),
    Case("np.stack((x, x * x), axis=1)", {"x": "matrix"}),
    Case("np.stack(x, axis=1)", {"x": "matrix"}),
    Case("np.stack(np.stack((x, x * x)), axis=-1)", {"x": "matrix"}),
    Case("np.concatenate(x)", {"x": "matrix"}),
    Case("np.concatenate(np.stack((x, x * x)), axis=1)", {"x": "matrix"}),
    Case("np.concatenate((x, x[0], x[0, 0]), axis=None)", {"x": "matrix"}),
    Case("np.concatenate(x, axis=None)", {"x": "matrix"}),
)
