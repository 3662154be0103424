"""Functions of a given size, written by a program: what the curve of compile times is measured on."""

from __future__ import annotations

import linecache
import math
from itertools import count
from types import FunctionType
from typing import Any

import numpy as np

PLACES = 50
"""Different subscripts in use: enough for no two neighbours to touch the same elements."""

SCALAR = """\
    x[i + {k3}] = a * x[i + {k}] + t
    t{n} = x[i + {k}] * t
    y[{k}] += t{n} ** 2
    if y[{k}] > t:
        s += x[i + {k}] * y[i]
    else:
        t = math.sin(t{n})
    y[i + {k}] = 0.5 * y[i] + s / (1.0 + t * t)
"""
"""Loads and stores whose subscripts are known or not, a branch, a temporary, variables that change."""

SLICES = """\
    x[1:-1] = x[1:-1] + a * (y[2:] - 2.0 * y[1:-1] + y[:-2])
    t{n} = x * y + a
    y[:] = y - 0.1 * np.sin(t{n})
    x *= 0.9
    y[1:] += x[:-1] * y[1:]
"""

_serial = count()


def scalar_lines(lines: int) -> FunctionType:
    """Straight-line scalar code."""
    body = repeated(SCALAR, lines)
    return function(f"def scalar(x, y, a, i):\n    t = a\n    s = 0.0\n{body}    return s + t\n")


def slice_lines(lines: int) -> FunctionType:
    """Straight-line code on slices, every statement a loop nest or several."""
    return function(f"def slices(x, y, a):\n{repeated(SLICES, lines)}    return np.sum(x * y)\n")


def loop_nest(depth: int) -> FunctionType:
    """One statement, in place, within `depth` loops."""
    heads = "".join(f"{'    ' * (d + 1)}for i{d} in range(n):\n" for d in range(depth))
    at = " + ".join(f"i{d}" for d in range(depth))
    body = f"{'    ' * (depth + 1)}x[{at} + 1] = a * x[{at}] * x[{at} + 1]\n"
    return function(f"def nest(x, a, n):\n{heads}{body}    return x[0] + x[1]\n")


def repeated(block: str, lines: int) -> str:
    """As many copies of the block as make about `lines` lines."""
    copies = max(1, lines // block.count("\n"))
    numbered = ((n, n % PLACES) for n in range(copies))
    return "".join(block.format(n=n, k=k, k3=k + 3) for n, k in numbered)


def function(source: str) -> FunctionType:
    """The function that the source defines, with its source where Python looks for it."""
    name = f"<generated {next(_serial)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"math": math, "np": np, "__name__": "benchmarks.generated"}
    exec(compile(source, name, "exec"), scope)
    return next(v for v in scope.values() if isinstance(v, FunctionType))
