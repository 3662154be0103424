"""The emulated driver refuses what NVIDIA's does, with the same errors, and its streams run late."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_checks import nothing_is_lost
from device_programs import waves

import mutad
from mutad.runtime import (
    cuda,
    device_text,
    dlpack,
    driver_functions,
    drivers,
    emulated_functions,
)
from mutad.runtime.device import Driver
from mutad.runtime.emulated_driver import EmulatedDriver, emulated
from mutad.runtime.emulated_functions import Function
from mutad.runtime.keys import address_of

OUT = ctypes.c_void_p()
PLACE = ctypes.addressof(OUT)


class Calls:
    """Functions of the driver as C calls them, where a context is current."""

    def __init__(self, emulation: EmulatedDriver, driver: Driver) -> None:
        self.emulation, self.driver = emulation, driver
        self.array = mutad.device_array(waves(64))
        self.at = address_of(self.array.taken.array)

    def __call__(self, name: str, *arguments: Any) -> int:
        with self.driver.lock, self.driver.current():
            return self.emulation.functions[name](*arguments)

    def launch(self, start: int, extent: int, blocks: int = 1, stream: int | None = None) -> int:
        words = (ctypes.c_int64 * 3)(start, extent, 1)
        places = (ctypes.c_void_p * 3)(*(ctypes.addressof(words) + 8 * k for k in range(3)))
        self.emulation.handles[7] = Function("k", lambda *_: None, ["ptr", "i64", "i64"], [1], [8])
        given = self.driver.stream if stream is None else stream
        grid = blocks, 1, 1, 256, 1, 1, 0
        return self("cuLaunchKernel", 7, *grid, given, ctypes.addressof(places), None)


REFUSED: dict[str, tuple[Callable[[Calls], int], int]] = {
    "an array that does not fit into its block": (lambda c: c.launch(c.at, 65), 700),
    "a view that begins before it": (lambda c: c.launch(c.at - 8, 3), 700),
    "an address that is not aligned": (lambda c: c.launch(c.at + 4, 3), 716),
    "no blocks": (lambda c: c.launch(c.at, 3, 0), 1),
    "more blocks than there may be": (lambda c: c.launch(c.at, 3, 1 << 31), 1),
    "a stream that nobody made": (lambda c: c.launch(c.at, 3, 1, 12345), 400),
    "stream 0": (lambda c: c.launch(c.at, 3, 1, 0), 400),
    "an event that nobody made": (lambda c: c("cuEventRecord", 12345, c.driver.stream), 400),
    "words that are not aligned": (
        lambda c: c("cuMemsetD32Async", c.at + 2, 0, 1, c.driver.stream),
        1,
    ),
    "memory of size 0": (lambda c: c("cuMemAllocAsync", PLACE, 0, c.driver.stream), 1),
    "a device that is not there": (lambda c: c("cuDeviceGet", PLACE, 9), 101),
    "an attribute that it does not have": (lambda c: c("cuDeviceGetAttribute", PLACE, 9999, 0), 1),
    "a pool that is not there": (lambda c: c("cuMemPoolTrimTo", 77, 0), 1),
    "an address of the host": (lambda c: c("cuPointerGetAttribute", PLACE, 9, PLACE), 1),
    "a copy that is too long": (
        lambda c: c("cuMemcpyDtoHAsync", PLACE, c.at, 1 << 20, c.driver.stream),
        700,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, code = REFUSED[name]
    with emulated() as emulation:
        calls = Calls(emulation, drivers.begun["emulated"])
        assert calls.launch(calls.at, 64) == 0
        assert call(calls) == code


def test_nothing_is_called_before_the_driver_has_begun_or_without_a_context() -> None:
    made = EmulatedDriver()
    count = made.functions["cuDeviceGetCount"]
    assert count(PLACE) == emulated_functions.NOT_INITIALIZED
    assert made.functions["cuInit"](0) == 0
    assert count(PLACE) == 0
    assert made.functions["cuStreamCreate"](PLACE, 1) == emulated_functions.INVALID_CONTEXT


def test_a_capture_takes_no_copies_and_gives_nothing_back() -> None:
    with emulated() as emulation:
        calls = Calls(emulation, drivers.begun["emulated"])
        stream = calls.driver.stream
        assert calls("cuStreamBeginCapture", stream, 1) == 0
        refused = [
            calls("cuMemcpyDtoHAsync", PLACE, calls.at, 8, stream),
            calls("cuStreamSynchronize", stream),
            calls("cuMemAllocAsync", PLACE, 8, stream),
        ]
        with calls.driver.lock, calls.driver.current():
            free: Any = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p)
            address = emulation.addresses["cuMemFreeAsync"]
            refused.append(free(address)(calls.at, stream))
        assert calls("cuStreamEndCapture", stream, PLACE) == 0
        assert calls("cuGraphDestroy", OUT.value) == 0
        assert refused == [emulated_functions.CAPTURE_UNSUPPORTED] * 4


def test_kernels_take_no_more_parameters_than_every_device_has_room_for() -> None:
    """Those with more are refused where they are loaded."""
    with emulated():
        driver = drivers.begun["emulated"]
        image = {"kernels": ["k"], "parameters": [["i64"] * 513], "ranks": [[]], "sizes": [[]]}
        image |= {
            "ptx": "",
            "products": False,
            "conditions": False,
            "symbols": {},
            "code": "",
            "ir": "",
        }
        with pytest.raises(mutad.cuda.CudaError, match=r"INVALID_PTX \(218\).*parameter space"):
            driver.load(image)


def test_streams_run_when_somebody_waits_for_them() -> None:
    """A stream that does not wait for another one sees what was there before."""
    with emulated() as emulation:
        calls = Calls(emulation, drivers.begun["emulated"])
        ours, other, event = calls.driver.stream, 1, calls.driver.event
        seen = np.zeros(1)
        for waits, wanted in ((False, np.frombuffer(b"\0\0\0\0\1\1\1\1")[0]), (True, 0.0)):
            assert calls("cuMemsetD8Async", calls.at, 1, 8, ours) == 0
            assert calls("cuStreamSynchronize", ours) == 0
            assert calls("cuMemsetD32Async", calls.at + 4, 0, 1, ours) == 0
            if waits:
                assert calls("cuEventRecord", event, ours) == 0
                assert calls("cuStreamWaitEvent", other, event, 0) == 0
            assert calls("cuMemsetD32Async", calls.at, 0, 1, other) == 0
            assert calls("cuMemcpyDtoHAsync", address_of(seen), calls.at, 8, other) == 0
            np.testing.assert_array_equal(seen[0], wanted)
            assert calls("cuStreamSynchronize", ours) == 0


def test_the_table_has_all_that_is_called() -> None:
    made = EmulatedDriver()
    assert {*driver_functions.NAMES, *device_text.GEMMS} <= made.addresses.keys()


def squared(u, k):
    u *= k
    return (u * u).sum()


def of_second(array: np.ndarray) -> mutad.DeviceArray:
    driver = cuda.driver(1)
    return mutad.DeviceArray(driver.upload(array), driver)


class ByAddress:
    """An array of a library that says only where its memory is."""

    def __init__(self, array: mutad.DeviceArray) -> None:
        self.array = array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.array.__cuda_array_interface__


def test_arrays_of_each_device_are_computed_there() -> None:
    f = mutad.compile(squared, grad=True, opt=1)
    wanted = f.value_and_grad(waves(20), 0.5)
    with emulated():
        for place in (mutad.device_array, of_second, lambda a: ByAddress(of_second(a))):
            u = place(waves(20))
            value, gradient = f.value_and_grad(u, 0.5)
            assert value == wanted[0]
            number = cuda.driver(1).number if place is not mutad.device_array else 0
            assert gradient.__dlpack_device__() == (2, number)
            np.testing.assert_array_equal(gradient.copy_to_host(), wanted[1])
            out, back = f.vjp(u, 2.0, wrt="k")
            assert back(1.0) == pytest.approx(out)
        with pytest.raises(mutad.cuda.CudaError, match="INVALID_DEVICE"):
            cuda.driver(7)


def test_memory_of_the_host_is_no_array_of_a_device() -> None:
    class Wrong(ByAddress):
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return waves(8).__array_interface__

    f = mutad.compile(squared, opt=1)
    with emulated():
        u = mutad.device_array(waves(8))
        with pytest.raises(TypeError, match="argument 'u': its memory is no device's"):
            f(Wrong(u), 0.5)


class Borrowed:
    """An array of ours that another library has taken, on the default stream."""

    def __init__(self, x: mutad.DeviceArray, driver: Driver) -> None:
        self.held = dlpack.Borrowed(x.__dlpack__(stream=1))
        self.address = self.held.managed.tensor.data


def test_memory_that_goes_waits_for_whoever_has_used_it() -> None:
    """The library's copy runs late; what we compute next is not to be in what it copies."""
    f = mutad.compile(squared, grad=True, opt=1, cache=False)
    with emulated() as emulation:
        calls = Calls(emulation, drivers.begun["emulated"])
        u, kept = waves(64), mutad.device_array(np.zeros(64))
        target = address_of(kept.taken.array)
        wanted = f.grad(u.copy(), 0.5)
        taken = Borrowed(f.grad(mutad.device_array(u), 0.5), calls.driver)
        assert calls("cuMemcpyDtoDAsync", target, taken.address, 512, 1) == 0
        del taken
        others = [f.grad(mutad.device_array(u), 3.0) for _ in range(3)]
        assert others[0].copy_to_host()[1] != wanted[1]
        assert calls("cuStreamSynchronize", 1) == 0
        np.testing.assert_allclose(kept.copy_to_host(), wanted, rtol=1e-14)


