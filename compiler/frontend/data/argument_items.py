"""Lists of arrays or objects that are arguments and change: the caller's items among others.

    def push(history, u):               history: places, at first 0, 1, ..., n - 1: the caller's items
        history[0] += 1.0               scf.if chooses among the caller's arrays, and the store's rows
        history.append(u.copy())        place n: the first row of the store that is used

What such a list holds are places, as in `places`. The store of the items has no rows for those that are
`given`: a place below their number stands for the caller's very array or object, chosen as an item of a list
of known length is (`fixed_items`). So nothing is copied, who else has the item sees what becomes of it, and
kept items come back as themselves: the recipe of such a list are places, and the rows that are new.

A list of numbers in lists that is an argument has rows for them, which the caller's lists are filled from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue

from ....dialects import array
from ...analysis.affine import equal_numbers
from .. import library
from ..calling import recursion
from ..joins import ArrayT, Mismatch, ObjectT, Template, coerced, join, template_of
from ..library import shapes
from ..values import Array, Item, Record, Row, Scalar, Struct, Tuple, Value
from . import fixed_items, list_changes, list_rows, lists
from .lists import FixedList, ListObject, Reference

if TYPE_CHECKING:
    from ..emitter import Emitter
    from .places import PlacedLists

LEAF = "leaf"


@dataclass
class Given:
    """What a store has of the caller's: its first items, which are no rows. `rows`: whether it has others."""

    rows: bool
    items: list[Value] = field(default_factory=list[Value])
    extents: Sequence[SSAValue] | None = None
    """Those of all arrays, where they have one shape."""
    references: list[Reference] = field(default_factory=list[Reference])

    def place_of(self, value: Value) -> int | None:
        """The place of an array or object that is among them."""
        for k, item in enumerate(self.items):
            if item is value:
                return k
            if isinstance(item, Array) and isinstance(value, Array) and item == value:
                return k
        return None

    def array(self, e: Emitter, store: ListObject, at: SSAValue) -> Array:
        """The array at a place: one of the caller's, or a row."""
        found, known = self.items, array.constant_value(at)
        if known is not None and known < len(found):
            item = found[known]
            assert isinstance(item, Array)
            return item
        if self.rows:
            found = [*found, lists.row_item(e, store, at)]
        form = reduce(join, map(template_of, found))
        assert isinstance(form, ArrayT)
        place, at = at, self.position(e, at)
        (made,) = fixed_items.chosen(e, at, [coerced(e, item, form) for item in found])
        store.loaded[made] = 0, place
        e.dims |= {(made, d): n for d, n in enumerate(self.extents or ())}
        return Array(made, form.dtype)

    def position(self, e: Emitter, at: SSAValue) -> SSAValue:
        """Which of the given items something is, or the one behind them for a row."""
        if not self.rows:
            return at
        return e.emit(arith.MinSIOp(at, e.index(len(self.items))))


# Arguments.


def changing_list(lowering: PlacedLists, number: int, items: Sequence[Value]) -> ListObject:
    """The list that is argument `number`, and changes: it holds places of the caller's `items`."""
    made = lowering.argument_object(number)
    lowering.facts.placed.add(made.kind)
    held = [placed(lowering, made, item, (number, k)) for k, item in enumerate(items)]
    for value in held:
        lowering.learn(made, lowering.item_form(value))
    if not lowering.facts.changed:
        for value in held:
            list_changes.append(lowering.e, made, value)
    return made


def finish(lowering: PlacedLists, values: Sequence[Value]) -> None:
    """All arguments, of which the `values` are the numbers and arrays, are there: make the stores what they
    are before the function begins."""
    objects = lowering.objects
    for k, value in enumerate(values):
        if isinstance(value, Array):
            objects.leaves.setdefault(value.memref, k)
    for key, references in lowering.facts.given.items():
        store = lowering.store(key)
        for reference in references:
            of = values[reference[1]] if reference[0] == LEAF else objects.arguments[reference[0]]
            assert isinstance(of, Array | Record)
            place(lowering, store, of, reference)
    for store in list(lowering.lists.values()):
        if store.given is None or not store.given.items:
            continue
        count = lowering.e.index(len(store.given.items))
        if store.given.rows:
            list_changes.grow(lowering.e, store, lowering.e.index(0), count)
            clear_pools(lowering.e, store, count)
        else:
            lists.set_length(lowering.e, store, count)
        store.given.extents = common_extents(lowering, store)


