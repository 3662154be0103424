"""Subscripts: elements, views, and what is stored through them.

A slice is normalized as CPython's `slice.indices` does it, in the form that stays affine::

    u[1:-1]   offset 1          extent max(n - 2, 0)
    u[k+1:]   offset k + 1      extent max(n - k - 1, 0)
    u[-3:]    offset max(n-3,0) extent n - max(n - 3, 0)
    x[::-1]   offset n - 1      extent n                    step -1

A start beyond the end is not clamped: the extent is 0 then, and nothing is read at the offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue

from ....dialects import array
from ....dialects.array import constant_value
from ...analysis.affine import affine
from ..emitter import Emitter
from ..values import (
    INT64_MAX,
    INT64_MIN,
    Array,
    NoneValue,
    Scalar,
    SliceValue,
    Static,
    Value,
)
from . import elementwise, shapes, views, ways_out
from .assignment import assign_view
from .cases import Case
from .dtypes import INTEGERS, element_type_cast, stored
from .maps import describe, load, operand
from .read_only import OUTPUT, require_writable


@dataclass(frozen=True)
class Element:
    """One element of an array: its memref and ready subscripts."""

    array: Array
    indices: tuple[SSAValue, ...]


def subscript(e: Emitter, a: Array, indices: Sequence[Value]) -> Value:
    """`a[indices]`: a NumPy scalar when every dimension has an integer, else a view."""
    place = locate(e, a, indices)
    if isinstance(place, Element):
        return load(e, place.array, place.indices)
    return place


def store(e: Emitter, a: Array, indices: Sequence[Value], value: Value) -> None:
    """`a[indices] = value`."""
    assign(e, locate(e, a, indices), value)


def instead_of(value: Value) -> str:
    """What to write in place of a subscript of what has none in compiled code."""
    trick = value.object if isinstance(value, Static) else None
    if trick is np.r_ or trick is np.c_:
        return f"use {'np.concatenate((a, b))' if trick is np.r_ else 'np.stack((a, b), axis=1)'}"
    if trick is not None and hasattr(type(trick), "__array__"):
        return ways_out.AS_ARRAY
    return "put what it holds into an array, a list or a tuple"


def augmented(e: Emitter, operator: str, place: Element | Array, value: Value) -> None:
    """`a[indices] += value` (and the like), `place` being what `locate` made of the subscripts.

    An element is read, combined and stored, so any dtype goes; a view is updated in place, where
    NumPy insists on casts of the same kind.
    """
    if isinstance(place, Array):
        require_writable(e, place.memref, OUTPUT)
    if isinstance(place, Array) and place.rank > 0:
        in_place(e, operator, place, value)
        return
    if operator == "MatMult":
        e.fail("matmul: an element does not have enough dimensions", "multiply by a number with *=")
    if isinstance(place, Array):
        place = Element(place, ())
    before = load(e, place.array, place.indices)
    after = elementwise.apply(e, elementwise.OPERATORS[operator], [before, value], operator=True)
    assign(e, place, after)


def in_place(e: Emitter, operator: str, target: Array, value: Value) -> None:
    """`target += value` on an array."""
    if operator == "MatMult":
        from . import linalg  # `@=` is the one operator that is not elementwise

        assign_view(e, target, linalg.matmul(e, target, value))
    else:
        elementwise.augmented(e, operator, target, value)


def assign(e: Emitter, place: Element | Array, value: Value) -> None:
    """Store into an element or a view."""
    if isinstance(place, Array):
        assign_view(e, place, stored(e, value, place.dtype) if isinstance(value, Scalar) else value)
        return
    source = operand(e, value, "the stored value")
    if not isinstance(source, Scalar):
        e.fail(
            "setting an array element with a sequence.", way_out="store into a slice of the array"
        )
    element = stored(e, source, place.array.dtype)
    e.insert(memref.StoreOp.get(element.ssa, place.array.memref, list(place.indices)))


def locate(e: Emitter, a: Array, indices: Sequence[Value]) -> Element | Array:
    """The element or view that the subscripts select."""
    own = shapes.extents_of(e, a.memref)
    offsets: list[SSAValue] = []
    axes: list[int] = []
    extents: list[SSAValue] = []
    steps: list[SSAValue] = []
    scalar = True
    for index in expand(e, indices, a.rank):
        axis = len(offsets)
        if isinstance(index, NoneValue):
            scalar = False
            axes.append(-1)
            extents.append(e.index(1))
            steps.append(e.index(0))
        elif isinstance(index, SliceValue):
            scalar = False
            offset, extent, step = slice_bounds(e, index, own[axis])
            offsets.append(offset)
            axes.append(axis)
            extents.append(extent)
            steps.append(step)
        else:
            offsets.append(ready_index(e, as_index(e, index), own[axis], axis))
    if scalar and not any(is_ellipsis(i) for i in indices):
        return Element(a, tuple(offsets))
    if is_whole(own, offsets, axes, extents, steps):
        return a
    return views.view(e, a, offsets, axes, extents, steps)


def is_whole(
    own: Sequence[SSAValue],
    offsets: Sequence[SSAValue],
    axes: Sequence[int],
    extents: Sequence[SSAValue],
    steps: Sequence[SSAValue],
) -> bool:
    """True for `a[:]` and the like: the array itself serves as the view."""
    return (
        list(axes) == list(range(len(own)))
        and all(constant_value(o) == 0 for o in offsets)
        and all(constant_value(s) == 1 for s in steps)
        and all(x is y for x, y in zip(own, extents, strict=True))
    )


def is_ellipsis(index: Value) -> bool:
    return isinstance(index, Static) and index.object is Ellipsis


def is_newaxis(index: Value) -> bool:
    return isinstance(index, NoneValue) or (isinstance(index, Static) and index.object is None)


def expand(e: Emitter, indices: Sequence[Value], rank: int) -> list[Value]:
    """The subscripts with `...` and the left-out dimensions written as full slices."""
    given = [NoneValue() if is_newaxis(i) else i for i in indices]
    named = sum(not isinstance(i, NoneValue) and not is_ellipsis(i) for i in given)
    if any(isinstance(i, Scalar) and i.type in ("py_bool", "b1") for i in given):
        e.fail(
            "a single truth is no mask here: NumPy makes an axis for it",
            "use np.atleast_1d(x), and a mask of that; or an `if`",
        )
    if named > rank:
        e.fail(f"too many indices for array: array is {rank}-dimensional, but {named} were indexed")
    if sum(map(is_ellipsis, given)) > 1:
        e.fail("an index can only have a single ellipsis ('...')")
    full: list[Value] = [SliceValue(None, None, None)] * (rank - named)
    position = next((k for k, i in enumerate(given) if is_ellipsis(i)), len(given))
    return [*given[:position], *full, *given[position + 1 :]]


def as_index(e: Emitter, value: Value) -> Scalar:
    """An integer subscript as a Python int."""
    if isinstance(value, Static) and isinstance(value.object, slice):
        e.fail("slice objects are not supported as values", way_out="write start:stop:step here")
    if isinstance(value, Array) and value.rank == 0:
        value = operand(e, value)
    if isinstance(value, Array):
        e.fail(
            f"an integer is needed here, not {describe(value)}",
            way_out="take one element of it, or int(...)",
        )
    if not isinstance(value, Scalar) or value.type not in ("py_int", *INTEGERS):
        e.fail(
            "only integers, slices (`:`), ellipsis (`...`) and numpy.newaxis (`None`) are valid"
            f" indices, not {describe(value)}",
            "divide by `//`, or convert with int(...)" if isinstance(value, Scalar) else None,
        )
    return element_type_cast(e, value, "py_int")


def ready_index(e: Emitter, index: Scalar, extent: SSAValue, axis: int) -> SSAValue:
    """The subscript as memory wants it: wrapped where negative, IndexError where out of range."""
    low, high = index.low, index.high
    if index.constant is not None:
        low = high = int(index.constant)
    sign = "nonneg" if low >= 0 else "negative" if high < 0 else "any"
    known = constant_value(extent)
    inside = known is not None and -known <= low and high < known
    if inside and index.constant is not None and known is not None:
        return e.index(low % known)
    unchecked = inside or not e.boundscheck
    if unchecked and sign == "nonneg":
        return index.ssa
    op = array.IndexOp(index.ssa, extent, axis, sign, unchecked=unchecked)
    return e.emit(op, index.ssa.name_hint)


# --- Slices -----------------------------------------------------------------------------------


def slice_bounds(e: Emitter, s: SliceValue, n: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Offset, extent and step of a slice of a dimension with extent n."""
    start, stop, step = (
        None if part is None else as_index(e, part) for part in (s.start, s.stop, s.step)
    )
    if step is None or step.constant is not None:
        by = 1 if step is None else int(step.constant or 0)
        if by == 0:
            e.fail("slice step cannot be zero")
        if by > 0:
            offset, extent = ascending(e, start, stop, n)
        else:
            offset, extent = descending(e, start, stop, n)
        return offset, shapes.divided_up(e, extent, abs(by)), e.index(by)
    return run_time_step(e, start, stop, step, n)


