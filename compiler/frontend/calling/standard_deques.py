"""Deques, in Python: what compiled code makes in their place (see `standard_tables`)."""

# pyright: basic, reportOperatorIssue=false, reportIndexIssue=false, reportOptionalMemberAccess=false

from __future__ import annotations

from typing import Any


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
