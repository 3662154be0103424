"""What eight derivatives need, beside what one needs: the tables below the times of `batches`.

`need` is the greater of eight's arithmetic over one's and of its bytes over one's. Where the primal's numbers
are shared that is less than 8; where there are none, as in the reverse sweep of a linear loop, it is 8. Eight
that take less gain vectors, or fill the time in which one waits for its own numbers; eight that take more
have left a cache that holds one, or lose time. `least` is what no code is below: the arithmetic of eight, as
fast as that of a product of matrices, over the time that one takes.

Counts are those of two small sizes, and go on as a power of the size.
"""

from __future__ import annotations

import functools
import inspect
import math
import time
from dataclasses import dataclass

import numpy as np

from mutad.runtime import keys

from .counted import Counts, counted
from .derivatives import Case
from .kernels import Kernel

LANES = 8
COMPILED = {"pushforward": "tangent", "jvp": "tangent", "back": "vjp", "hvp": "product"}
"""The code that a mode calls: `pushforward` and `jvp` have the same."""

SMALLER = {
    **{"jacobi_slices": 24, "jacobi_loops": 24, "gauss_seidel": 12, "burgers": 128, "lu": 16},
    **{"nbody": 6, "thomas": 100, "newton": 50, "waves": 1000, "two_layers": 48},
    **{"axpy_dot": 1000, "black_scholes": 1000},
}
"""The smaller of the two sizes; the other is twice as large."""


@dataclass(frozen=True)
class Work:
    """Of one call: additions, and bytes that are loaded and stored."""

    operations: float
    traffic: float

    @property
    def least_seconds(self) -> float:
        return self.operations / arithmetic()


@dataclass(frozen=True)
class Bound:
    """What one derivative needs, and eight."""

    one: Work
    eight: Work

    @property
    def need(self) -> float:
        """Eight over one; 0 where there is nothing to compute."""
        pairs = (
            (self.eight.operations, self.one.operations),
            (self.eight.traffic, self.one.traffic),
        )
        return max((eight / one for eight, one in pairs if one), default=0.0)


def bounds_of(kernel: Kernel) -> dict[str, Bound]:
    """For each mode."""
    found = {
        compiled: Bound(*(work(kernel, compiled, lanes) for lanes in (1, LANES)))
        for compiled in dict.fromkeys(COMPILED.values())
    }
    return {mode: found[compiled] for mode, compiled in COMPILED.items()}


def work(kernel: Kernel, mode: str, lanes: int) -> Work:
    """That of a call at the benchmark's size."""
    small, size = SMALLER[kernel.name], kernel.size
    text = program(kernel, mode, lanes)
    some, more = (counts(kernel, text, n) for n in (small, 2 * small))
    pairs = zip(quantities(some), quantities(more), strict=True)
    return Work(*(further(a, b, size / (2 * small)) for a, b in pairs))


def quantities(of: Counts) -> tuple[float, float]:
    return of.operations, of.traffic


def further(some: float, more: float, times: float) -> float:
    """What is `some`, and `more` at twice the size, at so many times that."""
    return more * times ** math.log2(more / some) if some and more else 0.0


def counts(kernel: Kernel, text: str, size: int) -> Counts:
    arguments = kernel.arguments(np.random.default_rng(0), size)
    names = inspect.signature(kernel.function).parameters
    return counted(text, dict(zip(names, arguments, strict=True)))


def program(kernel: Kernel, mode: str, lanes: int) -> str:
    """The optimized program that the compiler makes for a call."""
    case = Case.of(kernel)
    d = case.ours._dispatcher  # pyright: ignore[reportPrivateUsage]
    wrt = tuple(sorted(d.resolve_wrt(case.names)[0]))
    pairs = zip(case.arguments, d.names, strict=False)
    found = tuple(keys.argument_key(a, name) for a, name in pairs)
    options = {**d.options, "stretch": False, "lanes": lanes, "guards": False}
    return d.compiler.stage("optimize", d.function, found, (), mode, wrt, options, d.era.captures)


@functools.cache
def arithmetic() -> float:
    """Additions and multiplications a second, in a product of matrices: the most of a few tries."""
    n, tries = 256, 50
    a, b, c = np.ones((n, n)), np.ones((n, n)), np.empty((n, n))
    times: list[float] = []
    for _ in range(tries):
        start = time.thread_time()
        np.matmul(a, b, out=c)
        times.append(time.thread_time() - start)
    return 2.0 * n**3 / min(times)
