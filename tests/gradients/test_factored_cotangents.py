"""Cotangents are multiplied once by the sum of their partials (`factor-cotangents`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from budget_programs import compiled, least_of, outcome
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

import mutad

programs = GradientPrograms()
on = programs.on

Array = np.ndarray


@on("f64[N] S K", N="20 0 3", S="0.1", K="3 0")
@on("f32[20] S K", S="0.1", K="2", relative=1e-2)
def advected(start, nu, steps):
    """One partial is a constant, one the same for all points, one of each point."""
    u = start.copy()
    for _ in range(steps):
        u[1:-1] += nu * (u[2:] - 2.0 * u[1:-1] + u[:-2]) - 0.05 * u[1:-1] * (u[2:] - u[:-2])
    return (u * u).sum()


@on("f64[N,M] f64[N,M] S", N="6 3", M="7 3", S="0.3")
def crossed(x, y, k):
    """Several cotangents, each there more than once."""
    s, t = x[1:-1, 1:-1], y[1:-1, 1:-1]
    a = s * t - k * s + 0.5 * t * x[2:, 1:-1]
    b = s * y[1:-1, 2:] + t * s + k * (s - 3.0 * t)
    return (a * b).sum() + (a * a).sum()


@on("f64[N]", N="8 3 2")
def chained(x):
    """A sum is the cotangent of another."""
    y = x[1:] * x[:-1] - 2.0 * x[1:] * x[1:] + x[1:]
    z = y[1:] * y[:-1] + 0.25 * y[1:] - y[1:] * x[2:]
    return (z * x[2:] - z).sum()


TestGradients = gradient_tests(programs, tangents=True)


def weighted(u: Array, w: Array, k: float) -> float:
    return (w * (u[1:-1] + k * u[1:-1] - u[1:-1] * (u[2:] - u[:-2]))).sum()


def by_products(u: Array, w: Array, k: float) -> tuple[Array, Array]:
    """The gradient with a product for each partial, and how large these are."""
    bar, size = np.zeros_like(u), np.zeros_like(u)
    mid, right, left = slice(1, -1), slice(2, None), slice(None, -2)
    for at, partial in (
        (mid, np.ones(w.size)),
        (mid, np.full(w.size, k)),
        (mid, -u[2:]),
        (mid, u[:-2]),
        (right, -u[1:-1]),
        (left, u[1:-1]),
    ):
        with np.errstate(invalid="ignore"):
            product = np.where(w == 0.0, 0.0, w * partial)
            bar[at] += product
            size[at] += abs(product)
    return bar, size


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150, 1e300])
@pytest.mark.parametrize("k", [1e-300, 0.5, 1e300, 0.0])
def test_no_scale_loses_digits(scale: float, k: float) -> None:
    rng = np.random.default_rng(3)
    u, w = scale * rng.normal(size=40), rng.normal(size=38) / max(scale, 1.0)
    found = mutad.compile(weighted, grad=True).grad(u, w, k)
    bar, size = by_products(u, w, k)
    assert np.all(abs(found - bar) <= 8 * np.finfo(float).eps * size)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_zero_is_strong_whatever_the_sum_of_partials_is(bad: float) -> None:
    rng = np.random.default_rng(4)
    u, w = rng.normal(size=40), rng.normal(size=38)
    u[[9, 11, 20]] = bad
    w[7:12] = 0.0
    w[18:21] = 0.0
    bar, size = by_products(u, w, 0.5)
    assert np.isfinite(bar).all()
    for k in (0.5, bad):
        if not np.isfinite(k):
            w[:] = 0.0
            bar[:] = size[:] = 0.0
        found = mutad.compile(weighted, grad=True).grad(u, w, k)
        assert np.all(abs(found - bar) <= 8 * np.finfo(float).eps * size)


def test_a_kink_has_the_derivative_that_it_had() -> None:
    def rooted(x: Array, k: float) -> float:
        r = np.where(x > 0.0, np.sqrt(x), 0.0)
        return (r * x - k * r * x + x).sum()

    x = np.array([0.25, 0.0, -1.0, 4.0])
    with np.errstate(invalid="ignore"):
        found = mutad.compile(rooted, grad=True).grad(x, 0.5)
    np.testing.assert_allclose(found, [1.375, 1.0, 1.0, 2.5], rtol=1e-15)


def test_infinite_partials_of_both_signs_are_no_number() -> None:
    u, w = np.ones(12), np.ones(10)
    u[[4, 6, 9]] = np.inf
    found = mutad.compile(weighted, grad=True).grad(u, w, 0.5)
    assert np.isnan(found[5])
    assert np.array_equal(np.isnan(found), np.isnan(by_products(u, w, 0.5)[0]))


def loops(start: Array, nu: float, steps: int) -> float:
    u = start.copy()
    for _ in range(steps):
        left = u[0]
        for i in range(1, u.size - 1):
            mid = u[i]
            u[i] = mid + (nu * (u[i + 1] - 2.0 * mid + left) - 0.05 * mid * (u[i + 1] - left))
            left = mid
    return (u * u).sum()


@pytest.mark.parametrize("function", [advected, loops])
@pytest.mark.parametrize("n", [77, 16, 5])
def test_a_budget_changes_no_bits(function: Any, n: int) -> None:
    arguments = np.random.default_rng(5).uniform(0.2, 0.9, n), 0.1, 17
    _, found = least_of(function, arguments, ("start",), opt=3)
    assert found == outcome(compiled(function, None, 3), arguments, ("start",))


def test_the_gradient_has_a_product_for_each_cotangent() -> None:
    """Three cotangents of `burgers`: the products besides are those of partials."""
    f = mutad.compile(advected, grad=True)
    text = f.inspect("optimize", np.ones(40), 0.1, 4, wrt="start")
    (body,) = [part for part in text.split("array.map") if "window" in part]
    assert body.count("arith.mulf") == 6


@pytest.mark.parametrize("function", [advected, loops])
def test_the_gradient_beside_a_product_has_the_same_bits(function: Any) -> None:
    start = np.random.default_rng(6).uniform(0.2, 0.9, 77)
    f = mutad.compile(function, grad=True)
    _, gradient, _ = f.value_grad_hvp(start, 0.1, 5, direction=np.cos(start))
    np.testing.assert_array_equal(gradient, f.grad(start, 0.1, 5))


@pytest.mark.parametrize("function", [advected, loops])
def test_a_gradient_that_a_function_asks_for_has_the_same_bits(function: Any) -> None:
    f = mutad.compile(function, grad=True, opt=2)

    @mutad.compile(grad=True, opt=2)
    def asks(start, nu, steps):
        return f.grad(start, nu, steps)

    start = np.linspace(0.5, 1.5, 37)
    np.testing.assert_array_equal(asks(start, 0.1, 5), f.grad(start, 0.1, 5))
