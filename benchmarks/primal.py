"""The primal against `numba.njit`, the same source for both, default options (bounds checks on here)."""

from __future__ import annotations

import numpy as np
from rich.table import Table

from mutad import compile

from .kernels import KERNELS, normal_cdf
from .timing import console, geometric_mean, interleaved, peer, ratio, seconds, table


def main() -> None:
    numba = peer("numba")
    found = table("primal: time of one call", "kernel", "NumPy", "numba", "mutad", "numba / mutad")
    ratios: list[float] = []
    for kernel in KERNELS:
        ours = compile(kernel.function)
        small = kernel.make(small=True)
        np.testing.assert_allclose(ours(*small), kernel.function(*small), rtol=1e-10)
        arguments = kernel.make()
        contestants = {"mutad": lambda f=ours, a=arguments: f(*a)}
        if numba is not None:
            theirs = numba_version(numba, kernel.function)
            np.testing.assert_allclose(ours(*arguments), theirs(*arguments), rtol=1e-9)
            contestants["numba"] = lambda f=theirs, a=arguments: f(*a)
        times = interleaved(contestants)
        numpy_time = None
        if kernel.name in WHOLE_ARRAYS:
            numpy_time = interleaved({"": lambda k=kernel, a=arguments: k.function(*a)}, rounds=5)[
                ""
            ]
        speedup = times["numba"] / times["mutad"] if "numba" in times else None
        if speedup is not None:
            ratios.append(speedup)
        found.add_row(
            kernel.name,
            seconds(numpy_time),
            seconds(times.get("numba")),
            seconds(times["mutad"]),
            ratio(speedup),
        )
    finish(found, ratios)


WHOLE_ARRAYS = {"jacobi_slices", "burgers", "waves", "two_layers", "black_scholes"}
"""Kernels without scalar loops, which plain NumPy can run in reasonable time."""


def numba_version(numba, function):
    """`numba.njit(function)`, with the one Python function that a kernel calls compiled too."""
    if "normal_cdf" in function.__code__.co_names:
        scope = {**function.__globals__, "normal_cdf": numba.njit(normal_cdf)}
        function = type(function)(function.__code__, scope, function.__name__)
    return numba.njit(function)


def finish(found: Table, ratios: list[float]) -> None:
    console.print(found)
    if ratios:
        console.print(f"geometric mean {geometric_mean(ratios):.2f}x, least {min(ratios):.2f}x\n")


if __name__ == "__main__":
    main()
