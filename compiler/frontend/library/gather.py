"""Index arrays and masks as subscripts: `x[idx]`, `a[:, idx] = v`, `x[mask] += v`, `np.add.at`.

What the subscripts select is one loop nest over the index arrays (`library.selection`), whose body
makes a subscript ready as any other and moves one element, or one row as an `array.map`::

    %r = array.alloc(%m)                               # x[idx]
    array.loop %i to %m do {
      %k = memref.load %idx[%i]
      %j = array.index %k, %n axis 0 sign "any"
      %e = memref.load %x[%j]
      memref.store %e, %r[%i]
    }

So a gradient needs nothing of its own: the adjoint of the loop scatters into the shadow of x. A
read is a fresh array. A write checks all subscripts before it stores anything and then stores in
order, so that the last of equal ones wins; `x[idx] += v` is `x[idx] = x[idx] + v`, one read of all
and one write of all, where `np.add.at` reads and writes element by element.

A mask is the index arrays that `np.nonzero` makes of it, but for `x[mask] = number`, which selects
in one vectorized map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue

from ....dialects import array
from ..emitter import Emitter
from ..values import Array, NoneValue, Scalar, SliceValue, Tuple, Value
from . import elementwise, indexing, reductions, shapes
from .assignment import (
    assign_view,
    output_message,
    require_broadcast,
    require_same_kind,
    without_leading_units,
    write,
)
from .cases import Case
from .dtypes import INTEGERS, dtype_of, element_type_cast, resolve
from .maps import (
    Operand,
    allocate,
    broadcast,
    converted,
    copy,
    extents_of,
    load,
    mapped,
    operand,
)
from .numpy_version import BEFORE_2_5
from .overlap import disjoint
from .read_only import BY_ROWS, at_elements, require_writable
from .reshape import in_a_row
from .selection import (
    Point,
    Selection,
    check,
    is_fancy,
    move_row,
    nonzero,
    require_mask,
    row,
    row_of,
    select,
    visit_rows,
)

VALUES = (
    "shape mismatch: value array of shape {source} could not be broadcast to indexing result"
    " of shape {destination}"
)
MASKED = (
    "NumPy boolean array indexing assignment cannot assign {} input values to the {} output"
    " values where the mask is true"
)
AT = "array is not broadcastable to correct shape"


# --- Reading ----------------------------------------------------------------------------------


def subscript(e: Emitter, a: Array, indices: Sequence[Value]) -> Value:
    """`a[indices]`: a NumPy scalar, a view, or the fresh array that index arrays and masks select."""
    if not is_fancy(indices):
        return indexing.subscript(e, a, indices)
    return gather(e, select(e, a, indices))


def gather(e: Emitter, s: Selection) -> Array:
    """A fresh array of the selected elements."""
    result = allocate(e, s.extents(e), s.array.dtype, "gathered")
    in_one_pass = len(s.index_arrays) == 1 and s.first == 0 and e.catch is None
    if not in_one_pass:
        check(e, s)
    ends = [e.index(0)] * len(s.rows)

    def move(point: Point, offsets: Point) -> None:
        if not s.rows:
            element = load(e, s.array, offsets).ssa
            e.insert(memref.StoreOp.get(element, result.memref, point))
            return
        source = row(e, s.array, offsets, s.rows)
        move_row(e, source, row(e, result, [*point, *ends], range(len(point), result.rank)))

    visit_rows(e, s, in_one_pass, move)
    return result


def take(e: Emitter, value: Value, indices: Value, axis: Value | None) -> Value:
    """`np.take(a, indices, axis)`: `a[:, indices]`, or of `a.ravel()` where no axis is given."""
    a = operand(e, value)
    if isinstance(a, Scalar):
        e.fail("np.take of a number is not compiled")
    if axis is None and a.rank != 1:
        a = in_a_row(e, a)
    along = 0 if axis is None else reductions.one_axis(e, axis, a.rank)
    if isinstance(indices, Array) and indices.dtype not in INTEGERS:
        e.fail("np.take needs indices of integers", way_out="use a[mask], or np.flatnonzero(mask)")
    everything = [SliceValue(None, None, None)] * along
    taken = subscript(e, a, [*everything, indices])
    return taken if is_fancy([indices]) or not isinstance(taken, Array) else copy(e, taken)


# --- Writing ----------------------------------------------------------------------------------


def store(e: Emitter, a: Array, indices: Sequence[Value], value: Value) -> None:
    """`a[indices] = value`."""
    require_writable(e, a.memref)
    if not is_fancy(indices):
        indexing.store(e, a, indices, value)
        return
    source = operand(e, value, "the assigned value")
    mask = whole_mask(a, indices)
    if mask is not None and isinstance(source, Scalar):
        store_masked(e, a, mask, element_type_cast(e, source, a.dtype))
        return
    s = select(e, a, indices)
    if mask is not None and not isinstance(source, Scalar):
        source = values_of_mask(e, source, s)
    scatter(e, s, source)


def augmented(
    e: Emitter, operator: str, a: Array, indices: Sequence[Value], before: Value, value: Value
) -> None:
    """`a[indices] op= value`, where `before` is `a[indices]`: computed in its dtype, then stored."""
    if operator == "MatMult":
        e.fail("`@=` of selected elements is not compiled", way_out="assign the product")
    assert isinstance(before, Array)
    selection, source = select(e, a, indices), combined(e, operator, before, value)
    require_writable(e, a.memref)
    scatter(e, selection, source)


def augmented_masked(
    e: Emitter, operator: str, a: Array, indices: Sequence[Value], value: Value
) -> bool:
    """`a[mask] op= number` as one map; False where it is something else."""
    mask = whole_mask(a, indices)
    if mask is None or operator == "MatMult" or not isinstance(value, Scalar):
        return False
    source = combined(e, operator, a, value)
    require_writable(e, a.memref)
    store_masked(e, a, mask, source)
    return True


def combined(e: Emitter, operator: str, before: Array, value: Value) -> Operand:
    """`before op value` as `before op= value` would store it, NumPy's errors raised."""
    ufunc = elementwise.OPERATORS[operator]
    result = elementwise.apply(e, ufunc, [before, value], out=before, operator=True)
    require_same_kind(e, ufunc.__name__, dtype_of(result), before.dtype)
    extents = shapes.extents_of(e, before.memref)
    if not isinstance(result, Scalar):
        if result.rank > before.rank:
            e.fail("the result has more dimensions than what is selected")
        require_broadcast(e, extents_of(e, result), extents, output_message(e, result, before))
    return converted(e, result, before.dtype, extents)


