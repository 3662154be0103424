"""Stencils: explicit ones as slices, implicit ones and sweeps in place as loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from .program import Program


def jacobi_1d(start, steps):
    """Two grids that swap; a division that a reciprocal may not replace."""
    a = start.copy()
    b = start.copy()
    for _ in range(steps):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3.0
        a, b = b, a
    return (a * a).sum()


def jacobi(start, steps):
    """Five points, two grids that swap."""
    u = start.copy()
    v = start.copy()
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, v = v, u
    return (u * u).sum()


def jacobi_loops(start, steps):
    """The same in scalar loops."""
    u = start.copy()
    v = start.copy()
    n, m = u.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        u, v = v, u
    total = 0.0
    for i in range(n):
        for j in range(m):
            total += u[i, j] * u[i, j]
    return total


def heat_3d(start, steps):
    """Seven points, in place."""
    u = start.copy()
    for _ in range(steps):
        mid = u[1:-1, 1:-1, 1:-1]
        u[1:-1, 1:-1, 1:-1] = (
            mid
            + 0.125 * (u[2:, 1:-1, 1:-1] - 2.0 * mid + u[:-2, 1:-1, 1:-1])
            + 0.125 * (u[1:-1, 2:, 1:-1] - 2.0 * mid + u[1:-1, :-2, 1:-1])
            + 0.125 * (u[1:-1, 1:-1, 2:] - 2.0 * mid + u[1:-1, 1:-1, :-2])
        )
    return (u * u).sum()


def seidel(start, sweeps):
    """Nine points in place: four neighbours of this sweep, five values of the last."""
    u = start.copy()
    n, m = u.shape
    for _ in range(sweeps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                above = u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1]
                below = u[i + 1, j - 1] + u[i + 1, j] + u[i + 1, j + 1]
                u[i, j] = (above + u[i, j - 1] + u[i, j] + u[i, j + 1] + below) / 9.0
    total = 0.0
    for i in range(n):
        for j in range(m):
            total += u[i, j] * u[i, j]
    return total


def adi(start, r, steps):
    """Heat by alternating directions: a tridiagonal system for each column, then for each row."""
    u = start.copy()
    v = start.copy()
    n = u.shape[0]
    p = np.zeros(n)
    q = np.zeros(n)
    for _ in range(steps):
        for j in range(1, n - 1):
            q[0] = u[0, j]
            for i in range(1, n - 1):
                d = 1.0 + 2.0 * r - r * p[i - 1]
                right = u[i, j] + r * (u[i, j - 1] - 2.0 * u[i, j] + u[i, j + 1])
                p[i] = r / d
                q[i] = (right + r * q[i - 1]) / d
            v[n - 1, j] = u[n - 1, j]
            for i in range(n - 2, 0, -1):
                v[i, j] = p[i] * v[i + 1, j] + q[i]
        for i in range(1, n - 1):
            q[0] = v[i, 0]
            for j in range(1, n - 1):
                d = 1.0 + 2.0 * r - r * p[j - 1]
                right = v[i, j] + r * (v[i - 1, j] - 2.0 * v[i, j] + v[i + 1, j])
                p[j] = r / d
                q[j] = (right + r * q[j - 1]) / d
            u[i, n - 1] = v[i, n - 1]
            for j in range(n - 2, 0, -1):
                u[i, j] = p[j] * u[i, j + 1] + q[j]
    return (u * u).sum()


def fdtd(pulse, steps):
    """Maxwell's equations in two dimensions: three staggered fields, a source on one edge."""
    n = pulse.shape[0]
    ex = np.zeros((n, n))
    ey = np.zeros((n, n))
    hz = pulse.copy()
    for t in range(steps):
        ey[0, :] = 0.1 * t
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return (hz * hz).sum() + (ex * ex).sum()


def burgers(start, nu, steps):
    """Nonlinear, in place, slices: every step kills a grid that the gradient needs."""
    u = start.copy()
    for _ in range(steps):
        u[1:-1] += nu * (u[2:] - 2.0 * u[1:-1] + u[:-2]) - 0.05 * u[1:-1] * (u[2:] - u[:-2])
    return (u * u).sum()


def burgers_loops(start, nu, steps):
    """The same in a loop that carries the old left neighbour."""
    u = start.copy()
    n = u.size
    for _ in range(steps):
        left = u[0]
        for i in range(1, n - 1):
            mid = u[i]
            u[i] = mid + (nu * (u[i + 1] - 2.0 * mid + left) - 0.05 * mid * (u[i + 1] - left))
            left = mid
    total = 0.0
    for i in range(n):
        total += u[i] * u[i]
    return total


def upwind(start, vx, vy, steps):
    """Advection by a velocity field: each cell looks where its wind comes from."""
    c = start.copy()
    for _ in range(steps):
        mid = c[1:-1, 1:-1]
        x = np.where(vx > 0.0, vx * (mid - c[:-2, 1:-1]), vx * (c[2:, 1:-1] - mid))
        y = np.where(vy > 0.0, vy * (mid - c[1:-1, :-2]), vy * (c[1:-1, 2:] - mid))
        c[1:-1, 1:-1] = mid - 0.2 * (x + y)
    return (c * c).sum()


def _square(r: np.random.Generator, n: int, steps: int) -> tuple[Any, ...]:
    return (r.normal(size=(n, n)), steps)


def _line(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (np.sin(np.linspace(0.0, 6.0, n)) + 0.1 * r.normal(size=n), 0.1, 200)


def _wind(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    fields = (r.normal(size=(n, n)) for _ in range(3))
    c, vx, vy = fields
    return (c, vx[1:-1, 1:-1].copy(), vy[1:-1, 1:-1].copy(), 20)


STENCILS = (
    Program(
        jacobi_1d,
        lambda r, n: (r.normal(size=n), 200),
        (1_000, 16_000, 128_000, 1_000_000),
        12,
        ("start",),
    ),
    Program(
        jacobi,
        lambda r, n: _square(r, n, 20),
        (64, 512, 1024, 2048),
        8,
        ("start",),
        by_hand="jacobi",
    ),
    Program(
        jacobi_loops,
        lambda r, n: _square(r, n, 20),
        (64, 512, 1024, 2048),
        8,
        ("start",),
        loops=True,
        by_hand="jacobi",
    ),
    Program(
        heat_3d, lambda r, n: (r.normal(size=(n, n, n)), 10), (16, 64, 128, 200), 5, ("start",)
    ),
    Program(
        seidel,
        lambda r, n: _square(r, n, 10),
        (32, 200, 400, 1000),
        7,
        ("start",),
        loops=True,
        by_hand="seidel",
    ),
    Program(
        adi,
        lambda r, n: (r.normal(size=(n, n)), 0.3, 5),
        (32, 150, 400, 800),
        6,
        ("start",),
        loops=True,
    ),
    Program(fdtd, lambda r, n: _square(r, n, 20), (64, 256, 600, 1200), 7, ("pulse",)),
    Program(burgers, _line, (512, 4096, 32_768, 131_072), 12, ("start",), by_hand="burgers"),
    Program(
        burgers_loops,
        _line,
        (512, 4096, 32_768, 131_072),
        12,
        ("start",),
        loops=True,
        by_hand="burgers",
    ),
    Program(upwind, _wind, (64, 256, 512, 1200), 7, ("start", "vx"), by_hand="upwind"),
)
