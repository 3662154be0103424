"""Watching who owns what on the step stack: a mode for tests and for those who look for a wrong number.

It is on within `watched()`, and everywhere if MUTAD_WATCH_STEPS=1 is in the environment of the process. Off,
nothing of this runs. On, each question that compiled code asks (`step_stack`) is answered between two looks
at the whole stack:

- Memory that is free holds `POISON`: as a number it is NaN, as an address it leads nowhere. What was given
  back and is read shows, and so does what is written to memory that nobody has: beyond the end of an item, or
  of the whole.
- Heads, items, copies and the own memory of steps that are still to be reversed are owned. Where the stack
  says that such memory is free, or that two own it, `Disowned` tells which.
- A step's values, with all that its loops keep, must not take more than their loop was told.

Values that steps have kept, and that were given back, between two questions are not looked at.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

from .step_words import (
    BASE,
    COPIED,
    COPIES,
    CURSOR,
    END,
    HEAD_BYTES,
    ITEM_BYTES,
    ITEM_END,
    ITEM_RECORD,
    KEEP,
    KIND,
    LAST,
    LIMIT,
    OWN,
    SAVED,
    STATE,
    STEP,
    STORE,
    TOP,
    TURNED,
    UNTIL,
    WHOLE_END,
    WRITE,
    get,
)

VARIABLE = "MUTAD_WATCH_STEPS"
POISON = 0x7FF4DEADDEADDEAD
PATTERN = POISON.to_bytes(8, "little")


class Disowned(AssertionError):
    """Memory of the step stack was used by what does not own it."""


@dataclass
class Held:
    """Memory that something owns."""

    what: str
    begin: int
    end: int


@dataclass
class Scope:
    """Where a loop was begun: in the step of an item of another, or in none."""

    item: int
    of: int
    """The head of that other loop."""


@dataclass
class Stack:
    """What is known of one stack since the last question."""

    address: int
    heads: dict[int, Scope] = field(default_factory=dict[int, Scope])
    free: tuple[int, int] = (0, 0)
    """What was free, and not granted: it holds the poison."""

    def word(self, at: int) -> int:
        return get(self.address + at)

    # Before an answer.

    def look(self, asked: str) -> None:
        """What compiled code has done since the last one."""
        cursor, end = self.word(CURSOR), self.word(END)
        if not self.word(BASE) <= cursor <= end <= self.word(WHOLE_END):
            raise Disowned(f"{asked}: what is free is from {self.at(cursor)} to {self.at(end)}")
        begin, stop = self.free
        if (found := unpoisoned(begin, stop)) is not None:
            raise Disowned(f"{asked}: {self.at(found)} was written, which nobody owns")
        tops = {get(head + TOP): head for head in self.heads}
        if tops and max(tops) > max(self.heads):
            self.look_at_top(asked, tops[max(tops)])

    def look_at_top(self, asked: str, head: int) -> None:
        """The values that a step kept last take no more than a step may, with all that its loops keep."""
        item = get(head + TOP)
        if get(head + TURNED) or not item or not get(item + ITEM_RECORD):
            return
        upper = get(item + ITEM_END)
        taken = self.word(CURSOR) - item + (upper - self.word(END) if upper else 0)
        if taken > get(head + SAVED):
            raise Disowned(f"{asked}: a step keeps {taken} bytes, and may keep {get(head + SAVED)}")

    # After it.

    def settle(self, asked: str, granted: int) -> None:
        """What is free now nobody owns; it is poisoned."""
        self.prune()
        cursor, end = self.word(CURSOR), self.word(END)
        low, far = self.owned()
        for one in low:
            if one.end > cursor:
                raise Disowned(f"{asked}: {self.shown(one)} is owned, and said to be free")
        far.sort(key=begin_of)
        for one in far[:1]:
            if one.begin < end:
                raise Disowned(f"{asked}: {self.shown(one)} is owned, and said to be free")
        for one, next_ in pairwise(far):
            if one.end > next_.begin:
                raise Disowned(f"{asked}: {self.shown(one)} and {self.shown(next_)} overlap")
        poison(cursor, end)
        lower, upper = self.granted(granted)
        self.free = (min(cursor + lower, end), max(cursor, end - upper))

    def owned(self) -> tuple[list[Held], list[Held]]:
        """What is owned at the lower end and at the upper one."""
        low, far = list[Held](), list[Held]()
        for head in self.heads:
            low.append(Held("a head", head, head + HEAD_BYTES))
            if copies := get(head + COPIES):
                far.append(Held("copies", copies, copies + get(head + COPIED)))
            for item in items(head):
                upper = get(item + ITEM_END)
                is_state = not get(item + ITEM_RECORD) and not upper
                size = get(head + STATE) if is_state else ITEM_BYTES
                low.append(Held("a state" if is_state else "an item", item, item + size))
                if upper:
                    own = get(head + OWN) - ITEM_BYTES
                    far.append(Held("what a step keeps", upper - own, upper))
        return low, far

    def granted(self, bytes_: int) -> tuple[int, int]:
        """What compiled code may take at the lower and at the upper end before it asks again."""
        steps = bytes_
        for head in self.heads:
            more = get(head + UNTIL) - get(head + STEP)
            if get(head + KIND) == KEEP and more > 0:
                steps += more * get(head + SAVED)
        return steps, steps

    # Which loops there are.

    def begun(self, head: int, *, within: bool, last: int) -> None:
        if last:
            self.heads[head] = self.heads[last]
        elif within:
            tops = {get(other + TOP): other for other in self.heads}
            item = max(tops)
            self.heads[head] = Scope(item, tops[item])
        else:
            self.heads[head] = Scope(0, 0)

    def prune(self) -> None:
        """Forget the loops of steps whose values were given back."""
        for head, scope in list(self.heads.items()):
            if scope.of and (scope.of not in self.heads or scope.item not in items(scope.of)):
                del self.heads[head]

    # Words.

    def at(self, address: int) -> str:
        return f"byte {address - self.word(BASE)} of {self.word(WHOLE_END) - self.word(BASE)}"

    def shown(self, one: Held) -> str:
        return f"{one.what} ({self.at(one.begin)}, {one.end - one.begin} bytes)"


def begin_of(held: Held) -> int:
    return held.begin


def items(head: int) -> list[int]:
    found, item = list[int](), get(head + TOP)
    while item:
        found.append(item)
        item = get(item)
    return found


def poison(begin: int, end: int) -> None:
    ctypes.memmove(begin, PATTERN * ((end - begin) // 8), (end - begin) & -8)


def unpoisoned(begin: int, end: int) -> int | None:
    """The first word that does not hold the poison."""
    if end <= begin:
        return None
    found = ctypes.string_at(begin, (end - begin) & -8)
    if found == PATTERN * (len(found) // 8):
        return None
    return next(begin + k for k in range(0, len(found), 8) if found[k : k + 8] != PATTERN)


# --- Questions and answers --------------------------------------------------------------------


class Watch:
    """Whether all is watched, and the stacks that are known."""

    on = os.environ.get(VARIABLE) == "1"
    stacks: ClassVar[dict[int, Stack]] = {}


@contextlib.contextmanager
def watched() -> Generator[None]:
    """Watch what is run within."""
    before, Watch.on = Watch.on, True
    try:
        yield
    finally:
        Watch.on = before


def answered(function: Callable[..., int], numbers: tuple[int, ...]) -> int:
    """The answer to a question about a stack, which is the first of the numbers."""
    address, asked = numbers[0], function.__name__
    begins = asked == "begin"
    last, limit = get(address + LAST), get(address + LIMIT)
    if begins and not last and not limit:
        Watch.stacks[address] = Stack(address)
    if (stack := Watch.stacks.get(address)) is None:
        return function(*numbers)  # It was not watched when it began.
    stack.look(asked)
    said = function(*numbers)
    if begins and said > 0:
        stack.begun(said, within=limit != 0, last=last)
    if asked == "finish":
        stack.heads.pop(numbers[1])
    stores = asked == "ask" and said in (STORE, WRITE)
    stack.settle(asked, get(numbers[1] + STATE) if stores else 0)
    return said
