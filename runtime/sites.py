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

from . import keys
from . import raised_exceptions as raised_by
from .traceback_entries import entry_at

Site = dict[str, Any]

_SCALARS: dict[str, tuple[type[Any], Callable[[Any], Any]]] = {
    "index": (ctypes.c_int64, int),
    "py_int": (ctypes.c_int64, int),
    "i64": (ctypes.c_int64, np.int64),
    "i32": (ctypes.c_int32, np.int32),
    "i16": (ctypes.c_int16, np.int16),
    "i8": (ctypes.c_int8, np.int8),
    "u64": (ctypes.c_uint64, np.uint64),
    "u32": (ctypes.c_uint32, np.uint32),
    "u16": (ctypes.c_uint16, np.uint16),
    "u8": (ctypes.c_uint8, np.uint8),
    "i1": (ctypes.c_uint8, bool),
    "b1": (ctypes.c_uint8, bool),
    "py_bool": (ctypes.c_uint8, bool),
    "f64": (ctypes.c_double, float),
    "py_float": (ctypes.c_double, float),
    "f32": (ctypes.c_float, np.float32),
}
_ARRAY = re.compile(r"memref<(\w+),(\d+)>\Z")
_ELEMENTS: dict[str, type[np.generic]] = {**keys.NUMPY_SCALARS, "i1": np.bool_}


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
    "i16": "h6x",
    "i8": "b7x",
    "u64": "Q",
    "u32": "I4x",
    "u16": "H6x",
    "u8": "B7x",
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
    """The exception of a site that raised, with its line as an entry of the traceback, and as a note."""
    if site["exception"] == raised_by.PENDING:
        raised = raised_by.failed()
    else:
        shown = operands(site["operands"], address)
        raised = raised_by.exception(site["exception"], site["message"], shown)
    if site.get("file"):
        raised.add_note(
            f"{site['file']}:{site['line']}:{site['column']}: {site.get('source', '').strip()}"
        )
        if raised.__traceback__ is None:
            raised.__traceback__ = entry_at(site["file"], site["line"])
    return raised


def show(site: Site, address: int) -> None:
    """Print what a `print` in compiled code prints."""
    print(raised_by.filled(site["print"], operands(site["operands"], address)))