def placed(lowering: PlacedLists, made: ListObject, item: Value, reference: Reference) -> Value:
    """An item of the caller's as one of the list's: what has an identity as its place in a store."""
    numbers = iter(range(256))

    def visit(part: Value, of: Reference) -> Value:
        match part:
            case FixedList():
                raise refused(lowering)
            case Array() | Record():
                key = lowering.representative((made.kind, next(numbers)))
                store = lowering.store(key)
                return Row(store, lowering.e.index(place(lowering, store, part, of)))
            case Tuple(items):
                parts = enumerate(items)
                return replace(part, items=tuple(visit(p, (*of, k)) for k, p in parts))
            case Struct(items, names):
                parts = zip(items, names, strict=True)
                return replace(part, items=tuple(visit(p, (*of, k)) for p, k in parts))
            case _ if lists.is_storable(part):
                return part
            case _:
                raise refused(lowering)

    return visit(item, reference)


def refused(lowering: PlacedLists) -> Exception:
    return lowering.refusal(
        None,
        "a list of lists of arrays, or of items of several kinds, is an argument and changes: not compiled",
        "change its arrays in place (l[0][...] = v), loop over its items, or return a new list",
    )


def place(lowering: PlacedLists, store: ListObject, part: Array | Record, of: Reference) -> int:
    """The place of an array or object of the caller's, where it is put if it is new."""
    given = store.given = store.given or Given(store.keeps in lowering.facts.with_rows)
    known = given.place_of(part)
    if known is not None:
        return known
    at = len(given.items)
    learn(lowering, store, part)
    given.items.append(part)
    given.references.append(of)
    index = lowering.e.index(at)
    if isinstance(part, Array):
        store.loaded[part.memref] = 0, index
    else:
        item = Item(-1, part.cls, part.name, None, store, index)
        lowering.objects.moved[part.serial] = item
    return at


def learn(lowering: PlacedLists, store: ListObject, part: Array | Record) -> None:
    """The store has items of this form; of objects without rows, only the class is of interest."""
    assert store.given is not None
    form: Template = template_of(part)
    if isinstance(part, Record):
        if part.cls is dict:
            raise refused(lowering)
        held = lowering.snapshot(part, lowering.frame.env, mark=False)
        whole = template_of(held)
        names = held.names
        form = ObjectT(getattr(whole, "items", ()), part.cls, names)
    if store.given.rows:
        lowering.learn(store, form)
        return
    first = store.item or form
    same = isinstance(first, ArrayT) and isinstance(form, ArrayT) and is_alike(first, form)
    if isinstance(first, ObjectT) and isinstance(form, ObjectT):
        same = first.cls is form.cls
    if not same:
        raise refused(lowering)
    store.item = first


def common_extents(lowering: PlacedLists, store: ListObject) -> Sequence[SSAValue] | None:
    """The extents of all arrays of a store, where they have one shape; with rows, those have it, too."""
    e = lowering.e
    assert store.given is not None
    arrays = [a.memref for a in store.given.items if isinstance(a, Array)]
    if store.given.rows:
        if not arrays or store.uneven or not store.buffers:
            return None
        if not all(list_rows.has_shape(e, store, store.buffers[0], a) for a in arrays):
            lowering.facts.uneven.add(store.key)
            raise recursion.Again
        return lists.extents_of(e, store.buffers[0])[1:]
    found = [e.extents(a) for a in arrays]
    first, *others = found or [()]
    alike = all(
        equal_numbers(a, b) or shapes.agree(e, a, b)
        for other in others
        for a, b in zip(other, first, strict=True)
    )
    return first if found and alike else None


def clear_pools(e: Emitter, store: ListObject, count: SSAValue) -> None:
    """The rows in the place of the caller's items, of lists whose arrays lie in pools, are empty."""
    zero = e.constant(0, "i64").ssa
    numbers = [b for buffer, pool in store.own_shapes.items() for b in (buffer, *pool.extents)]
    for buffer in numbers:
        with lists.counted(e, count) as i:
            e.insert(memref.StoreOp.get(zero, buffer, [i]))


