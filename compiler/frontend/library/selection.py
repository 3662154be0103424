"""What index arrays and masks select, and the loops over it.

`select` splits the subscripts of `a[i, idx, 1:]` in two: a view that the basic ones make, and the
index arrays along its axes, which broadcast together. What reads or writes the selection is one loop
nest over the index arrays (`visit_rows`), which reads the subscripts, makes them ready as any others
(`array.index`), and moves one element, or one row as an `array.map`. `library.gather` says what moves.

A mask is the index arrays that `np.nonzero` makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Region, SSAValue

from ....dialects import array
from .. import checks
from ..emitter import Emitter
from ..values import IR_TYPE, Array, NoneValue, Scalar, SliceValue, Tuple, Value
from . import indexing, reductions, shapes, views
from .dtypes import INTEGERS, cast, element_type_cast, truth
from .maps import Operand, allocate, extents_of, load, map_into, mapped, operand, same
from .stacking import of_tuple

SHAPES = "shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
MASK_SHAPE = (
    "boolean index did not match indexed array along axis {axis}; size of axis is {{}} but size of"
    " corresponding boolean axis is {{}}"
)

Point = list[SSAValue]
"""One subscript for each axis."""


@dataclass(frozen=True)
class Index:
    """An index array along one axis; `trusted` where a mask made it, so that it is in range."""

    array: Array
    axis: int
    trusted: bool


@dataclass(frozen=True)
class Selection:
    """The elements that index arrays select.

    `indices[d]` runs along axis d of `array`, or is None where the whole axis is taken. The index
    arrays have the extents `shape`, which stand at position `first` of the result's.
    """

    array: Array
    indices: tuple[Index | None, ...]
    shape: tuple[SSAValue, ...]
    first: int

    @property
    def whole_axes(self) -> list[int]:
        return [d for d, index in enumerate(self.indices) if index is None]

    @property
    def index_arrays(self) -> list[Index]:
        return [index for index in self.indices if index is not None]

    @property
    def rows(self) -> list[int]:
        """The whole axes behind the index arrays: one step of the loops moves all of them."""
        return self.whole_axes[self.first :]

    def extents(self, e: Emitter) -> list[SSAValue]:
        own = shapes.extents_of(e, self.array.memref)
        rest = [own[d] for d in self.whole_axes]
        return [*rest[: self.first], *self.shape, *rest[self.first :]]


def is_fancy(indices: Sequence[Value]) -> bool:
    """True where an array, or a tuple inside the tuple, is among the subscripts."""
    return any(isinstance(i, Tuple) or (isinstance(i, Array) and i.rank > 0) for i in indices)


def index_arrays_of(
    e: Emitter, indices: Sequence[Value]
) -> tuple[list[Value], dict[SSAValue, SSAValue]]:
    """The subscripts with each mask as its index arrays, and the extent of the mask for each of these."""
    given: list[Value] = []
    masks: dict[SSAValue, SSAValue] = {}
    for index in indices:
        if isinstance(index, Tuple):
            index = sequence(e, index)
        if not isinstance(index, Array) or index.rank == 0:
            given.append(index)
        elif index.dtype == "b1":
            mask = index
            parts = nonzero(e, mask)
            given.extend(parts)
            extents = shapes.extents_of(e, mask.memref)
            masks |= {p.memref: n for p, n in zip(parts, extents, strict=True)}
        elif index.dtype in INTEGERS:
            given.append(index)
        else:
            e.fail(
                "arrays used as indices must be of integer (or boolean) type",
                way_out="convert them with .astype(np.int64)",
            )
    return given, masks


def sequence(e: Emitter, items: Tuple) -> Array:
    """An index array written out: `[0, 2]`, which is one of ints even where it is empty."""
    return of_tuple(e, items, None) if items.items else allocate(e, [e.index(0)], "i64", "indices")


def select(e: Emitter, a: Array, indices: Sequence[Value]) -> Selection:
    """The selection that `a[indices]` is."""
    given, masks = index_arrays_of(e, indices)
    own = shapes.extents_of(e, a.memref)
    zero, one = e.index(0), e.index(1)
    offsets, axes, extents, steps = Point(), list[int](), Point(), Point()
    chosen: list[Index | None] = []
    advanced: list[bool] = []
    for index in indexing.expand(e, given, a.rank):
        axis = len(offsets)
        advanced.append(not isinstance(index, NoneValue | SliceValue))
        if isinstance(index, NoneValue):
            offset, walk = None, (-1, one, zero)
        elif isinstance(index, SliceValue):
            offset, extent, step = indexing.slice_bounds(e, index, own[axis])
            walk = (axis, extent, step)
        elif isinstance(index, Array) and index.rank > 0:
            offset, walk = zero, (axis, own[axis], one)
        else:
            ready = indexing.as_index(e, index)
            offset, walk = indexing.ready_index(e, ready, own[axis], axis), None
        if offset is not None:
            offsets.append(offset)
        if walk is not None:
            axes.append(walk[0])
            extents.append(walk[1])
            steps.append(walk[2])
            is_array = isinstance(index, Array)
            chosen.append(Index(index, axis, index.memref in masks) if is_array else None)
        if isinstance(index, Array) and index.memref in masks:
            require_mask(e, masks[index.memref], own[axis], axis)
    view = a
    if not indexing.is_whole(own, offsets, axes, extents, steps):
        view = views.view(e, a, offsets, axes, extents, steps)
    return broadcast_together(e, view, chosen, position(advanced))


def position(advanced: Sequence[bool]) -> int:
    """Where the index arrays' axes go: in place where they stand together, else in front."""
    first = advanced.index(True)
    last = len(advanced) - 1 - advanced[::-1].index(True)
    return first if all(advanced[first : last + 1]) else 0


