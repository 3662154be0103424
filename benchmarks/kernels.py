"""The kernels that every benchmark runs: plain NumPy functions that take arrays and return one float.

Each copies what it overwrites, so that it can be called again and again on the same arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


def jacobi_slices(start, steps):
    """Two grids, swapped after each sweep; whole-array slices."""
    u = start.copy()
    v = start.copy()
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, v = v, u
    return u.sum()


def jacobi_loops(start, steps):
    """The same sweep in scalar loops."""
    u = start.copy()
    v = start.copy()
    n, m = u.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        u, v = v, u
    return u.sum()


def gauss_seidel(start, rhs, sweeps):
    """In place: each element reads two neighbours of this sweep and two of the last."""
    u = start.copy()
    n, m = u.shape
    for _ in range(sweeps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - rhs[i, j])
    return u.sum()


def burgers(start, nu, steps):
    """Nonlinear advection in place, slices: every step kills a grid that the gradient needs."""
    u = start.copy()
    for _ in range(steps):
        u[1:-1] += nu * (u[2:] - 2.0 * u[1:-1] + u[:-2]) - 0.05 * (u[2:] ** 2 - u[:-2] ** 2)
    return (u * u).sum()


def lu(matrix):
    """LU in place without pivoting; returns the logarithm of the determinant's magnitude."""
    a = matrix.copy()
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    total = 0.0
    for k in range(n):
        total += math.log(abs(a[k, k]))
    return total


def nbody(position, velocity, mass, dt, steps):
    """Gravity between all pairs, scalar loops; returns the kinetic energy at the end."""
    x = position.copy()
    v = velocity.copy()
    n = mass.size
    for _ in range(steps):
        for i in range(n):
            ax = 0.0
            ay = 0.0
            az = 0.0
            for j in range(n):
                dx = x[j, 0] - x[i, 0]
                dy = x[j, 1] - x[i, 1]
                dz = x[j, 2] - x[i, 2]
                r2 = dx * dx + dy * dy + dz * dz + 0.01
                w = mass[j] / (r2 * math.sqrt(r2))
                ax += w * dx
                ay += w * dy
                az += w * dz
            v[i, 0] += dt * ax
            v[i, 1] += dt * ay
            v[i, 2] += dt * az
        for i in range(n):
            for c in range(3):
                x[i, c] += dt * v[i, c]
    energy = 0.0
    for i in range(n):
        energy += 0.5 * mass[i] * (v[i, 0] ** 2 + v[i, 1] ** 2 + v[i, 2] ** 2)
    return energy


def thomas(lower, diagonal, upper, rhs):
    """A tridiagonal system solved in place by the Thomas algorithm."""
    n = rhs.size
    d = diagonal.copy()
    x = rhs.copy()
    for i in range(1, n):
        w = lower[i - 1] / d[i - 1]
        d[i] -= w * upper[i - 1]
        x[i] -= w * x[i - 1]
    x[n - 1] /= d[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = (x[i] - upper[i] * x[i + 1]) / d[i]
    total = 0.0
    for i in range(n):
        total += x[i] * x[i]
    return total


def newton(a):
    """Square roots by Newton's method: a `while` of data-dependent length for each element."""
    total = 0.0
    for i in range(a.size):
        x = 1.0
        while abs(x * x - a[i]) > 1e-12 * a[i]:
            x = 0.5 * (x + a[i] / x)
        total += x
    return total


def waves(x):
    """One elementwise expression of libm functions and its sum."""
    return (np.exp(-0.5 * x * x) * np.sin(3.0 * x) + np.cos(x) * np.log(1.0 + x * x)).sum()


def two_layers(x, w1, w2):
    """A small network: two matrix products and a tanh."""
    return (np.tanh(x @ w1) @ w2).sum()


def axpy_dot(a, x, y):
    """An update in place and a sequential accumulation, scalar loops."""
    z = y.copy()
    for i in range(x.size):
        z[i] += a * x[i]
    total = 0.0
    for i in range(x.size):
        total += z[i] * x[i]
    return total


def black_scholes(spot, strike, years, rate, volatility):
    """Call prices; the normal distribution by the formula 26.2.17 of Abramowitz and Stegun."""
    root = np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / (volatility * root)
    d2 = d1 - volatility * root
    return (spot * normal_cdf(d1) - strike * np.exp(-rate * years) * normal_cdf(d2)).sum()


def normal_cdf(d):
    k = 1.0 / (1.0 + 0.2316419 * np.abs(d))
    poly = k * (
        0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    tail = 0.3989422804014327 * np.exp(-0.5 * d * d) * poly
    return np.where(d > 0.0, 1.0 - tail, tail)


@dataclass(frozen=True)
class Kernel:
    """A kernel, its arguments at a benchmark's size and at a small one, and what to differentiate."""

    function: Callable[..., Any]
    arguments: Callable[[np.random.Generator, int], tuple[Any, ...]]
    size: int
    small: int
    wrt: str | tuple[str, ...]

    @property
    def name(self) -> str:
        return self.function.__name__

    def make(self, *, small: bool = False) -> tuple[Any, ...]:
        """Arguments, the same ones at every call."""
        return self.arguments(np.random.default_rng(0), self.small if small else self.size)


def _diagonally_dominant(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (rng.normal(size=(n, n)) + 2.0 * n * np.eye(n),)


KERNELS = (
    Kernel(jacobi_slices, lambda r, n: (r.normal(size=(n, n)), 20), 512, 12, "start"),
    Kernel(jacobi_loops, lambda r, n: (r.normal(size=(n, n)), 20), 512, 12, "start"),
    Kernel(
        gauss_seidel,
        lambda r, n: (r.normal(size=(n, n)), r.normal(size=(n, n)), 10),
        256,
        10,
        "start",
    ),
    Kernel(burgers, lambda r, n: (np.sin(np.linspace(0, 6, n)), 0.1, 200), 4096, 40, "start"),
    Kernel(lu, _diagonally_dominant, 192, 9, "matrix"),
    Kernel(
        nbody,
        lambda r, n: (
            r.normal(size=(n, 3)),
            r.normal(size=(n, 3)),
            r.uniform(0.1, 1.0, n),
            0.01,
            10,
        ),
        96,
        5,
        ("position", "velocity"),
    ),
    Kernel(
        thomas,
        lambda r, n: (
            r.normal(size=n - 1),
            4.0 + r.random(n),
            r.normal(size=n - 1),
            r.normal(size=n),
        ),
        50_000,
        20,
        ("lower", "diagonal", "upper", "rhs"),
    ),
    Kernel(newton, lambda r, n: (r.uniform(0.5, 50.0, n),), 20_000, 30, "a"),
    Kernel(waves, lambda r, n: (r.normal(size=n),), 100_000, 50, "x"),
    Kernel(
        two_layers,
        lambda r, n: (r.normal(size=(n, n)), 0.05 * r.normal(size=(n, n)), r.normal(size=(n, n))),
        192,
        6,
        ("w1", "w2"),
    ),
    Kernel(
        axpy_dot, lambda r, n: (0.5, r.normal(size=n), r.normal(size=n)), 200_000, 30, ("x", "y")
    ),
    Kernel(
        black_scholes,
        lambda r, n: (
            r.uniform(80, 120, n),
            100.0,
            r.uniform(0.2, 2.0, n),
            0.02,
            r.uniform(0.1, 0.5, n),
        ),
        50_000,
        20,
        ("spot", "volatility"),
    ),
)
