"""Random programs of time loops over arrays: one after the other, in branches, within each other, left early.

Each is `program(u, v, w, n, m)` over three vectors of one length and returns a scalar. Its loops update them
in whole slices, swap two of them, count down, end where a value says so, or raise halfway. Values stay
bounded, and every function is smooth.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from generated import function_of

NAMES = ("u", "v", "w")
UPDATES = (
    "{a}[1:-1] -= 0.1 * {a}[1:-1] * ({b}[2:] - {a}[:-2])",
    "{a} *= 1.0 - 0.05 * {b}",
    "{a}[:] = 0.6 * {a} * {b} + 0.2",
    "{a}[1:] = 0.5 * np.sin({b}[:-1]) + 0.4 * {a}[:-1]",
    "{a}[::2] += 0.1 * {a}[::2] * {b}[::2]",
    "{a}[::-1] *= 0.9 + 0.05 * {b}",
    "{a}[{i} % {a}.size] *= {b}[{i} % 3] + 0.3",
    "s = 0.5 * s + {a}[0] * {b}[-1]",
    "{a} += 0.02 * s * {b}",
    "t = {a} * {b}\n{a} += 0.1 * t * t",
    "q = 0\nwhile q < 4 and {a}[0] > 0.3:\n    {a}[0] *= 0.9 * np.cos({b}[0])\n    q += 1",
    "left = {a}[0]\nfor q in range(1, {a}.size):\n    here = {a}[q]\n"
    "    {a}[q] = 0.5 * here * left + 0.2\n    left = here",
)
HEADERS = ("range(n)", "range(m)", "range(n, 0, -1)", "range(0, n, 2)", "range(n - m)")


@dataclass(frozen=True)
class SteppedProgram:
    """The source of one program, and the sizes that it is run with."""

    source: str
    n: int
    m: int
    size: int

    def function(self) -> Callable[..., Any]:
        return function_of(self.source, "program", {"np": np})

    def arguments(self) -> tuple[Any, ...]:
        chance = np.random.default_rng(self.size)
        arrays = [chance.uniform(0.2, 0.9, self.size) for _ in NAMES]
        return (*arrays, self.n, self.m)


@dataclass
class Writer:
    """Writes one program."""

    chance: random.Random
    lines: list[str] = field(default_factory=list[str])
    loops: int = 0

    def line(self, depth: int, text: str) -> None:
        self.lines += ["    " * depth + part for part in text.split("\n")]

    def update(self, depth: int, i: str) -> None:
        a, b = self.chance.sample(NAMES, 2)
        self.line(depth, self.chance.choice(UPDATES).format(a=a, b=b, i=i))

    def loop(self, depth: int, within: int) -> None:
        i = f"i{self.loops}"
        self.loops += 1
        kind = self.chance.random()
        if kind < 0.25:
            self.line(depth, f"{i} = 0\nwhile {i} < n and u[0] > -{self.chance.randint(1, 9)}.0:")
            self.line(depth + 1, f"{i} += 1")
        else:
            self.line(depth, f"for {i} in {self.chance.choice(HEADERS)}:")
        for _ in range(self.chance.randint(1, 3)):
            self.update(depth + 1, i)
        if within and self.chance.random() < 0.5:
            self.loop(depth + 1, within - 1)
            self.update(depth + 1, i)
        if kind > 0.75:
            self.line(depth + 1, f"if v[1] < 0.{self.chance.randint(1, 3)}:\n    break")
            self.update(depth + 1, i)
        elif kind > 0.65 and not within:
            self.line(depth + 1, "u, v = v, u")

    def whole(self) -> str:
        self.line(0, "def program(u, v, w, n, m):\n    s = 0.5")
        for _ in range(self.chance.randint(1, 3)):
            if self.chance.random() < 0.25:
                self.line(1, f"if n > {self.chance.randint(3, 12)}:")
                self.loop(2, 1)
                if self.chance.random() < 0.5:
                    self.line(1, "else:")
                    self.loop(2, 0)
            else:
                self.loop(1, self.chance.randint(0, 2))
            if self.chance.random() < 0.5:
                self.update(1, "m")
        if self.chance.random() < 0.1:
            self.line(1, "if n == 7:\n    raise ValueError(f'{n} steps')")
        self.line(1, "return (u * v).sum() + s * (w * w).sum()")
        return "\n".join(self.lines) + "\n"


def stepped_program(seed: int) -> SteppedProgram:
    chance = random.Random(seed)
    source = Writer(chance).whole()
    return SteppedProgram(
        source, chance.choice((0, 1, 5, 7, 9, 12)), chance.randint(0, 6), chance.randint(3, 12)
    )
