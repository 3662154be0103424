"""A hypothesis strategy that writes programs as people do: objects, closures, recursion, generators.

Every program is `program(x, y, a, s, q, given, k, kind)` over two vectors, a float, a `State` (whose
`pos` may be `x` itself), a named tuple, a list of floats, an int and an enum. It defines a recursive
function, a generator function and a method; its body calls them, nests functions that see its
variables, grows lists, fills dicts, matches, raises and catches. Values stay bounded and every function
used is smooth, so central differences say what the gradient is wherever no branch turns.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from generated import function_of
from hypothesis import strategies as st
from small_programs import Draw, indented

FORMS = (
    "0.5 * ({p} + {q})",
    "0.5 * {p} * {q}",
    "0.5 * {p} - 0.25 * ({q}) ** 2",
    "({p}) / (1.5 + ({q}) * ({q}))",
    "math.sin({p} + {q})",
    "math.exp(-({p}) * ({p})) * {q}",
    "0.4 * math.tanh({p}) - 0.2 * {q}",
    "0.3 * math.lgamma(1.5 + ({p}) * ({p})) - 0.2 * {q}",
)
UPDATES = (("=", "{}"), ("+=", "0.25 * ({})"), ("*=", "0.6 * ({})"), ("-=", "0.2 * ({})"))
RESULTS = (
    "t * x[0] + s.rate",
    "t + s.energy",
    "(x * s.pos).sum() + t",
    "t * q.left + s.pair.right",
)


class Pair(NamedTuple):
    left: float
    right: float


class Refused(Exception):
    """What programs raise."""


class Kind(enum.Enum):
    SLOW = 1
    FAST = 2


@dataclass
class Scope:
    """The names that a statement may use; those of a loop or branch end with it."""

    scalars: tuple[str, ...] = ("t", "a", "s.rate", "q.left", "s.pair.right")
    indices: tuple[str, ...] = ("0", "-1", "1")
    vectors: tuple[str, ...] = ("x", "y", "s.pos")
    states: tuple[str, ...] = ("s",)
    lists: tuple[str, ...] = ("given",)
    histories: tuple[str, ...] = ()
    """Lists of arrays."""
    rows: tuple[str, ...] = ()
    """Lists of lists."""
    functions: tuple[str, ...] = ("smooth",)
    """Functions of one number."""
    constants: tuple[str, ...] = ("k / 4",)
    depth: int = 0
    is_loop: bool = False


@dataclass
class MixedProgram:
    """A program, the sizes of its arguments, and whether `s.pos` is `x`."""

    source: str
    n: int
    k: int
    shares: bool

    def __repr__(self) -> str:
        return f"MixedProgram(n={self.n}, k={self.k}, shares={self.shares}, '''\n{self.source}''')"

    def function(self) -> Callable[..., Any]:
        return function_of(self.source, "program", self.names)

    @property
    def names(self) -> dict[str, Any]:
        names: dict[str, Any] = {
            "np": np,
            "math": math,
            "Pair": Pair,
            "Kind": Kind,
            "Refused": Refused,
        }
        return {**names, "dataclass": dataclass, "Any": Any}

    def arguments(self, function: Callable[..., Any]) -> tuple[Any, ...]:
        """Fresh arguments, the state of the class that this function's source defines."""
        rng = np.random.default_rng(self.n + 10 * self.k)
        x, y, pos = (rng.uniform(-0.9, 0.9, self.n) for _ in range(3))
        state = function.__globals__["State"](x if self.shares else pos, 0.4, Pair(0.3, -0.6))
        return x, y, 0.7, state, Pair(-0.5, 0.8), [0.5, -0.25], self.k, Kind(self.k % 2 + 1)


