"""How often steps will be run: the decisions of `step_stack`, followed without running anything.

`replay` does with a stack of its own what compiled code does with its, of which only heads are written. So
are those of the states that would go to a file.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import spill_file, step_files, step_stack
from .step_words import (
    BASE,
    CURSOR,
    END,
    FILE,
    FILE_END,
    FILE_PEAK,
    HEAD_BYTES,
    ITEM_BYTES,
    ITEM_END,
    ITEM_RECORD,
    ITEM_STEP,
    KEEP,
    KIND,
    LAST,
    LIMIT,
    SAVED,
    STATE,
    STATES,
    STEP,
    STORE,
    TOP,
    UNTIL,
    VALUES,
    WHOLE_END,
    WORD,
    WRITE,
    get,
    goes_upwards,
    put,
)

Loop = tuple[int, int, int, int, int, int, int, int, Any]
"""The count, the bytes of a state, of what a step keeps at least and at most, and of the copies, whether
others follow, whether it is reversed upwards, what loops within the step need, and the largest of these, if
there is one."""


class Outcome(NamedTuple):
    """What steps are run, and what that takes."""

    executed: list[tuple[int, int]] | None
    """For each loop how many of its own, and of the loop within; None where there are too few bytes."""
    least: int | None
    """The least number of bytes that would do; None where that takes too long to find out."""
    filed: int | None
    """The bytes that the file has at most."""


MOST_STEPS = 300_000
"""More are not followed."""


class TooLittle(Exception):
    """The stack holds too little."""

    def __init__(self, least: int) -> None:
        super().__init__()
        self.least = least


class TooLong(Exception):
    """There are too many steps to follow."""


def replay(loops: Sequence[Loop], bytes_: int, *, spills: bool) -> Outcome:
    """How often steps are run in so many bytes, with a file for more or without."""
    try:
        least, found = 0, None
        while found is None:
            try:
                found = followed(loops, least, spills=spills)
            except TooLittle as error:
                least = max(error.least, least + WORD)
        if least > bytes_:
            return Outcome(None, least, None)
        ran, filed = followed(loops, bytes_, spills=spills)
        return Outcome(ran, least, filed)
    except TooLong:
        return Outcome(None, None, None)


def followed(
    loops: Sequence[Loop], bytes_: int, *, spills: bool
) -> tuple[list[tuple[int, int]], int]:
    """What steps are run, and the bytes of the file."""
    own = Replay(bytes_)
    if not spills:
        return own.run(loops), 0
    put(own.stack + FILE, own.stack)
    put(own.stack + FILE_END, spill_file.FIRST)
    spill_file.files[own.stack] = Pretended()
    try:
        return own.run(loops), get(own.stack + FILE_PEAK)
    finally:
        spill_file.closed(own.stack)


class Pretended:
    """A file of which only the words of items are kept."""

    def __init__(self) -> None:
        self.kept: dict[int, tuple[int, ...]] = {}

    def close(self) -> None: ...
    def reserve(self, end: int) -> None: ...
    def soon(self, count: int, place: int) -> None: ...

    def write(self, address: int, count: int, place: int) -> None:
        self.kept[place] = tuple(get(address + at) for at in range(0, ITEM_BYTES, WORD))

    def read(self, address: int, count: int, place: int) -> None:
        for k, word in enumerate(self.kept[place]):
            put(address + WORD * k, word)


class Replay:
    """One run of both sweeps on a stack of so many bytes."""

    def __init__(self, bytes_: int) -> None:
        size = step_stack.room(bytes_)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        self.memory = mmap.mmap(-1, size + 4096, flags=flags)
        self.stack = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        base = self.stack + 4096 // 2
        for word, value in (
            (CURSOR, base),
            (END, base + size),
            (BASE, base),
            (WHOLE_END, base + size),
        ):
            put(self.stack + word, value)
        self.followed = 0

    def run(self, loops: Sequence[Loop]) -> list[tuple[int, int]]:
        counts = [[0, 0] for _ in loops]
        heads = [self.forward(loop, count) for loop, count in zip(loops, counts, strict=True)]
        for k in reversed(range(len(loops))):
            self.reverse(loops[k], heads[k], counts[k])
        return [(ran, inner) for ran, inner in counts]

    def forward(self, loop: Loop, counts: list[int]) -> int:
        count, state, low, full, copies, followed, upwards, least, inner = loop
        within = (0, 0, 0) if inner is None else inner[:3]
        head = step_stack.begin(
            self.stack, count, state, low, full, copies, followed, upwards, least, *within
        )
        if head < 0:
            raise TooLittle(-head)
        self.go(loop, head, count, counts)
        return head

    def go(self, loop: Loop, head: int, end: int, counts: list[int]) -> None:
        while (step := get(head + STEP)) < end:
            if step >= get(head + UNTIL):
                what = step_stack.ask(self.stack, head, end)
                if what in (STORE, WRITE):
                    self.push(head, get(head + STATE), STATES)
                if what == WRITE:
                    step_files.write(self.stack, head)
            elif get(head + KIND) == KEEP:
                self.keep(loop, head, counts)
                self.step(loop, head, 1, counts)
            else:
                self.step(loop, head, min(get(head + UNTIL), end) - step, counts)

    def step(self, loop: Loop, head: int, more: int, counts: list[int]) -> None:
        put(head + STEP, get(head + STEP) + more)
        counts[0] += more
        counts[1] += more * (0 if loop[-1] is None else loop[-1][0])
        self.followed += 1
        if self.followed > MOST_STEPS:
            raise TooLong

    def keep(self, loop: Loop, head: int, counts: list[int]) -> None:
        inner, stack = loop[-1], self.stack
        own = loop[2] - loop[-2]
        item = self.push(head, own if inner is None else ITEM_BYTES, VALUES)
        put(item + ITEM_RECORD, 1)
        if inner is None:
            return
        last, limit = get(stack + LAST), get(stack + LIMIT)
        put(stack + LAST, 0)
        put(stack + LIMIT, item + ITEM_BYTES + get(head + SAVED) - own)
        end = get(stack + END)
        put(item + ITEM_END, end)
        put(stack + END, end - own + ITEM_BYTES)
        ran = [0, 0]
        copies = loop[-2] - HEAD_BYTES - inner[1] - inner[2]
        put(item + ITEM_RECORD, self.forward((*inner[:4], copies, *inner[5:]), ran))
        counts[1] += ran[0] - inner[0]
        put(stack + LAST, last)
        put(stack + LIMIT, limit and limit + get(stack + END) - end)

    def push(self, head: int, size: int, kind: int) -> int:
        item = get(self.stack + CURSOR)
        put(self.stack + CURSOR, item + size)
        put(item, get(head + TOP))
        put(item + ITEM_STEP, get(head + STEP))
        put(item + ITEM_RECORD, 0)
        put(item + ITEM_END, 0)
        put(head + TOP, item)
        put(head + kind, get(head + kind) + 1)
        assert size >= ITEM_BYTES
        return item

    def reverse(self, loop: Loop, head: int, counts: list[int]) -> None:
        count = left = step_stack.turn(self.stack, head) - 1
        upwards = goes_upwards(head)
        while left:
            item, end = get(head + TOP), count - left + 1 if upwards else left
            if not item and (left == count or not upwards):
                step_files.fetch(self.stack, head, left)
            elif not item:
                self.go(loop, head, end, counts)
            elif get(item + ITEM_RECORD) == 0:
                put(head + STEP, get(item + ITEM_STEP))
                step_stack.restart(self.stack, head, left)
                self.go(loop, head, end, counts)
            else:
                self.reverse_step(loop, head, item, counts)
                left -= 1
        step_stack.finish(self.stack, head)

    def reverse_step(self, loop: Loop, head: int, item: int, counts: list[int]) -> None:
        """Its values are on top."""
        if loop[-1] is not None:
            ran = [0, 0]
            self.reverse(loop[-1], get(item + ITEM_RECORD), ran)
            counts[1] += ran[0]
        put(head + TOP, get(item))
        put(head + VALUES, get(head + VALUES) - 1)
        put(self.stack + CURSOR, item)
        put(self.stack + END, get(item + ITEM_END) or get(self.stack + END))