def broadcast_together(
    e: Emitter, view: Array, chosen: Sequence[Index | None], first: int
) -> Selection:
    given = [index for index in chosen if index is not None]
    own = [shapes.extents_of(e, index.array.memref) for index in given]
    shape = shapes.broadcast_extents(e, own, SHAPES, exception="IndexError")
    seen = tuple(
        index and replace(index, array=views.broadcast_to(e, index.array, shape))
        for index in chosen
    )
    return Selection(view, seen, shape, first)


def require_mask(e: Emitter, extent: SSAValue, target: SSAValue, axis: int) -> None:
    """IndexError where the mask's extent is not that of its axis."""
    if not shapes.equal(extent, target):
        differs = shapes.compare(e, "ne", extent, target)
        message = MASK_SHAPE.replace("{axis}", str(axis)).replace("{{}}", "{}")
        e.insert(array.RaiseIfOp(differs, "IndexError", message, [target, extent]))


# --- Loops over a selection -------------------------------------------------------------------


def over(
    e: Emitter,
    extents: Sequence[SSAValue],
    visit: Callable[[Point], None],
    before: Sequence[SSAValue] = (),
) -> None:
    """Loops over the extents, in C order: `visit` emits the body, given the point."""
    if not extents:
        visit(list(before))
        return
    body = Block(arg_types=[IndexType()])
    body.args[0].name_hint = "ijkl"[min(len(before), 3)]
    with e.at(body):
        over(e, extents[1:], visit, [*before, body.args[0]])
        e.insert(array.YieldOp())
    e.insert(array.LoopOp(extents[0], [], body), "trips")


def subscript_at(
    e: Emitter, s: Selection, index: Index, d: int, point: Point, *, checked: bool
) -> SSAValue:
    """The subscript along axis `d` that `index` holds at a point of `s.shape`, ready for memory."""
    given = element_type_cast(e, load(e, index.array, point), "py_int")
    if index.trusted:
        return given.ssa
    extent = shapes.extents_of(e, s.array.memref)[d]
    unchecked = not checked or not e.boundscheck
    return e.emit(array.IndexOp(given.ssa, extent, index.axis, "any", unchecked=unchecked), "at")


def check(e: Emitter, s: Selection) -> None:
    """IndexError where a subscript is out of range: one index array after the other, as NumPy does."""
    for d, index in enumerate(s.indices):
        if index is None or index.trusted or not e.boundscheck:
            continue
        if e.catch is not None:
            check_all(e, s, index, d)
            continue
        over(
            e,
            s.shape,
            lambda point, i=index, d=d: drop(subscript_at(e, s, i, d, point, checked=True)),
        )


