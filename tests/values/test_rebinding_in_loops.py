"""Names that loops bind anew, and to something else: None again, transposes, arrays with other names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from python_oracle import compiled

import mutad

X = np.array([0.3, 0.7, 1.1])
A = np.array([[0.3, 0.7, -0.2], [1.1, -0.4, 0.9]])
SQUARE = np.array([[0.3, 0.7], [1.1, -0.4]])

CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []


def on(*arrays: np.ndarray, n: str = "0 1 2 5") -> Callable[[Callable[..., Any]], Any]:
    """The function is called with these arrays and each number: all agrees with CPython, gradients too."""

    def record(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.extend((function, (*arrays, int(k))) for k in n.split())
        return function

    return record


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__}-{c[1][-1]}")
def test_agrees(case: tuple[Callable[..., Any], tuple[Any, ...]]) -> None:
    function, arguments = case
    copies = (a.copy() if isinstance(a, np.ndarray) else a for a in arguments)
    mutad.check_gradient(compiled(function, grad=True, opt=1), *copies)


# None again.


@on(X, n="0 1 4 7")
def momentum_that_restarts(x, n):
    m = None
    total = 0.0 * x[0]
    for i in range(n):
        if m is not None:
            total += (m * x).sum()
            m[0] *= 0.5
        m = x * (i + 1.0) if m is None else 0.9 * m + x
        if i % 3 == 2:
            m = None
    return total if m is None else total + m[0]


@on(X)
def an_array_then_none_in_an_inner_loop(x, n):
    total = 0.0 * x[0]
    m = x.copy()
    for i in range(n):
        for j in range(3):
            m = x * (j + 1.0) if m is None else m * 0.5 + x
            if (i + j) % 4 == 3:
                m = None
                continue
            total += (m * m).sum()
        if i % 2:
            m = None
    return total


@on(X, n="0 3 6")
def none_between_arrays_of_several_lengths(x, n):
    best, total = None, 0.0 * x[0]
    for i in range(n):
        if i % 3 == 2:
            best = None
        elif i % 3 == 0:
            best = x[: i % x.size + 1] * 2.0
        if best is not None:
            total += (best * best).sum() * best.size
    return total


@on(X, n="1 3")
def first_bound_in_a_loop_with_the_length_of_an_iteration(x, n):
    for i in range(n):
        y = x[: i + 1] * 2.0
    return (y * y).sum()


# Views with their axes in another order.


@on(A)
def turned_in_each_iteration(a, n):
    total = 0.0 * a[0, 0]
    for i in range(n):
        a = a.T
        a[0, 1] += a[1, 0] * (i + 1.0)
        total += a[1, 0] * a.shape[0]
    return total + a[0, 1]


@on(SQUARE, n="0 2 5")
def turned_on_a_branch_of_an_inner_loop(a, n):
    total = 0.0 * a[0, 0]
    for i in range(n):
        for j in range(i % 3):
            if (i + j) % 2:
                a = np.transpose(a)[::-1]
        a[0] *= 0.5 + i
        total += a[0, 1] * a[1, 0] * a[0, 1]
    return total


@on(SQUARE, A[:, :2].copy())
def two_that_change_places_turned(a, b, n):
    for _ in range(n):
        a, b = b.T, a
        a[0, 1] += b[1, 0] * b[0, 1]
    return a[0, 1] + (a * b).sum()


@on(np.arange(24.0).reshape(2, 3, 4) / 7.0, n="0 1 2 3")
def three_axes_in_turn(a, n):
    total = 0.0
    for i in range(n):
        a = a.transpose(1, 2, 0)
        a[0, 1, 0] *= 2.0
        total += a[0, 1, 1] * a[1, 1, 0] * (i + 1)
    return total


def test_a_view_that_is_turned_is_returned_as_a_view() -> None:
    def turned(a: np.ndarray, n: int) -> np.ndarray:
        for _ in range(n):
            a = a.T
        return a

    for n in range(4):
        a = A.copy()
        got = compiled(turned)(a, n)
        assert got.shape == turned(a, n).shape
        assert got.strides == turned(a, n).strides
        assert np.shares_memory(got, a)


# The shape of another array, or one of its own.


@on(X, np.array([-0.2, 0.5, 0.9, 0.4]), n="0 1 2 5")
def longer_in_some_iterations(u, v, n):
    total = 0.0 * u[0]
    for i in range(n):
        u = v * u[0] if i % 2 else u + 1.0
        first = v * 2.0 if i % 3 else u * 3.0
        total += (u * u).sum() + (first * first).sum()
    return total


@on(X, n="0 1 2 5")
def turned_round_or_new(x, n):
    v = x * 1.0
    total = 0.0 * x[0]
    for i in range(n):
        v[0] *= 0.5
        total += v[0] * v[-1]
        v = v[::-1] if i % 2 else v * 1.5
    return total + v[0]


@on(A, n="0 1 3")
def products_of_an_array_that_changes_its_shape(a, n):
    total = 0.0 * a[0, 0]
    for i in range(n):
        v = np.ones(a.shape[1]) * a[0, 0]
        total += (a @ v).sum() + a.max()
        a = np.hstack([a @ a.T, a[:, :1] * 0.5]).T * 0.25
    return total + a[0, 1]


# One array under several names, changed in place.


@on(X, n="0 1 2 7")
def the_best_so_far_is_changed(x, n):
    current = x * 1.0
    best = current
    total = 0.0 * x[0]
    for i in range(n):
        for j in range(2):
            current = current * 0.9 + 0.1
            if current[0] < best[0] + 0.05 * j:
                best = current
            best[0] += 0.25
        total += (current * best).sum()
        if i % 2:
            current = best
        current[1] *= 0.5
    return total + best.sum() + current.sum()


@on(X, X[::-1].copy(), n="0 1 2 6")
def arguments_and_new_arrays_in_turn(x, y, n):
    a, b = x, y
    for i in range(n):
        if i == 5:
            break
        new = a * 0.5 + b
        if i % 3 == 1:
            a, b = b, new
        elif i % 3 == 2:
            a = y
        else:
            a = b = new
        b[0] += 0.25
        a[1] *= 0.5
    return (a * b).sum() + x.sum()


@on(X, n="1 2 3 6")
def with_names_that_are_none_or_bound_first(x, n):
    a, b = None, None
    total = 0.0 * x[0]
    for i in range(n):
        a, b = b, a
        t = x * (1.0 + i)
        if i != 1:
            r = t
        if a is None:
            a = r
        elif i % 3 == 0:
            b = None
        t[0] += 1.0
        r[1] *= 0.5
        if b is not None:
            total += (a * b).sum()
    return total + (r * t).sum()


@dataclass
class Search:
    current: np.ndarray
    best: np.ndarray

    def step(self, i):
        self.current = self.current * 0.9 + 0.1
        if i % 3 == 2:
            raise ArithmeticError
        if i % 2:
            self.best = self.current
        self.best[0] += 0.5


@on(X, n="0 1 4")
def fields_of_an_object_in_a_try(x, n):
    s = Search(x * 1.0, x)
    for i in range(n):
        try:
            s.step(i)
        except ArithmeticError:
            s.current = s.best
        s.current[1] *= 0.75
    return s.best.sum() + (s.current**2).sum()


def test_names_for_one_array_are_returned_as_one() -> None:
    def f(x: np.ndarray, y: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        a, b = x, y
        for i in range(n):
            t = a * 0.5 + b
            if i % 2:
                b = t
            else:
                a = b
            b[0] += 0.25
        return a, b

    def seen(run: Any, n: int) -> Any:
        given = X.copy(), X[::-1].copy()
        found = run(*given, n)
        return [[u is v for v in (*found, *given)] for u in found], [u.tolist() for u in found]

    for n in range(5):
        assert seen(compiled(f), n) == seen(f, n)


@on(X, n="0 1 2 5")
def changed_under_one_name_and_kept_under_another(x, n):
    a, b = x, None
    for i in range(n):
        b = a if i % 2 else b
        a = a * 0.5
        if b is not None:
            b[0] += 1.0
            if i == 4:
                return (a * b).sum()
    return a.sum() + x.sum()


@on(SQUARE, n="0 1 2 5")
def rows_and_columns(a, n):
    v = a[0]
    total = 0.0 * v[0]
    for i in range(n):
        v = a[:, i % 2] if i % 3 == 0 else a[i % 2]
        v[0] += 0.5
        total += v[1] * v[0]
    return total + v.sum()


VECTOR = np.linspace(0.2, 1.0, 5)


@on(VECTOR, VECTOR[::-1].copy(), n="1 2 3")
def a_view_first_bound_two_loops_deep(x, g, n):
    """In the first build the outer loop carries what it will be: nothing yet."""
    s = 0.5
    for _ in range(2):
        for i in range(n):
            if i > 0:
                x[:] = 0.5 * seen  # noqa: F821 - bound in the iteration before
            seen = g[:]
    return s * x[0] + x[1]


@on(SQUARE, SQUARE[0] * 2.0)
def a_vector_or_a_row(a, x, n):
    row, s = x, 0.0
    for i in range(n):
        s += row.sum()
        row[0] += 0.25
        row = a[i % 2]
    row *= 2.0
    return s + row.sum()


@on(SQUARE, SQUARE[0] * 2.0)
def a_vector_a_row_or_a_column(a, x, n):
    v, s = x, 0.0 * x[0]
    for i in range(n):
        if i % 3 == 0:
            v = a[:, i % 2]
        elif i % 3 == 1:
            v = x[::-1]
        else:
            v = a[-1]
        v[1] += 0.5 * s
        s += v[0]
    return s + v.sum()


@on(SQUARE, SQUARE[0] * 2.0)
def best_of_the_rows(a, x, n):
    best = x
    for row in a:
        if row[0] > best[0]:
            best = row
        best[1] += n
    best[0] = 9.0
    return best.copy()


@on(SQUARE, np.stack((SQUARE, SQUARE + 1.0)))
def a_matrix_or_one_of_a_stack(a, t, n):
    m = a
    for i in range(n):
        m[0] += m[1]
        m = t[i % 2] if i % 3 < 2 else a.T
    return (m * a).sum()