def is_alike(a: ArrayT, b: ArrayT) -> bool:
    return a.dtype == b.dtype and a.type.get_num_dims() == b.type.get_num_dims()


def require_given(lowering: PlacedLists, store: ListObject, part: Value) -> None:
    """The caller's own array or object is put into the store of a list that is an argument: the next build
    has it there from the start."""
    key = store.keeps
    owner = None if key is None else lowering.lists.get(key[0][0])
    if key is None or owner is None or owner.origin is None:
        return
    reference: Reference | None = None
    if isinstance(part, Array) and not part.whole and part.memref in lowering.objects.leaves:
        reference = LEAF, lowering.objects.leaves[part.memref]
    elif isinstance(part, Record) and part.origin is not None and part.cls is not dict:
        reference = (part.origin,)
    if reference is not None:
        lowering.facts.given.setdefault(key, {})[reference] = None
        raise recursion.Again


def require_places(lowering: PlacedLists, value: Record) -> None:
    """An object of the caller's moves: the argument list that has it holds places in the next build."""
    for number, one in lowering.objects.arguments.items():
        if isinstance(one, FixedList) and any(item is value for item in one.items):
            lowering.facts.changed_arguments.add(number)
            raise recursion.Again


def require_rows(lowering: PlacedLists, store: ListObject) -> None:
    """Something is put into a store: the next build knows that not all of its items are the caller's."""
    if store.given is not None and not store.given.rows:
        assert store.keeps is not None
        lowering.facts.with_rows.add(store.keeps)
        raise recursion.Again


# Objects.


def given_of(lowering: Any, item: Item) -> Given | None:
    store = lowering.lists.get(item.store.key)
    return None if store is None else store.given


def known_record(given: Given, at: SSAValue) -> Record | None:
    """The caller's object that an item certainly is."""
    known = array.constant_value(at)
    if known is None or known >= len(given.items):
        return None
    found = given.items[known]
    assert isinstance(found, Record)
    return found


def field_of(
    lowering: Any, given: Given, item: Item, key: Any, of_row: Callable[[], Value | None]
) -> Value | None:
    """A field of one of the caller's objects, or of one in the store; None where there is none."""
    if (record := known_record(given, item.at)) is not None:
        return lowering.own_field(record, key)
    found = [lowering.own_field(record, key) for record in given.items]
    if given.rows:
        found.append(of_row())
    values = [value for value in found if value is not None]
    if not values:
        return None
    try:
        if len(values) == len(found):
            return fixed_items.among(lowering, values, given.position(lowering.e, item.at))
        what = "of not all"
    except Mismatch as mismatch:
        what = str(mismatch)
    raise lowering.refusal(
        None,
        f"`{key}` of objects in a list that is an argument and changes: {what}",
        "give all objects the same fields, of the same types",
    )


def give_field(
    lowering: Any, given: Given, item: Item, key: Any, value: Value, to_row: Callable[[], None]
) -> None:
    """Assign to a field of one of the caller's objects, or of one in the store."""
    if (record := known_record(given, item.at)) is not None:
        lowering.own_give(record, key, value)
        return
    e = lowering.e

    def assign_where(test: SSAValue, assign: Callable[[], None]) -> None:
        here = Scalar("py_bool", test, None, 0, 1)
        lowering.conditional(here, (assign, lambda: None), frozenset())

    tests = [e.emit(arith.CmpiOp(item.at, e.index(k), "eq")) for k in range(len(given.items))]
    is_new = isinstance(value, Array) and value.memref not in lowering.named_arrays()

    def own() -> Value:
        """The value: an array without other references is either a field or, copied, a row."""
        return library.call(e, np.copy, [value], {}) if is_new and given.rows else value

    for test, one in zip(tests, given.items, strict=True):
        assign_where(test, lambda one=one: lowering.own_give(one, key, own()))
    if given.rows:
        assign_where(e.emit(arith.CmpiOp(item.at, e.index(len(tests)), "sge")), to_row)
