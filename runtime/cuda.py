"""Devices of NVIDIA: whether there is one, and which runs what is called on its arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .cuda_error import CudaError as CudaError

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
    version, count = ctypes.c_int(), ctypes.c_int()
    if not driver.cuDriverGetVersion(ctypes.byref(version)) and version.value < LEAST_VERSION:
        return (
            f"the NVIDIA driver knows CUDA {version.value // 1000}.{version.value % 1000 // 10}: "
            "update it to r580 (CUDA 13.0) or later, which cuda.bindings needs"
        )
    if status := driver.cuInit(0):
        why = REFUSALS.get(status, f"the NVIDIA driver does not begin (cuInit: error {status})")
        return why + hidden() if status == NO_DEVICE else why
    if driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return REFUSALS[NO_DEVICE] + hidden()
    major, minor, pools = (attribute_of(driver, number) for number in (75, 76, 115))
    if 10 * major + minor < KINDS[0]:
        return f"the device is sm_{major}{minor}: mutad makes code from sm_{KINDS[0]} on"
    if not pools:
        return "the device has no stream-ordered memory (cuMemAllocAsync), as some virtual ones"
    if find_spec("cuda") is None or find_spec("cuda.bindings") is None:
        return "cuda.bindings is missing: pip install 'mutad[cuda]'"
    return ""


LEAST_VERSION = 13000
"""Of CUDA, as drivers number it: `cuda.bindings` needs a driver for its own major version."""
NO_DEVICE = 100
REFUSALS = {
    3: "this process was forked from one that has begun CUDA: start it by multiprocessing's 'spawn'",
    NO_DEVICE: "the NVIDIA driver finds no device",
    802: "the NVIDIA driver is not ready yet: its services (nvidia-fabricmanager) are still starting",
    803: "the NVIDIA driver's library and its kernel module are of different versions: reboot",
    804: "the NVIDIA driver is newer than this kind of device may use (cuda-compat): take the system's own",
    999: "the NVIDIA driver does not begin (cuInit: error 999): is the module nvidia_uvm loaded?",
}
"""Why `cuInit` has refused."""


def hidden() -> str:
    """What may hide devices."""
    import os

    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "" if shown is None else f": CUDA_VISIBLE_DEVICES={shown!r} is set"


def attribute_of(driver: Any, number: int) -> int:
    """An attribute of the first device; 0 where it does not say."""
    import ctypes

    found = ctypes.c_int()
    driver.cuDeviceGetAttribute(ctypes.byref(found), number, 0)
    return found.value


def driver(number: int | None = None) -> Driver:
    """The driver in use, of the device of this number. RuntimeError where there is no device."""
    global chosen
    if chosen is None:
        if reason := missing():
            raise RuntimeError(f"there is no device to run on: {reason}")
        from .drivers import real

        chosen = real()
    if number is None or number == chosen.number:
        return chosen
    from .drivers import numbered

    return numbered(chosen, number)


def target_of(device: Driver, asked: str) -> str:
    """What code is made for, for a device; ValueError where it cannot run what was `asked` for."""
    if device.kind_of_driver != "cuda":
        return f"cuda:{device.kind_of_driver}"
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


def not_called(target: str, function: Any, keys: Iterable[str]) -> str:
    """Why a function compiled for a device is not called on arrays of the host; `keys`: of its arguments."""
    names = getattr(getattr(function, "__code__", None), "co_varnames", ())
    arrays = [name for name, key in zip(names, keys, strict=False) if "[" in key]
    made = f" (mutad.device_array({arrays[0]}))" if arrays else ""
    way_out = f"pass arrays of a device{made}"
    lacking = missing() if chosen is None else ""
    return (
        f"code for target={target!r} runs on a device: {f'{lacking}; ' if lacking else ''}{way_out}"
    )
