"""When a loop under a budget keeps what: a dynamic program over steps and bytes.

The gradient of a loop of `n` steps goes backwards through them, and needs the values of each. What is kept is
a stack of items, of two kinds: a *restart state*, from which later steps are run again, or the *saved values*
of one step, with which that step is reversed. Their sizes are the plan's. Let `fresh(n, m)` be the least
number of steps that are run where `n` are ahead, the state is at hand, and `m` bytes are free, and
`stored(n, m)` the same where that state is an item of the stack::

    fresh(n, m)  = min(stored(n, m - state),             the state is kept
                       1 + fresh(n - 1, m - saved))      the values of this step are
    stored(n, m) = min(l + fresh(n - l, m) + stored(l, m),     l steps are run, the rest reversed, then these
                       1 + fresh(n - 1, m + state - saved))    the state is given up: it is used no more

`steps` writes the decisions in the order in which they are made, one number each: 0 is to run a step and to
keep its values, `l` to keep the state and to run `l` steps. Where a state is taken off the stack again, 0 is
to give it up and to run a step from it that keeps its values, `l` to leave it there.

Where the table would be large, the program runs over repetitions in place of steps (`Repetitions`): how many
steps can be reversed if none is run more than `r` times. Such a schedule is not always the best.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from .keys import Array

FAR = 1 << 60
"""More steps than anybody runs."""
MOST_UNITS = 256
"""Into how many units the bytes are divided at most."""
MOST_WORK = 200_000_000
"""A table that takes more additions is not made."""
MOST_TERMS = 8
PER_STEP = 8
"""Bytes of the decisions for a step: two at most."""
KEPT_SCHEDULES = 32


@dataclass(frozen=True)
class Units:
    """Sizes, rounded up to a common unit, and the bytes there are, rounded down."""

    state: int
    saved: int
    all: int


def units(state: int, saved: int, room: int) -> Units | None:
    """The sizes in the unit that loses the least; None where the room holds less than one of each."""
    if state + saved > room:
        return None
    smallest = -(-room // MOST_UNITS)
    sizes = {-(-of // k) for of in (state, saved) for k in range(1, MOST_TERMS + 1)} | {smallest}
    found = [Units(1, 1, 2)]  # which always fits
    for unit in sorted(s for s in sizes if s >= smallest):
        one = Units(-(-state // unit), -(-saved // unit), room // unit)
        if one.state + one.saved <= one.all:
            found.append(one)
    return max(found, key=lambda u: (u.all / u.state * (u.all / u.saved), -u.all))


class Table:
    """The least numbers of steps, for all numbers of steps ahead and all numbers of free units."""

    def __init__(self, n: int, sizes: Units) -> None:
        state, saved, m = sizes.state, sizes.saved, sizes.all
        self.fresh = np.full((m + 1, n + 1), FAR)
        self.stored = np.full((m + 1, n + 1), FAR)
        self.split = np.zeros((m + 1, n + 1), dtype=np.int64)
        """How many steps are run from a stored state; 0 where it is given up."""
        self.fresh[:, 0] = self.stored[:, 0] = 0
        steps = np.arange(n + 1)
        room = np.minimum(np.arange(m + 1) + state - saved, m)
        for ahead in range(1, n + 1):
            best = np.where(room >= 0, 1 + self.fresh[room, ahead - 1], FAR)
            if ahead > 1:
                inner = self.stored[:, 1:ahead] + self.fresh[:, ahead - 1 : 0 : -1] + steps[1:ahead]
                at = inner.argmin(axis=1)
                least = inner[np.arange(m + 1), at]
                self.split[:, ahead] = np.where(least < best, at + 1, 0)
                best = np.minimum(least, best)
            self.stored[:, ahead] = np.minimum(best, FAR)
            kept = np.full(m + 1, FAR)
            kept[saved:] = 1 + self.fresh[: m + 1 - saved, ahead - 1]
            kept[state:] = np.minimum(kept[state:], self.stored[: m + 1 - state, ahead])
            self.fresh[:, ahead] = np.minimum(kept, FAR)
        self.sizes = sizes

    def keeps_values(self, n: int, m: int) -> bool:
        """Whether the values of the next step are kept, not the state before it."""
        sizes = self.sizes
        return m >= sizes.saved and 1 + self.fresh[m - sizes.saved, n - 1] == self.fresh[m, n]

    def run_from(self, n: int, m: int) -> int:
        """How many steps are run from a stored state."""
        return int(self.split[m, n])


class Repetitions:
    """How many steps can be reversed if each is run at most so many times."""

    def __init__(self, n: int, sizes: Units) -> None:
        self.sizes = sizes
        state, saved, m = sizes.state, sizes.saved, sizes.all
        self.fresh, self.stored = [[0] * (m + 1)], [[0] * (m + 1)]
        while self.fresh[-1][m] < n:
            before, above = self.stored[-1], self.fresh[-1]
            fresh, stored = [0] * (m + 1), [0] * (m + 1)
            for free in range(m + 1):
                if free >= state:
                    fresh[free] = stored[free - state]
                if free >= saved:
                    fresh[free] = max(fresh[free], 1 + fresh[free - saved])
                stored[free] = min(before[free] + fresh[free], FAR)
                room = min(free + state - saved, m)
                if room >= 0:
                    known = fresh[room] if room <= free else above[room]
                    stored[free] = max(stored[free], 1 + known)
            self.fresh.append(fresh)
            self.stored.append(stored)

    def keeps_values(self, n: int, m: int) -> bool:
        state, saved = self.sizes.state, self.sizes.saved
        if m < saved or n * saved <= m:
            return m >= saved
        r = least(self.fresh, n, m)
        return m < state or self.stored[r][m - state] < n

    def run_from(self, n: int, m: int) -> int:
        r = least(self.stored, n, m)
        first, last = max(1, n - self.fresh[r][m]), min(n - 1, self.stored[r - 1][m])
        return 0 if first > last else max(first, min(last, n - self.fresh[r - 1][m]))


def least(rows: list[list[int]], n: int, m: int) -> int:
    """The least number of repetitions with which `n` steps can be reversed."""
    return next(r for r, row in enumerate(rows) if row[m] >= n)


@functools.lru_cache(maxsize=KEPT_SCHEDULES)
def steps(n: int, state: int, saved: int, room: int) -> Array | None:
    """The decisions for `n` steps in so many bytes; None where nothing will do."""
    if n * saved <= room:
        return np.zeros(n, dtype=np.int32)
    sizes = units(state, saved, room)
    if sizes is None:
        return None
    small = n * n // 2 * (sizes.all + 1) <= MOST_WORK
    return Decisions(Table(n, sizes) if small else Repetitions(n, sizes)).of_fresh(n, sizes.all)


class Decisions:
    """Writes down what a table says; what is alike, once."""

    def __init__(self, table: Table | Repetitions) -> None:
        self.table = table
        self.known: dict[tuple[bool, int, int], Array] = {}

    def of_fresh(self, n: int, m: int) -> Array:
        return self._whole(False, n, m)

    def _whole(self, stored: bool, n: int, m: int) -> Array:
        """Without recursion: the parts of a range are on a stack until they are known."""
        pending = [(stored, n, m)]
        while pending:
            now = pending[-1]
            if now in self.known:
                pending.pop()
                continue
            first, parts = self._parts(*now)
            missing = [part for part in parts if part not in self.known]
            if missing:
                pending += missing
                continue
            pieces = [self.known[part] for part in parts]
            self.known[now] = np.concatenate([np.array(first, dtype=np.int32), *pieces])
        return self.known[stored, n, m]

    def _parts(self, stored: bool, n: int, m: int) -> tuple[list[int], list[Any]]:
        """The first decisions for a range, and the ranges that are left then."""
        sizes = self.table.sizes
        if n == 0:
            return [], []
        if not stored:
            kept = 0
            while n and self.table.keeps_values(n, m):
                n, m, kept = n - 1, m - sizes.saved, kept + 1
            return [0] * kept, [(True, n, m - sizes.state)] if n else []
        run = self.table.run_from(n, m)
        if run == 0:
            return [0], [(False, n - 1, min(m + sizes.state - sizes.saved, sizes.all))]
        return [run], [(False, n - run, m), (True, run, m)]


def executed(decisions: Array) -> int:
    """How many steps are run in all."""
    return int(decisions.sum()) + int((decisions == 0).sum())


def outcome(n: int, state: int, saved: int, copies: int, budget: int) -> tuple[int | None, int]:
    """How many steps are run in all, None where the budget is too small, and the least one that would do.

    As `mutad_steps_begin` of the compiled code has it.
    """
    schedule = PER_STEP * n
    everything = n * saved + schedule
    least = min(everything, copies + state + saved + schedule)
    if budget < least:
        return None, least
    if everything <= budget:
        return n, least
    decisions = steps(n, state, saved, budget - copies - schedule)
    assert decisions is not None
    return executed(decisions), least


def write(n: int, state: int, saved: int, room: int, into: int) -> int:
    """What compiled code calls: write the decisions as 32-bit integers; how many, -1 where there are none."""
    decisions = steps(n, state, saved, room)
    if decisions is None:
        return -1
    ctypes.memmove(into, decisions.ctypes.data, decisions.nbytes)
    return len(decisions)


@functools.cache
def callback() -> Any:
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4, ctypes.c_void_p)(write)


def address() -> int:
    """Where compiled code finds `write`."""
    found = ctypes.cast(callback(), ctypes.c_void_p).value
    assert found is not None
    return found
