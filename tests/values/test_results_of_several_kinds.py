"""Results whose kind is known at run time only: None or a number, an array, a tuple; words."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from mutad import CompileError, check_gradient, compile

X = np.array([0.5, 1.5, 2.5, 0.25])
Y = np.array([0.1, 1.5, 1.5, 1.25])


@dataclass
class Fit:
    slope: float
    rest: np.ndarray


def number(x):
    for v in x:
        if v > 2.0:
            return v * v * x[0]
    return None


def root(x):
    for v in x:
        try:
            return math.sqrt(v - 1.0) * x[1]
        except ValueError:
            x[0] += 1.0
    else:
        return None


def word(x):
    if x.sum() > 4.5:
        return "large", x[0]
    return "small", x[1]


def array(x):
    if x[0] > 0.2:
        x[0] = 7.0
        return x
    return None


def part(x):
    y = x * 2.0
    return y[1:] if x[0] > 0.2 else None


def found(x):
    best = None
    for i, v in enumerate(x):
        if v > 2.0:
            best = i, v
    return best, x.sum()


@pytest.mark.parametrize("function", [number, root, word, array, part, found])
def test_python_agrees(function):
    compiled = compile(function)
    for point in (X, Y, X):
        mine, theirs = point.copy(), point.copy()
        got, want = compiled(mine), function(theirs)
        assert repr(got) == repr(want)
        assert (got is mine) == (want is theirs)
        np.testing.assert_array_equal(mine, theirs)


def test_the_gradient_is_that_of_the_number():
    compiled = compile(number, grad=True)
    check_gradient(compiled, X)
    for _ in range(2):
        assert compiled.grad(X).tolist() == pytest.approx([6.25, 0.0, 2.5, 0.0])
        with pytest.raises(TypeError, match="this call returns None"):
            compiled.grad(Y)
    value, back = compile(found, grad=True).vjp(X)
    assert value == ((2, 2.5), 4.75)
    assert back(((None, 3.0), 1.0)).tolist() == [1.0, 1.0, 4.0, 1.0]
    assert back((None, 1.0)).tolist() == [1.0, 1.0, 1.0, 1.0]
    assert compile(found, grad=True).vjp(Y)[1]((None, 2.0)).tolist() == [2.0] * 4


def test_an_object_or_none_is_refused():
    def fit(x):
        return Fit(x[0], x * 2.0) if x[0] > 0.2 else None

    with pytest.raises(CompileError, match="chosen at run time, or None"):
        compile(fit)(X.copy())
