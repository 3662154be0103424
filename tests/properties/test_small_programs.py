"""Generated mutating programs: values are CPython's, gradients are derivatives, saving more changes nothing.

`HYPOTHESIS_PROFILE=dev` looks at more programs, and at other ones each time; what it finds becomes
a test of its own.
"""

from gradient_oracle import GradientCase, NotSmoothHereError
from hypothesis import assume, given
from lane_oracle import check_cotangents_together
from profiles import profile
from python_oracle import Tolerance, assert_same_outcome, run
from reach_oracle import check_cotangents_reach, check_tangents_reach
from small_programs import SmallProgram, small_programs
from tangent_oracle import check_batch

import mutad

PROFILE = profile(few=10)

OPTIONS = (("cache", False),)


def case_of(program: SmallProgram) -> GradientCase:
    return GradientCase(program.function(), program.arguments, relative=1e-6, options=OPTIONS)


@PROFILE
@given(small_programs())
def test_values_are_python_s(program: SmallProgram) -> None:
    function = program.function()
    want = run(function, program.arguments)
    assert want.exception is None, want.exception
    got = run(mutad.compile(function, cache=False), program.arguments)
    rounding = Tolerance() if program.is_exact else Tolerance(terms=lambda *_: [1e7])
    assert_same_outcome(got, want, program.arguments, rounding)


@PROFILE
@given(small_programs())
def test_gradients_are_derivatives(program: SmallProgram) -> None:
    case = case_of(program)
    check_cotangents_reach(case)
    check_tangents_reach(case)
    check_batch(case)
    check_cotangents_together(case)
    try:
        case.check_pullback()
        case.check_gradient()
    except NotSmoothHereError:
        assume(False)


@PROFILE
@given(small_programs())
def test_vjps_are_derivatives(program: SmallProgram) -> None:
    try:
        case_of(program).check_vjp()
    except NotSmoothHereError:
        assume(False)


@PROFILE
@given(small_programs())
def test_saving_everything_changes_nothing(program: SmallProgram) -> None:
    case_of(program).check_saves_all()
