"""Arrays of a device by DLPack and by the CUDA array interface, as these standards have them."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

import mutad
from mutad.runtime import dlpack

pytestmark = pytest.mark.usefixtures("on_a_device")


def squares(x: Any) -> Any:
    return (x * x).sum()


f = mutad.compile(squares, grad=True, opt=1)


def ones() -> mutad.DeviceArray:
    return mutad.device_array(np.ones(3))


def name_of(capsule: Any) -> bytes:
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)
    return name(("PyCapsule_GetName", ctypes.pythonapi))(capsule)


class Library:
    """An array of another library; what it was asked for."""

    def __init__(self, place: tuple[int, int] | None = None, newest: int = 1) -> None:
        self.memory, self.place, self.newest = ones(), place, newest
        self.asked: list[dict[str, Any]] = []

    def __dlpack__(self, **how: Any) -> Any:
        self.asked.append(how)
        if self.newest == 0 and "max_version" in how:
            raise TypeError("unexpected keyword argument")
        return self.memory.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place or self.memory.__dlpack_device__()


# Handed over.


def test_who_refuses_a_capsule_says_why() -> None:
    """NumPy destroys it with its exception set, which stays; the array goes."""
    x, before = ones(), len(dlpack.exported)
    for _ in range(2):
        with pytest.raises((RuntimeError, BufferError), match="device"):
            np.from_dlpack(x)
    gc.collect()
    assert len(dlpack.exported) == before


@pytest.mark.parametrize("function", ["delete", "destroy"])
def test_an_exception_on_its_way_stays(function: str) -> None:
    """As in a C library that lets an array go in its error path."""
    capsule = ones().__dlpack__(stream=1)
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    address = pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, b"dltensor")
    given = address if function == "delete" else id(capsule)
    set_error: Any = ctypes.cast(ctypes.pythonapi.PyErr_SetString, ctypes.c_void_p).value
    text = """
declare void @called(ptr)
declare void @set(ptr, ptr)
define void @fails(ptr %kind, ptr %text, ptr %given) {
  call void @set(ptr %kind, ptr %text)
  call void @called(ptr %given)
  ret void
}
"""
    symbols = {"called": dlpack.functions()[function], "set": set_error}
    fails = mutad.runtime.native_code.addresses_in(text, symbols, f"fails.{function}", ["fails"])
    kinds = ctypes.py_object, ctypes.c_char_p, ctypes.c_void_p
    with pytest.raises(ValueError, match=r"^mine$"):
        ctypes.PYFUNCTYPE(None, *kinds)(fails["fails"])(ValueError, b"mine", given)
    assert address not in dlpack.exported


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (None, b"dltensor"),
        ((0, 8), b"dltensor"),
        ((1, 0), b"dltensor_versioned"),
        ((2, 3), b"dltensor_versioned"),
    ],
)
def test_a_capsule_has_the_version_that_is_asked_for(
    asked: tuple[int, int] | None, name: bytes
) -> None:
    capsule = ones().__dlpack__(stream=1, max_version=asked, dl_device=(2, 0), copy=False)
    assert name_of(capsule) == name
    taken = dlpack.Borrowed(capsule)
    assert taken.managed.tensor.ndim == 1
    if asked == (2, 3):
        assert (taken.managed.major, taken.managed.minor, taken.managed.flags) == (1, 0, 0)


def test_the_host_gets_a_copy() -> None:
    x = mutad.device_array(np.arange(3.0))
    np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), np.arange(3.0))
    with pytest.raises(BufferError, match="must be copied"):
        x.__dlpack__(dl_device=(1, 0), copy=False)


def test_a_copy_is_another_array() -> None:
    x = ones()
    other = dlpack.Borrowed(x.__dlpack__(stream=1, max_version=(1, 0), copy=True)).managed
    assert other.tensor.data != x.__cuda_array_interface__["data"][0]
    assert other.flags == dlpack.IS_COPIED


def test_what_cannot_be_is_a_buffer_error() -> None:
    x = ones()
    for how, why in (
        ({"dl_device": (2, 3)}, "is on device 0"),
        ({"dl_device": (10, 0)}, "is on device 0"),
        ({"stream": 0}, "stream 0"),
    ):
        with pytest.raises(BufferError, match=why):
            x.__dlpack__(**how)


def test_only_newer_capsules_say_what_is_read_only() -> None:
    x = ones()
    x._array.flags.writeable = False
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__(stream=1)
    assert dlpack.Borrowed(x.__dlpack__(stream=1, max_version=(1, 0))).read_only


# Taken.


@pytest.mark.parametrize("newest", [0, 1])
def test_arrays_are_taken_by_the_newest_version_that_both_know(newest: int) -> None:
    x = Library(newest=newest)
    assert f(x) == 3.0
    assert [how.get("max_version") for how in x.asked] == [(1, 0), None][: 2 - newest]


def test_what_a_capsule_calls_read_only_is_not_stored_to() -> None:
    x = Library()
    x.memory._array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        mutad.compile(filled, opt=1)(x)


def filled(x: Any) -> None:
    x.fill(0.0)


def test_a_version_that_nobody_here_knows_is_refused() -> None:
    capsule = ones().__dlpack__(stream=1, max_version=(1, 0))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    address = pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, b"dltensor_versioned")
    dlpack.Versioned.from_address(address).major = 2
    with pytest.raises(BufferError, match="too new"):
        dlpack.Borrowed(capsule)


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(TypeError, match="x says that it is on device 77: there is no such device"):
        f(Library((2, 77)))


class OfInstance:
    """Its interface is in the instance, not in the class."""

    def __init__(self, x: mutad.DeviceArray, **other: Any) -> None:
        self.owner = x
        self.__cuda_array_interface__ = {**x.__cuda_array_interface__, **other}


def test_an_interface_may_be_the_instances() -> None:
    x = mutad.device_array(np.arange(3.0))
    assert f(OfInstance(x)) == 5.0
    np.testing.assert_array_equal(f.grad(OfInstance(x)).copy_to_host(), 2 * np.arange(3.0))


def test_stream_0_is_none() -> None:
    with pytest.raises(
        TypeError, match="argument 'x': its __cuda_array_interface__ names stream 0"
    ):
        f(OfInstance(ones(), stream=0))
