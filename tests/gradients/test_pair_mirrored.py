"""Arrays that are updated from their mirror images are updated pair by pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutad
from mutad.compiler.transforms.pair_mirrored import PairMirrored


def recursion(start: Any, a: float) -> Any:
    u = start.copy()
    for k in range(1, u.size):
        b = a / k * np.sin(np.dot(u[k - 1 :: -1], start[:k]))
        u[:k] += b * u[k - 1 :: -1]
    return (u * u).sum()


def turned(start: Any, a: float) -> Any:
    u = start.copy()
    u[:] = u[::-1]
    u[1:] = a * u[:0:-1]
    return (u * start).sum()


def products(start: Any, a: float) -> Any:
    u = start.copy()
    for _ in range(3):
        u *= a + np.sin(u[::-1])
    return u.sum()


def flipped(start: Any, a: float) -> Any:
    """Along either axis of a matrix, and along both."""
    m = start.copy()
    m[:] = np.cos(m[::-1]) * m
    m[:] += a * m[:, ::-1] * m
    m[:] -= a * m[::-1, ::-1] * start
    return (m * m).sum()


def shifted(start: Any, a: float) -> Any:
    u = start.copy()
    u[1:] += a * u[::-1][1:]
    u[:-1] *= u[::-1][:-1]
    return (u * u).sum()


def in_place(u: Any, a: float) -> Any:
    u += a * u[::-1]
    v = u[1:]
    v -= a * v[::-1] * v
    return u.sum()


def no_pass(self: Any, ctx: Any, op: Any) -> None:
    pass


def compiled(function: Any, **options: Any) -> Any:
    return mutad.compile(function, grad=True, cache=False, **options)


def start_of(function: Any, n: int) -> Any:
    shape = (n, n + 1) if function is flipped else n
    return np.random.default_rng(n).uniform(0.2, 0.7, size=shape)


ALL = [recursion, turned, products, flipped, shifted, in_place]
SIZES = (1, 2, 3, 4, 5, 8, 33, 100)


@pytest.mark.parametrize("function", ALL)
def test_values_have_the_bits_of_numpy(function: Any) -> None:
    made = compiled(function)
    for n in SIZES:
        start, ours = start_of(function, n), start_of(function, n)
        value = made(ours, 0.3)
        np.testing.assert_allclose(value, function(start, 0.3), rtol=1e-13)
        if function is in_place:
            np.testing.assert_array_equal(ours, start)


@pytest.mark.parametrize("function", ALL)
def test_gradients_are_those_through_temporaries(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = compiled(function, saves="all")
    made = compiled(function)
    found = [made.value_and_grad(start_of(function, n), 0.3, wrt=(0, 1)) for n in SIZES]
    kept = [every.value_and_grad(start_of(function, n), 0.3, wrt=(0, 1)) for n in SIZES]
    monkeypatch.setattr(PairMirrored, "apply", no_pass)
    without = compiled(function)
    old = [without.value_and_grad(start_of(function, n), 0.3, wrt=(0, 1)) for n in SIZES]
    for new, others in zip(found, zip(old, kept, strict=True), strict=True):
        for other in others:
            assert new[0] == other[0]
            for a, b in zip(new[1], other[1], strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize("n", [4, 7])
def test_gradients_are_those_of_differences(function: Any, n: int) -> None:
    mutad.check_gradient(compiled(function), start_of(function, n), 0.3)


def test_both_sweeps_have_no_temporary() -> None:
    made = compiled(recursion)
    for options in ({}, {"wrt": (0, 1)}):
        text = made.inspect("optimize", np.ones(9), 0.3, **options)
        loops = text[text.index("array.loop") :]
        assert "%temporary = array.alloc" not in loops
        assert loops.count("arith.floordivsi") == (2 if options else 1)


def test_arguments_that_overlap_are_read_first() -> None:
    def both(u: Any, v: Any) -> None:
        u += 2.0 * v[::-1]

    made = mutad.compile(both, cache=False)
    for at in range(4):
        one, other = np.arange(9.0), np.arange(9.0)
        made(one[at : at + 5], one[2:7])
        both(other[at : at + 5], other[2:7])
        np.testing.assert_array_equal(one, other)


def test_threads_have_the_same_bits() -> None:
    plain, threads = compiled(products), compiled(products, parallel=True)
    start = start_of(products, 5000)
    one, two = (f.value_and_grad(start.copy(), 0.3) for f in (plain, threads))
    assert one[0] == two[0]
    np.testing.assert_allclose(one[1], two[1], rtol=1e-13)
