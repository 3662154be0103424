"""Loops over data of which some elements raise: the values, and where an element raises, what came before."""

import math

import numpy as np
import pytest

import mutad


def logarithms(x, y):
    total = 0.0
    for i in range(x.size):
        total += math.log(x[i])
        y[i] = total
    return total


def roots_of_rows(a, y):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[j] += math.sqrt(a[i, j]) / float(a[i, 0])
    return y.sum()


def in_place(x, y):
    for i in range(x.size):
        x[i] = math.sqrt(x[i])
    return y[0]


def in_the_other_array(x, y):
    for i in range(x.size - 1):
        y[i + 1] = math.sqrt(x[i]) - 2.0
    return x.sum()


def two_checks(x, y):
    total = 0.0
    for v, w in zip(x, y):
        total += math.asin(v) + math.acosh(1.0 + abs(float(w)))
        total += 1.0 / float(w)
    return total


def outcome(f, *arguments):
    """What a call returns or raises, and what it leaves."""
    try:
        result = f(*arguments)
    except (ValueError, ArithmeticError) as error:
        result = (type(error), str(error))
    return result, arguments


POSITIVE = np.array([0.3, 0.9, 0.25, 0.5, 0.75, 0.1])


@pytest.mark.parametrize("bad", [None, 0, 3, 5])
@pytest.mark.parametrize("value", [-1.0, 0.0, np.inf, np.nan])
@pytest.mark.parametrize("function", [logarithms, in_place, in_the_other_array, two_checks])
def test_as_in_python(function, value, bad):
    made = mutad.compile(function)
    for k, share in ((0, False), (1, False), (0, True)):
        given = []
        for _ in range(2):
            arrays = [POSITIVE.copy(), POSITIVE[::-1].copy()]
            if share:
                arrays[1] = arrays[0]
            if bad is not None:
                arrays[k][bad] = value
            given.append(arrays)
        with np.errstate(all="ignore"):
            expected, left = outcome(function, *given[0])
        found, mine = outcome(made, *given[1])
        if isinstance(expected, tuple):
            assert found[0] is expected[0]
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-14)
        for one, other in zip(mine, left, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)


@pytest.mark.parametrize("value", [-1.0, 0.0, 2.0])
def test_nests_as_in_python(value):
    made = mutad.compile(roots_of_rows)
    for place in ((0, 0), (1, 2), (2, 0), (2, 3)):
        a = np.arange(1.0, 13.0).reshape(3, 4)
        a[place] = value
        y, z = np.zeros(4), np.zeros(4)
        expected, found = outcome(roots_of_rows, a, y), outcome(made, a, z)
        assert isinstance(expected[0], tuple) == isinstance(found[0], tuple)
        np.testing.assert_allclose(z, y, rtol=1e-14)


def test_the_gradient_raises_as_the_function_does_and_has_no_checks_otherwise():
    f = mutad.compile(logarithms, grad=True)
    x, y = POSITIVE.copy(), np.zeros(6)
    np.testing.assert_allclose(f.grad(x, y), 1 / x)
    mutad.check_gradient(f, x, y)
    x[3] = -1.0
    y[:] = 0.0
    with pytest.raises(ValueError, match=r"expected a positive input|math domain error"):
        f.grad(x, y)
    assert y[2] == pytest.approx(np.log(x[:3]).sum())
    assert not y[3:].any()


@pytest.mark.parametrize("name", ["exp", "expm1", "sinh", "cosh", "exp2"])
def test_overflow_is_where_python_has_it(name):
    if not hasattr(math, name):
        return
    function = getattr(math, name)
    made = mutad.compile(lambda v: function(v))
    for bound in (
        709.782712893384,
        710.4758600739439,
        1023.9999999999999,
        1024.0,
        750.0,
        np.inf,
        np.nan,
    ):
        for v in (bound, np.nextafter(bound, np.inf), np.nextafter(bound, 0.0)):
            for argument in (float(v), -float(v)):
                expected, found = outcome(function, argument)[0], outcome(made, argument)[0]
                if isinstance(expected, tuple):
                    assert found[0] is expected[0], argument
                else:
                    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_loops_of_functions_of_math_are_vectorized(monkeypatch: pytest.MonkeyPatch):
    """For CPUs with AVX2; where vectors have two elements it does not pay."""

    def f(x):
        total = 0.0
        for v in x:
            total += math.sqrt(v)
        return total

    monkeypatch.setenv("MUTAD_TARGET_CPU", "x86-64-v3")
    assert "x double> @llvm.sqrt" in mutad.compile(f, opt=3).inspect("llvm-opt", np.ones(3))
