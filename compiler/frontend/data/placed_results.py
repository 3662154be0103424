"""Lists that the caller gets, and of which some items are the caller's own.

    l.append(a); l.reverse()        l is a, l[1], l[0]: the places 2, 1, 0
                                    ["placed", 0, form], and the store 0 of the recipes: l[0], l[1], a

The recipe of such a list are places in a store, which is put together once, whoever has its items: those that
were given, then the rows that are in some list, in the order in which they are met. So an item that is in two
lists is one item, and what CPython leaves in them says what the places are (`runtime.list_columns.Stores`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import Block, Region, SSAValue

from .. import library
from ..joins import RowT, Template, TupleT
from ..values import EXTENT_MAX, Array, Item, Row, Scalar, SliceValue, Static, Value
from . import lists, returned_lists
from .lists import ListKey, ListObject
from .returned_lists import Columns, number_at

if TYPE_CHECKING:
    from ..emitter import Emitter
    from .list_methods import Lists


@dataclass
class Numbering:
    """The rows of a store that some list has: their numbers, those rows in order, and how many they are."""

    numbers: Array
    order: Array
    count: SSAValue


@dataclass
class StoreResult:
    """A store of which some recipe has items."""

    lowering: Lists
    number: int
    store: ListObject
    numbering: Numbering | None = None

    @property
    def given(self) -> int:
        return 0 if self.store.given is None else len(self.store.given.items)

    @property
    def has_rows(self) -> bool:
        return self.store.given is None or self.store.given.rows

    def numbered(self, at: SSAValue) -> SSAValue:
        """What the recipe calls a place: a row that is met for the first time gets the next number."""
        e = self.lowering.e
        if not self.has_rows or self.numbering is None:
            return at
        numbers, order, met = self.numbering.numbers, self.numbering.order, self.numbering.count
        made = e.cell(IndexType(), "place")
        e.store(at, made)
        given = e.index(self.given)
        block, fresh = Block(), Block()
        with e.at(block):
            known = e.emit(memref.LoadOp.get(numbers.memref, [at]))
            new = e.emit(arith.CmpiOp(known, e.constant(0, "i64").ssa, "eq"))
            with e.at(fresh):
                count = e.load(met)
                kept = e.emit(arith.IndexCastOp(at, i64))
                e.insert(memref.StoreOp.get(kept, order.memref, [count]))
                more = e.emit(arith.AddiOp(count, e.index(1)))
                e.store(more, met)
                kept = e.emit(arith.IndexCastOp(more, i64))
                e.insert(memref.StoreOp.get(kept, numbers.memref, [at]))
                e.insert(scf.YieldOp())
            e.insert(scf.IfOp(new, [], Region(fresh), Region()))
            number = number_at(e, numbers, at)
            last = e.emit(arith.SubiOp(e.index(self.given), e.index(1)))
            e.store(e.emit(arith.AddiOp(number, last)), made)
            e.insert(scf.YieldOp())
        is_row = e.emit(arith.CmpiOp(at, given, "sge"))
        e.insert(scf.IfOp(is_row, [], Region(block), Region()))
        return e.load(made)

    def all_numbered(self, places: Array) -> Array:
        e = self.lowering.e
        if self.numbering is None:
            return places
        count = e.extents(places.memref)[0]
        made = library.allocate(e, [count], "i64")
        with lists.counted(e, count) as k:
            number = self.numbered(number_at(e, places, k))
            kept = e.emit(arith.IndexCastOp(number, i64))
            e.insert(memref.StoreOp.get(kept, made.memref, [k]))
        return made

    def rows(self) -> tuple[Any, list[Array]]:
        """The form of the rows that were met, and their arrays."""
        lowering, e = self.lowering, self.lowering.e
        if self.store.item is None or not self.has_rows:
            return None, []
        form = returned_lists.form_of(lowering, self.store, self.store.item)
        if self.numbering is None:
            return form, Columns(lowering, False).of(self.store, None)
        met = Scalar("py_int", e.load(self.numbering.count), None, 0, EXTENT_MAX)
        order = library.subscript(e, self.numbering.order, (SliceValue(None, met, None),))
        assert isinstance(order, Array)
        lowering.handed_out.add(self.store.key)
        return form, Columns(lowering, True).of(self.store, order)


@dataclass
class PlacedResults:
    """The stores of which results have items."""

    lowering: Lists
    exact: bool = True
    """Whether rows are numbered as they are met; else all are handed over, under their own numbers."""
    stores: dict[ListKey, StoreResult] = field(default_factory=dict[ListKey, StoreResult])

    def of(self, store: ListObject) -> StoreResult:
        if store.key not in self.stores:
            lowering, number = self.lowering, len(self.stores)
            if not self.exact:
                self.stores[store.key] = StoreResult(lowering, number, store)
                return self.stores[store.key]
            n = lists.length(lowering.e, store)
            kinds: dict[str, Value] = {"dtype": Static(np.int64)}
            numbers = library.call(lowering.e, np.zeros, [n], kinds)
            assert isinstance(numbers, Array)
            order = library.allocate(lowering.e, [n.ssa], "i64")
            count = lowering.e.cell(IndexType(), "met")
            lowering.e.store(lowering.e.index(0), count)
            numbering = Numbering(numbers, order, count)
            if store.copied is not None:
                begin(lowering.e, numbering, store.copied[1])
            self.stores[store.key] = StoreResult(lowering, number, store, numbering)
        return self.stores[store.key]

    def items(self, seq: ListObject) -> tuple[Any, list[Array]]:
        """The form of the items of a list, and their arrays: of what has an identity, places."""
        assert seq.item is not None
        lowering, found = self.lowering, list[Array]()
        views = lists.views(lowering.e, seq)
        for leaf, view in zip(lists.leaves_of(seq.item), views, strict=True):
            if isinstance(leaf, RowT):
                found.append(self.of(leaf.store).all_numbered(view))
            elif not self.exact:
                found.append(view)
            else:
                made = library.call(lowering.e, np.copy, [view], {})
                assert isinstance(made, Array)
                found.append(made)
        return self.form(seq, seq.item), found

    def form(self, seq: ListObject, t: Template) -> Any:
        match t:
            case RowT(store):
                return {"placed": self.of(store).number}
            case TupleT(items, cls, names):
                inner = [self.form(seq, item) for item in items]
                return returned_lists.form_of_tuple(inner, cls, names)
            case _:
                return returned_lists.form_of(self.lowering, seq, t)

    def item(self, item: Item | Row) -> tuple[int, Scalar]:
        """In which store an item is, and where."""
        found = self.of(self.lowering.lists[item.store.key])
        return found.number, Scalar("py_int", found.numbered(item.at))

    def finish(self) -> Iterator[tuple[list[Any], Sequence[Array]]]:
        """For each store the items that were given, the form of its rows, how many of those to leave out, and
        the list whose lists the first of them are; the arrays of the rows."""
        for one in self.stores.values():
            form, arrays = one.rows()
            given = one.store.given
            references = [] if given is None else [list(r) for r in given.references]  # pyright: ignore
            left_out = 0 if self.exact or form is None else one.given
            copied = None if one.store.copied is None else one.store.copied[0]
            yield [references, form, left_out, copied], arrays


def begin(e: Emitter, numbering: Numbering, count: SSAValue) -> None:
    """The first rows are the caller's lists: all of them are met, in their order."""
    with lists.counted(e, count) as k:
        for buffer, n in (
            (numbering.order, k),
            (numbering.numbers, e.emit(arith.AddiOp(k, e.index(1)))),
        ):
            kept = e.emit(arith.IndexCastOp(n, i64))
            e.insert(memref.StoreOp.get(kept, buffer.memref, [k]))
    e.store(count, numbering.count)


def is_kept_apart(seq: ListObject) -> bool:
    """True for a list of which the caller must know the places: items of it are, or may be, the caller's."""
    if seq.item is None or not lists.holds_places(seq.item):
        return False
    stores = [leaf.store for leaf in lists.leaves_of(seq.item) if isinstance(leaf, RowT)]
    given = any(store.given is not None or store.copied is not None for store in stores)
    return seq.origin is not None or given
