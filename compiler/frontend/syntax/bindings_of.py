"""Where a function binds a name: for errors that name every assignment that matters."""

from __future__ import annotations

import ast

from ...diagnostics import Span
from .source import Source

MOST = 3
"""So many places are shown."""


def places(source: Source, name: str, line: int) -> list[tuple[Span, str]]:
    """The last binding of a name before a line, and the first ones from there on, each with what it is.

    `name` may be an attribute, of whatever object; "" stands for the function's result.
    """
    found = sorted(_found(source, name), key=lambda f: (f[0].line, f[0].column))
    before = [f for f in found if f[0].line < line]
    after = [f for f in found if f[0].line >= line]
    chosen = [*before[-1:], *after]
    return chosen[:MOST] if after else before[-2:]


def _found(source: Source, name: str) -> list[tuple[Span, str]]:
    found = list[tuple[Span, str]]()
    a = source.node.args
    for argument in (*a.posonlyargs, *a.args, *a.kwonlyargs):
        if argument.arg == name:
            found.append((source.span(argument), f"`{name}` is an argument"))
    for node in ast.walk(source.node):
        match node:
            case ast.Return() if not name:
                found.append((source.span(node), "a result is returned here"))
            case ast.Assign(targets) if any(_binds(t, name) for t in targets):
                found.append((source.span(node), f"`{name}` is assigned here"))
            case (
                ast.AugAssign(target)
                | ast.AnnAssign(target)
                | ast.NamedExpr(target)
                | ast.For(target)
            ) if _binds(target, name):
                place = target if isinstance(node, ast.For) else node
                found.append((source.span(place), f"`{name}` is assigned here"))
            case _:
                pass
    return found


def _binds(target: ast.expr, name: str) -> bool:
    if isinstance(target, ast.Tuple | ast.List | ast.Starred):
        parts = [target.value] if isinstance(target, ast.Starred) else target.elts
        return any(_binds(part, name) for part in parts)
    if "." in name:
        return isinstance(target, ast.Attribute) and target.attr == name.rpartition(".")[2]
    return isinstance(target, ast.Name) and target.id == name
