"""Adjoints of stencils, from Python on: which of them gather, and where they store instead of adding."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad.compiler import pipeline
from mutad.compiler.request import Request


def two_grids(u, steps):
    v = u.copy()
    u = u.copy()
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, v = v, u
    return u.sum()


def in_place(u, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1])
    return u.sum()


def in_loops(u, steps):
    v = u.copy()
    u = u.copy()
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.5 * (u[i - 1, j] + u[i, j + 1])
        u, v = v, u
    return u.sum()


def masked(u, steps):
    v = u.copy()
    for _ in range(steps):
        v[:, 1:-1] += np.where(u[:, 1:-1] > 0.0, u[:, :-2], u[:, 2:])
    return v.sum()


def checkerboard(u, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1:2] = 0.5 * (u[:-2:2] + u[2::2])
    return u.sum()


def reversed_rows(u, steps):
    v = np.zeros_like(u)
    for _ in range(steps):
        w = u[::-1]
        v[1:-1] += w[:-2] + 0.5 * w[2:]
    return v.sum()


def shift_by_argument(u, steps):
    v = u.copy()
    n = u.shape[0] - steps
    v[:n] += u[:n] * u[steps:]
    return v.sum()


def optimized(function: Callable[..., Any]) -> str:
    request = Request(function, ("f64[?,?]C", "py_int"), mode="gradient", wrt=(0,))
    return pipeline.run_stages(request, "optimize")


@pytest.mark.parametrize("function", [two_grids, in_place, in_loops], ids=lambda f: f.__name__)
def test_a_shadow_that_was_cleared_is_stored_to(function: Callable[..., Any]) -> None:
    backwards = optimized(function).rpartition("array.loop")[2]
    inside = backwards.partition("\n    }")[0]
    assert " fresh [1, " in inside
    assert "arith.constant 0.0" not in inside


@pytest.mark.parametrize(
    "function", [masked, checkerboard, reversed_rows], ids=lambda f: f.__name__
)
def test_masked_strided_and_reversed_reads_are_gathered(function: Callable[..., Any]) -> None:
    assert " window(" in optimized(function)


def test_a_shift_that_is_known_at_run_time_alone_is_not_gathered() -> None:
    assert " window(" not in optimized(shift_by_argument)
