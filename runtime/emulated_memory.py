"""Memory of the emulated driver: addresses that nobody reads by accident, blocks, copies.

Addresses are reserved and not accessible; what is there lies `shift` bytes further on. New memory is full of
NaN, and freed memory is known as such.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
from typing import Any

from . import driver_functions
from .driver_functions import NUMBER, POINTER, SIZE
from .emulated_functions import ILLEGAL_ADDRESS, INVALID_VALUE, OUT_OF_MEMORY, Refused
from .emulated_handles import EmulatedHandles, put
from .emulated_streams import Stream
from .emulated_table import GIVEN

ADDRESSES = 1 << 34
"""Bytes of the emulated device's memory; the host's pages are taken where they are touched."""

FAR = 1 << 44
"""Where they are asked for: machine code and its constants must stay near each other (`reserved.py`)."""
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)

_numbers = itertools.count()
"""Of emulated drivers, each of which has addresses of its own."""


GARBAGE = 0xFF
"""What new memory is full of: NaN, as numbers."""


def fill_with(place: int, value: int, size: int) -> None:
    ctypes.memset(place, value, size)


def put_bytes(place: int, value: bytes) -> None:
    ctypes.memmove(place, value, len(value))


class EmulatedMemory(EmulatedHandles):
    """The blocks that there are, and the functions of memory, by their names."""

    def __init__(self) -> None:
        super().__init__()
        libc: Any = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = POINTER
        libc.mmap.argtypes = (POINTER, SIZE, NUMBER, NUMBER, NUMBER, ctypes.c_long)
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
        far = FAR + 2 * ADDRESSES * next(_numbers)
        self.start: int = libc.mmap(far, ADDRESSES, 0, private, -1, 0)
        readable = mmap.PROT_READ | mmap.PROT_WRITE
        there: int = libc.mmap(far + ADDRESSES, ADDRESSES, readable, private, -1, 0)
        self.shift = there - self.start
        self.next = self.start
        self.blocks: dict[int, int] = {}
        """Bytes of each block that is allocated, by its address."""
        self.owners: dict[int, int] = {}
        """The device that each is on."""
        self.free: dict[int, list[int]] = {}
        """By size, blocks that were given back."""
        self.given = (ctypes.c_uint64 * (2 * GIVEN))()
        self.given_count = ctypes.c_uint64()
        self.taking = False

    def cuMemAllocAsync(self, place: int, size: int, stream: int) -> None:
        if not size:
            raise Refused(INVALID_VALUE)
        rounded = (size + 511) // 512 * 512
        own = [b for b in self.free.get(rounded, ()) if self.owners[b] == self.current]
        if own:
            block = own[-1]
            self.free[rounded].remove(block)
        else:
            block, self.next = self.next, self.next + rounded + 512  # what is between is nobody's
            if self.next > self.start + ADDRESSES:
                self.next = block
                raise Refused(OUT_OF_MEMORY)
        self.blocks[block] = rounded
        self.owners[block] = self.current
        self.spoil(block, rounded, self.stream(stream))
        put(place, block)

    def spoil(self, block: int, size: int, stream: Stream) -> None:
        """What is in it is undefined."""
        stream.do(lambda: fill_with(block + self.shift, GARBAGE, size))

    def take_back(self) -> None:
        """Blocks were given back by machine code: an array may go while an exception is on its way.

        Garbage that Python collects meanwhile comes here again: the first call takes what it gives back.
        """
        if self.taking:
            return
        self.taking, taken = True, 0
        try:
            while taken < min(self.given_count.value, GIVEN):
                block, stream = self.given[2 * taken], self.given[2 * taken + 1]
                taken += 1
                self.take(block, stream)
        finally:
            self.given_count.value, self.taking = 0, False

    def take(self, block: int, stream: int) -> None:
        if block not in self.blocks:
            self.unexpected.append(ValueError(f"freed twice, or never allocated: {block:#x}"))
            return
        size = self.blocks.pop(block)
        self.spoil(block, size, self.known(stream, Stream))
        self.free.setdefault(size, []).append(block)

    def host(self, address: int, size: int) -> int:
        """Where memory of the device is, all of which is allocated."""
        at = self.block_of(address)
        if at is None or address + size > at + self.blocks[at]:
            raise Refused(ILLEGAL_ADDRESS)
        return address + self.shift

    def block_of(self, address: int) -> int | None:
        at = max((b for b in self.blocks if b <= address), default=None)
        return at if at is not None and address <= at + self.blocks[at] else None

    def was_freed(self, address: int) -> bool:
        """Whether an address is in a block that was given back. (Views of nothing begin before a block.)"""
        return any(
            block <= address < block + size for size, given in self.free.items() for block in given
        )

    def cuPointerGetAttribute(self, place: int, attribute: int, address: int) -> None:
        block = self.block_of(address)
        if block is None or attribute not in (
            driver_functions.MEMORY_TYPE,
            driver_functions.ORDINAL,
        ):
            raise Refused(INVALID_VALUE)
        is_type = attribute == driver_functions.MEMORY_TYPE
        found = driver_functions.OF_DEVICE if is_type else self.owners[block]
        ctypes.c_int.from_address(place).value = found

    def cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: int) -> None:
        """Memory of the host that may be paged out is copied before this returns."""
        to, value = self.host(target, size), ctypes.string_at(source, size)
        self.stream(stream).do(lambda: put_bytes(to, value))

    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> None:
        start = self.host(source, size)
        self.stream(stream).drain()
        ctypes.memmove(target, start, size)

    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> None:
        to, start = self.host(target, size), self.host(source, size)
        self.stream(stream).do(lambda: put_bytes(to, ctypes.string_at(start, size)))

    def cuMemsetD8Async(self, target: int, value: int, count: int, stream: int) -> None:
        self.fill(target, value.to_bytes(1, "little"), count, stream)

    def cuMemsetD16Async(self, target: int, value: int, count: int, stream: int) -> None:
        self.fill(target, value.to_bytes(2, "little"), count, stream)

    def cuMemsetD32Async(self, target: int, value: int, count: int, stream: int) -> None:
        self.fill(target, value.to_bytes(4, "little"), count, stream)

    def fill(self, target: int, value: bytes, count: int, stream: int) -> None:
        if target % len(value):
            raise Refused(INVALID_VALUE)
        at = self.host(target, len(value) * count)
        self.stream(stream).do(lambda: put_bytes(at, value * count))
