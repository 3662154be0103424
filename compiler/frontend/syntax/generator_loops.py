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
`enumerate` and `zip` around it a counter is left, and subscripts of what is zipped with the generator: what
stands before it in `zip` is asked first, so at the end of a round whether there is another one.

Which calls are of generators is known while lowering only: it tells the next build.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..calling.standard_iterators import count_of, item_of
from .comprehensions import Intrinsic, each, every
from .nodes import assign, every_node, name, when

Place = tuple[str, int, int, int | None]
"""Where one stands: file, line, first and last column."""

EXHAUSTED, CONTINUED, BROKEN, RETURNED = -1, 0, 1, 2
"""How a round ends: the loop is over for a partner in `zip`, goes on, is left by `break`, by `return`."""


def place_of(node: ast.expr, file: str) -> Place:
    return file, node.lineno, node.col_offset, node.end_col_offset


def rewritten(statements: Sequence[ast.stmt], file: str, calls: Set[Place]) -> list[ast.stmt]:
    """The statements of a function, without loops over the generators at the places `calls`."""
    if not calls or not any(is_known(n, file, calls) for n in every_node(statements)):
        return list(statements)
    return _Rewriting(file, calls).statements(copy.deepcopy(list(statements)))


def is_known(node: ast.AST, file: str, calls: Set[Place]) -> bool:
    """True for an expression of the program at one of the places."""
    if not isinstance(node, ast.expr) or (isinstance(node, ast.Name) and node.id.endswith("$")):
        return False
    return place_of(node, file) in calls


class Owned(ast.Pass):
    """Names that belong to a function, though only functions nested in it bind them."""

    _fields = ("names",)
    _field_types: ClassVar[dict[str, Any]] = {"names": list[ast.expr]}
    names: list[ast.expr]


