"""Loops over one array's length that reach into others: of equal lengths, longer, shorter, in one memory.

For equal lengths there is code of its own, in which maps over both are joined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import CompiledFunction, compile


def update_and_dot(x, y, a):
    z = y.copy()
    for i in range(x.size):
        z[i] += a * x[i]
    total = 0.0
    for i in range(x.size):
        total += z[i] * x[i]
    return total


def whole_arrays_between(x, y, a):
    z = np.sin(y)
    for i in range(x.size):
        z[i] -= x[i] ** 2
    z *= a
    total = 0.0
    for i in range(x.size):
        total += z[i] * x[i] * y[i]
    return total + z.sum()


def stores_to_an_argument(x, y, a):
    y *= a
    for i in range(x.size):
        y[i] += np.exp(x[i])
    total = 0.0
    for i in range(x.size - 1, -1, -1):
        total += y[i] * x[i]
    return total * y[0]


def either_way(x, y, a):
    z, w = x.copy(), y * a
    for i in range(y.size):
        z[i] += y[i]
    for i in range(x.size):
        w[i] *= x[i]
    return (z * z).sum() + (w**2).sum()


def slices_in_iterations(x, y, a):
    """Of no elements no iteration says how long a slice is."""
    for _ in range(min(x.size, 4)):
        x[1:] += a * y[:-1]
        x *= 0.5
    return (x * x).sum()


PROGRAMS = (
    update_and_dot,
    whole_arrays_between,
    stores_to_an_argument,
    either_way,
    slices_in_iterations,
)
CODE: dict[Any, CompiledFunction] = {f: compile(f, grad=True, opt=1) for f in PROGRAMS}
SAVING: dict[Any, CompiledFunction] = {
    f: compile(f, grad=True, opt=1, saves="all") for f in PROGRAMS
}
ROWS = 3000
"""More than a block of rows, and no multiple of one."""
LENGTHS = ((5, 5), (1, 1), (0, 0), (4, 7), (7, 4), (3 * ROWS + 1, 3 * ROWS + 1))


def arguments(n: int, m: int, shared: bool = False) -> tuple[Any, Any, float]:
    rng = np.random.default_rng(n)
    if shared:
        both = rng.normal(size=n + m - 1)
        return both[:n], both[n - 1 :], 0.7
    return rng.normal(size=n), rng.normal(size=m), 0.7


def outcome(call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """What a call returns, or the exception, and what it leaves in its arguments."""
    try:
        return call(*args), args
    except Exception as error:
        return (type(error), str(error)), args


@pytest.mark.parametrize("function", PROGRAMS)
@pytest.mark.parametrize("shared", [False, True])
def test_values_and_gradients(function: Any, shared: bool) -> None:
    for n, m in LENGTHS[: 2 if shared else None]:
        expected, left = outcome(function, arguments(n, m, shared))
        found, mine = outcome(CODE[function], arguments(n, m, shared))
        for a, b in zip(mine, left, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)
        if isinstance(expected, tuple):
            assert found == expected
            continue
        assert found == pytest.approx(expected, rel=1e-12)
        _, gradient = CODE[function].value_and_grad(*arguments(n, m, shared), wrt=(0, 1))
        _, saving = SAVING[function].value_and_grad(*arguments(n, m, shared), wrt=(0, 1))
        for a, b in zip(gradient, saving, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("function", PROGRAMS)
def test_products_and_tangents(function: Any) -> None:
    f = CODE[function]
    for n, m in LENGTHS:
        rng = np.random.default_rng(1)
        directions = rng.normal(size=n), rng.normal(size=m)
        if isinstance(outcome(function, arguments(n, m))[0], tuple):
            continue
        product = f.hvp(*arguments(n, m), wrt=(0, 1), direction=directions)
        other = f.hvp(
            *arguments(n, m), wrt=(0, 1), direction=directions, mode="reverse-over-reverse"
        )
        for a, b in zip(product, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
        gradient = f.grad(*arguments(n, m), wrt=(0, 1))
        tangents = dict(zip("xy", (d.copy() for d in directions), strict=True))
        _, dot = f.jvp(*arguments(n, m), tangents=tangents)
        along = sum(g @ d for g, d in zip(gradient, directions, strict=True))
        assert dot == pytest.approx(along, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("function", PROGRAMS)
def test_second_halves(function: Any) -> None:
    """The reverse sweep alone, for one cotangent and for eight."""
    f = CODE[function]
    for n, m in LENGTHS:
        if isinstance(outcome(function, arguments(n, m))[0], tuple):
            continue
        gradient = f.grad(*arguments(n, m), wrt=(0, 1))
        _, back = f.vjp(*arguments(n, m), wrt=(0, 1))
        _, backs = f.vjp(*arguments(n, m), wrt=(0, 1), batch=8)
        bars = np.arange(8.0) - 2.0
        for g, one, eight in zip(gradient, back(1.0), backs(bars), strict=True):
            np.testing.assert_allclose(one, g, rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(eight, np.multiply.outer(bars, g), rtol=1e-11, atol=1e-11)
