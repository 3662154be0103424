"""What is known of the classes of objects while compiling: methods, kinds, why some are refused."""

from __future__ import annotations

import abc
import enum
from types import FunctionType
from typing import Any

from .. import choices
from ..values import (
    NUMPY_DTYPE,
    Array,
    Choice,
    NoneValue,
    Record,
    Scalar,
    Static,
    Struct,
    Tuple,
    Value,
)
from .fields import is_object


def found_in(cls: type, name: str) -> tuple[type, Any] | None:
    """The class, of a class and its bases, that has a name, and what it has there."""
    for owner in cls.__mro__:
        if name in vars(owner):
            return owner, vars(owner)[name]
    return None


def plain_function(value: Any) -> Any:
    """The Python function that a method is, compiled or not; None where it is none."""
    if isinstance(value, FunctionType):
        return value
    wrapped = getattr(value, "__wrapped__", None)
    home = type(value).__module__.partition(".")[0]  # others may do more than call what they wrap
    runs_it = home in ("functools", "mutad") or hasattr(value, "py_func")
    return wrapped if isinstance(wrapped, FunctionType) and runs_it else None


def method_of(value: Value, name: str) -> Any:
    """The Python function that an object's class has under a name."""
    if not is_object(value):
        return None
    found = found_in(class_of_receiver(value), name)
    return None if found is None else plain_function(found[1])


def class_of_receiver(value: Value) -> type:
    match value:
        case Record() | Struct():
            return value.cls
        case Tuple(_, type() as cls):
            return cls
        case Static(type() as cls):
            return cls
        case Static(found):
            return type(found)
        case _:
            raise AssertionError("no object")


def described(value: Value) -> str:
    """An object in words."""
    match value:
        case Record():
            return f"`{value.name}`, a {value.cls.__name__}"
        case Struct(cls=cls) | Tuple(cls=type() as cls):
            return f"a {cls.__name__}"
        case Scalar():
            return "a number"
        case Array():
            return "an array"
        case NoneValue():
            return "None"
        case Static(found):
            return repr(found)
        case _:
            return "something else"


def class_name(value: Array | Scalar) -> str:
    """The name of the value's class, as messages of Python's have it."""
    if isinstance(value, Array):
        return "numpy.ndarray"
    python = {"py_bool": "bool", "py_int": "int", "py_float": "float"}
    return python.get(value.type) or f"numpy.{NUMPY_DTYPE[value.type].type.__name__}"


def may_be_none(value: Value) -> bool:
    return isinstance(value, NoneValue) or (isinstance(value, Choice) and choices.has_none(value))


def is_another_kind(value: Value) -> bool:
    """True for what is equal to no object whose class does not say so."""
    python = isinstance(value, Scalar) and value.type.startswith("py_")
    return python or isinstance(value, NoneValue | Static | Tuple)


def is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def refuse_class(cls: type) -> str | None:
    """Why instances of a class are not compiled; None where they are."""
    for owner in cls.__mro__:
        names = vars(owner)
        if owner in (object, tuple) or is_generated(owner):
            continue
        for name in ("__setattr__", "__getattribute__", "__getattr__", "__delattr__"):
            if name in names and not is_generated_function(names[name]):
                return f"its class defines {name}"
        if "__new__" in names and not is_named_tuple(cls):
            return "its class defines __new__"
        if not issubclass(cls, tuple) and owner.__module__ == "builtins":
            return f"it is a {owner.__name__}"
    if type(cls) not in (type, abc.ABCMeta, enum.EnumMeta) and not issubclass(
        type(cls), abc.ABCMeta
    ):
        return "its class has a metaclass"
    return None


def is_generated(owner: type) -> bool:
    return owner.__module__ in ("typing", "abc", "enum")


def is_generated_function(function: Any) -> bool:
    """True for what `dataclass` and `namedtuple` write. (Cells of IPython are `<ipython-...>`.)"""
    if not isinstance(function, FunctionType):
        return False
    return function.__code__.co_filename.startswith(("<string>", "<frozen "))
