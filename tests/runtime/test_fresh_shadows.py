"""Shadows that hold nothing before: compiled code fills them, or stores what is first added to them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import CompiledFunction, Const, Duplicated, compile
from mutad.runtime import result_pool

N = 1 << 16
"""So large that arrays have memory of the pool, which other arrays had before."""


def elementwise(x):
    return (np.sin(x) * x).sum()


def product(x, w):
    return np.tanh(x @ w.T).sum()


def interior(x):
    return (x[1:-1] ** 2).sum()


def some(x, steps):
    total = 0.0
    for i in range(steps):
        total += x[i * i] ** 2
    return total


def swapped(x, steps):
    u = x.copy()
    v = x.copy()
    for _ in range(steps):
        v[1:-1] = 0.5 * (u[:-2] + u[2:]) * u[1:-1]
        u, v = v, u
    return u.sum()


def overwritten(x, y):
    x[:] = y * y
    return (x * y).sum()


def early(x, steps):
    if steps > 3:
        return (x * x).sum()
    return 2.0


def guarded(x):
    return np.where(x > 0, np.sqrt(x), 0.0).sum()


X = np.linspace(0.1, 1.0, N)
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[str, ...]]] = {
    "first touched by a map": (elementwise, (X,), ("x",)),
    "first touched by products": (
        product,
        (X.reshape(-1, 4), X[: 4 * 3].reshape(3, 4)),
        ("x", "w"),
    ),
    "first touched in part": (interior, (X,), ("x",)),
    "touched here and there": (some, (X, 100), ("x",)),
    "of grids that swap": (swapped, (X, 3), ("x",)),
    "of what is overwritten": (overwritten, (X, X + 1), ("x", "y")),
    "in one of two branches": (early, (X, 5), ("x",)),
    "in the other branch": (early, (X, 1), ("x",)),
    "with guards after all": (guarded, (np.where(X < 0.5, 0.0, X),), ("x",)),
}


def litter() -> None:
    """Leave NaN in the memory that the next large arrays have."""
    kept = [result_pool.empty(N) for _ in range(6)]
    for array in kept:
        array.fill(np.nan)


def compiled(function: Callable[..., Any]) -> CompiledFunction:
    return compile(function, grad=True, opt=1)


@pytest.mark.parametrize("case", CASES)
def test_gradients_in_memory_that_held_something_else(case: str):
    function, values, names = CASES[case]
    f, own = compiled(function), [v.copy() if isinstance(v, np.ndarray) else v for v in values]
    shadows = [np.zeros_like(own[k]) for k in range(len(names))]
    wrapped = [Duplicated(v, s) for v, s in zip(own, shadows, strict=False)]
    f.pullback(*wrapped, *map(Const, own[len(names) :]), cotangent=1.0)
    for _ in range(2):
        own = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
        litter()
        found = f.grad(*own, wrt=names)
        for one, expected in zip(found, shadows, strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", [c for c in CASES if c != "with guards after all"])
def test_products_in_memory_that_held_something_else(case: str):
    function, values, names = CASES[case]
    f = compiled(function)
    rng = np.random.default_rng(0)
    directions = tuple(rng.normal(size=values[k].shape) for k in range(len(names)))

    def own() -> list[Any]:
        return [v.copy() if isinstance(v, np.ndarray) else v for v in values]

    def slope(step: float) -> Any:
        moved = [v + step * d for v, d in zip(own(), directions, strict=False)]
        return f.grad(*moved, *own()[len(names) :], wrt=names)

    gradient = f.grad(*own(), wrt=names)
    litter()
    product_ = f.hvp(*own(), wrt=names, direction=directions)
    litter()
    _, beside, again = f.value_grad_hvp(*own(), wrt=names, direction=directions)
    differences = [(a - b) / 2e-5 for a, b in zip(slope(1e-5), slope(-1e-5), strict=True)]
    for k in range(len(names)):
        np.testing.assert_allclose(product_[k], differences[k], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(again[k], product_[k], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(beside[k], gradient[k], rtol=1e-12, atol=1e-12)


def modes(f: CompiledFunction) -> list[str]:
    return sorted(key.mode for key in f._dispatcher.table)


def test_pullback_has_code_of_its_own_only_where_that_differs():
    x, x_shadow = np.ones(5), np.full(5, 10.0)
    f = compiled(some)
    f.grad(x, 2)
    f.pullback(Duplicated(x, x_shadow), Const(2), cotangent=1.0)
    np.testing.assert_array_equal(x_shadow, [12.0, 12.0, 10.0, 10.0, 10.0])
    assert modes(f) == ["gradient"]
    f = compiled(interior)
    f.pullback(Duplicated(x, x_shadow), cotangent=1.0)
    assert modes(f) == ["pullback"]
    f = compiled(elementwise)
    gradient = f.grad(x)
    x_shadow = np.full(5, 10.0)
    f.pullback(Duplicated(x, x_shadow), cotangent=1.0)
    np.testing.assert_allclose(x_shadow, gradient + 10.0)
    assert modes(f) == ["gradient", "pullback"]


def test_gradients_of_arguments_that_share_memory_start_from_zeros():
    f = compiled(product)
    w = X[:16].reshape(4, 4).copy()
    x_bar, w_bar = f.grad(w, w, wrt=("x", "w"))
    assert np.shares_memory(x_bar, w_bar)
    apart = f.grad(w, w.copy(), wrt=("x", "w"))
    np.testing.assert_allclose(x_bar, apart[0] + apart[1])


def ping_pong(u, steps):
    v = u.copy()
    for _ in range(steps):
        v[1:-1] = u[1:-1] * (u[:-2] + u[2:])
        u, v = v, u
    return u.sum()


def test_code_that_relies_on_zeros_is_not_that_of_pullback():
    u, found = np.linspace(0.5, 1.5, 7), list[Any]()
    for grad_first in (False, True):
        f, shadow = compiled(ping_pong), np.linspace(1.0, 2.0, 7)
        if grad_first:
            f.grad(u.copy(), 3)
        f.pullback(Duplicated(u.copy(), shadow), Const(3), cotangent=1.0)
        found.append(shadow)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)