def test_memory_that_goes_while_memory_is_taken_back_goes_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where Python collects garbage in between."""
    f = mutad.compile(squared, grad=True, opt=1)
    with emulated() as emulation:
        taken = emulation.take

        def collecting(block: int, stream: int) -> None:
            emulation.take_back()
            taken(block, stream)

        monkeypatch.setattr(emulation, "take", collecting)
        u = waves(64)
        for _ in range(3):
            f.grad(mutad.device_array(u), 0.5)
        there = mutad.device_array(u)
        assert there.copy_to_host().tobytes() == u.tobytes()
        assert emulation.unexpected == []


# Whether there is a device.

Answers = dict[str, Any]
LIBRARY: Answers = {"version": 13000, "init": 0, "count": 1, 75: 9, 76: 0, 115: 1}
MISSING: dict[str, tuple[Answers, str]] = {
    "an old driver": ({"version": 12090}, r"knows CUDA 12\.9: update it to r580 \(CUDA 13\.0\)"),
    "no device": ({"init": 100}, r"finds no device: CUDA_VISIBLE_DEVICES='-1' is set"),
    "two versions": ({"init": 803}, "of different versions: reboot"),
    "a fork": ({"init": 3}, "multiprocessing's 'spawn'"),
    "another error": ({"init": 38}, r"does not begin \(cuInit: error 38\)"),
    "no devices": ({"count": 0}, "finds no device"),
    "an old device": ({75: 6, 76: 1}, "the device is sm_61: mutad makes code from sm_70 on"),
    "no pools": ({115: 0}, "no stream-ordered memory"),
}


@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_is_said(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, why = MISSING[name]
    told = LIBRARY | answers

    class Library:
        def __init__(self, _: str) -> None: ...

        def cuDriverGetVersion(self, at: Any) -> int:
            at._obj.value = told["version"]
            return 0

        def cuInit(self, _: int) -> int:
            return told["init"]

        def cuDeviceGetCount(self, at: Any) -> int:
            at._obj.value = told["count"]
            return 0

        def cuDeviceGetAttribute(self, at: Any, number: int, _: int) -> int:
            at._obj.value = told[number]
            return 0

    monkeypatch.setattr(ctypes, "CDLL", Library)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    monkeypatch.setattr(cuda, "chosen", None)
    assert re.search(why, str(mutad.cuda.is_available()))


def test_memory_that_is_lost_is_noticed() -> None:
    with emulated() as emulation:
        with pytest.raises(AssertionError), nothing_is_lost(emulation):
            kept = mutad.device_array(waves(3))
        del kept


def test_what_garbage_holds_is_not_lost() -> None:
    with emulated() as emulation, nothing_is_lost(emulation):
        ring: list[Any] = [mutad.device_array(waves(3))]
        ring.append(ring)
        del ring
