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
        place = self.find(key)
        if place < 0:
            raise KeyError(key)
        self.drop(place)

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


class Deque:
    """`collections.deque`: a list, and where in it the first item is."""

    changed = "deque mutated during iteration"

    def __init__(self, items: Any = None, maxlen: Any = None) -> None:
        self.all: Any = []
        self.head = 0
        self.maxlen = maxlen
        if items is not None:
            self.extend(items)

    def __len__(self) -> Any:
        return len(self.all) - self.head

    def append(self, item: Any) -> None:
        if self.maxlen is not None and len(self) == self.maxlen:
            if self.maxlen == 0:
                return
            self.advance()
        self.all.append(item)

    def advance(self) -> None:
        """The first item is gone. Room in front is given back once it is more than the items need."""
        self.head += 1
        if 2 * self.head > len(self.all) + 16:
            del self.all[: self.head]
            self.head = 0

    def appendleft(self, item: Any) -> None:
        if self.maxlen is not None and len(self) == self.maxlen:
            if self.maxlen == 0:
                return
            self.all.pop()
        if self.head == 0:
            self.make_room(item)
        self.head -= 1
        self.all[self.head] = item

    def make_room(self, item: Any) -> None:
        """Room for as many items in front as there are, and one."""
        n = len(self.all)
        for _ in range(n + 1):
            self.all.append(item)
        for i in range(n - 1, -1, -1):
            self.all[i + n + 1] = self.all[i]
        self.head = n + 1

    def pop(self) -> Any:
        if len(self) == 0:
            raise IndexError("pop from an empty deque")
        return self.all.pop()

    def popleft(self) -> Any:
        if len(self) == 0:
            raise IndexError("pop from an empty deque")
        item = self.all[self.head]
        self.advance()
        return item

    def extend(self, items: Any) -> None:
        for item in items:
            self.append(item)

    def extendleft(self, items: Any) -> None:
        for item in items:
            self.appendleft(item)

    def __iadd__(self, items: Any) -> Any:
        self.extend(items)
        return self

    def clear(self) -> None:
        self.all.clear()
        self.head = 0

    def rotate(self, n: Any = 1) -> None:
        size = len(self)
        if size > 1:
            first = self.head + (-n) % size
            turned = self.all[first:] + self.all[self.head : first]
            for i in range(size):
                self.all[self.head + i] = turned[i]

    def reverse(self) -> None:
        size = len(self)
        for i in range(size // 2):
            kept = self.all[self.head + i]
            self.all[self.head + i] = self.all[self.head + size - 1 - i]
            self.all[self.head + size - 1 - i] = kept

    def place(self, index: Any) -> Any:
        size = len(self)
        if index < -size or index >= size:
            raise IndexError("deque index out of range")
        return self.head + (index if index >= 0 else index + size)

    def __getitem__(self, index: Any) -> Any:
        return self.all[self.place(index)]

    def __setitem__(self, index: Any, item: Any) -> None:
        self.all[self.place(index)] = item

    def __iter__(self) -> Any:
        n, first = len(self.all), self.head
        for i in range(first, n):
            if len(self.all) != n or self.head != first:
                raise RuntimeError(self.changed)
            yield self.all[i]
        if len(self.all) != n or self.head != first:
            raise RuntimeError(self.changed)

    def __reversed__(self) -> Any:
        for i in range(len(self.all) - 1, self.head - 1, -1):
            yield self.all[i]

    def __contains__(self, item: Any) -> Any:
        return any(v == item for v in self)

    def index(self, item: Any) -> Any:
        for i in range(len(self)):
            if self.all[self.head + i] == item:
                return i
        raise ValueError("item is not in deque")

    def count(self, item: Any) -> Any:
        return sum([1 for v in self if v == item])

    def copy(self) -> Any:
        return Deque(self, self.maxlen)
