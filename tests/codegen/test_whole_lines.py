"""Long rows whose vectors begin at lines of the cache: values, and code, of these and of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mutad import compile
from mutad.compiler.codegen.whole_lines import LONG


def smoothed(u: Any, v: Any) -> None:
    v[1:-1] = 0.5 * (u[:-2] + u[2:]) * u[1:-1]


def scaled(u: Any, v: Any) -> None:
    v[:] = 0.5 * u


def moved(u: Any, v: Any) -> None:
    v[1:] = u[:-1]


def rows(u: Any, v: Any) -> None:
    v[:, 1:-1] = 0.5 * (u[:, :-2] + u[:, 2:])


def parts(function: Any, *arguments: Any) -> int:
    """How many loops go to the first line before the others."""
    return compile(function, cache=False).inspect("llvm", *arguments).count("ptrtoint")


@pytest.mark.parametrize("size", [0, 1, 2, 3, LONG - 1, LONG + 2, LONG + 9, 3 * LONG + 5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", range(0, 9, 2))
def test_rows_from_any_element_of_a_line(size: int, dtype: Any, offset: int) -> None:
    memory = np.random.default_rng(size).random(2 * size + 64).astype(dtype)
    u, v = memory[offset : offset + size], memory[offset + size + 3 : offset + 2 * size + 3]
    expected = memory.copy()
    smoothed(u, expected[offset + size + 3 : offset + 2 * size + 3])
    compile(smoothed)(u, v)
    np.testing.assert_allclose(memory, expected, rtol=1e-6)


def test_rows_that_begin_behind_a_line_go_from_one_on() -> None:
    assert parts(smoothed, np.ones(10), np.ones(10)) == 1


@pytest.mark.parametrize("function", [scaled, moved])
def test_others_do_not(function: Any) -> None:
    """Vectors that begin where arrays do begin at lines as it is; copies are calls."""
    assert parts(function, np.ones(10), np.ones(10)) == 0


def test_rows_of_grids_do_not() -> None:
    """These are short, and have no time for the first few points."""
    assert parts(rows, np.ones((5, 10)), np.ones((5, 10))) == 0


def stepped(start: Any, steps: Any) -> Any:
    u = start.copy()
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2]) - 0.05 * u[1:-1] * (u[2:] - u[:-2])
    return (u * u).sum()


@pytest.mark.parametrize("size", [5, LONG, LONG + 3, 2 * LONG + 1])
def test_adjoints_that_gather_along_long_rows(size: int) -> None:
    start = np.random.default_rng(3).random(size)
    found = compile(stepped, grad=True).grad(start, 3, wrt="start")
    whole = compile(stepped, grad=True, saves="all").grad(start, 3, wrt="start")
    np.testing.assert_allclose(found, whole, rtol=1e-12)
    few = compile(stepped, grad=True, memory=4 * start.nbytes).grad(start, 3, wrt="start")
    np.testing.assert_array_equal(found, few)
