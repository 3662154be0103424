"""Where a kernel has its memory from: which variant of the support functions it is written against."""

from __future__ import annotations

from enum import Enum

from . import support, support_area, support_callbacks


class KernelMemory(Enum):
    """In a Python process from the system; ahead of time from the caller's area, or from its allocator."""

    SYSTEM = "system"
    AREA = "area"
    ALLOCATOR = "allocator"

    @property
    def functions(self) -> support.Functions:
        match self:
            case KernelMemory.SYSTEM:
                return support.FUNCTIONS
            case KernelMemory.AREA:
                return support_area.FUNCTIONS
            case KernelMemory.ALLOCATOR:
                return support_callbacks.FUNCTIONS

    @property
    def polls(self) -> bool:
        """Whether long calls ask for interrupts."""
        return self is KernelMemory.SYSTEM

    @property
    def ending(self) -> tuple[str, ...]:
        """The functions after which a kernel has to run `mutad_end`."""
        return () if self is KernelMemory.AREA else support.ALLOCATING
