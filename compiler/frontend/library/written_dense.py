"""Whole operations on dense matrices that code written in Python calls: each is an op of the `dense` dialect.

They work in place, on fresh arrays of float64 in C order; `t` may be any. What Python runs here is what the
ops mean, each step as one writes it on paper: the interpreter of the IR computes with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

SlogdetResult: Any = type(np.linalg.slogdet(np.eye(1)))
"""The named tuple that `np.linalg.slogdet` returns."""


def eliminate(a: Array, pivots: Array) -> int:
    """`a` becomes its factors; 0, or one more than the step of the first pivot that is 0."""
    info = 0
    for k in range(len(a)):
        best = k + int(np.argmax(np.nan_to_num(np.abs(a[k:, k]), nan=-1.0)))
        pivots[k] = best = k if np.isnan(a[k, k]) else best
        a[[k, best]] = a[[best, k]]
        if a[k, k] == 0.0:
            info = info or k + 1
            continue
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return info


def solve_factored(factors: Array, pivots: Array, x: Array) -> Array:
    """`x`, which becomes the solution for itself."""
    for k, best in enumerate(pivots):
        x[[k, best]] = x[[best, k]]
    solve_triangle(factors, x, upper=False, unit=True)
    return solve_triangle(factors, x, upper=True, unit=False)


def log_determinant(factors: Array, pivots: Array) -> float:
    """The logarithm of the determinant's size."""
    return np.sum(np.log(np.abs(np.diagonal(factors))))


def lower_factor(a: Array) -> int:
    """`a` becomes Cholesky's factor of its lower triangle; 0, or one more than the row that stops it."""
    info = 0
    for i in range(len(a)):
        for j in range(i):
            a[i, j] = (a[i, j] - np.dot(a[i, :j], a[j, :j])) / a[j, j]
        rest = a[i, i] - np.dot(a[i, :i], a[i, :i])
        if not rest > 0.0:
            info = i + 1
            break
        a[i, i] = np.sqrt(rest)
    a[:] = np.tril(a)
    return info


def solve_triangle(t: Array, x: Array, upper: bool, unit: bool) -> Array:
    """`x`, which becomes the solution for itself of a triangle of `t`."""
    for step in range(len(t)):
        i = len(t) - 1 - step if upper else step
        for j in range(i + 1, len(t)) if upper else range(i):
            x[i] -= t[i, j] * x[j]
        if not unit:
            x[i] /= t[i, i]
    return x