def ascending(
    e: Emitter, start: Scalar | None, stop: Scalar | None, n: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """Offset and length of start:stop before it is divided by a positive step."""
    if start is None and stop is None:
        return e.index(0), n
    if start is None:
        offset = e.index(0)
    elif is_nonnegative(start):
        offset = start.ssa
    else:
        offset = shapes.at_least(e, from_end(e, start, n), 0)
    if stop is None:
        end = n
    elif is_nonnegative(stop):
        end = shapes.at_most(e, stop.ssa, n)
    elif is_negative(stop):
        # Clamped to 0 below, unless the offset is clamped too, or is so large that end - offset wraps.
        end = from_end(e, stop, n)
        if start is not None and (not is_nonnegative(start) or stop.low - start.high < INT64_MIN):
            end = shapes.at_least(e, end, 0)
    else:
        end = shapes.at_most(e, shapes.at_least(e, from_end(e, stop, n), 0), n)
    length = shapes.at_least(e, shapes.minus(e, end, offset), 0)
    if start is not None and stop is not None and not shapes.at_most_one(length):
        # k:k+1 has at most one element whatever the sign of k; with this it broadcasts as one.
        width = affine(stop.ssa) - affine(start.ssa)
        if width.is_constant and width.constant == 1:
            length = shapes.at_most(e, length, e.index(1))
    return offset, length


def descending(
    e: Emitter, start: Scalar | None, stop: Scalar | None, n: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """Offset and length of start:stop before it is divided by a negative step's size."""
    last = shapes.plus(e, n, -1)
    if start is None and stop is None:
        return last, n
    if start is None:
        offset = last
    elif is_nonnegative(start):
        offset = shapes.at_most(e, start.ssa, last)
    elif is_negative(start):
        offset = shapes.at_least(e, from_end(e, start, n), -1)
    else:
        offset = shapes.at_most(e, shapes.at_least(e, from_end(e, start, n), -1), last)
    if stop is None:
        end = e.index(-1)
    elif is_nonnegative(stop):
        end = stop.ssa
    else:
        end = shapes.at_least(e, from_end(e, stop, n), -1)
    return offset, shapes.at_least(e, shapes.minus(e, offset, end), 0)


def is_nonnegative(index: Scalar) -> bool:
    return index.low >= 0 or shapes.is_at_least(affine(index.ssa), 0)


def is_negative(index: Scalar) -> bool:
    return index.high < 0


def from_end(e: Emitter, index: Scalar, n: SSAValue) -> SSAValue:
    """index + n where index is negative."""
    wrapped = shapes.sum_of(e, n, index.ssa)
    if is_negative(index):
        return wrapped
    negative = shapes.compare(e, "slt", index.ssa, e.index(0))
    return e.emit(arith.SelectOp(negative, wrapped, index.ssa))


def run_time_step(
    e: Emitter, start: Scalar | None, stop: Scalar | None, step: Scalar, n: SSAValue
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """A step whose sign, or value, is known only at run time."""
    zero = e.index(0)
    if step.low <= 0 <= step.high:
        is_zero = shapes.compare(e, "eq", step.ssa, zero)
        e.insert(array.RaiseIfOp(is_zero, "ValueError", "slice step cannot be zero"))
    backward = shapes.compare(e, "slt", step.ssa, zero)
    up, down = ascending(e, start, stop, n), descending(e, start, stop, n)
    offset = e.emit(arith.SelectOp(backward, down[0], up[0]))
    span = e.emit(arith.SelectOp(backward, down[1], up[1]))
    down_at_most = e.emit(arith.MaxSIOp(step.ssa, e.index(-INT64_MAX)))  # -(-2**63) is no int64
    size = e.emit(arith.MaxSIOp(step.ssa, e.emit(arith.SubiOp(zero, down_at_most))))
    return offset, e.emit(arith.CeilDivSIOp(span, size)), step.ssa


CASES: tuple[Case, ...] = (
    *(
        Case(f"x[{text}] + 0.0", {"x": "vector"})
        for text in ("1:-1", "-3:", ":-2", "2:100", "5:2", "-100:2", "::2", "1::3", "-2:1")
    ),
    *(
        Case(f"x[{text}] + 0.0", {"x": "vector"})
        for text in ("::-1", "-2::-1", "3:0:-1", "100::-2", ":2:-1", "-1:-3:-1", "0:-100:-1")
    ),
    Case("x[n - 2:n]", {"x": "vector", "n": "count"}),
    Case("x[:, None] * x[None, :]", {"x": "vector"}),
    Case("x[..., 0]", {"x": "matrix"}),
    Case("x[1:, :-1].T", {"x": "matrix"}),
)
