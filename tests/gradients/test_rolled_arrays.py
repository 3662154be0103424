"""Shadows of rolled arrays are stored in two parts, and filled with zero nowhere (`store-parts`)."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

from mutad.compiler.pipeline import Request, run_stages

programs = GradientPrograms()
on = programs.on


@on("f64[N] i64[4]", N="5 1 0 3")
def by_turns(u, shifts):
    for k in range(4):
        u[:] = np.sin(np.roll(u, shifts[k] - 1))
    return u.sum()


@on("f64[N,3] i64[4]", N="4 1 0")
def along_both_axes(u, shifts):
    for k in range(4):
        u[:] = u * np.roll(np.roll(u, shifts[k], 0), 1 - 2 * k, 1)
    return (u * u).sum()


@on("f64[3,N,4] i64[3]", N="5 1 0")
def streamed(f, shifts):
    for q in range(3):
        f[q] = np.roll(np.roll(f[q], shifts[q], 0), -shifts[q], 1)
    return (f * f * f).sum()


@on("f64[N] 2", N="5 0 1 2")
def once(u, k):
    u[:] = np.roll(u, k) * u
    return (u * np.roll(u, -1)).sum()


TestGradients = gradient_tests(programs, tangents=True)


@pytest.mark.parametrize("function", [by_turns, streamed])
def test_shadows_of_rolled_arrays_are_stored(function: Callable[..., object]) -> None:
    """In the loop of the reverse sweep nothing adds to a shadow, and nothing fills one with zero."""
    shapes = {by_turns: "f64[?]C", streamed: "f64[?,?,?]C"}
    request = Request(function, (shapes[function], "i64[?]C"), mode="gradient", wrt=(0,))
    loop = run_stages(request, "optimize").rpartition("array.loop")[2].partition("array.yield\n")[0]
    maps = re.findall(r"kinds \[(.*?)\]", loop)
    assert set(maps) == {'"store"'}
    assert len(maps) == (3 if function is by_turns else 4)
