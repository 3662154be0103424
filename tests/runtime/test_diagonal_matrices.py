"""Jacobians and Hessians of functions that go element by element: one run, and the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutad


def mapped(x):
    return np.exp(-x * x) * np.sin(x) + x**3


def rooted(x):
    """A loop around maps."""
    y = x.copy()
    for _ in range(5):
        y = 0.5 * (y + x / y)
    return y


def clipped(x):
    return np.where(x > 1.0, x * x, np.minimum(x, 0.7))


def weighted(x):
    """Numbers that do not move may come from anywhere."""
    w = np.arange(float(x.size))[::-1].reshape(x.shape)
    return x * w * w.sum()


def in_place(x):
    x *= x
    return x


def turned(x):
    return x[::-1] * x


def moved_on(x):
    y = x.copy()
    y[1:] += x[:-1]
    return y


def scaled(x):
    return x * x.sum()


def normed(x):
    return x / np.sqrt((x * x).max())


def picked(x):
    return x[np.array([2, 0, 1])] * x[:3]


def transposed(x):
    return x.T * 2.0


def first_row(x):
    return x[0] * x


def prefixed(x):
    return x[:2] ** 2


def stored(x):
    y = x * x
    y[0] = x[1]
    return y


def spread_out(x):
    return np.cumsum(x) * x


VECTOR, SQUARE = np.array([0.6, 1.3, 2.0]), np.linspace(0.5, 2.0, 9).reshape(3, 3)


def is_marked(f: Any, mode: str) -> bool:
    table = f._dispatcher.table
    (found,) = (table[key] for key in table if key.mode == mode and key.lanes > 1)
    return found.metadata["tangents"]["diagonal"]


DIAGONAL = [(mapped, VECTOR), (mapped, SQUARE), (rooted, VECTOR), (clipped, VECTOR)]
DIAGONAL += [(weighted, VECTOR), (weighted, SQUARE), (in_place, VECTOR)]
OTHERS = [(turned, VECTOR), (moved_on, VECTOR), (scaled, VECTOR), (normed, VECTOR)]
OTHERS += [(picked, VECTOR), (transposed, SQUARE), (first_row, SQUARE), (stored, VECTOR)]
OTHERS += [(spread_out, VECTOR)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("function", "x"), [*DIAGONAL, *OTHERS, (prefixed, VECTOR)])
def test_jacobians_are_those_by_rows(function: Any, x: Any, dtype: Any) -> None:
    f, x = mutad.compile(function, grad=True, opt=1), x.astype(dtype)
    by_rows = f.jacobian(x.copy(), mode="reverse")
    for _ in range(2):  # the second is the entry's
        by_columns = f.jacobian(x.copy(), mode="forward")
        assert by_columns.dtype == by_rows.dtype
        np.testing.assert_allclose(by_columns, by_rows, rtol=0, atol=30 * np.finfo(dtype).eps)


@pytest.mark.parametrize(("function", "x"), DIAGONAL)
def test_what_goes_by_elements_takes_one_run(function: Any, x: Any) -> None:
    f = mutad.compile(function, grad=True, opt=1)
    f.jacobian(x.copy())
    assert is_marked(f, "tangent")


@pytest.mark.parametrize(("function", "x"), OTHERS)
def test_what_moves_with_other_elements_does_not(function: Any, x: Any) -> None:
    f = mutad.compile(function, grad=True, opt=1)
    f.jacobian(x, mode="forward")
    assert not is_marked(f, "tangent")


@pytest.mark.parametrize("n", [3, 2100])
@pytest.mark.parametrize("function", [mapped, rooted])
def test_small_and_large_ones(function: Any, n: int) -> None:
    """The entry makes the small ones, Python code the large ones."""
    f, x = mutad.compile(function, grad=True, opt=1), np.linspace(0.5, 2.0, n)
    wanted = f.jvp(x, tangents={"x": np.ones(n)})[1]
    for _ in range(2):
        np.testing.assert_allclose(f.jacobian(x), np.diag(wanted), rtol=1e-14)


def energy(x):
    return (np.exp(-x * x) * np.sin(x) + x**3).sum()


def coupled(x):
    return (x * x).sum() ** 2


@pytest.mark.parametrize("n", [3, 2100])
@pytest.mark.parametrize(("function", "diagonal"), [(energy, True), (coupled, False)])
def test_hessians(function: Any, diagonal: bool, n: int) -> None:
    f, x = mutad.compile(function, grad=True, opt=1), np.linspace(0.5, 2.0, n)
    along = np.random.default_rng(0).normal(size=n)
    wanted = f.hvp(x, direction=along)
    for _ in range(2):
        matrix = f.hessian(x)
        np.testing.assert_allclose(matrix @ along, wanted, rtol=1e-10)
        assert (np.count_nonzero(matrix) == n) == diagonal
    assert is_marked(f, "product") == diagonal


# Loops over elements.


def cubes(x):
    total = 0.0
    for i in range(x.size):
        total += x[i] ** 3
    return total


def branches(x):
    total = 0.0
    for i in range(x.size):
        if x[i] > 1.0:
            total += x[i] ** 3
        else:
            total -= np.sin(x[i]) * i
    return total


def with_temporary(x):
    t = np.empty(x.size)
    for i in range(x.size):
        t[i] = x[i] ** 2
    total = 0.0
    for i in range(x.size):
        total += t[i] * np.exp(-x[i])
    return total


def rows_of_cubes(x):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += x[i, j] ** 3
    return total


def backwards(x):
    total = 0.0
    for i in range(x.size):
        total += x[x.size - 1 - i] ** 3
    return total


def neighbours(x):
    total = 0.0
    for i in range(1, x.size):
        total += x[i] ** 2 * x[i - 1]
    return total


def mirrored(x):
    total = 0.0
    for i in range(x.size):
        total += x[i] ** 2 * x[x.size - 1 - i]
    return total


def carried(x):
    total = 1.0
    for i in range(x.size):
        total *= x[i] ** 2
    return total


def with_the_first(x):
    total = 0.0
    for i in range(x.size):
        total += x[i] ** 2 * x[0]
    return total


def moved_through_memory(x):
    t = np.zeros(x.size)
    for i in range(1, x.size):
        t[i - 1] = x[i] ** 2
    total = 0.0
    for i in range(x.size):
        total += t[i] * x[i]
    return total


def transposed_loops(x):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += x[i, j] * x[j, i]
    return total


def of_rows(x):
    total = 0.0
    for i in range(x.shape[0]):
        row = 0.0
        for j in range(x.shape[1]):
            row += x[i, j]
        total += row**2
    return total


def one_or_the_other(x):
    """Which element it is the branch says."""
    total = 0.0
    for i in range(1, x.size):
        y = x[i] if x[i] > 1.5 else x[i - 1]
        total += y**2 * x[i]
    return total


def through_a_map(x):
    """A number of one element in a map over all."""
    total = 0.0
    for i in range(x.size):
        total += (x[i] * x).sum()
    return total


IN_LOOPS = [(cubes, VECTOR), (branches, VECTOR), (with_temporary, VECTOR), (rows_of_cubes, SQUARE)]
IN_LOOPS += [(backwards, VECTOR)]
ACROSS = [(neighbours, VECTOR), (mirrored, VECTOR), (carried, VECTOR), (with_the_first, VECTOR)]
ACROSS += [(moved_through_memory, VECTOR), (transposed_loops, SQUARE), (of_rows, SQUARE)]
ACROSS += [(through_a_map, VECTOR), (one_or_the_other, VECTOR)]


@pytest.mark.parametrize(("function", "x"), [*IN_LOOPS, *ACROSS])
def test_hessians_of_loops(function: Any, x: Any) -> None:
    f = mutad.compile(function, grad=True, opt=1)
    units = np.eye(x.size).reshape(-1, *x.shape)
    wanted = np.array([f.hvp(x, direction=unit).ravel() for unit in units])
    for _ in range(2):
        matrix = f.hessian(x)
        np.testing.assert_allclose(matrix.reshape(x.size, x.size), wanted, rtol=0, atol=1e-12)
    assert is_marked(f, "product") == any(function is diagonal for diagonal, _ in IN_LOOPS)
