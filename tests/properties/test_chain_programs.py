"""Generated loops with chains, taken apart wherever that is exact, against CPython and differences.

`HYPOTHESIS_PROFILE=dev` looks at more programs, and at other ones each time.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from chain_programs import chain_program
from generated import function_of
from gradient_oracle import GradientCase, NotSmoothHereError
from hypothesis import assume, given
from hypothesis import strategies as st
from profiles import profile
from python_oracle import run
from refusals import unless_refused

import mutad
from mutad.compiler.transforms import distribute_loops, stage_plan

SEEDS = st.integers(0, 2**32)
SIZES = (4, 5, 6, 0, 1, 11, 12, 13, 20, 21, 30)


@pytest.fixture(autouse=True)
def whatever_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are taken apart wherever that is exact, in blocks of a few iterations."""
    monkeypatch.setattr(stage_plan, "WORTH", 0.0)
    monkeypatch.setattr(stage_plan, "LEAST", 0.3)
    monkeypatch.setattr(distribute_loops, "LEAST", 0.3)
    monkeypatch.setattr(distribute_loops, "BLOCK", 8)
    monkeypatch.setattr(distribute_loops, "FEW", 2)


def row(rng: random.Random, dtype: str, n: int) -> str:
    """Arguments in some layout; two vectors are the same now and then, or overlap."""
    layout, width = rng.choice(("", "", "", "S", "R")), rng.choice((3, 3, 4))
    x, u, w = (f"{dtype}[{n}]{layout}#{k}" for k in range(3))
    shared = rng.random()
    if shared < 0.1:
        x = u = f"{u}&"
    elif shared < 0.2:
        x, u = f"{dtype}[{n + 2}]&[1:-1]", f"{dtype}[{n + 2}]&[2:]"
    return f"{x} {u} {w} {dtype}[{n},{width}]#3 {n}"


@profile(few=12)
@given(SEEDS)
def test_values_and_exceptions_are_python_s(seed: int) -> None:
    rng = random.Random(seed)
    function = function_of(chain_program(rng), "program")
    compiled = mutad.compile(opt=rng.choice((1, 3)), cache=False)(function)
    dtype = rng.choice(("f64", "f64", "f64", "f32"))
    for n in SIZES:
        arguments = row(rng, dtype, n)
        want, got = run(function, arguments), run(compiled, arguments)
        assert repr(got.exception) == repr(want.exception)
        for mine, python in zip(got.arguments[:4], want.arguments[:4], strict=True):
            if dtype == "f64":
                np.testing.assert_array_equal(mine, python)
            else:  # Numbers of a branch or of a variable are joined in double precision.
                np.testing.assert_allclose(mine, python, rtol=1e-4, atol=1e-4)


@profile(few=4)
@given(SEEDS)
def test_gradients_are_those_of_differences(seed: int) -> None:
    rng = random.Random(seed)
    function = function_of(chain_program(rng), "program")
    arguments = f"f64[13]#0 f64[13]#1 f64[13]#2 f64[13,{rng.choice((3, 4))}]#3 13"
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
