"""Callables that do nothing but run one Python function: a call of such a one compiles the function along.

These are compiled functions, `functools.lru_cache`, and what numba's `jit` and `njit` make. numba's
are recognised by what they have (`py_func`, `targetoptions`); nothing imports numba. Any other object with
`__wrapped__` may do more than call what it wraps (numba's `vectorize` loops over arrays and converts, a
class of the program may do anything), and is not looked through.
"""

from __future__ import annotations

import functools
import types
from typing import Any

_Cached: Any = functools._lru_cache_wrapper  # pyright: ignore[reportPrivateUsage]

FAST = {"nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"}
"""What `fastmath` allows, by LLVM's names."""


def wrapped_by(value: Any) -> types.FunctionType | None:
    """The Python function that a call of `value` comes down to; None where it does more, or is none."""
    if isinstance(value, type | types.FunctionType | types.ModuleType):
        return None  # a decorator's own code is what runs
    if isinstance(value, _Cached) or hasattr(type(value), "has_gradient"):
        wrapped: Any = getattr(value, "__wrapped__", None)
    else:
        wrapped = getattr(value, "py_func", None) if is_jitted(value) else None
    return wrapped if isinstance(wrapped, types.FunctionType) else None


def plain(function: Any) -> Any:
    """The Python function behind a callable that only runs it; anything else as it is."""
    return wrapped_by(function) or function


def is_jitted(value: Any) -> bool:
    """True for what numba's `jit` makes."""
    return isinstance(getattr(value, "targetoptions", None), dict) and isinstance(
        getattr(value, "py_func", None), types.FunctionType
    )


def options_of(function: Any) -> dict[str, Any]:
    """The options of a function of numba's that `compile` has as well; none of anything else.

    `fastmath` with some of LLVM's flags allows less than ours, and counts as False. `boundscheck` that is
    left out is ours, not numba's.
    """
    if not is_jitted(function):
        return {}
    given: dict[str, Any] = function.targetoptions
    fast, checks = given.get("fastmath"), given.get("boundscheck")
    flags: set[str] = set() if isinstance(fast, bool | None) else {*fast}
    options = {"fastmath": fast is True or "fast" in flags or flags >= FAST}
    options["parallel"] = bool(given.get("parallel"))
    return options if checks is None else {**options, "boundscheck": bool(checks)}
