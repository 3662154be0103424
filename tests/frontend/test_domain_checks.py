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


@pytest.mark.parametrize(("function", "checks"), [(distance, 0), (difference, 1), (product, 1)])
def test_a_root_of_what_is_never_negative_is_not_checked(function, checks):
    text = compile(function, cache=False).inspect("simplify", np.float64(1.0), np.float64(2.0))
    assert text.count('"ValueError"') == checks


@pytest.mark.parametrize("values", [(1.0, 3.0), (math.nan, 1.0), (-0.0, 0.0), (1e200, -1e200)])
def test_the_unchecked_root_is_cpythons(values):
    x, y = map(np.float64, values)
    with np.errstate(all="ignore"):
        expected = distance(x, y)
    np.testing.assert_equal(compile(distance, cache=False)(x, y), expected)


def test_the_checked_root_raises():
    with pytest.raises(ValueError, match=r"domain error|expected a nonnegative input, got -3\.0"):
        compile(difference, cache=False)(np.float64(1.0), np.float64(2.0))
