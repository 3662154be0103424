"""`classmethod` above `compile`, where the class gets lost.

Until Python 3.12 `classmethod` asked the function how it binds, and got a method that knows the class in
every mode. Since 3.13 it makes a method of its own: `K.m(x)` is given the class, but for `K.m.grad` Python
asks the function alone. So that call would take its first argument for the class; TypeError says what to
write.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from inspect import getattr_static
from types import FunctionType
from typing import Any

ASKS_NOBODY = sys.version_info >= (3, 13)


def guarded(
    bind: Callable[..., tuple[Any, ...]], function: FunctionType, owner: Callable[[], Any]
) -> Callable[..., tuple[Any, ...]]:
    """`bind`, of a function in the body of a class: refused where it is a class method without a class.

    `owner` gives what was compiled of the function.
    """
    *outer, name = function.__qualname__.split(".")
    if not ASKS_NOBODY or not outer or outer[-1] == "<locals>":
        return bind
    known: bool | None = None

    def checked(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        nonlocal known
        first = getattr(args[0], "primal", args[0]) if args else None
        if not isinstance(first, type):
            known = is_class_method(owner()) if known is None else known
            if known:
                raise TypeError(
                    f"{function.__qualname__} is not told its class: since Python 3.13 `classmethod` above"
                    f" `compile` hands it to plain calls alone. Write @compile above @classmethod,"
                    f" or mutad.grad({outer[-1]}.{name})"
                )
        return bind(*args, **kwargs)

    return checked


def is_class_method(compiled: Any) -> bool:
    """Whether a `classmethod` holds this function: asked once, when the class is there."""
    found: Any = sys.modules.get(compiled.__module__)
    *outer, name = compiled.__qualname__.split(".")
    for part in outer:
        found = getattr(found, part, None)
    if isinstance(found, type):
        holders = [getattr_static(found, name, None)]
    else:  # the class is local to a function
        holders = gc.get_referrers(compiled)
    return any(type(one) is classmethod and one.__func__ is compiled for one in holders)
