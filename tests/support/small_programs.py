"""A hypothesis strategy that writes small mutating programs as Python source.

Every program is `program(x, y, z, a, p)` over two vectors of n, an n by n matrix, a float and n
subscripts, and returns a scalar. It is in the language that mutad compiles, so a refusal is a
failure. Values stay bounded: what is assigned is a bounded function of bounded values, and every
function used is smooth there, so central differences say what the gradient is wherever no branch
turns.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from generated import function_of
from hypothesis import strategies as st

Draw = Callable[..., Any]

LOOPS = {  # header -> how far below and above an index stays inside 0 ... n - 1
    "range(n)": (0, 0),
    "range(n - 1)": (0, 1),
    "range(1, n)": (1, 0),
    "range(1, n - 1)": (1, 1),
    "range(n - 2, 0, -1)": (1, 1),
    "range(n - 1, -1, -1)": (0, 0),
    "range(n - 1, 0, -1)": (1, 0),
    "range(0, n - 2, 2)": (0, 2),
    "range(1)": (0, 1),
    "range(n, n)": (0, 0),
}
WINDOWS = {
    "n": ("[:]", "[::-1]"),
    "n - 1": ("[1:]", "[:-1]", "[:0:-1]"),
    "n - 2": ("[2:]", "[:-2]", "[1:-1]"),
}
ARITHMETIC = (  # bounded functions of two bounded values
    "0.5 * ({p} + {q})",
    "0.5 * {p} * {q}",
    "0.5 * {p} - 0.25 * ({q}) ** 2",
    "({p}) / (1.5 + ({q}) * ({q}))",
)
FUNCTIONS = (
    "np.sin({p} * {q})",
    "np.cos({p}) * 0.5 * {q}",
    "np.tanh({p} + {q})",
    "np.exp(-({p}) * ({p})) * {q}",
    "np.sqrt(1.0 + ({p}) * ({p})) - 1.0",
    "0.5 * np.where({p} > 0.1, {q}, {p})",
    "np.log(2.0 + np.abs({p})) * 0.5 * {q}",
    "0.3 * ({p}) ** 3 - {q}",
    "np.minimum({p}, 0.5 * {q})",
)
BLOCKS = ("[1:-1, 1:-1]", "[2:, 1:-1]", "[:-2, :-2]", "[1:-1, 2:]")


@dataclass(frozen=True)
class Scope:
    """The names that a statement may use."""

    vectors: tuple[str, ...]
    matrices: tuple[str, ...]
    scalars: tuple[str, ...]
    indices: tuple[tuple[str, int, int], ...] = ()
    helpers: tuple[str, ...] = ()
    gathers: bool = True
    """`p`, an array of subscripts, is there."""
    fresh: tuple[str, ...] = ()
    """Local arrays that nothing else is bound to: a loop may bind them anew."""
    views: tuple[str, ...] = ()
    """Names of vectors, rows and columns of the arguments: anything may bind them to others of those."""
    depth: int = 0
    swaps: bool = True
    """Arrays may change places."""


@dataclass(frozen=True)
class SmallProgram:
    """A program and how its arguments lie in memory."""

    source: str
    n: int
    layout: str

    def __repr__(self) -> str:
        return f"SmallProgram(n={self.n}, layout={self.layout!r}, source='''\n{self.source}''')"

    @property
    def is_exact(self) -> bool:
        """True when no library function and no reduction rounds in its own way."""
        rounding = ("np.", ".sum", ".mean", "@", "** 3")
        return not any(word in self.source.replace("np.full", "") for word in rounding)

    def function(self) -> Callable[..., Any]:
        """The program as a Python function whose source can be found."""
        return function_of(self.source, "program", {"np": np})

    def arguments(self) -> tuple[Any, ...]:
        """Fresh arguments x, y, z, a, p; the two vectors may share memory."""
        n = self.n
        rng = np.random.default_rng(n)
        z = rng.uniform(-1, 1, (n, n))
        a, p = 0.7, rng.integers(0, n, n)
        if self.layout == "strided":
            around = rng.uniform(-1, 1, 4 * n)
            return around[: 2 * n : 2], around[: 2 * n - 1 : -1][:n], z.T, a, p
        buffer = rng.uniform(-1, 1, n + 1)
        if self.layout == "same":
            return buffer[:n], buffer[:n], z, a, p
        if self.layout == "shifted":
            return buffer[:n], buffer[1:], z, a, p
        if self.layout == "reversed":
            return buffer[:n], buffer[:n][::-1], z, a, p
        if self.layout == "row":
            return buffer[:n], z[1], z, a, p
        return buffer[:n], rng.uniform(-1, 1, n), z, a, p


@dataclass
class Writer:
    """Writes statements; numbers the names it makes, and stops when the program is long enough."""

    draw: Draw
    budget: int
    arithmetic: bool
    """Only operations whose rounding is the same everywhere: no library functions, no reductions."""
    numbers: dict[str, int] = field(default_factory=dict[str, int])

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def name(self, stem: str) -> str:
        self.numbers[stem] = self.numbers.get(stem, -1) + 1
        return f"{stem}{self.numbers[stem]}"

    # Scalars.

    def index(self, scope: Scope) -> str:
        """A subscript that is inside 0 ... n - 1, or negative and wraps."""
        choices = ["0", "-1", "1"]
        for name, below, above in scope.indices:
            choices += [name, *(f"{name} - {d}" for d in range(1, below + 1))]
            choices += [f"{name} + {d}" for d in range(1, above + 1)]
            choices += [f"{name} - 1", f"n - 1 - {name}", f"(2 * {name} + 1) % n"]
            choices += [f"p[{name}]"] * scope.gathers
        return self.pick(*dict.fromkeys(choices[3:] + choices[:3]))

    def element(self, scope: Scope) -> str:
        if self.pick(True, True, False) or not scope.matrices:
            return f"{self.pick(*scope.vectors)}[{self.index(scope)}]"
        return f"{self.pick(*scope.matrices)}[{self.index(scope)}, {self.index(scope)}]"

    def leaf(self, scope: Scope) -> str:
        kind = self.pick("element", "scalar", "element", "index", "constant")
        if kind == "scalar" and scope.scalars:
            return self.pick(*scope.scalars)
        if kind == "index" and scope.indices:
            return f"{self.pick(*scope.indices)[0]} / n"
        if kind == "constant":
            return self.pick("0.5", "1.5", "-0.25")
        return self.element(scope)

    def scalar(self, scope: Scope) -> str:
        """A bounded scalar expression."""
        kind = self.pick("leaf", "combined", "combined", "reduced", "helper", "chosen")
        if kind == "reduced" and scope.matrices and not self.arithmetic:
            return self.reduction(scope)
        if kind == "helper" and scope.helpers:
            return f"{self.pick(*scope.helpers)}({self.leaf(scope)}, {self.leaf(scope)})"
        if kind == "chosen":
            return f"({self.leaf(scope)} if {self.condition(scope)} else {self.leaf(scope)})"
        if kind == "leaf":
            return f"0.9 * {self.leaf(scope)}"
        return self.combined(self.leaf(scope), self.leaf(scope))

    def combined(self, p: str, q: str) -> str:
        """A bounded, smooth function of two bounded values."""
        forms = ARITHMETIC if self.arithmetic else ARITHMETIC + FUNCTIONS
        return self.pick(*forms).format(p=p, q=q)

    def reduction(self, scope: Scope) -> str:
        v, w, m = self.pick(*scope.vectors), self.pick(*scope.vectors), self.pick(*scope.matrices)
        return self.pick(
            f"np.sin({v}.sum())",
            f"{v}.mean()",
            f"np.tanh({v} @ {w})",
            f"0.5 * {m}.mean()",
            f"np.cos(({v} * {w}).sum())",
            f"0.5 * {m}[{self.index(scope)}].max()",
            f"np.sin({m}.sum(axis=0)[{self.index(scope)}])",
        )

    def condition(self, scope: Scope) -> str:
        choices = [f"{self.leaf(scope)} < {self.pick('0.1', '0.0', '-0.3')}"]
        choices += [f"{name} % 2 == 0" for name, _, _ in scope.indices]
        choices += [f"0 < {name} < n - 1" for name, _, _ in scope.indices]
        choices += [f"{self.leaf(scope)} > 0.0 or {self.leaf(scope)} > 0.2"]
        return self.pick(*choices)

    # Vectors and matrices.

    def vector_leaf(self, scope: Scope, window: str) -> str:
        part = self.pick(*WINDOWS[window])
        choices = [f"{v}{part}" for v in scope.vectors]
        for m in scope.matrices:
            i = self.index(scope)
            choices += [f"{m}[{i}]{part}", f"{m}[:, {i}]{part}", f"{m}.T[{i}]{part}"]
        return self.pick(*choices)

    def vector(self, scope: Scope, window: str = "n") -> str:
        """A bounded vector expression of length `window`."""
        kind = self.pick("combined", "combined", "scaled", "product", "sums")
        if self.arithmetic:
            kind = "combined"
        if kind == "product" and window == "n":
            return f"np.sin({self.pick(*scope.matrices)} @ {self.vector_leaf(scope, 'n')})"
        if kind == "sums" and window == "n":
            return f"{self.pick(*scope.matrices)}.mean(axis={self.pick('0', '1')})"
        if kind == "scaled":
            return f"0.9 * {self.vector_leaf(scope, window)}"
        other = (
            self.vector_leaf(scope, window) if self.pick(True, True, False) else self.leaf(scope)
        )
        return self.combined(self.vector_leaf(scope, window), other)

    def matrix(self, scope: Scope) -> str:
        m = self.pick(*scope.matrices)
        first = self.pick(m, f"{m}.T", f"{m}[::-1]")
        v = self.pick(*scope.vectors)
        return self.combined(first, self.pick(m, v, f"{v}[:, None]", f"{m}.T", self.leaf(scope)))

    # Statements: lines without indentation, and the scope after them.

    def block(self, scope: Scope) -> list[str]:
        """One to three statements; what they bind ends with the block."""
        lines: list[str] = []
        for _ in range(self.draw(st.integers(1, 3))):
            if self.budget <= 0 and lines:
                break
            written, scope = self.statement(scope)
            lines += written
        return lines

    def statement(self, scope: Scope) -> tuple[list[str], Scope]:
        self.budget -= 1
        kinds: list[Callable[[Scope], tuple[list[str], Scope]]] = [
            self.store_element,
            self.store_vector,
            self.update_scalar,
            self.store_matrix,
            self.swap,
            self.bind,
            self.rebind,
            self.call,
            self.fill,
            self.permute,
            self.masked,
        ]
        if scope.depth < 3 and self.budget > 0:
            kinds = [
                self.loop,
                self.store_element,
                self.branch,
                self.loop,
                self.repeat,
                self.over,
                self.rows,
                *kinds,
            ]
        return self.pick(*kinds)(scope)

    def store_element(self, scope: Scope) -> tuple[list[str], Scope]:
        target = self.element(scope)
        sign, form = self.pick(
            ("=", "{}"), ("+=", "0.25 * ({})"), ("*=", "0.6 * ({})"), ("-=", "0.2 * ({})")
        )
        return [f"{target} {sign} {form.format(self.scalar(scope))}"], scope

    def store_vector(self, scope: Scope) -> tuple[list[str], Scope]:
        window = self.pick(*WINDOWS)
        target = self.vector_leaf(scope, window)
        sign, form = self.pick(
            ("=", "{}"), ("+=", "0.25 * ({})"), ("*=", "0.6 * ({})"), ("-=", "0.2 * ({})")
        )
        return [f"{target} {sign} {form.format(self.vector(scope, window))}"], scope

    def store_matrix(self, scope: Scope) -> tuple[list[str], Scope]:
        m = self.pick(*scope.matrices)
        if self.pick(True, False):
            a, b = self.pick(*BLOCKS), self.pick(*BLOCKS)
            return [f"{m}[1:-1, 1:-1] {self.pick('=', '+=')} 0.4 * {m}{a} * {m}{b}"], scope
        return [f"{m}[:] = {self.matrix(scope)}"], scope

    def update_scalar(self, scope: Scope) -> tuple[list[str], Scope]:
        known = [s for s in scope.scalars if s.startswith("s")]
        if known and self.pick(True, True, False):
            sign, form = self.pick(("=", "{}"), ("+=", "0.25 * ({})"), ("*=", "0.6 * ({})"))
            return [f"{self.pick(*known)} {sign} {form.format(self.scalar(scope))}"], scope
        s = self.name("s")
        return [f"{s} = {self.scalar(scope)}"], replace(scope, scalars=(*scope.scalars, s))

    def swap(self, scope: Scope) -> tuple[list[str], Scope]:
        if self.pick(True, False) or not scope.swaps:
            v = self.pick(*scope.vectors)
            return [f"{v}[0], {v}[-1] = {v}[-1], {v}[0]"], scope
        return ["x, y = y, x"], scope

    def bind(self, scope: Scope) -> tuple[list[str], Scope]:
        """A new name for a fresh vector or a view, or a fresh vector bound anew."""
        if scope.fresh and self.pick(True, False):
            w = self.pick(*scope.fresh)
            return [f"{w} = {self.combined(w, self.vector_leaf(scope, 'n'))}"], scope
        if self.pick(True, False):
            w = self.name("w")
            made = self.pick(
                self.combined(self.vector_leaf(scope, "n"), self.leaf(scope)),
                "x.copy()",
                "np.zeros(n)",
            )
            made = made if made != "np.zeros(n)" else "np.full(n, 0.5)"
            return [f"{w} = {made}"], replace(
                scope, vectors=(*scope.vectors, w), fresh=(*scope.fresh, w)
            )
        v = self.name("v")
        return [f"{v} = {self.vector_leaf(scope, 'n')}"], replace(
            scope, vectors=(*scope.vectors, v)
        )

    def rebind(self, scope: Scope) -> tuple[list[str], Scope]:
        """A name for a vector, a row or a column of the arguments, or one that is another from here on."""
        arguments = replace(scope, vectors=("x", "y", *scope.views), matrices=scope.matrices[:1])
        part = self.vector_leaf(arguments, "n")
        if scope.views and self.pick(True, True, False):
            return [f"{self.pick(*scope.views)} = {part}"], scope
        e = self.name("e")
        views, vectors = (*scope.views, e), (*scope.vectors, e)
        return [f"{e} = {part}"], replace(scope, views=views, vectors=vectors)

    def call(self, scope: Scope) -> tuple[list[str], Scope]:
        p, q = self.vector_leaf(scope, "n"), self.vector_leaf(scope, "n")
        return [f"update({p}, {q}, {self.leaf(scope)})"], scope

    def in_loop(self, scope: Scope) -> Scope:
        return replace(scope, depth=scope.depth + 1)

    def fill(self, scope: Scope) -> tuple[list[str], Scope]:
        return [f"{self.vector_leaf(scope, 'n')}.fill({self.scalar(scope)})"], scope

    def permute(self, scope: Scope) -> tuple[list[str], Scope]:
        """Change a subscript that something may have been read or written through."""
        k = self.pick(*(name for name, _, _ in scope.indices), "0")
        return [f"p[{k}] = (p[{k}] + {self.pick('1', k)}) % n"], scope

    def masked(self, scope: Scope) -> tuple[list[str], Scope]:
        """A store through a mask, or through the subscripts where it is true."""
        v, w, m = self.pick(*scope.vectors), self.pick(*scope.vectors), self.name("m")
        test = f"{self.pick(*scope.vectors)} > {self.pick('0.1', '-0.2', '0.4')}"
        made = self.pick(test, f"np.nonzero({test})[0]")
        other = self.pick(f"{v}[{m}]", self.leaf(scope))
        value = self.pick(self.combined(f"{w}[{m}]", other), self.scalar(scope))
        sign, form = self.pick(("=", "{}"), ("+=", "0.25 * ({})"), ("*=", "0.6 * ({})"))
        return [f"{m} = {made}", f"{v}[{m}] {sign} {form.format(value)}"], scope

    def rows(self, scope: Scope) -> tuple[list[str], Scope]:
        r = self.name("r")
        inside = replace(self.in_loop(scope), vectors=(*scope.vectors, r))
        of = self.pick(*(f"{m}{part}" for m in scope.matrices for part in ("", ".T", "[::-1]")))
        return [f"for {r} in {of}:", *indented(self.block(inside))], scope

    def loop(self, scope: Scope) -> tuple[list[str], Scope]:
        headers = LOOPS | {f"range({name})": (0, 1) for name, _, _ in scope.indices}
        header = self.pick(*headers)
        i = self.name("i")
        inside = self.in_loop(scope)
        if self.pick(True, True, False):
            inside = replace(inside, indices=(*scope.indices, (i, *headers[header])))
            return [f"for {i} in {header}:", *indented(self.block(inside))], scope
        return [
            f"for {i} in range({self.pick('2', '3', '1')}):",
            *indented(self.block(inside)),
        ], scope

    def over(self, scope: Scope) -> tuple[list[str], Scope]:
        i, v = self.name("i"), self.name("t")
        inside = replace(self.in_loop(scope), scalars=(*scope.scalars, v))
        if self.pick(True, False):
            return [
                f"for {v} in {self.vector_leaf(scope, 'n')}:",
                *indented(self.block(inside)),
            ], scope
        inside = replace(inside, indices=(*scope.indices, (i, 0, 0)))
        return [
            f"for {i}, {v} in enumerate({self.vector_leaf(scope, 'n')}):",
            *indented(self.block(inside)),
        ], scope

    def branch(self, scope: Scope) -> tuple[list[str], Scope]:
        inside = replace(scope, depth=scope.depth + 1)
        lines = [f"if {self.condition(scope)}:", *indented(self.block(inside))]
        if self.pick(False, True):
            lines += ["else:", *indented(self.block(inside))]
        return lines, scope

    def repeat(self, scope: Scope) -> tuple[list[str], Scope]:
        k = self.name("k")
        also = self.pick("", f" and {self.leaf(scope)} < 0.8")
        inside = self.in_loop(scope)
        return [
            f"{k} = 0",
            f"while {k} < 3{also}:",
            *indented([*self.block(inside), f"{k} += 1"]),
        ], scope


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


@st.composite
def small_programs(draw: Draw) -> SmallProgram:
    """A small mutating program with its arguments."""
    arithmetic = draw(st.sampled_from([False, False, True]))
    return written(Writer(draw, draw(st.integers(1, 8)), arithmetic))


def written(writer: Writer) -> SmallProgram:
    """The program that a writer's draws make."""
    draw = writer.draw
    smooth = writer.combined("p", "q")
    helper = Scope(("u", "v"), (), ("k",), (("i", 0, 0),), gathers=False, depth=3)
    update = [
        f"for i in {writer.pick('range(n)', 'range(n - 1, -1, -1)', 'range(n)[::-1]')}:",
        *indented(writer.store_element(helper)[0]),
    ]
    scope = Scope(("x", "y"), ("z",), ("a", "s"), helpers=("smooth",))
    body: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        written, scope = writer.statement(scope)
        body += written
    result = "s * x[0] + y[-1] * z[1, 0]"
    if not writer.arithmetic:
        result = writer.pick(
            result, "(x * y).sum() + s", "s * x[0] + z.sum()", "(x * x).sum() - s * y[1]"
        )
    source = "\n".join(
        [
            "def smooth(p, q):",
            f"    return {smooth}",
            "",
            "def update(u, v, k):",
            "    n = u.size",
            *indented(update),
            "",
            "def program(x, y, z, a, p):",
            "    n = x.size",
            "    s = 0.5 * a",
            *indented(body),
            f"    return {result}",
            "",
        ]
    )
    layout = draw(st.sampled_from(["apart", "strided", "same", "shifted", "reversed", "row"]))
    return SmallProgram(textwrap.dedent(source), draw(st.sampled_from([4, 3, 5, 2, 19])), layout)
