"""Decorated functions inside functions, and what they print; what they may not hold."""

import functools

import numpy as np
import pytest
from whole_programs import WholePrograms, agrees

from mutad import CompileError, compile

programs = WholePrograms()
on = programs.on


def doubled(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return 2.0 * f(*args, **kwargs)

    return wrapper


def scaled(k):
    def decorator(f):
        return lambda v: k * f(v)

    return decorator


@on()
def decorated_inner_functions(x):
    k = x[2]

    @scaled(3.0)
    @doubled
    def square(v):
        return v * v * k

    @scaled(k)
    def cube(v):
        return v**3

    return square(x[0]) + cube(x[1])


@on()
def prints_with_specifications(x):
    print(f"{x[0]:.3f}|{x.size:>5d}|{float(x[1]):e}", x[2])
    return x.sum()


@pytest.mark.parametrize(("function", "point"), programs.cases, ids=programs.names)
def test_as_in_cpython_and_differences(function, point):
    agrees(function, point)


def remembers(x):
    @functools.cache
    def square(v):
        return v * v

    return square(x[0])


CALLS = 0


def counts(x):
    global CALLS
    CALLS += 1
    return x.sum()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (remembers, "remembers its results"),
        (counts, "assigns to no name of a module"),
    ],
)
def test_refused(function, words):
    with pytest.raises(CompileError, match=words) as caught:
        compile(function)(np.array([0.7, 1.3, 0.4]))
    assert caught.value.span is not None
