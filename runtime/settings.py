"""Objects that a function finds outside: settings, models, namespaces of a module.

    CONFIG = Config(rate=0.1, steps=10)        CONFIG.rate     an input, as a global float is
                                               CONFIG.steps    a constant that is watched

Each attribute that the code may read (some function that is compiled along has its name) is a place of its
own, the object its holder: it is read at each call, and nothing goes stale. Which of them there are is
watched as well. The objects themselves are only read by compiled code.
"""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Iterator, Set
from typing import Any

import numpy as np

from . import foreign, keys
from .library_code import is_own_fixed

Found = tuple[Any, str, str, Any]
"""A place (holder, name, path), and what is there."""

_NAMES: dict[tuple[str, ...], tuple[str, ...]] = {}
"""Tuples of names by themselves: equal ones are one object."""

_OTHERS = (
    type, types.ModuleType, types.FunctionType, types.MethodType, BaseException, enum.Enum, str, bytes,
    int, float, complex, tuple, list, dict, set, frozenset, np.ndarray, np.generic,
)  # fmt: skip


class Names:
    """Holds the place of the names of an object's attributes."""

    __slots__ = ("key", "of", "read")

    def __init__(self, of: Any, read: Set[str]) -> None:
        self.key = id(of)
        self.of, self.read = of, frozenset(read)

    @property
    def names(self) -> tuple[str, ...]:
        """Those that the code may read; the same object as long as they are the same."""
        return names_of(self.of, self.read)


def names_of(value: Any, read: Set[str]) -> tuple[str, ...]:
    names = tuple(name for name in vars(value) if name in read)
    return _NAMES.setdefault(names, names)


def is_settings(value: Any) -> bool:
    """True for an object with attributes, of a class of the program or a namespace."""
    kind = type(value)
    if kind is types.SimpleNamespace:
        return True
    if isinstance(value, _OTHERS) or not kind.__dictoffset__:
        return False
    if kind.__module__.partition(".")[0] in ("mutad", "numba", *keys.FRAMEWORKS):
        return False
    another = keys.array_of_another(kind) is not None
    return not (another or is_own_fixed(kind) or foreign.is_foreign(value))


def attributes(value: Any, path: str, read: Set[str]) -> Iterator[Found]:
    """The places of an object's attributes, and of their names."""
    names = names_of(value, read)
    yield Names(value, read), "names", f"{path}.__dict__", names
    for name in names:
        yield value, sys.intern(name), f"{path}.{name}", getattr(value, name)


def names_in(code: types.CodeType) -> Iterator[str]:
    """The names of attributes that code may read; also those that it has as strings."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)
        elif isinstance(constant, str) and constant.isidentifier():
            yield constant
