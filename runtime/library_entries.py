"""One call of a library's function: arguments into a frame, results and exceptions out of it.

A *frame* is 8-byte words (`compiler.aot.python_entry`): the library reads its arguments there, and writes
where results are, or what was raised.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import keys, raised_exceptions, sites
from .keys import Array, address_of

REPORT_WORDS = 19
"""What the library tells of an exception: the site, a count, and the values that are shown."""
BREACHES = 64
"""From this kind on a status says that arguments are not as promised; before it are Python's exceptions."""
ALIGNMENT = 64
LARGEST_KEPT = 2**28
"""No larger work area waits for the next call."""
_threads = threading.local()

Tree = Any
"""What a function returns: None, the name of an "out" slot, the position of an argument that is returned
itself (of tangents: of the argument whose tangent it is), an `Either`, or a tuple of trees."""


@dataclass(frozen=True)
class Slot:
    """One C parameter: an "array" or a "number" that comes in, or the place of a result, "out"."""

    kind: str
    name: str
    type: str
    rank: int | None = None
    fresh: bool = False
    """Of a result that is an array: it is memory that the function has made, if it is no argument."""
    among: tuple[str, ...] = ()
    """The arrays that a result may be itself."""

    @property
    def words(self) -> int:
        return 1 if self.rank is None else 1 + 2 * self.rank

    @property
    def format(self) -> str:
        return sites.format_of(self.type) if self.rank is None else "q" * self.words


@dataclass(frozen=True)
class Either:
    """A number among the results that is Python's where a flag says so, and else NumPy's."""

    name: str
    type: str
    flag: int


@dataclass(frozen=True)
class Site:
    """A place that raises."""

    status: int
    exception: str
    message: str
    operands: list[str]
    note: str


_free = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]


class Block:
    """Memory of malloc, which is freed with the last array in it."""

    __slots__ = ("address",)

    def __init__(self, address: int) -> None:
        self.address = address

    def __del__(self) -> None:
        _free(self.address)


class Memory:
    """What an array lies in, and who keeps it."""

    __slots__ = ("__array_interface__", "owner")


def cpu_flags() -> set[str]:
    """The sets of instructions that this CPU has, by Linux's names; nothing where that is unknown."""
    try:
        with open("/proc/cpuinfo") as file:
            found = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return set()
    return set(found.partition(":")[2].split())


class Library:
    """The shared library of a package."""

    def __init__(self, folder: str, name: str, instructions: Sequence[str] = ()) -> None:
        if lacking := {*instructions} - (cpu_flags() or {*instructions}):
            raise ImportError(
                f"{name} was compiled for CPUs with {', '.join(sorted(lacking))}, which this CPU lacks: "
                "compile it for a lower level, as with mutadc --cpu x86-64-v2"
            )
        self.loaded = ctypes.CDLL(str(Path(folder) / f"lib{name}.so"))
        words = self.loaded[f"{name}_strerror"]
        words.restype, words.argtypes = ctypes.c_char_p, [ctypes.c_int]
        self.strerror = words

    def take(self, table: str, routines: Sequence[str]) -> None:
        """Hand BLAS to the library, which has a table of addresses."""
        from . import blas

        found = (ctypes.c_void_p * len(routines)).in_dll(self.loaded, table)
        found[:] = [blas.address_of(routine) for routine in routines]


