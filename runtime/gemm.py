"""A matrix product of our own, where it is faster than SciPy's OpenBLAS on this CPU.

On CPUs with registers of 512 bits `gemm_text` has code for products of middling size, which run on the thread
that calls. OpenBLAS keeps small ones, for which it has code of its own, and large ones, which it shares among
its threads. Where it runs its code for AVX2 (it is older than the CPU, or `OPENBLAS_CORETYPE` says so), which
is half as fast, ours does small ones as well. Another BLAS keeps all.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from . import blas, target
from .gemm_text import TYPES, Range, text
from .native_code import object_code

SYMBOLS = {f"mutad_{letter}gemm": letter for letter in TYPES}

NARROW, WIDE = Range(0, {1: 1 << 40, 2: 512**3, 3: 96**3}), Range(96**3, {1: 640**3, 2: 0})
"""When ours is faster than OpenBLAS's code for AVX2, and than that for AVX-512, by its threads. Measured with
OpenBLAS 0.3.30 on Zen 5."""
KERNELS = {b"Haswell": NARROW, b"Zen": NARROW, b"SkylakeX": WIDE, b"Cooperlake": WIDE}
"""By the name of OpenBLAS's code."""


def address_of(symbol: str) -> int:
    """The address of the faster of the two: of ours, or of SciPy's BLAS, which has all other routines."""
    theirs = blas.address_of(symbol)
    return address(symbol, theirs, blas.bindings().__file__ or "") or theirs


def address(symbol: str, theirs: int, library: str) -> int | None:
    """Where our code is for a routine; None where it is not faster. `library` is linked with BLAS."""
    letter, known = SYMBOLS.get(symbol), None
    if letter is not None and "avx512f" in (target.chosen() or target.host()).features:
        known = openblas(library)
    return None if letter is None or known is None else linked(letter, theirs, *known)


@functools.cache
def openblas(library: str) -> tuple[int, Range] | None:
    """Where OpenBLAS says how many threads it has, and when ours is faster; None for another BLAS."""
    try:
        found: Any = ctypes.CDLL(library)
    except OSError:
        return None
    for prefix in ("scipy_openblas", "openblas"):
        name = getattr(found, f"{prefix}_get_corename", None)
        threads = getattr(found, f"{prefix}_get_num_threads", None)
        if name is not None and threads is not None:
            name.restype = ctypes.c_char_p
            sizes = KERNELS.get(name())
            at = ctypes.cast(threads, ctypes.c_void_p).value
            return None if sizes is None or at is None else (at, sizes)
    return None


_linked: dict[tuple[str, int], int] = {}


def linked(letter: str, theirs: int, threads: int, sizes: Range) -> int:
    """The code in the process, for good: kernels keep its address. (Under the lock of who loads a kernel.)"""
    key = letter, theirs
    if key not in _linked:
        _linked[key] = made(letter, theirs, threads, sizes)
    return _linked[key]


def made(letter: str, theirs: int, threads: int, sizes: Range) -> int:
    """Machine code that calls these two; where it is."""
    from llvmlite import binding

    symbol = f"mutad_own_{letter}gemm"
    builder = binding.JITLibraryBuilder().add_object_img(
        object_code(text(letter, sizes), for_host=True)
    )
    builder.add_current_process()
    builder.import_symbol("theirs", theirs)
    builder.import_symbol("threads", threads)
    builder.export_symbol(symbol)
    linker = binding.create_lljit_compiler()
    tracker = builder.link(linker, f"mutad.{letter}gemm")
    for kept in (linker, tracker):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return int(tracker[symbol])
