"""Load object code into the process and make Python callables of its entries.

Each module becomes a library of its own, unloaded when the last callable made from it is gone. A few
share one of LLVM's JIT linkers, which keeps the frames of unloaded libraries as long as it lives: until all
of its libraries are gone. Loading needs llvmlite and nothing of the compiler.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import itertools
import struct
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from . import debugging, gemm, result_pool, step_stack, thread_pool
from .keys import Array
from .native_code import LIBC, compiling, libc_address, numpy_address

Metadata = dict[str, Any]

METH_FASTCALL, METH_KEYWORDS = 0x80, 0x02


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_make_function = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.py_object
)(("PyCFunction_NewEx", ctypes.pythonapi))


_retired: list[list[_MethodDef]] = []
"""Definitions whose library is unloaded, until the collector has ended."""


def unload(tracker: Any, methods: list[_MethodDef]) -> None:
    """Unload a library. A builtin of the same garbage may go later, and reads its definition then."""
    _retired.append(methods)
    if drop_retired not in gc.callbacks:
        gc.callbacks.append(drop_retired)
    tracker.close()


def drop_retired(phase: str, _: dict[str, int]) -> None:
    """A collection begins or ends: at its end all of its garbage is gone."""
    if phase == "stop":
        _retired.clear()


def unloading(tracker: Any, methods: list[_MethodDef]) -> Array:
    """An object that unloads the tracker's library when it goes, after all else that goes with it.

    Of a cycle of garbage the collector finalizes what it tracks in any order, and some of that calls the
    library: records of `vjp` do, to give their memory back. It does not track arrays: one goes when nothing
    refers to it any more, and no finalizer is left to run.
    """
    loaded = np.empty(0)
    weakref.finalize(loaded, unload, tracker, methods).atexit = False
    return loaded


class EntryCode:
    """Loaded entries of many libraries, as long as one of them is there; or what they all call."""

    __slots__ = ("__weakref__", "_is_named", "addresses", "loaded", "made", "support")

    def __init__(
        self,
        made: tuple[bytes, Metadata],
        addresses: dict[str, int],
        loaded: Array,
        support: EntryCode | None = None,
    ) -> None:
        self.made = made
        """Object code and metadata."""
        self.addresses = addresses
        """Kind of call, or name of a support function -> where it is."""
        self.loaded = loaded
        self.support = support
        """What it is linked against."""
        self._is_named = False

    def name(self) -> None:
        """Tell the profiler what these functions are called, and those that they call."""
        if self._is_named:
            return
        self._is_named = True
        object_code, metadata = self.made
        loaded = {metadata["entries"][kind]: place for kind, place in self.addresses.items()}
        debugging.name_functions(object_code, loaded, {})
        if self.support is not None:
            self.support.name()


class Library(str):
    """A loaded module. Callables made from it keep it alive (it is their `__module__`)."""

    __slots__ = (
        *("_addresses", "_code", "_entries", "_loaded", "_methods", "_source", "_support"),
        *("shared", "shorter", "whole"),
    )
    _loaded: Array
    _addresses: dict[str, int]
    _methods: list[_MethodDef]
    _source: Metadata | None
    _code: bytes
    """What its links tell entries (`compiler.codegen.entries.writer.CODE`)."""
    _entries: tuple[EntryCode, Array] | None
    """The entries that it shares with others, and what keeps them loaded (as `unloading` says)."""
    _support: EntryCode | None
    """The functions that it is linked against."""
    whole: int | None
    """Where the kernel for short tapes is, if there may be one for long ones."""
    shared: Sequence[EntryCode]
    """What it is linked against besides."""
    shorter: Library | None
    """Of code for long tapes, that for short ones, which it calls."""

    @staticmethod
    def of(
        name: str,
        tracker: Any,
        entries: dict[str, str] | EntryCode,
        code: bytes = b"",
        source: Metadata | None = None,
        support: EntryCode | None = None,
    ) -> Library:
        """The library that the tracker keeps loaded; `entries` maps kinds of call to its symbols, if they
        are its own.

        `source` says what its callables are called in Python's frames, where they are to have some.
        """
        made = Library(name)
        made._methods = []
        made._loaded = unloading(tracker, made._methods)
        made._code = code
        if isinstance(entries, EntryCode):
            made._addresses, made._entries = entries.addresses, (entries, entries.loaded)
        else:
            made._addresses = {kind: tracker[symbol] for kind, symbol in entries.items()}
            made._entries = None
        made._source, made._support = source, support
        made.whole, made.shorter, made.shared = None, None, ()
        return made

    def beside(self, entries: EntryCode) -> Library:
        """The same library, called through other entries."""
        if debugging.is_profiled():
            entries.name()
        made = Library(self)
        made._methods, made._loaded = self._methods, self._loaded
        made._code, made._source, made._support = self._code, self._source, self._support
        made._addresses, made._entries = entries.addresses, (entries, entries.loaded)
        made.whole, made.shorter, made.shared = self.whole, self.shorter, self.shared
        return made

    def function(self, kind: str, link: Any, doc: str, name: str = "") -> Callable[..., Any]:
        """A builtin function over the entry of this kind, with `link` as its `__self__`; called as the entry
        is, or by a name."""
        link.code = self._code
        name = "__call__" if kind == "primal" else name or kind
        method = _MethodDef(
            name.encode(), self._addresses[kind], METH_FASTCALL | METH_KEYWORDS, doc.encode()
        )
        self._methods.append(method)
        entry = _make_function(ctypes.byref(method), link, self)
        return entry if self._source is None else debugging.with_frame(entry, kind, self._source)


LIBRARIES = 32
"""How many libraries share a linker. Making a linker takes as long as linking two libraries."""


class Linkers:
    """LLVM's JIT linkers, one after the other."""

    def __init__(self) -> None:
        self.latest: Any = None

    def of(self, number: int) -> Any:
        """The linker of the library of this number."""
        from llvmlite import binding

        if self.latest is None or number % LIBRARIES == 0:
            binding.initialize_native_target()
            binding.initialize_native_asmprinter()
            self.latest = binding.create_lljit_compiler()
        return self.latest


