"""Weather, flow and transport: several fields, limiters, columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from .program import Program


def hdiff(field, coefficient):
    """Horizontal diffusion of a weather model: fluxes that would run uphill are set to zero."""
    lap = 4.0 * field[1:-1, 1:-1] - (
        field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2]
    )
    x = lap[1:, 1:-1] - lap[:-1, 1:-1]
    x = np.where(x * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0.0, 0.0, x)
    y = lap[1:-1, 1:] - lap[1:-1, :-1]
    y = np.where(y * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0.0, 0.0, y)
    out = field[2:-2, 2:-2] - coefficient * (x[1:] - x[:-1] + y[:, 1:] - y[:, :-1])
    return (out * out).sum()


def vadv(wind, field, tendency, dt):
    """Vertical advection, implicit: a tridiagonal system in each column, all columns as planes."""
    levels = field.shape[0]
    c = np.zeros_like(field)
    d = np.zeros_like(field)
    x = np.zeros_like(field)
    for k in range(levels):
        right = field[k] / dt + tendency[k]
        if k == 0:
            above = 0.25 * wind[1]
            diagonal = 1.0 / dt - above
            right = right - above * (field[1] - field[0])
            c[0] = above / diagonal
            d[0] = right / diagonal
        elif k < levels - 1:
            below = -0.25 * wind[k]
            above = 0.25 * wind[k + 1]
            right = right - below * (field[k - 1] - field[k]) - above * (field[k + 1] - field[k])
            diagonal = 1.0 / dt - below - above - below * c[k - 1]
            c[k] = above / diagonal
            d[k] = (right - below * d[k - 1]) / diagonal
        else:
            below = -0.25 * wind[k]
            right = right - below * (field[k - 1] - field[k])
            diagonal = 1.0 / dt - below - below * c[k - 1]
            d[k] = (right - below * d[k - 1]) / diagonal
    x[levels - 1] = d[levels - 1]
    for k in range(levels - 2, -1, -1):
        x[k] = d[k] - c[k] * x[k + 1]
    return ((x - field) * (x - field)).sum()


def cavity(u0, v0, nu, steps, sweeps):
    """A flow below a lid that moves: velocities in place, a pressure that is relaxed in each step."""
    n = u0.shape[0]
    h = 2.0 / (n - 1)
    dt = 0.1 * h
    u = u0.copy()
    v = v0.copy()
    p = np.zeros((n, n))
    for _ in range(steps):
        ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2.0 * h)
        uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2.0 * h)
        vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2.0 * h)
        vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2.0 * h)
        b = h * h * ((ux + vy) / dt - ux * ux - 2.0 * uy * vx - vy * vy)
        for _ in range(sweeps):
            old = p.copy()
            p[1:-1, 1:-1] = 0.25 * (
                old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1] - b
            )
            p[:, -1] = p[:, -2]
            p[:, 0] = p[:, 1]
            p[0, :] = p[1, :]
            p[-1, :] = 0.0
        un = u.copy()
        vn = v.copy()
        um = un[1:-1, 1:-1]
        vm = vn[1:-1, 1:-1]
        u[1:-1, 1:-1] = (
            um
            - dt / h * (um * (um - un[1:-1, :-2]) + vm * (um - un[:-2, 1:-1]))
            - dt / (2.0 * h) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu
            * dt
            / (h * h)
            * (un[1:-1, 2:] + un[1:-1, :-2] + un[2:, 1:-1] + un[:-2, 1:-1] - 4.0 * um)
        )
        v[1:-1, 1:-1] = (
            vm
            - dt / h * (um * (vm - vn[1:-1, :-2]) + vm * (vm - vn[:-2, 1:-1]))
            - dt / (2.0 * h) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu
            * dt
            / (h * h)
            * (vn[1:-1, 2:] + vn[1:-1, :-2] + vn[2:, 1:-1] + vn[:-2, 1:-1] - 4.0 * vm)
        )
        u[0, :] = 0.0
        u[:, 0] = 0.0
        u[:, -1] = 0.0
        u[-1, :] = 1.0
        v[0, :] = 0.0
        v[-1, :] = 0.0
        v[:, 0] = 0.0
        v[:, -1] = 0.0
    return (u * u).sum() + (v * v).sum()


def lattice_boltzmann(density, omega, steps):
    """Nine populations on a torus: collide, then stream by rolling each in its direction."""
    cx = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
    cy = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
    w = np.array([4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36])
    n, m = density.shape
    f = np.zeros((9, n, m))
    for q in range(9):
        f[q] = w[q] * density
    for _ in range(steps):
        rho = np.zeros((n, m))
        ux = np.zeros((n, m))
        uy = np.zeros((n, m))
        for q in range(9):
            rho += f[q]
            ux += cx[q] * f[q]
            uy += cy[q] * f[q]
        ux /= rho
        uy /= rho
        square = 1.5 * (ux * ux + uy * uy)
        for q in range(9):
            along = 3.0 * (cx[q] * ux + cy[q] * uy)
            level = w[q] * rho * (1.0 + along + 0.5 * along * along - square)
            f[q] += omega * (level - f[q])
        for q in range(1, 9):
            f[q] = np.roll(np.roll(f[q], cx[q], 0), cy[q], 1)
    total = np.zeros((n, m))
    for q in range(9):
        total += f[q]
    return (total * total).sum()


def _weather(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    deep = 32 if n > 20 else 3
    return (r.normal(size=(n + 4, n + 4, deep)), 0.025 + 0.01 * r.normal(size=(n, n, deep)))


def _columns(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    levels = 40 if n > 20 else 5
    wind, field, tendency = (0.3 * r.normal(size=(levels, n, n)) for _ in range(3))
    return (wind, field, tendency, 0.5)


def _lid(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    u, v = (0.1 * r.normal(size=(n, n)) for _ in range(2))
    return (u, v, 0.1, 5 if n > 20 else 2, 20 if n > 20 else 3)


FLUIDS = (
    Program(hdiff, _weather, (32, 128, 256, 400), 4, ("field", "coefficient")),
    Program(vadv, _columns, (24, 64, 128, 200), 3, ("wind", "field", "tendency")),
    Program(cavity, _lid, (32, 128, 256, 600), 6, ("u0", "v0", "nu")),
    Program(
        lattice_boltzmann,
        lambda r, n: (1.0 + 0.1 * r.random((n, n)), 0.8, 10 if n > 20 else 2),
        (32, 96, 256, 500),
        4,
        ("density", "omega"),
    ),
)
