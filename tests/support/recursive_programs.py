"""Programs around a nested recursive function: it returns numbers, new arrays and objects, changes
what it is given and what is around, raises and catches.

What it does depends on the depth only, so programs are smooth where they do not raise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from generated import function_of
from hypothesis import strategies as st
from small_programs import Draw, indented


@dataclass
class Box:
    """What the programs' objects are."""

    t: Any
    pos: Any


@dataclass(frozen=True)
class RecursiveProgram:
    """A function of a vector and a depth, which returns a float."""

    source: str

    def __repr__(self) -> str:
        return f"RecursiveProgram(source='''\n{self.source}''')"

    def function(self) -> Callable[..., Any]:
        return function_of(self.source, "program", {"np": np, "math": math, "Box": Box})


RESULTS = {
    "number": ("{e}", "r"),
    "array": ("{a}", "r[0]"),
    "pair": ("({e}, {a})", "r[0] + r[1][-1]"),
    "box": ("Box({e}, {a})", "r.t * r.pos[0]"),
    "argument": ("{v}", "r[0]"),
}
"""By kind of result: what a `return` returns, and a number of it."""


@dataclass
class Writer:
    draw: Draw
    kind: str

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def number(self) -> str:
        p, q = (
            self.pick("s.t", "v[0]", "w", "total", "out[-1]", "log[1]", "s.pos[0]", "0.7")
            for _ in range(2)
        )
        form = self.pick(
            p, f"{p} * {q}", f"{p} + 0.5 * {q}", f"{p} - {q}", f"float(len(out)) * {p}"
        )
        return f"np.sin({form})"

    def array(self) -> str:
        doubled = "np.concatenate([v, v]) * {e}"
        form = self.pick("v * {e}", "np.sin(v) + {e}", "v.copy()", "s.pos * {e}", doubled)
        return form.format(e=self.number())

    def result(self) -> str:
        shown = RESULTS[self.kind][0]
        if self.kind == "array" and self.pick(False, False, True):
            return "v"
        return shown.format(e=self.number(), a=self.array(), v="v")

    def statement(self) -> list[str]:
        e = self.number()
        return self.pick(
            [f"s.t = {e}"],
            [f"s.t += {e}"],
            [f"s.pos = s.pos * 0.5 + {e}"],
            [f"s.pos[0] += {e}"],
            [f"out.append({e})"],
            ["if len(out) > 1:", "    out.pop()"],
            [f"log[i % 3] += {e}"],
            [f"total += {e}"],
            [f"v[0] = {e}"],
            [
                f"if i == {self.pick(1, 2, 3)}:",
                f"    raise {self.pick('ValueError', 'KeyError')}('no')",
            ],
            ["for k in range(2):", f"    log[k] += {e}"],
        )

    def statements(self, most: int) -> list[str]:
        count = self.draw(st.integers(0, most))
        return [line for _ in range(count) for line in self.statement()]

    def call(self) -> list[str]:
        v = self.pick("v", "v[1:]", "v * 0.5", "v[::-1]", "s.pos")
        return [f"r = go({v}, i - 1, {self.pick('w', self.number(), '1')})"]

    def guarded(self, call: list[str]) -> list[str]:
        form = self.pick("plain", "plain", "except", "finally", "both")
        if form == "plain":
            return call
        lines = ["try:", *indented(call)]
        if form != "finally":
            caught = self.pick("ValueError", "Exception", "(KeyError, IndexError)")
            again = self.pick([], [], ["if i > 2:", "    raise"])
            lines += [f"except {caught}:", *indented([*again, f"r = {self.result()}"])]
        if form != "except":
            lines += ["finally:", *indented(self.statements(1) or ["log[2] += 1.0"])]
        return lines

    def calls(self) -> list[str]:
        used = f"total += 0.5 * ({RESULTS[self.kind][1]})"
        lines = [*self.guarded(self.call()), used]
        if self.pick(False, True):
            lines += [*self.guarded(self.call()), used]
        return lines

    def program(self) -> str:
        body = [
            "nonlocal total",
            *self.statements(2),
            "if i <= 0 or v.size < 2:",
            *indented([*self.statements(1), f"return {self.result()}"]),
            *self.statements(2),
            *self.calls(),
            *self.statements(1),
            f"return {self.pick('r', self.result())}",
        ]
        lines = [
            "s, out, log, total = Box(x[0], x * 0.5), [1.0], np.zeros(3), 0.5",
            "def go(v, i, w):",
            *indented(body),
            *self.guarded(["r = go(x, n, 0.25)"]),
            f"total += {RESULTS[self.kind][1]}",
            "return total + s.t + s.pos.sum() + sum(out) * len(out) + (log * log).sum()",
        ]
        text = [
            line.replace("(v, i - 1, ", "(x, n, ") if line.startswith("r = ") else line
            for line in lines
        ]
        setup = ["v, i, w = x, n, 0.5"]
        return "\n".join(["def program(x, n):", *indented([*setup, *text])]) + "\n"


@st.composite
def recursive_programs(draw: Draw) -> RecursiveProgram:
    kind = draw(st.sampled_from(sorted(RESULTS)))
    return RecursiveProgram(Writer(draw, kind).program())
