"""Generated loop nests, reordered wherever that is exact, against CPython (to the bit) and differences.

`HYPOTHESIS_PROFILE=dev` looks at more programs, and at other ones each time.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from unittest.mock import patch

import numpy as np
import pytest
from generated import function_of
from gradient_oracle import GradientCase, NotSmoothHereError
from hypothesis import assume, given
from hypothesis import strategies as st
from nest_programs import nest_program
from profiles import profile
from python_oracle import run
from refusals import unless_refused

import mutad
from mutad.compiler.transforms import register_tiles, reorder_loops, unroll_and_jam

SEEDS = st.integers(0, 2**32)
SIZES = ((6, 6), (5, 3), (1, 1), (0, 0), (2, 3), (11, 9))


@pytest.fixture(autouse=True)
def whatever_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are interchanged, tiled, and iterations jammed, wherever that is exact."""
    monkeypatch.setattr(reorder_loops, "FEW", 0)
    monkeypatch.setattr(unroll_and_jam, "LEAST", -(1 << 40))
    monkeypatch.setattr(register_tiles, "LEAST", 1)


def rows(rng: random.Random, dtype: str, domain: str = "") -> Callable[[int, int], str]:
    """Three matrices in some layout, two of them the same one now and then, and a vector."""
    layout, shared = rng.choice(("", "", "F", "S", "R")), rng.random() < 0.15

    def row(n: int, m: int) -> str:
        extent = n + rng.choice((0, 0, 1, 2))
        a, b, c = (f"{dtype}[{extent},{extent}]{layout}{domain}#{k}" for k in range(3))
        if shared:
            a = b = f"{a}&"
        return f"{a} {b} {c} {dtype}[{extent}]{domain} {n} {m}"

    return row


def some_are_kept(rng: random.Random) -> AbstractContextManager[object]:
    """Loops of half of the programs are only interchanged where that pays: other shapes are jammed then."""
    return patch.object(reorder_loops, "WORTH", rng.choice((0.0, reorder_loops.WORTH)))


@profile(few=8)
@given(SEEDS)
def test_values_and_exceptions_are_python_s(seed: int) -> None:
    rng = random.Random(seed)
    with some_are_kept(rng):
        check_values(rng)


def check_values(rng: random.Random) -> None:
    function = function_of(nest_program(rng), "program")
    compiled = mutad.compile(opt=rng.choice((1, 3)), cache=False)(function)
    dtype, domain = rng.choice((("f64", ""), ("f64", ":special"), ("f32", ""), ("i64", "")))
    row = rows(rng, dtype, domain)
    for n, m in SIZES:
        arguments = row(n, m)
        want, got = run(function, arguments), run(compiled, arguments)
        assert repr(got.exception) == repr(want.exception)
        for mine, python in zip(got.arguments[:4], want.arguments[:4], strict=True):
            np.testing.assert_array_equal(mine, python)


@profile(few=3)
@given(SEEDS)
def test_gradients_are_those_of_differences(seed: int) -> None:
    rng = random.Random(seed)
    with some_are_kept(rng):
        check_gradients(rng)


def check_gradients(rng: random.Random) -> None:
    function = function_of(nest_program(rng), "program")
    arguments = rows(rng, "f64", ":unit")(5, 4)
    want = run(function, arguments)
    assume(want.exception is None)
    assume(np.isfinite(want.result) and abs(want.result) < 1e6)
    options = (("cache", False), ("opt", 1))
    case = GradientCase(function, arguments, relative=1e-5, options=options)
    try:
        with unless_refused():
            case.check_gradient()
            case.check_saves_all()
    except NotSmoothHereError:
        assume(False)
