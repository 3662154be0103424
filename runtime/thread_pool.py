"""The threads that `parallel=True` runs on: how many, and the pool that they are in.

The pool is machine code (`thread_pool_text`), linked when the first kernel asks for it; its threads are made
by the first region that is worth them. They touch nothing of Python, and end before the interpreter does.
"""

from __future__ import annotations

import atexit
import ctypes
import os
from typing import Any

from .user_tracebacks import concise


class prange:
    """`range`, of a loop whose iterations are independent: with `parallel=True` threads run them.

    Sums and products over the iterations (`s += x`, `h[k] += x`) are the exception. Uncompiled, and without
    `parallel=True`, it is `range`.
    """

    __module__ = "mutad"

    def __new__(cls, *bounds: int) -> range:
        return range(*bounds)


VARIABLE = "MUTAD_NUM_THREADS"

_library: dict[str, Any] = {}
"""The functions of the pool, once it is linked. It is never unloaded: its threads run in it."""

_asked: int | None = None
"""What `set_num_threads` was told."""


def available() -> int:
    """The processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def get_num_threads() -> int:
    """The maximum number of threads of a parallel region."""
    if _asked is not None:
        return min(_asked, available())
    given = os.environ.get(VARIABLE, "")
    if not given:
        return available()
    if not given.isascii() or not given.isdigit() or int(given) < 1:
        raise ValueError(f"{VARIABLE}={given!r}: use a number of threads, 1 or more")
    return min(int(given), available())


@concise
def set_num_threads(threads: int) -> None:
    """Set the number of threads of parallel regions, at most one for each available processor.

    Running regions keep theirs. Results do not depend on the number, bit for bit.
    """
    global _asked
    if not isinstance(threads, int) or isinstance(threads, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"set_num_threads({threads!r}): use an int")
    if threads < 1:
        raise ValueError(f"set_num_threads({threads}): use 1 or more")
    _asked = threads
    limit(get_num_threads())


def limit(threads: int) -> None:
    """Tell the pool, if there is one."""
    if _library:
        _library["mutad_threads_limit"](threads)


def address(symbol: str = "mutad_threads_run") -> int:
    """Where a function of the pool is. (Under the lock of whoever loads a kernel.)"""
    if not _library:
        link()
    return ctypes.cast(_library[symbol], ctypes.c_void_p).value or 0


def link() -> None:
    """Make the pool; it has no threads yet."""
    from llvmlite import binding

    from .thread_pool_text import ENTRIES, SYSTEM, TEXT

    threads = get_num_threads()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(opt=1, reloc="pic", codemodel="small")
    module = binding.parse_assembly(TEXT, binding.create_context())
    module.verify()
    builder = binding.JITLibraryBuilder().add_object_img(machine.emit_object(module))
    builder.add_current_process()
    for name in SYSTEM:
        found = ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value
        builder.import_symbol(f"mutad_libc_{name}", found)
    for name in ENTRIES:
        builder.export_symbol(name)
    linker = binding.create_lljit_compiler()
    tracker = builder.link(linker, "mutad.threads")
    for kept in (linker, tracker):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    made: dict[str, Any] = {}
    for name in ENTRIES:
        arguments = (ctypes.c_int64,) if name == "mutad_threads_limit" else ()
        made[name] = ctypes.CFUNCTYPE(None, *arguments)(tracker[name])
    made["mutad_threads_limit"](threads)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=made["mutad_threads_forget"])
    atexit.register(made["mutad_threads_close"])
    _library.update(made)
