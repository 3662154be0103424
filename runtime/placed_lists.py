"""Lists that a call leaves as places in stores: what CPython's lists, and cotangents, are in this form.

A list that is an argument and changed comes back as places: of the caller's items, which the store has first,
or of new ones behind them, in the order in which they are met (`compiler/frontend/data/placed_results.py`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .keys import is_same_view
from .list_columns import LEAF, Form, items_of, parts_of, width
from .structures import layout_of, set_field

Store = list[Any]
"""Which items of which arguments the caller has given, the form of the others, how many of those are left out
at the beginning, and of which argument the first of them are the lists."""


def item_given(objects: Any, leaves: Sequence[Any], number: Any, *path: Any) -> Any:
    """An argument, an item of one, or a part of that."""
    if number == LEAF:
        return leaves[path[0]]
    found = objects[number]
    for step in path:
        found = getattr(found, step) if isinstance(step, str) else found[step]
    return found


@dataclass
class Met:
    """A store, and its items that CPython has left in lists."""

    given: list[Any]
    form: Form | None
    new: list[Any] = field(default_factory=list[Any])

    def numbers(self, items: Sequence[Any]) -> Any:
        return np.array([self.number(item) for item in items], np.int64)

    def number(self, item: Any) -> int:
        for k, known in enumerate((*self.given, *self.new)):
            if known is item or is_one_array(known, item):
                return k
        self.new.append(item)
        return len(self.given) + len(self.new) - 1

    def parts(self) -> Iterator[Any]:
        yield from parts_of(self.form, self.new)


def is_one_array(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and is_same_view(a, b)


def met_stores(stores: Sequence[Store], objects: Any, leaves: Sequence[Any]) -> list[Met]:
    """The stores of a recipe, before the call."""
    return [
        Met(
            [item_given(objects, leaves, *one) for one in given],
            form,
            [] if copied is None else list(objects[copied]),
        )
        for given, form, _, copied in stores
    ]


@dataclass
class Pending:
    """The cotangents of the items of a list, or of one item, whose places are known at run time."""

    store: Bars
    bars: Sequence[Any]

    def hand_out(self, places: Any) -> None:
        if places is None:
            raise ValueError(
                "pullback: the function returns items of lists that are arguments and change: use vjp"
            )
        places = np.ravel(places).tolist()
        if len(places) != len(self.bars):
            raise ValueError(f"back: a list of {len(places)} items has {len(self.bars)} cotangents")
        for place, bar in zip(places, self.bars, strict=True):
            self.store.add(place, bar)


@dataclass
class Bars:
    """The cotangents of the items of a store."""

    count: int
    form: Form | None
    copied: bool
    """Whether the first of the others are the caller's lists."""
    given: dict[int, Any] = field(default_factory=dict[int, Any])
    """Of the caller's items, by place."""
    new: dict[int, Any] = field(default_factory=dict[int, Any])

    def numbers(self, items: Sequence[Any]) -> Pending:
        return Pending(self, items)

    def number(self, item: Any) -> Pending:
        return Pending(self, [item])

    def add(self, place: int, bar: Any) -> None:
        known = self.given if place < self.count else self.new
        known[place] = added(known[place], bar) if place in known else bar

    def parts(self, arrays: Sequence[Any] | None) -> Iterator[Any]:
        """The cotangents of the new items, which the kernel has returned as these `arrays`."""
        if self.form is None or not self.new or arrays is None:
            yield from [None] * width(self.form)
            return
        if self.copied:  # some lists of the caller's may be in no list any more
            rows = enumerate(items_of(self.form, iter(arrays)))
            found = [self.new.get(k, nothing(row)) for k, row in rows]
        else:
            found = [self.new[k] for k in sorted(self.new)]
        yield from parts_of(self.form, found)


def nothing(item: Any) -> Any:
    """The cotangent of what nothing depends on."""
    if isinstance(item, list | tuple):
        parts: Sequence[Any] = item
        return type(item)(map(nothing, parts))
    return 0.0 if isinstance(item, float) else item


def added(a: Any, b: Any) -> Any:
    """The sum of two cotangents of one thing: objects field by field, and what is no float as it is."""
    if isinstance(a, np.ndarray | float | np.floating):
        return a + b
    layout = layout_of(type(a))
    if layout is None or layout.is_tuple:
        return a
    made = copy.copy(a)
    for name in layout.names(a):
        set_field(made, name, added(getattr(a, name), getattr(b, name)))
    return made
