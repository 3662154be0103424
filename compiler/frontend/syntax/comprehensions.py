"""Comprehensions and generator expressions, and what consumes them: as functions written out.

A comprehension is the call of a local function whose names are its own, as in CPython; what consumes a
generator expression is a few lines of Python around its loops::

    sum(f(v) for v in x if v > 0)       def sum$(items$, total$):
                                            for v in items$:
                                                if v > 0:
                                                    item$ = f(v)
                                                    total$ = total$ + item$
                                            return total$
                                        sum$(x, 0)

So no list is made where none is asked for. A generator expression with one loop and no condition may
also stand where a `for` loop, `zip` or `enumerate` wants something to run over. Of a generator function
that is consumed the body is taken, with these lines in the place of its `yield`.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

from ..library.ranges import Independent
from .nodes import assign, name, when

COMPENSATED = sys.version_info >= (3, 12)
"""Whether the builtin `sum` of floats keeps what rounding loses, and adds it at the end."""


class Intrinsic(Enum):
    """What those lines call that is no Python; from `PLACES` on, for `coroutines`."""

    ADD = "add_compensated"
    RECOVERED = "recover"
    PARTNER = "partner"
    PLACES = "places"
    MORE = "more"
    GIVEN = "given"
    ITEM = "item"
    BEHIND = "behind"
    RETURNED = "returned"


Comprehension = ast.ListComp | ast.GeneratorExp

LIST = """
def list_(items):
    made = []
    for item in items:
        made.append(item)
    return made
"""
SUM = """
def sum_(items, total):
    for item in items:
        total = total + item
    return total
"""
COMPENSATED_SUM = """
def sum_(items, total, add, recovered):
    lost = 0.0
    for item in items:
        total, lost = add(total, lost, item)
    return recovered(total, lost)
"""
EXTEND = """
def extend_(items, made):
    for item in items:
        made.append(item)
"""
EXTREME = """
def {name}_(items, error):
    best = None
    for item in items:
        if best is None or item {sign} best:
            best = item
    if best is None:
        raise error("{message}")
    return best
"""
ANY = """
def any_(items):
    for item in items:
        if item:
            return True
    return False
"""
ALL = """
def all_(items):
    for item in items:
        if not item:
            return False
    return True
"""
EACH = """
def each_(items, visit):
    for item in items:
        state = visit(item)
        if state != 0:
            return state
    return 0
"""
FIRST = """
def next_(items, error):
    for item in items:
        return item
    raise error
"""
FIRST_OR = """
def first_or_(items, default):
    for item in items:
        return item
    return default
"""
EVERY = """
def every_(items, visit):
    for item in items:
        visit(item)
"""
EMPTY = "{}() iterable argument is empty" if COMPENSATED else "{}() arg is an empty sequence"


def each(items: Iterable[Any], visit: Callable[[Any], int]) -> int:
    """Visit the items until a visit does not return 0: a loop over a generator (`generator_loops`)."""
    return next((state for item in items if (state := visit(item))), 0)


def every(items: Iterable[Any], visit: Callable[[Any], object]) -> None:
    """Visit all items: a loop that nothing leaves."""
    for item in items:
        visit(item)


def first_or(items: Iterable[Any], default: Any) -> Any:
    """`next(items, default)` of what is left then."""
    return next(iter(items), default)


def managed(items: Iterable[Any], visit: Callable[[Any], object]) -> None:
    """Visit what a generator of `contextlib.contextmanager` yields: the body of a `with` (`managers`)."""
    every(items, visit)


VISITING: tuple[object, ...] = (each, every)
"""What loops over generators are made of."""

UNPACKED = """
def unpacked_(items, most):
    made = []
    number = 0
    for item in items:
        made.append(item)
        number = number + 1
        if number > most:
            return made
    return made
