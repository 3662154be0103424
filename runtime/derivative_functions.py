"""Functions that are derivatives of compiled ones: `grad(f)` and its like."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .dispatch import Dispatcher
from .link import Link
from .user_tracebacks import with_concise_methods

if TYPE_CHECKING:
    from .function import CompiledFunction


@with_concise_methods
class Derivative:
    """What `grad(f, wrt)` and its like return; of `jvp(f)`, where tangents have names, `wrt` is None."""

    __slots__ = ("_wrt", "function", "kind")

    def __init__(self, kind: str, function: CompiledFunction, wrt: Any) -> None:
        self.kind, self.function, self._wrt = kind, function, wrt

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        chosen = {} if self._wrt is None else {"wrt": self._wrt}
        return getattr(self.function, self.kind)(*args, **chosen, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        chosen = "" if self._wrt is None else f" with respect to {self._wrt!r}"
        return f"<{self.kind} of {self.function.__qualname__}{chosen}>"

    def __reduce__(self) -> Any:
        return Derivative, (self.kind, self.function, self._wrt)


def derivative_of(function: Any) -> tuple[str, str] | None:
    """Kind and function of a derivative: of `grad(f)`, and of `f.grad`; None of anything else."""
    if isinstance(function, Derivative):
        return function.kind, function.function.__qualname__
    owner = getattr(function, "__self__", None)
    owner = owner.owner if isinstance(owner, Link) else owner
    name = getattr(function, "__name__", None)
    dispatcher = getattr(owner, "dispatcher", None)
    if isinstance(dispatcher, Dispatcher) and isinstance(name, str):
        return name, dispatcher.function.__qualname__
    return None


CALLED_INSIDE = ("grad", "value_and_grad", "jvp", "hvp")
"""The derivatives that compiled code may ask for."""


def derived(kind: str, name: str, instead: str = "") -> str:
    """Why a derivative is not compiled, mapped or differentiated, and what to do."""
    second = "the second derivatives of f are mutad.hvp(f) and mutad.hessian(f)"
    inside = f"; a function that calls f.{kind} has derivatives of every order"
    instead = f"{instead}; " if instead else ""
    inside = inside if kind in CALLED_INSIDE else ""
    return f"{kind} of {name} is a derivative: {instead}{second}{inside}"
