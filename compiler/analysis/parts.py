"""Parts of one array: which share no element, and which together are another part.

A part is a `Region` of whole ranges and single subscripts. In `out[k:] = a[:n - k]; out[:k] = a[n - k:]` the
parts of `out` are the ranges `k : n - k` and `0 : k` (start, count): the second ends where the first
begins, and together they are `0 : n`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...dialects import array
from .affine import Affine, is_natural
from .footprint import Dimension, Footprints, Point, Range, Region


def part_of_map(footprints: Footprints, op: array.MapOp, memref: SSAValue) -> Region | None:
    """What a map touches of an array that it goes through, if it is such a part, each element once.

    (Along an axis with steps of 0 it goes through one again and again.)
    """
    points = [Range(Affine(), footprints.subscripts.affine(n), 1) for n in op.extents]
    region = footprints.through_views(memref, [*points])
    axes = sum(isinstance(dimension, Range) for dimension in region.dimensions)
    if not region.exact or axes != len(points):
        return None
    return region if all(map(is_whole, region.dimensions)) else None


def is_whole(dimension: Dimension) -> bool:
    """A subscript, or all of those from one to another."""
    return isinstance(dimension, Point) or (dimension.step == 1 and dimension.count is not None)


def are_apart(a: Region, b: Region) -> bool:
    """Whether along some axis one part of an array certainly ends before the other begins."""
    if a.base is not b.base:
        return False
    return any(
        is_before(x, y) or is_before(y, x) for x, y in zip(a.dimensions, b.dimensions, strict=True)
    )


def is_before(x: Dimension, y: Dimension) -> bool:
    return is_natural(bounds_of(y)[0] - bounds_of(x)[1])


def bounds_of(dimension: Dimension) -> tuple[Affine, Affine]:
    """The first subscript, and the one behind the last."""
    if isinstance(dimension, Point):
        return dimension.at, dimension.at + 1
    assert dimension.count is not None
    return dimension.start, dimension.start + dimension.count


def is_made_of(whole: Region, parts: Sequence[Region]) -> bool:
    """Whether the parts follow each other along one axis, from the beginning of `whole` to its end.

    (No part has fewer elements than none: what a view has along an axis is so much, or clamped.)
    """
    axes = {axis for part in parts for axis in axes_apart(whole, part)}
    if len(axes) != 1:
        return False
    (axis,) = axes
    at, end = bounds_of(whole.dimensions[axis])
    pieces = dict(bounds_of(part.dimensions[axis]) for part in parts)
    for _ in range(len(parts)):
        if at not in pieces:
            return False
        at = pieces.pop(at)
    return at == end and not pieces


def axes_apart(a: Region, b: Region) -> list[int]:
    """The axes along which two parts of an array are not alike."""
    return [d for d, (x, y) in enumerate(zip(a.dimensions, b.dimensions, strict=True)) if x != y]
