"""`mutad.opaque`: functions that CPython runs when compiled code calls them, with rules of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from . import rules
from .foreign import RESULTS, OpaqueFunction
from .user_tracebacks import concise

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
else:
    from typing import ParamSpec, TypeVar

    P, R = ParamSpec("P"), TypeVar("R")


class Opaque(OpaqueFunction[P, R]):
    """A Python function that compiled code calls and does not look into."""

    def rule(self, adjoint: Callable[..., Any] | None = None, /, **declared: Any) -> Any:
        """`mutad.rule` of this function: a decorator, with or without declarations."""
        return rules.rule(self, adjoint, **declared)

    def tangent_rule(self, tangent: Callable[..., Any] | None = None, /) -> Any:
        """`mutad.tangent_rule` of this function: a decorator."""
        return rules.tangent_rule(self, tangent)


@overload
def opaque(function: Callable[P, R], /) -> Opaque[P, R]: ...
@overload
def opaque(*, returns: Any = ...) -> Callable[[Callable[P, R]], Opaque[P, R]]: ...
@concise
def opaque(function: Callable[..., Any] | None = None, /, *, returns: Any = ...) -> Any:
    """Let CPython run a function that compiled code calls: a decorator, with or without `returns`.

    returns: `float`, `int`, `bool`, a NumPy scalar type, or None; by default what the function's annotation
    says, else None. A result of another type raises TypeError.
    """

    @concise
    def decorate(function: Callable[..., Any]) -> Opaque:
        kind = returns
        if kind is ...:
            kind = getattr(function, "__annotations__", {}).get("return")
        if isinstance(kind, str):
            kind = {t.__name__: t for t in RESULTS}.get(kind.removeprefix("np."), kind)
        if kind == "None" or kind is type(None):
            kind = None
        if kind is not None and kind not in RESULTS:
            known = ", ".join(t.__name__ for t in RESULTS)
            raise TypeError(f"returns={kind!r}: an opaque function returns None or one of {known}")
        return Opaque(function, kind)

    if function is not None and not callable(function):
        raise TypeError(f"opaque() takes a function, not {type(function).__name__}")
    return decorate if function is None else decorate(function)