def whole_mask(a: Array, indices: Sequence[Value]) -> Array | None:
    """The mask, where it is the only subscript and has the array's rank."""
    if len(indices) != 1:
        return None
    (mask,) = indices
    if isinstance(mask, Array) and mask.dtype == "b1" and mask.rank == a.rank:
        return mask
    return None


def store_masked(e: Emitter, a: Array, mask: Array, value: Operand) -> None:
    """One map over all of `a`, which keeps what the mask does not name."""
    extents = shapes.extents_of(e, a.memref)
    for axis, (n, target) in enumerate(zip(extents_of(e, mask), extents, strict=True)):
        require_mask(e, n, target, axis)
    seen = [mask, broadcast(e, value, extents), a]
    loop = ("b1", *[a.dtype] * 3)
    write(e, a, mapped(e, seen, loop, extents, lambda e, xs: e.emit(arith.SelectOp(*xs))), VALUES)


def values_of_mask(e: Emitter, source: Array, s: Selection) -> Array:
    """The values for `a[mask] = source`: one, or one for each selected element."""
    if source.rank > 1:
        e.fail(
            "NumPy boolean array indexing assignment requires a 0 or 1-dimensional input,"
            f" input has {source.rank} dimensions"
        )
    (given,), (count,) = extents_of(e, source), s.shape
    if not shapes.equal(given, count):
        wrong = e.emit(
            arith.AndIOp(
                shapes.compare(e, "ne", given, count),
                shapes.compare(e, "ne", given, e.index(1)),
            )
        )
        e.insert(array.RaiseIfOp(wrong, "ValueError", MASKED, [given, count]))
    return source


def scatter(e: Emitter, s: Selection, source: Operand) -> None:
    """Store into the selected elements, in order; all that is read there is read before."""
    extents = s.extents(e)
    x = values(e, s, source, extents, s.array.dtype, VALUES)
    s = unaliased(e, s)
    check(e, s)

    def move(point: Point, offsets: Point) -> None:
        move_row(e, row_of(e, x, point), row(e, s.array, offsets, s.rows))

    visit_rows(e, s, False, move)


def values(
    e: Emitter, s: Selection, source: Operand, extents: Sequence[SSAValue], dtype: str, message: str
) -> Operand:
    """`source` over the selection's extents, in memory of its own where it may share the array's."""
    extra = 0 if isinstance(source, Scalar) else source.rank - len(extents)
    if extra > 0:
        source = without_leading_units(e, source, extents, extra, message)
    if isinstance(source, Scalar):
        return element_type_cast(e, source, dtype)
    require_broadcast(e, extents_of(e, source), extents, message)
    apart = source.dtype != dtype or disjoint(e, s.array.memref, source.memref)
    return converted(e, source if apart else copy(e, source), dtype, extents)


def unaliased(e: Emitter, s: Selection) -> Selection:
    """The selection with index arrays that share no memory with what is written.

    An index array of rank 2 or more must lie in C order: NumPy goes through it as it lies in memory.
    """
    for index in s.index_arrays:
        if index.array.rank > 1 and not lies_in_c_order(index.array):
            e.fail(
                "storing through index arrays of rank 2 that are not in C order is not compiled",
                way_out="make one with np.ascontiguousarray, outside where it is an argument",
            )
    own = tuple(
        index
        if index is None or disjoint(e, s.array.memref, index.array.memref)
        else replace(index, array=copy(e, index.array))
        for index in s.indices
    )
    return replace(s, indices=own)


