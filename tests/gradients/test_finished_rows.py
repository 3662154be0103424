"""Factorizations row by row read columns of the rows before from a transposed copy (`reorder-loops`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from budget_programs import compiled as within
from budget_programs import least_of, outcome

import mutad
from mutad.compiler.transforms import finished_rows

Array = Any


def cholesky(m: Array) -> Array:
    a = m.copy()
    for i in range(a.shape[0]):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = math.sqrt(a[i, i])
    return a


def in_place(a: Array) -> Array:
    """The first rows are there before, the last columns are nobody's."""
    for i in range(a.shape[0] - 2):
        for j in range(i):
            for k in range(j):
                a[i + 2, j + 1] -= a[i + 2, k] * a[j + 2, k] * 0.1
            a[i + 2, j + 1] *= 0.5
    return a


def again(m: Array) -> Array:
    """A second sweep finds rows of the first where it has not come yet."""
    a = m.copy()
    for _ in range(2):
        for i in range(a.shape[0]):
            for j in range(i):
                for k in range(j):
                    a[i, j] -= a[i, k] * a[j, k] * 0.01
                a[i, j] /= 1.0 + a[j, j] * a[j, j]
    return a


def of_rows_behind(m: Array) -> Array:
    """What is read of a row may be of one that no iteration finishes."""
    a = m.copy()
    for i in range(a.shape[0] // 2):
        for j in range(i + 1):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j + 1, k] * 0.01
    return a


PROGRAMS = [cholesky, in_place, again, of_rows_behind]


def given(n: int) -> Array:
    return np.random.default_rng(n).random((n, n)) / n + np.diag(np.linspace(3.0, 4.0, n))


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small matrices are factorized like large ones."""
    monkeypatch.setattr(finished_rows, "MANY", 6)


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda f: f.__name__)
def program(request: pytest.FixtureRequest) -> Any:
    return request.param


def scalar(program: Any) -> Any:
    def function(m: Array) -> Any:
        a = program(m)
        return (a * a * a).sum()

    return function


@pytest.mark.parametrize("layout", ["C", "F", "strided"])
def test_values_are_those_of_python(program: Any, layout: str) -> None:
    f = mutad.compile(program)
    for n in (0, 1, 2, 5, 6, 7, 23, 45):
        m = given(n)
        if layout == "strided":
            m = np.repeat(np.repeat(m, 2, 0), 2, 1)[::2, ::2]
        elif layout == "F":
            m = np.asfortranarray(m)
        np.testing.assert_array_equal(f(m.copy(order="K")), program(m.copy(order="K")))


def test_columns_of_finished_rows_are_read_along_rows(program: Any) -> None:
    text = mutad.compile(program).inspect("optimize", given(3))
    assert ("_columns[" in text) is (program is not of_rows_behind)


def test_gradients_are_differences_and_within_a_budget_the_same(program: Any) -> None:
    f: Any = mutad.compile(scalar(program), grad=True)
    for n in (3, 7, 21):
        mutad.check_gradient(f, given(n))
    everything: Any = mutad.compile(scalar(program), grad=True, saves="all")
    np.testing.assert_allclose(f.grad(given(37)), everything.grad(given(37)), rtol=1e-12)


def test_steps_have_the_bits_of_the_loop() -> None:
    function, arguments = scalar(again), (given(24),)
    _, found = least_of(function, arguments, ("m",), opt=3)
    assert found == outcome(within(function, None, 3), arguments, ("m",))


def test_a_matrix_that_is_not_positive_definite_raises() -> None:
    f = mutad.compile(cholesky)
    with pytest.raises(ValueError, match=r"math domain error|expected a nonnegative input"):
        f(given(40) - 3.5 * np.eye(40))
    with pytest.raises(IndexError):
        f(np.ones((9, 4)))


def test_threads_have_transposed_matrices_of_their_own() -> None:
    @mutad.compile(parallel=True)
    def several(m: Array) -> Array:
        out = np.zeros(m.shape[0])
        for b in mutad.prange(m.shape[0]):
            a = m[b].copy()
            for i in range(a.shape[0]):
                for j in range(i):
                    for k in range(j):
                        a[i, j] -= a[i, k] * a[j, k] * 0.01
                    a[i, j] /= 1.0 + a[j, j]
            out[b] = a[-1, 0] + a[-1, -2]
        return out

    m = np.random.default_rng(2).random((40, 24, 24))
    for mine in (several(m), several(m)):
        np.testing.assert_array_equal(mine, several.__wrapped__(m))
