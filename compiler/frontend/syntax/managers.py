"""`with` statements as `try`, and over generators as a call whose body is a function.

    with Timer(x) as t:             manager$1 = Timer(x)
        s += t.step(x)              entered$1 = manager$1.__enter__()
                                    try:
                                        t = entered$1
                                        s += t.step(x)
                                    except BaseException as error$1:
                                        if not manager$1.__exit__(type(error$1), error$1, traceback):
                                            raise
                                    else:
                                        manager$1.__exit__(None, None, None)

A body that `break`, `continue` or `return` leaves has the last line in a `finally`, under a flag. What
`contextlib.contextmanager` made is a generator with one `yield`; the body is a function that is called in
its place, so an exception is raised where the generator waits::

    with scaled(x, 2.0) as a:       def each$1(item$1):
        s = a * x.sum()                 nonlocal s, a
                                        a = item$1
                                        s = a * x.sum()
                                    managed(scaled(x, 2.0), each$1)

Which kind of manager an expression is, is known while lowering only: it tells the next build. What does
nothing (`np.errstate`, `nullcontext`) needs no `try`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from typing import Any

from . import generator_loops
from .comprehensions import managed
from .generator_loops import Owned, Place, constant, place_of, placed
from .nodes import assign, every_node, flag, name, negated, when
from .scopes import declared
from .trying import children, ends, inner

OBJECT, GENERATOR, SUPPRESSING = "object", "generator", "suppressing"
"""The kinds of managers of which the next build is told."""

HANDING_ON = " that hands on what is raised"
"""Of a manager after which nothing follows that would not without an exception."""

BROKEN, CONTINUED, RETURNED = 1, 2, 3
"""How the body of a `with` over a generator leaves what is around."""


def enter(manager: Any) -> Any:
    """What `with` of a manager that does nothing binds: its expression is this call."""
    return manager


def rewritten(
    statements: Sequence[ast.stmt], file: str, managers: Mapping[Place, str]
) -> list[ast.stmt]:
    """The statements of a function, without `with`."""
    found = list(statements)
    if not any(isinstance(n, ast.With) for n in every_node(found)):
        return found
    return _Rewriting(file, managers).block(copy.deepcopy(found))


class _Rewriting(ast.NodeTransformer):
    def __init__(self, file: str, managers: Mapping[Place, str]) -> None:
        self.file, self.managers = file, managers
        self.count = 0

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        return self.visit(ast.Module(statements, [])).body

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node

    def visit_With(self, node: ast.With) -> list[ast.stmt]:
        body = self.block(node.body)
        for item in reversed(node.items):
            self.count += 1
            body = self.entered(item, body, node)
        return body

    def entered(self, item: ast.withitem, body: list[ast.stmt], s: ast.With) -> list[ast.stmt]:
        expression, k = item.context_expr, f"{s.lineno}_{s.col_offset}_{self.count}"
        kind = self.managers.get(place_of(expression, self.file), "")
        hands_on = kind.endswith(HANDING_ON)
        match kind.removesuffix(HANDING_ON):
            case "object":
                return self.object(item, body, k, hands_on=hands_on)
            case "generator":
                return self.generator(item, body, k, hands_on=hands_on)
            case "suppressing":
                return self.suppressing(item, body, k)
            case _:
                made = placed(ast.Call(constant(enter, expression), [expression], []), expression)
                return [bound(item, made), *body]

    def object(
        self, item: ast.withitem, body: list[ast.stmt], k: str, *, hands_on: bool
    ) -> list[ast.stmt]:
        """A manager with `__enter__` and `__exit__`."""
        at, manager, entered, error = (
            item.context_expr,
            f"manager${k}",
            f"entered${k}",
            f"error${k}",
        )
        before = [
            assign(manager, at, at),
            assign(entered, method(manager, "__enter__", [], at), at),
        ]
        if item.optional_vars is not None:
            target = ast.Assign([item.optional_vars], name(entered, at))
            body = [ast.copy_location(target, item.optional_vars), *body]
        kind = placed(ast.Call(constant(type, at), [name(error, at)], []), at)
        trace = constant(Traceback, at)
        given = method(manager, "__exit__", [kind, name(error, at), trace], at)
        again = ast.copy_location(ast.Raise(None, None), at)
        refused = placed(ast.UnaryOp(ast.Not(), given), at)
        handling: list[ast.stmt] = [when(refused, [again], again)]
        if hands_on:
            handling = [ast.copy_location(ast.Expr(given), at), again]
        nothing = [constant(None, at) for _ in range(3)]
        leaving = ast.copy_location(ast.Expr(method(manager, "__exit__", nothing, at)), at)
        if not leaves(body):
            return [*before, attempt(body, error, handling, [leaving], at)]
        failed = f"failed${k}"
        handling.insert(0, flag(failed, True, again))
        inner = attempt(body, error, handling, [], at)
        final = when(negated(failed, at), [leaving], leaving)
        guarded = ast.copy_location(ast.Try([inner], [], [], [final]), at)
        return [*before, flag(failed, False, again), guarded]

    def suppressing(self, item: ast.withitem, body: list[ast.stmt], k: str) -> list[ast.stmt]:
        """`contextlib.suppress(...)`."""
        at, manager = item.context_expr, f"manager${k}"
        start = [assign(manager, at, at)]
        if item.optional_vars is not None:
            start.append(bound(item, constant(None, at)))
        nothing = ast.copy_location(ast.Pass(), at)
        handler = ast.copy_location(ast.ExceptHandler(name(manager, at), None, [nothing]), at)
        return [*start, ast.copy_location(ast.Try(body, [handler], [], []), at)]

    def generator(
        self, item: ast.withitem, body: list[ast.stmt], k: str, *, hands_on: bool
    ) -> list[ast.stmt]:
        """What `contextlib.contextmanager` made."""
        from .liveness import assigned

        at, left, entered = item.context_expr, f"left${k}$", f"entered${k}"
        like = ast.copy_location(ast.Pass(), at)
        leaving = _Leaving(left, f"result${k}$")
        only_returns = hands_on and ends(body)
        body = leaving.block(body)
        start: list[ast.stmt] = [
            when(name(entered, at), [runtime_error("generator didn't stop", at)], like),
            flag(entered, True, like),
        ]
        if item.optional_vars is not None:
            start.append(bound(item, name(f"item${k}", at)))
        body = [*start, *body]
        names = (assigned(*body) | declared(body)) - declared(body, ast.Global)
        names = sorted(names - only_handlers(body))
        body.insert(0, ast.copy_location(ast.Nonlocal(names), at))
        owned = ast.copy_location(Owned(), at)
        owned.names = [ast.copy_location(ast.Name(n, ast.Store()), at) for n in names]
        only = ast.copy_location(ast.arg(f"item${k}"), at)
        parameters = ast.arguments([], [only], None, [], [], None, [])
        visit = ast.FunctionDef(f"each${k}", parameters, body, [])
        vars(visit)["type_params"] = []  # a field in Python 3.12 and later
        call = placed(ast.Call(constant(managed, at), [at, name(f"each${k}", at)], []), at)
        missing = runtime_error("generator didn't yield", at, constant(None, at))
        result: list[ast.stmt] = [
            owned,
            ast.copy_location(visit, at),
            flag(entered, False, like),
            ast.copy_location(ast.Expr(call), at),
            when(negated(entered, at), [missing], like),
        ]
        if not leaving.ways:
            return result
        result.insert(2, assign(left, ast.Constant(0), at))
        back = ast.copy_location(ast.Return(name(leaving.result, at)), at)
        ways = {BROKEN: ast.Break(), CONTINUED: ast.Continue(), RETURNED: back}
        if only_returns and leaving.ways == {RETURNED}:
            return [*result, back]
        for way in sorted(leaving.ways):
            test = generator_loops.equals(left, way, at)
            result.append(when(test, [ast.copy_location(ways[way], at)], like))
        return result


class _Leaving(ast.NodeTransformer):
    """The body of a `with` as that of a function: what leaves it returns, and says how."""

    def __init__(self, left: str, result: str) -> None:
        self.left, self.result = left, result
        self.ways = set[int]()
        self.depth = 0

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        return self.visit(ast.Module(statements, [])).body

    def way(self, which: int, node: ast.stmt) -> list[ast.stmt]:
        self.ways.add(which)
        said = assign(self.left, ast.copy_location(ast.Constant(which), node), node)
        return [said, ast.copy_location(ast.Return(None), node)]

    def visit_Break(self, node: ast.Break) -> Any:
        return node if self.depth else self.way(BROKEN, node)

    def visit_Continue(self, node: ast.Continue) -> Any:
        return node if self.depth else self.way(CONTINUED, node)

    def visit_Return(self, node: ast.Return) -> Any:
        value = node.value or ast.copy_location(ast.Constant(None), node)
        return [assign(self.result, value, node), *self.way(RETURNED, node)]

    def visit_For(self, node: ast.For) -> ast.stmt:
        return self.loop(node)

    def visit_While(self, node: ast.While) -> ast.stmt:
        return self.loop(node)

    def loop(self, node: ast.For | ast.While) -> ast.stmt:
        self.depth += 1
        node.body = self.block(node.body)
        self.depth -= 1
        node.orelse = self.block(node.orelse)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node


def hands_on(node: ast.AST, kind: str) -> bool:
    """Whether a function that is `__exit__`, or the generator, never keeps an exception to itself."""
    if not isinstance(node, ast.FunctionDef):
        return False
    if kind == GENERATOR:
        return not any(isinstance(n, ast.ExceptHandler | ast.With) for n in ast.walk(node))
    values = [s.value for s in inner(node.body) if isinstance(s, ast.Return)]
    return all(v is None or (isinstance(v, ast.Constant) and not v.value) for v in values)


class Traceback:
    """Stands for the traceback that `__exit__` is given: nothing can be read of it."""


def bound(item: ast.withitem, value: ast.expr) -> ast.stmt:
    """What `with` binds, or the value alone where it binds nothing."""
    if item.optional_vars is None:
        return ast.copy_location(ast.Expr(value), item.context_expr)
    return ast.copy_location(ast.Assign([item.optional_vars], value), item.optional_vars)


def attempt(
    body: list[ast.stmt], error: str, handling: list[ast.stmt], orelse: list[ast.stmt], at: ast.expr
) -> ast.stmt:
    handler = ast.ExceptHandler(constant(BaseException, at), error, handling)
    return ast.copy_location(ast.Try(body, [ast.copy_location(handler, at)], orelse, []), at)


def method(manager: str, called: str, arguments: list[ast.expr], at: ast.expr) -> ast.expr:
    function = placed(ast.Attribute(name(manager, at), called, ast.Load()), at)
    return placed(ast.Call(function, arguments, []), at)


def only_handlers(body: list[ast.stmt]) -> frozenset[str]:
    """The names that nothing binds but `except ... as`: each handler has its own."""
    found = [n for s in body for n in ast.walk(s)]
    stored = {n.id for n in found if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return frozenset(n.name for n in found if isinstance(n, ast.ExceptHandler) and n.name) - stored


def runtime_error(text: str, at: ast.expr, cause: ast.expr | None = None) -> ast.stmt:
    made = placed(ast.Call(constant(RuntimeError, at), [constant(text, at)], []), at)
    return ast.copy_location(ast.Raise(made, cause), at)


def leaves(statements: Sequence[ast.stmt], *, in_loop: bool = False) -> bool:
    """True where something leaves the statements but by an exception."""
    for s in statements:
        match s:
            case ast.Return():
                return True
            case ast.Break() | ast.Continue() if not in_loop:
                return True
            case ast.FunctionDef() | ast.ClassDef():
                pass
            case ast.For() | ast.While():
                if leaves(s.body, in_loop=True) or leaves(s.orelse, in_loop=in_loop):
                    return True
            case ast.Match():
                if any(leaves(c.body, in_loop=in_loop) for c in s.cases):
                    return True
            case _ if leaves(children(s), in_loop=in_loop):
                return True
            case _:
                pass
    return False
