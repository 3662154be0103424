"""When restart states go to a file: a dynamic program over steps, above that of `schedules`.

A file holds as many states as are wanted, but each that is written, or read, costs as much as some steps
(`price`). Let `inside(n)` be the steps that are run in memory alone for the values of `n`, whose state is at
hand. Then what all costs that are ahead, and what those cost whose state is in the file, is::

    ahead(n) = min(inside(n), price + l + ahead(n - l) + again(l))    the state is written, l steps are run
    again(n) = price + min(inside(n), l + inside(n - l) + again(l))   it is read, and stays for l steps

So states are written on the way forward alone. Memory and a file as two levels, of which the second has no
end, are those of Aupy, Herrmann, Hovland and Robert (Optimal multistage algorithm for adjoint computation,
2016), whose memory holds states alone.
"""

from __future__ import annotations

import functools

import numpy as np

from . import schedules

A_BYTE = 8
"""A byte of a file costs as much, to write or to read, as so many that a step touches."""
MOST_BLOCKS = 512
"""The program goes over so many blocks of steps at most."""


def price(state: int, saved: int) -> float:
    """How many steps a state costs that is written, or read."""
    return A_BYTE * state / (state + saved)


class FilePlan:
    """Answers for one loop of at most so many steps."""

    def __init__(self, plan: schedules.Plan) -> None:
        self.block = -(-plan.n // MOST_BLOCKS)
        steps = np.arange(-(-plan.n // self.block) + 1) * self.block
        inside, each = plan.inside(steps), price(plan.state, plan.saved)
        ahead, again = np.zeros(len(steps)), np.zeros(len(steps))
        self.splits = np.zeros((2, len(steps)), dtype=np.int64)
        """How many steps are run from a state that is written, and from one that is read and stays."""
        for k in range(1, len(steps)):
            ahead[k], again[k] = inside[k], each + inside[k]
            if k == 1:
                continue
            stays = each + steps[1:k] + inside[k - 1 : 0 : -1] + again[1:k]
            at = int(stays.argmin())
            if stays[at] < again[k]:
                again[k], self.splits[1, k] = stays[at], steps[at + 1]
            written = each + steps[1:k] + ahead[k - 1 : 0 : -1] + again[1:k]
            at = int(written.argmin())
            if written[at] < ahead[k]:
                ahead[k], self.splits[0, k] = written[at], steps[at + 1]
        self.costs = ahead
        rates = (each + steps[1:] + again[1:]) / np.maximum(steps[1:], 1)
        self.period = int(steps[1 + rates.argmin()])
        """Every which step a state is written where their number is unknown."""

    def ahead(self, n: int) -> int:
        """How many steps are run from a state that is written; 0 where memory alone will do."""
        return self._answer(0, n)

    def again(self, n: int) -> int:
        """How many steps are run from a state that is read and stays; 0 where it is given up."""
        return self._answer(1, n)

    def _answer(self, kind: int, n: int) -> int:
        return min(int(self.splits[kind, -(-n // self.block)]), n - 1)


@functools.lru_cache(maxsize=schedules.KEPT_SCHEDULES)
def plan(n: int, state: int, saved: int, room: int) -> FilePlan | None:
    """The plan for `n` steps beside so many bytes of memory; None where nothing will do."""
    inside = schedules.plan(n, state, saved, room)
    return None if inside is None else FilePlan(inside)


def about(n: int, state: int, saved: int, room: int) -> float:
    """About what `n` steps cost, in steps."""
    if n * saved <= room:
        return n
    found = plan(n, state, saved, room)
    return schedules.FAR if found is None else float(found.costs[-1])
