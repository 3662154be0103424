"""Nests whose sums stay in registers: each element has its additions in the program's order, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad
from mutad.runtime import target


def product(c, a, b):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c.sum()


def scaled_rows(c, a, b):
    """By slices, in an array of the function's own."""
    n, m = a.shape
    out = np.ones((n, b.shape[1]), c.dtype)
    for i in range(n):
        for k in range(m):
            out[i] -= a[i, k] * b[k] - b[k] / 3.0
    c *= out
    return c.sum()


def convolution(c, a, b):
    """With loops of two counters that add, and rows of `a` that overlap."""
    for i in range(c.shape[0]):
        for k in range(b.shape[0] // 2):
            for d in range(2):
                for j in range(c.shape[1]):
                    c[i, j] += a[min(i + d, a.shape[0] - 1), k] * b[2 * k + d, j]
    return c.sum()


def itself(c, a, b):
    """Rows read what the ones before have stored."""
    for i in range(1, c.shape[0]):
        for k in range(a.shape[1]):
            for j in range(c.shape[1]):
                c[i, j] += a[i, k] * c[i - 1, j]
    return c.sum()


def own_column(c, a, b):
    """A row's factor is one of its own elements, which changes meanwhile."""
    for i in range(c.shape[0]):
        for k in range(b.shape[0]):
            for j in range(c.shape[1]):
                c[i, j] += c[i, k % c.shape[1]] * b[k, j]
    return c.sum()


def ragged_rows(c, a, b):
    """Rows that differ in length are no tiles: four additions go on at once."""
    for i in range(c.shape[0]):
        for k in range(b.shape[0]):
            c[i, : i + 15] += a[i, k] * b[k, : i + 15]
    return c.sum()


PROGRAMS = [product, scaled_rows, convolution, itself, own_column, ragged_rows]
TILED = [product, scaled_rows]
SHAPES = [
    (7, 70, 21),
    (13, 4, 13),
    (6, 3, 8),
    (5, 5, 4),
    (1, 9, 3),
    (20, 0, 9),
    (0, 5, 9),
    (3, 5, 0),
]


def numbers(shape: tuple[int, int, int], dtype: Any = np.float64) -> list[Any]:
    """Of all sizes, so that another order of additions would show, with infinities, NaN and -0.0."""
    n, m, columns = shape
    r = np.random.default_rng(n)
    made = [
        r.normal(size=s) * 10.0 ** r.integers(-9, 9, s)
        for s in ((n, columns), (n, m), (m, columns))
    ]
    if m > 8:
        made[1][n // 2, 3] = np.inf
        made[2][5, columns // 2] = -0.0
        made[0][-1, -1] = np.nan
    return [one.astype(dtype) for one in made]


def compare(f: Callable[..., Any], compiled: Callable[..., Any], arguments: list[Any]) -> None:
    mine, theirs = [a.copy() for a in arguments], [a.copy() for a in arguments]
    with np.errstate(all="ignore"):
        f(*theirs)
    compiled(*mine)
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
        numbers_alone = ~np.isnan(other)
        np.testing.assert_array_equal(
            np.signbit(one[numbers_alone]), np.signbit(other[numbers_alone])
        )


@pytest.mark.parametrize("cpu", target.runnable())
@pytest.mark.parametrize("f", PROGRAMS)
def test_each_element_has_its_order(
    f: Callable[..., Any], cpu: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MUTAD_TARGET_CPU", cpu)
    compiled = mutad.compile(f)
    for shape in SHAPES:
        compare(f, compiled, numbers(shape))


@pytest.mark.parametrize("f", TILED)
def test_numbers_of_32_bits(f: Callable[..., Any]):
    compiled = mutad.compile(f)
    for shape in SHAPES[:4]:
        compare(f, compiled, numbers(shape, np.float32))


@pytest.mark.parametrize("f", TILED)
def test_tiles_are_there(f: Callable[..., Any]):
    """Else the tests above would pass without them."""
    text = mutad.compile(f).inspect("optimize", *numbers((7, 9, 8)))
    assert text.count("vector.store") == 2 * (6 + 1)


def test_arrays_that_share_memory():
    compiled = mutad.compile(product)
    for first, second in ((0, 1), (1, 0)):
        mine, theirs = (numbers((9, 12, 12))[0] for _ in range(2))
        b = numbers((9, 12, 12))[2]
        with np.errstate(all="ignore"):
            product(theirs[first : first + 8], theirs[second : second + 8], b)
        compiled(mine[first : first + 8], mine[second : second + 8], b)
        np.testing.assert_array_equal(mine, theirs)


def test_what_was_stored_before_an_exception_is_there():
    compiled = mutad.compile(product)
    for shapes in (
        ((9, 16), (9, 7), (6, 16)),
        ((9, 16), (8, 7), (7, 16)),
        ((9, 16), (9, 7), (7, 12)),
    ):
        r = np.random.default_rng(1)
        a, b = r.normal(size=shapes[1]), r.normal(size=shapes[2])
        mine, theirs = np.zeros(shapes[0]), np.zeros(shapes[0])
        for f, c in ((compiled, mine), (product, theirs)):
            with pytest.raises(IndexError):
                f(c, a, b)
        np.testing.assert_array_equal(mine, theirs)


def test_threads_have_the_same_bits():
    one, many = mutad.compile(product), mutad.compile(product, parallel=True)
    arguments = [np.random.default_rng(2).normal(size=s) for s in ((400, 60), (400, 70), (70, 60))]
    mine, theirs = [a.copy() for a in arguments], [a.copy() for a in arguments]
    assert one(*mine) == many(*theirs)
    np.testing.assert_array_equal(mine[0], theirs[0])


@pytest.mark.parametrize("f", TILED)
def test_gradients_are_those_of_the_order(f: Callable[..., Any]):
    compiled = mutad.compile(f, grad=True)
    r = np.random.default_rng(3)
    c, a, b = (r.normal(size=s) for s in ((8, 13), (8, 9), (9, 13)))
    found = compiled.grad(c.copy(), a, b, wrt=("c", "a", "b"))
    for k, (direction, gradient) in enumerate(zip((c, a, b), found, strict=True)):
        ends = []
        for step in (1e-6, -1e-6):
            moved = [x.copy() for x in (c, a, b)]
            moved[k] += step * direction
            ends.append(f(*moved))
        np.testing.assert_allclose(
            (ends[0] - ends[1]) / 2e-6, (gradient * direction).sum(), rtol=1e-6
        )
