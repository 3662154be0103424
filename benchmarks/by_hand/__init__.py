"""Primals and adjoints written by hand in C, compiled here: the best that we can write for these programs.

A file has `primal` and `gradient`. Arguments come in the program's order: an array as a pointer and its
extents (`int64_t`), an int as `int64_t`, a float as `double`; `gradient` takes one more pointer for each
gradient. Both return the value.
"""

from __future__ import annotations

import ctypes
import inspect
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..timing import console

FOLDER = Path(__file__).parent
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fopenmp-simd", "-shared", "-fPIC")
"""No reassociation but where the source asks for it."""


@cache
def compiler() -> str | None:
    """A C compiler, or None and a line that says so."""
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        console.print("[yellow]no C compiler: code by hand is left out")
    return found


@cache
def library(name: str) -> Any:
    """The compiled file, or None where that fails."""
    if (cc := compiler()) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "by_hand.so"
        command = [cc, *FLAGS, "-o", made, FOLDER / f"{name}.c", "-lmvec", "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            console.print(f"[yellow]{name}.c: {done.stderr.strip().splitlines()[-1]}")
            return None
        return ctypes.CDLL(str(made))


def flattened(arguments: tuple[Any, ...]) -> list[Any]:
    """Arguments as C takes them. Arrays must outlive the call."""
    found: list[Any] = []
    for a in arguments:
        if isinstance(a, np.ndarray):
            assert a.dtype == np.float64
            assert a.flags.c_contiguous
            found += [ctypes.c_void_p(a.ctypes.data), *map(ctypes.c_int64, a.shape)]
        else:
            found.append((ctypes.c_double if isinstance(a, float) else ctypes.c_int64)(a))
    return found


def primal(name: str, arguments: tuple[Any, ...]) -> Callable[[], float] | None:
    """A call of the primal by hand on these arguments."""
    if (found := library(name)) is None:
        return None
    found.primal.restype = ctypes.c_double
    given = flattened(arguments)
    return lambda: found.primal(*given)


def gradient(
    name: str, function: Callable[..., Any], arguments: tuple[Any, ...], wrt: tuple[str, ...]
) -> Callable[[], tuple[float, tuple[Any, ...]]] | None:
    """A call of the adjoint by hand: the value, and gradients in new memory."""
    if (found := library(name)) is None:
        return None
    found.gradient.restype = ctypes.c_double
    given = flattened(arguments)
    parameters = list(inspect.signature(function).parameters)
    shapes = [np.shape(arguments[parameters.index(w)]) for w in wrt]

    def call() -> tuple[float, tuple[Any, ...]]:
        bars = tuple(np.empty(shape) for shape in shapes)
        value = found.gradient(*given, *(ctypes.c_void_p(b.ctypes.data) for b in bars))
        return value, bars

    return call


def peak(name: str) -> int:
    """The most bytes that the file's functions held since this was asked last, without results."""
    found = library(name)
    found.peak.restype = ctypes.c_int64
    return found.peak()
