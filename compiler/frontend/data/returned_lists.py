"""Lists that the caller gets: their items as a few arrays, from which the runtime makes them again.

    [(0.5, u), (1.5, v)]        ["py_float", {"array": "f64"}]      array([0.5, 1.5]), array([u, v])
    [[1.0], [2.0, 3.0]]         {"rows": "py_float", ...}           array([1, 2]), array([1.0, 2.0, 3.0])
    [P(0.5), P(1.5)]            {"object": P, "names": ["x"], ...}  array([0.5, 1.5])

The *form* says what one item is; there is one array for each number or array of an item, with an axis more,
whatever the length (`runtime.list_columns` reads it). Each array in the list is one of its own then. Whether
it is that in Python, too, `refuse_shared_rows` asks: an array that the caller has already, or finds in the
result twice, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import BlockArgument, Operation, SSAValue

from ....dialects import array
from ...diagnostics import CompileError, Span
from .. import library
from ..bindings.roots import roots, writes
from ..emitter import Emitter
from ..joins import ArrayT, FixedT, ListT, RowT, ScalarT, Template, TupleT
from ..values import Array, NoneValue, Static, Value
from . import lists, pools
from .list_methods import Lists
from .list_rows import Copies
from .lists import ListObject, RowCopy
from .nested_lists import LENGTHS, OFFSETS, load_number, part, pools_of
from .references import reference

if TYPE_CHECKING:
    from ..context import Rebinding

Form = Any
TWICE = "mutad: an array, list or object is returned twice, in lists of which items are moved: append copies"


def columns(
    lowering: Lists, seq: ListObject, *, copied: bool = True
) -> tuple[Form | None, list[Array]]:
    """The form of the items, and their arrays: copies, or the list's own memory where that is possible."""
    if (items := lists.form_read(seq)) is None:
        return None, []
    found = Columns(lowering, copied)
    form = form_of(lowering, seq, items)
    return form, found.of(seq, None)


@dataclass
class Columns:
    """Makes the arrays of items."""

    lowering: Lists
    copied: bool

    def of(self, seq: ListObject, places: Array | None) -> list[Array]:
        """The items of a list, or those at some places of it."""
        if isinstance(seq.item, ListT):
            return rows(self, seq, seq.item, places)
        found = list[Array]()
        views = lists.views(self.lowering.e, seq)
        leaves = [] if seq.item is None else lists.leaves_of(seq.item)
        buffers = lists.buffers_of(self.lowering.e, seq)
        for leaf, view, buffer in zip(leaves, views, buffers, strict=True):
            if isinstance(leaf, ArrayT) and seq.uneven:
                found += self.one_behind_the_other(seq, leaf, buffer, places)
            elif isinstance(leaf, RowT):
                self.lowering.handed_out.add(leaf.store.key)
                inner = self.taken(view, places)
                self.require_once(leaf.store, inner)
                found += self.of(leaf.store, inner)
            else:
                found.append(self.taken(view, places))
        if not found:
            raise self.lowering.refusal(
                None, "a list whose items hold no numbers is returned", "return their number"
            )
        return found

    def one_behind_the_other(
        self, seq: ListObject, leaf: ArrayT, buffer: SSAValue, places: Array | None
    ) -> list[Array]:
        """Arrays of several shapes: their extents along each axis, and the elements of all of them."""
        e = self.lowering.e
        count = lists.length(e, seq).ssa if places is None else e.extents(places.memref)[0]
        shapes = [library.allocate(e, [count], "i64") for _ in range(leaf.type.get_num_dims())]
        total, end = e.cell(IndexType(), "total"), e.cell(IndexType(), "end")
        for cell in (total, end):
            e.store(e.index(0), cell)

        def row(k: SSAValue) -> SSAValue:
            at = k if places is None else number_at(e, places, k)
            return lists.row_of(e, seq, buffer, at)

        with lists.counted(e, count) as k:
            extents = e.extents(row(k))
            for shape, n in zip(shapes, extents, strict=True):
                e.insert(memref.StoreOp.get(e.emit(arith.IndexCastOp(n, i64)), shape.memref, [k]))
            advance(e, total, pools.size_of(e, extents))
        flat = library.allocate(e, [e.load(total)], leaf.dtype)
        with lists.counted(e, count) as k:
            one = row(k)
            extents = e.extents(one)
            goal = pools.view(e, pools.Pool(flat.memref, ()), e.load(end), extents)
            lists.copy(e, Array(one, leaf.dtype), goal)
            advance(e, end, pools.size_of(e, extents))
        return [*shapes, flat]

    def taken(self, view: Array, places: Array | None) -> Array:
        """What is at some places (None: everything), as an array of its own."""
        e = self.lowering.e
        if places is None and not self.copied:
            return view
        value: Value = view if places is None else library.subscript(e, view, (places,))
        made = library.call(e, np.copy if places is None else np.asarray, [value], {})
        assert isinstance(made, Array)
        return made

    def require_once(self, store: ListObject, places: Array) -> None:
        """NotImplementedError where an item is met that has been before: Python's lists would share it."""
        e, made = self.lowering.e, self.lowering.met_items
        if not self.copied:
            return
        if store.key not in made:
            kinds: dict[str, Value] = {"dtype": Static(np.bool_)}
            marks = library.call(e, np.zeros, [lists.length(e, store)], kinds)
            assert isinstance(marks, Array)
            made[store.key] = marks
        marks = made[store.key].memref
        with lists.counted(e, e.extents(places.memref)[0]) as k:
            at = number_at(e, places, k)
            met = e.emit(memref.LoadOp.get(marks, [at]))
            e.insert(array.RaiseIfOp(met, "NotImplementedError", TWICE))
            e.insert(memref.StoreOp.get(e.constant(True, "b1").ssa, marks, [at]))


