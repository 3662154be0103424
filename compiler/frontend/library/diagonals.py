"""Diagonals: views, as NumPy's are, of the memory that their array is a view of.

A view walks one dimension of its source for each of its own, a diagonal two at once. So the array is
traced to the memory that it views. Where the two walk different dimensions of it, these become one::

    %v = array.collapse %a dims [0, 2] extents(%nm) : ... -> ...
    %d = array.view %v[%c0] dims [0] extents(%n) steps(%m_plus_1) : ... -> ...        # np.diagonal(a)

That needs memory without gaps. A diagonal of an argument that has some, or of an array that paths join, is
refused: a copy of it would miss later stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from ....dialects import array
from ..emitter import Emitter
from ..values import Array, Value
from . import layout, read_only, shapes, views
from .reshape import collapsed

Walk = dict[int, SSAValue]
"""By dimension of the memory, the steps in which a dimension of an array goes along it, if it does."""


@dataclass(frozen=True)
class Place:
    """Where an array lies in memory that is no view itself."""

    memory: SSAValue
    offsets: Sequence[SSAValue]
    walks: Sequence[Walk]


def main_diagonal(e: Emitter, value: Value) -> Array:
    """`np.diagonal` of the last two axes: a view, read-only."""
    if not isinstance(value, Array):
        e.fail("the diagonal of a number is not compiled")
    return read_only.mark(e, diagonal(e, value))


def diagonal(e: Emitter, a: Array) -> Array:
    """A view of the diagonal of the last two axes, which becomes the last axis."""
    *others, n, m = shapes.extents_of(e, a.memref)
    place = traced(e, a.memref)
    *walks, rows, columns = place.walks
    place = Place(place.memory, place.offsets, [*walks, both(e, rows, columns)])
    if any(len(walk) > 1 for walk in place.walks):
        place = flattened(e, place, a)
    axes = [next(iter(walk), -1) for walk in place.walks]
    steps = [next(iter(walk.values()), e.index(0)) for walk in place.walks]
    extents = [*others, shapes.at_most(e, n, m)]
    found = views.view(e, Array(place.memory, a.dtype), place.offsets, axes, extents, steps)
    return read_only.mark(e, found) if is_sealed(e, a.memref) else found


def traced(e: Emitter, value: SSAValue) -> Place:
    """The array's place, through any chain of views and casts."""
    owner = value.owner
    if isinstance(owner, memref.CastOp):
        return traced(e, owner.source)
    if not isinstance(owner, array.ViewOp):
        rank = len(shapes.extents_of(e, value))
        return Place(value, [e.index(0)] * rank, [{d: e.index(1)} for d in range(rank)])
    source = traced(e, owner.source)
    offsets = list(source.offsets)
    for walk, number in zip(source.walks, owner.offsets, strict=True):
        for d, step in walk.items():
            offsets[d] = shapes.sum_of(e, offsets[d], shapes.times(e, step, number))
    walks = [
        {} if d < 0 else {k: shapes.times(e, by, step) for k, by in source.walks[d].items()}
        for d, step in zip(owner.source_dims, owner.steps, strict=True)
    ]
    return Place(source.memory, offsets, walks)


def is_sealed(e: Emitter, value: SSAValue) -> bool:
    """Whether a cast that made the array read-only stands between it and its memory."""
    while isinstance(value.owner, array.ViewOp | memref.CastOp):
        if value in e.read_only:
            return True
        value = value.owner.source
    return False


def both(e: Emitter, rows: Walk, columns: Walk) -> Walk:
    """A step along both."""
    total = dict(rows)
    for d, step in columns.items():
        total[d] = shapes.sum_of(e, total[d], step) if d in total else step
    return total


def flattened(e: Emitter, place: Place, a: Array) -> Place:
    """The place in the same memory, all of its dimensions as one."""
    memory = Array(place.memory, a.dtype)
    extents = shapes.extents_of(e, place.memory)
    order = range(memory.rank)
    if layout.is_fortran_argument(e, place.memory):
        memory, order = views.transposed(e, memory), order[::-1]
    elif not array.is_contiguous(memory.type):
        e.fail(
            "the diagonal of an array whose layout is not known is not compiled: it is a view",
            way_out="where it is only read, copy the array first: np.diagonal(a.copy())",
        )
    strides, step = dict[int, SSAValue](), e.index(1)
    for d in reversed(order):
        strides[d] = step
        step = shapes.times(e, step, extents[d])
    walks = [
        {0: total(e, [shapes.times(e, by, strides[d]) for d, by in walk.items()])} if walk else {}
        for walk in place.walks
    ]
    start = total(e, [shapes.times(e, n, strides[d]) for d, n in enumerate(place.offsets)])
    return Place(collapsed(e, memory, range(memory.rank)).memref, [start], walks)


def total(e: Emitter, numbers: Sequence[SSAValue]) -> SSAValue:
    found = numbers[0]
    for n in numbers[1:]:
        found = shapes.sum_of(e, found, n)
    return found
