"""Calls the C functions of a library through ctypes, as its header says that they are called."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mutad.compiler.aot.exports import Export, Parameter
from mutad.compiler.aot.library import Library, compile_exports
from mutad.compiler.aot.linking import shared_library
from mutad.compiler.aot.signature import ArrayParameter, CFunction, OutParameter, ScalarParameter
from mutad.compiler.codegen.kernel_memory import KernelMemory
from mutad.compiler.request import Options
from mutad.runtime.captures import captures_of
from mutad.runtime.keys import argument_key

C = {
    "py_float": ctypes.c_double, "f64": ctypes.c_double, "f32": ctypes.c_float,
    "py_int": ctypes.c_int64, "py_bool": ctypes.c_bool, "b1": ctypes.c_bool,
    **{f"i{n}": getattr(ctypes, f"c_int{n}") for n in (8, 16, 32, 64)},
    **{f"u{n}": getattr(ctypes, f"c_uint{n}") for n in (8, 16, 32, 64)},
}  # fmt: skip
DTYPE = {"b1": "?", **{f"{kind}{n}": f"{kind}{n // 8}" for kind in "fiu" for n in (8, 16, 32, 64)}}
MALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def export(
    function: Any,
    parameters: dict[str, str],
    mode: str = "primal",
    wrt: tuple[int, ...] = (),
    **more: Any,
) -> Export:
    """An export of a function; `parameters` are keys, with names of extents behind: "f64[?]C n"."""
    made: list[Parameter] = []
    for name, text in parameters.items():
        key, *names = text.split()
        extents = tuple(int(n) if n.isdigit() else None if n == "_" else n for n in names)
        made.append(Parameter(name, key, extents))
    captured = captures_of(function)
    keys = tuple(argument_key(v, n) for v, n in zip(captured.values(), captured.names, strict=True))
    symbol = function.__name__ + ("" if mode == "primal" else f"_{mode}")
    return Export(symbol, function, tuple(made), mode, wrt, captured, keys, **more)


PROCESS = ctypes.CDLL(None, use_errno=True)
PROCESS.mmap.restype = ctypes.c_void_p
PROCESS.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
PROCESS.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
PROCESS.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
PAGE = mmap.PAGESIZE
BEFORE = 0x5A
"""The byte in front of guarded memory."""


@contextlib.contextmanager
def guarded(size: int, fill: int, align: int = 64) -> Iterator[int]:
    """The address of so many bytes `fill`, aligned; whoever touches the page behind them crashes.

    What lies before them must not change.
    """
    room = -(-size // align) * align
    pages = -(-room // PAGE) * PAGE + PAGE
    start = PROCESS.mmap(None, pages + PAGE, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    assert start not in (None, ctypes.c_void_p(-1).value)
    PROCESS.mprotect(start + pages, PAGE, 0)
    ctypes.memset(start, BEFORE, pages)
    address = start + pages - room
    ctypes.memset(address, fill, size)
    try:
        yield address
        assert ctypes.string_at(start, pages - room) == bytes([BEFORE]) * (pages - room), "underrun"
    finally:
        PROCESS.munmap(start, pages + PAGE)


class Allocator(ctypes.Structure):
    _fields_ = [("allocate", MALLOC), ("release", FREE), ("state", ctypes.c_void_p)]


class Memory:
    """An allocator that knows what is not given back."""

    def __init__(self, fill: int = 0xA5) -> None:
        self.live: dict[int, Any] = {}

        def allocate(state: Any, size: int) -> int:
            block = ctypes.create_string_buffer(size)
            ctypes.memset(block, fill, size)
            self.live[ctypes.addressof(block)] = block
            return ctypes.addressof(block)

        def release(state: Any, block: int, size: int) -> None:
            assert len(self.live.pop(block)) == size

        self.allocator = Allocator(MALLOC(allocate), FREE(release), None)


def described(array: Any) -> Any:
    """The struct of an array."""
    words = (ctypes.c_int64 * (1 + 2 * array.ndim))()
    words[0] = array.ctypes.data
    words[1:] = [*array.shape, *(s // array.itemsize for s in array.strides)]
    return words


def read(words: Any, dtype: str) -> Any:
    """A copy of the array that a struct describes."""
    rank = (len(words) - 1) // 2
    shape, steps = tuple(words[1 : 1 + rank]), words[1 + rank :]
    found = np.empty(shape, DTYPE[dtype])
    for place in np.ndindex(*shape):
        offset = sum(i * s for i, s in zip(place, steps, strict=True)) * found.itemsize
        found[place] = np.frombuffer(
            (ctypes.c_char * found.itemsize).from_address(words[0] + offset), found.dtype
        )[0]
    return found


class Failed(Exception):
    """A function has returned another status than 0."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(status, words)
        self.kind, self.words = status & 0xFF, words