def number_at(e: Emitter, numbers: Array, k: SSAValue) -> SSAValue:
    return e.emit(arith.IndexCastOp(e.emit(memref.LoadOp.get(numbers.memref, [k])), IndexType()))


def form_of(lowering: Lists, seq: ListObject, t: Template) -> Form:
    match t:
        case ScalarT(type_):
            return type_
        case ArrayT(type_, dtype):
            return (
                {"arrays": dtype, "rank": type_.get_num_dims()} if seq.uneven else {"array": dtype}
            )
        case ListT(None):
            return {"rows": None, "even": False}
        case RowT(store) if store.item is not None:
            return form_of(lowering, store, store.item)
        case ListT(item) if item is not None and not lists.holds_places(item):
            return {"rows": form_of(lowering, seq, item), "even": not seq.ragged}
        case TupleT(items, cls, names):
            return form_of_tuple([form_of(lowering, seq, item) for item in items], cls, names)
        case FixedT(NoneValue()):
            return {"static": reference(None)}
        case FixedT(Static(str() as text)):
            return {"static": reference(text)}
        case _:
            raise lowering.refusal(
                None,
                "a list of such items is returned",
                "return lists of numbers, arrays, lists, tuples and objects of them",
            )


def form_of_tuple(items: list[Form], cls: type | None, names: Sequence[str] | None) -> Form:
    if names is not None:
        return {"object": reference(cls), "names": list(names), "items": items}
    return items if cls is None else {"tuple": reference(cls), "items": items}


# Lists of lists.


