"""Names that loops bind anew, and to something else: None again, transposes, arrays with other names."""

from collections.abc import Callable
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
