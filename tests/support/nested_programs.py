"""Small programs with lists of lists, of arrays and of objects, names for their items, and items that move.

What mutad refuses of them (an array in a list that is changed under another name, an object put in a list by
one path only) is no failure; what it compiles must do what CPython does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from list_programs import ListProgram, indented

HEAD = "def program(x, n):"
START = [
    "s = x[0] * 0.5",
    "rows = [[x[1] * x[2]]]",
    "row = rows[0]",
    "arrays = [x * x[0]]",
    "a = arrays[0]",
    "things = [Thing(x[3], x[1] * x[1])]",
    "t = things[0]",
]
CLASS = [
    "class Thing:",
    "    def __init__(self, u, v):",
    "        self.u, self.v = u, v",
]
RESULTS = {
    "rows": "[sum(r) for r in rows], [len(r) for r in rows], len(row)",
    "arrays": "np.stack(arrays), a.sum()",
    "things": "[q.u for q in things], [q.v for q in things], t.u",
}


@dataclass(frozen=True)
class Scope:
    items: tuple[str, ...] = ()
    depth: int = 0


class Writer:
    """Draws statements."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.names = 0

    def one(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def index(self, name: str) -> str:
        return self.one("0", "-1", f"len({name}) // 2", f"n % len({name})")

    def value(self, scope: Scope) -> str:
        simple = [f"x[{self.one('0', '1', '2', '3', '4')}]", "s * 0.5", *scope.items]
        read = [
            f"rows[{self.index('rows')}][-1]", "row[0]", f"arrays[{self.index('arrays')}][1]",
            "a[0]", f"things[{self.index('things')}].u", "t.v",
        ]  # fmt: skip
        a, b = self.one(*simple), self.one(*simple, *read)
        return "(" + self.one(f"{a} * {b}", f"{a} + {b} * x[1]", f"0.5 * {b}") + " * x[3])"

    def block(self, scope: Scope, most: int) -> list[str]:
        lines = list[str]()
        for _ in range(self.draw(st.integers(1, most))):
            compound = ("if_lines", "for_lines", "over_lines", "late_lines")
            compound = compound if scope.depth < 2 else ()
            kinds = (
                "row_lines",
                "array_lines",
                "thing_lines",
                "row_lines",
                "read_lines",
                "move_lines",
            )
            lines += getattr(self, self.one(*kinds, *compound))(scope)
        return lines

    def fresh(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def row_lines(self, scope: Scope) -> list[str]:
        v, i, new = self.value(scope), self.index("rows"), self.fresh("m")
        forms = [
            [f"rows.append([{v}, {self.value(scope)}])"],
            [f"{new} = [{v}]", f"rows.append({new})", f"{new}.append({self.value(scope)})"],
            [f"rows.append([v * {v} for v in x[:n]])", f"rows[-1].append({v})"],
            [f"rows[{i}].append({v})"],
            [f"rows[{i}][-1] = {v}"],
            [f"rows[{i}][0] *= {v}"],
            [f"row = rows[{i}]"],
            [f"row.append({v})"],
            [f"row.insert(0, {v})"],
            ["if len(row) > 1:", "    row.pop()"],
            [f"rows[{i}].sort()"],
            [f"row += rows[{i}][:2]"],
            [f"row[0] = {v}"],
        ]
        return forms[self.draw(st.integers(0, len(forms) - 1))]

    def array_lines(self, scope: Scope) -> list[str]:
        v, i, new = self.value(scope), self.index("arrays"), self.fresh("w")
        forms = [
            [f"arrays.append(x * {v})"],
            [f"arrays.append(arrays[{i}] * {v} + x)"],
            [f"{new} = np.sin(a) * {v}", f"arrays.append({new})"],
            [f"{new} = x + {v}", f"arrays.append({new})", f"{new}[0] = {v}"],
            [f"arrays[{i}][1] = {v}"],
            [f"arrays[{i}] += x * {v}"],
            [f"a = arrays[{i}]"],
            [f"a[0] *= {v}"],
            [f"arrays.append(arrays[{i}].copy())"],
        ]
        return forms[self.draw(st.integers(0, len(forms) - 1))]

    def thing_lines(self, scope: Scope) -> list[str]:
        v, i, new = self.value(scope), self.index("things"), self.fresh("q")
        forms = [
            [f"things.append(Thing({v}, {self.value(scope)}))"],
            [f"{new} = Thing({v}, s)", f"things.append({new})", f"{new}.u *= {self.value(scope)}"],
            [f"things[{i}].u += {v}"],
            [f"t = things[{i}]"],
            [f"t.v = t.u * {v}"],
            [f"things[{i}].v = t.v + {v}"],
        ]
        return forms[self.draw(st.integers(0, len(forms) - 1))]

    def move_lines(self, scope: Scope) -> list[str]:
        """Items move in a list, to another, or are in two."""
        v, name = self.value(scope), self.one("rows", "arrays", "things")
        i, j = self.index(name), self.index(name)
        item = {"rows": "row", "arrays": "a", "things": "t"}[name]
        new = {"rows": f"[{v}, x[0]]", "arrays": f"x * {v}", "things": f"Thing({v}, s)"}[name]
        key = {"rows": "len(q)", "arrays": "q[1]", "things": "q.u"}[name]
        forms = [
            [f"{name}[{i}], {name}[{j}] = {name}[{j}], {name}[{i}]"],
            [f"{name}.insert({i}, {new})"],
            [f"{name}[{i}] = {new}"],
            [f"{name}.append({item})"],
            [f"{name}[{i}] = {name}[{j}]"],
            [f"{name}.reverse()"],
            [f"{name}.sort(key=lambda q: {key})"],
            [f"if len({name}) > 1:", f"    {item} = {name}.pop({self.one('', '0', '-1')})"],
            [f"if len({name}) > 1:", f"    del {name}[{i}]"],
            [f"other = {name}[{self.one('', '1', '-2')}:]", f"{name}.append(other[-1])"]
            if scope.depth == 0
            else [f"{name} += {name}[:1]"],
            [f"if {item} in {name} and len({name}) > 1:", f"    {name}.remove({item})"]
            if name != "arrays"
            else [f"a = min(arrays, key=lambda q: {key})"],
            [f"{name} = [q for q in {name} if {key} < s + 2.0] + {name}[:1]"]
            if name in ("arrays", "things")
            else [f"rows = rows[1:] + [[{v}]]"],
        ]
        return forms[self.draw(st.integers(0, len(forms) - 1))]

    def read_lines(self, scope: Scope) -> list[str]:
        return [
            self.one(
                f"s += {self.value(scope)}",
                "s += sum(row) * x[2]",
                "s += sum([sum(r) for r in rows]) * 0.25",
                "s += sum(v.sum() for v in arrays) * 0.25",
                "s += (a * arrays[-1]).sum()",
                "s += sum([q.u * q.v for q in things])",
                "s += len(rows) * x[4] + len(row)",
            )
        ]

    def inner(self, scope: Scope, *items: str) -> Scope:
        return Scope((*scope.items, *items), scope.depth + 1)

    def if_lines(self, scope: Scope) -> list[str]:
        test = self.one("len(row) > 1", "n > 1", "x[1] > 0.1", "t.u < s", "len(arrays) < 3")
        lines = [f"if {test}:", *indented(self.block(self.inner(scope), 2))]
        if self.draw(st.booleans()):
            lines += ["else:", *indented(self.block(self.inner(scope), 2))]
        return lines

    def for_lines(self, scope: Scope) -> list[str]:
        i = self.fresh("i")
        body = self.block(self.inner(scope, f"x[{i}]"), 3)
        return [f"for {i} in range({self.one('n', '2')}):", *indented(body)]

    def late_lines(self, scope: Scope) -> list[str]:
        """A branch of a loop binds a list first; later iterations read and change it."""
        i, new, v = self.fresh("i"), self.fresh("b"), self.value(scope)
        made, *ways = {
            "rows": (f"[[{v}], [x[0], s]]", f"{new}[-1].append({v})", f"s += {new}[0][-1]"),
            "arrays": (f"[x * {v}]", f"{new}.append(x * s)", f"s += {new}[-1][1]"),
            "things": (f"[Thing({v}, s)]", f"{new}.append(Thing(s, {v}))", f"s += {new}[0].u"),
        }[self.one("rows", "arrays", "things")]
        binds = [f"if {self.one(f'{i} == 0', f'{i} % 2 == 0')}:", f"    {new} = {made}"]
        body = self.block(self.inner(scope, f"x[{i}]"), 2)
        return [f"for {i} in range(n + 1):", *indented([*binds, *ways, *body])]

    def over_lines(self, scope: Scope) -> list[str]:
        name = self.one("rows", "arrays", "things")
        v = self.fresh("v")
        item = {"rows": f"{v}[0]", "arrays": f"{v}[2]", "things": f"{v}.u"}[name]
        body = self.block(self.inner(scope, item), 2)
        grows = any(f"{name}{way}" in line for line in body for way in (".", " += "))
        body = [line for line in body if f"{name} = " not in line] or ["pass"]
        guard = [f"if len({name}) > 6:", "    break"] if grows else []
        return [f"for {v} in {name}:", *indented([*guard, *body])]


@st.composite
def nested_programs(draw: Callable[[Any], Any]) -> ListProgram:
    """A program, and how large its int is."""
    writer = Writer(draw)
    lines = [*START, *writer.block(Scope(), 6)]
    source = "\n".join(["import numpy as np", *CLASS, HEAD, *indented(lines), ""])
    return ListProgram(source, draw(st.integers(0, 3)))
