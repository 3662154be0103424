"""Write the caller's objects and lists back when an exception leaves compiled code.

Compiled code hands over a *state* right before it raises (`frontend/data/write_back.py`): its number,
and the numbers and arrays that it consists of. Arrays in its own memory are copied at once. Those in
memory of the caller's are the arrays that they were, or views of them.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import sites
from .keys import NUMPY_SCALARS, address_of, is_same_view
from .raised_exceptions import exact

handed = threading.local()
"""Its `pending` is the state that was handed over last, its number and values: the next exception of this
thread left it. Then it is `now`, and `checked` the identity of that exception."""


@dataclass(frozen=True)
class Memory:
    """An array that was handed over: where it lay, and what was in it."""

    place: tuple[int, tuple[int, ...], tuple[int, ...]]
    """Address, shape, strides."""
    contents: Any


def take_over(site: dict[str, Any], address: int) -> None:
    """Called by compiled code with the address of what describes the values."""
    values = list[Any]()
    for type_ in site["operands"]:
        if type_.startswith("memref"):
            view = sites.view_at(type_, address, writeable=False)
            place = (address_of(view), view.shape, view.strides)
            values.append(Memory(place, np.array(view)))
        else:
            values += sites.operands([type_], address)
        address += 8 * sites.words_of(type_)
    handed.pending = site["leaves"], values


def made(exception: BaseException) -> BaseException:
    """A check in compiled code raises this exception."""
    handed.now, handed.pending = getattr(handed, "pending", None), None
    handed.checked = id(exception)
    return exception


def left(raised: BaseException) -> tuple[int, list[Any]] | None:
    """The state that the exception which was just raised left."""
    found = getattr(handed, "now", None) if was_made(raised) else None
    handed.now = handed.checked = None
    return found


def was_made(raised: BaseException) -> bool:
    """True for the latest exception that a check in compiled code made."""
    return getattr(handed, "checked", None) == id(raised)


def is_checked(raised: BaseException) -> bool:
    """True for an exception before which compiled code has handed over what had changed."""
    return was_made(raised) and not isinstance(raised, MemoryError)


def values_of(state: dict[str, Any], given: Sequence[Any], known: Sequence[Any]) -> tuple[Any, ...]:
    """The values of a state; `known` are the caller's arrays."""
    arrays = [a for a in known if isinstance(a, np.ndarray)]
    made = dict[Any, Any]()

    def value(given: Any, type_: str | None) -> Any:
        if not isinstance(given, Memory):
            return given if type_ is None else exact(type_, given)
        if type_ is not None:
            given = Memory(given.place, given.contents.view(NUMPY_SCALARS[type_]))
        if given.place not in made:
            made[given.place] = of_caller(given, arrays)
        return made[given.place]

    return tuple([value(v, t) for v, t in zip(given, state["types"], strict=True)])


def of_caller(given: Memory, arrays: Sequence[Any]) -> Any:
    """The caller's array that lies there, a view of one, or an array of its own."""
    views = [view_in(given, a) for a in arrays]
    found = [(a, v) for a, v in zip(arrays, views, strict=True) if v is not None]
    for array, view in found:
        if is_same_view(array, view):
            return array
    return found[0][1] if found else given.contents


def view_in(given: Memory, array: Any) -> Any:
    """The part of an array that lies there; None where none does."""
    address, shape, strides = given.place
    first, end = np.lib.array_utils.byte_bounds(array)
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    size = given.contents.itemsize
    if array.dtype != given.contents.dtype or 0 in shape or array.size == 0:
        return None
    if address + low < first or address + high + size > end:
        return None
    memory: Any = (ctypes.c_char * (high - low + size)).from_address(address + low)
    view = np.ndarray(shape, array.dtype, memory, -low, strides)
    memory.owner = array
    return view
