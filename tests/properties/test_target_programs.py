"""Generated loops for each level of x86-64: optimized code computes what unoptimized code does.

A test for LLVM, and for the facts that we tell it. Lengths go beyond the widest vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lane_programs import LaneProgram, lane_programs
from profiles import profile

import mutad
from mutad import Const, Duplicated
from mutad.runtime.target import VARIABLE, runnable

PROFILE = profile(few=12)
HERE = ("", *runnable()[1:])
"""The CPU at hand, and the levels that it has."""
LENGTHS = (3, 8, 17, 45)


def pulled(function: Any, program: LaneProgram, n: int) -> list[np.ndarray]:
    """The result, the final contents of all arguments, and the cotangents of their initial contents."""
    arguments = program.arguments(n)
    floats, others = arguments[:4], arguments[4:]
    shadows = [np.linspace(0.5, 1.5, a.size).astype(a.dtype).reshape(a.shape) for a in floats]
    active = [Duplicated(a, s) for a, s in zip(floats, shadows, strict=True)]
    value, _ = function.pullback(*active, *map(Const, others), cotangent=1.0)
    return [np.asarray(value), *arguments, *shadows]


def assert_agree(got: list[np.ndarray], want: list[np.ndarray], program: LaneProgram) -> None:
    rounding = 2e-4 if program.dtype == "float32" else 1e-10
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_allclose(
            g, w, rtol=rounding, atol=rounding * np.abs(w).max(), err_msg=str(k)
        )


@PROFILE
@given(lane_programs(), st.sampled_from(HERE))
def test_optimized_code_computes_what_unoptimized_code_does(program: LaneProgram, cpu: str) -> None:
    function = program.function()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, cpu)
        optimized, plain = (mutad.compile(function, cache=False, grad=True, opt=o) for o in (3, 0))
        for n in LENGTHS:
            want = pulled(plain, program, n)
            assert_agree(pulled(optimized, program, n), want, program)
            arguments = program.arguments(n)
            result = np.asarray(function(*arguments))
            assert_agree(want[: 1 + len(arguments)], [result, *arguments], program)
