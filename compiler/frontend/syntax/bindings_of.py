"""Where a function binds a name: for errors that name every assignment that matters."""

from __future__ import annotations

import ast

from ...diagnostics import Span
from .source import Source

MOST = 3
"""So many places are shown."""
Binding = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr | ast.For


def places(source: Source, name: str, line: int) -> list[tuple[Span, str]]:
    """The last binding of a name before a line, and the first ones from there on, each with what it is.

    `name` may be an attribute, of whatever object; "" stands for the function's result.
    """
    found = sorted(_found(source, name), key=lambda f: (f[0].line, f[0].column))
    before = [f for f in found if f[0].line < line]
    after = [f for f in found if f[0].line >= line]
    return [*before[-1:], *after][:MOST] if after else before[-2:]


def decided_by(source: Source, line: int) -> str:
    """Words about the argument that the branch at a line asks alone: a constant leaves one path of it."""
    arguments = {a.arg for a in ast.walk(source.node.args) if isinstance(a, ast.arg)}
    tests = (n.test for n in ast.walk(source.node) if isinstance(n, ast.If | ast.IfExp))
    for test in (t.operand if isinstance(t, ast.UnaryOp) else t for t in tests):
        if isinstance(test, ast.Name) and test.id in arguments and source.span(test).line == line:
            return f", or call it from a function that gives a constant for `{test.id}`"
    return ""


def _found(source: Source, name: str) -> list[tuple[Span, str]]:
    found = list[tuple[Span, str]]()
    a = source.node.args
    for argument in (*a.posonlyargs, *a.args, *a.kwonlyargs):
        if argument.arg == name:
            found.append((source.span(argument), f"`{name}` is an argument"))
    for node in ast.walk(source.node):
        if isinstance(node, ast.Return) and not name:
            found.append((source.span(node), "a result is returned here"))
        elif isinstance(node, Binding) and _binds(node, name):
            place = node.target if isinstance(node, ast.For) else node
            found.append((source.span(place), f"`{name}` is assigned here"))
    return found


def _binds(node: Binding, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = (part for target in targets for part in ast.walk(target))
    stored = [n for n in parts if isinstance(getattr(n, "ctx", None), ast.Store)]
    if "." in name:
        return name.rpartition(".")[2] in [n.attr for n in stored if isinstance(n, ast.Attribute)]
    return name in [n.id for n in stored if isinstance(n, ast.Name)]
