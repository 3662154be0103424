"""The drivers that were begun in this process: NVIDIA's, one for each device; the emulated one."""

from __future__ import annotations

import functools
import os

from . import device_products
from .cuda_error import CudaError
from .device import Driver
from .driver_functions import CONDITIONAL_SINCE, NAMES

begun: dict[str, Driver] = {}
"""By name."""


def _forked() -> None:
    for driver in begun.values():
        driver.forked()


os.register_at_fork(after_in_child=_forked)


def release_memory() -> None:
    """Give back what the drivers keep."""
    for driver in begun.values():
        driver.release()


def numbered(first: Driver, number: int) -> Driver:
    """The device of this number, through the same driver as another one; CudaError where there is none."""
    name = first.kind_of_driver if number == 0 else f"{first.kind_of_driver}:{number}"
    if name not in begun:
        begun[name] = Driver(name, first.addresses, first.find_products, number)
    return begun[name]


@functools.cache
def real() -> Driver:
    """NVIDIA's. ImportError where `cuda.bindings` is missing, CudaError where there is no device."""
    from cuda.bindings import driver as bindings  # pyright: ignore

    found: dict[str, int] = {}
    for name in NAMES:
        status, address, _ = bindings.cuGetProcAddress(name.encode(), 12000, 0)  # pyright: ignore
        if int(status) or not address:  # pyright: ignore[reportUnknownArgumentType]
            raise CudaError(int(status), f"the NVIDIA driver has no {name}: update it")  # pyright: ignore
        found[name] = int(address)  # pyright: ignore[reportUnknownArgumentType]
    for name, version in CONDITIONAL_SINCE.items():
        status, address, _ = bindings.cuGetProcAddress(name.encode(), version, 0)  # pyright: ignore
        if not int(status) and address:  # pyright: ignore[reportUnknownArgumentType]
            found[name] = int(address)  # pyright: ignore[reportUnknownArgumentType]
    begun["cuda"] = made = Driver("cuda", found, device_products.find)
    return made
