"""Outputs of a map that touch other rows of one array, point for point: no strip is needed between them.

The adjoint of `v[i - 1, j] - v[i + 1, j]` adds to two rows of a shadow. A loop along the rows never meets an
element twice, so it adds to both as it goes. That holds where the loop stays in a row: a view that has fewer
columns than its array is never one run of memory, so loops over rows are not merged.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ...dialects import array
from ..analysis.affine import Affine, Term, affine, extent


@dataclass(frozen=True)
class Place:
    """Where a view of whole steps begins in an array that is no view."""

    base: SSAValue
    starts: tuple[Affine, ...]
    dims: tuple[int, ...]
    """The dimension of the array along which each axis of the view goes."""


def place_of(memref: SSAValue) -> Place | None:
    """The place of a view; None where it does not walk the array element by element along each axis."""
    views: list[array.ViewOp] = []
    while isinstance(memref.owner, array.ViewOp):
        views.append(memref.owner)
        memref = memref.owner.source
    assert isinstance(memref.type, MemRefType)
    if 0 in array.strides_of(memref.type):
        return None
    dims = tuple(range(memref.type.get_num_dims()))
    starts = [Affine() for _ in dims]
    for view in reversed(views):
        if any(array.constant_value(s) != 1 for s in view.steps):
            return None
        if min(view.source_dims, default=-1) < 0:
            return None
        for dim, offset in zip(dims, view.offsets, strict=True):
            starts[dim] += affine(offset)
        dims = tuple(dims[d] for d in view.source_dims)
    return Place(memref, tuple(starts), dims) if len(set(dims)) == len(dims) else None


def are_rows_apart(one: Place, other: Place, extents: list[SSAValue], inner: int) -> bool:
    """Whether loops along the inner axis touch two rows of one array, which have more columns than they go
    through."""
    if one.base is not other.base or one.dims != other.dims:
        return False
    away = [one.starts[d] - other.starts[d] for k, d in enumerate(one.dims) if k != inner]
    fewer = (
        begins_later(one, inner)
        or begins_later(other, inner)
        or is_short(one, extents[inner], inner)
    )
    return fewer and any(d.is_constant and d.constant != 0 for d in away)


def begins_later(place: Place, axis: int) -> bool:
    """Whether there are elements of the array before those of the view."""
    start = place.starts[place.dims[axis]]
    return start.is_constant and start.constant > 0


def is_short(place: Place, points: SSAValue, axis: int) -> bool:
    """Whether the array has more elements than there are points."""
    more = extent(place.base, place.dims[axis]) - unless_empty(affine(points))
    return more.is_constant and more.constant > 0


def unless_empty(points: Affine) -> Affine:
    """`n - 2` for `max(n - 2, 0)`: what a number of points is where there are any."""
    if len(points.terms) != 1 or points.constant:
        return points
    ((symbol, factor),) = points.terms.items()
    if not isinstance(symbol, Term) or symbol.kind != "max" or factor != 1:
        return points
    varying = [a for a in symbol.args if a != Affine()]
    return varying[0] if len(varying) == 1 and len(symbol.args) == 2 else points
