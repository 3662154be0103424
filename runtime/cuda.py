"""Devices of NVIDIA: whether there is one, and what cannot be done without."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Availability:
    """Whether functions run on a device; `reason` says why not, and what to do."""

    available: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.available

    def __str__(self) -> str:
        return "yes" if self.available else f"no: {self.reason}"


LAUNCHES = (
    "mutad launches no kernels yet: inspect('kernels') and inspect('ptx') show them, and target='cuda:host' "
    "runs them on the CPU"
)


def is_available() -> Availability:
    """Whether compiled functions can run on a device of this machine, and why not."""
    return Availability(available=False, reason=missing() or LAUNCHES)


def missing() -> str:
    """What this machine lacks; nothing where it has a device and its driver."""
    import ctypes

    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no NVIDIA driver (libcuda.so.1)"
    status = driver.cuInit(0)
    if status:
        return f"the NVIDIA driver finds no device (cuInit: {status})"
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    return "" if count.value else "the NVIDIA driver finds no device"


def not_called(target: str) -> str:
    """Why code for a device is not called."""
    lacking = missing()
    return (
        f"code for target={target!r} is not called: {f'{lacking}; ' if lacking else ''}{LAUNCHES}"
    )
