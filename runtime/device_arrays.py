"""Arrays of a device, ours and those of other libraries, and how calls see them: without copying.

Whatever has `__cuda_array_interface__` or `__dlpack__` on a device is *taken* as an array of NumPy's with the
device's address (`Taken`), which compiled code is handed; nobody on the host reads through it. What a call
returns is a `DeviceArray`, or an array of the library that the arguments are of.
"""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import cuda, keys
from .device_text import ENDED
from .keys import Array, address_of
from .user_tracebacks import concise

if TYPE_CHECKING:
    from .device import Driver

CUDA, MANAGED = 2, 13
"""DLPack's numbers for devices of NVIDIA, and for their memory that moves by itself."""
LEGACY, PER_THREAD = 1, 2
"""The default streams, as both protocols number them."""


class DeviceArray:
    """An array in the memory of a device.

    `x.copy_to_host()` is a NumPy array; `x[1:-1, ::2]` and `x.T` are views. Other libraries read it by
    `__dlpack__` or `__cuda_array_interface__`. Functions called on it are compiled for the device.
    """

    __module__ = "mutad"
    __slots__ = ("__weakref__", "_array", "_driver")
    __array_priority__ = 1000

    def __init__(self, array: Array, driver: Driver) -> None:
        self._array, self._driver = array.view(driver.kind), driver

    @property
    def taken(self) -> Taken:
        """As compiled code sees it."""
        return Taken(self._array, self, self._driver.stream)

    @property
    def number(self) -> int:
        """The device that it is on."""
        return self._driver.number

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> Any:
        return self._array.dtype

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def size(self) -> int:
        return self._array.size

    @property
    def nbytes(self) -> int:
        return self._array.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        return self._array.strides

    @property
    def T(self) -> DeviceArray:
        """The array transposed, a view."""
        return DeviceArray(self._array.T, self._driver)

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"<device array {self.dtype} {self.shape}>"

    def __getitem__(self, key: Any) -> DeviceArray:
        parts = key if isinstance(key, tuple) else (key,)
        for part in parts:
            if not isinstance(part, int | np.integer | slice | type(None) | type(...)):
                kind = type(part).__name__
                raise TypeError(
                    f"a view of a device array is made by slices and ints, not by {kind}"
                )
        whole = parts if any(p is ... for p in parts) else (*parts, ...)
        return DeviceArray(self._array[whole], self._driver)

    def copy_to_host(self) -> Array:
        """The elements, as an array of NumPy; waits for what computes them."""
        return self._driver.download(self._array)

    def __reduce__(self) -> Any:
        raise TypeError(
            "an array on a device can be neither copied nor pickled: use x.copy_to_host()"
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("this array is on a device: x.copy_to_host() is one of NumPy's")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (address_of(self._array), not self._array.flags.writeable),
            "strides": self.strides,
            "stream": self._driver.stream,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self._driver.number

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        if stream is None or stream == -1:
            self._driver.synchronize()
        else:
            self._driver.let_wait(stream)
        return capsule_of(self._array, self._driver, stream)


@dataclass
class Taken:
    """An array of a device as compiled code sees it."""

    array: Array
    own: Any
    """What the caller has."""
    stream: int | None
    """What its library computes on; None where that is not known."""


def is_device(value: Any) -> bool:
    """Whether a value is an array of a device."""
    kind = type(value)
    if kind is DeviceArray:
        return True
    if kind in keys.PLAIN or kind is tuple or isinstance(value, type):
        return False
    if hasattr(kind, "__dlpack_device__") and hasattr(kind, "__dlpack__"):
        return int(value.__dlpack_device__()[0]) in (CUDA, MANAGED)
    return hasattr(kind, "__cuda_array_interface__") and interface_of(value) is not None


def dtype_of(value: Any) -> Any:
    """The dtype of an array of a device, as NumPy has it."""
    described = interface_of(value)
    if described is not None:
        return np.dtype(described["typestr"])
    return np.dtype(str(value.dtype).rpartition(".")[2])  # torch.float64


def interface_of(value: Any) -> dict[str, Any] | None:
    """Its `__cuda_array_interface__`, where it has one: some have it on a device alone."""
    try:
        return value.__cuda_array_interface__
    except (AttributeError, RuntimeError, TypeError):
        return None


class Described:
    """Memory of a device as NumPy is told of it; keeps what it belongs to."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, described: dict[str, Any], owner: Any) -> None:
        self.__array_interface__ = described
        self.owner = owner


def taken(value: Any, name: str, driver: Driver) -> Taken:
    """An array of this device, without copying."""
    if type(value) is DeviceArray:
        return value.taken
    if (described := interface_of(value)) is not None:
        return by_interface(value, described, driver)
    if getattr(value, "requires_grad", False):
        raise TypeError(
            f"argument {name!r} is part of a graph of {package(value)}: pass {name}.detach()"
        )
    return by_dlpack(value, name, driver)


def number_of(value: Any, name: str, used: Driver) -> int:
    """The number of the device that an array is on, as the driver knows it; TypeError where it is on none."""
    if type(value) is DeviceArray:
        return value.number
    if hasattr(type(value), "__dlpack_device__"):
        kind, number = value.__dlpack_device__()
        if int(kind) == CUDA:
            return int(number)
    described = interface_of(value)
    if described is None or not described["data"][0] or 0 in described["shape"]:
        return used.number
    found = used.holder_of(described["data"][0])
    if found is None:
        raise TypeError(f"argument {name!r}: its memory is no device's, as NVIDIA's driver says")
    return found


def by_interface(value: Any, described: dict[str, Any], driver: Driver) -> Taken:
    pointer, read_only = described["data"]
    if described.get("mask") is not None:
        raise TypeError("an array with a mask cannot be an argument: pass what it masks")
    read_only = read_only or package(value) in IMMUTABLE
    seen = {
        "version": 3,
        "shape": described["shape"],
        "typestr": described["typestr"],
        "data": (pointer or EMPTY, read_only),
        "strides": described.get("strides"),
    }
    stream = described.get("stream")
    found = stream_of(value) if stream is None else int(stream)
    return Taken(np.asarray(Described(seen, value)).view(driver.kind), value, found)


IMMUTABLE = ("jax", "jaxlib")
"""Whose arrays never change, though their memory says that it may be written."""
EMPTY = 256
"""The address of arrays without elements, which some libraries say is null."""


def stream_of(value: Any) -> int | None:
    """The stream that a library is on, where it can be asked."""
    if package(value) == "torch":
        current: int = sys.modules["torch"].cuda.current_stream(value.device).cuda_stream
        return current or LEGACY
    return None


def package(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


# DLPack.


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = [
        ("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


CODES = {0: "i", 1: "u", 2: "f", 6: "b"}
"""DLPack's kinds of numbers, by NumPy's."""
NAME, USED = b"dltensor", b"used_dltensor"


def _python(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


class _Borrowed:
    """What a capsule handed over, given back when nothing refers to it."""

    def __init__(self, capsule: Any) -> None:
        get = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
        rename = _python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
        self.address: int = get(capsule, NAME)
        rename(capsule, USED)
        self.managed = _Managed.from_address(self.address)

    def __del__(self) -> None:
        if self.managed.deleter:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.managed.deleter)(self.address)


def by_dlpack(value: Any, name: str, driver: Driver) -> Taken:
    """What `__dlpack__` hands over: its library orders our stream behind its own."""
    borrowed = _Borrowed(value.__dlpack__(stream=driver.stream))
    t = borrowed.managed.tensor
    if (
        t.device_type not in (CUDA, MANAGED)
        or t.device_id != driver.number
        or t.lanes != 1
        or t.code not in CODES
    ):
        raise TypeError(f"argument {name!r} is on another device, or of a dtype that NumPy has not")
    count = ctypes.c_int64 * t.ndim
    shape = tuple(count.from_address(t.shape)) if t.ndim else ()
    size = t.bits // 8
    strides = None
    if t.strides and t.ndim:
        strides = tuple(size * s for s in count.from_address(t.strides))
    seen = {
        "version": 3,
        "shape": shape,
        "typestr": f"{'|' if size == 1 else '<'}{CODES[t.code]}{size}",
        "data": ((t.data or EMPTY) + t.byte_offset, package(value) in IMMUTABLE),
        "strides": strides,
    }
    array = np.asarray(Described(seen, (borrowed, value))).view(driver.kind)
    return Taken(array, value, stream_of(value))


_exported: dict[int, Any] = {}
"""What capsules that are on their way, or in use, refer to; by address."""


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(address: int) -> None:
    """Who has taken the array lets it go, and may still be about to compute with it."""
    found = _exported.pop(address, None)
    if found is not None:
        *_, array, driver, stream = found
        if os.getpid() == driver.process and not driver.state[ENDED]:
            driver.follow(stream)
        del array


_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


@_Destructor
def _destroy(capsule: int) -> None:
    """A capsule goes that was not taken."""
    is_valid = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
    get = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
    if is_valid(capsule, NAME):
        _exported.pop(get(capsule, NAME), None)


STAY = ("torch", "jax", "jaxlib")
"""Libraries whose streams are there as long as the process."""
_handing: list[str] = []
"""To which library an array is handed now."""


def lasting(stream: int | None) -> int:
    """What stands for a stream that an array is used on, when the array goes.

    The stream itself may be gone by then. The default stream, which stays, waits for the others of its kind.
    """
    stays = stream in (LEGACY, PER_THREAD) or (_handing and _handing[-1] in STAY)
    return stream if stream and stream > 0 and stays else LEGACY


def capsule_of(array: Array, driver: Driver, stream: int | None) -> Any:
    """A capsule of DLPack's for an array of a device, which is used on this stream."""
    rank, size = array.ndim, array.itemsize
    shape = (ctypes.c_int64 * max(rank, 1))(*array.shape)
    strides = (ctypes.c_int64 * max(rank, 1))(*(s // size for s in array.strides))
    code = next(c for c, kind in CODES.items() if kind == array.dtype.kind)
    tensor = _Tensor(
        address_of(array), CUDA, driver.number, rank, code, 8 * size, 1,
        ctypes.addressof(shape), ctypes.addressof(strides), 0,
    )  # fmt: skip
    managed = _Managed(tensor, None, ctypes.cast(_delete, ctypes.c_void_p))
    at = ctypes.addressof(managed)
    _exported[at] = managed, shape, strides, array, driver, lasting(stream)
    new = _python(
        "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
    )
    return new(at, NAME, ctypes.cast(_destroy, ctypes.c_void_p))


# What is returned.


def like(value: Any, made: DeviceArray) -> Any:
    """The array, as one of the library that `value` is of."""
    if type(value) is DeviceArray:
        return made
    if hasattr(value, "__array_namespace__"):
        module: Any = value.__array_namespace__()
    else:
        module = sys.modules.get(package(value))
    if not hasattr(module, "from_dlpack"):
        return made
    _handing.append(package(value))
    try:
        return module.from_dlpack(made)
    finally:
        _handing.pop()


@concise
def device_array(x: Any) -> DeviceArray:
    """A copy of a NumPy array in the memory of the device; RuntimeError if there is no device."""
    if type(x) is DeviceArray:
        return x
    array = np.asarray(x)
    if array.dtype not in keys.DTYPES:
        keys.argument_key(array, "x")
    driver = cuda.driver()
    return DeviceArray(driver.upload(array), driver)
