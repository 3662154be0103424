"""Returns moved to the tail: every path through a function's body ends in one `return`.

What follows an `if` that returns belongs to the branches that do not::

    if n == 0:                  if n == 0:
        return 0.0                  return 0.0
    s = f(n)                    else:
    return s                        s = f(n)
                                    return s

Returns inside loops have been brought there before (`exits`), and before that `match` and `with` are
gone (`matching`, `managers`).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

from . import exits, generator_loops, managers, matching, trying, walrus
from .generator_loops import Place
from .source import FunctionNode, Source


def function_body(
    node: FunctionNode,
    source: Source,
    generators: Set[Place] = frozenset(),
    contexts: Mapping[Place, str] = MappingProxyType({}),
) -> list[ast.stmt]:
    """The statements of a function, docstring dropped, each path ending in `return` or `raise`.

    The calls at `generators` are of generator functions, the managers at `contexts` are of these kinds.
    """
    if isinstance(node, ast.Lambda):
        return [ast.copy_location(ast.Return(node.body), node.body)]
    statements = list(node.body)
    if is_docstring(statements[0]):
        statements = statements[1:]
    statements = walrus.rewritten(statements)
    statements = managers.rewritten(statements, source.file, contexts)
    statements = generator_loops.rewritten(statements, source.file, generators)
    return tail(exits.structured(matching.plain(statements, source)), node)


def is_docstring(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(ast.Constant(str())):
            return True
        case _:
            return False


def tail(statements: Sequence[ast.stmt], function: ast.stmt) -> list[ast.stmt]:
    """`statements` with what follows a returning `if` moved into it, and `return None` at open ends."""
    for k, statement in enumerate(statements):
        if isinstance(statement, ast.Return | ast.Raise):
            return list(statements[: k + 1])
        if isinstance(statement, ast.Try) and has_return(statement):
            rest, through = statements[k + 1 :], trying.goes_through(statement)
            made = [
                tail([*arm, *rest] if t else arm, function)
                for arm, t in zip(trying.arms_of(statement), through, strict=True)
            ]
            return [*statements[:k], trying.remade(statement, statement.body, made)]
        if isinstance(statement, ast.If) and has_return(statement):
            rest = statements[k + 1 :]
            arms = [
                tail(arm if trying.ends(arm) else [*arm, *rest], function)
                for arm in (statement.body, statement.orelse)
            ]
            return [
                *statements[:k],
                ast.copy_location(ast.If(statement.test, arms[0], arms[1]), statement),
            ]
    last = statements[-1] if statements else function
    end = ast.Return(None)
    end.lineno = end.end_lineno = last.lineno
    end.col_offset, end.end_col_offset = last.col_offset, last.end_col_offset
    if isinstance(last, ast.FunctionDef):
        end.end_lineno = last.lineno
    return [*statements, end]


def returns(statement: ast.stmt) -> list[ast.Return]:
    """The return statements inside, those of nested functions apart."""
    if isinstance(statement, ast.Return):
        return [statement]
    if isinstance(statement, ast.FunctionDef):
        return []
    return [found for child in trying.children(statement) for found in returns(child)]


def has_return(statement: ast.stmt) -> bool:
    return bool(returns(statement))