def lies_in_c_order(index: Array) -> bool:
    """True where the type says that memory is walked in C order, or stands still."""
    strides = [s for s in array.strides_of(index.type) if s != 0]
    if array.is_contiguous(index.type):
        return True
    known = [s for s in strides if s is not None and s > 0]
    return len(known) == len(strides) and known == sorted(known, reverse=True)


# --- np.add.at and the like -------------------------------------------------------------------

UNBUFFERED: tuple[np.ufunc, ...] = (
    np.add,
    np.subtract,
    np.multiply,
    np.minimum,
    np.maximum,
)


def is_at(function: object) -> bool:
    """True for `ufunc.at`."""
    owner = getattr(function, "__self__", None)
    return isinstance(owner, np.ufunc) and getattr(function, "__name__", None) == "at"


def call_at(e: Emitter, function: Any, args: Sequence[Value], kwargs: dict[str, Value]) -> Value:
    """`ufunc.at(a, indices, b)`: element by element, in order, each seeing what was stored before."""
    ufunc: np.ufunc = function.__self__
    if ufunc not in UNBUFFERED:
        names = ", ".join(f"np.{u.__name__}.at" for u in UNBUFFERED)
        e.fail(f"np.{ufunc.__name__}.at is not compiled", way_out=f"{names} are")
    if kwargs or len(args) != 3:
        e.fail(f"np.{ufunc.__name__}.at takes three arguments, without names")
    a, at, value = args
    if not isinstance(a, Array):
        e.fail("first operand must be array")
    indices = at.items if isinstance(at, Tuple) else (at,)
    source = operand(e, value)
    loop = resolve(e, ufunc, [a, source], a.dtype)
    require_same_kind(e, ufunc.__name__, loop[2], a.dtype)
    if not BEFORE_2_5:
        require_writable(e, a.memref, BY_ROWS)
    fancy = select(e, a, indices) if is_fancy(indices) else None
    place = a if fancy is not None else indexing.locate(e, a, indices)
    if fancy is not None:
        own = shapes.extents_of(e, fancy.array.memref)
        extents, of_each = fancy.extents(e), [own[d] for d in fancy.whole_axes]
    else:
        extents = list(shapes.extents_of(e, place.memref)) if isinstance(place, Array) else []
        of_each = extents
    with at_elements(e, a.memref, shapes.product(e, of_each)):
        given = [] if isinstance(source, Scalar) else extents_of(e, source)
        if len(given) > len(extents):
            e.insert(array.RaiseIfOp(e.constant(True, "py_bool").ssa, "ValueError", AT))
            return NoneValue()
        require_broadcast(e, given, extents, AT)
        if fancy is not None:
            accumulate(e, ufunc, loop, fancy, source)
            return NoneValue()
        view = place if isinstance(place, Array) else row(e, place.array, list(place.indices), [])
        assign_view(e, view, elementwise.apply(e, ufunc, [view, source], out=view))
    return NoneValue()


def accumulate(
    e: Emitter, ufunc: np.ufunc, loop: Sequence[str], s: Selection, source: Operand
) -> None:
    extents = s.extents(e)
    x = values(e, s, source, extents, loop[1], AT)
    s = unaliased(e, s)
    check(e, s)
    lower = elementwise.TABLE[ufunc].lowering(loop[0])
    if lower is None:
        e.fail(f"np.{ufunc.__name__}.at of bools is not compiled")

    def move(point: Point, offsets: Point) -> None:
        into = row(e, s.array, offsets, s.rows)
        operands = [operand(e, into), row_of(e, x, point)]
        move_row(e, elementwise.elementwise(e, operands, loop, lower), into)

    visit_rows(e, s, False, move)


def nonzero_of(e: Emitter, value: Value) -> Tuple:
    """`np.nonzero(x)`, `np.where(x)`."""
    x = operand(e, value)
    if isinstance(x, Scalar):
        e.fail("np.nonzero of a number is not compiled", way_out="compare it with 0")
    return Tuple(nonzero(e, x))


def flatnonzero(e: Emitter, value: Value) -> Value:
    """`np.flatnonzero(x)` of a vector."""
    found = nonzero_of(e, value)
    if len(found.items) != 1:
        e.fail("np.flatnonzero is compiled for arrays of rank 1", way_out="use np.nonzero")
    return found.items[0]


CASES: tuple[Case, ...] = (
    Case("x[[0, -1]]", {"x": "vector"}),
    Case("x[np.arange(n)[::-1]] * y", {"x": "vector", "y": "vector", "n": "count"}),
    Case("x[x > 0]", {"x": "real"}),
    Case("a[:, np.array((0, -1, 0))]", {"a": "matrix"}),
    Case("a[np.arange(n), np.arange(n)]", {"a": "matrix", "n": "count"}),
    Case("np.take(a, np.arange(n), axis=1)", {"a": "matrix", "n": "count"}),
    Case("np.take(a.T, np.arange(n))", {"a": "matrix", "n": "count"}),
    Case("np.nonzero(x)[0]", {"x": "natural"}),
    Case("np.flatnonzero(x > 0)", {"x": "vector"}),
    Case("np.argwhere(a > 0)", {"a": "matrix"}),
)
