"""Control flow, calls and data: the primal against `numba.njit`, the gradient over the primal.

The same source for both; numba has to be told which functions a kernel calls, mutad finds them. Each call
gets other data: a processor that meets the same 20,000 random conditions in each call learns them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mutad import compile

from .timing import console, geometric_mean, interleaved, peer, ratio, seconds, table


def collected(x):
    """A list that grows where the data says so."""
    found = []
    for v in x:
        if v > 0.0:
            found.append(v * v)
    total = 0.0
    for i in range(len(found)):
        total += found[i] * found[len(found) - 1 - i]
    return total


class Particles(NamedTuple):
    x: Any
    y: Any
    vx: Any
    vy: Any


def particle_push(p, steps, dt):
    """A structure of arrays; particles bounce off the walls of a box."""
    for _ in range(steps):
        for i in range(p.x.size):
            p.vx[i] -= dt * p.x[i]
            p.vy[i] -= dt * p.y[i] * p.y[i] * p.y[i]
            p.x[i] += dt * p.vx[i]
            p.y[i] += dt * p.vy[i]
            if abs(p.x[i]) > 1.0:
                p.vx[i] = -p.vx[i]
            if abs(p.y[i]) > 1.0:
                p.vy[i] = -p.vy[i]
    total = 0.0
    for i in range(p.x.size):
        total += p.x[i] * p.x[i] + p.y[i] * p.y[i]
    return total


def below(left, right, weight, node):
    """The value of the subtree at a node."""
    if node < 0:
        return 1.0
    a = below(left, right, weight, left[node])
    b = below(left, right, weight, right[node])
    return weight[node] * (a + 0.5 * b)


def tree_walk(weight, left, right):
    """A tree in arrays of children, by recursion."""
    return below(left, right, weight, 0)


def adaptive_steps(y0, end):
    """Heun's method with a step size that the error decides; steps are refused and tried again."""
    t, y, h, taken = 0.0, y0, 0.01, 0
    while t < end:
        if t + h > end:
            h = end - t
        k1 = math.sin(t) - y * y
        euler = y + h * k1
        k2 = math.sin(t + h) - euler * euler
        heun = y + 0.5 * h * (k1 + k2)
        error = abs(heun - euler)
        if error > 1e-6:
            h *= 0.7
            continue
        t += h
        y = heun
        taken += 1
        if taken > 1_000_000:
            break
        if error < 2e-7:
            h *= 1.3
    return y


def root_of(v):
    if v < 0.0:
        raise ValueError("negative")
    return math.sqrt(v)


def guarded_roots(x):
    """An exception that is caught, in a hot loop."""
    total = 0.0
    for v in x:
        try:
            total += root_of(v)
        except Exception:
            total += 0.1 * v
    return total


def closure(x, a, b):
    """A callback that sees the variables around it."""

    def force(v):
        return a * v * v + b * v

    total = 0.0
    for v in x:
        total += force(v) * force(v + 1.0)
    return total


def first_crossings(table_, level):
    """For each row the first element above a level: breaks, and an else where there is none."""
    total = 0.0
    for i in range(table_.shape[0]):
        for j in range(table_.shape[1]):
            if table_[i, j] < 0.0:
                continue
            if table_[i, j] > level:
                total += table_[i, j] * j
                break
        else:
            total -= 1.0
    return total


def comprehension(x):
    """The sum of a list that is written in one expression."""
    return sum([v * v + math.sin(v) for v in x])


SETS = 8
"""So many arguments take turns."""


@dataclass(frozen=True)
class ControlKernel:
    function: Callable[..., Any]
    arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    helpers: tuple[Callable[..., Any], ...] = ()
    """What the kernel calls: for numba."""

    def make(self, seed: int = 0) -> tuple[Any, ...]:
        return self.arguments(np.random.default_rng(seed))

    def calls(self, function: Callable[..., Any]) -> Callable[[], Any]:
        """A call of a function that computes the kernel, with other arguments each time."""
        turns = itertools.cycle([self.make(seed) for seed in range(SETS)])
        return lambda: function(*next(turns))


def _tree(depth: int) -> tuple[Any, Any]:
    """The children of a complete binary tree; -1 for none."""
    n = 2**depth - 1
    children = np.arange(n)
    left, right = 2 * children + 1, 2 * children + 2
    return np.where(left < n, left, -1), np.where(right < n, right, -1)


KERNELS = (
    ControlKernel(collected, lambda r: (r.normal(size=20_000),)),
    ControlKernel(
        particle_push,
        lambda r: (Particles(*(r.uniform(-0.9, 0.9, 500) for _ in "xyuv")), 100, 0.01),
    ),
    ControlKernel(tree_walk, lambda r: (r.uniform(0.5, 0.9, 2**12 - 1), *_tree(12)), (below,)),
    ControlKernel(adaptive_steps, lambda r: (0.7, 1.0)),
    ControlKernel(guarded_roots, lambda r: (r.normal(size=20_000),), (root_of,)),
    ControlKernel(closure, lambda r: (r.normal(size=20_000), 0.3, 0.7)),
    ControlKernel(first_crossings, lambda r: (r.normal(size=(400, 100)), 2.0)),
    ControlKernel(comprehension, lambda r: (r.normal(size=20_000),)),
)


def main() -> None:
    numba = peer("numba")
    found = table(
        "control flow", *("kernel", "numba", "mutad", "numba / mutad", "gradient / primal")
    )
    speedups: list[float] = []
    for kernel in KERNELS:
        ours = compile(kernel.function, grad=True)
        expected = kernel.function(*kernel.make())
        np.testing.assert_allclose(ours(*kernel.make()), expected, rtol=1e-9)
        contestants = {"mutad": kernel.calls(ours), "gradient": kernel.calls(ours.value_and_grad)}
        if numba is not None:
            theirs = numba_version(numba, kernel)
            np.testing.assert_allclose(theirs(*kernel.make()), expected, rtol=1e-9)
            contestants["numba"] = kernel.calls(theirs)
        times = interleaved(contestants)
        speedup = times["numba"] / times["mutad"] if "numba" in times else None
        speedups += [] if speedup is None else [speedup]
        found.add_row(
            kernel.function.__name__,
            seconds(times.get("numba")),
            seconds(times["mutad"]),
            ratio(speedup),
            ratio(times["gradient"] / times["mutad"]),
        )
    console.print(found)
    if speedups:
        console.print(
            f"geometric mean against numba {geometric_mean(speedups):.2f}x, least {min(speedups):.2f}x\n"
        )


def numba_version(numba: Any, kernel: ControlKernel) -> Callable[..., Any]:
    """`numba.njit` of the kernel, and of the functions that it calls."""
    scope = dict(kernel.function.__globals__)
    for helper in kernel.helpers:
        inner = type(helper)(helper.__code__, scope, helper.__name__)
        scope[helper.__name__] = numba.njit(inner)
    return numba.njit(type(kernel.function)(kernel.function.__code__, scope))


if __name__ == "__main__":
    main()
