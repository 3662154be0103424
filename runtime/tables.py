"""Constant tables that a function finds outside: lists, dicts and sets, and the arrays in them.

Their items are constants of the compilation, as those of tuples are. But these can change, so each is
watched through its *contents*: a place whose value is one object as long as the table holds the very
objects that it held when it was read. Another item is then another constant, and the function is
compiled anew.

Tables of numbers may be indexed by what is known at run time: all numbers lie one after the other in one
array of each dtype, an input of which the code sees parts (`Tables.where`). An array in a table, or in a
tuple, is an input as any array from outside is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import is_
from typing import Any

import numpy as np

MOST_ITEMS = 4096
"""A table with more items is not compiled: looking at them would cost more than most calls do."""


class TooLarge(Exception):
    """A table has more items than that."""


FEWEST_NUMBERS = 4
"""Of shorter tables of numbers there is no array."""

Key = tuple[int, str]
Part = tuple[Any, tuple[Any, ...]]
"""A list, dict or set, and its items: of a dict the keys, then the values."""


def is_table(value: Any) -> bool:
    """True for what can change and is watched with its contents."""
    return type(value) in (list, dict, set)


def items_of(table: Any) -> tuple[Any, ...]:
    return (*table, *table.values()) if type(table) is dict else tuple(table)


def is_unchanged(part: Part) -> bool:
    """The table holds the objects that it held."""
    table, items = part
    if type(table) is set:
        return table == set(items)
    return len(items) == len(table) << (type(table) is dict) and all(
        map(is_, items_of(table), items)
    )


@dataclass(frozen=True, eq=False)
class State:
    """What a table, and the tables in it, held."""

    parts: tuple[Part, ...]

    def is_alike(self, other: State, alike: Callable[[Any, Any], bool]) -> bool:
        """The same items, compared by `alike`; tables in them are parts of their own."""
        pairs = zip(self.parts, other.parts, strict=False)
        return len(self.parts) == len(other.parts) and all(
            type(a) is type(b) and len(x) == len(y) and all(map(alike, leaves(x), leaves(y)))
            for (a, x), (b, y) in pairs
        )


def leaves(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """The items, of a table among them its class."""
    return tuple(
        type(item) if is_table(item) else leaves(item) if type(item) is tuple else item  # pyright: ignore
        for item in items
    )


class Contents:
    """Holds the place of a table's contents."""

    __slots__ = ("key", "state")

    def __init__(self, table: Any, parts: tuple[Part, ...]) -> None:
        self.key = id(table)
        self.state = State(parts)

    @property
    def contents(self) -> State | None:
        """The state while it lasts, then None."""
        return self.state if all(map(is_unchanged, self.state.parts)) else None


class Held:
    """Holds the place of an array that is part of a tuple or a table, or of all numbers of tables."""

    __slots__ = ("_array", "key")

    def __init__(self, key: int, array: Any) -> None:
        self.key = key
        self._array = array

    @property
    def array(self) -> Any:
        return self._array

    @array.setter
    def array(self, value: Any) -> None:
        """`gradient_check` puts another there: whoever holds this one sees it change."""
        if value is not self._array and self._array.flags.writeable:
            self._array[...] = value


class Default:
    """Holds the place of a default, which is a function's for good."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.key = id(value)
        self.value = value


PLACES = {"f64": -1, "i64": -2}
"""The keys of the arrays of all numbers; those of tables are addresses."""


@dataclass
class Tables:
    """The tables that are found outside, and what makes places of them."""

    numbers: dict[str, list[float]] = field(default_factory=lambda: {"f64": [], "i64": []})
    """By dtype, the numbers of all tables."""
    found: dict[int, tuple[str, int, int]] = field(default_factory=dict[int, tuple[str, int, int]])
    """By table or tuple of numbers: dtype, offset, length."""
    watched: dict[int, Any] = field(default_factory=dict[int, Any])
    """The tables, and the tuples that may hold some."""

    def add(self, value: Any, path: str) -> Iterator[tuple[Any, str, str, Any]]:
        """The places of what a value from outside holds: holder, name, path, what is there."""
        if id(value) in self.watched or not (is_table(value) or type(value) is tuple):
            return
        seen, arrays = list[Any](), list[tuple[str, Any]]()
        try:
            look(value, path, seen, arrays, 0)
        except (TooLarge, RecursionError):
            return
        for one in seen:
            self.watched[id(one)] = one
            self.note_numbers(one)
        parts = tuple((one, items_of(one)) for one in seen if is_table(one))
        if parts:
            holder = Contents(value, parts)
            yield holder, "contents", f"contents of {path}", holder.state
        for where, array in arrays:
            yield Held(id(array), array), "array", where, array

    def note_numbers(self, table: Any) -> None:
        kinds = set[type](map(type, table))
        if type(table) not in (list, tuple) or len(table) < FEWEST_NUMBERS:
            return
        dtype = "f64" if float in kinds else "i64"
        fits = float in kinds or all(-(2**63) <= n < 2**63 for n in table if type(n) is int)
        if kinds <= {int, float} and fits and id(table) not in self.found:
            self.found[id(table)] = dtype, len(self.numbers[dtype]), len(table)
            self.numbers[dtype] += table

    def arrays(self) -> Iterator[tuple[Any, str, str, Any]]:
        """The places of all numbers, as `add` gives them."""
        for dtype, numbers in self.numbers.items():
            if numbers:
                array = np.array(numbers, {"f64": np.float64, "i64": np.int64}[dtype])
                yield Held(PLACES[dtype], array), "array", f"<{dtype} in tables>", array

    def where(self, table: Any) -> tuple[Key, int, int] | None:
        """Where the numbers of a table are: the input's key, offset, length."""
        found = self.found.get(id(table))
        if found is None or self.watched.get(id(table)) is not table:
            return None
        dtype, offset, length = found
        return (PLACES[dtype], "array"), offset, length


def look(value: Any, path: str, seen: list[Any], arrays: list[tuple[str, Any]], count: int) -> int:
    """Note a table or tuple, those in it, and their arrays; how many items there are so far."""
    items = items_of(value)
    count += len(items)
    if count > MOST_ITEMS:
        raise TooLarge
    seen.append(value)
    for k, item in enumerate(items):
        if type(item) is np.ndarray:
            arrays.append((f"{path}[{k}]", item))
        elif is_table(item) or type(item) is tuple:
            count = look(item, f"{path}[{k}]", seen, arrays, count)
    return count
