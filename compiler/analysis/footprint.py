"""What part of its memory an access touches.

An access of a view is expressed in the subscripts of the view's base: with
`%v = array.view %a[%c1] dims [0] extents(%n) steps(%c2)`, the load `%v[%i]` touches `%a[2 * %i + 1]`,
and a map over `%v` touches `%a[1 + 2 * q], 0 <= q < %n`, printed `%a[1 : %n : 2]` (start, count, step).

Not handled: views with steps known only at run time, and diagonals; such a dimension is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ..rules import Access
from .affine import Affine, Extent, Subscripts, Symbol, Term, name, product
from .alias import AliasAnalysis
from .views import strip_casts


@dataclass(frozen=True)
class Point:
    """One subscript."""

    at: Affine

    def __str__(self) -> str:
        return str(self.at)


@dataclass(frozen=True)
class Range:
    """The subscripts `start + step * q` for `0 <= q < count`.

    Without a count, any `q >= 0`; without a step, any subscript at all.
    """

    start: Affine
    count: Affine | None
    step: int | None

    def __str__(self) -> str:
        if self.step is None:
            return "?"
        count = "?" if self.count is None else str(self.count)
        return f"{self.start} : {count}" + ("" if self.step == 1 else f" : {self.step}")


Dimension = Point | Range

ANYWHERE = Range(Affine(), None, None)
"""Any subscript."""


@dataclass(frozen=True)
class Region:
    """A part of `base`, a memref that is no view: the product of one set of subscripts for each dimension.

    `exact`: the access touches all of it (no dimension was widened, none of zero extent was dropped).
    """

    base: SSAValue
    dimensions: tuple[Dimension, ...]
    exact: bool = True

    @cached_property
    def _hash(self) -> int:
        return hash((self.base, self.dimensions, self.exact))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"{name(self.base)}[{', '.join(map(str, self.dimensions))}]"


def lanes_of(op: vector.LoadOp | vector.StoreOp) -> int:
    type_ = (op.result if isinstance(op, vector.LoadOp) else op.vector).type
    assert isinstance(type_, VectorType)
    return type_.get_shape()[0]


class Footprints:
    """Footprints of the accesses of one function, each computed once."""

    def __init__(self, alias: AliasAnalysis | None = None) -> None:
        self.alias = alias
        self.subscripts = Subscripts()
        self._known: dict[tuple[Operation, SSAValue, bool], Region] = {}

    def of(self, access: Access) -> Region:
        """The part of the base of `access.memref` that `access` may touch."""
        key = (access.op, access.memref, access.whole)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._compute(access)
        return found

    def entire(self, memref: SSAValue) -> Region:
        """All elements of `memref`, in its base."""
        assert isinstance(memref.type, MemRefType)
        rank = memref.type.get_num_dims()
        return self.through_views(memref, [self._all(memref, d) for d in range(rank)])

    def _all(self, memref: SSAValue, axis: int) -> Dimension:
        return Range(Affine(), self.subscripts.extent(memref, axis), 1)

    def _compute(self, access: Access) -> Region:
        match access.op:
            case _ if access.whole:
                return self.entire(access.memref)
            case memref.LoadOp() | memref.StoreOp() if access.memref is access.op.memref:
                indices: list[Dimension] = [
                    Point(self.subscripts.affine(i)) for i in access.op.indices
                ]
                return self.through_views(access.memref, indices)
            case vector.LoadOp() | vector.StoreOp() if access.memref is access.op.base:
                first = [self.subscripts.affine(i) for i in access.op.indices]
                lanes = Affine(constant=lanes_of(access.op))
                row = Range(first[-1], lanes, 1)
                return self.through_views(access.memref, [*map(Point, first[:-1]), row])
            case array.MapOp() if access.op.window and access.memref in access.op.ins:
                return self.entire(access.memref)
            case array.MapOp() if access.memref in (*access.op.ins, *access.op.outs):
                counts = [self.subscripts.affine(e) for e in access.op.extents]
                return self.through_views(
                    access.memref, [Range(Affine(), count, 1) for count in counts]
                )
            case _:
                return self.entire(access.memref)

    def through_views(self, memref: SSAValue, indices: list[Dimension]) -> Region:
        """Express subscripts of `memref` in those of its base."""
        exact = True
        while True:
            memref = strip_casts(memref)
            if isinstance(memref.owner, array.ViewOp):
                view = memref.owner
                exact = exact and all(
                    isinstance(i, Point) or d >= 0
                    for i, d in zip(indices, view.source_dims, strict=True)
                )
                indices = self._through(view, indices)
                memref = view.source
            elif isinstance(memref.owner, array.CollapseOp):
                indices = self._through_collapse(memref.owner, indices)
                memref = memref.owner.source
            elif self.alias is not None and (entered := self.alias.held(memref)) is not memref:
                memref = entered
            else:
                break
        exact = exact and all(isinstance(i, Point) or i.step is not None for i in indices)
        return Region(memref, tuple(indices), exact)

    def _through_collapse(
        self, view: array.CollapseOp, indices: list[Dimension]
    ) -> list[Dimension]:
        """All of the merged dimensions where the access touches all of them, else any part."""
        first, end = view.merged
        index, everything = indices[first], self._all(view.result, first)
        merged: list[Dimension] = (
            [self._all(view.source, d) for d in range(first, end)]
            if index == everything
            else [ANYWHERE] * (end - first)
        )
        return [*indices[:first], *merged, *indices[first + 1 :]]

    def _through(self, view: array.ViewOp, indices: list[Dimension]) -> list[Dimension]:
        source: list[Dimension] = [Point(self.subscripts.affine(o)) for o in view.offsets]
        nested = self._nested(view, indices)
        for d, walked in nested.items():
            source[d] = walked
        for index, d, step in zip(indices, view.source_dims, view.steps, strict=True):
            if d < 0 or d in nested:
                continue
            offset = source[d]
            if isinstance(offset, Range):
                source[d] = ANYWHERE
                continue
            stride = self.subscripts.affine(step)
            if isinstance(index, Point):
                source[d] = Point(offset.at + product(index.at, stride))
            elif index.step is None or not stride.is_constant:
                source[d] = ANYWHERE
            elif stride.constant == 0:
                source[d] = offset
            else:
                start = offset.at + index.start * stride.constant
                source[d] = Range(start, index.count, index.step * stride.constant)
        return source

    def _nested(self, view: array.ViewOp, indices: list[Dimension]) -> dict[int, Dimension]:
        """Source dimensions that several of the view's walk: a vector seen as a matrix."""
        found: dict[int, Dimension] = {}
        dims = view.source_dims
        for d in {d for d in dims if d >= 0 and dims.count(d) > 1}:
            start = self.subscripts.affine(view.offsets[d])
            ranges: list[tuple[Affine, Affine | None]] = []
            for index, step in ((indices[r], view.steps[r]) for r, w in enumerate(dims) if w == d):
                stride = self.subscripts.affine(step)
                if isinstance(index, Point):
                    start += product(index.at, stride)
                elif index.step is not None:
                    start += product(index.start, stride)
                    ranges.append((stride * index.step, index.count))
                else:
                    ranges.append((stride, None))
            walked = nest(start, ranges)
            found[d] = ANYWHERE if walked is None else walked
        return found


