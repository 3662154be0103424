"""Which calls of `math` are checked for their domain."""

import math

import numpy as np
import pytest

from mutad import compile


def distance(x, y):
    return math.sqrt((x - y) ** 2 + x * x + 0.5)


def difference(x, y):
    return math.sqrt(x * x - y * y)


def product(x, y):
    return math.sqrt(x * y)


def clipped(x, y):
    return math.sqrt(max(x - y, 0.0))


def soft_minimum(x, y):
    least = min(x, y)
    return math.exp(least - x) + math.exp(least - y)


CHECKS = [(distance, 0), (difference, 1), (product, 1), (clipped, 0), (soft_minimum, 0)]


@pytest.mark.parametrize(("function", "checks"), CHECKS)
def test_what_never_holds_is_not_checked(function, checks):
    text = compile(function, cache=False).inspect("simplify", np.float64(1.0), np.float64(2.0))
    assert text.count("raise_if") == checks


def test_a_value_that_is_loaded_twice_is_one():
    def lengths(x):
        total = 0.0
        for i in range(x.size):
            total += math.sqrt(x[i] * x[i] + 1.0)
        return total

    x = np.linspace(-2.0, 3.0, 9)
    compiled = compile(lengths, cache=False)
    assert "raise_if" not in compiled.inspect("simplify", x)
    np.testing.assert_allclose(compiled(x), lengths(x), rtol=1e-15)


@pytest.mark.parametrize("x", [-1.0, -0.0, 0.0, 2.0, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("y", [-3.0, -0.0, 1.0, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("function", [clipped, soft_minimum])
def test_the_unchecked_functions_are_cpythons(function, x, y):
    values = np.float64(x), np.float64(y)
    with np.errstate(all="ignore"):
        expected = function(*values)
    np.testing.assert_allclose(compile(function, cache=False)(*values), expected, rtol=1e-15)


@pytest.mark.parametrize("values", [(1.0, 3.0), (math.nan, 1.0), (-0.0, 0.0), (1e200, -1e200)])
def test_the_unchecked_root_is_cpythons(values):
    x, y = map(np.float64, values)
    with np.errstate(all="ignore"):
        expected = distance(x, y)
    np.testing.assert_equal(compile(distance, cache=False)(x, y), expected)


def test_the_checked_root_raises():
    with pytest.raises(ValueError, match=r"domain error|expected a nonnegative input, got -3\.0"):
        compile(difference, cache=False)(np.float64(1.0), np.float64(2.0))
