"""Where a kernel has its memory from: which variant of the support functions it is written against."""

from __future__ import annotations

from enum import Enum

from .support import area, callbacks, device
from .support.context import Functions
from .support.functions import ALLOCATING, FUNCTIONS


class KernelMemory(Enum):
    """In a Python process from the system; ahead of time from the caller's area, or from its allocator.

    `DEVICE`: arrays are a device's, and the host's own memory is from the system. Ahead of time these arrays
    are in an area of the device that the caller has, or from the pool of its driver, and the host's own
    memory is malloc's.
    """

    SYSTEM = "system"
    AREA = "area"
    ALLOCATOR = "allocator"
    DEVICE = "device"
    DEVICE_AREA = "device-area"
    DEVICE_POOL = "device-pool"

    @property
    def functions(self) -> Functions:
        match self:
            case KernelMemory.SYSTEM:
                return FUNCTIONS
            case KernelMemory.AREA:
                return area.FUNCTIONS
            case KernelMemory.ALLOCATOR:
                return callbacks.FUNCTIONS
            case KernelMemory.DEVICE:
                return device.FUNCTIONS
            case KernelMemory.DEVICE_AREA:
                return device.AREA_FUNCTIONS
            case KernelMemory.DEVICE_POOL:
                return device.POOL_FUNCTIONS

    @property
    def launches(self) -> bool:
        """Whether arrays are a device's."""
        return self in (
            KernelMemory.DEVICE,
            KernelMemory.DEVICE_AREA,
            KernelMemory.DEVICE_POOL,
        )

    @property
    def polls(self) -> bool:
        """Whether long calls ask for interrupts."""
        return self in (KernelMemory.SYSTEM, KernelMemory.DEVICE)

    @property
    def ending(self) -> tuple[str, ...]:
        """The functions after which a kernel has to run `mutad_end`."""
        return () if self is KernelMemory.AREA else (*ALLOCATING, device.DEVICE)
