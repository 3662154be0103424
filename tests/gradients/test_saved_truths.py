"""Truths that are saved as bits: eight iterations share a byte, also where some of them save nothing."""

from __future__ import annotations

import numpy as np
import pytest

from mutad import compile


def first_of_eight_saves_nothing(x, a, steps):
    """The loop over `m` does not run where `j` is 0, and whether it breaks depends on `j` alone."""
    n = x.shape[0]
    s = 0.0
    c = 1
    for t in range(steps):
        for j in range(n):
            c += int(abs(a[j])) % 3
            for m in range(n - j, n):
                if a[c % n] > 2.0:
                    break
                s += x[m] * x[j]
            a[j] += 1.5 - x[0]
    return s + (a * a).sum()


def some_save_nothing(x, a, steps):
    n = x.shape[0]
    s = 0.0
    c = 1
    for t in range(steps):
        for j in range(n):
            c += int(abs(a[j])) % 3
            for m in range(n - (j + t) % 3, n):
                if a[c % n] > 2.0:
                    break
                s += x[m] * x[j]
            a[j] += 1.5 - x[0]
    return s + (a * a).sum()


@pytest.mark.parametrize("n", [1, 2, 5, 8, 9, 17, 30])
@pytest.mark.parametrize(
    "function", [first_of_eight_saves_nothing, some_save_nothing], ids=lambda f: f.__name__
)
def test_iterations_that_save_nothing(function, n: int) -> None:
    rng = np.random.default_rng(n)
    x, a, steps = rng.uniform(0.5, 1.4, n), rng.uniform(0.0, 4.0, n), 5
    f = compile(function, grad=True, opt=1)
    assert "ceil" in str(f.explain(x, a.copy(), steps))  # bytes for truths
    value, (x_bar, a_bar) = f.value_and_grad(x, a.copy(), steps, wrt=("x", "a"))
    np.testing.assert_allclose(value, function(x, a.copy(), steps), rtol=1e-14)
    whole = compile(function, grad=True, opt=1, saves="all")
    for one, other in zip(
        (x_bar, a_bar), whole.grad(x, a.copy(), steps, wrt=("x", "a")), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    e, d = 1e-7, rng.normal(size=n)
    slope = (function(x + e * d, a.copy(), steps) - function(x - e * d, a.copy(), steps)) / (2 * e)
    np.testing.assert_allclose((x_bar * d).sum(), slope, rtol=1e-5, atol=1e-5)
