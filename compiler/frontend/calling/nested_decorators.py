"""Decorators of nested functions: `@d` above `def f` is `f = d(f)`, d evaluated first."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, Any

from ..values import Static, Value

if TYPE_CHECKING:
    from ..statements import Statements

REMEMBERING: tuple[Any, ...] = (functools.lru_cache, functools.cache)


def decorated(lowering: Statements, s: ast.FunctionDef) -> Value:
    """What the name of a nested function is bound to."""
    decorators = [(node, lowering.expression(node)) for node in s.decorator_list]
    value = lowering.local_function(s)
    for node, decorator in reversed(decorators):
        if isinstance(decorator, Static) and decorator.object in REMEMBERING:
            raise lowering.refusal(
                node, "a nested function that remembers its results is not compiled",
                "define it outside, or keep the results in an array",
            )  # fmt: skip
        value = lowering.call(decorator, [value], {}, call_of(lowering, node))
    return value


def call_of(lowering: Statements, node: ast.expr) -> ast.Call:
    """The call that a decorator stands for, the same in every build."""
    place = lowering.frame.source.span(node), "decorator"
    known = lowering.facts.implied
    if place not in known:
        made = ast.Call(ast.Constant(None), [], [])
        known[place] = ast.fix_missing_locations(ast.copy_location(made, node))
    return known[place]
