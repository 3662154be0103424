"""Array programs that run on a device: each a function, and what makes its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Arguments = Callable[[], tuple[Any, ...]]


def waves(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    count = int(np.prod(shape))
    return (1.5 + np.sin(np.arange(count, dtype=np.float64))).reshape(shape).astype(dtype)


def heat(u, k, steps):
    for _ in range(steps):
        u[1:-1] += k * (u[:-2] - 2 * u[1:-1] + u[2:]) ** 2
    return (u**2).sum()


def swapped_grids(a, b, steps):
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        b[0] = b[-1]
        a, b = b, a
    return np.sum(np.exp(-a) * a)


def sums_along_axes(x):
    rows, columns = x.sum(axis=1), x.mean(axis=0)
    return (rows * rows).sum() + columns.max() - np.sin(columns).min()


def layers(x, w, b):
    for k in range(w.shape[0]):
        x = np.tanh(x @ w[k] + b[k])
    return (x * x).sum()


def rows_in_order(a, r, d):
    n, m = d.shape
    for i in range(n):
        for j in range(1, m):
            w = a[i, j] / d[i, j - 1]
            d[i, j] -= w * a[i, j - 1]
            r[i, j] -= w * r[i, j - 1]
    return np.sum(r)


def bodies(x, f):
    n = x.shape[0]
    for i in range(n):
        total = 0.0
        for j in range(n):
            if j != i:
                total += (x[j] - x[i]) / (0.5 + (x[j] - x[i]) ** 2)
        f[i] = total
    return f.sum()


def ends_that_are_held(u, steps):
    for t in range(steps):
        u[1:-1] = 0.5 * (u[:-2] + u[2:])
        u[0] = u[-2] + 0.1 * t
        u[-1] = 0.0
    return u[0] * u.sum()


def chosen_by_sign(x, y):
    z = np.where(x > 1.5, np.sqrt(x), y * y)
    y[...] = z[::-1]
    return np.abs(z - y).sum() + np.maximum(x, y).sum()


def broadcast(x, c, v):
    x *= c[:, None]
    x += v
    return x[::2, ::-1].sum() * c.sum()


def time_expanded(a):
    for t in range(a.shape[0] - 1):
        a[t + 1] = np.cos(a[t]) * a[t, ::-1]
    return a[-1].sum()


def diagonals(a):
    return np.trace(a @ a) + np.trace(a @ a @ a, 1) + (np.diag(a, 1) ** 2).sum()


def nothing_there(u):
    u *= 2.0
    return u.sum()


def counted(k, x):
    x[...] = np.where(k % 3 == 0, x, -x)
    return (k[k.size // 2 :] * x[k.size // 2 :]).sum()


def first_and_others(x, y, t):
    for i in range(x.size):
        y[i] = t * x[i]
        t = 3.0
    return (y * y).sum() + t


def branches_of_points(x, y):
    for i in range(x.size):
        t = x[i] * y[i]
        if t > 2.0:
            t = np.sin(t)
            if y[i] < 1.5:
                t *= x[i]
        elif t < 1.0:
            t = t * t
        y[i] = t + y[i]
    return (y * x).sum()


def shapes(x):
    top = np.concatenate((x[:2], 2 * x[1:]), axis=0)
    pairs = np.stack((top.ravel(), top.T.ravel()))
    return (np.cumsum(pairs, axis=1) ** 2).sum() * np.linalg.norm(x.reshape(-1, 2)[::2])


def windows(x, w, n):
    out = np.zeros(x.size - n + 1)
    for k in range(n):
        out += w[k] * x[k : k + out.size]
    while out.sum() > 10.0:
        out *= 0.5
    out[out > 0.3] = 0.1
    return np.prod(1.0 + out) + np.roll(x, 2)[0]


def products(a, b, x):
    c = a @ b
    c[1::2] = a[1::2] @ b.T[:, :].T * 0.5
    y = c.T @ (a @ x) + x[: c.shape[0]] @ c
    return (y * y).sum() + (np.outer(y, x) @ a.T).sum()


PROGRAMS: tuple[tuple[Callable[..., Any], Arguments, tuple[str, ...]], ...] = (
    (heat, lambda: (waves(600), 0.1, 3), ("u", "k")),
    (swapped_grids, lambda: (waves(9, 70), waves(9, 70), 3), ("a", "b")),
    (sums_along_axes, lambda: (waves(5, 300),), ("x",)),
    (layers, lambda: (waves(3, 4), waves(2, 4, 4) / 9, waves(2, 4)), ("x", "w", "b")),
    (rows_in_order, lambda: (waves(5, 7), waves(5, 7), 3 + waves(5, 7)), ("a", "r", "d")),
    (bodies, lambda: (waves(20), np.zeros(20)), ()),
    (ends_that_are_held, lambda: (waves(40), 3), ("u",)),
    (chosen_by_sign, lambda: (waves(30), waves(30)), ("x", "y")),
    (broadcast, lambda: (waves(6, 5), waves(6), waves(5)), ("x", "c", "v")),
    (
        broadcast,
        lambda: (waves(6, 5, dtype="f4"), waves(6, dtype="f4"), waves(5, dtype="f4")),
        ("c",),
    ),
    (time_expanded, lambda: (waves(4, 11),), ("a",)),
    (diagonals, lambda: (waves(3, 3),), ("a",)),
    (nothing_there, lambda: (waves(0),), ("u",)),
    (branches_of_points, lambda: (waves(30), 0.4 + waves(30)), ("x", "y")),
    (shapes, lambda: (waves(4, 6),), ("x",)),
    (windows, lambda: (waves(40), waves(3), 3), ("x", "w")),
    (first_and_others, lambda: (waves(300), np.zeros(300), 2.0), ("x", "t")),
    (counted, lambda: (np.arange(12), waves(12)), ("x",)),
    (products, lambda: (waves(33, 40), waves(40, 70) / 9, waves(40)), ("a", "b", "x")),
)
"""With the names of the arguments that gradients are taken with respect to, if there is one on a device."""


def named(program: tuple[Callable[..., Any], Arguments, tuple[str, ...]]) -> str:
    return program[0].__name__
