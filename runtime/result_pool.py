"""Memory of the large arrays that calls return: blocks that outlive the arrays, for the next call.

The pages of a fresh large array cost more than many gradients: the system maps each of them at the first
touch, and takes them back when the array goes. Here a block of an array that went waits for the next one::

    gradient = f.grad(x)        1.6 MB of zeros, from the system
    del gradient                the block waits
    gradient = f.grad(x)        the same block, filled with zeros: its pages are there

NumPy's arrays know whose memory they have (NEP 49): a data allocation handler is set while a large array is
made, and the array frees its memory through it, whenever and in whichever thread it goes. `owndata`, `resize`
and `tracemalloc` are as ever, and a program's own handler stays in charge.

Blocks wait in a few slots that are swapped by atomic instructions: no locks, so that `fork` and threads need
no care. No more wait than `limit` bytes; a block serves requests of its size down to half of it; blocks that
waited for two seconds are freed at the next large array, and all by `mutad.release_memory()`. The code is
machine code that is never unloaded, as arrays live as long as they like, even past the interpreter's end.
"""

from __future__ import annotations

import ctypes
import functools
import math
import mmap
import os
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np

from . import native_code
from .keys import Array
from .result_pool_text import POOLED_FROM, text

MOST, SHARE = 1 << 29, 16
"""At most so many bytes wait, and no more than this part of the machine's memory."""

NAME = "mutad"

P = ParamSpec("P")
R = TypeVar("R")


def limit(most: int = MOST, share: int = SHARE) -> int:
    """How many bytes may wait: so many, and no more than this part of the machine's memory."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return most // 8
    return min(most, memory // share)


SCRATCH_BLOCKS, SCRATCH_SLOTS = 16, 24
"""Of the slots of a pool for scratch the first are for blocks."""


def new_scratch_pool(limit: int) -> Any:
    """A pool where kernels leave large blocks and ranges of addresses for the next call.

    Behind them it says how many bytes of blocks wait, and how many may (`compiler/codegen/support/pool.py`,
    `reserved.py`).
    """
    pool = (ctypes.c_void_p * (SCRATCH_SLOTS + 2))()
    pool[SCRATCH_SLOTS + 1] = limit
    return pool


scratch_pool = new_scratch_pool(limit(1 << 31, 8))


class _Allocator(ctypes.Structure):
    _fields_ = [
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


class _Handler(ctypes.Structure):
    """`PyDataMem_Handler`, version 1."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("allocator", _Allocator),
    ]


@dataclass(frozen=True)
class Pool:
    """The loaded code, and the handler that NumPy calls."""

    handler: Any
    """The capsule that arrays keep."""
    array_address: int
    set_handler: Callable[[Any], Any]
    get_handler: Callable[[], Any]
    default: Any
    release: Callable[[int], None]
    waiting: Callable[[], int]


@functools.cache
def pool() -> Pool | None:
    """The process's pool; None where arrays go to several threads at once, without Python's lock."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    with native_code.compiling:
        return _load()


@functools.cache  # inside the lock: there is one
def _load() -> Pool:
    """Link the code and fill in the handler. All that arrays refer to is never freed."""
    python: Any = ctypes.pythonapi
    new_capsule = _new_capsule()
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", python)
    )
    table = native_code.numpy_table()
    default: Any = ctypes.cast(
        table[native_code.DEFAULT_HANDLER], ctypes.POINTER(ctypes.py_object)
    ).contents.value
    theirs = _Handler.from_address(get_pointer(default, b"mem_handler") or 0).allocator
    ours, name = _Handler(NAME.encode(), 1), ctypes.create_string_buffer(b"mem_handler")
    handler = new_capsule(ctypes.addressof(ours), name, None)
    symbols = {
        "default_malloc": theirs.malloc,
        "default_calloc": theirs.calloc,
        "default_free": theirs.free,
        "default_handler": id(default),
        "our_handler": id(handler),
        **{name: native_code.libc_address(name) for name in ("mutad_libc_time", "mutad_libc_free")},
        "PyDataMem_SetHandler": table[native_code.SET_HANDLER],
        "PyDataMem_GetHandler": table[native_code.GET_HANDLER],
    }
    source = text(limit(), theirs.context or 0)
    made = native_code.object_code(source)
    code = native_code.linked(made, symbols, "mutad.pool", _ENTRIES.values())
    at = {kind: code[symbol] for kind, symbol in _ENTRIES.items()}
    ours.allocator = _Allocator(None, at["malloc"], at["calloc"], at["realloc"], at["free"])
    for immortal in (code, ours, name, handler, default):
        python.Py_IncRef(ctypes.py_object(immortal))
    set_handler: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(
        table[native_code.SET_HANDLER]
    )
    get_handler: Any = ctypes.PYFUNCTYPE(ctypes.py_object)(table[native_code.GET_HANDLER])
    release: Any = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(at["release"])
    waiting: Any = ctypes.PYFUNCTYPE(ctypes.c_int64)(at["waiting"])
    return Pool(handler, at["array"], set_handler, get_handler, default, release, waiting)


# Other handlers.


def new_handler(name: str, malloc: int, calloc: int, realloc: int, free: int) -> Any:
    """What NumPy calls a handler, of machine code that is never unloaded; nor does it go itself."""
    made, kind = (
        _Handler(name.encode(), 1, _Allocator(None, malloc, calloc, realloc, free)),
        ctypes.create_string_buffer(b"mem_handler"),
    )
    capsule = _new_capsule()(ctypes.addressof(made), kind, None)
    for immortal in (made, kind, capsule):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(immortal))
    return capsule


def _new_capsule() -> Any:
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )


@functools.cache
def _set_handler() -> Callable[[Any], Any]:
    place = native_code.numpy_table()[native_code.SET_HANDLER]
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(place)


def handler_now() -> Any:
    """The handler that NumPy asks for memory, in this thread."""
    return ctypes.PYFUNCTYPE(ctypes.py_object)(native_code.numpy_table()[native_code.GET_HANDLER])()


@contextmanager
def handled_by(handler: Any) -> Generator[None]:
    """NumPy asks this handler for memory meanwhile, in this thread."""
    set_handler = _set_handler()
    before = set_handler(handler)
    try:
        yield
    finally:
        set_handler(before)


@contextmanager
def results_by(handler: Any) -> Generator[None]:
    """An entry runs meanwhile: its results have this memory, what it calls (`of_host`) the host's."""
    before = getattr(_elsewhere, "host", None)
    if before is None:
        _elsewhere.host = handler_now()
    try:
        with handled_by(handler):
            yield
    finally:
        _elsewhere.host = before


