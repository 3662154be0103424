"""Random programs of lines that are solved one by one: elimination along each, substitution back.

Each is `program(u, v, w, steps)`. A line is a row or a column of `u`; along it arrays for the line alone
(`p`, `q`) are filled, each element from the one before, then read in another order. At times they read what
was there before, another line's elements, or one too many; lines have their own arrays, or share them; what
is left there is returned.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from generated import function_of

FORMS = (
    "{a} / (2.0 + {b} * {b})",
    "({a} - 0.3 * {b}) / (1.5 + 0.2 * {b} * {b})",
    "0.5 * {a} + np.sin({b})",
    "0.4 * {a} * {b}",
    "np.sqrt({a} * {a} + 0.3) - 0.2 * {b}",
)
UP = ("range(1, m)",) * 4 + ("range(1, m - 1)", "range(2, m)", "range(m)", "range(1, m, 2)")
DOWN = ("range(m - 2, -1, -1)",) * 3 + ("range(m - 2, 0, -1)", "range(m - 1)", "range(m)")
LINES = ("range(n)", "range(n)", "range(1, n - 1)", "range(n - 1, -1, -1)")


@dataclass(frozen=True)
class LineProgram:
    """The source of one program, and what it is called with."""

    source: str
    shape: tuple[int, int]
    length: int
    """The elements of a line."""
    steps: int
    shared: bool

    def function(self) -> Callable[..., Any]:
        return function_of(self.source, "program", {"np": np})

    def arguments(self) -> tuple[Any, ...]:
        rng = np.random.default_rng(self.length)
        u = rng.uniform(0.2, 1.2, self.shape)
        v = u if self.shared else rng.uniform(0.2, 1.2, self.shape)
        return u, v, rng.uniform(0.2, 1.2, self.length), self.steps


@dataclass
class Writer:
    """Writes one program."""

    rng: random.Random
    lines: list[str] = field(default_factory=list[str])

    def one(self, *options: str) -> str:
        return self.rng.choice(options)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def put(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def value(self, *operands: str) -> str:
        a, b = self.one(*operands), self.one(*operands)
        inner = self.rng.choice(FORMS).format(a=a, b=b)
        return self.rng.choice(FORMS).format(a=self.one(*operands), b=f"({inner})")

    def program(self, lines: str) -> str:
        places = {"rows": ("u[i, {0}]",), "columns": ("u[{0}, i]",)}.get(
            lines, ("u[i, {0}]", "u[{0}, i]")
        )
        self.put(0, "def program(u, v, w, steps):")
        self.put(
            1, {"rows": "n, m = u.shape", "columns": "m, n = u.shape"}.get(lines, "n = m = w.size")
        )
        self.put(1, f"p = {self.one('np.zeros(w.size)', 'w.copy()')}", "q = np.ones(w.size)")
        self.put(1, "for _ in range(steps):")
        self.sweep(self.one(*places))
        if self.chance(0.4):
            self.sweep(self.one(*places).replace("u", "v"))
        end = self.one("", "", " + (p * p).sum()", " + (q * w).sum()")
        self.put(1, f"return (u * v).sum(){end}")
        return "\n".join(self.lines) + "\n"

    def sweep(self, place: str) -> None:
        """All lines: up, and back; as solvers do it, but for one thing at times."""
        odd = self.one(*[""] * 7, "first", "range", "before", "back", "in place", "down", "after")
        self.put(2, f"for i in {self.one(*LINES)}:")
        if self.chance(0.2):
            self.put(3, "q = np.zeros(w.size)")
        if odd != "first":
            self.put(3, f"q[0] = {self.value(place.format('0'), 'w[0]')}")
        if self.chance(0.8):
            self.put(3, f"p[0] = {self.one('0.3', 'w[i]', place.format('0'))}")
        self.put(3, f"for k in {self.one(*UP) if odd == 'range' else 'range(1, m)'}:")
        before = self.one("k", "k + 1", "k - 2", "m - k") if odd == "before" else "k - 1"
        operands = [place.format("k"), "w[k]", f"q[{before}]", f"p[{before}]"]
        alone = ["w[k]", f"p[{before}]"]  # The same of all lines.
        self.put(4, f"p[k] = {self.value(*(alone if self.chance(0.7) else operands))}")
        self.put(4, f"q[k] = {self.value(*operands, 'p[k]')} + 0.1 * q[{before}]")
        back = place if odd == "in place" else place.translate(str.maketrans("uv", "vu"))
        if odd != "back":
            start = self.one("q[m - 1]", "w[0]", place.format("m - 1"))
            self.put(3, f"{back.format('m - 1')} = {start}")
        self.put(3, f"for k in {self.one(*DOWN) if odd == 'down' else DOWN[0]}:")
        after = self.one("k", "0") if odd == "after" else "k + 1"
        self.put(4, f"{back.format('k')} = {self.value('p[k]', back.format(after), 'q[k]')}")


def line_program(seed: int) -> LineProgram:
    rng = random.Random(seed)
    lines = rng.choice(("rows", "columns", "both"))
    source = Writer(rng).program(lines)
    n, m = rng.choice((1, 2, 3, 7, 9, 17)), rng.choice((1, 2, 3, 5, 8))
    shape = {"rows": (n, m), "columns": (m, n)}.get(lines, (n, n))
    length = n if lines == "both" else m
    return LineProgram(source, shape, length, rng.choice((0, 1, 2, 2)), rng.random() < 0.1)
