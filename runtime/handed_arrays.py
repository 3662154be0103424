"""Arrays of a call, as compiled code takes them and as the runtime has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import memory
from .keys import Array, overlaps_itself
from .resident import Resident

if TYPE_CHECKING:
    from .device import Driver


def lowest(array: Array) -> int:
    """The first address of its elements."""
    return memory.bounds(memory.placed(array))[0]


def is_dense(array: Array) -> bool:
    """Whether its elements are all that is between the first and the last of them."""
    low, high = memory.bounds(memory.placed(array))
    return high - low == array.nbytes and not overlaps_itself(array)


def lie_alike(target: Array, source: Array) -> bool:
    """Whether a copy of all bytes is one of the elements, and of no others."""
    return (
        (target.shape, target.strides, target.dtype) == (source.shape, source.strides, source.dtype)
        and is_dense(target)
        and not np.may_share_memory(target, source)
    )


class Handed:
    """The arrays of one call, as compiled code takes them, and as the runtime has them."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.known: dict[int, Array] = {}
        """What the runtime has, by the identity of what compiled code is given."""
        self.staged: list[tuple[Array, Resident]] = []
        """Arrays of the host, which the runtime has made, and their copies on the device."""
        self.plain: list[Array] = []

    def over(self, value: Any) -> Any:
        if type(value) is tuple:
            items: tuple[Any, ...] = value
            return tuple(self.over(item) for item in items)
        if not isinstance(value, np.ndarray):
            return value
        array: Any = value
        if not isinstance(array, Resident):
            if any(np.may_share_memory(own, value) for own, _ in self.staged):
                raise SystemError("mutad: arrays of the host that share memory reach a device")
            array = self.driver.upload(array)
            self.staged.append((value, array))
        plain = array.view(np.ndarray)
        self.known[id(plain)] = value
        self.plain.append(plain)
        return plain

    def take_back(self) -> None:
        """Compiled code may have stored to what was copied."""
        for own, copy in self.staged:
            if own.flags.writeable:
                own[...] = self.driver.download(copy)

    def shown(self, value: Any) -> Any:
        """What compiled code returns, as the runtime has it."""
        if type(value) in (tuple, list):
            return type(value)(map(self.shown, value))
        if not isinstance(value, np.ndarray):
            return value
        return (
            self.known.get(id(value)) if id(value) in self.known else value.view(self.driver.kind)
        )
