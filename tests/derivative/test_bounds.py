"""Saved bytes that only a run can tell: a bound where one is known, which a run keeps."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import compile
from mutad.runtime.measure import measure_gradient

X = np.linspace(0.1, 0.9, 1000)


def in_a_branch(x, c):
    if x[0] > c:
        x[:] = x * x
    return x.sum()


def left_early(x, c):
    s = 0.0
    for i in range(x.size):
        s = s * math.sin(s) + x[i]
        if s > c:
            break
    return s


def as_long_as_the_first_element_says(x, c):
    n = int(x[0] * 1000)
    x[:n] = np.sin(x[:n])
    x[:n] *= x[:n]
    return x.sum()


def of_the_chosen_elements(x, c):
    found = np.nonzero(x > c)[0]
    for _ in range(3):
        x[found] = np.sin(x[found])
    return x.sum()


def of_a_list_that_grows_under_a_condition(x, c):
    found = []
    for v in x:
        if v > c:
            found.append(v)
    s = 0.0
    for i in range(len(found)):
        s = s * math.sin(s) + found[i]
    return s


def in_a_few_slices(x, c):
    for k in range(x.size % 7):
        x[k : k + 400] = np.sin(x[k : k + 400])
    return x.sum()


def until_large(x, c):
    y = 1.0
    while y < 2.0:
        y = y + x[0] * y * y
    return y


BOUNDS: list[tuple[Callable[..., Any], int | None, bool]] = [
    (in_a_branch, 8000, True),
    (left_early, 8000, True),
    (as_long_as_the_first_element_says, 16000, True),
    (of_the_chosen_elements, 24000, True),
    (of_a_list_that_grows_under_a_condition, 8000, True),
    (in_a_few_slices, 6 * 400 * 8, False),
    (until_large, None, False),
]


@pytest.mark.parametrize(
    ("function", "most", "is_bound"), BOUNDS, ids=lambda c: getattr(c, "__name__", "")
)
def test_what_is_known_of_saved_bytes_is_said(
    function: Callable[..., Any], most: int | None, is_bound: bool
) -> None:
    made = compile(function, grad=True, cache=False, opt=1)
    plan = made.explain(X.copy(), 0.05)
    assert (plan.saved_bytes, plan.is_bound) == (most, is_bound)
    assert ("at most" in str(plan)) == is_bound
    if most is not None:
        measured = measure_gradient(made, X.copy(), 0.05).kernel
        assert measured <= 2.1 * most + (plan.shadow_bytes or 10**6) + (
            plan.temporary_bytes or 10**6
        )
