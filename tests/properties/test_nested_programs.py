"""Generated programs with lists of lists, arrays and objects, against CPython and against differences.

`HYPOTHESIS_PROFILE=dev` looks at more programs, and at other ones each time; what it finds becomes
a test of its own.
"""

from __future__ import annotations

import numpy as np
from gradient_oracle import GradientCase, NotSmoothHereError
from hypothesis import assume, given
from list_programs import ListProgram
from nested_programs import RESULTS, nested_programs
from profiles import profile
from python_oracle import Tolerance, assert_same_outcome, run
from refusals import unless_refused

import mutad

PROFILE = profile(few=4)
ROUNDING = Tolerance(terms=lambda *_: [1e4])
EVERYTHING = "s, " + ", ".join(RESULTS.values())


@PROFILE
@given(nested_programs())
def test_values_and_exceptions_are_python_s(program: ListProgram) -> None:
    function = program.function(EVERYTHING)
    compiled = mutad.compile(program.function(EVERYTHING), cache=False)
    want = run(function, program.arguments)
    got = run(compiled, program.arguments)
    assume(not isinstance(got.exception, mutad.CompileError))
    assert_same_outcome(got, want, program.arguments, ROUNDING)


@PROFILE
@given(nested_programs())
def test_gradients_are_those_of_differences(program: ListProgram) -> None:
    function = program.function(
        "s + sum([sum(r) for r in rows]) + sum([v.sum() for v in arrays]) * 0.5"
        " + sum([q.u * q.v for q in things])"
    )
    want = run(function, program.arguments)
    assume(want.exception is None)
    assume(np.isfinite(want.result))
    assume(abs(want.result) < 1e6)
    options = (("cache", False), ("opt", 1))
    case = GradientCase(function, program.arguments, relative=1e-5, options=options)
    plain = run(mutad.compile(function, cache=False, opt=0), program.arguments)
    assume(not isinstance(plain.exception, mutad.CompileError))
    try:
        with unless_refused():
            case.check_gradient()
            case.check_saves_all()
    except NotSmoothHereError:
        assume(False)
