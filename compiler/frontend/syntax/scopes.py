"""Whose name is it: what `nonlocal` and `global` say.

def f(x):                 of f: s, add, x; `rebound` by an inner function: s
    s = 0.0
    def add(v):           of add: v
        nonlocal s
        s += v
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from .trying import inner

Names = frozenset[str]


def declared(body: Iterable[ast.stmt], *kinds: type[ast.stmt]) -> Names:
    """The names that `nonlocal` (and `global`) statements of these name, those of nested functions apart."""
    wanted = kinds or (ast.Nonlocal, ast.Global)
    found = (s for s in inner(list(body)) if isinstance(s, wanted))
    return frozenset(name for s in found for name in s.names)  # pyright: ignore


def parameters(a: ast.arguments) -> Names:
    everything = [*a.posonlyargs, *a.args, *a.kwonlyargs, *([a.vararg] if a.vararg else [])]
    return frozenset(p.arg for p in everything) | ({a.kwarg.arg} if a.kwarg else frozenset())


def rebound_inside(body: Iterable[ast.stmt]) -> Names:
    """The names of the function around that functions nested in `body` rebind."""
    from .liveness import bound_by

    found = set[str]()
    for function in nested(body):
        own = parameters(function.args) | bound_by(function.body)
        found |= declared(function.body, ast.Nonlocal) | (rebound_inside(function.body) - own)
    return frozenset(found)


def nested(body: Iterable[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """The functions defined by these statements, those inside of them apart."""
    return (s for s in inner(list(body)) if isinstance(s, ast.FunctionDef))
