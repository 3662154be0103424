"""Dicts with run-time keys, sets and deques, in Python: what compiled code makes in their place.

A table has its entries in lists, in the order in which they came, and a list of places by hash::

    memo[i] = v        known [7, 2]    held [0.5, 1.5]    slots [-1, -1, 1, -1, -1, -1, -1, 0]

So values, exceptions and gradients follow from what lists do. An entry that is deleted stays where it was,
marked as gone. As in `standard`, nothing here is called otherwise.
"""

# pyright: basic, reportOperatorIssue=false, reportIndexIssue=false, reportOptionalMemberAccess=false

from __future__ import annotations

import math
from typing import Any

from ..library.plans import hash_of_word
from ..library.written_matrices import refuse


def hash_of(key: Any) -> Any:
    """A number that equal keys have in common."""
    if isinstance(key, str):
        return hash_of_word(key)
    if isinstance(key, tuple):
        mixed = 1
        for part in key:
            mixed = (mixed * 1000003 ^ hash_of(part)) & 0x7FFFFFFF
        return mixed
    if isinstance(key, float):
        if not abs(key) < 1e15:
            return 0
        whole = math.floor(key)
        number = int(whole) if whole == key else int((key - whole) * 1e9)
    else:
        number = int(key)
    return (number ^ (number >> 16)) & 0x7FFFFFFF


class Table:
    """The entries of a dict or set, but for what a dict holds."""

    changed = ""

    def __init__(self) -> None:
        self.known: Any = []
        self.live: Any = []
        self.slots: Any = [-1] * 8
        self.count = 0

    def find(self, key: Any) -> Any:
        """The place of an entry, or -1."""
        mask = len(self.slots) - 1
        at = hash_of(key) & mask
        place = self.slots[at]
        while place >= 0 and not (self.live[place] and self.known[place] == key):
            at = (at + 1) & mask
            place = self.slots[at]
        return place

    def enter(self, key: Any) -> Any:
        """The place of a new entry."""
        if 3 * len(self.known) >= 2 * len(self.slots):
            self.spread()
        place = len(self.known)
        self.mark(key, place)
        self.known.append(key)
        self.live.append(True)
        self.count += 1
        return place

    def mark(self, key: Any, place: Any) -> None:
        mask = len(self.slots) - 1
        at = hash_of(key) & mask
        while self.slots[at] >= 0:
            at = (at + 1) & mask
        self.slots[at] = place

    def spread(self) -> None:
        """Twice as many slots."""
        for at in range(len(self.slots)):
            self.slots[at] = -1
            self.slots.append(-1)
        for place in range(len(self.known)):
            self.mark(self.known[place], place)

    def drop(self, place: Any) -> None:
        self.live[place] = False
        self.count -= 1

    def clear(self) -> None:
        for place in range(len(self.known)):
            self.live[place] = False
        self.count = 0

    def places(self) -> Any:
        """Where entries are, in order; what changes their number while a loop goes on is an error."""
        n = self.count
        for place in range(len(self.known)):
            if self.count != n:
                raise RuntimeError(self.changed)
            if self.live[place]:
                yield place
        if self.count != n:
            raise RuntimeError(self.changed)

    def __contains__(self, key: Any) -> Any:
        return self.find(key) >= 0

    def __len__(self) -> Any:
        return self.count


class Dict(Table):
    """A dict with run-time keys."""

    changed = "dictionary changed size during iteration"

    def __init__(self, items: Any = None) -> None:
        Table.__init__(self)
        self.held: Any = []
        if items is not None:
            self.update(items)

    def update(self, items: Any) -> None:
        if isinstance(items, dict):
            for key, value in items.items():
                self[key] = value
        else:
            for key, value in items:
                self[key] = value

    def __getitem__(self, key: Any) -> Any:
        place = self.find(key)
        if place < 0:
            raise KeyError(key)
        return self.held[place]

    def __setitem__(self, key: Any, value: Any) -> None:
        place = self.find(key)
        if isinstance(value, list):
            if place < 0:
                place = self.enter(key)
                self.held.append([])
            self.held[place] = value
        elif place >= 0:
            self.held[place] = value
        else:
            self.enter(key)
            self.held.append(value)

    def __delitem__(self, key: Any) -> None:
        self.pop(key)

    def get(self, key: Any, default: Any = None) -> Any:
        place = self.find(key)
        return default if place < 0 else self.held[place]

    def setdefault(self, key: Any, default: Any = None) -> Any:
        place = self.find(key)
        if place < 0:
            place = self.enter(key)
            self.held.append(default)
        return self.held[place]

    def pop(self, key: Any, *default: Any) -> Any:
        place = self.find(key)
        if len(default) == 1:
            if place < 0:
                return default[0]
        elif place < 0:
            raise KeyError(key)
        self.drop(place)
        return self.held[place]

    def popitem(self) -> Any:
        place = len(self.known) - 1
        while place >= 0 and not self.live[place]:
            place -= 1
        if place < 0:
            raise KeyError("popitem(): dictionary is empty")
        self.drop(place)
        return self.known[place], self.held[place]

    def __iter__(self) -> Any:
        for place in self.places():
            yield self.known[place]

    def keys(self) -> Any:
        for place in self.places():
            yield self.known[place]

    def values(self) -> Any:
        for place in self.places():
            yield self.held[place]

    def items(self) -> Any:
        for place in self.places():
            yield self.known[place], self.held[place]

    def copy(self) -> Any:
        made = Dict()
        for key, value in self.items():
            made[key] = value
        return made


