"""Random loop nests that overwrite what they read: affine subscripts, triangles, repeated sweeps.

Programs of odd seeds also store whole slices, rows and columns, and multiply matrices, in the loops; in those
of every third seed, iterations hand variables on to the next.
Each is `program(u, v, c, n, m)` over a vector, a matrix and a vector that is never stored to, and returns
a scalar. What a read sees may be overwritten in the same iteration, in a later one of any loop around
it, by another store, or never: the cases that a plan must tell apart. Values stay bounded and every
function is smooth.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from generated import function_of

HEADERS = (  # of a loop that no other decides, with its first and last counter for n
    ("range(n)", lambda n: (0, n - 1)),
    ("range(n - 1)", lambda n: (0, n - 2)),
    ("range(1, n)", lambda n: (1, n - 1)),
    ("range(1, n - 1)", lambda n: (1, n - 2)),
    ("range(n - 1, -1, -1)", lambda n: (0, n - 1)),
    ("range(n - 2, 0, -1)", lambda n: (1, n - 2)),
    ("range(0, n, 2)", lambda n: (0, n - 1)),
    ("range(1, n - 1, 2)", lambda n: (1, n - 2)),
)
TRIANGLES = (
    "range({i} + 1, n)",
    "range({i} + 1)",
    "range({i}, n)",
    "range({i}, -1, -1)",
    "range(n - {i})",
)
FORMS = (
    "0.6 * {a} * {b}",
    "0.5 * {a} * {b} + 0.3 * {c}",
    "{a} * {a} * 0.7",
    "0.4 * np.sin({a}) * {b} + 0.2",
    "{a} / (1.5 + {b} * {b})",
    "0.3 * ({a} + {b}) * {c} + 0.1",
    "0.5 * {a} + 0.4 * {b}",
)


@dataclass(frozen=True)
class SweepProgram:
    """The source of one program, and the sizes that it is run with."""

    source: str
    n: int
    m: int

    def function(self) -> Callable[..., Any]:
        """The program as a Python function whose source can be found."""
        return function_of(self.source, "program", {"np": np})

    def arguments(self) -> tuple[Any, ...]:
        rng = np.random.default_rng(self.n)
        size = 3 * self.n + 6
        u, v, c = (rng.uniform(0.6, 1.3, s) for s in (size, (size, size), size))
        return u, v, c, self.n, self.m


@dataclass
class Writer:
    """Writes one program."""

    rng: random.Random
    n: int
    lines: list[str] = field(default_factory=list[str])
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """The counters in scope, with their least and greatest values."""

    depth: int = 0
    slices: bool = False
    """Whether statements may store slices."""
    hands_on: bool = False
    """Whether loops may hand variables on."""
    variables: list[str] = field(default_factory=list[str])
    """Those in scope."""

    def line(self, text: str) -> None:
        self.lines.append("    " * (1 + self.depth) + text)

    def subscript(self) -> str:
        """An affine function of the counters in scope that is not negative."""
        names = list(self.ranges)
        terms: list[str] = []
        low = 0
        count = min(self.rng.choice((0, 1, 1, 1, 1, 2)), len(names))
        for name in self.rng.sample(names, count):
            factor = self.rng.choice((1, 1, 1, 1, -1, 2))
            first, last = self.ranges[name]
            low += factor * (first if factor > 0 else last)
            terms.append({1: f"+ {name}", -1: f"- {name}", 2: f"+ 2 * {name}"}[factor])
        offset = self.rng.choice((0, 0, 1, 1, 2)) - min(low, 0)
        if not terms:
            return self.rng.choice((str(offset), str(offset), "n"))
        if any(t.startswith("-") for t in terms) and self.rng.random() < 0.7:
            return f"n {' '.join(terms)} + {max(offset - self.n, 0)}"
        if low - 1 >= 0 and self.rng.random() < 0.6:
            return f"{' '.join(terms)} - 1".removeprefix("+ ")
        return f"{offset} {' '.join(terms)}"

    def place(self) -> str:
        return (
            f"u[{self.subscript()}]"
            if self.rng.random() < 0.6
            else f"v[{self.subscript()}, {self.subscript()}]"
        )

    def near(self, place: str) -> str:
        """The same place, or one beside it."""
        shift = self.rng.choice(("", " + 1", " + 1", " + 2"))
        return place[:-1] + shift + "]"

    def value(self, target: str) -> str:
        def one() -> str:
            kind = self.rng.random()
            if self.variables and self.rng.random() < 0.5:
                return self.rng.choice(self.variables)
            if kind < 0.6:
                return self.near(target)
            return self.place() if kind < 0.85 else self.rng.choice(("c[n]", "c[2]", "s"))

        return self.rng.choice(FORMS).format(a=one(), b=one(), c=one())

    def statement(self) -> None:
        kind = self.rng.random()
        if kind < 0.08:
            self.line(f"s += 0.1 * {self.place()} * {self.place()}")
        elif kind < 0.14 and self.ranges:
            name = self.rng.choice(list(self.ranges))
            self.line(f"if {name} {self.rng.choice(('< 2', '> 1', '% 2 == 0'))}:")
            self.depth += 1
            self.assignment()
            self.depth -= 1
        else:
            self.assignment()

    def start(self) -> str:
        """Where a slice of n elements starts."""
        names = list(self.ranges)
        if names and self.rng.random() < 0.5:
            name = self.rng.choice(names)
            low = self.ranges[name][0]
            if low >= 1 and self.rng.random() < 0.3:
                return f"{name} - 1"
            return f"{name} + {self.rng.choice((0, 0, 1, 2))}"
        return str(self.rng.choice((0, 0, 1, 2)))

    def slice(self, like: str | None = None) -> str:
        """A slice of n elements; at times of the same row or column as `like`, beside it."""
        kind = self.rng.random()
        if like is not None and kind < 0.4:
            return like
        start = self.start()
        span = f"{start}:{start} + n"
        if like is not None and kind < 0.7 and like.startswith("v"):
            row, column = like[2:-1].split(", ")
            return f"v[{row}, {span}]" if ":" in column else f"v[{span}, {column}]"
        if kind < (0.8 if like is not None and like.startswith("u") else 0.6):
            return f"u[{span}]"
        at = self.start()
        return f"v[{at}, {span}]" if self.rng.random() < 0.6 else f"v[{span}, {at}]"

    def slice_assignment(self) -> None:
        target = self.slice()
        if self.rng.random() < 0.2:
            start = self.start()
            matrix = f"v[{start}:{start} + n, 1:n + 1]"
            self.line(f"{target} = np.tanh(0.3 * ({matrix} @ {self.slice(target)}))")
            return
        if self.rng.random() < 0.15:
            self.line(f"s += 0.1 * ({self.slice()} * {self.slice()}).sum()")
            return

        def one() -> str:
            if self.rng.random() < 0.75:
                return self.slice(target)
            return self.rng.choice((self.place(), "s", "c[:n]", "c[2:n + 2]"))

        value = self.rng.choice(FORMS).format(a=self.slice(target), b=one(), c=one())
        self.line(f"{target} = {value}")

    def assignment(self) -> None:
        if self.slices and self.rng.random() < 0.6:
            self.slice_assignment()
            return
        target = self.place()
        self.line(f"{target} = {self.value(target)}")

    def loop(self, depth: int) -> None:
        name = "ijk"[depth]
        outer = [o for o in self.ranges if o != "t"]
        if outer and self.rng.random() < 0.45:
            header = self.rng.choice(TRIANGLES).format(i=self.rng.choice(outer))
            limits = (0, self.n)
        else:
            header, of_n = self.rng.choice(HEADERS)
            limits = of_n(self.n)
        self.nest(name, header, limits, depth)

    def nest(self, name: str, header: str, limits: tuple[int, int], depth: int) -> None:
        if self.hands_on and self.rng.random() < 0.6:
            self.handing_on(name, header, limits, depth)
            return
        self.line(f"for {name} in {header}:")
        self.depth += 1
        self.ranges[name] = limits
        self.body(depth)
        del self.ranges[name]
        self.depth -= 1

    def handing_on(self, name: str, header: str, limits: tuple[int, int], depth: int) -> None:
        """A loop in which a variable, or two, is what an iteration before has read or computed."""
        last, here, two_ago = f"last_{name}", f"here_{name}", f"two_ago_{name}"
        self.line(f"{last} = {self.place()}")
        twice = self.rng.random() < 0.4
        if twice:
            self.line(f"{two_ago} = {self.rng.choice((last, self.place(), '0.7'))}")
        self.line(f"for {name} in {header}:")
        self.depth += 1
        self.ranges[name] = limits
        known = len(self.variables)
        self.variables += [last, two_ago] if twice else [last]
        form = self.rng.choice(("{place}", "{place}", *FORMS))
        place = self.place()
        read = form.format(place=place, a=place, b=self.place(), c=self.rng.choice(self.variables))
        self.line(f"{here} = {read}")
        self.variables.append(here)
        self.body(depth)
        if twice:
            self.line(f"{two_ago} = {self.rng.choice((last, last, here))}")
        value = here if self.rng.random() < 0.7 else self.value(place)
        self.line(
            f"{last} = {value}" if self.rng.random() < 0.9 else f"if {here} > 0.9: {last} = {value}"
        )
        del self.variables[known:]
        del self.ranges[name]
        self.depth -= 1

    def body(self, depth: int) -> None:
        for _ in range(self.rng.choice((1, 1, 2))):
            if depth < 2 and self.rng.random() < 0.4:
                self.loop(depth + 1)
            else:
                self.statement()


def sweep_program(seed: int) -> SweepProgram:
    """The program of a seed."""
    rng = random.Random(seed)
    n = rng.choice((3, 4, 5))
    writer = Writer(rng, n, slices=seed % 2 == 1, hands_on=seed % 3 == 2)
    writer.line("s = 0.5")
    for _ in range(rng.choice((1, 1, 2))):
        if rng.random() < 0.4:
            writer.line("for t in range(m):")
            writer.depth += 1
            if rng.random() < 0.2:
                writer.ranges["t"] = (0, 2)
            for _ in range(rng.choice((1, 1, 2))):
                writer.loop(0)
            if rng.random() < 0.3:
                writer.statement()
            writer.ranges.pop("t", None)
            writer.depth -= 1
        else:
            writer.loop(0)
    writer.line("return s + (u * u).sum() + (v * v).sum()")
    body = "\n".join(writer.lines)
    return SweepProgram(f"def program(u, v, c, n, m):\n{body}\n", n, rng.choice((1, 2, 3)))