@dataclass
class _Peeled:
    """The generator in what a loop runs over, and how its items make those of the loop."""

    generator: ast.expr
    item: ast.expr
    before: list[ast.stmt] = field(default_factory=list[ast.stmt])
    first: list[ast.expr] = field(default_factory=list[ast.expr])
    """Tests of exhausted partners in `zip` that stand before the generator: asked before it goes on."""
    ends: list[ast.expr] = field(default_factory=list[ast.expr])
    """Tests of those that stand behind it."""
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
        leaving = _Leaving(f"result${k}$", peeled.first)
        body = [s for part in node.body for s in leaving.changed(part)]
        target = ast.copy_location(ast.Assign([node.target], peeled.item), node.target)
        stop = ast.copy_location(ast.Return(constant(EXHAUSTED, node)), node)
        ends = [when(test, [stop], node) for test in peeled.ends]
        body = [*ends, *peeled.after, target, *body, leaving.round_is_over(node.body[-1])]
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
        leaves = bool(leaving.breaks or ends or peeled.first)
        call = ast.Call(
            constant(each if leaves else every, node.iter),
            [peeled.generator, name(f"each${k}", node.iter)],
            [],
        )
        state = f"state${k}"
        result: list[ast.stmt] = [owned, visit, *peeled.before]
        consumed: ast.expr = ast.copy_location(call, node.iter)
        run: ast.stmt = ast.copy_location(ast.Expr(consumed), node)
        if leaves:
            run = assign(state, exhausted_or(peeled.first, consumed, node), node)
        result.append(run)
        if leaving.returns:
            back = ast.copy_location(ast.Return(name(leaving.result, node)), node)
            result.append(when(equals(state, RETURNED, node), [back], node))
        if node.orelse:
            otherwise = self.statements(node.orelse)
            if leaving.breaks:
                over = ast.Compare(name(state, node), [ast.LtE()], [constant(CONTINUED, node)])
                otherwise = [when(placed(over, node), otherwise, node)]
            result += otherwise
        return result

    def own_names(self, loop: ast.For, body: list[ast.stmt]) -> frozenset[str]:
        """The names that each iteration binds before it reads them, and that are not read elsewhere."""
        from .liveness import Liveness, assigned, captured_in

        kept = captured_in(body)
        elsewhere = exposed(without(self.all, loop))
        bound = frozenset(n for n in assigned(*body) if "$" not in n or n.startswith("item$"))
        return bound - kept - elsewhere - Liveness().block(body, frozenset(), kept)

    def peeled(self, node: ast.expr, item: ast.expr, k: str) -> _Peeled | None:
        """What a loop runs over, if there is a known generator in it."""
        if is_known(node, self.file, self.calls):
            return _Peeled(node, item)
        if not isinstance(node, ast.Call):
            return None
        kind = node.func.id if isinstance(node.func, ast.Name) else None
        if kind == "enumerate" and node.args:
            found = self.peeled(node.args[0], item, k)
            if found is None:
                return None
            starts = [*node.args[1:], *(w.value for w in node.keywords)]
            self.call_first(found, k, starts)
            counter = self.counter(found, f"number${k}${len(found.before)}", node)
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
            self.call_first(found, k, node.args[at + 1 :])
            inner, found.before = found.before, []
            items = [self.partner(found, other, k, found.first) for other in node.args[:at]]
            # What the generator is called with is evaluated though its partners may be empty.
            self.call_first(found, k, node.args[:at], inner)
            found.before += inner
            items.append(found.item)
            items += [self.partner(found, other, k, found.ends) for other in node.args[at + 1 :]]
            found.item = placed(ast.Tuple(items, ast.Load()), node)
            return found
        return None

    def partner(self, found: _Peeled, other: ast.expr, k: str, ends: list[ast.expr]) -> ast.expr:
        """The item of what is zipped with a generator, and the test that there is none any more."""
        place = f"{k}${other.lineno}_{other.col_offset}"
        whole = f"zipped${place}"
        taken = ast.Call(constant(Intrinsic.PARTNER, other), [other], [])
        found.before.append(assign(whole, placed(taken, other), other))
        counter = self.counter(found, f"number${place}", other)
        size = placed(ast.Call(constant(count_of, other), [name(whole, other)], []), other)
        ends.append(placed(ast.Compare(name(counter, other), [ast.GtE()], [size]), other))
        index = self.before_it(counter, other)
        return placed(ast.Call(constant(item_of, other), [name(whole, other), index], []), other)

    def call_first(
        self,
        found: _Peeled,
        k: str,
        others: Sequence[ast.expr],
        before: list[ast.stmt] | None = None,
    ) -> None:
        """Evaluate what the generator is called with where Python does: beside `others`."""
        if all(map(is_plain, others)) and before is None:
            return
        before = found.before if before is None else before
        call = found.generator = copy.copy(found.generator)

        def named(part: ast.expr) -> ast.expr:
            if is_plain(part) or isinstance(part, ast.Starred):
                return part
            if is_known(part, self.file, self.calls):
                return part
            given = f"given${k}${len(before)}"
            before.append(assign(given, part, part))
            return name(given, part)

        if isinstance(call, ast.GeneratorExp):
            outer = copy.copy(call.generators[0])
            outer.iter = named(outer.iter)
            call.generators = [outer, *call.generators[1:]]
        elif isinstance(call, ast.Call):
            call.args = [named(a) for a in call.args]
            call.keywords = [ast.keyword(w.arg, named(w.value)) for w in call.keywords]

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

    def __init__(self, result: str, first: Sequence[ast.expr]) -> None:
        self.result, self.first = result, first
        self.depth = 0
        self.breaks = self.returns = False

    def changed(self, s: ast.stmt) -> list[ast.stmt]:
        made = self.visit(s)
        return made if isinstance(made, list) else [made]

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        if self.depth:
            return node
        self.breaks = True
        return ast.copy_location(ast.Return(constant(BROKEN, node)), node)

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        if self.depth:
            return node
        return self.round_is_over(node)

    def round_is_over(self, node: ast.stmt) -> ast.stmt:
        after = exhausted_or(self.first, constant(CONTINUED, node), node)
        return ast.copy_location(ast.Return(after), node)

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        self.returns = self.breaks = True
        value = node.value or ast.copy_location(ast.Constant(None), node)
        leave = ast.copy_location(ast.Return(constant(RETURNED, node)), node)
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


def exposed(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The names that are read other than in the body of a `for` that binds them."""
    from .liveness import assigned, captured_in, reads

    found = frozenset[str]()
    for node in nodes:
        if isinstance(node, ast.For):
            rest = exposed([node.iter, *node.orelse]) | captured_in([node])
            found |= rest | (exposed(node.body) - assigned(node.target))
        elif isinstance(node, ast.If | ast.While | ast.With | ast.Try | ast.ExceptHandler):
            found |= exposed(list(ast.iter_child_nodes(node)))
        else:
            found |= reads(node)
    return found


def exhausted_or(tests: Sequence[ast.expr], otherwise: ast.expr, like: ast.AST) -> ast.expr:
    """EXHAUSTED where one of the tests holds."""
    for test in reversed(tests):
        otherwise = placed(
            ast.IfExp(copy.deepcopy(test), constant(EXHAUSTED, like), otherwise), like
        )
    return otherwise


def is_plain(node: ast.expr) -> bool:
    """True for what may be evaluated sooner or later."""
    return isinstance(node, ast.Name | ast.Constant)


def constant(value: object, like: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Constant(value), like)  # pyright: ignore[reportArgumentType]


def equals(state: str, which: int, like: ast.AST) -> ast.expr:
    return placed(ast.Compare(name(state, like), [ast.Eq()], [constant(which, like)]), like)


def placed(node: ast.expr, like: ast.AST) -> ast.expr:
    return ast.copy_location(node, like)
