"""Context managers as values: what they are, `with` has to know (`syntax.managers`).

np.errstate(...), nullcontext(v)     do nothing; what they bind
suppress(ValueError)                 the classes that it suppresses
scaled(x, 2.0)                       of `contextlib.contextmanager`: its generator
"""

from __future__ import annotations

import ast
import contextlib
import warnings
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.classes import method_of
from ..frames import LocalFunction
from ..syntax import managers
from ..syntax.generator_loops import place_of
from ..values import NoneValue, Record, Static, Struct, Value
from .generator_values import is_generator, pending, pending_of
from .recursion import Again

if TYPE_CHECKING:
    from .calls import Calls

FILTERS = (warnings.simplefilter, warnings.filterwarnings, warnings.resetwarnings)


@dataclass(frozen=True, eq=False)
class Nothing:
    """A manager that does nothing, and what `with` of it binds."""

    value: Value


@dataclass(frozen=True, eq=False)
class Suppressing:
    """`contextlib.suppress(...)`."""

    classes: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Managed:
    """A nested generator function that `contextlib.contextmanager` decorates."""

    function: LocalFunction


def call(
    lowering: Calls, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.Call
) -> Value | None:
    """Lower a call that makes a manager, or enters one; None for any other."""
    callee = function.object if isinstance(function, Static) else None
    if callee is managers.enter:
        return entered(lowering, args[0], node.args[0])
    if callee is np.errstate or callee is warnings.catch_warnings:
        require_harmless(lowering, args, kwargs, node)
        return Static(Nothing(NoneValue()))
    if isinstance(callee, FunctionType) and callee in FILTERS:
        require_harmless(lowering, args[:1], {}, node)
        return NoneValue()
    if callee is contextlib.nullcontext and len(args) + len(kwargs) <= 1:
        given = [*args, *kwargs.values()]
        return Static(Nothing(given[0] if given else NoneValue()))
    if callee is contextlib.suppress and not kwargs:
        return Static(Suppressing(tuple(args)))
    if callee is contextlib.contextmanager and len(args) == 1:
        return made(lowering, args[0], node)
    if isinstance(callee, Managed):
        return pending(lowering, callee.function, args, kwargs)
    generator = generator_of(callee)
    return None if generator is None else pending(lowering, generator, args, kwargs)


def generator_of(callee: object) -> FunctionType | None:
    """The generator function that `contextlib.contextmanager` has decorated."""
    if not isinstance(callee, FunctionType) or callee.__code__ is not DECORATED.__code__:
        return None
    return getattr(callee, "__wrapped__", None)


@contextlib.contextmanager
def DECORATED() -> Any:
    yield


def made(lowering: Calls, function: Value, node: ast.Call) -> Value:
    """`contextmanager` of a function that is nested, or is found outside."""
    found = function.object if isinstance(function, Static) else None
    if isinstance(found, LocalFunction) and is_generator(found):
        return Static(Managed(found))
    if isinstance(found, FunctionType) and is_generator(found):
        return Static(contextlib.contextmanager(found))
    raise lowering.refusal(node, "contextmanager of a function that is no generator")


def entered(lowering: Calls, manager: Value, node: ast.expr) -> Value:
    """What `with` binds. Where the manager has something to do, the next build has a `try` there."""
    found = manager.object if isinstance(manager, Static) else None
    if isinstance(found, Nothing):
        return found.value
    kind, function = None, None
    if isinstance(found, Suppressing):
        kind = managers.SUPPRESSING
    elif (generator := pending_of(manager)) is not None:
        kind, function = managers.GENERATOR, generator.function
    elif isinstance(manager, Record | Struct):
        missing = [n for n in ("__enter__", "__exit__") if method_of(manager, n) is None]
        if missing:
            raise lowering.refusal(
                node, f"{manager.cls.__name__!r} object is no context manager: no `{missing[0]}`"
            )
        kind, function = managers.OBJECT, method_of(manager, "__exit__")
    own = tree_of(lowering, function)
    if kind is not None and own is not None and managers.hands_on(own, kind):
        kind += managers.HANDING_ON
    if kind is not None and lowering.facts.learn_manager(
        place_of(node, lowering.frame.source.file), kind
    ):
        raise Again
    raise lowering.refusal(
        node,
        "this context manager is not compiled",
        "use it outside the function, or write a class with `__enter__` and `__exit__`, or a generator"
        " with contextlib.contextmanager",
    )


def tree_of(lowering: Calls, function: Any) -> ast.AST | None:
    """The syntax tree of a function of the program."""
    if isinstance(function, LocalFunction):
        return function.node
    if isinstance(function, FunctionType):
        return lowering.function_parts(function)[0].node
    return None


def require_harmless(
    lowering: Calls, args: list[Value], kwargs: dict[str, Value], node: ast.Call
) -> None:
    """Refuse what turns warnings, of which compiled code gives none, into exceptions."""
    nodes = [*node.args, *(k.value for k in node.keywords)]
    for value, at in zip((*args, *kwargs.values()), nodes, strict=False):
        known = value.object if isinstance(value, Static) else None
        if known not in ("ignore", "warn", "default", "always", "module", "once"):
            raise lowering.refusal(
                at,
                'this is compiled with "ignore", "warn" and the like, which change no value',
                "test for the condition, or use it outside the function",
            )