def check_all(e: Emitter, s: Selection, index: Index, d: int) -> None:
    """The same where a handler may catch the error: the loops run to their end, and then it is raised."""
    extent = shapes.extents_of(e, s.array.memref)[d]
    wrong, first = e.cell(IR_TYPE["py_bool"], "wrong"), e.cell(IR_TYPE["py_int"], "first")
    e.store(e.constant(False, "py_bool").ssa, wrong)
    e.store(e.index(0), first)

    def visit(point: Point) -> None:
        given = element_type_cast(e, load(e, index.array, point), "py_int").ssa
        before = e.load(wrong)
        e.store(e.emit(arith.SelectOp(before, e.load(first), given)), first)
        here = checks.outside(e, given, extent, "any")
        e.store(e.emit(arith.OrIOp(before, here)), wrong)

    over(e, s.shape, visit)
    message = checks.out_of_bounds(index.axis)
    e.insert(array.RaiseIfOp(e.load(wrong), "IndexError", message, [e.load(first), extent]))


def drop(_: SSAValue) -> None:
    """A subscript that is made only to be checked."""


def visit_rows(
    e: Emitter, s: Selection, checked: bool, move: Callable[[Point, Point], None]
) -> None:
    """`move(point, offsets)` at each point of the loops; the offsets are those of `s.array`'s row."""
    own = shapes.extents_of(e, s.array.memref)
    outer = [own[d] for d in s.whole_axes[: s.first]]

    def visit(point: Point) -> None:
        walked = iter(point[: s.first])
        at = point[s.first :]
        offsets = [
            subscript_at(e, s, index, d, at, checked=checked)
            if index is not None
            else e.index(0)
            if d in s.rows
            else next(walked)
            for d, index in enumerate(s.indices)
        ]
        move(point, offsets)

    over(e, [*outer, *s.shape], visit)


def row(e: Emitter, a: Array, offsets: Point, axes: Sequence[int]) -> Array:
    """The view of `a` along `axes`, from `offsets` on."""
    own = shapes.extents_of(e, a.memref)
    return views.view(e, a, offsets, axes, [own[d] for d in axes], [e.index(1)] * len(axes))


def row_of(e: Emitter, x: Operand, point: Point) -> Operand:
    """What is left of `x` where its first axes stand at `point`; a number is the same everywhere."""
    if isinstance(x, Scalar):
        return x
    axes = range(len(point), x.rank)
    return operand(e, row(e, x, [*point, *[e.index(0)] * len(axes)], axes))


def move_row(e: Emitter, x: Operand, into: Array) -> None:
    """Store `x` in the row `into`; a row of rank 0 is an element."""
    if into.rank:
        map_into(e, [x], [into.dtype], same, into.memref, extents_of(e, into))
        return
    assert isinstance(x, Scalar)
    value = element_type_cast(e, x, into.dtype).ssa
    e.insert(memref.StoreOp.get(value, into.memref, []))


# --- Where a mask is true ---------------------------------------------------------------------


def nonzero(e: Emitter, mask: Array) -> tuple[Array, ...]:
    """`np.nonzero(mask)`: an index array for each axis, as long as there are true elements."""
    extents = shapes.extents_of(e, mask.memref)
    dtype = mask.dtype

    def counted(e: Emitter, xs: list[SSAValue]) -> SSAValue:
        return cast(e, truth(e, xs[0], dtype), "b1", "i64")

    total = reductions.whole_sum(e, mapped(e, [mask], (dtype, "i64"), extents, counted))
    count = element_type_cast(e, total, "py_int").ssa
    found = tuple(allocate(e, [count], "i64", "found") for _ in extents)
    cell = e.cell(IR_TYPE["py_int"], "position")
    e.store(e.index(0), cell)

    def visit(point: Point) -> None:
        true = Block()
        test = truth(e, load(e, mask, point).ssa, dtype)
        with e.at(true):
            k = e.load(cell)
            for part, i in zip(found, point, strict=True):
                e.insert(memref.StoreOp.get(cast(e, i, "py_int", "i64"), part.memref, [k]))
            e.store(e.emit(arith.AddiOp(k, e.index(1))), cell)
            e.insert(scf.YieldOp())
        e.insert(scf.IfOp(test, [], Region(true), Region()))

    over(e, extents, visit)
    return found
