"""Devices of NVIDIA: whether there is one, and which runs what is called on its arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .device import Driver

chosen: Driver | None = None
"""The driver in use, once there is one."""

KINDS = (70, 75, 80, 86, 89, 90, 100, 103, 120)
"""Kinds of devices that code is made for, by their two numbers: code for one runs on those that follow."""


@dataclass(frozen=True)
class Availability:
    """Whether functions run on a device; `reason` says why not, and what to do."""

    available: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.available

    def __str__(self) -> str:
        return "yes" if self.available else f"no: {self.reason}"


class CudaError(RuntimeError):
    """The driver of a device has refused something. `code` is its number."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def is_available() -> Availability:
    """Whether compiled functions can run on a device of this machine, and why not."""
    if chosen is not None:
        return Availability(available=True)
    reason = missing()
    return Availability(available=not reason, reason=reason)


def has_cublas() -> Availability:
    """Whether products of matrices go to cuBLAS, and why not: then they are kernels'."""
    if chosen is None and (reason := missing()):
        return Availability(available=False, reason=reason)
    used = driver()
    used.begin_products()
    return Availability(available=used.products is not None, reason=used.no_products)


def missing() -> str:
    """What this machine lacks; nothing where it has a device and its driver."""
    import ctypes
    from importlib.util import find_spec

    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no NVIDIA driver (libcuda.so.1)"
    status = driver.cuInit(0)
    if status:
        return f"the NVIDIA driver finds no device (cuInit: {status})"
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    if not count.value:
        return "the NVIDIA driver finds no device"
    if find_spec("cuda") is None or find_spec("cuda.bindings") is None:
        return "cuda.bindings is missing: pip install 'mutad[cuda]'"
    return ""


def driver() -> Driver:
    """The driver in use. RuntimeError where there is no device."""
    global chosen
    if chosen is None:
        if reason := missing():
            raise RuntimeError(f"there is no device to run on: {reason}")
        from .device import real

        chosen = real()
    return chosen


def target_of(device: Driver, asked: str) -> str:
    """What code is made for, for a device; ValueError where it cannot run what was `asked` for."""
    if device.name != "cuda":
        return f"cuda:{device.name}"
    major, minor = device.capability
    number = 10 * major + minor
    if asked.startswith("cuda:sm_"):
        wanted = int(asked.removeprefix("cuda:sm_").rstrip("a"))
        if wanted > number or (asked.endswith("a") and wanted != number):
            raise ValueError(f"target={asked!r}: the device here is sm_{number}")
        return asked
    known = [k for k in KINDS if k <= number]
    if not known:
        raise RuntimeError(
            f"the device here is sm_{number}: mutad makes code from sm_{KINDS[0]} on"
        )
    return f"cuda:sm_{known[-1]}"


def not_called(target: str) -> str:
    """Why a function compiled for a device is not called on arrays of the host."""
    way_out = "pass arrays of a device (mutad.device_array(u))"
    lacking = missing() if chosen is None else ""
    return (
        f"code for target={target!r} runs on a device: {f'{lacking}; ' if lacking else ''}{way_out}"
    )
