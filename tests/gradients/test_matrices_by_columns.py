"""Matrices that a function makes lie by columns if a nest goes through their columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutad
from mutad.compiler.transforms.transpose_matrices import Matrix


def projected(matrix: Any) -> Any:
    a = matrix.copy()
    for k in range(a.shape[1]):
        for j in range(k):
            a[:, k] -= a[:, j] * (np.dot(a[:, j], a[:, k]) / (1.0 + np.dot(a[:, j], a[:, j])))
    b = a * matrix
    b[0] *= 2.0
    return b.sum()


def in_place(matrix: Any) -> Any:
    a = np.zeros(matrix.shape)
    a += matrix
    for k in range(a.shape[1]):
        for j in range(k):
            a[:, k] = np.sin(a[:, k]) * a[:, j]
    a[1:, :-1] *= 2.0
    matrix[:] = a
    return a[0, 0]


def compiled(function: Any, **options: Any) -> Any:
    return mutad.compile(function, grad=True, cache=False, **options)


ALL = [projected, in_place]
SIZES = ((1, 1), (2, 1), (3, 2), (4, 7), (9, 5), (40, 21))


def no_chance(self: Any) -> bool:
    return False


@pytest.mark.parametrize("function", ALL)
def test_bits_are_those_of_copies(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [np.random.default_rng(m).normal(size=(m, n)) for m, n in SIZES]
    made = compiled(function)
    after = [case.copy() for case in cases]
    values = [made(one) for one in after]
    found = [made.value_and_grad(case.copy()) for case in cases]
    monkeypatch.setattr(Matrix, "may_lie_by_columns", no_chance)
    copied = compiled(function)
    for case, one, value, (total, bar) in zip(cases, after, values, found, strict=True):
        other = case.copy()
        assert copied(other) == value
        np.testing.assert_array_equal(one, other)
        other_total, other_bar = copied.value_and_grad(case.copy())
        assert total == other_total
        np.testing.assert_array_equal(bar, other_bar)
        np.testing.assert_allclose(value, function(case), rtol=1e-10)
        np.testing.assert_allclose(one, case, rtol=1e-10)


@pytest.mark.parametrize("function", ALL)
def test_gradients_are_those_of_differences(function: Any) -> None:
    start = np.random.default_rng(2).normal(size=(6, 4))
    mutad.check_gradient(compiled(function), start)
    plain, every = compiled(function), compiled(function, saves="all")
    np.testing.assert_allclose(plain.grad(start.copy()), every.grad(start.copy()), rtol=1e-12)


@pytest.mark.parametrize("function", ALL)
def test_matrix_is_made_by_columns(function: Any) -> None:
    text = compiled(function).inspect("optimize", np.ones((6, 4)))
    made = next(line for line in text.splitlines() if "%a = " in line)
    assert "array.view %a_columns" in made
