"""What a function returns shares memory as in CPython: the same object, views of one buffer."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from python_oracle import compiled

import mutad


def twice(x):
    y = x * 2.0
    return y, y


def with_tail(x):
    y = x * 2.0
    return y, y[1:]


def tail_first(x):
    y = x * 2.0
    return y[1:], (y[::-1], y), x


def two_views(x):
    y = x * 2.0
    return y[1:], y[:3]


def disjoint_views(x):
    y = x * 2.0
    return y[3:], y[:3]


def whole_view(x):
    y = x * 2.0
    return y, y[:]


def either_way(x):
    y = x * 2.0
    z = y
    if x[0] > 0:
        z = x * 3.0
    return y, z, z


def arguments_or_each_other(x):
    z = x if x[0] > 0 else x * 1.0
    w = x * 2.0 if x[0] > 0 else x
    return z, w, z


def flat(value: Any) -> list[np.ndarray]:
    return [a for v in value for a in flat(v)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize(
    "function",
    [twice, with_tail, tail_first, two_views, disjoint_views, whole_view, either_way]
    + [arguments_or_each_other],
)
@pytest.mark.parametrize("first", [1.0, -1.0])
def test_results_share_as_in_python(function: Any, first: float) -> None:
    def run(f: Any) -> tuple[list[np.ndarray], list[tuple[bool, bool]]]:
        x = np.arange(6.0) + first
        found = [*flat(f(x)), x]
        return found, [(a is b, np.shares_memory(a, b)) for a in found for b in found]

    got, sharing = run(compiled(function))
    want, expected = run(function)
    assert [a.tolist() for a in got] == [a.tolist() for a in want]
    if function is not disjoint_views:
        assert sharing == expected
    keep = got[0]
    del got
    gc.collect()
    keep += 1.0
    assert keep.tolist() == (want[0] + 1.0).tolist()


@pytest.mark.parametrize("function", [twice, with_tail, two_views])
def test_cotangents_of_shared_results_add_up(function: Any) -> None:
    mutad.check_gradient(compiled(function, grad=True), np.arange(1.0, 6.0))


def views_without_their_array(x):
    y = x * 2.0
    return y[1:], y[2:]


def test_views_whose_array_is_lost_are_refused() -> None:
    with pytest.raises(mutad.CompileError, match=r"(?s)share memory.*return that array as well"):
        compiled(views_without_their_array)(np.ones(5))
