"""`:=` in comprehensions: it binds a name of the function, so a loop before the statement stands for it.

    s = sum([y for v in x if (y := f(v)) > 0.0])      made$1 = []
                                                      for v$1 in x:
                                                          if (y := f(v$1)) > 0.0:
                                                              made$1.append(y)
                                                      s = sum(made$1)

Of `any` and `all` the loop ends where they do. Only what the statement evaluates first, or after what nothing
can change, is written out; any other comprehension is refused where it is lowered.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from .nodes import assign, every_node, name, when

CONSUMERS = ("sum", "max", "min", "list", "sorted", "tuple")
ENDING = ("any", "all")


def rewritten(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function, without such comprehensions where that can be."""
    found = list(statements)
    if not any(binds(n) for n in every_node(found)):
        return found
    return _Rewriting().visit(ast.Module(copy.deepcopy(found), [])).body


def binds(node: ast.AST) -> bool:
    """True for a comprehension with `:=` in it."""
    kinds = ast.ListComp | ast.GeneratorExp
    return isinstance(node, kinds) and any(isinstance(n, ast.NamedExpr) for n in ast.walk(node))


class _Rewriting(ast.NodeTransformer):
    def __init__(self) -> None:
        self.count = 0
        self.before: list[ast.stmt] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return node

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        node.value = self.first(node.value)
        return self.taken(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        if isinstance(node.target, ast.Name):  # which is read before the value
            self.first_of([node.target, node.value], parts := [node.target, node.value])
            node.value = parts[1]
        return self.taken(node)

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        node.value = None if node.value is None else self.first(node.value)
        return self.taken(node)

    def visit_Expr(self, node: ast.Expr) -> list[ast.stmt]:
        node.value = self.first(node.value)
        return self.taken(node)

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        node.test = self.first(node.test)
        before = self.taken(node)
        self.generic_visit(node)
        return before

    def taken(self, node: ast.stmt) -> list[ast.stmt]:
        before, self.before = self.before, []
        return [*before, node]

    def first(self, node: ast.expr) -> ast.expr:
        """The expression, what is evaluated first in it written out."""
        match node:
            case ast.ListComp() if binds(node):
                return self.loop(node)
            case ast.Call(ast.Name(function), [ast.GeneratorExp() as inner], []) if binds(inner):
                if function in ENDING:
                    return self.search(inner, function)
                if function in CONSUMERS:
                    items = ast.copy_location(ast.ListComp(inner.elt, inner.generators), inner)
                    node.args = [self.loop(items)]
            case ast.Call(ast.Name() | ast.Attribute(ast.Name())):
                self.first_of(node.args, node.args)
            case ast.BinOp(left, _, right):
                found = self.first_of([left, right], [left, right])
                node.left, node.right = found
            case ast.Compare(left, _, _):
                node.left = self.first(left)
            case ast.UnaryOp():
                node.operand = self.first(node.operand)
            case ast.BoolOp():
                node.values[0] = self.first(node.values[0])
            case ast.IfExp():
                node.test = self.first(node.test)
            case ast.Subscript():
                node.value = self.first(node.value)
            case ast.Tuple() | ast.List():
                self.first_of(node.elts, node.elts)
            case _:
                pass
        return node

    def first_of(self, parts: list[ast.expr], into: list[ast.expr]) -> list[ast.expr]:
        """Parts that are evaluated in this order: those up to the first that may do anything."""
        for k, part in enumerate(parts):
            bound = {n.target.id for n in ast.walk(part) if isinstance(n, ast.NamedExpr)}
            read = {n.id for p in parts[:k] for n in ast.walk(p) if isinstance(n, ast.Name)}
            if not bound & read and any(binds(n) for n in ast.walk(part)):
                into[k] = self.first(part)
            if not isinstance(into[k], ast.Name | ast.Constant):
                break
        return into

    def loop(self, node: ast.ListComp) -> ast.expr:
        """The loop that makes the list, and its name."""
        self.count += 1
        made = f"made${node.lineno}_{node.col_offset}_{self.count}"
        append = ast.Attribute(name(made, node), "append", ast.Load())
        called = ast.Call(ast.copy_location(append, node), [node.elt], [])
        item = ast.copy_location(ast.Expr(ast.copy_location(called, node.elt)), node.elt)
        self.before.append(assign(made, ast.copy_location(ast.List([], ast.Load()), node), node))
        self.before.append(self.nest(node, item))
        return name(made, node)

    def search(self, node: ast.GeneratorExp, function: str) -> ast.expr:
        """The loop that ends as `any` or `all` does, and the name of what they say."""
        self.count += 1
        found = f"found${node.lineno}_{node.col_offset}_{self.count}"
        is_any = function == "any"
        said = assign(found, ast.Constant(is_any), node)
        test = node.elt
        if not is_any:
            test = ast.copy_location(ast.UnaryOp(ast.Not(), test), test)
        loop = self.nest(node, when(test, [said, ast.copy_location(ast.Break(), node)], said))
        self.before.append(assign(found, ast.Constant(not is_any), node))
        self.before += [loop] if len(node.generators) == 1 else [self.left_by(loop, found, is_any)]
        return name(found, node)

    def left_by(self, loop: ast.stmt, found: str, is_any: bool) -> ast.stmt:
        """Nested loops, of which the outer ones are left where the inner one was."""
        assert isinstance(loop, ast.For)
        for inner in [n for n in ast.walk(loop) if isinstance(n, ast.For)][:-1]:
            said: ast.expr = name(found, loop)
            if not is_any:
                said = ast.copy_location(ast.UnaryOp(ast.Not(), said), loop)
            inner.body.append(when(said, [ast.copy_location(ast.Break(), loop)], loop))
        return loop

    def nest(self, node: ast.ListComp | ast.GeneratorExp, item: ast.stmt) -> ast.stmt:
        """The loops of a comprehension around what is done with each item; their names are their own."""
        own = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        renamed = _Renaming({n: f"{n}${self.count}_{node.col_offset}" for n in own})
        body: list[ast.stmt] = [renamed.visit(item)]
        first = node.generators[0]
        for generator in reversed(node.generators):
            for test in reversed(generator.ifs):
                body = [when(renamed.visit(test), body, item)]
            over = generator.iter if generator is first else renamed.visit(generator.iter)
            loop = ast.For(renamed.visit(generator.target), over, body, [])
            body = [ast.copy_location(loop, generator.target)]
        return body[0]


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        node.id = self.names.get(node.id, node.id)
        return node
