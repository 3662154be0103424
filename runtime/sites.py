"""What compiled code says to the user: exceptions it raises and lines it prints.

Compiled code hands over the number of a *site* and raw values (8 bytes each); the site, from the
module's metadata, knows the words and the place in the source.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from . import raised as raised_by

Site = dict[str, Any]

_SCALARS: dict[str, tuple[type[Any], Callable[[Any], Any]]] = {
    "index": (ctypes.c_int64, int),
    "py_int": (ctypes.c_int64, int),
    "i64": (ctypes.c_int64, np.int64),
    "i32": (ctypes.c_int32, np.int32),
    "i1": (ctypes.c_uint8, bool),
    "b1": (ctypes.c_uint8, bool),
    "py_bool": (ctypes.c_uint8, bool),
    "f64": (ctypes.c_double, float),
    "py_float": (ctypes.c_double, float),
    "f32": (ctypes.c_float, np.float32),
}
_ARRAY = re.compile(r"memref<(\w+),(\d+)>\Z")
_ELEMENTS: dict[str, type[np.generic]] = {
    "f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32, "i1": np.bool_, "b1": np.bool_,
}  # fmt: skip


def operands(types: list[str], address: int) -> list[Any]:
    """Decode the values at `address`: 8 bytes each, arrays as pointer, extents, strides."""
    values: list[Any] = []
    for type_ in types:
        if type_ in _SCALARS:
            c_type, convert = _SCALARS[type_]
            values.append(convert(c_type.from_address(address).value))
            address += 8
        else:
            element, rank = _array_type(type_)
            values.append(_array_at(address, element, rank))
            address += 8 + 16 * rank
    return values


def _array_type(type_: str) -> tuple[type[np.generic], int]:
    """Element type and rank of `memref<f64,2>`."""
    match = _ARRAY.match(type_)
    assert match is not None, type_
    return _ELEMENTS[match[1]], int(match[2])


_EXACT: dict[str, Callable[[Any], Any]] = {"f64": np.float64, "b1": np.bool_}
"""Where a value's type is not what is shown of it."""
_FORMATS = {
    "f64": "d",
    "py_float": "d",
    "f32": "f4x",
    "i32": "i4x",
    "i1": "?7x",
    "b1": "?7x",
    "py_bool": "?7x",
}


def words_of(type_: str) -> int:
    """How many values of 8 bytes describe an operand."""
    return 1 if type_ in _SCALARS else 1 + 2 * _array_type(type_)[1]


def format_of(type_: str) -> str:
    """The format, as `struct` has it, of what describes an operand."""
    return _FORMATS.get(type_, "q") if type_ in _SCALARS else "q" * words_of(type_)


def exact(type_: str) -> Callable[[Any], Any] | None:
    """What makes a number of exactly the type that Python has there; None where it is of that type."""
    return _EXACT.get(type_, _SCALARS[type_][1])


def write_scalar(type_: str, address: int, value: Any) -> None:
    """Leave a number at `address`."""
    _SCALARS[type_][0].from_address(address).value = value


class _Memory:
    """Memory of compiled code that looks like an array."""

    __slots__ = ("__array_interface__",)


def view_at(type_: str, address: int, *, writeable: bool) -> Any:
    """The array that is described at `address`, over its own memory."""
    element, rank = _array_type(type_)
    data, *rest = (ctypes.c_int64 * (1 + 2 * rank)).from_address(address)
    dtype, shape = np.dtype(element), tuple(rest[:rank])
    strides = tuple([s * dtype.itemsize for s in rest[rank:]])
    if min(shape, default=1) > 0 and min(strides, default=0) >= 0:
        last = sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)])
        memory: Any = (ctypes.c_char * (last + dtype.itemsize)).from_address(data)
        found = np.ndarray(shape, dtype, memory, 0, strides)
        if not writeable:
            found.flags.writeable = False
        return found
    described = _Memory()
    described.__array_interface__ = {
        "version": 3, "data": (data, not writeable), "shape": shape, "typestr": dtype.str,
        "strides": strides,
    }  # fmt: skip
    return np.asarray(described)


def _array_at(address: int, element: type[np.generic], rank: int) -> Any:
    data, *rest = (ctypes.c_int64 * (1 + 2 * rank)).from_address(address)
    dtype = np.dtype(element)
    strides = [s * dtype.itemsize for s in rest[rank:]]
    interface = {
        "version": 3, "data": (data, True), "shape": tuple(rest[:rank]),
        "typestr": dtype.str, "strides": tuple(strides),
    }  # fmt: skip
    described = type("Described", (), {"__array_interface__": interface})()
    return np.array(described)


def exception(site: Site, address: int) -> BaseException:
    """The exception of a site that raised, with a note that shows its line."""
    shown = operands(site["operands"], address)
    raised = raised_by.exception(site["exception"], site["message"], shown)
    if site.get("file"):
        raised.add_note(
            f"{site['file']}:{site['line']}:{site['column']}: {site.get('source', '').strip()}"
        )
    return raised


def show(site: Site, address: int) -> None:
    """Print what a `print` in compiled code prints."""
    print(site["print"].format(*map(_Shown, operands(site["operands"], address))))


LIST_OF = "list of "
"""The format of a list of numbers, which comes as an array: what its items are."""


class _Shown:
    """A value that is printed: as `str` says, or by a format specification."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        if spec.startswith(LIST_OF):
            kind = raised_by.EXACT[spec.removeprefix(LIST_OF)]
            return repr([kind(item) for item in self.value.tolist()])
        return format(self.value, spec) if spec else str(self.value)

    def __repr__(self) -> str:
        return repr(self.value)

    def __str__(self) -> str:
        return str(self.value)
