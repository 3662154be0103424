"""Small mutating programs that leave loops, rebind arrays and read names from outside.

The grammar of `small_programs`, with `break`, `continue`, `return` and `else`; `try` in all its forms,
around statements and calls that may raise; arrays that change places in nests and on branches; views
that move; names that only some paths bind; slices whose bounds are known at run time; and three names from
outside, a vector `G`, a float `H` and an int `K`. A program may raise what CPython raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from generated import function_of
from hypothesis import strategies as st
from small_programs import Draw, Scope, Writer, indented

HEAD = "def program(x, y, z, a, p):"
OPEN_HEAD = "def program(x, y, z, a, p, G, H):"
LAYOUTS = ("apart", "apart", "strided", "same", "shifted", "reversed", "row")


@dataclass(frozen=True)
class ControlScope(Scope):
    """The names that a statement may use."""

    moving: tuple[str, ...] = ()
    """Views of any length."""
    maybe: tuple[str, ...] = ()
    """Scalars that some paths have not bound."""
    is_steady: bool = False
    """Arrays keep their names, and no slice has a length known at run time only: neither must hang on values
    that a gradient saves."""
    is_loop: bool = False
    """A `break` or `continue` has a loop to leave."""


@dataclass(frozen=True)
class ControlProgram:
    """A program of x, y, z, a, p, which also reads G, H and K."""

    source: str
    n: int
    layout: str

    def __repr__(self) -> str:
        return f"ControlProgram(n={self.n}, layout={self.layout!r}, source='''\n{self.source}''')"

    def names(self, n: int | None = None, seed: int = 0) -> dict[str, Any]:
        """What G, H and K are, for vectors of n."""
        rng = np.random.default_rng(seed + 50)
        G = rng.uniform(-1, 1, self.n if n is None else n)
        return {"G": G, "H": 0.3 + 0.1 * seed, "K": seed % 2}

    def function(self, names: dict[str, Any] | None = None) -> Callable[..., Any]:
        """The program as a Python function over these names from outside."""
        return self._made(self.source, names)

    def open_function(self) -> Callable[..., Any]:
        """The program with G and H as its last arguments: the same gradients, with nothing hidden."""
        return self._made(self.source.replace(HEAD, OPEN_HEAD), None)

    def _made(self, source: str, names: dict[str, Any] | None) -> Callable[..., Any]:
        found = {"np": np, "math": math, **(names or self.names())}
        return function_of(source, "program", found)

    def arguments(self, n: int | None = None, layout: str | None = None) -> tuple[Any, ...]:
        """Fresh arguments x, y, z, a, p; the two vectors may share memory."""
        n = self.n if n is None else n
        rng = np.random.default_rng(n)
        z = rng.uniform(-1, 1, (n, n))
        a, p = 0.7, rng.integers(0, n, n)
        layout = layout or self.layout
        if layout == "strided":
            around = rng.uniform(-1, 1, 4 * n)
            return around[: 2 * n : 2], around[: 2 * n - 1 : -1][:n], z.T, a, p
        buffer = rng.uniform(-1, 1, n + 1)
        others = {
            "same": buffer[:n],
            "shifted": buffer[1:],
            "reversed": buffer[:n][::-1],
            "row": z[-1],
        }
        return buffer[:n], others.get(layout, rng.uniform(-1, 1, n)), z, a, p

    def open_arguments(self) -> tuple[Any, ...]:
        names = self.names()
        return (*self.arguments(), names["G"], names["H"])


@dataclass
class ControlWriter(Writer):
    """Writes statements of the larger language."""

    result: str = "s * x[0] + y[-1] * z[-1, 0]"

    def statement(self, scope: ControlScope) -> tuple[list[str], ControlScope]:
        if self.pick(True, False):
            return super().statement(scope)
        self.budget -= 1
        kinds: list[Callable[[ControlScope], tuple[list[str], ControlScope]]] = [
            self.leave,
            self.leave,
            *([] if scope.is_steady else [self.move, self.sliced, self.sliced]),
            self.maybe_bound,
            *([] if scope.is_steady else [self.rotate, self.rotate]),
        ]
        if scope.depth < 3 and self.budget > 0:
            kinds += [self.carried, self.carried, self.loop, self.repeat]
            kinds += [self.attempt, self.attempt, self.attempt]
        return self.pick(*kinds)(scope)

    # Leaving.

    def leave(self, scope: ControlScope) -> tuple[list[str], ControlScope]:
        """An `if` that ends with `break`, `continue` or `return`."""
        way = f"return {self.result}"
        if scope.is_loop:
            way = self.pick("break", "continue", "break", "continue", way)
        lines: list[str] = []
        if self.pick(False, True):
            lines, _ = self.simple(scope)
        both: list[str] = []
        if self.pick(False, False, True):
            both = ["else:", *indented(self.simple(scope)[0])]
        return [f"if {self.condition(scope)}:", *indented([*lines, way]), *both], scope

    def simple(self, scope: ControlScope) -> tuple[list[str], ControlScope]:
        kinds = [self.store_element, self.update_scalar, self.store_vector]
        return self.pick(*kinds, *([] if scope.is_steady else [self.rotate]))(scope)

    def in_loop(self, scope: Scope) -> Scope:
        return replace(super().in_loop(scope), is_loop=True)

    def masked(self, scope: ControlScope) -> tuple[list[str], ControlScope]:
        return self.store_element(scope) if scope.is_steady else super().masked(scope)

    def with_else(self, lines: list[str], scope: ControlScope) -> tuple[list[str], ControlScope]:
        if self.pick(False, False, True):
            inside = replace(scope, depth=scope.depth + 1)
            return [*lines, "else:", *indented(self.block(inside))], scope
        return lines, scope

    def loop(self, scope: ControlScope) -> tuple[list[str], ControlScope]:
        return self.with_else(*super().loop(scope))

    def over(self, scope: ControlScope) -> tuple[list[str], ControlScope]:
        return self.with_else(*super().over(scope))

    def rows(self, scope: ControlScope) -> tuple[list[str], ControlScope]:
        return self.with_else(*super().rows(scope))

    def repeat(self, scope: ControlScope) -> tuple[list[str], ControlScope]:
        k = self.name("k")
        also = self.pick("", f" and {self.leaf(scope)} < 0.8")
        inside = self.in_loop(scope)
        inside = replace(inside, maybe=(*scope.maybe,))
        lines = [f"{k} = 0", f"while {k} < 3{also}:"]
        return self.with_else([*lines, *indented([f"{k} += 1", *self.block(inside)])], scope)

    # Raising and catching.

    def risky(self, scope: ControlScope) -> list[str]:
        """A statement that may raise."""
        i = self.index(scope)
        form = self.pick(
            "s += 0.1 * math.sqrt({scalar})",
            "{v}[{i}] = 0.3 * math.log({scalar} + 0.6)",
            "s += 0.1 / ({i} - 1)",
            "{v}[{i} + K] *= 0.9",
            "s = 0.5 * s + 0.2 * {v}[p[{i}] + 1]",
            "s += 0.1 * risk({v}, {i}, s)",
            "{v}[{i}] = risk({w}, 0, {w}[{i}]) + 0.1 * risk({v}, {i} + K, s)",
            "if {condition}:\n    raise ValueError('given up')",
            "if {condition}:\n    raise KeyError",
        )
        v, w = self.pick(*scope.vectors), self.pick(*scope.vectors)
        parts = {"scalar": self.scalar(scope), "condition": self.condition(scope)}
        return form.format(v=v, w=w, i=i, **parts).split("\n")

    def attempt(self, scope: ControlScope) -> tuple[list[str], ControlScope]:
        """A `try` with handlers, `else` and `finally` as they come."""
        inside = replace(scope, depth=scope.depth + 1, is_steady=True, swaps=False)
        lines = ["try:", *indented([*self.block(inside), *self.risky(inside)])]
        if self.pick(True, False):
            lines += indented([*self.block(inside), *self.risky(inside)])
        chosen = self.pick(
            ("ValueError",),
            ("ValueError", "IndexError"),
            ("(ZeroDivisionError, IndexError)", "ValueError"),
            ("ArithmeticError", "LookupError", "Exception"),
            ("KeyError", ""),
            ("Exception as e",),
            (),
        )
        for kind in chosen:
            lines += [f"except {kind}".rstrip() + ":", *indented(self.handled(inside))]
        if chosen and self.pick(True, False):
            lines += ["else:", *indented(self.block(inside))]
        if not chosen or self.pick(False, False, True):
            lines += ["finally:", *indented(self.handled(inside))]
        return lines, scope

    def handled(self, scope: ControlScope) -> list[str]:
        """What a handler does, or a `finally`."""
        lines = self.simple(scope)[0]
        ways = [[], [], self.block(scope), self.leave(scope)[0], self.risky(scope)]
        return [*lines, *self.pick(*ways)]

    # Rebinding.

    def rotate(self, scope: ControlScope) -> tuple[list[str], ControlScope]:
        """Arrays change places."""
        names = ["x", "y", *scope.fresh]
        count = min(self.pick(2, 3), len(names))
        start = self.draw(st.integers(0, len(names) - count))
        chosen = names[start : start + count]
        turned = [*chosen[1:], chosen[0]]
        return [f"{', '.join(chosen)} = {', '.join(turned)}"], scope

    def move(self, scope: ControlScope) -> tuple[list[str], ControlScope]:
        """A view that moves, and what is done through it."""
        if not scope.moving or self.pick(False, False, True):
            v = self.name("m")
            made = self.pick(self.vector_leaf(scope, "n"), self.vector_leaf(scope, "n - 1"))
            return [f"{v} = {made}"], replace(scope, moving=(*scope.moving, v))
        v = self.pick(*scope.moving)
        form = self.pick(
            "{v} = {v}[1:]",
            "{v} = {v}[:-1]",
            "{v} = {v}[::-1]",
            "if {v}.size > 1:\n    {v} = {v}[1:]",
            "if {v}.size > 2:\n    {v} = {v}[1:-1]",
            "{v} = {row}",
            "{v}[0] = {scalar}",
            "{v}[-1] *= 0.6",
            "{v}[:] = 0.5 * {v} + 0.1",
            "{v} *= 0.7",
            "{v}[1:] = 0.5 * {v}[:-1]",
            "s += 0.1 * {v}.sum()",
            "s += 0.2 * {v}[0] * {v}[-1]",
        )
        text = form.format(v=v, row=self.vector_leaf(scope, "n"), scalar=self.scalar(scope))
        return text.split("\n"), scope

    # Names that some paths bind.

    def maybe_bound(self, scope: ControlScope) -> tuple[list[str], ControlScope]:
        if scope.maybe and self.pick(True, False):
            return [f"s += 0.2 * {self.pick(*scope.maybe)}"], scope
        c = self.name("c")
        lines = [f"if {self.condition(scope)}:", f"    {c} = {self.scalar(scope)}"]
        if self.pick(True, False):
            lines += ["else:", *indented([f"{c} = {self.scalar(scope)}"])]
            return lines, replace(scope, scalars=(*scope.scalars, c))
        return lines, replace(scope, maybe=(*scope.maybe, c))

    def carried(self, scope: ControlScope) -> tuple[list[str], ControlScope]:
        """A name that an iteration binds and the next one reads, and what follows the loop."""
        i, c = self.name("i"), self.name("c")
        is_array = self.pick(True, False)
        inside = replace(self.in_loop(scope), indices=(*scope.indices, (i, 0, 0)))
        read = self.pick(f"s += 0.3 * {c}[0]", f"x[:] = 0.5 * {c}", f"{c}[0] *= 0.5")
        if not is_array:
            read = self.pick(f"s += 0.3 * {c}", f"x[{i}] = 0.5 * {c}")
        made = self.pick(
            f"0.5 * {self.vector_leaf(scope, 'n')}",
            self.vector(scope),
            self.vector_leaf(scope, "n"),
        )
        lines = [
            f"for {i} in range(n):",
            f"    if {i} > 0:",
            f"        {read}",
            *indented(self.block(inside)),
            f"    {c} = {made if is_array else self.scalar(inside)}",
            *(indented(self.block(inside)) if self.pick(False, True) else []),
        ]
        if self.pick(True, False):
            lines.append(f"s += 0.2 * {c}" + "[-1]" * is_array)
        return lines, scope

    # Slices whose bounds are known at run time.

    def bound(self, scope: ControlScope) -> str:
        choices = ["0", "1", "n - 1", "n // 2", "K", "p[0]", "n"]
        for name, _, _ in scope.indices:
            choices += [name, name, f"{name} + 1", f"n - 1 - {name}", f"{name} - 1", f"p[{name}]"]
        return self.pick(*choices)

    def sliced(self, scope: ControlScope) -> tuple[list[str], ControlScope]:
        lo, hi = self.bound(scope), self.bound(scope)
        v, w, m = self.pick(*scope.vectors), self.pick(*scope.vectors), self.pick(*scope.matrices)
        form = self.pick(
            "{v}[{lo}:{hi}] = 0.5 * {w}[{lo}:{hi}]",
            "{v}[{lo}:{hi}] *= 0.9 * {w}[{lo}:{hi}]",
            "{v}[{lo}:] += 0.25 * {w}[:n - ({lo})]",
            "{v}[:] = 0.5 * {v} + 0.3 * {w}[{lo}:{lo} + 1]",
            "{v}[{lo}:{hi}] = 0.3 * {w}[{lo}:{lo} + 1] * {w}[{lo}:{hi}]",
            "{m}[{lo}:{hi}] = 0.5 * {w} * {m}[{lo}:{hi}]",
            "{m}[{lo}:{hi}, :] = 0.4 * {m}[0] + 0.4 * {m}[{lo}:{lo} + 1]",
            "{m}[:, {lo}:{hi}] *= 0.9 * {w}[{lo}:{hi}]",
            "{m}[{lo}:{hi}, 1:] = 0.5 * {m}[{lo}:{hi}, :-1] * {w}[1:]",
            "s += 0.1 * ({v}[{lo}:{hi}] * {w}[{lo}:{hi}]).sum()",
            "s += 0.1 * ({v}[{lo}:{hi}] * {w}[0:1]).sum()",
            "{v}[{lo}:{hi}] = {scalar}",
            "{v}[{lo}:{hi}] = 0.5 * {w}[{lo}:{hi}] * {w}[{hi}:{lo}:-1]",
            "{v}[1:{hi}] = 0.5 * {v}[:{hi} - 1]",
        )
        text = form.format(v=v, w=w, m=m, lo=lo, hi=hi, scalar=self.scalar(scope))
        return [text], scope


def written(writer: ControlWriter) -> ControlProgram:
    """The program that a writer's draws make."""
    draw = writer.draw
    smooth = writer.combined("p", "q")
    helper = Scope(("u", "v"), (), ("k",), (("i", 0, 0),), gathers=False, depth=3)
    update = [
        f"for i in {writer.pick('range(n)', 'range(n - 1, -1, -1)', 'range(n)[::-1]')}:",
        *indented(writer.store_element(helper)[0]),
    ]
    writer.result = writer.pick(
        writer.result, "s * x[0] + z[0, -1]", "(x * y).sum() + s", "s * x[0] + z.sum()"
    )
    scope = ControlScope(
        ("x", "y", "G"), ("z",), ("a", "s", "H"), (("K", 0, 0),), helpers=("smooth",)
    )
    body: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        lines, scope = writer.statement(scope)
        body += lines
    source = "\n".join(
        [
            "def smooth(p, q):",
            f"    return {smooth}",
            "",
            "def update(u, v, k):",
            "    n = u.size",
            *indented(update),
            "",
            "def risk(u, k, s):",
            "    if u[k] > 0.6:",
            "        raise ArithmeticError('large')",
            "    u[k] = 0.5 * s",
            "    return math.sqrt(s + 0.5)",
            "",
            HEAD,
            "    n = x.size",
            "    s = 0.5 * a * x[0]",
            *indented(body),
            f"    return {writer.result}",
            "",
        ]
    )
    return ControlProgram(source, writer.pick(4, 3, 5, 2), writer.pick(*LAYOUTS))


@st.composite
def control_programs(draw: Draw) -> ControlProgram:
    """A small program of the larger language."""
    return written(ControlWriter(draw, draw(st.integers(2, 8)), draw(st.booleans())))