class Client:
    """A library that is built and loaded."""

    def __init__(
        self, folder: Path, name: str, *exports: Export, levels: Any = (), **options: Any
    ) -> None:
        self.exports = exports
        self.library: Library = compile_exports(name, exports, Options(**options), levels=levels)
        code = self.library.object_code()
        self.path = folder / f"lib{name}.so"
        self.path.write_bytes(shared_library(name, code, self.library.promised))
        self.loaded = ctypes.CDLL(str(self.path))
        self.functions = {f.symbol: f for f in self.library.functions}

    def strerror(self, status: int) -> str:
        function = self.loaded[f"{self.library.name}_strerror"]
        function.restype = ctypes.c_char_p
        return function(status).decode()

    def work_size(self, f: CFunction, arguments: dict[str, Any]) -> int:
        """What `_worksize` says."""
        sizes: list[Any] = []
        for size in f.sizes:
            value = arguments[size.parameter]
            extents = (0,) * 8 if value is None else getattr(value, "shape", ())
            sizes.append(ctypes.c_int64(value if size.axis is None else extents[size.axis]))
        function = self.loaded[f"{f.symbol}_worksize"]
        function.restype = ctypes.c_int64
        return function(*sizes)

    def __call__(
        self, symbol: str, *arguments: Any, less: int = 0, skip: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Call with arguments in order, but those that come out; results by name."""
        given = [
            p.name for p in self.functions[symbol].parameters if not isinstance(p, OutParameter)
        ]
        return self.call(symbol, dict(zip(given, arguments, strict=True)), less=less, skip=skip)

    def call(
        self,
        symbol: str,
        values: Mapping[str, Any],
        *,
        less: int = 0,
        skip: tuple[str, ...] = (),
        fill: int = 0xA5,
    ) -> dict[str, Any]:
        """Call with arguments by name; results by name.

        `less` bytes of work area are missing; null is passed for what is to `skip`. All memory that the
        library gets is full of the byte `fill`.
        """
        f, given = self.functions[symbol], list[Any]()
        outs: dict[str, tuple[OutParameter, Any]] = {}
        keep: list[Any] = []
        for p in f.parameters:
            match p:
                case ScalarParameter():
                    given.append(C[p.type](values[p.name]))
                case ArrayParameter():
                    array = values[p.name]
                    keep.append(None if array is None else described(array))
                    given.append(None if array is None else ctypes.byref(keep[-1]))
                case OutParameter():
                    place = C[p.type]() if p.rank is None else (ctypes.c_int64 * (1 + 2 * p.rank))()
                    outs[p.name] = p, place
                    given.append(None if p.name in skip else ctypes.byref(place))
        if f.memory is KernelMemory.AREA:
            size = self.work_size(f, dict(values)) - less
            with guarded(max(size, 0), fill) as area:
                status = self.loaded[symbol](*given, ctypes.c_void_p(area), ctypes.c_int64(size))
                return self.results(status, outs, skip)
        memory = Memory(fill)
        status = self.loaded[symbol](*given, ctypes.byref(memory.allocator))
        assert not status or not memory.live
        found = self.results(status, outs, skip)
        blocks = {place[0] for p, place in outs.values() if p.rank is not None}
        assert memory.live.keys() <= blocks
        return found

    def results(
        self, status: int, outs: dict[str, tuple[OutParameter, Any]], skip: tuple[str, ...]
    ) -> dict[str, Any]:
        """What came out, copied; Failed where the status says so."""
        if status:
            raise Failed(status, self.strerror(status))
        return {
            name: place.value if p.rank is None else read(place, p.type)
            for name, (p, place) in outs.items()
            if name not in skip
        }
