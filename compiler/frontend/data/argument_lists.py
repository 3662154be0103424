"""Lists that cross the boundary: arguments become the lists of the frontend, and results Python's again.

A list of numbers comes as one array for each number of an item (`mutad.runtime.list_columns`), and is a list
like any other from there on: the buffers are filled from the arrays. What the function does to the
length or the items of such a list it returns as one more result, which the caller's list is given::

    def push(l, v):                     push(l : memref<?xf64>, v)
        l.append(v)                       the items of a list that is l with v behind them
                                        recipe: the result is None; l[:] is the first

A list of such lists is one in compiled code, too; the lists in it stay the caller's own, and get their items
back one by one. Lists of arrays or objects are `FixedList`: of a length that is known, they are taken apart
like tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from ....dialects import array
from .. import library
from ..calling.recursion import Again
from ..emitter import Emitter
from ..joins import ListT, RowT, ScalarT, Template, TupleT
from ..values import Array, Row, Static, Value
from . import argument_items, assigned_items, list_changes, list_rows, lists
from .lists import FixedList, ListObject
from .nested_lists import (
    LENGTHS,
    OFFSETS,
    ROOMS,
    check_room,
    end_of,
    part,
    pools_of,
    store_number,
)


class Rows(Protocol):
    """The form of items that are lists."""

    @property
    def form(self) -> Any: ...
    @property
    def even(self) -> bool: ...


if TYPE_CHECKING:
    from .places import PlacedLists

ITEMS = "[:]"
"""The key under which all items of a list are assigned."""
CALLER = (-1, "")
"""The name that the caller's lists have, beside those that the function gives them."""


def template_of_form(form: Any) -> Template:
    """What one item is."""
    if isinstance(form, str):
        return ScalarT(form)
    return TupleT(tuple(template_of_form(one) for one in form))


def argument_list(lowering: PlacedLists, number: int, form: Any, values: Iterator[Value]) -> Value:
    """The list that is argument `number`, of which the arrays are the next `values`."""
    made = lowering.argument_object(number)
    made.names.add(CALLER)
    lowering.mark_shared(made)
    if hasattr(form, "even") and lowering.is_placed(made):
        placed_rows(lowering, made, form, values)
    elif hasattr(form, "even"):
        nested_list(lowering, made, form, values)
    elif form is not None:
        template = template_of_form(form)
        found = [next(values) for _ in lists.leaves_of(template)]
        arrays = [a for a in found if isinstance(a, Array)]
        lowering.learn(made, template)
        if len(made.buffers) == len(arrays):
            count = lowering.e.extents(arrays[0].memref)[0]
            list_changes.extend(lowering.e, made, arrays, count)
    made.changed = isinstance(made.item, RowT)
    lowering.objects.lists[number] = made
    return Static(made)


def fixed_or_changing(
    lowering: PlacedLists, number: int, name: str, items: Sequence[Value]
) -> Value:
    """The list of anything but numbers that is argument `number`: of a length that is known, unless the
    program changes it."""
    if number not in lowering.facts.changed_arguments:
        if number in lowering.facts.assigned_arguments:
            return assigned_items.live_list(lowering, number, name, items)
        return FixedList(tuple(items), origin=number)
    made = argument_items.changing_list(lowering, number, items)
    made.names.add(CALLER)
    lowering.mark_shared(made)
    made.changed = False
    lowering.objects.lists[number] = made
    return Static(made)


# Lists of lists.


def nested_list(
    lowering: PlacedLists, made: ListObject, form: Rows, values: Iterator[Value]
) -> None:
    """Fill a list of lists: those of one length come as tables, others as their lengths and the numbers of
    all of them, one list behind the other."""
    e, inner = lowering.e, form.form
    template = None if inner is None else template_of_form(inner)
    leaves = [] if template is None else lists.leaves_of(template)
    lengths = None if form.even else next(values)
    arrays = [a for a in (next(values) for _ in leaves) if isinstance(a, Array)]
    lowering.learn(made, ListT(template))
    if lowering.facts.changed:
        return
    lists.ready(e, made)
    if isinstance(lengths, Array):
        if not made.ragged:
            lowering.facts.ragged.add(made.key)
            raise Again
        count = e.extents(lengths.memref)[0]
        fill_ragged(e, made, arrays, count, lambda k: length_at(e, lengths.memref, k))
        return
    count, each = e.extents(arrays[0].memref)
    if made.ragged:
        flat = [library.call(e, np.ravel, [a], {}) for a in arrays]
        fill_ragged(e, made, [a for a in flat if isinstance(a, Array)], count, lambda _: each)
        return
    for buffer, source in zip(lists.buffers_of(e, made), arrays, strict=True):
        list_rows.tell_extents(e, made, buffer, [each])
        zero, one = e.index(0), e.index(1)
        target = array.ViewOp(buffer, [zero, zero], [0, 1], [count, each], [one, one])
        lists.copy(e, source, e.emit(target, buffer.name_hint))
    list_changes.grow(e, made, e.index(0), count)


def placed_rows(
    lowering: PlacedLists, made: ListObject, form: Rows, values: Iterator[Value]
) -> None:
    """Fill a list of lists of which items move: the lists are the first rows of its store."""
    e, store = lowering.e, lowering.store((made.kind, 0))
    if store.copied is not None:
        raise lowering.refusal(
            None,
            "lists move from one argument to another",
            "append a copy, l.append(row.copy()), if it may be another list",
        )
    store.given = None
    nested_list(lowering, store, form, values)
    if lowering.facts.changed:
        return
    count = lists.length(e, store).ssa
    store.copied = number_of(made), count
    lowering.learn(made, RowT(store))
    list_changes.grow(e, made, e.index(0), count)
    with lists.counted(e, count) as i:
        lists.store_item(e, made, i, Row(store, i))


def number_of(made: ListObject) -> int:
    assert made.origin is not None
    return made.origin


def length_at(e: Emitter, lengths: SSAValue, k: SSAValue) -> SSAValue:
    return e.emit(arith.IndexCastOp(e.emit(memref.LoadOp.get(lengths, [k])), IndexType()))


def fill_ragged(
    e: Emitter,
    made: ListObject,
    flat: Sequence[Array],
    count: SSAValue,
    length: Callable[[SSAValue], SSAValue],
) -> None:
    """Fill a list of lists of lengths of their own with the numbers of all of them."""
    end = end_of(e, made)
    for pool, source in zip(pools_of(e, made), flat, strict=True):
        size = e.extents(source.memref)[0]
        check_room(e, size)
        lists.copy(e, source, part(e, pool, e.index(0), size))
    list_changes.grow(e, made, e.index(0), count)
    with lists.counted(e, count) as k:
        start = e.load(end)
        n = length(k)
        for column, number in ((LENGTHS, n), (OFFSETS, start), (ROOMS, n)):
            store_number(e, made, column, k, number)
        e.store(e.emit(arith.AddiOp(start, n)), end)
