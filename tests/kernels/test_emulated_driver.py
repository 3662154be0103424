"""The emulated driver refuses what NVIDIA's does, with the same errors, and its streams run late."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_programs import waves

import mutad
from mutad.runtime import device, device_text, emulated_driver
from mutad.runtime.device import Driver
from mutad.runtime.emulated_driver import EmulatedDriver, Function, emulated
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
        calls = Calls(emulation, device.drivers["emulated"])
        assert calls.launch(calls.at, 64) == 0
        assert call(calls) == code


def test_nothing_is_called_before_the_driver_has_begun_or_without_a_context() -> None:
    made = EmulatedDriver()
    count = made.functions["cuDeviceGetCount"]
    assert count(PLACE) == emulated_driver.NOT_INITIALIZED
    assert made.functions["cuInit"](0) == 0
    assert count(PLACE) == 0
    assert made.functions["cuStreamCreate"](PLACE, 1) == emulated_driver.INVALID_CONTEXT


def test_a_capture_takes_no_copies_and_gives_nothing_back() -> None:
    with emulated() as emulation:
        calls = Calls(emulation, device.drivers["emulated"])
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
        assert refused == [emulated_driver.CAPTURE_UNSUPPORTED] * 4


def test_kernels_take_no_more_parameters_than_every_device_has_room_for() -> None:
    """Those with more are refused where they are loaded."""
    with emulated():
        driver = device.drivers["emulated"]
        image = {"kernels": ["k"], "parameters": [["i64"] * 513], "ranks": [[]], "sizes": [[]]}
        image |= {"ptx": "", "products": False, "symbols": {}, "code": "", "ir": ""}
        with pytest.raises(mutad.cuda.CudaError, match="INVALID_PTX"):
            driver.load(image)


def test_streams_run_when_somebody_waits_for_them() -> None:
    """A stream that does not wait for another one sees what was there before."""
    with emulated() as emulation:
        calls = Calls(emulation, device.drivers["emulated"])
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
    assert {*device.NAMES, *device_text.GEMMS} <= made.addresses.keys()