class DefaultDict(Dict):
    """`collections.defaultdict`."""

    def __init__(self, factory: Any = None, items: Any = None) -> None:
        Dict.__init__(self, items)
        self.default_factory = factory

    def __getitem__(self, key: Any) -> Any:
        place = self.find(key)
        if place < 0:
            if self.default_factory is None:
                raise KeyError(key)
            place = self.enter(key)
            self.held.append(self.default_factory())
        return self.held[place]


class Counter(Dict):
    """`collections.Counter`."""

    def __init__(self, items: Any = None) -> None:
        Dict.__init__(self)
        if items is not None:
            self.update(items)

    def update(self, items: Any) -> None:
        for key in items:
            self[key] += 1

    def __getitem__(self, key: Any) -> Any:
        place = self.find(key)
        return 0 if place < 0 else self.held[place]

    def __delitem__(self, key: Any) -> None:
        place = self.find(key)
        if place >= 0:
            self.drop(place)

    def total(self) -> Any:
        return sum(self.values())

    def most_common(self, n: Any = None) -> Any:
        found = sorted(self.items(), key=lambda item: item[1], reverse=True)
        return found if n is None else found[:n]

    def elements(self) -> Any:
        for key, count in self.items():
            for _ in range(count):
                yield key


class Set(Table):
    """A set: what its order shows is refused, for CPython's follows from its own hashes."""

    changed = "Set changed size during iteration"

    def __init__(self, items: Any = None) -> None:
        Table.__init__(self)
        if items is not None:
            self.update(items)

    def in_any_order(self) -> Any:
        for place in self.places():
            yield self.known[place]

    def __iter__(self) -> Any:
        refuse("a loop over a set, whose order is CPython's own", "loop over sorted(s)")

    def pop(self) -> Any:
        refuse("`pop` of a set takes an item that CPython chooses", "keep a list beside it")

    def update(self, items: Any) -> None:
        for key in unordered(items):
            self.add(key)

    def add(self, key: Any) -> None:
        if self.find(key) < 0:
            self.enter(key)

    def discard(self, key: Any) -> None:
        place = self.find(key)
        if place >= 0:
            self.drop(place)

    def remove(self, key: Any) -> None:
        place = self.find(key)
        if place < 0:
            raise KeyError(key)
        self.drop(place)

    def copy(self) -> Any:
        return Set(self)

    def union(self, other: Any) -> Any:
        made = Set(self)
        made.update(other)
        return made

    def intersection(self, other: Any) -> Any:
        made = Set()
        for key in unordered(other):
            if key in self:
                made.add(key)
        return made

    def difference(self, other: Any) -> Any:
        made = Set(self)
        for key in unordered(other):
            made.discard(key)
        return made

    def symmetric_difference(self, other: Any) -> Any:
        both = Set(other)
        made = Set()
        for key in self.in_any_order():
            if key not in both:
                made.add(key)
        for key in both.in_any_order():
            if key not in self:
                made.add(key)
        return made

    def issubset(self, other: Any) -> Any:
        both = other if isinstance(other, Set) else Set(other)
        return all(key in both for key in self.in_any_order())

    def issuperset(self, other: Any) -> Any:
        return all(key in self for key in unordered(other))

    def isdisjoint(self, other: Any) -> Any:
        return not any(key in self for key in unordered(other))

    def __or__(self, other: Any) -> Any:
        return self.union(other)

    def __and__(self, other: Any) -> Any:
        return self.intersection(other)

    def __sub__(self, other: Any) -> Any:
        return self.difference(other)

    def __xor__(self, other: Any) -> Any:
        return self.symmetric_difference(other)

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __isub__(self, other: Any) -> Any:
        for key in unordered(other):
            self.discard(key)
        return self

    def __le__(self, other: Any) -> Any:
        return self.issubset(other)

    def __lt__(self, other: Any) -> Any:
        return len(self) < len(other) and self.issubset(other)

    def __ge__(self, other: Any) -> Any:
        return other.issubset(self)

    def __gt__(self, other: Any) -> Any:
        return len(self) > len(other) and other.issubset(self)

    def __eq__(self, other: Any) -> Any:
        return len(self) == len(other) and self.issubset(other)

    def __ne__(self, other: Any) -> Any:
        return not self == other

    __hash__ = None  # pyright: ignore


def unordered(items: Any) -> Any:
    """The items of anything, where their order shows in nothing."""
    return items.in_any_order() if isinstance(items, Set) else items
