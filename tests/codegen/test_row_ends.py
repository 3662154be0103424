"""The last points of rows, in vectors of half, a quarter, ... of the width: values, gradients and the code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mutad import compile
from mutad.compiler.codegen.llvm_module import host
from mutad.compiler.codegen.vector_width import is_wide

GENERATOR = np.random.default_rng(5)


def moved(c: Any, v: Any) -> None:
    """Stored, and read beside itself."""
    c[1:-1, 1:-1] = c[1:-1, 1:-1] - 0.2 * np.where(v > 0.0, v * c[1:-1, :-2], v * c[1:-1, 2:])


def added(c: Any, v: Any) -> None:
    c[:, 1:] += 0.5 * v[:, :-1] / (1.0 + np.abs(v[:, 1:]))


def steps(start: Any, v: Any) -> Any:
    """Its adjoint adds to several views of one shadow, from buffers."""
    c = start.copy()
    for _ in range(2):
        left = np.where(v > 0.0, c[1:-1, :-2], c[1:-1, 2:])
        c[1:-1, 1:-1] = c[1:-1, 1:-1] * left - 0.2 * v * (c[2:, 1:-1] - c[:-2, 1:-1])
    return (c * c).sum()


def summed(c: Any) -> Any:
    return (c[:, 1:] * c[:, :-1]).sum()


def exponentials(c: Any, v: Any) -> None:
    c[:, 1:] = np.exp(v[:, 1:])


def two_sizes(c: Any, v: Any) -> None:
    c[:, 1:] = 2.0 * v[:, 1:].astype(np.float32)


def whole(c: Any, v: Any) -> None:
    c[:] = 0.5 * v + c


def line(c: Any, v: Any) -> None:
    c[1:] = 2.0 * v[1:] + v[:-1]


def divided(c: Any, v: Any, by: float) -> None:
    c[:, 1:] = v[:, :-1] / by - v[:, 1:]


@pytest.mark.parametrize("width", [1, 9, 40, 77])
def test_rows_that_divide_by_what_stands_still(width: int) -> None:
    """These have products, and look at their numbers: one loop."""
    v = GENERATOR.normal(size=(3, width))
    found, expected = np.zeros_like(v), np.zeros_like(v)
    compile(divided)(found, v, 3.0)
    divided(expected, v, 3.0)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("width", range(20))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_of_any_width(width: int, dtype: Any) -> None:
    c = GENERATOR.normal(size=(4, width + 2)).astype(dtype)
    v = GENERATOR.normal(size=(2, width)).astype(dtype)
    found, expected = c.copy(), c.copy()
    compile(moved)(found, v)
    moved(expected, v)
    np.testing.assert_array_equal(found, expected)
    w = GENERATOR.normal(size=c.shape).astype(dtype)
    compile(added)(found, w)
    added(expected, w)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("width", [*range(1, 18), 254, 255, 259, 262])
def test_adjoints_that_add_from_buffers(width: int) -> None:
    start, v = GENERATOR.normal(size=(5, width + 2)), GENERATOR.normal(size=(3, width))
    found = compile(steps, grad=True).grad(start, v, wrt=("start", "v"))
    whole = compile(steps, grad=True, saves="all", opt=0).grad(start, v, wrt=("start", "v"))
    for a, b in zip(found, whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    e, d = 1e-6, GENERATOR.normal(size=start.shape)
    slope = (steps(start + e * d, v) - steps(start - e * d, v)) / (2 * e)
    np.testing.assert_allclose((found[0] * d).sum(), slope, rtol=1e-5, atol=1e-6)


def ends(function: Any, *arguments: Any) -> int:
    """How many loops there are over one vector behind whole ones."""
    return compile(function, cache=False).inspect("llvm", *arguments).count("label %end.")


@pytest.mark.skipif(not is_wide(host().features), reason="no vectors of 64 bytes")
def test_rows_end_in_halves_of_a_vector() -> None:
    grid = np.ones((4, 10))
    narrow = grid.astype(np.float32)
    found = ends(added, grid, grid)
    assert found > 0
    assert found % 3 == 0
    assert ends(added, narrow, narrow) == found // 3 * 4


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (summed, (np.ones((4, 10)),)),
        (exponentials, (np.ones((4, 10)), np.ones((4, 10)))),
        (two_sizes, (np.ones((4, 10), np.float32), np.ones((4, 10)))),
        (whole, (np.ones((4, 10)), np.ones((4, 10)))),
        (line, (np.ones(10), np.ones(10))),
    ],
)
def test_others_do_not(function: Any, arguments: Any) -> None:
    """Sums have an order, functions of single elements other bits, whole rows often whole vectors."""
    assert ends(function, *arguments) == 0