class Writer:
    """Draws statements; numbers the names it makes."""

    def __init__(self, draw: Draw, budget: int) -> None:
        self.draw = draw
        self.budget = budget
        self.count = 0

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # Numbers.

    def leaf(self, scope: Scope) -> str:
        element = f"{self.pick(*scope.vectors)}[{self.pick(*scope.indices)}]"
        constant = self.pick("0.5", "-0.25", *scope.constants)
        return self.pick(element, element, self.pick(*scope.scalars), constant)

    def mixed(self, p: str, q: str) -> str:
        """A bounded, smooth function of two bounded numbers."""
        return self.pick(*FORMS).format(p=p, q=q)

    def number(self, scope: Scope) -> str:
        """A bounded expression."""
        p, q = self.leaf(scope), self.leaf(scope)
        v, w = self.pick(*scope.vectors), self.pick(*scope.vectors)
        simple = self.mixed(p, q)
        item = self.name("e")
        return self.pick(
            simple,
            simple,
            f"{self.pick(*scope.functions)}({p})",
            f"(lambda v: {self.mixed('v', q)})({p})",
            f"(lambda v, w={q}: {self.mixed('v', 'w')})({p})",
            f"({p} if {self.condition(scope)} else {q})",
            f"0.3 * tree({v}, {self.pick('0', '1')}, {p})",
            f"0.2 * sum(parts({v}, {q}))",
            f"0.5 * max(parts({v}, {q}), default={p})",
            f"0.2 * sum({self.mixed(item, p)} for {item} in {v})",
            f"0.1 * sum([{item} * {w}[0] for {item} in {v} if {item} > {self.pick('0.1', '-0.3')}])",
            f"0.1 * sum(u * w for u, w in zip({v}, reversed({w})))",
            f"0.2 * total(*q, {p}, weight={q})",
            f"0.4 * twice({self.pick(*scope.functions)}, {p})",
            f"0.3 * d[{self.pick(repr('rate'), repr('weight'))}]",
        )

    def condition(self, scope: Scope) -> str:
        p, q = self.leaf(scope), self.leaf(scope)
        return self.pick(
            f"{p} < {self.pick('0.1', '-0.3')}",
            f"-0.5 < {p} <= {q}",
            f"{p} > 0.0 or not {q} > 0.2",
            "k % 2 == 0",
            f"any(v > 0.6 for v in {self.pick(*scope.vectors)})",
            f"all(v < 0.8 for v in {self.pick(*scope.vectors)})",
            f"s.steps > {self.pick('0', '1')}",
        )

    # Statements: lines without indentation, and the scope after them.

    def block(self, scope: Scope) -> list[str]:
        """One or two statements; what they bind ends with the block."""
        lines: list[str] = []
        inner = replace(scope, depth=scope.depth + 1)
        for _ in range(self.draw(st.integers(1, 2))):
            if self.budget <= 0 and lines:
                break
            written, inner = self.statement(inner)
            lines += written
        return lines

    def statement(self, scope: Scope) -> tuple[list[str], Scope]:
        self.budget -= 1
        kinds = [self.update, self.update, self.field, self.field, self.bind, self.entry]
        if scope.lists:
            kinds += [self.grow, self.read_list]
        if scope.histories:
            kinds += [self.history, self.history]
        if scope.rows:
            kinds += [self.row, self.row]
        if scope.is_loop:
            kinds.append(self.leave)
        if scope.depth < 2:
            kinds += [
                self.new_list,
                self.new_history,
                self.new_rows,
                self.new_state,
                self.closure,
                self.counting,
                self.walrus,
            ]
        if scope.depth < 3 and self.budget > 0:
            kinds += [self.loop, self.loop, self.items, self.branch, self.cases, self.attempt]
            kinds.append(self.late)
        return self.pick(*kinds)(scope)

    def update(self, scope: Scope) -> tuple[list[str], Scope]:
        sign, form = self.pick(*UPDATES)
        element = f"{self.pick(*scope.vectors)}[{self.pick(*scope.indices)}]"
        return [f"{self.pick('t', element)} {sign} {form.format(self.number(scope))}"], scope

    def field(self, scope: Scope) -> tuple[list[str], Scope]:
        """An object changes."""
        o, p = self.pick(*scope.states), self.number(scope)
        sign, form = self.pick(*UPDATES)
        vector = self.pick(*scope.vectors)
        line = self.pick(
            f"{o}.rate {sign} {form.format(p)}",
            f"{o}.pos[{self.pick(*scope.indices)}] {sign} {form.format(p)}",
            f"{o}.pos *= 0.9",
            f"{o}.pos = 0.6 * {o}.pos + 0.3 * {vector}",
            f"{o}.pos[:] = 0.6 * {o}.pos - 0.3 * {vector}[::-1]",
            f"{o}.steps += 1",
            f"{o}.pair = Pair({p}, {o}.pair.left)",
            f"{o}.pair = {o}.pair._replace(right={p})",
            f"{o}.step({p})",
            f"t += 0.2 * {o}.energy",
        )
        return [line], scope

    def entry(self, scope: Scope) -> tuple[list[str], Scope]:
        sign, form = self.pick(*UPDATES)
        if self.pick(True, False):
            return [f"d['rate'] {sign} {form.format(self.number(scope))}"], scope
        return ["for key, value in d.items():", "    t = 0.6 * t + 0.1 * value"], scope

    def bind(self, scope: Scope) -> tuple[list[str], Scope]:
        c = self.name("c")
        made = self.pick(
            [f"{c} = {self.number(scope)}"],
            [f"{c}, t = t, {self.number(scope)}"],
            [f"{c}: float = {self.number(scope)}"],
            [f"{c} = -({self.number(scope)})", f"assert {c} < 1e9, f'{{{c}}} is large'"],
            [f"w = {self.number(scope)}", f"{c} = 0.5 * w", "del w"],
            ["with np.errstate(divide='ignore'):", f"    {c} = {self.number(scope)}", "    pass"],
            ["e = {key: 0.5 * d[key] for key in ('rate', 'weight')}", f"{c} = e['weight']"],
            [f"{c} = ({self.leaf(scope)} if kind is not Kind.FAST else 0.5) + +t"],
            [f"{c} = t if 'rate' in d and k in {{0, 2, 3}} else a"],
            [f"{c}, *rest = ({self.leaf(scope)}, {self.leaf(scope)}, t)", "t = 0.5 * rest[-1]"],
        )
        return made, replace(scope, scalars=(*scope.scalars, c))

    def walrus(self, scope: Scope) -> tuple[list[str], Scope]:
        c = self.name("c")
        test = f"if ({c} := {self.number(scope)}) > {self.pick('0.1', '-0.2')}:"
        after = replace(scope, scalars=(*scope.scalars, c))
        return [test, *indented(self.block(after))], after

    def closure(self, scope: Scope) -> tuple[list[str], Scope]:
        """A nested function that reads what its surroundings have when it is called."""
        g = self.name("g")
        inside = replace(scope, scalars=(*scope.scalars, "v"), functions=("smooth",), depth=3)
        body = [f"return {self.number(inside)}"]
        if self.pick(True, False):
            body = [f"if {self.condition(inside)}:", f"    return {self.leaf(inside)}", *body]
        after = replace(scope, functions=(*scope.functions, g))
        return [f"def {g}(v):", *indented(body)], after

    def counting(self, scope: Scope) -> tuple[list[str], Scope]:
        """A nested function that rebinds a name of its surroundings."""
        c, g = self.name("c"), self.name("g")
        inside = replace(scope, scalars=(*scope.scalars, c, "v"), functions=("smooth",), depth=3)
        lines = [f"{c} = {self.leaf(scope)}", f"def {g}(v):", f"    nonlocal {c}"]
        lines += [f"    {c} = {self.mixed(c, self.leaf(inside))}", f"    return {c} + v"]
        functions = (*scope.functions, g)
        return lines, replace(scope, scalars=(*scope.scalars, c), functions=functions)

    def items(self, scope: Scope) -> tuple[list[str], Scope]:
        """A loop over what a generator yields."""
        i, v = self.name("i"), self.name("v")
        over = replace(scope, is_loop=True, scalars=(*scope.scalars, v))
        vector, k = self.pick(*scope.vectors), self.leaf(scope)
        head = self.pick(
            f"for {v} in parts({vector}, {k}):",
            f"for {i}, {v} in enumerate(parts({vector}, {k})):",
            f"for {i}, {v} in zip(y, parts({vector}, {k})):",
            f"for {v} in ({v} * {k} for {v} in {vector} if {v} < 0.5):",
        )
        lines = [head, *indented(self.block(over))]
        if self.pick(True, False, False):
            lines += ["else:", *indented(self.block(scope))]
        return lines, scope

    def new_state(self, scope: Scope) -> tuple[list[str], Scope]:
        o = self.name("o")
        made = self.pick(
            f"State({self.pick(*scope.vectors)}.copy(), {self.number(scope)}, q)",
            f"State({self.pick(*scope.vectors)}, {self.number(scope)}, Pair(t, 0.1))",
            f"{self.pick(*scope.states)}",
        )
        vectors = (*scope.vectors, f"{o}.pos")
        scalars = (*scope.scalars, f"{o}.rate", f"{o}.pair.left")
        after = replace(scope, states=(*scope.states, o), vectors=vectors, scalars=scalars)
        return [f"{o} = {made}"], after

    def new_list(self, scope: Scope) -> tuple[list[str], Scope]:
        items, item = self.name("l"), self.name("e")
        v = self.pick(*scope.vectors)
        inside = replace(scope, scalars=(*scope.scalars, item))
        value = f"({self.number(inside)}) * {item}"
        made = self.pick(
            f"[{value} for {item} in {v}]",
            f"[{value} for {item} in {v} if {item} > -0.2]",
            f"[{v}[0] * {self.leaf(scope)}]",
            f"[{v}[i] * {item} for i in range(2) for {item} in y]",
        )
        return [f"{items} = {made}"], replace(scope, lists=(*scope.lists, items))

    def new_history(self, scope: Scope) -> tuple[list[str], Scope]:
        h = self.name("h")
        made = self.pick("[]", "[x.copy()]", "[x * 0.5, y * y]", f"[{self.leaf(scope)} * y]")
        return [f"{h} = {made}"], replace(scope, histories=(*scope.histories, h))

    def history(self, scope: Scope) -> tuple[list[str], Scope]:
        h, v = self.pick(*scope.histories), self.pick(*scope.vectors)
        return self.pick(
            ([f"if len({h}) < 6:", f"    {h}.append({v}.copy())"], scope),
            ([f"if len({h}) < 6:", f"    {h}.append(0.5 * {v} + {self.leaf(scope)})"], scope),
            ([f"if {h}:", f"    {h}[-1][0] *= 0.9"], scope),
            ([f"if {h}:", f"    t += 0.2 * {h}[-1][-1] * {h}[0][0]"], scope),
            ([f"t = 0.5 * t + 0.1 * sum(u.sum() for u in {h})"], scope),
            ([f"for u in {h}:", f"    {v}[0] = 0.5 * {v}[0] + 0.2 * u[1]"], scope),
        )

    def new_rows(self, scope: Scope) -> tuple[list[str], Scope]:
        r = self.name("r")
        made = self.pick("[[] for _ in range(3)]", f"[[{self.leaf(scope)} * x[0]], [x[0], x[1]]]")
        return [f"{r} = {made}"], replace(scope, rows=(*scope.rows, r))

    def row(self, scope: Scope) -> tuple[list[str], Scope]:
        r, at = self.pick(*scope.rows), self.pick("0", "-1", "k % 2")
        return self.pick(
            (
                [f"if len({r}[{at}]) < 4:", f"    {r}[{at}].append({self.leaf(scope)} * x[1])"],
                scope,
            ),
            ([f"if {r}[{at}]:", f"    {r}[{at}][-1] *= {self.leaf(scope)}"], scope),
            ([f"t = 0.5 * t + 0.1 * sum(sum(row) for row in {r})"], scope),
            (
                [f"for row in {r}:", "    for item in row:", "        t = 0.5 * t + 0.2 * item"],
                scope,
            ),
        )

    def grow(self, scope: Scope) -> tuple[list[str], Scope]:
        items, p = self.pick(*scope.lists), f"{self.number(scope)} * x[0]"
        line = self.pick(
            f"{items}.append({p})",
            f"{items}.insert(0, {p})",
            f"{items}.extend([{p}, {p}])",
            f"{items}[-1] = {p}",
            f"t += 0.1 * {items}.pop()",
        )
        guard = f"if 1 < len({items}) < 9:"
        return [guard, f"    {line}"], scope

    def read_list(self, scope: Scope) -> tuple[list[str], Scope]:
        items = self.pick(*scope.lists)
        return self.pick(
            ([f"t = 0.5 * t + 0.1 * sum({items})"], scope),
            ([f"t += 0.1 * len({items}) * t"], scope),
            (
                [f"for j, w in enumerate({items}):", "    t = 0.5 * t + 0.1 * w * (j + 1) / n"],
                scope,
            ),
            ([f"if {items}:", f"    t -= 0.3 * {items}[0] * {items}[-1]"], scope),
        )

    def leave(self, scope: Scope) -> tuple[list[str], Scope]:
        way = self.pick("break", "continue", "return t * x[0] + s.rate")
        return [f"if {self.condition(scope)}:", *indented([way])], scope

    def loop(self, scope: Scope) -> tuple[list[str], Scope]:
        i, v = self.name("i"), self.name("v")
        inside = replace(scope, is_loop=True, indices=(*scope.indices, i))
        over = replace(scope, is_loop=True, scalars=(*scope.scalars, v))
        both = replace(over, indices=(*scope.indices, i))
        vector = self.pick(*scope.vectors)
        head, within = self.pick(
            (f"for {i} in range(n):", inside),
            (f"for {i} in range(n - 1, -1, -1):", inside),
            (f"for {i} in range(n)[1:]:", inside),
            (f"for {i} in range(k):", replace(scope, is_loop=True)),
            (f"for {v} in {vector}:", over),
            (f"for {i}, {v} in enumerate({vector}):", both),
            (f"for {v}, {i} in zip({vector}, range(n)):", both),
        )
        lines = [head, *indented(self.block(within))]
        if self.pick(True, False, False):
            w = self.name("w")
            within = replace(scope, is_loop=True)
            lines = [f"{w} = 0", f"while {w} < 3:"]
            lines += indented([f"{w} += 1", *self.block(within)])
        if self.pick(True, False, False):
            lines += ["else:", *indented(self.block(scope))]
        return lines, scope

    def late(self, scope: Scope) -> tuple[list[str], Scope]:
        """A branch of a loop binds a list first; later iterations read it."""
        i = self.name("i")
        written, inside = self.pick(self.new_list, self.new_history, self.new_rows)(scope)
        binds = self.pick(
            [f"if {i} == 0:", *indented(written)],
            [f"if {i} % 2 == 0:", *indented(written)],
            [f"match {i}:", "    case 0 | 2:", *indented(indented(written))],
        )
        body = [*binds, *self.block(replace(inside, is_loop=True))]
        return [f"for {i} in range({self.pick('3', 'n', 'k')}):", *indented(body)], scope

    def branch(self, scope: Scope) -> tuple[list[str], Scope]:
        lines = [f"if {self.condition(scope)}:", *indented(self.block(scope))]
        if self.pick(True, False):
            lines += [f"elif {self.condition(scope)}:", *indented(self.block(scope))]
        return [*lines, "else:", *indented(self.block(scope))], scope

    def cases(self, scope: Scope) -> tuple[list[str], Scope]:
        subject, first, second = self.pick(
            ("k % 3", "0 | 1", "_"),
            ("(k % 2, n > 3)", "(0, True)", "(1, _)"),
            ("kind", "Kind.SLOW", "Kind.FAST"),
            ("s.pair", "Pair(u, w) if u < w", "(u, w)"),
            ("(t, k)", "(u, 2)", "(u, _) if u > 0.1"),
        )
        known = ("u",) if "u" in first else ()
        inside = replace(scope, scalars=(*scope.scalars, *known))
        lines = [f"case {first}:", *indented(self.block(inside))]
        lines += [f"case {second}:", *indented(self.block(inside))]
        return [f"match {subject}:", *indented(lines)], scope

    def attempt(self, scope: Scope) -> tuple[list[str], Scope]:
        risky = self.pick(
            f"t += 0.1 * math.sqrt({self.leaf(scope)})",
            f"t += 0.1 * checked({self.leaf(scope)})",
            f"t *= x[k + {self.pick(*scope.indices)}]",
            f"t += 0.1 / ({self.pick('k', 'n')} - 2)",
        )
        inside = replace(scope, depth=max(scope.depth, 2))
        lines = ["try:", *indented([*self.block(inside), risky])]
        kinds = self.pick(
            ("ValueError", "Exception"),
            ("(IndexError, ValueError)", "ArithmeticError"),
            ("Refused as e", "ValueError", "LookupError", "ZeroDivisionError"),
        )
        for kind in kinds:
            lines += [f"except {kind}:", *indented(self.block(inside))]
        if self.pick(True, False):
            lines += ["else:", *indented(self.block(inside))]
        if self.pick(True, False, False):
            lines += ["finally:", "    s.steps += 1"]
        return lines, scope


