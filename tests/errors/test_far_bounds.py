"""Bounds near the end of 64 bits: the right items, or an exception; never memory that is not ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from python_oracle import compiled

FAR = 2**63 - 1


def visited(x, a, b, s):
    for i in range(a, b, s):
        x[i % 5] += 1.0
    return x


@pytest.mark.parametrize(
    ("a", "b", "s"),
    [
        (0, 2**62, 2**61),
        (0, FAR, 2**62),
        (0, FAR, FAR),
        (FAR, 0, -(2**62)),
        (FAR, -FAR - 1, 1),
        (-FAR - 1, FAR, -1),
        (-1, FAR - 2, 2**61),
    ],
)
def test_range_has_as_many_items_as_in_python(a: int, b: int, s: int) -> None:
    assert np.array_equal(compiled(visited)(np.zeros(5), a, b, s), visited(np.zeros(5), a, b, s))


def test_range_further_than_64_bits_is_an_overflow_error() -> None:
    with pytest.raises(OverflowError):
        compiled(visited)(np.zeros(5), -FAR - 1, FAR, 2**62)


def double_behind(x, k):
    y = x[abs(k) : -3]
    y[...] = y * 2.0
    return y.sum()


@pytest.mark.parametrize(("n", "k"), [(0, FAR), (2, FAR), (5, 1), (5, -1)])
def test_slice_from_far_behind_is_empty(n: int, k: int) -> None:
    assert compiled(double_behind)(np.ones(n), k) == double_behind(np.ones(n), k)


def fused_away(n, m):
    return np.zeros((n, m))[0, 0] + 1.0


def identity(n, m):
    return np.eye(n, m)


def integers(n, m):
    return np.arange(m, n)


def floats(n, m):
    return np.arange(m, n, 0.5)


@pytest.mark.parametrize("function", [fused_away, identity, integers, floats])
@pytest.mark.parametrize(("n", "m"), [(2**62, 2**62), (2**50, 1), (FAR, 0)])
def test_array_larger_than_any_memory_is_refused(function: Any, n: int, m: int) -> None:
    if n == m and function in (integers, floats):
        assert compiled(function)(n, m).size == 0
        return
    with pytest.raises((ValueError, MemoryError)):
        compiled(function)(n, m)


def test_infinite_range_is_refused_in_numpys_words() -> None:
    with pytest.raises(ValueError, match="Maximum allowed size exceeded"):
        compiled(floats)(np.inf, 0.0)


def times_extent(x):
    return x.shape[1] * 2**16


def test_extents_beyond_memory_are_refused() -> None:
    with pytest.raises(ValueError, match="'x': an extent of"):
        compiled(times_extent)(np.empty((0, 2**50)))
