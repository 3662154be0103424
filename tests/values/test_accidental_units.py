"""Slices that happen to have one element are broadcast, as in NumPy, and their gradients know it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad


def neighbours(u, v):
    v[1:-1] = u[:-2] + u[2:]
    return (v * v).sum()


def product(u, v):
    return (u[1:-1] * v[1:-1]).sum()


def three(u, v, w):
    return (u[1:-1] * v[1:-1] + w[2:]).sum()


def windows(x, w):
    y = np.zeros(max(x.size - w.size + 1, 1))
    for k in range(y.size):
        y[k] = (x[k : k + w.size] * w).sum()
    return (y * y).sum()


def parts(x, y, a, b, c, d):
    x[a:b] += y[c:d] * x[a:b]
    return (x**2).sum()


def in_place(x, a):
    x[1:] *= x[:a]
    return x.sum()


def with_zeros(x, n):
    return (x + np.zeros(n)).sum()


def two_axes(a, b):
    a[1:, 1:] -= a[1:, :b] * a[:b, 1:]
    return (a * a).sum()


def out_of_one_element(u, v):
    v[1:-1] *= u[1:-1]
    return v.sum()


def of(function: Callable[..., Any], *argument_lists: Any) -> list[tuple[Callable[..., Any], Any]]:
    return [(function, arguments) for arguments in argument_lists]


PAIRS = list(itertools.product((2, 3, 4, 5), repeat=2))
CASES = [
    *of(neighbours, *(((n,), (m,)) for n, m in PAIRS)),
    *of(product, *(((n,), (m,)) for n, m in PAIRS)),
    *of(three, *(((n,), (m,), (k,)) for n, m in PAIRS for k in (3, 4))),
    *of(out_of_one_element, *(((n,), (m,)) for n, m in PAIRS)),
    *of(windows, ((5,), (1,)), ((5,), (2,)), ((3,), (3,)), ((2,), (3,)), ((1,), (3,))),
    *of(
        parts,
        ((5,), (6,), 0, 3, 0, 3),
        ((5,), (6,), 0, 3, 2, 3),
        ((5,), (6,), 1, 2, 0, 3),
        ((5,), (6,), 0, 0, 1, 2),
        ((5,), (6,), 0, 3, 5, 6),
        ((5,), (6,), 0, 9, 0, 1),
    ),
    *of(in_place, ((5,), 4), ((5,), 1), ((5,), 3), ((2,), 1), ((1,), 1), ((1,), 0)),
    *of(with_zeros, ((5,), 5), ((5,), 1), ((5,), 3)),
    *of(two_axes, ((3, 3), 1), ((3, 3), 2), ((3, 3), 3)),
]
COMPILED = {function: mutad.compile(function, grad=True, opt=1) for function, _ in CASES}


def run(
    function: Callable[..., Any], arguments: Any
) -> tuple[Any, tuple[str, str] | None, list[np.ndarray]]:
    """The result, what was raised, the arrays afterwards."""
    rng = np.random.default_rng(1)
    values = [rng.normal(size=a) if isinstance(a, tuple) else a for a in arguments]
    arrays = [v for v in values if isinstance(v, np.ndarray)]
    try:
        return function(*values), None, arrays
    except Exception as error:
        return None, (type(error).__name__, str(error).partition("\n")[0].strip()), arrays


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__}{c[1]}")
def test_what_is_one_by_accident_is_broadcast(case: tuple[Callable[..., Any], Any]) -> None:
    function, arguments = case
    expected, raised, theirs = run(function, arguments)
    actual, ours_raised, ours = run(COMPILED[function], arguments)
    assert ours_raised == raised
    assert raised or np.isclose(expected, actual, rtol=1e-13)
    for a, b in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
    if not raised:
        rng = np.random.default_rng(2)
        values = [rng.normal(size=a) if isinstance(a, tuple) else a for a in arguments]
        mutad.check_gradient(COMPILED[function], *values)


def test_extents_that_agree_are_assumed_to_and_compiled_once() -> None:
    f = mutad.compile(neighbours)
    for n in (3, 4, 100):
        f(np.ones(n), np.ones(n))
    table = f._dispatcher.table  # pyright: ignore[reportPrivateUsage]
    assert len(table) == 1
    assert "arith.select" not in f.inspect("simplify")
    f(np.ones(3), np.ones(5))
    assert len(table) == 2
