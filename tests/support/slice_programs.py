"""Random programs of slices whose ends counters decide: of equal lengths, of one element, of other lengths.

Each is `program(x, y, a)` of two vectors and a matrix. Ends lie within an array, at its end, beyond it, or
before its start, where they count from the end; slices overlap, are reversed, are added, multiplied with `@`,
and stored to. Some do not broadcast and raise; some do for the first iteration alone. All is smooth.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from generated import function_of

HEADERS = (
    "range(n)",
    "range(1, n)",
    "range(n - 1)",
    "range(1, n - 1)",
    "range(n - 1, 0, -1)",
    "range(0, n, 2)",
)
MATES = {  # slices of as many elements, for counters within the array
    "{0}[:k]": ("{0}[:k]", "{0}[k - 1 :: -1]", "{0}[n - k :]", "a[k, :k]", "a[:k, k]"),
    "{0}[k:]": ("{0}[k:]", "{0}[: n - k]", "a[k, k:]", "a[k:, k]", "{0}[: k - 1 : -1]"),
    "{0}[k + 1 :]": ("{0}[k + 1 :]", "{0}[: n - k - 1]", "{0}[: n - 1 - k]", "a[k, k + 1 :]"),
    "{0}[: k + 1]": ("{0}[: k + 1]", "{0}[k::-1]", "a[: k + 1, k]", "{0}[n - 1 - k :]"),
    "{0}[k - 1 : k + 2]": ("{0}[k - 1 : k + 2]", "{0}[k - 1 : k + 2][::-1]", "a[k, k - 1 : k + 2]"),
}
ODD = (
    "{0}[k - 2 :]",
    "{0}[: k + 2]",
    "{0}[k : k + 1]",
    "{0}[-k:]",
    "{0}[: n + k]",
    "{0}[k::2]",
    "{0}[:1]",
)


@dataclass(frozen=True)
class SliceProgram:
    """The source of one program, and what it is called with."""

    source: str
    n: int

    def function(self) -> Callable[..., Any]:
        return function_of(self.source, "program", {"np": np})

    def arguments(self) -> tuple[Any, ...]:
        rng = np.random.default_rng(self.n)
        return tuple(rng.uniform(0.2, 1.2, shape) for shape in (self.n, self.n, (self.n, self.n)))


@dataclass
class Writer:
    """Writes one program."""

    rng: random.Random
    lines: list[str] = field(default_factory=list[str])

    def one(self, *options: str) -> str:
        return self.rng.choice(options)

    def put(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def program(self) -> str:
        self.put(0, "def program(x, y, a):")
        self.put(1, "n = x.size", "total = 0.0", f"for k in {self.one(*HEADERS)}:")
        for _ in range(self.rng.choice((1, 2, 3))):
            self.statement()
        self.put(1, "return total + (x * y).sum() + (a * a).sum()")
        return "\n".join(self.lines) + "\n"

    def statement(self) -> None:
        into, mates = self.rng.choice(list(MATES.items()))
        first, second = (self.one(*mates).format(self.one("x", "y")) for _ in range(2))
        if self.rng.random() < 0.15:
            second = self.one(*ODD).format(self.one("x", "y"))
        into = into.format(self.one("x", "y"))
        other = self.one(second, f"{second} * {first}", f"np.sin({second})")
        self.put(
            2,
            self.one(
                f"{into} += 0.1 * {other}",
                f"{into} = 0.5 * {first} + 0.3 * {other}",
                f"{into} -= x[k] * {other}",
                f"total += ({first} * {other}).sum()",
                f"y[k] = 0.1 * ({first} @ {second}) + x[k]",
            ),
        )


def slice_program(seed: int) -> SliceProgram:
    rng = random.Random(seed)
    return SliceProgram(Writer(rng).program(), rng.choice((0, 1, 2, 3, 5, 8)))
