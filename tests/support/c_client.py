"""Calls the C functions of a library through ctypes, as its header says that they are called."""

from __future__ import annotations

import ctypes
import ctypes.util
from pathlib import Path
from typing import Any

import numpy as np

from mutad.compiler.aot.exports import Export, Parameter
from mutad.compiler.aot.library import Library, compile_exports
from mutad.compiler.aot.linking import shared_library
from mutad.compiler.aot.signature import ArrayParameter, CFunction, OutParameter, ScalarParameter
from mutad.compiler.codegen.kernel_memory import KernelMemory
from mutad.compiler.pipeline import Options
from mutad.runtime.captures import captures_of
from mutad.runtime.keys import argument_key

C = {
    "py_float": ctypes.c_double, "f64": ctypes.c_double, "f32": ctypes.c_float,
    "py_int": ctypes.c_int64, "py_bool": ctypes.c_bool, "b1": ctypes.c_bool,
    **{f"i{n}": getattr(ctypes, f"c_int{n}") for n in (8, 16, 32, 64)},
    **{f"u{n}": getattr(ctypes, f"c_uint{n}") for n in (8, 16, 32, 64)},
}  # fmt: skip
DTYPE = {"b1": "?", "f64": "f8", "f32": "f4"}
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


class Allocator(ctypes.Structure):
    _fields_ = [("allocate", MALLOC), ("release", FREE), ("state", ctypes.c_void_p)]


class Memory:
    """An allocator that knows what is not given back."""

    def __init__(self) -> None:
        self.live: dict[int, Any] = {}

        def allocate(state: Any, size: int) -> int:
            block = ctypes.create_string_buffer(size)
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
    found = np.empty(shape, DTYPE.get(dtype, dtype))
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

    def __init__(self, folder: Path, name: str, *exports: Export, **options: Any) -> None:
        self.library: Library = compile_exports(name, exports, Options(**options))
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
        """Call with arguments in order, but those that come out; results by name.

        `less` bytes of work area are missing; null is passed for what is to `skip`.
        """
        f, values, given, outs = self.functions[symbol], list(arguments), [], {}
        named: dict[str, Any] = {}
        keep: list[Any] = []
        for p in f.parameters:
            match p:
                case ScalarParameter():
                    named[p.name] = values.pop(0)
                    given.append(C[p.type](named[p.name]))
                case ArrayParameter():
                    array = named[p.name] = values.pop(0)
                    keep.append(None if array is None else described(array))
                    given.append(None if array is None else ctypes.byref(keep[-1]))
                case OutParameter():
                    place = C[p.type]() if p.rank is None else (ctypes.c_int64 * (1 + 2 * p.rank))()
                    outs[p.name] = p, place
                    given.append(None if p.name in skip else ctypes.byref(place))
        assert not values
        memory = Memory()
        if f.memory is KernelMemory.AREA:
            size = self.work_size(f, named) - less
            area = np.full(max(size, 0) + 128, 0xA5, np.uint8)
            start = -(-area.ctypes.data // 64) * 64
            given += [ctypes.c_void_p(start), ctypes.c_int64(size)]
        else:
            given.append(ctypes.byref(memory.allocator))
        status = self.loaded[symbol](*given)
        if status:
            assert not memory.live
            raise Failed(status, self.strerror(status))
        if f.memory is KernelMemory.AREA:
            assert (area[start - area.ctypes.data + max(size, 0) :] == 0xA5).all()
        found = {
            name: place.value if p.rank is None else read(place, p.type)
            for name, (p, place) in outs.items()
            if name not in skip
        }
        arrays = {place[0] for p, place in outs.values() if p.rank is not None}
        assert memory.live.keys() <= arrays
        return found
