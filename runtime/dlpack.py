"""DLPack's capsules: arrays of a device that are handed to other libraries, and taken from them.

A capsule holds the address of a struct, whose deleter is called by whoever has taken the array. Both layouts
are known: the one without a version, and 1.x, which also says what is read-only and what is a copy.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import TYPE_CHECKING, Any

from . import native_code
from .device_text import ENDED
from .keys import Array, address_of

if TYPE_CHECKING:
    from .device import Driver

CPU, CUDA, MANAGED = 1, 2, 13
"""DLPack's numbers for the host, for devices of NVIDIA, and for their memory that moves by itself."""
LEGACY, PER_THREAD = 1, 2
"""The default streams, as DLPack and the CUDA array interface number them."""
VERSION = 1, 0
"""The newest layout that is read and written."""
READ_ONLY, IS_COPIED = 1, 2
"""Flags."""


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    """Without a version."""

    name, used = b"dltensor", b"used_dltensor"
    flags = 0
    _fields_ = [
        ("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


class Versioned(ctypes.Structure):
    """Of version 1."""

    name, used = b"dltensor_versioned", b"used_dltensor_versioned"
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]  # fmt: skip


CODES = {0: "i", 1: "u", 2: "f", 6: "b"}
"""DLPack's kinds of numbers, by NumPy's."""


def _python(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


# Arrays that are taken.


class Borrowed:
    """What a capsule handed over, given back when nothing refers to it."""

    managed: Any = None

    def __init__(self, capsule: Any) -> None:
        is_valid = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
        get = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
        rename = _python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
        layout = Versioned if is_valid(capsule, Versioned.name) else Managed
        self.address: int = get(capsule, layout.name)
        managed: Any = layout.from_address(self.address)
        if layout is Versioned and managed.major > VERSION[0]:
            raise BufferError(
                f"this array is handed over by DLPack {managed.major}, which is too new"
            )
        rename(capsule, layout.used)
        self.managed = managed

    @property
    def read_only(self) -> bool:
        return bool(self.managed.flags & READ_ONLY)

    def __del__(self) -> None:
        if self.managed is not None and self.managed.deleter:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.managed.deleter)(self.address)


def borrowed(value: Any, stream: int) -> Borrowed:
    """What an array's `__dlpack__` hands over on a stream, of version 1 if its library knows that."""
    try:
        capsule = value.__dlpack__(stream=stream, max_version=VERSION)
    except TypeError:  # a library from before version 1
        capsule = value.__dlpack__(stream=stream)
    return Borrowed(capsule)


# Arrays that are handed over.

exported: dict[int, Any] = {}
"""What capsules that are on their way, or in use, refer to; by address."""


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(address: int) -> None:
    """Who has taken the array lets it go, and may still be about to compute with it."""
    found = exported.pop(address, None)
    if found is not None:
        *_, array, driver, stream = found
        if os.getpid() == driver.process and not driver.state[ENDED]:
            driver.follow(stream)
        del array


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule: int) -> None:
    """A capsule goes that was not taken."""
    is_valid = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
    get = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
    for layout in (Managed, Versioned):
        if is_valid(capsule, layout.name):
            exported.pop(get(capsule, layout.name), None)


def guarded(name: str) -> str:
    """LLVM text of a function that calls one of Python's: an exception that is on its way stays.

    Who refuses an array destroys the capsule while the exception is set, and Python cannot run then.
    """
    return f"""
declare void @mutad_{name}(ptr)
define void @{name}(ptr %what) {{
  %kind = alloca ptr
  %error = alloca ptr
  %trace = alloca ptr
  %gil = call i32 @PyGILState_Ensure()
  call void @PyErr_Fetch(ptr %kind, ptr %error, ptr %trace)
  call void @mutad_{name}(ptr %what)
  %kind.set = load ptr, ptr %kind
  %error.set = load ptr, ptr %error
  %trace.set = load ptr, ptr %trace
  call void @PyErr_Restore(ptr %kind.set, ptr %error.set, ptr %trace.set)
  call void @PyGILState_Release(i32 %gil)
  ret void
}}
"""


TEXT = f"""
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
{guarded("delete")}{guarded("destroy")}"""


@functools.cache
def functions() -> dict[str, int]:
    """The addresses of `delete` and `destroy`, for other libraries to call."""
    called = {"mutad_delete": _delete, "mutad_destroy": _destroy}
    symbols = {name: ctypes.cast(f, ctypes.c_void_p).value or 0 for name, f in called.items()}
    with native_code.compiling:
        return native_code.addresses_in(TEXT, symbols, "mutad.dlpack", ("delete", "destroy"))


STAY = ("torch", "jax", "jaxlib")
"""Libraries whose streams are there as long as the process."""
handing: list[str] = []
"""To which library an array is handed now."""


def lasting(stream: int | None) -> int:
    """What stands for a stream that an array is used on, when the array goes.

    The stream itself may be gone by then. The default stream, which stays, waits for the others of its kind.
    """
    stays = stream in (LEGACY, PER_THREAD) or (handing and handing[-1] in STAY)
    return stream if stream and stream > 0 and stays else LEGACY


def capsule_of(
    array: Array, driver: Driver, stream: int | None, *, versioned: bool, copied: bool
) -> Any:
    """A capsule of DLPack's for an array of a device, which is used on this stream."""
    read_only = not array.flags.writeable
    if read_only and not versioned:
        raise BufferError("this array is read-only, which DLPack says from version 1.0 on")
    rank, size = array.ndim, array.itemsize
    shape = (ctypes.c_int64 * max(rank, 1))(*array.shape)
    strides = (ctypes.c_int64 * max(rank, 1))(*(s // size for s in array.strides))
    number = next(c for c, kind in CODES.items() if kind == array.dtype.kind)
    tensor = Tensor(
        address_of(array), CUDA, driver.number, rank, number, 8 * size, 1,
        ctypes.addressof(shape), ctypes.addressof(strides), 0,
    )  # fmt: skip
    code = functions()
    if versioned:
        flags = READ_ONLY * read_only | IS_COPIED * copied
        managed = Versioned(*VERSION, None, code["delete"], flags, tensor)
    else:
        managed = Managed(tensor, None, code["delete"])
    at = ctypes.addressof(managed)
    exported[at] = managed, shape, strides, array, driver, lasting(stream)
    new = _python(
        "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
    )
    return new(at, managed.name, code["destroy"])