"""


def unpacked(items: Iterable[Any], most: int) -> list[Any]:
    """The items for so many names, and one more where there is one: then no more are asked for."""
    return [item for _, item in zip(range(most + 1), items, strict=False)]


TEMPLATES: dict[object, str] = {
    each: EACH,
    unpacked: UNPACKED,
    every: EVERY,
    managed: EVERY,
    next: FIRST,
    first_or: FIRST_OR,
    list: LIST,
    list.extend: EXTEND,
    sum: COMPENSATED_SUM if COMPENSATED else SUM,
    min: EXTREME.format(name="min", sign="<", message=EMPTY.format("min")),
    max: EXTREME.format(name="max", sign=">", message=EMPTY.format("max")),
    any: ANY,
    all: ALL,
}
"""What consumes the items of something, in Python."""

ITERATORS: tuple[object, ...] = (range, Independent, enumerate, zip, reversed, map)

FUSED_WITH_LISTS = (list, sum, min, max)
"""Those that take every item of a list: the list of a comprehension is not made for them."""


def consumer(
    function: object, like: ast.AST, inner: Comprehension | None, *, outer: bool = True
) -> ast.FunctionDef:
    """The function that consumes its first argument, or with `inner` the items that this yields.

    With `outer` the first argument is what `inner` runs over; otherwise it runs over that itself.
    """
    tree = ast.parse(TEMPLATES[function])
    made = tree.body[0]
    assert isinstance(made, ast.FunctionDef)
    for node in ast.walk(made):
        match node:
            case ast.Name(name):
                node.id = f"{name}$"
            case ast.arg(name):
                node.arg = f"{name}$"
            case _:
                pass
        if isinstance(node, ast.expr | ast.stmt | ast.arg):
            ast.copy_location(node, like)
    if inner is not None:
        k = next(k for k, s in enumerate(made.body) if isinstance(s, ast.For))
        loop = made.body[k]
        assert isinstance(loop, ast.For)
        made.body[k] = written_out(inner, loop, outer)
    made.name = getattr(function, "__name__", "made")
    return made


class _Yielding(ast.NodeTransformer):
    """A generator's body: what consumes an item stands for `yield`, and what follows for `return`."""

    def __init__(self, loop: ast.For, tail: Sequence[ast.stmt], function: object) -> None:
        self.loop, self.tail, self.function = loop, tail, function
        self.delegates = function in VISITING
        self.loops = 0

    def visit_For(self, node: ast.For) -> list[ast.stmt] | ast.AST:
        match node:
            case ast.For(ast.Name(bound), value, [ast.Expr(ast.Yield(ast.Name(name)))], []):
                if bound == name and self.delegates:
                    return delegated(self.function, value, node)
            case _:
                pass
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> list[ast.stmt] | ast.stmt:
        match node.value:
            case ast.Yield(value):
                given = ast.copy_location(ast.Constant(None), node) if value is None else value
                item = ast.Assign([self.loop.target], given)
                return [ast.copy_location(item, node), *copies(self.loop.body)]
            case ast.YieldFrom(value) if self.delegates:
                return delegated(self.function, value, node)
            case ast.YieldFrom(value):
                return self.inner_loop(value, node)
            case _:
                return node

    def inner_loop(self, value: ast.expr, like: ast.Expr) -> ast.stmt:
        """`yield from value`: a loop of its own, whose items have a name of their own."""
        made = copy.deepcopy(ast.For(self.loop.target, value, self.loop.body, []))
        self.loops += 1
        own = made.target.id if isinstance(made.target, ast.Name) else ""
        for node in (made.target, *(n for s in made.body for n in ast.walk(s))):
            if isinstance(node, ast.Name) and node.id == own:
                node.id = f"{own}{self.loops}$"
        return ast.copy_location(made, like)

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        return copies(self.tail) or [ast.copy_location(ast.Return(None), node)]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node


def delegated(function: object, value: ast.expr, like: ast.stmt) -> list[ast.stmt]:
    """`yield from value` of a generator that is visited: what it runs over is visited in its place."""
    visiting = ast.copy_location(ast.Constant(function), like)  # pyright: ignore
    made = ast.Call(visiting, [value, name("visit$", value)], [])
    call = ast.copy_location(made, value)
    if function is every:
        return [ast.copy_location(ast.Expr(call), like)]
    going_on = ast.copy_location(ast.Constant(0), like)
    left = ast.Compare(name("state$", like), [ast.NotEq()], [going_on])
    leave = ast.copy_location(ast.Return(name("state$", like)), like)
    return [assign("state$", call, like), when(ast.copy_location(left, like), [leave], like)]


