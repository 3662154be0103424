"""Lists of arrays, lists and objects that the program restructures: lists of places over a store.

    hist = [x]                      hist@store, a list of arrays as in `list_rows`, that only grows;
    hist.append(y)                  hist, a list of ints: the places of its items in the store
    hist.pop(0)                     a shift of ints
    last = hist[-1]                 the row hist@store[hist[-1]]

So whatever lists of numbers do, these lists do, and an item keeps its place in the store however often it
moves. A list of which items are inserted, deleted, sorted, or put into other lists becomes one in the next
build (`Facts.placed`); lists that are appended to, popped and read stay as they are. Items are `RowT`, as
names for items are; of a tuple each part that has an identity is one, and each has a store of its own.

What is stored under its own place is seen through every list that has the place: `l[i] = l[j]` and
`m.append(l[k])` share the item, as in Python. Lists that exchange items have one store, that of the list
which was made first, and so lives as long as any of them (`Facts.same_store`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import NoReturn

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from ....dialects import array
from .. import library
from ..calling import recursion
from ..joins import ArrayT, ChoiceT, ListT, ObjectT, RowT, Template, TupleT, describe
from ..values import (
    EXTENT_MAX,
    Array,
    Item,
    Record,
    Reference,
    Row,
    Scalar,
    SliceValue,
    Static,
    Struct,
    Tuple,
    Value,
)
from . import argument_items, list_changes, list_rows, lists
from .lists import FixedList, Kind, ListKey, ListObject, StoreKey
from .object_lists import ObjectLists

OTHER_EXTENTS = (
    "all the input array dimensions except for the concatenation axis must match exactly"
)
OTHER_SHAPES = "all input arrays must have the same shape"


class PlacedLists(ObjectLists):
    """Lowers what concerns lists that know their items by their places."""

    def is_placed(self, seq: ListObject) -> bool:
        return seq.kind in self.facts.placed

    def use_places(self, seq: ListObject) -> NoReturn:
        """The next build knows the items of this list by their places."""
        self.facts.placed.add(seq.kind)
        raise recursion.Again

    # Stores.

    def introduce(self, made: ListObject) -> None:
        super().introduce(made)
        if made.item is not None:
            made.item = self.in_stores(made, made.item)

    def in_stores(self, seq: ListObject, form: Template) -> Template | None:
        """The form of the items, what has an identity as places in the stores of this build."""
        if isinstance(form, ListT) and not self.is_placed(seq):
            rows = (seq.key, True)
            if form.item is None or rows not in self.facts.placed:
                return form
            return ListT(self.with_places(rows, form.item))
        return self.with_places(seq.kind, form) if self.is_placed(seq) else form

    def with_places(self, kind: Kind, form: Template) -> Template:
        numbers = count()

        def visit(t: Template) -> Template:
            match t:
                case ArrayT() | ObjectT() | ListT() | RowT():
                    store = self.store((kind, next(numbers)))
                    if store.item is None and not isinstance(t, RowT):
                        self.facts.lists[store.key] = store.item = t
                    return replace(t, store=store) if isinstance(t, RowT) else RowT(store)
                case TupleT(items):
                    return replace(t, items=tuple(map(visit, items)))
                case ChoiceT() if any(isinstance(leaf, ArrayT) for leaf in lists.leaves_of(t)):
                    what = f"the items of this list are {describe(t)}, and change places"
                    raise self.refusal(None, what, "keep items of one type in a list")
                case _:
                    return t

        return visit(form)

    def store(self, key: StoreKey) -> ListObject:
        """The list that keeps the items of others."""
        kind, _ = key = self.representative(key)
        name = name_of(key)
        owner, found = self.list_here(kind[0]), self.lists.get(name)
        if found is not None and found.home is owner.home:
            return found
        length = self.e.cell(IndexType(), "kept")
        with self.e.at(owner.home):
            start = self.e.constant(0, "py_float").ssa.owner
            assert isinstance(start, Operation)
            made = ListObject(name, owner.home, owner.home, start, length, keeps=key)
            lists.set_length(self.e, made, self.e.index(0))
        self.introduce(made)
        if owner.origin is not None and not isinstance(made.item, ListT):
            made.given = argument_items.Given(key in self.facts.with_rows)
        return made

    def representative(self, key: StoreKey) -> StoreKey:
        while key in self.facts.same_store:
            key = self.facts.same_store[key]
        return key

    def unite(self, a: StoreKey, b: StoreKey) -> NoReturn:
        """Two lists have an item in common: the next build keeps theirs in one store."""
        self.facts.placed |= {a[0], b[0]}
        known = list(self.lists)
        stores = {self.representative(key) for key in (a, b)}
        if any(kind[0] not in known for kind, _ in stores):
            raise self.gone()
        first, *others = sorted(stores, key=lambda key: known.index(key[0][0]))
        for other in others:
            self.facts.same_store[other] = first
        raise recursion.Again

    def key_of(self, owner: ListObject, number: int = 0) -> StoreKey:
        """The store that a list is, or the one that its items will be in."""
        return owner.keeps or (owner.kind, number)

    # The form of items.

    def learn(self, target: ListObject, template: Template) -> None:
        self.agree(target.kind, template)
        super().learn(target, template)

    def agree(self, kind: Kind, template: Template) -> None:
        """Places that come from elsewhere are those of this list's store."""
        numbers = count()
        for t in with_identity(template):
            number = next(numbers)
            match t:
                case RowT(store):
                    mine, theirs = (kind, number), self.key_of(store)
                    if kind not in self.facts.placed or self.representative(
                        mine
                    ) != self.representative(theirs):
                        self.unite(mine, theirs)
                case ListT(inner) if inner is not None and not kind[1]:
                    self.agree((kind[0], True), inner)
                case _:
                    pass

    # Values as items.

    def append_value(self, target: ListObject, value: Value) -> None:
        super().append_value(target, self.as_item(target, value))

    def movable(self, seq: ListObject, value: Value) -> Value:
        """A value as an item of a list in which items move, and which knows its form now."""
        self.let_move(seq)
        value = self.as_item(seq, value)
        if not self.is_placed(seq) and any(True for _ in parts_with_identity(value)):
            self.use_places(seq)
        self.learn(seq, self.item_form(value))
        return value

    def as_item(self, target: ListObject, value: Value) -> Value:
        """What an item is: in a placed list, places for what has an identity."""
        if isinstance(value, Array) and value.rank == 0:
            value = library.subscript(self.e, value, ())
        if not self.is_placed(target):
            if self.needs_places(target, value):
                self.use_places(target)
            return value
        numbers = count()

        def visit(part: Value) -> Value:
            if isinstance(part, FixedList):
                self.growing(part)
            match part:
                case Reference():
                    return self.of_store(self.store((target.kind, next(numbers))), part)
                case Array() | Record() | Row() | Static(ListObject()):
                    return self.kept(self.store((target.kind, next(numbers))), part)
                case Tuple(items) | Struct(items):
                    return replace(part, items=tuple(map(visit, items)))
                case _:
                    return part

        return visit(value)

    def needs_places(self, target: ListObject, value: Value) -> bool:
        """True for a value that a list which owns its items cannot hold."""
        if target.origin is not None and any(
            isinstance(part, Array | Record) for part in parts_with_identity(value)
        ):
            return True
        inner = None if isinstance(value, Row) else self.list_of(value)
        if inner is not None and lists.holds_arrays(inner):
            self.use_places(inner)
        if isinstance(value, Tuple | Struct):
            parts = parts_with_identity(value)
            return any(target.row is not None or not isinstance(p, Array) for p in parts)
        if isinstance(value, Record):
            return target.row is not None or isinstance(self.item_now(value), Item)
        if isinstance(value, Array):
            return target.row is not None
        if isinstance(value, Reference):
            return True
        return isinstance(value, Row) or (
            inner is not None and (inner.row is not None or target.row is not None)
        )

    def kept(self, store: ListObject, part: Value) -> Row:
        """The place of something in a store, where it is put if it is new."""
        known = self.known_place(part)
        if known is not None:
            owner, number, at = known
            if owner.key != store.key:
                self.unite(self.key_of(owner, number), self.key_of(store))
            return Row(store, at)
        argument_items.require_given(self, store, part)
        argument_items.require_rows(self, store)
        at = lists.length(self.e, store).ssa
        self.append_value(store, part)
        return Row(store, at)

    def of_store(self, store: ListObject, part: Reference) -> Reference:
        """An object or None, as an item of a list of places in the store of the object."""
        (_, item) = part.options
        assert isinstance(item, Item)
        if item.store != store:
            self.unite(self.key_of(item.store), self.key_of(store))
        return part

    def known_place(self, part: Value) -> tuple[ListObject, int, SSAValue] | None:
        """Which part of which item of which list something is."""
        if isinstance(part, Record):
            part = self.item_now(part)
        match part:
            case Row(store, at) | Item(store=store, at=at):
                return self.list_here(store.key), 0, at
            case Array(memref):
                for owner in list(self.lists.values()):
                    if memref in owner.loaded:
                        return owner, *owner.loaded[memref]
                return None
            case Static(ListObject()):
                inner = self.list_of(part)
                return None if inner is None or inner.row is None else self.known_place(inner.row)
            case _:
                return None

    # Items of arrays, overwritten.

    def store_array(self, seq: ListObject, at: SSAValue, value: Value) -> bool:
        """`l[i] = value` of arrays that stay where they are: the row is overwritten.

        Whoever has the old array would see that; who has `value` would see what becomes of the row. Where
        somebody may, the next build knows the items by their places.
        """
        arrays = [p for p in parts_with_identity(value) if isinstance(p, Array)]
        if isinstance(seq.item, ListT | ObjectT) or not lists.holds_arrays(seq) or not arrays:
            return False
        if (
            seq.row is not None
            or seq.uneven
            or any(self.known_place(a) is not None for a in arrays)
        ):
            self.use_places(seq)
        self.learn(seq, self.item_form(value))
        assert seq.item is not None
        if self.facts.changed:
            return True
        parts = lists.parts_of(self.e, value, seq.item)
        for buffer, part in zip(lists.buffers_of(self.e, seq), parts, strict=True):
            if isinstance(part, Array) and not list_rows.has_shape(
                self.e, seq, buffer, part.memref
            ):
                self.use_places(seq)
        for buffer, op in lists.store_item(self.e, seq, at, value):
            copied = list_rows.note_copy(self.e, seq, buffer, op, moves=seq.kind)
            seq.replaced.append(copied)
        return True

    def copy_rows(self, target: ListObject, fresh: ListObject) -> bool:
        """`l = [f(a) for a in l]` in a loop, of arrays that stay where they are: all rows are overwritten."""
        known = target.item is None or isinstance(target.item, ArrayT)
        if not isinstance(fresh.item, ArrayT) or not known or self.is_placed(target):
            return False
        if fresh.uneven or target.uneven:
            return False
        if self.with_rules:  # a gradient wants the old ones again
            return False
        self.learn(target, fresh.item)
        if self.facts.changed:
            return True
        if target.key not in self.facts.popped:
            self.facts.popped.add(target.key)
            raise recursion.Again
        lists.ready(self.e, target)
        e, buffer = self.e, target.buffers[0]
        row = lists.row(e, fresh.buffers[0], e.index(0))
        try:
            list_rows.tell_shape(e, target, buffer, row)
        except list_rows.ShapeUnknown:
            self.use_places(target)
        list_rows.refuse_other_shape(e, row, buffer)
        n = lists.length(e, fresh).ssa
        list_changes.clear(e, target)
        target.taken_over = True
        list_changes.grow(e, target, e.index(0), n)
        source, goal = lists.views(e, fresh, n)[0], lists.views(e, target, n)[0]
        op = lists.copy(e, source, goal.memref)
        target.replaced.append(list_rows.note_copy(e, target, buffer, op, moves=target.kind))
        return True

    # Reading.

    def gathered(self, seq: ListObject) -> list[Array]:
        """The items as arrays: those that are known by their places, from their rows."""
        kept = seq.item.store if isinstance(seq.item, RowT) else seq
        if isinstance(kept.item, ListT) and (
            kept.ragged or not isinstance(kept.item.item, lists.ScalarT)
        ):
            raise self.refusal(
                None, "an array of lists of several lengths", "make arrays of the lists in it"
            )
        has_others = kept.given is not None and kept.given.items
        if (kept.uneven or has_others) and isinstance(kept.item, ArrayT):
            return [self.stacked(seq, kept.item)]
        if kept is seq and kept.uneven:
            raise self.refusal(
                None,
                "an array of tuples with arrays of several shapes",
                "make arrays of their items",
            )
        if kept is seq:
            return lists.views(self.e, seq)
        if isinstance(kept.item, ObjectT) or kept.item is None:
            raise self.refusal(None, "an array of objects", "make arrays of their fields")
        (places,) = lists.views(self.e, seq)
        rows = library.subscript(self.e, lists.views(self.e, kept)[0], (places,))
        made = library.call(self.e, np.asarray, [rows], {})
        assert isinstance(made, Array)
        return [made]

    def concatenated(self, seq: ListObject, axis: int) -> Array | None:
        """Arrays of several shapes one behind the other; None where all have one."""
        kept = seq.item.store if isinstance(seq.item, RowT) else seq
        if not kept.uneven or not isinstance(kept.item, ArrayT):
            return None
        e, total, end = self.e, self.e.cell(IndexType(), "total"), self.e.cell(IndexType(), "end")
        n, zero = lists.length(e, seq).ssa, e.index(0)
        for cell in (total, end):
            e.store(zero, cell)

        def row(k: SSAValue) -> tuple[Array, Sequence[SSAValue]]:
            found = lists.load_item(e, seq, k)
            assert isinstance(found, Array)
            return found, e.extents(found.memref)

        rest = row(zero)[1]
        with lists.counted(e, n) as k:
            _, extents = row(k)
            for d, (have, want) in enumerate(zip(extents, rest, strict=True)):
                if d != axis:
                    other = e.emit(arith.CmpiOp(have, want, "ne"))
                    e.insert(array.RaiseIfOp(other, "ValueError", OTHER_EXTENTS))
            e.store(e.emit(arith.AddiOp(e.load(total), extents[axis])), total)
        whole = [*rest[:axis], e.load(total), *rest[axis + 1 :]]
        made = library.allocate(e, whole, kept.item.dtype)
        with lists.counted(e, n) as k:
            one, extents = row(k)
            start = e.load(end)
            stop = e.emit(arith.AddiOp(start, extents[axis]))
            a, b = (Scalar("py_int", v, None, 0, EXTENT_MAX) for v in (start, stop))
            part = *[SliceValue(None, None, None)] * axis, SliceValue(a, b, None)
            goal = library.subscript(e, made, part)
            assert isinstance(goal, Array)
            lists.copy(e, one, goal.memref)
            e.store(stop, end)
        return made

    def stacked(self, seq: ListObject, form: ArrayT) -> Array:
        """Arrays that may have several shapes as the rows of one; ValueError where they have."""
        e = self.e
        n = lists.length(e, seq).ssa
        first = lists.load_item(e, seq, e.index(0))
        assert isinstance(first, Array)
        extents = e.extents(first.memref)
        made = library.allocate(e, [n, *extents], form.dtype)
        with lists.counted(e, n) as i:
            row = lists.load_item(e, seq, i)
            assert isinstance(row, Array)
            for have, want in zip(e.extents(row.memref), extents, strict=True):
                other = e.emit(arith.CmpiOp(have, want, "ne"))
                e.insert(array.RaiseIfOp(other, "ValueError", OTHER_SHAPES))
            position = Scalar("py_int", i, None, 0, EXTENT_MAX)
            goal = library.subscript(e, made, (position,))
            if isinstance(goal, Array):
                lists.copy(e, row, goal.memref)
        return made


def name_of(key: StoreKey) -> ListKey:
    """The key of the list that a store is."""
    ((path, node, lowered), is_rows), number = key
    return (*path, -1 - 2 * number - is_rows), node, lowered


def with_identity(t: Template) -> Iterator[Template]:
    """The forms of the parts of an item that are arrays, lists or objects."""
    match t:
        case ArrayT() | ObjectT() | ListT() | RowT():
            yield t
        case TupleT(items):
            for item in items:
                yield from with_identity(item)
        case _:
            pass


def parts_with_identity(value: Value) -> Iterator[Value]:
    """The parts of a value that are arrays, lists or objects."""
    match value:
        case Array() | Record() | Row() | Static(ListObject()) | FixedList() | Reference():
            yield value
        case Tuple(items) | Struct(items):
            for item in items:
                yield from parts_with_identity(item)
        case _:
            pass
