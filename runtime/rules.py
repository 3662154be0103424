"""User rules: the adjoint of a function, written by hand as a function that mutad compiles.

`rule(f)` files a rule with the function it is of; the compiler asks for it where `f` is called
(`captures` guards compiled code against a rule that is filed or replaced later). `stop_gradient` is the
rule that everybody needs: nothing flows back.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, overload

import numpy as np

from .foreign import is_foreign
from .library_code import is_of_library
from .user_tracebacks import concise
from .wrappers import plain

Names = tuple[str, ...]


F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Rule:
    """The adjoint of `function`, and what is declared of the function.

    Names are those of the adjoint's parameters, which stand for the function's arguments in order; one
    more stands for the result. None: not declared.
    """

    function: Any
    adjoint: Any
    """A Python function. (A field declared as one would look like a method to type checkers.)"""
    reads: Names | None
    overwrites: Names | None
    needs: Names | None
    tangent: Any = None
    """A Python function, where there is one (`tangent_rule`)."""

    @property
    def parameters(self) -> Names:
        """The names of the adjoint's parameters."""
        return parameters_of(self.adjoint)


ATTRIBUTE = "__mutad_rule__"
REGISTRY: dict[str, Rule] = {}
"""The rules of functions without attributes, by their identity. (They keep the functions alive, so none is
used twice.)"""


class Forgetful(Protocol):
    def forget(self) -> None:
        """Compile anew at the next call."""


compiled: weakref.WeakSet[Any] = weakref.WeakSet()
"""Every compiled function: what a new rule makes stale."""


def home(function: Any) -> tuple[dict[str, Any], str]:
    """Where the rule of a function is: among its attributes, and gone with it, where it has any."""
    function = plain(function)
    own = getattr(function, "__dict__", None)
    if type(own) is dict:
        return own, ATTRIBUTE  # pyright: ignore[reportUnknownVariableType]
    return REGISTRY, f"{id(function):x}"


def rule_of(function: Any) -> Rule | None:
    """The rule of a function, compiled or not."""
    table, name = home(function)
    found = table.get(name)
    return found if found is not None and found.function is plain(function) else None  # not copied


def parameters_of(function: types.FunctionType) -> Names:
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


@overload
def rule(
    function: Callable[..., Any],
    adjoint: F,
    *,
    reads: str | Names | None = None,
    overwrites: str | Names | None = None,
    needs: str | Names | None = None,
) -> F: ...
@overload
def rule(
    function: Callable[..., Any],
    *,
    reads: str | Names | None = None,
    overwrites: str | Names | None = None,
    needs: str | Names | None = None,
) -> Callable[[F], F]: ...
@overload
def rule(
    function: Callable[..., Any], adjoint: Callable[..., Any] | None = None, **declared: Any
) -> Any: ...
@concise
def rule(
    function: Callable[..., Any],
    adjoint: Callable[..., Any] | None = None,
    *,
    reads: str | Names | None = None,
    overwrites: str | Names | None = None,
    needs: str | Names | None = None,
) -> Any:
    """Give a function its adjoint: `@rule(f, overwrites="y", needs=("a", "x"))` above `def f_rule(a, x, y)`.

    The adjoint has a parameter for each argument of `function`, and one more for its result if it returns
    something. `x.value` is what the argument held before the call, `x.after` what an array holds after it,
    `x.shadow` an array's shadow, `a.cotangent` the cotangent of a float. It updates shadows in place, adds
    to cotangents, and returns nothing.

    reads: the arrays that the function reads (by default all).
    overwrites: the arrays that it stores to (by default none; of a compiled function, those that it does).
    needs: what the adjoint reads of the primal: "x" for `x.value`, "x.after" (by default what it reads).
    """

    @concise
    def decorate(adjoint: Callable[..., Any]) -> Any:
        of, code = plain(function), adjoint
        if type(code) is not types.FunctionType:
            raise TypeError(f"a rule is a Python function, not {type(adjoint).__name__}")
        made = Rule(of, code, _names(reads), _names(overwrites), _names(needs))
        _check(made)
        file(made)
        return adjoint

    if not callable(function):
        raise TypeError(f"rule() takes a function, not {type(function).__name__}")
    if not takes_rule(plain(function)):
        raise TypeError(
            f"{function!r} takes no rule: Python functions do, opaque ones, C functions of ctypes and cffi, "
            "and scipy.special.cython_special; put a function of your own around it"
        )
    return decorate if adjoint is None else decorate(adjoint)


def file(made: Rule) -> None:
    """Let a function have this rule, from the next call on."""
    table, name = home(made.function)
    table[name] = made
    for one in list(compiled):
        one.forget()


@overload
def tangent_rule(function: Callable[..., Any], tangent: F) -> F: ...
@overload
def tangent_rule(function: Callable[..., Any]) -> Callable[[F], F]: ...
@overload
def tangent_rule(function: Callable[..., Any], tangent: Callable[..., Any] | None) -> Any: ...
@concise
def tangent_rule(function: Callable[..., Any], tangent: Callable[..., Any] | None = None) -> Any:
    """Give a function that has a rule its tangent: `@tangent_rule(f)` above `def f_tangent(a, x, y)`.

    The tangent has the parameters of the adjoint. `x.value` and `x.after` are what they are there; what
    `x.tangent` holds is to be read, and of the result to be given. The tangent of an array that the function
    overwrites is changed in place: on entry it is that of what the array held before the call, on exit of
    what it holds after it. That of a result is 0 on entry, and is added to or, of an array, stored to.
    """

    @concise
    def decorate(tangent: Callable[..., Any]) -> Any:
        found = rule_of(function)
        if found is None:
            raise TypeError(
                f"{getattr(function, '__name__', repr(function))} has no rule: give it one with mutad.rule, "
                "then its tangent"
            )
        if type(tangent) is not types.FunctionType:
            raise TypeError(f"a rule is a Python function, not {type(tangent).__name__}")
        _check_parameters(tangent)
        if len(parameters_of(tangent)) != len(found.parameters):
            raise TypeError(
                f"the tangent rule has {len(parameters_of(tangent))} parameters, and the rule "
                f"{len(found.parameters)}: they have the same"
            )
        file(replace(found, tangent=tangent))
        return tangent

    return decorate if tangent is None else decorate(tangent)


def takes_rule(function: Any) -> bool:
    """True for what calls are lowered by way of a rule; not for what the library's entries lower."""
    if is_foreign(function):
        return True
    return isinstance(function, types.FunctionType) and not is_of_library(function)


def _names(given: str | Names | None) -> Names | None:
    if given is None:
        return None
    return (given,) if isinstance(given, str) else tuple(given)


def _check(made: Rule) -> None:
    """TypeError where the declarations name what is no parameter."""
    known = made.parameters
    _check_parameters(made.adjoint)
    for what in ("reads", "overwrites", "needs"):
        for name in getattr(made, what) or ():
            base, _, moment = name.partition(".")
            if base not in known or moment not in (("", "after") if what == "needs" else ("",)):
                raise TypeError(f"{what}={name!r}: the rule's parameters are {', '.join(known)}")


def _check_parameters(rule: types.FunctionType) -> None:
    code = rule.__code__
    if code.co_flags & 0x0C or code.co_kwonlyargcount:
        raise TypeError("a rule names its parameters, all of them positional")


def stop_gradient(x: Any) -> Any:
    """`x`, with derivative 0; an array is copied."""
    return np.copy(x) if isinstance(x, np.ndarray) else x


stop_gradient.__mutad__ = "stop_gradient"  # pyright: ignore[reportFunctionMemberAccess]