linkers = Linkers()
_counter = itertools.count()
entry_linkers = Linkers()
"""Entries live longer than most libraries."""
_entry_counter = itertools.count()


def load(
    object_code: bytes,
    metadata: Metadata,
    name: str,
    instead: Mapping[str, int] = MappingProxyType({}),
    entries: EntryCode | None = None,
    support: EntryCode | None = None,
    shared: Sequence[EntryCode] = (),
) -> Library:
    """Link the object code against Python, NumPy, libc and what else its metadata names.

    `instead` gives external symbols, and the pool of large blocks, other addresses than their own, also for
    the `support` functions and what else is `shared`. `entries` are those of the module, where it has
    none itself.
    """
    with compiling:
        if support is not None and not instead.keys().isdisjoint(support.made[1]["symbols"]):
            support = load_entries(*support.made, instead=instead)
            shared = [load_entries(*one.made, support, instead) for one in shared]
        own = metadata["entries"] if entries is None else {}
        parts = parts_of(object_code, metadata)
        exports = [*metadata["code"].values(), *own.values()]
        shared_at = {name: at for one in shared for name, at in one.addresses.items()}
        addresses = addresses_of(metadata, {**shared_at, **instead}, support)
        source = metadata.get("source") or {}
        if source.get("debug"):
            tracker: Any = debugging.DebuggedLibrary(object_code, addresses)
        else:
            number = next(_counter)
            jit, unique = linkers.of(number), f"mutad.{number}.{name}"
            if source and debugging.is_profiled():
                exports += debugging.entered(parts)
            tracker = linked(jit, unique, parts, addresses, exports)
        if source and debugging.is_profiled():
            loaded = {symbol: tracker[symbol] for symbol in exports}
            for part in parts:
                debugging.name_functions(part, loaded, source)
            for one in (entries, support, *shared):
                if one is not None:  # a profiler may have come after it was loaded
                    one.name()
        places = {"pool": instead.get(POOL) or ctypes.addressof(result_pool.scratch_pool)}
        places |= {what: tracker[symbol] for what, symbol in metadata["code"].items()}
        code = struct.pack(f"{len(CODE)}N", *(places.get(what, 0) for what in CODE))
        called = source if source.get("debug") else None
        made = Library.of(name, tracker, own if entries is None else entries, code, called, support)
        made.whole, made.shared = places.get("whole"), shared
        return made


