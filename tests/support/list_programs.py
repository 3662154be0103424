"""Small programs with lists of floats that grow and shrink in loops and branches.

`l` keeps its identity and has a second name; `m` is given new lists anywhere; `p1`, `p2`, ... are bound first
in a branch of a loop and read in later iterations. A program may raise what CPython raises (IndexError,
mostly). Items are NumPy floats, so that all have one type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from generated import function_of
from hypothesis import strategies as st

HEAD = "def program(x, n):"


@dataclass(frozen=True)
class ListProgram:
    """A program of a vector and an int."""

    source: str
    n: int

    def __repr__(self) -> str:
        return f"ListProgram(n={self.n}, source='''\n{self.source}''')"

    def function(self, result: str) -> Callable[..., Any]:
        """The program, returning `result`."""
        source = f"{self.source}    return {result}\n"
        return function_of(source, "program")

    def arguments(self) -> tuple[Any, ...]:
        return np.random.default_rng(self.n).uniform(-0.9, 0.9, 5), self.n


@dataclass(frozen=True)
class Scope:
    """The names that a statement may use."""

    items: tuple[str, ...] = ()
    """Items of lists that loops bind."""
    busy: tuple[str, ...] = ()
    """The lists that loops run over: they grow only so far, and are not given new lists."""
    late: tuple[str, ...] = ()
    """The lists that branches of the loops around bind."""
    depth: int = 0


class Writer:
    """Draws statements."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.loops = 0

    def one(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def index(self) -> str:
        return self.one("0", "1", "-1", "-2", "2", "n", "len(l) // 2", "len(m) - 1")

    def value(self, scope: Scope) -> str:
        k = self.draw(st.integers(0, 4))
        simple = [f"x[{k}]", "s * 0.5", "(x[0] + n)", *scope.items]
        a, b = self.one(*simple), self.one(*simple)
        form = self.one("{a}", "{a} * {b}", "{a} + {b} * x[1]", "{a} * x[2] - 0.25", "l[-1] * {a}")
        return "(" + form.format(a=a, b=b) + " * x[3])"

    def test(self, scope: Scope) -> str:
        return self.one("len(l) > 2", "m", "not l", "n > 1", "x[1] > 0.1", "len(m) < n")

    def block(self, scope: Scope, most: int) -> list[str]:
        lines = list[str]()
        for _ in range(self.draw(st.integers(1, most))):
            lines += self.statement(scope)
        return lines

    def statement(self, scope: Scope) -> list[str]:
        compound = ["if", "for", "late", "over", "shrink", "fill"] if scope.depth < 2 else []
        kind = self.one("grow", "grow", "shrink", "change", "read", "new", *compound)
        return getattr(self, f"{kind}_lines")(scope)

    def grow_lines(self, scope: Scope) -> list[str]:
        name, v = self.one("l", "m", "other", *scope.late), self.value(scope)
        line = self.one(
            f"{name}.append({v})",
            f"{name}.append({v})",
            f"{name}.insert({self.index()}, {v})",
            f"{name}.extend({self.one('l', 'm')}[:2])",
            f"{name} += [{v}, {self.value(scope)}]",
        ).replace("other +=", "l +=")
        if scope.busy:
            return [f"if len({name}) < 7:", f"    {line}"]
        return [line]

    def shrink_lines(self, scope: Scope) -> list[str]:
        name = self.one("l", "m", "other", *scope.late)
        line = self.one(
            f"s += {name}.pop()", f"s += {name}.pop({self.index()})", f"del {name}[{self.index()}]"
        )
        if self.draw(st.booleans()):
            return [f"if len({name}) > 2:", f"    {line}"]
        return [line]

    def change_lines(self, scope: Scope) -> list[str]:
        name, v = self.one("l", "m", "other", *scope.late), self.value(scope)
        return [
            self.one(
                f"{name}[{self.index()}] = {v}",
                f"{name}[{self.index()}] *= {v}",
                f"{name}.reverse()",
                f"{self.one('l', 'm')}.clear()" if not scope.busy else f"{name}.reverse()",
            )
        ]

    def read_lines(self, scope: Scope) -> list[str]:
        name, other = self.one("l", "m", "other", *scope.late), self.one("l", "m")
        return [
            self.one(
                f"s += {name}[{self.index()}] * {self.value(scope)}",
                f"s += sum(v * v for v in {name})",
                f"s += sum([v for v in {name} if v > 0.05]) * s",
                f"s += max({name}) * 0.5",
                f"s += len({name}) * x[4]",
                f"s += np.sum({name}) * x[2]",
                f"s += sum(a * b for a, b in zip({name}, {other}))",
            )
        ]

    def new_lines(self, scope: Scope) -> list[str]:
        if "m" in scope.busy:
            return self.read_lines(scope)
        return [
            self.one(
                "m = []",
                f"m = [v * {self.value(scope)} for v in l]",
                "m = [v for v in m if v > 0.0]",
                f"m = l[{self.one('', '1', '-2')}:{self.one('', 'n', '-1')}]",
                "m = m[::-1] + l[:1]",
                f"m = [{self.value(scope)}]",
            )
        ]

    def inner(self, scope: Scope, items: tuple[str, ...] = (), busy: str | None = None) -> Scope:
        names = scope.busy if busy is None else (*scope.busy, busy)
        return Scope((*scope.items, *items), names, scope.late, scope.depth + 1)

    def if_lines(self, scope: Scope) -> list[str]:
        lines = [f"if {self.test(scope)}:", *indented(self.block(self.inner(scope), 2))]
        if self.draw(st.booleans()):
            lines += ["else:", *indented(self.block(self.inner(scope), 2))]
        return lines

    def for_lines(self, scope: Scope) -> list[str]:
        self.loops += 1
        i = f"i{self.loops}"
        body = self.block(self.inner(scope, (f"x[{i}]",)), 3)
        return [f"for {i} in range({self.one('n', '2', '3')}):", *indented(body)]

    def late_lines(self, scope: Scope) -> list[str]:
        """A loop that binds a list in a branch, once or again, and reads it whenever it has one."""
        self.loops += 1
        i, name, v = f"i{self.loops}", f"p{self.loops}", self.value(scope)
        inner = self.inner(scope, (f"x[{i}]",))
        made = self.one(
            f"[{v}, {v} * x[{i}]]", f"[{v} * w for w in x[{i}:]]", f"m + [{v}]", "list(x)"
        )
        bound = self.bound(f"{name} = {made}", i, scope)
        lines = [*bound, *self.block(replace(inner, late=(*scope.late, name)), 3)]
        if self.draw(st.booleans()):
            lines = [f"if {i} > 0:", f"    s += {name}[-1] * x[{i}]", *lines]
        if self.draw(st.booleans()):
            lines += [f"{name} = [w * x[{i}] for w in {name}]"]
        after = [f"s += sum({name}) * x[0]"] if self.draw(st.booleans()) else []
        if self.draw(st.booleans()):
            return [f"for {i} in range(n + 1):", *indented(lines), *after]
        return [f"{i} = 0", f"while {i} <= n:", *indented([*lines, f"{i} += 1"]), *after]

    def bound(self, statement: str, i: str, scope: Scope) -> list[str]:
        """A branch that runs in the first iteration, and maybe in others."""
        test = self.one(f"{i} == 0", f"{i} % 2 == 0", f"{i} == 0 or {self.test(scope)}")
        forms = [
            [f"if {test}:", f"    {statement}"],
            [f"match {i}:", "    case 0 | 2:", f"        {statement}"],
            ["try:", f"    if {test}:", "        raise ValueError", "except ValueError:"]
            + [f"    {statement}"],
        ]
        return self.draw(st.sampled_from(forms))

    def over_lines(self, scope: Scope) -> list[str]:
        self.loops += 1
        name, v = self.one("l", "m", *scope.late), f"v{self.loops}"
        head = self.one(
            f"for {v} in {name}:",
            f"for k, {v} in enumerate({name}):",
            f"for {v}, w in zip({name}, x):",
        )
        body = self.block(self.inner(scope, (v,), name), 2)
        return [head, *indented(body)]

    def fill_lines(self, scope: Scope) -> list[str]:
        name = self.one("l", "m")
        grows = f"{name}.append({self.value(scope)})"
        return self.draw(
            st.sampled_from(
                [
                    [f"while len({name}) < n + 2:", f"    {grows}"],
                    [f"while len({name}) > 2:", f"    s = s * 0.5 + {name}.pop()"],
                ]
            )
        )


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


@st.composite
def list_programs(draw: Callable[[Any], Any]) -> ListProgram:
    """A program, and how large its int is."""
    writer = Writer(draw)
    start = writer.one("[]", "list(x)", "[x[0], x[1]]", "[v * v for v in x]", "[x[2]] * n")
    lines = ["s = x[0] * 0.5", f"l = {start}", "other = l", "m = [x[1] * x[1]]"]
    lines += writer.block(Scope(), 6)
    source = "\n".join(["import numpy as np", HEAD, *indented(lines), ""])
    return ListProgram(source, draw(st.integers(0, 3)))
