"""Generated loops that may raise: exception, words, and what was stored before it are CPython's."""

from contextlib import suppress

import numpy as np
from gradient_oracle import GradientCase, NotSmoothHereError
from hypothesis import given
from profiles import profile
from python_oracle import Outcome, Tolerance, assert_same_outcome, run
from raising_programs import ROWS, RaisingProgram, raising_programs

import mutad
from mutad import Active, BatchDuplicated, Const, Duplicated

PROFILE = profile(few=12)

OPTIONS = (("cache", False), ("opt", 3))
ROUNDING = Tolerance(ulp=8, terms=lambda *_: [1e5])


def is_a_big_integer(want: Outcome) -> bool:
    return isinstance(want.exception, OverflowError) and "math" not in str(want.exception)


@PROFILE
@given(raising_programs())
def test_plain_calls(program: RaisingProgram) -> None:
    function = program.function()
    compiled = mutad.compile(function, cache=False)
    for row in ROWS:
        want = run(function, row)
        if not is_a_big_integer(want):
            assert_same_outcome(run(compiled, row), want, row, ROUNDING)


@PROFILE
@given(raising_programs())
def test_gradient_calls(program: RaisingProgram) -> None:
    """They raise where the plain call does, and leave the caller's shadows as they were; else they are
    derivatives."""
    function = program.function()
    for row in ROWS:
        case = GradientCase(function, row, relative=1e-5, options=OPTIONS)
        compiled = case.compiled(saves="minimal", **case.level)
        want = run(function, row)
        if is_a_big_integer(want):
            continue
        shadows = [np.full(np.shape(a), 0.5) for a in want.arguments[:3]]

        def pulled(x, y, z, p, a, k):
            arrays = [Duplicated(v, s) for v, s in zip((x, y, z), shadows, strict=True)]
            return compiled.pullback(*arrays, Const(p), Active(a), Const(k), cotangent=1.0)[0]

        def pulled_together(x, y, z, p, a, k):
            arrays = [BatchDuplicated(v, s) for v, s in zip((x, y, z), several, strict=True)]
            bars = np.array([1.0, -2.0])
            return compiled.pullback(*arrays, Const(p), Active(a), Const(k), cotangent=bars)[0]

        several = [np.full((*s.shape, 2), 0.5) for s in shadows]
        for call in (pulled, pulled_together):
            assert_same_outcome(run(call, row), want, row, ROUNDING)
        if want.exception is not None:
            assert all((s == 0.5).all() for s in (*shadows, *several))
        elif np.isfinite(want.result):
            with suppress(NotSmoothHereError):
                case.check_pullback()