def nest(start: Affine, ranges: list[tuple[Affine, Affine | None]]) -> Dimension | None:
    """The subscripts that these steps and counts reach, where each step is past all of the next."""
    if not ranges:
        return Point(start)
    *outer, (step, count) = ranges
    if not step.is_constant or not step.constant:
        return None
    for further, n in reversed(outer):
        if n is None or count is None or further != count * step.constant:
            return None
        count = product(n, count)
    return Range(start, count, step.constant)


def footprint(access: Access) -> Region | None:
    """The part of its base that `access` touches; None where nothing at all is known of it."""
    region = Footprints().of(access)
    unknown = [isinstance(d, Range) and d.step is None for d in region.dimensions]
    return None if unknown and all(unknown) else region


def covers(write: Region, read: Region) -> bool:
    """True when the write certainly touches every element of the read; both of one moment."""
    if strip_casts(write.base) is not strip_casts(read.base) or not write.exact:
        return False
    return all(
        _covers_dimension(w, r) for w, r in zip(write.dimensions, read.dimensions, strict=True)
    )


def _covers_dimension(write: Dimension, read: Dimension) -> bool:
    if write == read:
        return isinstance(write, Point) or write.step is not None
    if isinstance(write, Point):
        return False
    if write.step != 1 or write.count is None:
        return False
    first, count = (
        (read.at, Affine(constant=1)) if isinstance(read, Point) else (read.start, read.count)
    )
    if (not isinstance(read, Point) and read.step != 1) or count is None:
        return False
    # An element of the read before the first, or after the last one, of the write?
    last = first + count - 1
    beyond = write.start + write.count
    return never_negative(first - write.start) and never_negative(beyond - 1 - last)


def never_negative(value: Affine) -> bool:
    """True when `value >= 0` follows: extents are not negative, `max(a, b) >= a`, `min(a, b) <= a`."""
    if value.constant >= 0 and all(
        factor > 0 and (isinstance(symbol, Extent) or symbol_is_clipped(symbol))
        for symbol, factor in value.terms.items()
    ):
        return True
    return any(never_negative(lower) for lower in lower_bounds(value))


def lower_bounds(value: Affine) -> Iterator[Affine]:
    """Numbers that `value` is never below: with an argument in the place of one maximum or minimum."""
    for symbol, factor in value.terms.items():
        if isinstance(symbol, Term) and symbol.kind == ("max" if factor > 0 else "min"):
            rest = value - Affine.of(symbol) * factor
            yield from (rest + arg * factor for arg in symbol.args)


def symbol_is_clipped(symbol: Symbol) -> bool:
    """`max(x, 0)`, the usual count."""
    return (
        isinstance(symbol, Term)
        and symbol.kind == "max"
        and any(a.is_constant and a.constant >= 0 for a in symbol.args)
    )


def disjoint(a: Region, b: Region) -> bool:
    """True when regions of one base, of one moment, certainly share no element."""
    if a.base is not b.base:
        return False
    for x, y in zip(a.dimensions, b.dimensions, strict=True):
        if isinstance(x, Point) and isinstance(y, Point):
            difference = x.at - y.at
            if difference.is_constant and difference.constant:
                return True
    for first, second in ((a, b), (b, a)):
        if any(_before(x, y) for x, y in zip(first.dimensions, second.dimensions, strict=True)):
            return True
    return False


def _before(x: Dimension, y: Dimension) -> bool:
    """Every subscript of `x` is smaller than every one of `y`."""
    bounds = [_bounds(x), _bounds(y)]
    last, first = bounds[0][1], bounds[1][0]
    return last is not None and first is not None and never_negative(first - last - 1)


def _bounds(x: Dimension) -> tuple[Affine | None, Affine | None]:
    if isinstance(x, Point):
        return x.at, x.at
    if x.step is None:
        return None, None
    last = None if x.count is None else x.start + (x.count - 1) * x.step
    return (x.start, last) if x.step > 0 else (last, x.start)
