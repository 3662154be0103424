"""Small programs that count: integers moved in branches and loops say where floats are read and stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from generated import function_of
from hypothesis import strategies as st

HEAD = "def program(x, n):"
COUNTERS = ("i", "j", "k")


@dataclass(frozen=True)
class CounterProgram:
    """A program of a vector and an int."""

    source: str
    n: int

    def __repr__(self) -> str:
        return f"CounterProgram(n={self.n}, source='''\n{self.source}''')"

    def function(self) -> Callable[..., Any]:
        return function_of(self.source, "program")

    def arguments(self) -> tuple[Any, ...]:
        return np.random.default_rng(self.n).uniform(-0.9, 0.9, 5), self.n


class Writer:
    """Draws statements; what stands in loops may leave them."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.loops = 0

    def one(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def counter(self) -> str:
        return self.one(*COUNTERS)

    def place(self) -> str:
        c = self.counter()
        return self.one(f"x[{c} % 5]", f"b[{c} % 7]", f"b[{c} % 7]", f"b[({c} - 1) % 7]", "s")

    def test(self) -> str:
        c, d = self.counter(), self.counter()
        return self.one(
            f"x[{c} % 5] > 0.1", f"{c} % 2 == 0", f"{c} < {d}", f"b[{c} % 7] < 0.2", "n > 1"
        )

    def block(self, depth: int, most: int, *, loop: bool) -> list[str]:
        lines = list[str]()
        for _ in range(self.draw(st.integers(1, most))):
            lines += self.statement(depth, loop=loop)
        return lines

    def statement(self, depth: int, *, loop: bool) -> list[str]:
        compound = ["if", "if", "for", "while"] if depth < 3 else []
        leave = ["leave"] if loop else []
        kind = self.one("move", "move", "read", "write", "write", "set", *compound, *leave)
        if kind in compound:
            return getattr(self, f"{kind}_lines")(depth, loop=loop)
        return getattr(self, f"{kind}_lines")()

    def move_lines(self) -> list[str]:
        c, d = self.counter(), self.counter()
        return [
            self.one(
                f"{c} += 1",
                f"{c} += 1",
                f"{c} -= 1",
                f"{c} += n",
                f"{c} = 1 - {c}",
                f"{c} ^= 3",
                f"{c} += {d} % 2",
                f"{c} = {c} + 2 if {self.test()} else {c}",
            )
        ]

    def set_lines(self) -> list[str]:
        c, d = self.counter(), self.counter()
        return [self.one(f"{c} = 0", f"{c} = {d}", f"{c} = {c} % 4", f"{c} = {d} + 1")]

    def read_lines(self) -> list[str]:
        return [f"s = s * 0.5 + {self.place()} * {self.place()}"]

    def write_lines(self) -> list[str]:
        target = f"b[{self.counter()} % 7]"
        return [self.one(f"{target} = {self.place()} * {self.place()}", f"{target} *= 0.9 + s * s")]

    def leave_lines(self) -> list[str]:
        return [f"if {self.test()}:", f"    {self.one('break', 'continue', 'return s')}"]

    def if_lines(self, depth: int, *, loop: bool) -> list[str]:
        lines = [f"if {self.test()}:", *indented(self.block(depth + 1, 2, loop=loop))]
        if self.draw(st.booleans()):
            lines += ["else:", *indented(self.block(depth + 1, 2, loop=loop))]
        return lines

    def for_lines(self, depth: int, *, loop: bool) -> list[str]:
        self.loops += 1
        head = f"for t{self.loops} in range({self.one('n', '2', '3')}):"
        lines = self.block(depth + 1, 4, loop=True)
        if self.draw(st.booleans()):
            lines.append(f"s += x[t{self.loops}] * b[{self.counter()} % 7]")
        return [head, *indented(lines)]

    def while_lines(self, depth: int, *, loop: bool) -> list[str]:
        self.loops += 1
        w = f"w{self.loops}"
        body = [f"{w} += 1", *self.block(depth + 1, 3, loop=True)]
        return [
            f"{w} = 0",
            f"while {w} < 3 and {self.one('n > 0', self.test())}:",
            *indented(body),
        ]


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


@st.composite
def counter_programs(draw: Callable[[Any], Any]) -> CounterProgram:
    """A program, and how large its int is."""
    writer = Writer(draw)
    lines = ["s = x[0] * 0.5", "b = np.zeros(7)", "b[:5] = x * x", "i = j = 0", "k = n"]
    lines += [f"for t0 in range({writer.one('n', '3')}):"]
    lines += indented(writer.block(1, 5, loop=True))
    lines += writer.block(0, 2, loop=False)
    lines += ["return s + (b * b).sum() + b[k % 7]"]
    return CounterProgram(
        "\n".join(["import numpy as np", HEAD, *indented(lines), ""]), draw(st.integers(0, 3))
    )
