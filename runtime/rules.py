"""User rules: the adjoint of a function, written by hand as a function that mutad compiles.

`rule(f)` files a rule with the function it is of; the compiler asks for it where `f` is called
(`captures` guards compiled code against a rule that is filed or replaced later). `stop_gradient` is the
rule that everybody needs: nothing flows back.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .wrappers import plain

Names = tuple[str, ...]


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

    def decorate(adjoint: Callable[..., Any]) -> Any:
        of, code = plain(function), adjoint
        if type(code) is not types.FunctionType:
            raise TypeError(f"a rule is a Python function, not {type(adjoint).__name__}")
        made = Rule(of, code, _names(reads), _names(overwrites), _names(needs))
        _check(made)
        table, name = home(of)
        table[name] = made
        for one in list(compiled):
            one.forget()
        return adjoint

    if not callable(function):
        raise TypeError(f"rule() takes a function, not {type(function).__name__}")
    if not takes_rule(plain(function)):
        raise TypeError(
            f"{function!r} takes no rule: Python functions do, opaque ones, C functions of ctypes and cffi, "
            "and scipy.special.cython_special; put a function of your own around it"
        )
    return decorate if adjoint is None else decorate(adjoint)


def takes_rule(function: Any) -> bool:
    """True for what calls are lowered by way of a rule; not for what the library's entries lower."""
    from . import captures, foreign

    if foreign.is_foreign(function):
        return True
    return isinstance(function, types.FunctionType) and not captures.is_of_library(function)


def _names(given: str | Names | None) -> Names | None:
    if given is None:
        return None
    return (given,) if isinstance(given, str) else tuple(given)


def _check(made: Rule) -> None:
    """TypeError where the declarations name what is no parameter."""
    code, known = made.adjoint.__code__, made.parameters
    if code.co_flags & 0x0C or code.co_kwonlyargcount:
        raise TypeError("a rule names its parameters, all of them positional")
    for what in ("reads", "overwrites", "needs"):
        for name in getattr(made, what) or ():
            base, _, moment = name.partition(".")
            if base not in known or moment not in (("", "after") if what == "needs" else ("",)):
                raise TypeError(f"{what}={name!r}: the rule's parameters are {', '.join(known)}")


def stop_gradient(x: Any) -> Any:
    """`x` as a value through which nothing flows back; of an array a copy."""
    return np.copy(x) if isinstance(x, np.ndarray) else x


stop_gradient.__mutad__ = "stop_gradient"  # pyright: ignore[reportFunctionMemberAccess]
