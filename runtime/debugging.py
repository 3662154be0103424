"""Tell debuggers and profilers what compiled code is called, and which lines it comes from.

faulthandler, and all that reads Python's frames: code with debug information is called through a Python
function that has the user's name and file.

gdb: code with debug information is loaded by the linker of LLVM's that registers what it loads in gdb's JIT
interface (`__jit_debug_register_code`), and takes it out again when it is unloaded. Object code from the
disk cache goes the same way.

perf: `/tmp/perf-<pid>.map`, a line for each function: address, size, name, as Python itself writes it under
`-X perf`. We write where Python does, or where `MUTAD_PERF=1` asks.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


class DebuggedLibrary:
    """A loaded module that debuggers know, until it is closed."""

    def __init__(self, object_code: bytes, addresses: Mapping[str, int]) -> None:
        from llvmlite import binding

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        declared = [f'@"{symbol}" = external global i8' for symbol in addresses]
        module = binding.parse_assembly("\n".join(declared), binding.create_context())
        machine = binding.Target.from_default_triple().create_target_machine(jit=True)
        self._engine: Any = binding.create_mcjit_compiler(module, machine)
        for symbol, address in addresses.items():
            self._engine.add_global_mapping(module.get_global_variable(symbol), address)
        self._engine.add_object_file(binding.ObjectFileRef.from_data(object_code))
        self._engine.finalize_object()

    def __getitem__(self, symbol: str) -> int:
        return self._engine.get_function_address(symbol)

    def close(self) -> None:
        self._engine.close()


# Python's frames. ---------------------------------------------------------------------------------


def with_frame(
    entry: Callable[..., Any], kind: str, source: Mapping[str, Any]
) -> Callable[..., Any]:
    """The entry behind a Python function that has the name and the line of the user's.

    For who reads Python's frames: faulthandler, tracebacks, profilers of Python code. Which line it has come
    to the frame does not say: compiled code keeps no account of that.
    """
    shim = _shim(entry)
    name = source["backward"] if kind in ("back", "drop") else source["name"]
    code = shim.__code__
    shim.__code__ = code.replace(
        co_filename=source["file"], co_name=name, co_qualname=name, co_firstlineno=source["line"],
        co_linetable=first_line_only(len(code.co_code) // 2),
    )  # fmt: skip
    shim.__name__ = shim.__qualname__ = name
    shim.__module__ = source["module"]
    shim.__doc__ = entry.__doc__
    return shim


def _shim(entry: Callable[..., Any]) -> types.FunctionType:
    def called(*args: Any, **kwargs: Any) -> Any:
        return entry(*args, **kwargs)

    assert isinstance(called, types.FunctionType)
    return called


NO_COLUMNS = 13
"""The kind of an entry of a location table, as CPython's `InternalDocs/code_objects.md` has it."""


def first_line_only(instructions: int) -> bytes:
    """The location table in which this many code units are of the first line."""
    runs = [min(8, instructions - k) for k in range(0, instructions, 8)]
    return b"".join(bytes([0x80 | NO_COLUMNS << 3 | run - 1, 0]) for run in runs)


# perf's map. --------------------------------------------------------------------------------------

_written: list[bytes] = []
"""The lines of the map, for a child of this process: its map has another name."""


def is_profiled() -> bool:
    """Whether somebody wants the names of what is loaded now."""
    if os.environ.get("MUTAD_PERF") == "1":
        return True
    active = getattr(sys, "is_stack_trampoline_active", None)  # from Python 3.12 on
    return active is not None and active()


def name_functions(
    object_code: bytes, loaded: Mapping[str, int], source: Mapping[str, str]
) -> None:
    """Add the functions of a loaded module to perf's map; `loaded` says where some of them are.

    Nothing where the map cannot be written: a profile without names is no reason to fail.
    """
    lines = [
        f"{address:x} {size:x} {shown(symbol, source)}\n".encode("utf-8", "surrogateescape")
        for symbol, address, size in functions_at(object_code, loaded)
    ]
    _written.extend(lines)
    _append(lines)


def shown(symbol: str, source: Mapping[str, str]) -> str:
    """What users read for a function of a module, as Python writes its own; support functions stay."""
    stem, loop, where = symbol.partition(".")  # `kernel_body.body.7` is a loop of the kernel
    stem = stem.removesuffix("_body")
    if not source:
        return symbol
    if stem in ("kernel", "mutad_entry_primal"):
        name = source["name"]
    elif stem == "backward":
        name = source["backward"]
    elif stem.startswith("map_"):
        name = f"{source['name']}.{stem}"
    elif stem.startswith("activation_"):
        name = stem.removeprefix("activation_")
    else:
        return symbol
    return f"py::{name}{loop}{where}:{source['file']}"


def _append(lines: Sequence[bytes]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        descriptor = os.open(f"/tmp/perf-{os.getpid()}.map", flags, 0o600)
        try:
            os.write(descriptor, b"".join(lines))
        finally:
            os.close(descriptor)


def _write_again() -> None:
    if _written:
        _append(_written)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_write_again)


# Object files. ------------------------------------------------------------------------------------

ELF_64_LITTLE = b"\x7fELF\x02\x01"
SYMBOL_TABLE, FUNCTION, GLOBAL = 2, 2, 1
"""The type of a section, the type of a symbol, its binding."""


def functions_at(object_code: bytes, loaded: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Name, address and size of each function, of the sections of which a function's address is known."""
    functions = list(functions_of(object_code))
    base = {
        section: loaded[name] - offset for name, section, offset, _ in functions if name in loaded
    }
    named = set[tuple[int, int]]()
    for name, section, offset, size in functions:
        if section in base and size and (section, offset) not in named:
            named.add((section, offset))  # behind a function of its own name come its aliases
            yield name, base[section] + offset, size


def entered(parts: Sequence[bytes]) -> list[str]:
    """The functions of these object files that others call."""
    return [name for part in parts for name, *_ in functions_of(part, globals_alone=True)]


def functions_of(
    object_code: bytes, *, globals_alone: bool = False
) -> Iterator[tuple[str, int, int, int]]:
    """Name, section, offset in it, and size of each function in an ELF object file; none of any other."""
    if not object_code.startswith(ELF_64_LITTLE):
        return
    (table,) = struct.unpack_from("<Q", object_code, 40)
    entry, count = struct.unpack_from("<HH", object_code, 58)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", object_code, table + entry * k) for k in range(count)
    ]
    for _, kind, _, _, start, length, link, _, _, step in sections:
        if kind != SYMBOL_TABLE:
            continue
        names = sections[link][4]
        for at in range(start, start + length, step):
            name, info, _, section, value, size = struct.unpack_from("<IBBHQQ", object_code, at)
            if info & 15 == FUNCTION and section and (info >> 4 == GLOBAL or not globals_alone):
                end = object_code.index(b"\0", names + name)
                yield object_code[names + name : end].decode(), section, value, size