def copies(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    return [copy.deepcopy(s) for s in statements]


def generator_consumer(
    function: object, like: ast.AST, generator: ast.FunctionDef
) -> ast.FunctionDef:
    """The generator function, made to consume its own items; what else that takes is keyword-only."""
    outer = consumer(function, like, None)
    k = next(k for k, s in enumerate(outer.body) if isinstance(s, ast.For))
    loop = outer.body[k]
    assert isinstance(loop, ast.For)
    tail = outer.body[k + 1 :]
    inner = copy.deepcopy(generator)
    body = [s for s in inner.body if not isinstance(s, ast.Expr) or not is_text(s.value)]
    holder = _Yielding(loop, tail, function).visit(ast.Module(body, []))
    inner.body = [*outer.body[:k], *holder.body, *copies(tail)]
    extra = outer.args.args[1:]
    inner.args.kwonlyargs += extra
    inner.args.kw_defaults += [None] * len(extra)
    inner.decorator_list = []
    return inner


def is_generator(node: ast.AST) -> bool:
    """True for a definition with a `yield` of its own."""
    pending = list(ast.iter_child_nodes(node)) if isinstance(node, ast.FunctionDef) else []
    while pending:
        inner = pending.pop()
        if isinstance(inner, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(inner, ast.FunctionDef | ast.Lambda | ast.GeneratorExp):
            pending += ast.iter_child_nodes(inner)
    return False


def swallows(generator: ast.FunctionDef) -> tuple[ast.AST, str] | None:
    """Where a generator would take for its own what the loop that consumes it does, and in which words.

    A `yield` stands for the body of the loop. What that raises does not reach handlers around the `yield`,
    nor does a `finally` around it decide how the loop goes on.
    """
    for attempt in ast.walk(generator):
        if isinstance(attempt, ast.Try) and any(map(yields, attempt.body)):
            if attempt.handlers:
                place = next(n for s in attempt.body for n in ast.walk(s) if yields_itself(n))
                return (
                    place,
                    "yields within `try` with `except`: what the loop raises would be caught there",
                )
            for left in (n for s in attempt.finalbody for n in ast.walk(s)):
                if isinstance(left, ast.Return | ast.Break | ast.Continue):
                    return left, "leaves the `finally` around a `yield`"
    return None


def stops(generator: ast.AST) -> bool:
    """True where a generator may raise StopIteration, of which CPython makes RuntimeError."""
    match generator:
        case ast.Raise(raised) if raised is not None and names_stop(raised):
            return True
        case ast.Call(ast.Name("next"), [_], []) | ast.Call(ast.Attribute(_, "send" | "__next__")):
            return True
        case ast.Try(handlers=handlers) if any(catches_stop(h.type) for h in handlers):
            rest = [*handlers, *generator.orelse, *generator.finalbody]
            return any(map(stops, rest))
        case ast.Lambda():
            return False
        case _:
            return any(map(stops, ast.iter_child_nodes(generator)))


def names_stop(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Name) and n.id == "StopIteration" for n in ast.walk(node))


def catches_stop(caught: ast.expr | None) -> bool:
    if caught is None or names_stop(caught):
        return True
    return isinstance(caught, ast.Name) and caught.id in ("Exception", "BaseException")


def finishes(generator: ast.FunctionDef) -> bool:
    """True where a generator that is abandoned has something left to do."""
    return any(
        isinstance(n, ast.With | ast.Try)
        and any(map(yields, n.body))
        and (isinstance(n, ast.With) or bool(n.finalbody))
        for n in ast.walk(generator)
    )


def sends(generator: ast.FunctionDef) -> bool:
    """True where a `yield` is more than a statement."""
    plain = {s.value for s in ast.walk(generator) if isinstance(s, ast.Expr)}
    return any(yields_itself(n) and n not in plain for n in ast.walk(generator))


def yields_itself(node: ast.AST) -> bool:
    return isinstance(node, ast.Yield | ast.YieldFrom)


def yields(statement: ast.stmt) -> bool:
    return any(map(yields_itself, ast.walk(statement)))


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def written_out(node: Comprehension, loop: ast.For, outer: bool) -> ast.stmt:
    """The loops of a comprehension around the body of `loop`, whose target its items become.

    With `outer` the first of them runs over what `loop` does, evaluated already.
    """
    item = ast.copy_location(ast.Assign([loop.target], node.elt), node.elt)
    body: list[ast.stmt] = [item, *loop.body]
    for k, generator in reversed(list(enumerate(node.generators))):
        for test in reversed(generator.ifs):
            body = [ast.copy_location(ast.If(test, body, []), test)]
        runs_over = loop.iter if k == 0 and outer else generator.iter
        body = [ast.copy_location(ast.For(generator.target, runs_over, body, []), generator.target)]
    return body[0]


def items_of(node: ast.expr) -> ast.GeneratorExp:
    """`(item for item in node)`."""
    target = ast.copy_location(ast.Name("item$", ast.Store()), node)
    item = ast.copy_location(ast.Name("item$", ast.Load()), node)
    only = ast.comprehension(target, node, [], 0)
    return ast.copy_location(ast.GeneratorExp(item, [only]), node)


def own_names(generators: Sequence[ast.comprehension]) -> frozenset[str]:
    """The names that the loops of a comprehension bind."""
    return frozenset(
        node.id
        for generator in generators
        for node in ast.walk(generator.target)
        if isinstance(node, ast.Name)
    )


def is_plain(node: Comprehension) -> bool:
    """True where each item of what it runs over gives one item."""
    return len(node.generators) == 1 and not node.generators[0].ifs