@dataclass
class Entry:
    """One function of the library."""

    library: Library
    symbol: str
    slots: tuple[Slot, ...]
    sizes: tuple[tuple[str, int | None], ...] | None
    """What its work area depends on: names, and an axis of arrays. None where it allocates by itself."""
    sites: tuple[Site, ...] = ()
    result: Tree = None
    dots: Tree = None
    """The tangents of what it returns."""

    def __post_init__(self) -> None:
        self.call = self.library.loaded[f"{self.symbol}_python"]
        self.call.restype = ctypes.c_int
        self.count = sum(slot.words for slot in self.slots)
        self.format = "=" + "".join(slot.format for slot in self.slots)
        if self.sizes is not None:
            self.format += "qq"
            self.work_size = self.library.loaded[f"{self.symbol}_worksize"]
            self.work_size.restype = ctypes.c_int64
            self.work_size.argtypes = [ctypes.c_int64] * len(self.sizes)
        self.bytes = struct.calcsize(self.format)
        self.frame: Any = ctypes.c_char * (self.bytes + 8 * REPORT_WORDS)
        self.outs = {slot.name: slot for slot in self.slots if slot.kind == "out"}
        self.places = dict(self.numbered())
        self.returns_arrays = any(slot.rank is not None for slot in self.outs.values())

    def numbered(self) -> Iterator[tuple[str, int]]:
        """The first word of each slot, by its name."""
        at = 0
        for slot in self.slots:
            yield slot.name, at
            at += slot.words

    def run(self, given: Mapping[str, Any]) -> Results:
        """Call it: with arrays and numbers by the names of their slots."""
        words: list[Any] = []
        for slot in self.slots:
            if slot.kind == "number":
                words.append(given[slot.name])
            elif slot.kind == "out" or (value := given[slot.name]) is None:
                words += (0,) * slot.words
            else:
                size = value.itemsize
                words.append(address_of(value))
                words += value.shape
                words += [stride // size for stride in value.strides]
        area = None
        if self.sizes is not None:
            area, *more = self.area(given)
            words += more
        frame = self.frame()
        struct.pack_into(self.format, frame, 0, *words)
        status = self.call(frame)
        if status:
            raise self.exception(status, ctypes.addressof(frame) + self.bytes)
        return Results(self, given, area, frame, struct.unpack_from(self.format, frame))

    def area(self, given: Mapping[str, Any]) -> tuple[Array | None, int, int]:
        """A work area, where it begins, and its size; none where none is needed."""
        assert self.sizes is not None
        wanted: list[int] = []
        for name, axis in self.sizes:
            value = given[name]
            if axis is not None:
                value = 0 if value is None else value.shape[axis]
            wanted.append(value)
        size = self.work_size(*wanted)
        if size < 0:
            raise MemoryError(f"{self.symbol}: a call takes more memory than there can be")
        if size == 0:
            return None, 0, 0
        area = self.memory(size + ALIGNMENT)
        return area, -(-address_of(area) // ALIGNMENT) * ALIGNMENT, size

    def memory(self, size: int) -> Array:
        """So many bytes: what the last call in this thread left, if no results can lie in it."""
        if self.returns_arrays or size > LARGEST_KEPT:
            return np.empty(size, np.uint8)
        kept: Array | None = getattr(_threads, "area", None)
        if kept is None or kept.nbytes < size:
            kept = _threads.area = np.empty(size, np.uint8)
        return kept

    def exception(self, status: int, report: int) -> BaseException:
        """What a status says, with the values of the run where the program has raised."""
        number = ctypes.c_int64.from_address(report).value
        site = self.sites[number] if number < len(self.sites) else None
        if site is not None and site.status == status:
            shown = sites.operands(site.operands, report + 16)
            made = raised_exceptions.exception(site.exception, site.message, shown)
            if site.note:
                made.add_note(site.note)
            return made
        message = self.library.strerror(status).decode()
        if status & 0xFF < BREACHES:
            return MemoryError(message)
        way_out = ": pass a copy" if message.endswith(("share memory", "overlaps itself")) else ""
        return ValueError(message + way_out)


@dataclass
class Results:
    """What a call has left in its frame."""

    entry: Entry
    given: Mapping[str, Any]
    area: Array | None
    frame: Any
    words: tuple[Any, ...]
    arrays: dict[tuple[Any, ...], Any] = field(default_factory=dict[tuple[Any, ...], Any])
    """Those that are made, by where they are and what they are: one of these is one object."""
    blocks: dict[int, Block] = field(default_factory=dict[int, Block])

    def built(self, tree: Tree, itself: Mapping[int, Any]) -> Any:
        """What the function returns; `itself` has the arguments that it may return, by position."""
        if tree is None:
            return None
        if isinstance(tree, tuple):
            items: tuple[Tree, ...] = tree
            return tuple([self.built(item, itself) for item in items])
        if isinstance(tree, Either):
            is_python = self.frame[self.entry.bytes + 16 + 8 * tree.flag] != b"\0"
            return keys.SCALARS[tree.type](self[tree.name]) if is_python else self[tree.name]
        return itself[tree] if isinstance(tree, int) else self[tree]

    def __getitem__(self, name: str) -> Any:
        """One result."""
        slot, at = self.entry.outs[name], self.entry.places[name]
        if slot.rank is None:
            return keys.SCALARS[slot.type](self.words[at])
        return self.array(slot, self.words[at : at + slot.words])

    def array(self, slot: Slot, words: tuple[Any, ...]) -> Array:
        """The array that is described by these words."""
        assert slot.rank is not None
        data, shape, steps = words[0], words[1 : 1 + slot.rank], words[1 + slot.rank :]
        dtype = np.dtype(keys.NUMPY_SCALARS[slot.type])
        strides = tuple([step * dtype.itemsize for step in steps])
        for name in slot.among:
            argument = self.given[name]
            pairs = zip(shape, strides, argument.strides, strict=True)
            alike = address_of(argument) == data and argument.shape == shape
            if alike and all(n == 1 or s == t for n, s, t in pairs):
                return argument
        key = data, shape, strides, slot.type
        if key not in self.arrays:
            self.arrays[key] = self.made(slot, data, shape, strides, dtype)
        return self.arrays[key]

    def made(self, slot: Slot, data: int, shape: Any, strides: Any, dtype: np.dtype[Any]) -> Array:
        """An array object over the memory that the result lies in, or a copy of what is the library's."""
        owner = self.owner(slot, data, is_empty=0 in shape)
        if 0 in shape:
            return np.empty(shape, dtype)
        writeable = owner.flags.writeable if isinstance(owner, np.ndarray) else owner is not None  # pyright: ignore
        memory = Memory()
        memory.owner = owner
        memory.__array_interface__ = {
            "version": 3, "data": (data, not writeable), "shape": shape, "typestr": dtype.str,
            "strides": strides,
        }  # fmt: skip
        made = np.asarray(memory)
        if owner is None:
            return made.copy(order="K")
        # An array that keeps a much larger area alive is copied out of it.
        alone = sum(one.rank is not None for one in self.entry.outs.values()) == 1
        in_area = self.area is not None and owner is self.area
        if in_area and alone and 2 * made.nbytes < owner.nbytes:
            return made.copy(order="K")
        return made

    def owner(self, slot: Slot, data: int, *, is_empty: bool) -> Any:
        """Who keeps the memory at this address: the area, an argument, a block; None for a constant."""
        if self.area is not None and 0 <= data - address_of(self.area) < self.area.nbytes:
            return self.area
        if not is_empty:
            for value in self.given.values():
                if isinstance(value, np.ndarray) and value.size:  # pyright: ignore[reportUnknownMemberType]
                    low, high = np.lib.array_utils.byte_bounds(value)
                    if low <= data < high:
                        return value
        if self.entry.sizes is None and slot.fresh and not self.is_argument(data):
            if data not in self.blocks:
                self.blocks[data] = Block(data)
            return self.blocks[data]
        return None

    def is_argument(self, data: int) -> bool:
        """Whether an array that was given begins there."""
        return any(isinstance(v, np.ndarray) and address_of(v) == data for v in self.given.values())
