"""Whole operations on dense matrices that code written in Python calls: each is an op of the `dense` dialect.

They work in place, on fresh arrays of float64 in C order; `t` may be any. Only compiled code calls them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

SlogdetResult: Any = type(np.linalg.slogdet(np.eye(1)))
"""The named tuple that `np.linalg.slogdet` returns."""


def eliminate(a: Array, pivots: Array) -> int:
    """`a` becomes its factors; 0, or one more than the step of the first pivot that is 0."""
    raise NotImplementedError


def solve_factored(factors: Array, pivots: Array, x: Array) -> Array:
    """`x`, which becomes the solution for itself."""
    raise NotImplementedError


def log_determinant(factors: Array, pivots: Array) -> float:
    """The logarithm of the determinant's size."""
    raise NotImplementedError


def lower_factor(a: Array) -> int:
    """`a` becomes Cholesky's factor of its lower triangle; 0, or one more than the row that stops it."""
    raise NotImplementedError


def solve_triangle(t: Array, x: Array, upper: bool, unit: bool) -> Array:
    """`x`, which becomes the solution for itself of a triangle of `t`."""
    raise NotImplementedError
