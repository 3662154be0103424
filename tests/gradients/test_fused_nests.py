"""Row-wise elimination: the adjoint of both ranges of a row is one nest, and says what that of each says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutad


def elimination(matrix):
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
        total += a[i, i]
    return total


def nonlinear(matrix):
    """Each product goes through the square of what it is added to."""
    a = matrix.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[k, j] * a[k, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            for k in range(i):
                a[i, j] -= a[i, k] * a[k, j] * a[k, j]
    return (a * a).sum()


PROGRAMS = [elimination, nonlinear]


def given(n: int) -> Any:
    return np.random.default_rng(n).random((n, n)) + n * np.eye(n)


@pytest.fixture(params=PROGRAMS, ids=lambda f: f.__name__)
def compiled(request: pytest.FixtureRequest) -> Any:
    return mutad.compile(request.param, grad=True)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 21, 38])
def test_gradients_are_differences(compiled: Any, n: int) -> None:
    mutad.check_gradient(compiled, given(n))


def test_no_rows(compiled: Any) -> None:
    assert compiled.grad(np.empty((0, 0))).shape == (0, 0)


def test_more_columns_than_rows_raise_as_they_do(compiled: Any) -> None:
    with pytest.raises(IndexError):
        compiled.grad(np.ones((5, 3)))
    wide = np.random.default_rng(3).random((4, 9)) + np.eye(4, 9) * 4
    mutad.check_gradient(compiled, wide)
