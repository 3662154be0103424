"""A hypothesis strategy that writes loops over one element of each array, as LLVM's vectorizers like them.

Every program is `program(x, y, z, m, k, j, b, p)` over three vectors of floats, a matrix of as many rows
and three columns, vectors of int64, int32 and bool, and subscripts; it returns a float. Branches choose
between loads, store over what was read, swap, count; loops have many trips or provably few; whole-array
statements touch two or three elements. All of that becomes vector code under masks, or does not, by the
CPU that it is for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from generated import function_of
from hypothesis import strategies as st

Draw = Callable[..., Any]

HEADERS = {  # header -> how far below and above an index stays inside 0 ... n - 1, for n > 2
    "range(n)": (0, 0),
    "range(1, n)": (1, 0),
    "range(n - 1)": (0, 1),
    "range(n - 1, -1, -1)": (0, 0),
    "range(0, n, 2)": (0, 0),
    "range(min(n, 3))": (0, 0),
    "range(min(n - 1, 7))": (0, 1),
    "range(2)": (0, 1),
}
FLOATS = (
    "0.5 * ({p} + {q})",
    "0.5 * {p} * {q}",
    "0.5 * {p} - 0.25 * {q} * {q}",
    "{p} / (1.5 + {q} * {q})",
    "0.9 * {p}",
    "abs({p})",
    "np.sqrt(1.0 + {p} * {p}) - {q}",
    "np.sin({p} + {q})",
    "0.5 * min({p}, {q})",
    "np.copysign({p}, {q})",
    "({p} if {c} else {q})",
)
INTEGERS = ("-{p}", "{p} // 3", "{p} % 5", "abs({p})", "{p} - {q} // 2", "({p} if {c} else {q})")
KINDS = (
    *("choice", "take", "store", "store", "local", "sum", "swap", "integer", "bool"),
    *("branch", "branch", "branch", "branch"),
)
WHOLE = (
    "x[:2] = {f} * z[:2]",
    "m[:2, :2] = m[1:3, :1]",
    "m[:2, 1:] *= x[:2, None]",
    "x[:3] += m[:3, :2].sum(axis=1)",
    "m[:, 0] = x * y",
    "m[::-1][:2] += m[:2]",
    "x[b] = y[b]",
    "y[k < 0] *= 0.5",
    "x[:] = np.where(b, y, 0.5 * x)",
    "z[:] = np.where(k < j, x, z)",
    "b[:] = (k < 0) | (x > y)",
    "x[p[:2]] = 0.5 * y[:2]",
    "x[:3], y[:3] = y[:3].copy(), x[:3].copy()",
    "s += np.where(b, x, y).sum()",
    "s += 0.1 * np.count_nonzero(k < 0)",
    "s += 0.1 * (x[k < 0].sum() if (k < 0).any() else m[0, 1])",
)


@dataclass(frozen=True)
class LaneProgram:
    """A program, and the dtype of its floats."""

    source: str
    dtype: str

    def __repr__(self) -> str:
        return f"LaneProgram(dtype={self.dtype!r}, source='''\n{self.source}''')"

    def function(self) -> Callable[..., Any]:
        """The program as a Python function whose source can be found."""
        return function_of(self.source, "program", {"np": np})

    def arguments(self, n: int) -> tuple[np.ndarray, ...]:
        """Fresh arguments for vectors of n."""
        rng = np.random.default_rng(n)
        x, y, z = (rng.uniform(-1, 1, n).astype(self.dtype) for _ in range(3))
        m = rng.uniform(-1, 1, (n, 3)).astype(self.dtype)
        k, j = rng.integers(-9, 9, n), rng.integers(-9, 9, n).astype(np.int32)
        return x, y, z, m, k, j, rng.random(n) > 0.5, rng.integers(0, n, n)


@dataclass
class Writer:
    """Writes statements; `near` are the subscripts of the loop around them."""

    draw: Draw
    near: list[str] = field(default_factory=list[str])
    locals: list[str] = field(default_factory=list[str])
    lanes: bool = True
    """No iteration touches what another does."""

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def element(self) -> str:
        """An element of an array of floats."""
        place = self.pick("v", "v", "v", "m")
        if place == "m":
            return f"m[{self.pick(*self.near)}, {self.pick('0', '1', '2')}]"
        return f"{self.pick('x', 'y', 'z')}[{self.pick(*self.near)}]"

    def leaf(self) -> str:
        kind = self.pick("element", "element", "element", "local", "gathered", "s", "number")
        if kind == "local" and self.locals:
            return self.pick(*self.locals)
        if kind == "gathered" and not self.lanes:
            return f"{self.pick('x', 'z')}[p[i]]"
        if kind == "s" and not self.lanes:
            return "s"
        return "0.5" if kind == "number" else self.element()

    def floating(self) -> str:
        form = self.pick(*FLOATS)
        return form.format(
            p=self.leaf(), q=self.leaf(), c=self.condition() if "{c}" in form else ""
        )

    def integer(self) -> str:
        form = self.pick(*INTEGERS)
        p, q = (f"{self.pick('k', 'j')}[{self.pick(*self.near)}]" for _ in range(2))
        return form.format(p=p, q=q, c=self.condition() if "{c}" in form else "")

    def condition(self, depth: int = 0) -> str:
        forms = (
            "k[i] < 0",
            "j[i] < 0",
            "k[i] < j[i]",
            "b[i]",
            "not b[i]",
            "i % 2 == 0",
            "j[i] % 3 == 1",
        )
        compared = f"{self.leaf()} {self.pick('<', '>', '>=')} {self.pick('0.1', self.leaf())}"
        if depth == 0 and self.pick(False, False, True):
            return f"({self.condition(1)} {self.pick('and', 'or')} {self.condition(1)})"
        return self.pick(*forms, compared, compared, compared)

    def statement(self, depth: int) -> list[str]:
        """In a loop; at most two branches deep."""
        kind = self.pick(*KINDS)
        if kind == "branch" and depth < 2:
            return self.branch(depth)
        if kind == "choice":
            return self.choice()
        if kind == "take" and self.locals:
            element = self.element()
            return [
                f"{self.pick(*self.locals)} = {element}",
                f"{element} = {self.pick('0.0', '0.25', self.leaf())}",
            ]
        if kind == "local" and self.locals:
            return [f"{self.pick(*self.locals)} = {self.floating()}"]
        if kind == "sum":
            return [
                self.pick(
                    f"s += 0.1 * {self.leaf()}",
                    "t += 1",
                    "t += k[i]",
                    f"s = 0.5 * s + {self.element()}",
                )
            ]
        if kind == "swap":
            p, q = self.element(), self.element()
            return [f"{p}, {q} = {q}, {p}"]
        if kind == "integer":
            return [f"{self.pick('k', 'j')}[i] = {self.integer()}"]
        if kind == "bool":
            return [f"b[i] = {self.condition()}"]
        sign, form = self.pick(
            ("=", "{}"), ("=", "{}"), ("+=", "0.25 * ({})"), ("*=", "0.6 * ({})")
        )
        return [f"{self.element()} {sign} {form.format(self.floating())}"]

    def choice(self) -> list[str]:
        """A load under a condition whose place is stored to, as reverse sweeps have it: read, then zero."""
        name, taken, other, use = self.pick("g", "h"), "x[i]", "z[i]", self.element()
        return [
            f"if {self.pick('k[i] < 0', 'b[i]', 'z[i] > 0.1', self.condition())}:",
            *indented([f"{name} = {taken}", f"{taken} = {self.pick('0.0', '0.25', self.leaf())}"]),
            *["else:", *indented([f"{name} = {self.pick(other, other, self.leaf())}"])],
            self.pick(f"s += 0.1 * {name}", f"{use} = 0.9 * {name}"),
        ]

    def branch(self, depth: int) -> list[str]:
        lines = [f"if {self.condition()}:", *indented(self.block(depth + 1))]
        if self.pick(True, False):
            lines += ["else:", *indented(self.block(depth + 1))]
        return lines

    def block(self, depth: int) -> list[str]:
        return [line for _ in range(self.pick(1, 1, 2)) for line in self.statement(depth)]

    def loop(self) -> list[str]:
        header = self.pick(*HEADERS)
        below, above = HEADERS[header]
        self.lanes = self.pick(True, True, False)
        self.near = ["i"] if self.lanes else ["i", "i", *["i - 1"] * below, *["i + 1"] * above]
        self.locals = []
        lines: list[str] = []
        if self.pick(True, False):
            return [f"for i in {header}:", *indented(self.choice())]
        for name in ("g", "h")[: self.pick(0, 1, 2)]:
            lines.append(f"{name} = {self.floating()}")
            self.locals.append(name)
        for _ in range(self.pick(1, 2, 3)):
            lines += self.statement(0)
        return [f"for i in {header}:", *indented(lines)]

    def whole(self) -> list[str]:
        return [self.pick(*WHOLE).format(f=self.pick("0.5", "y[0]", "y[:2]"))]


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


@st.composite
def lane_programs(draw: Draw) -> LaneProgram:
    """A program with one to three loops or whole-array statements, and the dtype of its floats."""
    writer = Writer(draw)
    body = ["n = len(x)", "s = 0.5", "t = 0"]
    for _ in range(writer.pick(1, 2, 3)):
        body += writer.pick(writer.loop, writer.loop, writer.whole)()
    body.append("return float(s + 0.01 * t + (x * y).sum() + z.sum() + (m * m).sum())")
    source = "\n".join(["def program(x, y, z, m, k, j, b, p):", *indented(body)])
    return LaneProgram(source + "\n", writer.pick("float64", "float64", "float32"))
