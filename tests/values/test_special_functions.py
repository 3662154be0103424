"""Gamma, its logarithm, their derivatives: exact factorials, poles, CPython's errors."""

import math

import numpy as np
import pytest
from scipy import special

from mutad import check_gradient, compile

TAKEN = (0.5, 1.0, 2.0, 3, 5.0, 170.5, 171.6, 1e-300, -0.5, -200.5, 2.5e305, math.inf, math.nan)
RAISING = (
    0.0, -0.0, -1.0, -3, 0, -math.inf, 172.0, 5e-324, -5e-309, 1e308, 2.56e305,
)  # fmt: skip


def gamma(x):
    return math.gamma(x)


def lgamma(x):
    return math.lgamma(x)


def erfc(x):
    return math.erfc(x)


def outcome(function, x):
    """What it returns, or raises."""
    try:
        return function(x)
    except (ValueError, OverflowError) as error:
        return error


@pytest.mark.parametrize("function", [gamma, lgamma, erfc])
def test_math_as_in_cpython(function):
    compiled = compile(function, opt=1)
    for x in (*TAKEN, *RAISING):
        got, want = outcome(compiled, x), outcome(function, x)
        assert type(got) is type(want), x
        if isinstance(want, float):
            np.testing.assert_allclose(got, want, rtol=3e-15, err_msg=str(x))
        else:
            assert got.args == want.args, x


def test_factorials_are_exact():
    def both(x, n):
        return special.gamma(x), math.gamma(n), int(math.gamma(min(n, 21.0)))

    compiled = compile(both, opt=1)
    whole = np.arange(1.0, 24.0)
    for n in whole:
        found, one, number = compiled(whole, float(n))
        assert found.tolist() == special.gamma(whole).tolist()
        assert (one, number) == (math.gamma(n), math.factorial(min(int(n), 21) - 1))


POLES = np.array([0.0, -0.0, -1.0, -2.0, np.inf, -np.inf, np.nan])


def test_poles_and_float32_as_in_scipy():
    def all_of(x):
        return special.gammaln(x), special.psi(x), special.gamma(np.abs(x)), special.erfc(x)

    compiled = compile(all_of, opt=1)
    x32 = np.random.default_rng(1).uniform(0.1, 5.0, 20).astype(np.float32)
    for x in (POLES, x32):
        for got, want in zip(compiled(x), all_of(x), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=3e-7, atol=1e-15)


def test_polygamma_right_of_zero_and_left():
    """SciPy's own are right to 1e-13 left of 0, and psi near its zero at 1.46 to 1e-16 in absolute terms."""

    def total(x):
        return special.psi(x).sum()

    rng = np.random.default_rng(3)
    right = np.concatenate(
        [rng.uniform(1e-3, 5.0, 300), rng.uniform(5.0, 1e4, 100), [1e300, 1.4616321449]]
    )
    left = rng.uniform(-30.0, 0.0, 300)
    psi, slope = compile(lambda x: special.psi(x), opt=1), compile(total, grad=True, opt=1)
    np.testing.assert_allclose(psi(right), special.psi(right), rtol=2e-15, atol=1e-15)
    np.testing.assert_allclose(psi(left), special.psi(left), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(slope.grad(right), special.polygamma(1, right), rtol=4e-15)
    off = left - np.round(left)
    mirrored = (np.pi / np.sin(np.pi * off)) ** 2 - special.polygamma(1, 1.0 - left)
    np.testing.assert_allclose(slope.grad(left), mirrored, rtol=1e-13)


def loglikelihood(nu, x):
    """Student's t."""
    total = x.size * (math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - math.log(math.pi * nu) / 2)
    for v in x:
        total -= (nu + 1) / 2 * math.log1p(v * v / nu)
    return total


def test_gradient_of_a_likelihood():
    x = np.random.default_rng(0).normal(size=20)
    check_gradient(compile(grad=True, opt=1)(loglikelihood), 5.5, x)
    check_gradient(compile(grad=True, opt=1)(loglikelihood), 5.5, x, wrt=("nu", "x"))
