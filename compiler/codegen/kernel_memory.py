"""Where a kernel has its memory from: which variant of the support functions it is written against."""

from __future__ import annotations

from enum import Enum

from .support import area, callbacks, device
from .support.context import Functions
from .support.functions import ALLOCATING, FUNCTIONS


class KernelMemory(Enum):
    """In a Python process from the system; ahead of time from the caller's area, or from its allocator.

    `DEVICE`: arrays are a device's, and the host's own memory is from the system.
    """

    SYSTEM = "system"
    AREA = "area"
    ALLOCATOR = "allocator"
    DEVICE = "device"

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

    @property
    def polls(self) -> bool:
        """Whether long calls ask for interrupts."""
        return self in (KernelMemory.SYSTEM, KernelMemory.DEVICE)

    @property
    def ending(self) -> tuple[str, ...]:
        """The functions after which a kernel has to run `mutad_end`."""
        return () if self is KernelMemory.AREA else (*ALLOCATING, device.DEVICE)
