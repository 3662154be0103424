"""`first, *rest = value` binds what CPython binds, and raises what it raises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from python_oracle import Tolerance, assert_same_outcome, run

import mutad
from mutad import check_gradient


def of_an_array(x):
    a, *rest, z = x
    rest.append(a)
    return a * z + sum(rest) * len(rest)


def of_a_tuple(x):
    (a, *rest), n = (x.sum(), 2.0 * x.sum(), x.mean()), x.size
    return a * sum(rest) + rest[-1] * n


def of_a_list(x):
    squares = [v * v for v in x]
    *rest, z = squares
    rest.append(z * z)
    return z * sum(rest) + sum(squares)


def of_items_of_a_loop(x):
    s = 0.0
    for a, *b in ((x.sum(), 2.0), (x.mean(), x.sum(), 3.0)):
        s += a * sum(b)
    return s


def with_nothing_left(x):
    a, *rest, b = (x.sum(), x.mean())
    return a * b + len(rest)


FUNCTIONS = [of_an_array, of_a_tuple, of_a_list, of_items_of_a_loop, with_nothing_left]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_values_are_cpythons(function: Any, size: int) -> None:
    def arguments() -> tuple[Any, ...]:
        return (np.linspace(0.5, 1.5, size),)

    compiled = mutad.compile(function, cache=False)
    assert_same_outcome(run(compiled, arguments), run(function, arguments), arguments, Tolerance(8))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_are_derivatives(function: Any) -> None:
    check_gradient(mutad.compile(function, grad=True, cache=False), np.linspace(0.5, 1.5, 4))
