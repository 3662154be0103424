"""Arrays of a device, ours and those of other libraries, and how calls see them: without copying.

Whatever has `__cuda_array_interface__` or `__dlpack__` on a device is *taken* as an array of NumPy's with the
device's address (`Taken`), which compiled code is handed; nobody on the host reads through it. What a call
returns is a `DeviceArray`, or an array of the library that the arguments are of.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import cuda, dlpack, keys
from .dlpack import CPU, CUDA, LEGACY, MANAGED
from .keys import Array, address_of
from .user_tracebacks import concise

if TYPE_CHECKING:
    from .device import Driver


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

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """As the Python array API standard has it; for the host it is a copy, made by NumPy."""
        asked = None if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
        if asked == (CPU, 0):
            if copy is False:
                raise BufferError("this array is on a device: for the host it must be copied")
            versions: Any = {} if max_version is None else {"max_version": max_version}
            return self.copy_to_host().__dlpack__(**versions)
        if asked not in (None, self.__dlpack_device__()):
            raise BufferError(f"this array is on device {self.number}: copy it by copy_to_host()")
        if stream == 0:
            raise BufferError("stream 0 may be one of two: 1 is the default one, 2 a thread's own")
        array, driver = self._array, self._driver
        if copy:
            array = driver.upload(driver.download(array)).view(driver.kind)
        if stream is None or stream == -1:
            driver.synchronize()
        else:
            driver.let_wait(stream)
        versioned = max_version is not None and max_version[0] >= 1
        return dlpack.capsule_of(array, driver, stream, versioned=versioned, copied=bool(copy))


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
    own = getattr(value, "__dict__", None)
    has = hasattr(kind, "__cuda_array_interface__")
    has = has or (isinstance(own, dict) and "__cuda_array_interface__" in own)
    return has and interface_of(value) is not None


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
        return by_interface(value, name, described, driver)
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


def by_interface(value: Any, name: str, described: dict[str, Any], driver: Driver) -> Taken:
    pointer, read_only = described["data"]
    if described.get("stream") == 0:
        raise TypeError(
            f"argument {name!r}: its __cuda_array_interface__ names stream 0, which may be one of two: 1 is "
            "the default one, 2 a thread's own"
        )
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


def by_dlpack(value: Any, name: str, driver: Driver) -> Taken:
    """What `__dlpack__` hands over: its library orders our stream behind its own."""
    borrowed = dlpack.borrowed(value, driver.stream)
    t = borrowed.managed.tensor
    if (
        t.device_type not in (CUDA, MANAGED)
        or t.device_id != driver.number
        or t.lanes != 1
        or t.code not in dlpack.CODES
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
        "typestr": f"{'|' if size == 1 else '<'}{dlpack.CODES[t.code]}{size}",
        "data": (
            (t.data or EMPTY) + t.byte_offset,
            borrowed.read_only or package(value) in IMMUTABLE,
        ),
        "strides": strides,
    }
    array = np.asarray(Described(seen, (borrowed, value))).view(driver.kind)
    return Taken(array, value, stream_of(value))


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
    dlpack.handing.append(package(value))
    try:
        return module.from_dlpack(made)
    finally:
        dlpack.handing.pop()


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
