"""Loops that go through an array backwards do so on a copy that lies backwards (`reverse-arrays`)."""

from __future__ import annotations

import numpy as np
import pytest

from mutad import check_gradient, compile
from mutad.compiler.transforms import reverse_arrays

rng = np.random.default_rng(3)


def sums(r):
    """Reads in the value, an addition to the shadow in the reverse sweep."""
    y, s = np.cos(r), 0.0
    for k in range(r.size):
        t = np.dot(r[k::-1], y[: k + 1])
        s += t * t * y[k]
    return s


def stores(r):
    """Stores, and loads of the elements in front of them."""
    y = np.cos(r)
    for k in range(r.size - 1):
        r[k::-1] = 0.5 * y[: k + 1]
        r[k + 1] = r[k + 1] * y[k]
    return (r * r).sum()


def downwards(r):
    y, s = np.cos(r), 0.0
    for k in range(r.size - 1, 0, -1):
        s += np.dot(r[k:0:-1], y[:k]) * y[k]
    return s


def all_of_it(r):
    """The same part, again and again."""
    y, s = np.cos(r), 0.0
    for k in range(r.size):
        s += np.dot(r[::-1], y) * r[k]
        y *= 0.9
    return s * s


def branch(r):
    y, s = np.cos(r), 0.0
    for k in range(r.size):
        s += np.dot(r[k::-1], y[: k + 1])
        if y[k] > 0.8:
            s += np.dot(r[k::-1], y[: k + 1]) * y[k]
    return s * s


def raises(r):
    """An iteration that raises has stored nothing."""
    y, s = np.cos(r[:40]), 0.0
    for k in range(r.size):
        s += np.dot(r[k::-1], y[: k + 1])
    return s * s


def both_ways(r):
    """Kept: the array is also read forwards."""
    y, s = np.cos(r), 0.0
    for k in range(r.size):
        s += np.dot(r[k::-1], y[: k + 1]) * np.dot(r[: k + 1], y[: k + 1])
    return s


def overwritten(r):
    """Kept: an iteration stores to what it read, by another name."""
    y, s = np.cos(r), 0.0
    for k in range(r.size):
        s += np.dot(r[k::-1], y[: k + 1])
        r[: k + 1] *= 0.9
    return s * s


REVERSED, KEPT = (sums, stores, downwards, all_of_it, branch, raises), (both_ways, overwritten)
SIZES = (0, 1, 2, 3, 8, 17, 40)


@pytest.fixture
def found(monkeypatch):
    """The arrays that are copied."""
    arrays = []
    write = reverse_arrays.Backward.write

    def noting(self):
        arrays.append(self)
        write(self)

    monkeypatch.setattr(reverse_arrays.Backward, "write", noting)
    return arrays


def argument(n, dtype=np.float64):
    return rng.uniform(0.1, 0.9, n).astype(dtype)


@pytest.mark.parametrize("function", [*REVERSED, *KEPT], ids=lambda f: f.__name__)
def test_values_and_gradients(function, found):
    compile(function, cache=False)(argument(4))
    assert bool(found) is (function in REVERSED)
    compiled = compile(function, grad=True, cache=False)
    for n in SIZES:
        r = argument(n)
        mine, python = r.copy(), r.copy()
        expected = function(python)
        np.testing.assert_allclose(compiled(mine), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(mine, python, rtol=1e-12, atol=1e-12)
        if n:
            check_gradient(compiled, r)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("function", REVERSED, ids=lambda f: f.__name__)
def test_bits_are_those_of_arrays_where_they_lie(function, dtype, monkeypatch):
    results = []
    for pays in (reverse_arrays.Backward.pays, lambda _: False):
        monkeypatch.setattr(reverse_arrays.Backward, "pays", pays)
        compiled, seeded = compile(function, grad=True, cache=False), np.random.default_rng(5)
        for n in (3, 29, 64, 131) if function is not raises else (3, 29, 40):
            r = seeded.uniform(0.1, 0.9, n).astype(dtype)
            results.append([*compiled.value_and_grad(r), r])
    half = len(results) // 2
    for one, other in zip(results[:half], results[half:], strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(one, other, strict=True))


def test_the_shadow_of_what_is_read_is_reversed(found):
    compile(sums, grad=True, cache=False).grad(argument(20))
    assert any(one.array.name_hint == "r_shadow" and one.is_stored_to for one in found)


def test_an_iteration_raises_where_it_does_in_python():
    r = argument(50)
    for call in (
        raises,
        compile(raises, cache=False),
        compile(raises, grad=True, cache=False).grad,
    ):
        with pytest.raises(ValueError, match="not aligned"):
            call(r)


def test_an_argument_with_strides():
    compiled, r = compile(sums, cache=False), argument(60)
    for view in (r[::2], r[::-1]):
        np.testing.assert_allclose(compiled(view), sums(view), rtol=1e-12)
