"""Objects of NumPy that are only subscripted: `np.mgrid`, `np.ogrid`, `np.s_`, `np.index_exp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..emitter import Emitter
from ..values import Array, SliceValue, Tuple, Value
from . import creation, indexing, shapes
from .assignment import assign_view
from .fusion import allocate, extents_of


def vectors(e: Emitter, parts: Sequence[Value]) -> list[Array]:
    """The ints of each slice."""
    found = list[Array]()
    for part in parts:
        if not isinstance(part, SliceValue) or part.stop is None:
            e.fail("a grid is made of slices with an end", way_out="write np.mgrid[0:n, 0:m]")
        ends = [part.start or e.constant(0, "py_int"), part.stop, part.step]
        found.append(creation.arange(e, [v for v in ends if v is not None], {}))
    return found


def side_by_side(e: Emitter, own: Sequence[Array]) -> list[Array]:
    """Each vector along an axis of its own."""
    return [at_axis(e, a, k, len(own)) for k, a in enumerate(own)]


def at_axis(e: Emitter, a: Array, axis: int, rank: int) -> Array:
    n = extents_of(e, a)[0]
    extents = [n if k == axis else e.index(1) for k in range(rank)]
    axes = [0 if k == axis else -1 for k in range(rank)]
    steps = [e.index(int(k == axis)) for k in range(rank)]
    return shapes.view(e, a, [e.index(0)], axes, extents, steps)


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


def made(e: Emitter, found: object, parts: Sequence[Value]) -> Value:
    return MAKERS[found](e, parts)
