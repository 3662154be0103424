"""Loops over generators: the body of the loop becomes a function that the generator calls.

    for v in parts(x):              def each$1(item$1):
        if v < 0.0:                     nonlocal v, s
            continue                    v = item$1
        if v > limit:                   if v < 0.0:
            break                           return 0
        s += v                          if v > limit:
    else:                                   return 1
        s = 0.0                         s += v
                                        return 0
                                    state$1 = each(parts(x), each$1)
                                    if state$1 == 0:
                                        s = 0.0

`each` is consumed as `sum` is (`comprehensions`): in the generator's body stands `each$1(...)` for `yield`,
and where that is not 0 the generator is left. A `return` in the loop keeps its value and makes that 2. Of
`enumerate` and `zip` around it a counter is left, and subscripts of what is zipped with the generator.

Which calls are of generators is known while lowering only: it tells the next build.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from .comprehensions import each
from .nodes import assign, name, when

Generating = ast.Call | ast.GeneratorExp
"""What makes generators: calls of generator functions, and expressions."""

Place = tuple[str, int, int]
"""Where one stands: file, line, column."""

CONTINUED, BROKEN, RETURNED = 0, 1, 2


def place_of(node: ast.expr, file: str) -> Place:
    return file, node.lineno, node.col_offset


def rewritten(statements: Sequence[ast.stmt], file: str, calls: Set[Place]) -> list[ast.stmt]:
    """The statements of a function, without loops over the generators that are called at `calls`."""
    if not any(
        isinstance(node, Generating) and place_of(node, file) in calls
        for s in statements
        for node in ast.walk(s)
    ):
        return list(statements)
    return _Rewriting(file, calls).statements(copy.deepcopy(list(statements)))


class Owned(ast.Pass):
    """Names that belong to a function, though only functions nested in it bind them."""

    _fields = ("names",)
    names: list[ast.expr]


@dataclass
class _Peeled:
    """The generator in what a loop runs over, and how its items make those of the loop."""

    generator: ast.expr
    item: ast.expr
    before: list[ast.stmt] = field(default_factory=list[ast.stmt])
    ends: list[ast.expr] = field(default_factory=list[ast.expr])
    """Tests of an exhausted partner in `zip`."""
    after: list[ast.stmt] = field(default_factory=list[ast.stmt])
    """Counters, increased before the body runs."""


class _Rewriting(ast.NodeTransformer):
    def __init__(self, file: str, calls: Set[Place]) -> None:
        self.file, self.calls = file, calls
        self.all: list[ast.stmt] = []

    def statements(self, found: list[ast.stmt]) -> list[ast.stmt]:
        self.all = self.all or found
        module = self.visit(ast.Module(found, []))
        return module.body

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        from .liveness import assigned
        from .scopes import declared

        k = f"{node.lineno}_{node.col_offset}"
        peeled = self.peeled(node.iter, name(f"item${k}", node.iter), k)
        if peeled is None:
            return self.generic_visit(node)  # pyright: ignore[reportReturnType]
        leaving = _Leaving(f"result${k}$")
        body = [s for part in node.body for s in leaving.changed(part)]
        target = ast.copy_location(ast.Assign([node.target], peeled.item), node.target)
        stop = ast.copy_location(ast.Return(code(BROKEN, node)), node)
        ends = [when(test, [stop], node) for test in peeled.ends]
        body = [*ends, *peeled.after, target, *body]
        body.append(ast.copy_location(ast.Return(code(CONTINUED, node)), node.body[-1]))
        names = assigned(*body) | declared(node.body)
        names = sorted(names - declared(node.body, ast.Global) - self.own_names(node, body))
        shared = ast.copy_location(ast.Nonlocal(names) if names else ast.Pass(), node)
        own = [ast.copy_location(ast.Name(n, ast.Store()), node) for n in names]
        owned = ast.copy_location(Owned(), node)
        owned.names = [*own]
        only = ast.copy_location(ast.arg(f"item${k}"), node)
        parameters = ast.arguments([], [only], None, [], [], None, [])
        made = ast.FunctionDef(f"each${k}", parameters, [shared, *body], [])
        vars(made)["type_params"] = []  # a field in Python 3.12 and later
        visit = ast.copy_location(made, node)
        call = ast.Call(
            ast.copy_location(ast.Constant(each), node.iter),  # pyright: ignore[reportArgumentType]
            [peeled.generator, name(f"each${k}", node.iter)],
            [],
        )
        state = f"state${k}"
        result: list[ast.stmt] = [owned, visit, *peeled.before]
        result.append(assign(state, ast.copy_location(call, node.iter), node))
        if leaving.returns:
            back = ast.copy_location(ast.Return(name(leaving.result, node)), node)
            result.append(when(equals(state, RETURNED, node), [back], node))
        if node.orelse:
            otherwise = self.statements(node.orelse)
            if leaving.breaks:
                otherwise = [when(equals(state, CONTINUED, node), otherwise, node)]
            result += otherwise
        return result

    def own_names(self, loop: ast.For, body: list[ast.stmt]) -> frozenset[str]:
        """The names that each iteration binds before it reads them, and nobody else reads."""
        from .liveness import Liveness, assigned, captured_by, reads

        functions = [
            inner
            for s in body
            for inner in ast.walk(s)
            if isinstance(inner, ast.FunctionDef | ast.Lambda)
        ]
        kept = frozenset(name for inner in functions for name in captured_by(inner))
        elsewhere = reads(*without(self.all, loop))
        bound = frozenset(n for n in assigned(*body) if "$" not in n)
        return bound - kept - elsewhere - Liveness().block(body, frozenset(), kept)

    def peeled(self, node: ast.expr, item: ast.expr, k: str) -> _Peeled | None:
        """What a loop runs over, if there is a known generator in it."""
        if isinstance(node, Generating) and place_of(node, self.file) in self.calls:
            return _Peeled(node, item)
        if not isinstance(node, ast.Call):
            return None
        kind = node.func.id if isinstance(node.func, ast.Name) else None
        if kind == "enumerate" and node.args:
            found = self.peeled(node.args[0], item, k)
            if found is None:
                return None
            counter = self.counter(found, f"number${k}${len(found.before)}", node)
            starts = [*node.args[1:], *(w.value for w in node.keywords)]
            found.before[-1] = assign(counter, starts[0], node) if starts else found.before[-1]
            found.item = placed(ast.Tuple([self.before_it(counter, node), found.item]), node)
            return found
        if kind == "zip" and not node.keywords:
            parts = [self.peeled(a, item, k) for a in node.args]
            if sum(part is not None for part in parts) != 1:
                return None
            at = next(j for j, part in enumerate(parts) if part is not None)
            found = parts[at]
            assert found is not None
            items = list[ast.expr]()
            for j, other in enumerate(node.args):
                if j == at:
                    items.append(found.item)
                    continue
                whole = f"zipped${k}${len(found.before)}"
                found.before.append(assign(whole, other, other))
                counter = self.counter(found, f"number${k}${len(found.before)}", other)
                size = placed(ast.Call(constant(len, other), [name(whole, other)], []), other)
                end = ast.Compare(name(counter, other), [ast.GtE()], [size])
                found.ends.append(placed(end, other))
                index = self.before_it(counter, other)
                items.append(placed(ast.Subscript(name(whole, other), index, ast.Load()), other))
            found.item = placed(ast.Tuple(items, ast.Load()), node)
            return found
        return None

    def counter(self, found: _Peeled, counter: str, like: ast.expr) -> str:
        """A counter of the iterations before this one, until it is increased."""
        start = assign(counter, constant(0, like), like)  # pyright: ignore[reportArgumentType]
        found.before.append(start)
        one = ast.BinOp(name(counter, like), ast.Add(), constant(1, like))
        found.after.append(assign(counter, placed(one, like), like))  # pyright: ignore
        return counter

    def before_it(self, counter: str, like: ast.expr) -> ast.expr:
        less = ast.BinOp(name(counter, like), ast.Sub(), constant(1, like))
        return placed(less, like)


class _Leaving(ast.NodeTransformer):
    """The body of a loop as that of a function: `break`, `continue` and `return` return how they leave."""

    def __init__(self, result: str) -> None:
        self.result = result
        self.depth = 0
        self.breaks = self.returns = False

    def changed(self, s: ast.stmt) -> list[ast.stmt]:
        made = self.visit(s)
        return made if isinstance(made, list) else [made]

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        if self.depth:
            return node
        self.breaks = True
        return ast.copy_location(ast.Return(code(BROKEN, node)), node)

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        if self.depth:
            return node
        return ast.copy_location(ast.Return(code(CONTINUED, node)), node)

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        self.returns = self.breaks = True
        value = node.value or ast.copy_location(ast.Constant(None), node)
        leave = ast.copy_location(ast.Return(code(RETURNED, node)), node)
        return [assign(self.result, value, node), leave]

    def visit_For(self, node: ast.For) -> ast.stmt:
        return self.loop(node)

    def visit_While(self, node: ast.While) -> ast.stmt:
        return self.loop(node)

    def loop(self, node: ast.For | ast.While) -> ast.stmt:
        self.depth += 1
        node.body = [s for part in node.body for s in self.changed(part)]
        self.depth -= 1
        node.orelse = [s for part in node.orelse for s in self.changed(part)]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node


def without(statements: Sequence[ast.AST], loop: ast.stmt) -> list[ast.AST]:
    """What there is of the statements outside of a loop."""
    found = list[ast.AST]()
    for s in statements:
        if s is loop:
            found += loop.orelse  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType]
        elif any(inner is loop for inner in ast.walk(s)):
            found += without(list(ast.iter_child_nodes(s)), loop)
        else:
            found.append(s)
    return found


def code(which: int, like: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Constant(which), like)


def constant(value: object, like: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Constant(value), like)  # pyright: ignore[reportArgumentType]


def equals(state: str, which: int, like: ast.AST) -> ast.expr:
    return placed(ast.Compare(name(state, like), [ast.Eq()], [code(which, like)]), like)


def placed(node: ast.expr, like: ast.AST) -> ast.expr:
    return ast.copy_location(node, like)
