"""Machine code of our own LLVM text in the process, and the addresses that such code calls."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import disk_cache

compiling = threading.RLock()
"""Held while anything compiles, loads or is inspected: LLVM and the compiler serve one thread at a time."""

if hasattr(os, "register_at_fork"):
    # No thread of ours is inside LLVM when the process forks, so the child may use it.
    os.register_at_fork(
        before=compiling.acquire,
        after_in_parent=compiling.release,
        after_in_child=compiling.release,
    )


# Addresses.

LIBC = ("mutad_libc_", "mutad_entry_")
"""How the names begin of what the process has itself."""


def libc_address(symbol: str) -> int:
    """The address of a function of the process."""
    name = symbol.removeprefix(LIBC[0]).removeprefix(LIBC[1])
    return ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value or 0


ZEROS, SET_HANDLER, GET_HANDLER, DEFAULT_HANDLER = 183, 304, 305, 306
LAST_OF_NUMPY = DEFAULT_HANDLER
"""Places in NumPy's C-API table, part of its ABI, and the last that we read."""

_NUMPY_API = {
    "PyArray_New": 93,
    "PyArray_ToList": 86,
    "PyArray_Zeros": 183,
    "PyArray_Empty": 184,
    "PyArray_SetBaseObject": 282,
}
"""Places in NumPy's C-API table; part of its ABI."""


def numpy_address(symbol: str) -> int:
    """The address of a NumPy C-API function, of a NumPy type or of `np.True_`, `np.False_`."""
    if symbol in _NUMPY_API:
        return numpy_table()[_NUMPY_API[symbol]]
    name = symbol.removeprefix("mutad_numpy_")
    if name == "generator":
        return id(np.random.Generator)
    return id(getattr(np, {"true": "True_", "false": "False_"}.get(name, name)))


def numpy_table() -> Any:
    """NumPy's C-API, as numbers."""
    umath: Any = sys.modules["numpy._core._multiarray_umath"]
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    length = max(*_NUMPY_API.values(), LAST_OF_NUMPY) + 1
    return (ctypes.c_size_t * length).from_address(get_pointer(umath._ARRAY_API, None))


# Code.


def object_code(source: str, *, for_host: bool = False) -> bytes:
    """Machine code of LLVM text, from the disk cache where it is there; well made for the CPU that we run on,
    or quickly for any, as what runs seldom."""
    import hashlib

    from llvmlite import binding

    binding.initialize_native_target()  # who links the code needs it, too
    binding.initialize_native_asmprinter()
    cpu = binding.get_host_cpu_name() if for_host else ""
    features = binding.get_host_cpu_features().flatten() if for_host else ""
    made_by = source, cpu, features, binding.get_default_triple(), binding.llvm_version_info
    digest = hashlib.sha256(repr(made_by).encode()).hexdigest()
    place = f"mutad-pool-{digest}{disk_cache.SUFFIX}"
    if (cached := disk_cache.read(place)) is not None:
        return cached[0]
    code = emitted(source, cpu, features)
    disk_cache.write(place, code, {})
    return code


def emitted(source: str, cpu: str, features: str) -> bytes:
    """Machine code of LLVM text: written as it is to be, no passes run."""
    from llvmlite import binding

    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=cpu,
        features=features,
        opt=2 if cpu else 0,
        reloc="pic",
        codemodel="default",
        jit=True,
    )
    return machine.emit_object(binding.parse_assembly(source))


def addresses_in(
    source: str, symbols: dict[str, int], name: str, exports: Sequence[str]
) -> dict[str, int]:
    """Where the functions of LLVM text are, whose code is never unloaded."""
    code = linked(object_code(source), symbols, name, exports)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    return {symbol: code[symbol] for symbol in exports}


def linked(code: bytes, symbols: dict[str, int], name: str, exports: Iterable[str]) -> Any:
    """The code in the process, with a linker of its own: that of others goes with the last of them."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol, address in symbols.items():
        builder.import_symbol(symbol, address)
    for symbol in exports:
        builder.export_symbol(symbol)
    return builder.link(binding.create_lljit_compiler(), name)