def of_host(call: Callable[P, R]) -> Callable[P, R]:
    """What compiled code calls, with NumPy's memory the host's, whatever memory the entry's results have."""

    @functools.wraps(call)
    def on_host(*args: P.args, **kwargs: P.kwargs) -> R:
        if (handler := getattr(_elsewhere, "host", None)) is None:
            return call(*args, **kwargs)
        with handled_by(handler):
            return call(*args, **kwargs)

    return on_host


@contextmanager
def placed_by(handler: Any, kind: type[Array]) -> Generator[None]:
    """The arrays that the runtime makes for results (`zeros`, `empty`) have this handler's memory meanwhile,
    and are of this class.

    No others: what the runtime computes with is the host's.
    """
    before, _elsewhere.made = getattr(_elsewhere, "made", None), (handler, kind)
    try:
        yield
    finally:
        _elsewhere.made = before


_ENTRIES = {
    kind: f"mutad_pool_{kind}"
    for kind in ("malloc", "calloc", "realloc", "free", "array", "release", "waiting")
}


class _Arrays(ctypes.Structure):
    """What entries know of the pool: the function that makes large arrays, null until it is loaded, and the
    function that loads it and says its address."""

    _fields_ = [("make", ctypes.c_void_p), ("load", ctypes.c_void_p)]


@functools.cache
def arrays_table() -> _Arrays:
    """The process's table for entries."""

    def load() -> int:
        """Called by entries, where no error may leave: whatever goes wrong, there are arrays."""
        try:
            its = pool()
        except Exception:
            its = None
        # NumPy's own does without the last argument, which says whether zeros are wanted.
        table.make = (
            native_code.numpy_table()[native_code.ZEROS] if its is None else its.array_address
        )
        return table.make

    function = ctypes.PYFUNCTYPE(ctypes.c_void_p)(load)
    table = _Arrays(None, ctypes.cast(function, ctypes.c_void_p).value)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(function))  # as long as there are entries
    return table


def release_memory() -> None:
    """Free the memory that is kept for later calls: that of freed large arrays, and scratch memory.

    Live arrays are not affected. It includes devices.
    """
    if (drivers := sys.modules.get(f"{__package__}.drivers")) is not None:
        drivers.release_memory()

    if pool.cache_info().currsize or any(scratch_pool[:SCRATCH_SLOTS]):
        its = pool()
        if its is not None:
            its.release(ctypes.addressof(scratch_pool))


def zeros(shape: Any, dtype: Any = float, order: Any = "C") -> Array:
    """`np.zeros`, large arrays from the pool."""
    return made(np.zeros, shape, dtype, order)


def empty(shape: Any, dtype: Any = float, order: Any = "C") -> Array:
    """`np.empty`, large arrays from the pool."""
    return made(np.empty, shape, dtype, order)


def untouched(shape: Any, dtype: Any = float, order: Any = "C") -> Array:
    """`np.zeros` for what stays so: large arrays have pages of the system, which cost nothing until they are
    looked at.

    glibc asks for those only above a size that grows with what was freed: it fills blocks of its own.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize if isinstance(shape, Sequence) else 0
    there = getattr(_elsewhere, "made", None) is not None
    if size < POOLED_FROM or there or not hasattr(mmap, "MADV_HUGEPAGE"):
        return zeros(shape, dtype, order)
    try:
        pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        pages.madvise(mmap.MADV_HUGEPAGE)
    except OSError:
        return zeros(shape, dtype, order)
    return np.ndarray(shape, dtype, pages, order=order)


_elsewhere = threading.local()
"""Its `made`, where there is that, says whose memory the arrays of this thread have, and their class; its
`host` is the handler from before an entry whose results are elsewhere."""


def made(make: Callable[..., Array], shape: int | Sequence[int], dtype: Any, order: Any) -> Array:
    """A new array, made while the handler is set if the array is large; or a device's, within `placed_by`."""
    if (there := getattr(_elsewhere, "made", None)) is not None:
        handler, kind = there
        with handled_by(handler):
            return make(shape, dtype, order).view(kind)
    elements = shape if isinstance(shape, int) else math.prod(shape)
    its = pool() if elements * np.dtype(dtype).itemsize >= POOLED_FROM else None
    if its is None or its.get_handler() is not its.default:
        return make(shape, dtype, order)
    before = its.set_handler(its.handler)
    try:
        return make(shape, dtype, order)
    finally:
        its.set_handler(before)
