"""Generated programs with lists, against CPython and against differences.

`HYPOTHESIS_PROFILE=dev` looks at more programs, and at other ones each time; what it finds becomes
a test of its own.
"""

from __future__ import annotations

import numpy as np
from gradient_oracle import GradientCase, NotSmoothHereError
from hypothesis import assume, given
from list_programs import ListProgram, list_programs
from profiles import profile
from python_oracle import Tolerance, assert_same_outcome, run

import mutad

PROFILE = profile(few=8)
ROUNDING = Tolerance(terms=lambda *_: [1e4])


@PROFILE
@given(list_programs())
def test_values_and_exceptions_are_python_s(program: ListProgram) -> None:
    function = program.function("s, l, m, len(other)")
    compiled = mutad.compile(program.function("s, l, m, len(other)"), cache=False)
    want = run(function, program.arguments)
    assert_same_outcome(run(compiled, program.arguments), want, program.arguments, ROUNDING)


@PROFILE
@given(list_programs())
def test_gradients_are_those_of_differences(program: ListProgram) -> None:
    function = program.function("s + sum(l) * 0.5 + sum(m)")
    want = run(function, program.arguments)
    assume(want.exception is None)
    assume(np.isfinite(want.result))
    assume(abs(want.result) < 1e6)
    options = (("cache", False), ("opt", 1))
    case = GradientCase(function, program.arguments, relative=1e-5, options=options)
    try:
        case.check_gradient()
        case.check_saves_all()
    except NotSmoothHereError:
        assume(False)
