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

A `Plan` is asked before each stretch of steps what to do; that depends on the steps ahead and the free bytes.

Where the table would be large, the program runs over repetitions in place of steps (`Repetitions`): how many
steps can be reversed if none is run more than `r` times. Such a schedule is not always the best.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

FAR = 1 << 60
"""More steps than anybody runs."""
MOST_UNITS = 256
"""Into how many units the bytes are divided at most."""
MOST_WORK = 200_000_000
"""A table that takes more additions is not made."""
MOST_TERMS = 8
KEPT_SCHEDULES = 32
MOST_REPETITIONS = 48
"""An estimate counts no more than so many of one step."""


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
    found: list[Units] = []
    for unit in sorted(s for s in sizes if s >= smallest):
        one = Units(-(-state // unit), -(-saved // unit), room // unit)
        if one.state + one.saved <= one.all:
            found.append(one)
    if not found:  # one of each fits, and two of the smaller, but not two of the larger
        return Units(2, 3, 5) if state <= saved else Units(3, 2, 5)
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

    def __init__(self, n: int, sizes: Units, most: int = FAR) -> None:
        self.sizes = sizes
        state, saved, m = sizes.state, sizes.saved, sizes.all
        self.fresh, self.stored = [[0] * (m + 1)], [[0] * (m + 1)]
        while self.fresh[-1][m] < n and len(self.fresh) <= most:
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


@dataclass(frozen=True)
class Run:
    """What to do next: so many steps, of which the values are kept, or none; first perhaps the state is."""

    steps: int
    keeps_state: bool
    keeps_values: bool


class Plan:
    """Answers for one loop in a room of so many bytes."""

    def __init__(self, n: int, state: int, saved: int, room: int, sizes: Units) -> None:
        self.n, self.state, self.saved, self.room, self.sizes = n, state, saved, room, sizes
        self.counted: dict[tuple[bool, int, int], int] = {}

    @functools.cached_property
    def table(self) -> Table | Repetitions:
        small = self.n * self.n // 2 * (self.sizes.all + 1) <= MOST_WORK
        return Table(self.n, self.sizes) if small else Repetitions(self.n, self.sizes)

    def free(self, states: int, values: int) -> int:
        """The free units beside so many items."""
        return max(self.sizes.all - states * self.sizes.state - values * self.sizes.saved, 0)

    def ahead(self, n: int, m: int) -> Run:
        """What is done where `n` steps are ahead."""
        table, sizes, kept = self.table, self.sizes, 0
        while kept < n and table.keeps_values(n - kept, m):
            m, kept = m - sizes.saved, kept + 1
        if kept:
            return Run(kept, False, True)
        run = table.run_from(n, m - sizes.state) if m >= sizes.state else 0
        return Run(run, True, False) if run else Run(1, False, True)

    def again(self, n: int, m: int) -> int:
        """How many steps are run from a stored state that stays; 0 where it is given up."""
        return self.table.run_from(n, m)

    def inside(self, steps: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """How many steps are run for the values of so many, about, each number of them in all of the room."""
        if isinstance(self.table, Table):
            ran = self.table.fresh[self.sizes.all, np.minimum(steps, self.n)]
        else:
            ran = sum(np.maximum(steps - row[self.sizes.all], 0) for row in self.table.fresh[:-1])
        return np.where(steps * self.saved <= self.room, steps, ran)

    def executed(self, n: int, m: int, *, stored: bool = False) -> int:
        """How many steps are run in all, for the values of each of `n`."""
        pending, known, sizes = [(stored, n, m)], self.counted, self.sizes
        while pending:
            now = pending[-1]
            is_stored, ahead, free = now
            if now in known or ahead == 0:
                known[now] = known.get(now, 0)
                pending.pop()
                continue
            run = self.again(ahead, free) if is_stored else 0
            if is_stored and run == 0:
                free = min(free + sizes.state - sizes.saved, sizes.all)
                done, parts = 1, [(False, ahead - 1, free)]
            elif is_stored:
                done, parts = run, [(False, ahead - run, free), (True, run, free)]
            else:
                first = self.ahead(ahead, free)
                if first.keeps_values:
                    done = first.steps
                    parts = [(False, ahead - done, free - done * sizes.saved)]
                else:
                    done, parts = 0, [(True, ahead, free - sizes.state)]
            missing = [part for part in parts if part not in known]
            if missing:
                pending += missing
                continue
            known[now] = done + sum(known[part] for part in parts)
            pending.pop()
        return known[stored, n, m]


@functools.lru_cache(maxsize=KEPT_SCHEDULES)
def plan(n: int, state: int, saved: int, room: int) -> Plan | None:
    """The plan for `n` steps in so many bytes; None where nothing will do."""
    sizes = units(state, saved, room)
    return None if sizes is None else Plan(n, state, saved, room, sizes)


@functools.lru_cache(maxsize=4 * KEPT_SCHEDULES)
def about(n: int, state: int, saved: int, room: int) -> int:
    """About how many steps are run, found at once: again those that fewer repetitions would not reverse.

    More than anybody runs where nothing will do.
    """
    if n * saved <= room:
        return n
    sizes = units(state, saved, room)
    if sizes is None:
        return FAR
    rows = Repetitions(n, sizes, MOST_REPETITIONS).fresh
    ran = sum(max(n - row[sizes.all], 0) for row in rows[:-1])
    return ran + MOST_REPETITIONS * max(n - rows[-1][sizes.all], 0)
