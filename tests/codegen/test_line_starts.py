"""Arrays and tapes that begin behind a line of the cache, so that what runs along their rows begins at lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mutad import compile

GRID = np.random.default_rng(1).normal(size=(6, 16))


def inner(start: Any, steps: Any) -> Any:
    """The inner points of each row are computed from themselves and their neighbours."""
    c = start.copy()
    for _ in range(steps):
        c[1:-1, 1:-1] = c[1:-1, 1:-1] + 0.1 * c[1:-1, 1:-1] * (c[:-2, 1:-1] - c[2:, 1:-1])
    return (c * c).sum()


def whole(start: Any, steps: Any) -> Any:
    c = start.copy()
    for _ in range(steps):
        c[1:-1] = c[1:-1] + 0.1 * c[1:-1] * (c[:-2] - c[2:])
    return (c * c).sum()


def one_column(start: Any, steps: Any) -> Any:
    """Rows of one element have no say."""
    c = start.copy()
    for _ in range(steps):
        c[:, 1:2] = 0.5 * c[:, 3:4]
        c[:] = 0.5 * c
    return (c * c).sum()


def exchanged(start: Any, steps: Any) -> Any:
    u, v = start.copy(), start.copy()
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, v = v, u
    return (u * u).sum()


def leads(function: Any, start: Any) -> set[int]:
    """How many bytes behind a line arrays of the function begin."""
    text = compile(function, cache=False).inspect("llvm", start, 2)
    lines = (line for line in text.splitlines() if "llvm.uadd.sat.i64(i64 %" in line)
    return {int(line.rstrip(")").rsplit(" ", 1)[1]) for line in lines}


@pytest.mark.parametrize(("dtype", "lead"), [(np.float64, 56), (np.float32, 60)])
def test_inner_points_begin_at_lines(dtype: Any, lead: int) -> None:
    assert leads(inner, GRID.astype(dtype)) == {lead}
    assert leads(exchanged, GRID.astype(dtype)) == {lead}


@pytest.mark.parametrize("function", [whole, one_column])
def test_others_begin_where_their_array_does(function: Any) -> None:
    assert leads(function, GRID) == set()


def test_a_tape_begins_as_its_versions_do() -> None:
    text = compile(inner, grad=True, cache=False).inspect("llvm", GRID, 2, wrt="start")
    assert ", 56\n" in text


def test_an_empty_tape_has_no_memory() -> None:
    """Neither one that is popped, nor one that `back` reads: no chunk was made."""
    found: Any = compile(inner, grad=True, cache=False)
    empty = np.zeros((0, 16))
    assert found.grad(empty, 2).shape == (0, 16)
    for start in (empty, GRID):
        out, back = found.vjp(start, 0, wrt="start")
        np.testing.assert_allclose(back(1.0), 2.0 * start)
        assert out == (start * start).sum()


@pytest.mark.parametrize("function", [inner, whole, one_column, exchanged])
@pytest.mark.parametrize("shape", [(4, 4), (6, 16), (9, 19), (40, 64)])
def test_values_and_gradients_are_those_of_other_plans(function: Any, shape: Any) -> None:
    start = np.random.default_rng(2).normal(size=shape)
    compiled: Any = compile(function, grad=True, cache=False)
    np.testing.assert_allclose(compiled(start, 3), function(start, 3), rtol=1e-13)
    plain: Any = compile(function, grad=True, saves="all", opt=0, cache=False)
    expected = plain.grad(start, 3)
    np.testing.assert_allclose(compiled.grad(start, 3), expected, rtol=1e-12, atol=1e-13)


def test_no_memory_is_still_an_error() -> None:
    """The size of an array that is too large stays too large."""

    def huge(n: Any) -> Any:
        c = np.zeros((n, n))
        for _ in range(2):
            c[1:-1, 1:-1] = c[1:-1, 1:-1] + 0.5 * c[:-2, 1:-1]
        return c[0, 0]

    with pytest.raises(MemoryError):
        compile(huge, cache=False)(2**29)
