"""Signatures of Python functions: how arguments are bound, what defaults there are, which are compiled."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any


def require_plain(function: FunctionType) -> None:
    """TypeError for a function of which no kind is compiled."""
    name, flags = function.__qualname__, function.__code__.co_flags
    if flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        raise TypeError(
            f"{name}: *args and **kwargs cannot be compiled: name the parameters, or compile a function that"
            f" calls it"
        )
    if flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise TypeError(
            f"{name} is a coroutine (`async def`), which cannot be compiled: compile a plain `def` of what"
            " it computes, and call that from the coroutine"
        )


def binder(function: FunctionType) -> Callable[..., tuple[Any, ...]]:
    """A function of the same signature that returns its arguments in order.

    Python itself then binds keywords and defaults, and words the errors.
    """
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names = [f"p{i}" for i in range(count)]
    shown = list(names)
    if code.co_kwonlyargcount:
        shown.insert(code.co_argcount, "*")
    if code.co_posonlyargcount:
        shown.insert(code.co_posonlyargcount, "/")
    source = f"def f({', '.join(shown)}): return ({''.join(n + ', ' for n in names)})"
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    made: FunctionType = namespace["f"]
    renamed = made.__code__.replace(
        co_varnames=code.co_varnames[:count], co_name=code.co_name, co_qualname=code.co_qualname
    )
    bind = FunctionType(renamed, {}, code.co_name, function.__defaults__)
    bind.__qualname__ = function.__qualname__
    bind.__kwdefaults__ = function.__kwdefaults__
    return bind


def defaults_of(function: FunctionType) -> tuple[Any, ...]:
    """All that a function has as defaults; not equal but identical where nobody has replaced any."""
    named = function.__kwdefaults__ or {}
    return (function.__defaults__, *named, *named.values())


def trailing_defaults(function: FunctionType) -> tuple[Any, ...]:
    """The default values of the last parameters in a row that have one."""
    code = function.__code__
    by_keyword = function.__kwdefaults__ or {}
    collected: list[Any] = []
    first = code.co_argcount
    for name in reversed(code.co_varnames[first : first + code.co_kwonlyargcount]):
        if name not in by_keyword:
            return tuple(reversed(collected))
        collected.append(by_keyword[name])
    return (*(function.__defaults__ or ()), *reversed(collected))
