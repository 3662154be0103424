"""Quotients of several directions by one number: products with its reciprocal, where that is finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutad

SMALL, LARGE = 3e-309, 9e307


def ratios(a, d, n):
    """A quotient in scalar loops, often enough that guards do not pay."""
    x = a.copy()
    for _ in range(n):
        for i in range(x.size):
            x[i] = x[i] / d[i]
    return x


def mapped(a, d, n):
    """The same on arrays, as one map."""
    return a / d + 0.5 * np.sqrt(1.0 + a * a) / d + a / d / (1.0 + a * a)


def summed(a, d, n):
    total = 0.0
    for _ in range(n):
        for i in range(a.size):
            total += a[i] / d[i]
    return total


@pytest.mark.parametrize("function", [ratios, mapped])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tangents_are_those_of_each_direction(function: Any, dtype: Any) -> None:
    f = mutad.compile(function, grad=True, opt=1)
    rng = np.random.default_rng(0)
    a, d = rng.uniform(1.0, 2.0, (2, 5)).astype(dtype)
    along, others = rng.normal(size=(2, 8, 5)).astype(dtype)
    beside = f.jvp(a, d, 1, tangents={"a": along, "d": others}, batch=8)[1]
    for lane in range(8):
        alone = f.jvp(a, d, 1, tangents={"a": along[lane], "d": others[lane]})[1]
        np.testing.assert_allclose(beside[lane], alone, rtol=0, atol=10 * np.finfo(dtype).eps)


@pytest.mark.parametrize("function", [ratios, mapped])
@pytest.mark.parametrize("divisor", [SMALL, LARGE, 0.0, np.inf, -SMALL])
def test_where_the_reciprocal_is_no_number_it_is_a_quotient(function: Any, divisor: float) -> None:
    """The reciprocal of the small one is infinite. No tangent is zero: an infinite result would stay."""
    f = mutad.compile(function, grad=True, opt=1)
    d = np.array([1.5, divisor, 3.0])
    a = np.array([1.0, 0.7 * min(abs(divisor), 1e300), 1.0])
    along = np.ones((8, 3))
    along[:, 0] = np.arange(8.0)
    along[:, 1] = a[1] or 1.0
    beside = f.jvp(a, d, 1, tangents={"a": along}, batch=8)[1]
    for lane in range(8):
        alone = f.jvp(a, d, 1, tangents={"a": along[lane]})[1]
        np.testing.assert_allclose(beside[lane], alone, rtol=1e-14, atol=0)


@pytest.mark.parametrize("divisor", [SMALL, LARGE])
def test_an_infinite_reciprocal_makes_no_number_infinite(divisor: float) -> None:
    """The tangents of numbers are looked at for NaN alone."""
    f = mutad.compile(summed, grad=True, opt=1)
    a, d = np.array([1.0, 0.5 * abs(divisor)]), np.array([2.0, divisor])
    along = np.linspace(0.5, 1.0, 8)[:, None] * a
    beside = f.jvp(a, d, 2, tangents={"a": along}, batch=8)[1]
    alone = [f.jvp(a, d, 2, tangents={"a": one})[1] for one in along]
    np.testing.assert_allclose(beside, alone, rtol=1e-14)


@pytest.mark.parametrize("divisor", [SMALL, LARGE])
def test_cotangents_and_products_too(divisor: float) -> None:
    f = mutad.compile(summed, grad=True, opt=1)
    a, d = np.array([1.0, 1.0]), np.array([2.0, divisor])
    bars = np.arange(1.0, 9.0) * min(divisor, 1.0) / 16.0
    _, back = f.vjp(a, d, 2, wrt="a", batch=8)
    pulled = back(bars)
    for lane, bar in enumerate(bars):
        _, alone = f.vjp(a, d, 2, wrt="a")
        np.testing.assert_allclose(pulled[lane], alone(bar), rtol=1e-14, atol=0)


def test_one_quotient_serves_all_directions() -> None:
    """In the code no vector is divided."""
    f = mutad.compile(ratios, grad=True, opt=1)
    a, b = np.ones((2, 5))
    f.jvp(a, b, 1, tangents={"a": np.ones((8, 5)), "d": np.ones((8, 5))}, batch=8)
    d = f._dispatcher
    (key,) = (k for k in d.table if k.mode == "tangent")
    options = {**d.options, "stretch": False, "lanes": 8, "guards": False}
    asked = key.arguments, (), "tangent", key.wrt, options, d.era.captures
    text = d.compiler.stage("optimize", d.function, *asked)
    quotients = [line for line in text.splitlines() if "arith.divf" in line]
    assert quotients
    assert not [line for line in quotients if "vector" in line]