def rows(columns: Columns, seq: ListObject, item: ListT, places: Array | None) -> list[Array]:
    """Of lists of one length the tables of their numbers; else their lengths, and the numbers of all of them,
    one list behind the other."""
    e = columns.lowering.e
    if item.item is not None and not seq.ragged:
        return [columns.taken(view, places) for view in lists.views(e, seq)]
    count = lists.length(e, seq).ssa if places is None else e.extents(places.memref)[0]
    if not seq.ragged:
        return [filled(e, library.allocate(e, [count], "i64"))]
    kept = part(e, lists.buffers_of(e, seq)[LENGTHS], e.index(0), lists.length(e, seq).ssa)
    lengths = Columns(columns.lowering, True).taken(Array(kept, "i64"), places)
    if item.item is None:
        return [lengths]
    total, end = e.cell(IndexType(), "total"), e.cell(IndexType(), "end")
    for cell in (total, end):
        e.store(e.index(0), cell)
    with lists.counted(e, count) as k:
        advance(e, total, number_at(e, lengths, k))
    pools, size = pools_of(e, seq), e.load(total)
    flat = [
        library.allocate(e, [size], lists.dtype_of_leaf(leaf))
        for leaf in lists.leaves_of(item.item)
    ]
    with lists.counted(e, count) as k:
        n = number_at(e, lengths, k)
        offset = load_number(e, seq, OFFSETS, k if places is None else number_at(e, places, k))
        at = e.load(end)
        for pool, target in zip(pools, flat, strict=True):
            lists.copy(e, Array(part(e, pool, offset, n), ""), part(e, target.memref, at, n))
        advance(e, end, n)
    return [lengths, *flat]


def filled(e: Emitter, lengths: Array) -> Array:
    """Zeros: the lengths of lists that are all empty."""
    zeros = library.call(e, np.zeros_like, [lengths], {})
    assert isinstance(zeros, Array)
    return zeros


def advance(e: Emitter, cell: SSAValue, by: SSAValue) -> None:
    e.store(e.emit(arith.AddiOp(e.load(cell), by)), cell)


# What else is that array.


def refuse_shared_rows(
    e: Emitter,
    handed_out: Collection[ListObject],
    returned: Collection[Array],
    rebindings: Collection[Rebinding],
    order: dict[Operation, int],
    outermost: Callable[[Operation, frozenset[SSAValue]], Operation],
) -> None:
    """Refuse the arrays in lists that the caller gets which are, in Python, arrays that it has besides."""
    others = {r for a in returned for r in roots(e, a.memref)}
    own = [op for r in rebindings for op in r.copies]
    copies = Copies(e, [one for seq in handed_out for one in seq.copies], own)
    found = list[tuple[frozenset[SSAValue], frozenset[SSAValue]]]()
    for one in (one for one in copies.rows if one.at in order):
        arrays = copies.of_row[one]
        start = outermost(one.at, arrays)
        if start is not one.at:
            earlier = before_rebinding(e, one, start, arrays, rebindings, order)
            if earlier is None:
                refuse(one.span, "each iteration puts the same array in a list that is returned")
            arrays |= earlier
        if any(isinstance(r, BlockArgument) for r in arrays):
            refuse(one.span, "an array of the caller is put in a list that is returned")
        anywhere = arrays | copies.elsewhere(one)
        if anywhere & others or any(arrays & b or a & anywhere for a, b in found):
            refuse(
                one.span, "this array is put in a list that is returned, and is in the result twice"
            )
        found.append((arrays, anywhere))


def before_rebinding(
    e: Emitter,
    one: RowCopy,
    loop: Operation,
    arrays: frozenset[SSAValue],
    rebindings: Collection[Rebinding],
    order: dict[Operation, int],
) -> frozenset[SSAValue] | None:
    """The arrays besides new ones that a variable is where each iteration puts it in a list: none after it
    has been bound anew, else what it is before the loop. None where an iteration may not bind it anew."""
    for r in rebindings:
        mine = roots(e, r.buffer)
        if r.trips is None or r.trips.owner is not loop or mine != arrays:
            continue
        inside = [op for op in order if op.parent_op() is loop and op is not one.at]
        bound = (op for op in inside if any(mine & roots(e, w) for w in writes(op)))
        if any(order[op] < order[one.at] for op in bound):
            return frozenset()
        return roots(e, r.initial)
    return None


def refuse(span: Span | None, what: str) -> NoReturn:
    raise CompileError(span, what, "append a copy, .append(x.copy()), if it may be another array")