def load_entries(
    object_code: bytes,
    metadata: Metadata,
    support: EntryCode | None = None,
    instead: Mapping[str, int] = MappingProxyType({}),
) -> EntryCode:
    """Link entries, or support functions, that libraries share."""
    with compiling:
        exports = metadata["entries"]
        number = next(_entry_counter)
        jit, name = entry_linkers.of(number), f"mutad.entries.{number}"
        symbols = list(exports.values())
        tracker = linked(
            jit, name, [object_code], addresses_of(metadata, instead, support), symbols
        )
        places = {kind: tracker[symbol] for kind, symbol in exports.items()}
        return EntryCode((object_code, metadata), places, unloading(tracker, []), support)


CODE = ("pool", "kernel", "backward", "drop")
"""The addresses that entries are told of a library (`compiler.codegen.entries.writer.CODE`)."""
POOL = "mutad_pool"
"""What the pool of large blocks is called where another one is given."""


def addresses_of(
    metadata: Metadata, instead: Mapping[str, int], support: EntryCode | None
) -> dict[str, int]:
    """The external symbols of a module that the process itself does not resolve."""
    supporting = {} if support is None else support.addresses
    if {"libmvec", "vector_math"} & set(metadata["symbols"].values()):
        load_vector_math()
    addresses: dict[str, int] = {}
    for symbol, kind in metadata["symbols"].items():
        own = supporting[symbol] if kind == "support" else None
        address = instead.get(symbol) or own or address_of(symbol, kind)
        if address is not None:
            addresses[symbol] = address
    return addresses


def parts_of(object_code: bytes, metadata: Metadata) -> list[bytes]:
    """The object files of a library."""
    sizes = metadata.get("parts", [len(object_code)])
    ends = itertools.accumulate(sizes)
    return [object_code[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def linked(
    jit: Any,
    name: str,
    parts: Sequence[bytes],
    addresses: Mapping[str, int],
    exports: Sequence[str],
) -> Any:
    """The library, as long as what is returned is not closed."""
    from llvmlite import binding

    builder = binding.JITLibraryBuilder()
    for part in parts:
        builder.add_object_img(part)
    builder.add_current_process()
    for symbol, address in addresses.items():
        builder.import_symbol(symbol, address)
    for symbol in exports:
        builder.export_symbol(symbol)
    return builder.link(jit, name)


WHOLE = "mutad_whole"
"""What code for long tapes calls the kernel for short ones."""


def of_device(metadata: Metadata, driver: str) -> dict[str, int]:
    """The symbols of a module that are those of a device's driver."""
    symbols = [s for s, kind in metadata["symbols"].items() if kind.startswith("device ")]
    if not symbols:
        return {}
    from . import drivers

    return {symbol: drivers.begun[driver].address(symbol) for symbol in symbols}


def address_of(symbol: str, kind: str) -> int | None:
    """Where an external symbol is; None where the process's own symbols will do."""
    if kind == "numpy":
        return numpy_address(symbol)
    if kind == "arrays":
        return ctypes.addressof(result_pool.arrays_table())
    if kind == "steps":
        return step_stack.address(symbol)
    if kind == "threads":
        return thread_pool.address(symbol)
    if symbol.startswith(LIBC):
        return libc_address(symbol)
    if kind == "blas":
        return gemm.address_of(symbol)
    return None


@functools.cache
def load_vector_math() -> bool:
    """Make glibc's vector math functions visible to the linker; False where there are none."""
    try:
        ctypes.CDLL("libmvec.so.1", mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return True
