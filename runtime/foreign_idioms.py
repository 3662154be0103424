"""Words that users bring along from other systems, and what is said where one is asked for here."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

WRT = "name parameters by wrt=, as in wrt=0 or wrt=('u', 'k')"
KINDS = "leave it out: code is made for each kind of arguments, and for each text and function among them"
SIGNATURES = "leave signatures out, code is made at the first call with each kind of arguments"
NO_PYTHON = "leave it out: what is not compiled is refused"
IN_PLACE = "leave it out: arrays are updated in place where the program says so"
ONE_FLOAT = "store what else is computed to an array that is passed, or take vjp or jacobian"

OPTIONS = {
    "argnums": WRT,
    "argnum": WRT,
    "has_aux": ONE_FLOAT,
    "static_argnums": KINDS,
    "static_argnames": KINDS,
    "donate_argnums": IN_PLACE,
    "donate_argnames": IN_PLACE,
    "nopython": NO_PYTHON,
    "forceobj": NO_PYTHON,
    "fullgraph": NO_PYTHON,
    "dynamic": KINDS,
    "create_graph": "second derivatives are hvp and hessian",
    "device": "a function runs where its arguments are: pass arrays of mutad.device_array",
    "backend": "a function runs where its arguments are: pass arrays of mutad.device_array",
    "out_axes": "results are stacked along a first axis: move it with np.moveaxis",
    "in_dims": "it is in_axes=, as in in_axes=0 or in_axes=(0, None)",
    "out_dims": "results are stacked along a first axis: move it with np.moveaxis",
    "axis_size": "leave it out: the arguments say how many items there are",
    "holomorphic": "complex numbers are not compiled: take real and imaginary parts",
}
"""By the name of an argument that functions of other systems have, what to do here."""

NAMES = {
    "jit": "mutad.compile",
    "njit": "mutad.compile",
    "vmap": "mutad.batch",
    "jacfwd": 'mutad.jacobian, whose mode="forward" that is',
    "jacrev": 'mutad.jacobian, whose mode="reverse" that is',
    "checkpoint": "mutad.compile(grad=True, memory=...)",
    "remat": "mutad.compile(grad=True, memory=...)",
    "custom_vjp": "mutad.rule",
    "custom_jvp": "mutad.tangent_rule",
    "detach": "mutad.stop_gradient",
    "check_grads": "mutad.check_gradient",
    "gradcheck": "mutad.check_gradient",
}
"""By the name of a function of other systems, what it is here."""


ATTRIBUTES = {
    "vmap": "mutad.batch(f)",
    "batch": "mutad.batch(f)",
    "backward": "f.grad(...), or out, back = f.vjp(...)",
    "jacfwd": 'f.jacobian(..., mode="forward")',
    "jacrev": 'f.jacobian(..., mode="reverse")',
    "check_gradient": "mutad.check_gradient(f, ...)",
    "py_func": "f.__wrapped__",
    "lower": "f.inspect(stage)",
    "inspect_llvm": 'f.inspect("llvm")',
    "inspect_asm": 'f.inspect("assembly")',
}
"""By the name of an attribute that compiled functions of other systems have, what it is here."""


def no_function(value: Any) -> str:
    """What a value is that is no Python function, and what to compile instead."""
    kind = type(value).__name__
    home = str(getattr(value, "__module__", None) or kind).partition(".")[0]
    if isinstance(value, str | list | tuple) or (home, kind) == ("numba", "Signature"):
        return f"{kind}: {SIGNATURES}"
    if isinstance(value, property | functools.cached_property):
        return f"{kind}: put @{kind} above @compile"
    if isinstance(value, type):
        return (
            f"the class {value.__name__}: decorate its methods, or write a function that calls it"
        )
    called = next((vars(c)["__call__"] for c in type(value).__mro__ if "__call__" in vars(c)), None)
    if isinstance(called, types.FunctionType) and not hasattr(value, "__name__"):
        return f"an object of class {kind}: compile its method, compile(x.__call__)"
    if hasattr(value, "__wrapped__") and home not in ("numpy", "scipy"):
        return f"{kind}: compile {value.__name__}.__wrapped__"
    name = getattr(value, "__name__", kind)
    return f"{home}.{name}: write a function that calls it" if callable(value) else kind


def refuse_options(name: str, given: Iterable[str]) -> None:
    """TypeError for arguments that a function does not have, in CPython's words, and what to do."""
    for option in given:
        advice = f": {OPTIONS[option]}" if option in OPTIONS else ""
        raise TypeError(f"{name}() got an unexpected keyword argument {option!r}{advice}")


def refuse_arguments(name: str, others: tuple[Any, ...], wrt: Any = 0) -> None:
    """TypeError where `mutad.vjp(f, x)` is asked for: what it returns takes the arguments."""
    several: Iterable[Any] = wrt if isinstance(wrt, tuple | list) else (wrt,)
    given = (*others, *[one for one in several if type(one) not in (str, int)])
    if given:
        parameters = "" if name == "jvp" else " and names or positions of its parameters"
        raise TypeError(
            f"{name}() takes a function{parameters}, not {type(given[0]).__name__}: "
            f"call what it returns, as in {EXAMPLES.get(name, f'mutad.{name}(f)(x)')}"
        )


EXAMPLES = {
    "jvp": 'mutad.jvp(f)(x, tangents={"x": dx})',
    "hvp": "mutad.hvp(f)(x, direction=v)",
    "vjp": "out, back = mutad.vjp(f)(x)",
}


def needing(option: str, example: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Of a method: a TypeError for an option that is not given, in CPython's words, shows how to give it."""

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if option not in kwargs:
                missing = f"missing 1 required keyword-only argument: {option!r}"
                raise TypeError(f"{method.__name__}() {missing}, as in {example}")
            return method(*args, **kwargs)

        return call

    return decorate


needs_tangents = needing("tangents", 'f.jvp(u, k, tangents={"u": du, "k": 1.0})')
needs_direction = needing("direction", "f.hvp(u, direction=v)")


def answering(
    bind: Callable[..., tuple[Any, ...]], parameters: tuple[str, ...], name: str
) -> Callable[..., tuple[Any, ...]]:
    """`bind`, whose error about an argument that it does not know says what to do."""

    def answered(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        try:
            return bind(*args, **kwargs)
        except TypeError as error:
            refuse_options(name, (k for k in kwargs if k in OPTIONS and k not in parameters))
            raise error.with_traceback(None) from None

    return answered
