"""Objects of NumPy that are only subscripted: `np.mgrid`, `np.ogrid`, `np.s_`, `np.index_exp`.

The slices of a grid may have any numbers as bounds, and an imaginary step that says how many points there are
(`np.mgrid[0:1:5j]`). As in NumPy one slice is an `arange`; several have one dtype, and number k is
k * step + start.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..emitter import Emitter
from ..values import NUMPY_DTYPE, Array, Scalar, SliceValue, Static, Tuple, Value
from . import creation, elementwise, indexing, views
from .assignment import assign_view
from .dtypes import FLOATS, common_dtype, element_type_cast
from .maps import allocate, extents_of


@dataclass(frozen=True)
class Points(SliceValue):
    """`start:stop:5j` in a grid: so many points from start to stop, both included. `step` is their number."""


def count_of(step: ast.expr | None) -> ast.expr | None:
    """The number of points that an imaginary step names, `5j` or `n * 1j`; None of any other step."""
    match step:
        case ast.Constant(complex() as literal):
            return ast.copy_location(ast.Constant(abs(literal)), step)
        case ast.UnaryOp(ast.USub(), operand):
            return count_of(operand)
        case ast.BinOp(a, ast.Mult(), b):
            count, other = (count_of(a), b) if count_of(b) is None else (count_of(b), a)
            product = ast.BinOp(other, ast.Mult(), count or other)
            return None if count is None else ast.copy_location(product, step)
        case _:
            return None


def part(e: Emitter, values: Sequence[Value | None], *, of_points: bool) -> SliceValue:
    """A slice of a grid by its bounds."""
    numbers = [v for v in values if v is None or isinstance(v, Scalar)]
    if len(numbers) < len(values):
        e.fail("a bound of a grid is a number", way_out="take an element, or the array's item()")
    return (Points if of_points else SliceValue)(*numbers)


def vectors(e: Emitter, parts: Sequence[Value]) -> list[Array]:
    """The numbers of each slice, in the dtype that all have together."""
    found = [bounds(e, p) for p in parts]
    if len(found) == 1 and not isinstance(parts[0], Points):
        return [creation.arange(e, found[0], {})]
    known = common_dtype(e, [e.constant(0, "py_int"), *(v for ends in found for v in ends)])
    if known not in ("i64", *FLOATS):
        e.fail(f"a grid of dtype {NUMPY_DTYPE[known]} is not compiled", "convert the bounds")
    return [
        (points if isinstance(p, Points) else steps)(e, *ends, known)
        for p, ends in zip(parts, found, strict=True)
    ]


def bounds(e: Emitter, part: Value) -> tuple[Scalar, Scalar, Scalar]:
    """Start, stop and step of a slice; of points, their number as a float."""
    if not isinstance(part, SliceValue) or part.stop is None:
        e.fail("a grid is made of slices with an end", way_out="write np.mgrid[0:n, 0:m]")
    start, step = part.start or e.constant(0, "py_int"), part.step or e.constant(1, "py_int")
    if isinstance(part, Points):
        step = element_type_cast(e, step, "py_float")
    return start, part.stop, step


def points(e: Emitter, start: Scalar, stop: Scalar, count: Scalar, dtype: str) -> Array:
    """`start:stop:5j`: a number for each of them, times what is between two, from the start."""
    one = e.constant(1, "py_int")
    whole = element_type_cast(e, number(e, np.abs, count), "py_int")
    gaps = number(e, np.maximum, number(e, np.subtract, whole, one), one)
    span = number(e, np.subtract, stop, start)
    step = number(e, np.divide, span, element_type_cast(e, gaps, "py_float"))
    return from_start(e, start, step, creation.arange(e, [whole], {"dtype": of(dtype)}))


def steps(e: Emitter, start: Scalar, stop: Scalar, step: Scalar, dtype: str) -> Array:
    """`start:stop:step` beside others: as many numbers as it has, times the step, from the start."""
    if all(v.type in ("py_int", "i64") for v in (start, stop, step)):
        return creation.arange(e, [start, stop, step], {"dtype": of(dtype)})
    quotient = number(e, np.divide, number(e, np.subtract, stop, start), step)
    count = element_type_cast(e, number(e, np.ceil, quotient), "py_int")
    return from_start(e, start, step, creation.arange(e, [count], {"dtype": of(dtype)}))


def number(e: Emitter, ufunc: np.ufunc, *values: Scalar) -> Scalar:
    """A ufunc of numbers."""
    found = elementwise.apply(e, ufunc, values)
    assert isinstance(found, Scalar)
    return found


def from_start(e: Emitter, start: Value, step: Value, numbers: Array) -> Array:
    """`numbers * step + start`."""
    scaled = elementwise.apply(e, np.multiply, [numbers, step])
    moved = elementwise.apply(e, np.add, [scaled, start])
    assert isinstance(moved, Array)
    return moved


def of(dtype: str) -> Static:
    return Static(NUMPY_DTYPE[dtype])


def side_by_side(e: Emitter, own: Sequence[Array]) -> list[Array]:
    """Each vector along an axis of its own."""
    return [at_axis(e, a, k, len(own)) for k, a in enumerate(own)]


def at_axis(e: Emitter, a: Array, axis: int, rank: int) -> Array:
    n = extents_of(e, a)[0]
    extents = [n if k == axis else e.index(1) for k in range(rank)]
    axes = [0 if k == axis else -1 for k in range(rank)]
    steps = [e.index(int(k == axis)) for k in range(rank)]
    return views.view(e, a, [e.index(0)], axes, extents, steps)


def open_grid(e: Emitter, parts: Sequence[Value]) -> Value:
    """`np.ogrid[0:n, 0:m]`: arrays that broadcast to the grid."""
    own = vectors(e, parts)
    return Tuple(tuple(side_by_side(e, own))) if len(own) > 1 else own[0]


def grid(e: Emitter, parts: Sequence[Value]) -> Value:
    """`np.mgrid[0:n, 0:m]`: for each axis an array of the grid's shape."""
    own = vectors(e, parts)
    if len(own) == 1:
        return own[0]
    extents = [e.index(len(own)), *(extents_of(e, a)[0] for a in own)]
    result = allocate(e, extents, own[0].dtype, "grid")
    for k, a in enumerate(side_by_side(e, own)):
        place = indexing.locate(e, result, [e.constant(k, "py_int")])
        assert isinstance(place, Array)
        assign_view(e, place, a)
    return result


def expression(_: Emitter, parts: Sequence[Value]) -> Value:
    """`np.s_[1:, 0]`: what stands in a subscript, as a value."""
    return parts[0] if len(parts) == 1 else Tuple(tuple(parts))


def expressions(_: Emitter, parts: Sequence[Value]) -> Value:
    """`np.index_exp[1:]`: always a tuple."""
    return Tuple(tuple(parts))


MAKERS: dict[Any, Callable[[Emitter, Sequence[Value]], Value]] = {
    np.mgrid: grid,
    np.ogrid: open_grid,
    np.s_: expression,
    np.index_exp: expressions,
}


def is_maker(found: object) -> bool:
    """True for what a subscript makes a value of."""
    return any(found is known for known in MAKERS)


def takes_numbers(found: object) -> bool:
    """True for grids, whose slices are no subscripts of arrays."""
    return found is np.mgrid or found is np.ogrid


def made(e: Emitter, found: object, parts: Sequence[Value]) -> Value:
    return MAKERS[found](e, parts)
