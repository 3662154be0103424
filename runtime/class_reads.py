"""What the code of a class reads and is: its functions, its constants, its fields.

Compiled code inlines methods and reads class attributes, so both are watched (`captures`) and are part of
what is cached on disk (`fingerprint`).
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import wrappers

SIMPLE = (bool, int, float, str, tuple)
TABLES = (list, dict, set, np.ndarray)
"""What counts among the constants where a method reads it: others may be changed all the time."""
UNREAD = frozenset(
    {"__repr__", "__str__", "__format__", "__hash__", "__reduce__", "__reduce_ex__", "__replace__"}
    | {"__slotnames__", "__annotate_func__", "__annotations_cache__"}
)
"""Methods that no compiled code calls, and what pickling an object or asking for annotations leaves in its
class. (Python 3.14 writes these as a function, which reads the whole class.)"""
UNREAD_CONSTANTS = frozenset(
    {"__module__", "__qualname__", "__doc__", "__firstlineno__", "__static_attributes__"}
)
"""Attributes that no compiled code reads. (Python 3.13 writes the last in any order.)"""


def may_have_records(cls: type) -> bool:
    """False for classes of which the compiler makes no objects whatever it has: series of pandas.

    What such a class is used for (`isinstance`, static methods) reads nothing in its methods.
    """
    own = [vars(owner) for owner in cls.__mro__ if owner.__module__ not in ("builtins", "typing")]
    hidden = ("__setattr__", "__getattribute__", "__getattr__", "__delattr__", "__new__")
    if issubclass(cls, tuple | enum.Enum):
        hidden = hidden[:-1]
    raws = [{k: getattr(v, "__func__", v) for k, v in names.items()} for names in own]
    return not any(
        isinstance(names.get(name), types.FunctionType) and not is_generated(names[name])
        for names in raws
        for name in hidden
    )


def is_generated(function: types.FunctionType) -> bool:
    """True for what `dataclass` and `namedtuple` write. (Cells of IPython are `<ipython-...>`.)"""
    return function.__code__.co_filename.startswith(("<string>", "<frozen "))


def functions_of(raw: Any) -> tuple[types.FunctionType, ...]:
    """The Python functions that an attribute of a class stands for."""
    match raw:
        case types.FunctionType():
            return () if is_generated(raw) else (raw,)
        case staticmethod() | classmethod():
            return functions_of(raw.__func__)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        case functools.cached_property():
            return functions_of(raw.func)  # pyright: ignore[reportUnknownMemberType]
        case property():
            return (*functions_of(raw.fget), *functions_of(raw.fset))
        case _:
            wrapped = wrappers.wrapped_by(raw)
            return () if wrapped is None else (wrapped,)


def attributes_of(cls: type, is_fixed: Any) -> Iterator[tuple[type, str, Any]]:
    """The attributes that the program gives to a class and its bases: the class that has it, name, value."""
    for owner in cls.__mro__:
        if owner is object or is_fixed(owner):
            continue
        for name, raw in vars(owner).items():
            if name not in UNREAD:
                yield owner, name, raw


def constants_of(cls: type, is_fixed: Any) -> Iterator[tuple[type, str, Any]]:
    """The class attributes that are constants; defaults of fields are none."""
    if issubclass(cls, enum.Enum):
        return
    fields = {
        name
        for name, field in getattr(cls, "__dataclass_fields__", {}).items()
        if "CLASSVAR" not in repr(field._field_type)
    }
    for owner, name, raw in attributes_of(cls, is_fixed):
        if name.startswith("__") or name in fields:
            continue
        if isinstance(raw, SIMPLE) or (type(raw) in TABLES and name in names_read(cls, is_fixed)):
            yield owner, name, raw


def names_read(cls: type, is_fixed: Any) -> set[str]:
    """The names of attributes (and globals) that the methods of a class read."""
    raws = (raw for _, _, raw in attributes_of(cls, is_fixed))
    return {name for raw in raws for f in functions_of(raw) for name in f.__code__.co_names}


def factories_of(cls: type) -> Iterator[Any]:
    """What makes the defaults of fields."""
    for field in getattr(cls, "__dataclass_fields__", {}).values():
        if isinstance(field.default_factory, types.FunctionType):
            yield field.default_factory


def layout_of(cls: type) -> str:
    """Fields and their order, as text."""
    fields = getattr(cls, "__dataclass_fields__", None)
    if fields is not None:
        parts = [(f.name, f.init, f.kw_only, repr(f._field_type)) for f in fields.values()]
        return repr((parts, str(getattr(cls, "__dataclass_params__", ""))))
    return repr(getattr(cls, "_fields", ""))


def defaults_of(cls: type) -> Iterator[tuple[str, Any]]:
    """What fields hold where nothing is given, or what makes it; of an enum its members."""
    for f in getattr(cls, "__dataclass_fields__", {}).values():
        for value in (f.default, f.default_factory):
            if value is not dataclasses.MISSING:
                yield f.name, value
    yield from getattr(cls, "_field_defaults", {}).items()
    if issubclass(cls, enum.Enum):
        yield from ((name, member.value) for name, member in cls.__members__.items())
