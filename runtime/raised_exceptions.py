"""Exceptions that compiled code raises: made of what their sites say, and of the values of the run.

Most have one message, a format. Where there is more to say (several arguments, numbers that stay numbers, a
cause), the site's message is a *recipe* behind a mark that begins no message of a program's::

    raise Unstable(step, "drift", v) from None     {"args": [["n", "py_int"], ["c", "drift"], ["n", "f64"]],
                                                    "cause": "none"}

An item takes the operands that it shows in order. The exception is made as Python makes it: its class is
called, an `__init__` of the program's runs.
"""

from __future__ import annotations

import builtins
import importlib
import json
import threading
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any, cast

import numpy as np

from .keys import NUMPY_SCALARS, SCALARS

MARK = "\x1fexception "
"""How a recipe begins."""

PENDING = "pending"
"""The exception of sites behind calls of Python that have caught one: `pending` has it."""


class Pending(threading.local):
    """What went wrong in such a call, in each thread: compiled code cannot be given exceptions."""

    error: BaseException | None = None


pending = Pending()


def failed() -> BaseException:
    """What the call of Python that compiled code found to have failed would have raised."""
    error, pending.error = pending.error, None
    return error or MemoryError()


LIST_OF = "list of "
"""The format of a list of numbers, which comes as an array: what its items are."""
UNSIGNED = "unsigned "
"""How the format of what comes as integers with a sign, and has none, begins."""


class Shown:
    """A value that is shown: as `str` says, or by a format specification."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        value = self.value
        if spec.startswith(UNSIGNED):
            spec = spec.removeprefix(UNSIGNED)
            value = np.asarray(value).view(f"u{value.itemsize}")[()]
        if spec.startswith(LIST_OF):
            kind = SCALARS[spec.removeprefix(LIST_OF)]
            return repr([kind(item) for item in value.tolist()])
        return format(value, spec) if spec else str(value)

    def __repr__(self) -> str:
        return repr(self.value)

    def __str__(self) -> str:
        return str(self.value)


def filled(form: str, operands: Iterable[Any]) -> str:
    """A text with its numbers."""
    return form.format(*map(Shown, operands))


def exception(name: str, message: str, operands: list[Any]) -> BaseException:
    """The exception of this class: what its `__init__` raises, where it does."""
    if not message.startswith(MARK):
        kind = exception_class(name)
        text = filled(message, operands)
        return kind(text) if text else kind()
    return _made(name, json.loads(message[len(MARK) :]), iter(operands))


def _made(name: str, recipe: dict[str, Any], operands: Iterator[Any]) -> BaseException:
    args = [_item(item, operands) for item in recipe["args"]]
    kwargs = {key: _item(item, operands) for key, item in recipe.get("kwargs", {}).items()}
    for item in recipe.get("fields", {}).values():
        _item(item, operands)  # what handlers in compiled code read
    try:
        raised = exception_class(name)(*args, **kwargs)
    except Exception as error:
        return error
    cause = recipe.get("cause")
    if cause == "none":
        raised.__cause__ = None
    elif cause is not None:
        own = [next(operands) for _ in range(cause["operands"])]
        raised.__cause__ = exception(cause["class"], cause["message"], own)
    return raised


def _item(item: list[Any], operands: Iterator[Any]) -> Any:
    match item:
        case ["n", type_]:
            return exact(type_, next(operands))
        case ["s", form, count]:
            return filled(form, [next(operands) for _ in range(count)])
        case ["t", items]:
            return tuple([_item(part, operands) for part in items])
        case [_, known]:
            return known
        case _:
            return None


def exact(type_: str, number: Any) -> Any:
    """A number of this type, of one whose bits are its."""
    kind = SCALARS[type_]
    return np.asarray(number).astype(kind)[()] if type_ in NUMPY_SCALARS else kind(number)


def exception_class(name: str) -> type[BaseException]:
    """The class of this name: a builtin's, or `module:name` or `module.name` of another."""
    module, _, inside = name.rpartition(":" if ":" in name else ".")
    if not module:
        return getattr(builtins, inside)
    return reduce(getattr, inside.split("."), cast(Any, importlib.import_module(module)))
