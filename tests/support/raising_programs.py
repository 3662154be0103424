"""A hypothesis strategy that writes loops which may leave their arrays or divide by zero, as Python source.

Subscripts run out at either end, wrap, or come from an array; operands meet the edges of `math`.
Whatever was stored before the exception stays stored, and that is what the programs are compared by.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from generated import function_of
from hypothesis import strategies as st

Draw = Callable[..., Any]

HEADERS = (
    "range(n)",
    "range(n - 1)",
    "range(1, n)",
    "range(n + 1)",
    "range(n - 1, -1, -1)",
    "range(n, 0, -1)",
    "range(0, n, 2)",
    "range(-2, n)",
    "range(k)",
    "range(k, n + k)",
)
ROWS = (
    "f64[9]:pos f64[9]:pos f64[9,9]:pos i64[9]:pos 0.7 3",
    "f64[16] f64[16]:pos f64[16,16] i64[16]:pos 0.7 12",
    "f64[40]:pos f64[39]:pos f64[40,39]:pos i64[41]:pos 1.5 2",
)


@dataclass(frozen=True)
class RaisingProgram:
    """A function of x, y, z, p, a, k; it returns a float or raises."""

    source: str

    def __repr__(self) -> str:
        return f"RaisingProgram('''\n{self.source}''')"

    def function(self) -> Callable[..., Any]:
        return function_of(self.source, "f", {"np": np, "math": math})


@dataclass
class Writer:
    draw: Draw

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def subscript(self, i: str) -> str:
        inside = (i, f"{i} - 1", f"n - 1 - {i}", "0", "-1")
        beyond = (f"{i} + 1", f"{i} + 2", f"n - {i}", f"2 * {i}", f"{i} + k", f"p[{i}]", f"-{i}")
        return self.pick(*inside, *inside, *beyond)

    def leaf(self, i: str) -> str:
        kind = self.pick("x", "y", "a", "index", "z")
        if kind == "z":
            return f"z[{self.subscript(i)}, {self.subscript(i)}]"
        return {"a": "a", "index": f"float({i})"}.get(kind, f"{kind}[{self.subscript(i)}]")

    def expression(self, i: str) -> str:
        form = self.pick(
            "{p} + {q}",
            "{p} - 0.5 * {q}",
            "{p} * {q}",
            "math.sqrt({p})",
            "math.log({p} + 0.9)",
            "{p} / float({q})",
            "{p} // float({q})",
            "math.exp({p} * 300)",
            "(1.5 if math.gamma({p}) > 1.1 else 0.5)",
            "np.sqrt(abs({p}))",
            "({p} if {q} > 0.5 else {q})",
        )
        return form.format(p=self.leaf(i), q=self.leaf(i))

    def statement(self, i: str, depth: int) -> list[str]:
        kind = self.pick("store", "store", "store", "add", "count", "slice", "branch", "loop")
        if kind == "add":
            return [f"s += {self.expression(i)}"]
        if kind == "count":
            return [f"p[{self.subscript(i)}] += 1"]
        if kind == "slice":
            return [f"x[{self.subscript(i)}:] = {self.leaf(i)}"]
        if kind == "branch":
            return [f"if {self.leaf(i)} > {self.pick('0', 'a')}:", *self.block(i, depth + 1)]
        if kind == "loop" and depth < 2:
            j = f"j{depth}"
            return [
                f"for {j} in {self.pick('range(n)', 'range(k)', f'range({i})', 'range(n + 1)')}:"
            ] + (self.block(j, depth + 1))
        place = self.pick(f"x[{self.subscript(i)}]", f"y[{self.subscript(i)}]")
        return [f"{place} {self.pick('=', '+=', '*=')} {self.expression(i)}"]

    def block(self, i: str, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.draw(st.integers(1, 2))):
            lines += self.statement(i, depth)
        return ["    " + line for line in lines]


@st.composite
def raising_programs(draw: Draw) -> RaisingProgram:
    """A loop nest that may raise."""
    writer = Writer(draw)
    lines = ["def f(x, y, z, p, a, k):", "    n = x.size", "    s = 0.5 * a"]
    lines += [f"    for i in {writer.pick(*HEADERS)}:"]
    lines += ["    " + line for line in writer.block("i", 0)]
    return RaisingProgram("\n".join([*lines, "    return float(s)", ""]))
