"""`check_gradient` looks at second derivatives: what it finds, and what it lets pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad
from mutad import GradientError, check_gradient, compile


def times(x, y):
    return x * y


def one_sided(x, y, result):
    x.cotangent += mutad.stop_gradient(y.value) * result.cotangent
    y.cotangent += x.value * result.cotangent


def cube(x):
    return x * x * x


def held(x, result):
    x.cotangent += 3.0 * mutad.stop_gradient(x.value * x.value) * result.cotangent


WRONG: dict[str, tuple[Callable[..., Any], Callable[..., None], tuple[float, ...]]] = {
    "the Hessian is not symmetric": (times, one_sided, (2.0, 3.0)),
    "the Hessian-vector product gives": (cube, held, (2.0,)),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_second_derivatives_are_found(words: str) -> None:
    function, rule, args = WRONG[words]
    mutad.rule(function, rule)
    f = caller(function, len(args))
    with pytest.raises(GradientError, match=words):
        check_gradient(f, *args)
    check_gradient(f, *args, second=False)


def caller(function: Callable[..., Any], count: int) -> Any:
    if count == 1:
        return compile(lambda x: function(x) + x, grad=True, opt=1)
    return compile(lambda x, y: function(x, y) + x, grad=True, opt=1)


def bends(x):
    return (np.maximum(x, 0.0) ** 2).sum()


def jumps(x, y):
    return (x[0] - x[1]) ** 2 * y.sum() + abs(x[0] - x[1]) * (x[0] - x[1])


def is_no_float(x):
    return x * x, x.sum()


def overlaps(x, y):
    x[:] = y * y
    return (x * y).sum()


def branches(x, n):
    total = 0.0
    for i in range(n):
        total += x[i] ** 3 if x[i] > 0.0 else x[i] ** 2
    return total


buffer = np.array([0.5, -1.0, 2.0])
FINE: dict[Callable[..., Any], tuple[Any, ...]] = {
    bends: (np.array([0.0, 1.0, 0.0, -2.0]),),
    jumps: (np.array([1.0, 1.0]), np.ones(2)),
    is_no_float: (np.ones(3),),
    overlaps: (buffer, buffer),
    branches: (np.array([0.5, 0.0, -1.0]), 3),
}


@pytest.mark.parametrize("function", FINE)
def test_kinks_and_other_results_make_no_noise(function: Callable[..., Any]) -> None:
    check_gradient(compile(function, grad=True, opt=1), *FINE[function])
