"""Linear algebra in place: factorizations, triangular products, recurrences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .program import Program


def lu(matrix):
    """Without pivoting, the classic loops; the logarithm of the determinant's magnitude."""
    a = matrix.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[k, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            for k in range(i):
                a[i, j] -= a[i, k] * a[k, j]
    total = 0.0
    for i in range(n):
        total += math.log(abs(a[i, i]))
    return total


def lu_outer(matrix):
    """The same by elimination of one column after the other."""
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


def lu_slices(matrix):
    """The same with a column and a rank-1 update as slices."""
    a = matrix.copy()
    n = a.shape[0]
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k : k + 1] * a[k : k + 1, k + 1 :]
    return np.log(np.abs(np.diag(a))).sum()


def cholesky(matrix):
    """In place, row by row."""
    a = matrix.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = math.sqrt(a[i, i])
    total = 0.0
    for i in range(n):
        for j in range(i + 1):
            total += a[i, j]
    return total


def gramschmidt(matrix):
    """Modified Gram-Schmidt: the columns of a matrix, made orthonormal in place."""
    a = matrix.copy()
    n = a.shape[1]
    q = np.zeros_like(a)
    r = np.zeros((n, n))
    for k in range(n):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return (r * r * r).sum() + q.sum()


def trmm(lower, b, alpha):
    """A unit lower triangle, transposed, times a matrix, in place."""
    x = b.copy()
    n, m = x.shape
    for i in range(n):
        for j in range(m):
            for k in range(i + 1, n):
                x[i, j] += lower[k, i] * x[k, j]
            x[i, j] *= alpha
    return (x * x).sum()


def syrk(a, c, alpha, beta):
    """The lower triangle of alpha A A^T + beta C, a row at a time."""
    x = c.copy()
    n, m = a.shape
    for i in range(n):
        x[i, : i + 1] *= beta
        for k in range(m):
            x[i, : i + 1] += alpha * a[i, k] * a[: i + 1, k]
    return (x * x).sum()


def durbin(r):
    """A Toeplitz system by Durbin's recursion."""
    n = r.size
    y = np.zeros(n)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, n):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(r[k - 1 :: -1], y[:k])) / beta
        y[:k] += alpha * y[k - 1 :: -1]
        y[k] = alpha
    return (y * y).sum()


def correlation(data):
    """The correlations of all pairs of columns."""
    rows, columns = data.shape
    mean = data.sum(axis=0) / rows
    away = data - mean
    deviation = np.sqrt((away * away).sum(axis=0) / rows)
    away /= np.sqrt(1.0 * rows) * deviation
    found = np.eye(columns)
    for i in range(columns - 1):
        found[i + 1 :, i] = away[:, i] @ away[:, i + 1 :]
        found[i, i + 1 :] = found[i + 1 :, i]
    return (found * found * found).sum()


def recurrence(x, a, b):
    """A chain through sine and cosine: nothing of it runs side by side."""
    state = 0.5
    total = 0.0
    for i in range(x.size):
        state = a * math.sin(state) + b * math.cos(x[i] * state)
        total += state * x[i]
    return total


def _dominant(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (r.normal(size=(n, n)) + 2.0 * n * np.eye(n),)


def _definite(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    a = r.normal(size=(n, n))
    return (a @ a.T + n * np.eye(n),)


ALGEBRA = (
    Program(lu, _dominant, (32, 160, 320, 640), 7, ("matrix",), loops=True, by_hand="lu"),
    Program(lu_outer, _dominant, (32, 160, 320, 640), 7, ("matrix",), loops=True, by_hand="lu"),
    Program(lu_slices, _dominant, (32, 160, 320, 640), 7, ("matrix",), by_hand="lu"),
    Program(cholesky, _definite, (32, 160, 320, 640), 7, ("matrix",), loops=True),
    Program(
        gramschmidt,
        lambda r, n: (r.normal(size=(n + 20, n)),),
        (24, 120, 240, 400),
        5,
        ("matrix",),
        by_hand="gramschmidt",
    ),
    Program(
        trmm,
        lambda r, n: (0.1 * r.normal(size=(n, n)), r.normal(size=(n, n + 10)), 0.9),
        (32, 160, 320, 600),
        6,
        ("lower", "b"),
        loops=True,
    ),
    Program(
        syrk,
        lambda r, n: (r.normal(size=(n, n // 2)), r.normal(size=(n, n)), 0.7, 0.4),
        (32, 160, 320, 640),
        6,
        ("a", "c"),
    ),
    Program(
        durbin,
        lambda r, n: (0.3 / np.arange(1.0, n + 1.0) ** 2 * r.uniform(0.5, 1.0, n),),
        (100, 1000, 3000, 8000),
        8,
        ("r",),
        by_hand="durbin",
    ),
    Program(
        correlation, lambda r, n: (r.normal(size=(n + 40, n)),), (32, 200, 400, 800), 6, ("data",)
    ),
    Program(
        recurrence,
        lambda r, n: (r.uniform(0.5, 1.5, n), 0.8, 0.3),
        (1_000, 100_000, 1_000_000, 4_000_000),
        12,
        ("x", "a", "b"),
        loops=True,
        by_hand="recurrence",
    ),
)