def helpers(writer: Writer) -> list[str]:
    """The functions and the class that a program uses."""
    method = Scope(
        ("self.rate", "dt", "self.pair.left"), ("0", "-1"), ("self.pos",), constants=(), depth=3
    )
    mixed = writer.mixed
    step = [
        f"self.rate = {mixed(writer.leaf(method), writer.leaf(method))}",
        f"self.pos[0] = {mixed(writer.leaf(method), writer.leaf(method))}",
        f"self.pos *= {writer.pick('0.8', '1.0 - 0.1 * self.pair.left', '0.5 + 0.2 * dt')}",
        f"self.pair = Pair({writer.leaf(method)}, self.pair.left)",
        "self.steps += 1",
    ]
    chosen = writer.draw(st.lists(st.sampled_from(step), min_size=1, max_size=4, unique=True))
    walks = "tree(x, 2 * i + 1, w)", f"tree(x, 2 * i + 2, {mixed('w', 'x[i]')})"
    kept = writer.pick(["yield v"], ["if v > k:", "    yield v * k"], ["yield v", "yield v * v"])
    return [
        "@dataclass",
        "class State:",
        "    pos: Any",
        "    rate: float",
        "    pair: Any",
        "    steps: int = 0",
        "",
        "    def step(self, dt):",
        *indented(indented(chosen)),
        "",
        "    @property",
        "    def energy(self):",
        f"        return {writer.pick('0.5 * (self.pos ** 2).sum()', 'self.rate * self.pos[0]')}",
        "",
        "def smooth(v):",
        f"    return {mixed('v', '0.3')}",
        "",
        "def twice(g, v):",
        "    return g(g(v))",
        "",
        "def total(*terms, weight=1.0):",
        "    return weight * sum(terms)",
        "",
        "def checked(v):",
        f"    if v > {writer.pick('0.2', '0.5')}:",
        f"        raise {writer.pick('Refused', 'ValueError')}('large')",
        f"    return {writer.mixed('v', 'v')}",
        "",
        "def tree(x, i, w):",
        "    if i >= x.size:",
        f"        return {writer.pick('w', '0.5 * w', '0.1')}",
        *writer.pick([], ["    x[i] *= 0.9"]),
        f"    return {mixed(writer.pick('x[i]', 'w'), f'{walks[0]} + 0.5 * {walks[1]}')}",
        "",
        "def parts(x, k):",
        f"    for v in {writer.pick('x', 'x[::-1]')}:",
        *indented(indented(kept)),
        *writer.pick([], ["    yield k"], ["    yield from x"]),
        "",
    ]


@st.composite
def mixed_programs(draw: Draw) -> MixedProgram:
    """A program, and what it is called with."""
    writer = Writer(draw, draw(st.integers(3, 10)))
    head = helpers(writer)
    scope = Scope()
    body = ["n = x.size", "t = 0.5 * a", "d = {'rate': a, 'weight': x[0]}"]
    for _ in range(draw(st.integers(2, 5))):
        written, scope = writer.statement(scope)
        body += written
    body.append(f"return {writer.pick(*RESULTS)}")
    source = "\n".join([*head, "def program(x, y, a, s, q, given, k, kind):", *indented(body), ""])
    return MixedProgram(
        source, draw(st.integers(2, 5)), draw(st.integers(0, 4)), draw(st.booleans())
    )
