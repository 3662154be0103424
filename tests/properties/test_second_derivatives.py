"""Second derivatives of generated programs: those of differences, also where cotangents are exactly 0."""

from dataclasses import replace

import pytest
from control_programs import control_programs
from fit_oracle import check_exact_fit
from generated import function_of
from gradient_oracle import GradientCase, NotSmoothHereError
from hypothesis import assume, given
from profiles import profile
from python_oracle import run
from small_programs import SmallProgram, small_programs
from sweep_programs import sweep_program
from tangent_oracle import check_hvp

import mutad

OPTIONS = (("cache", False), ("opt", 1))
FEW, FEWER = profile(few=6), profile(few=3)


def case_of(program):
    return GradientCase(program.function(), program.arguments, relative=1e-5, options=OPTIONS)


@FEW
@given(small_programs())
def test_products_are_differences_of_gradients(program: SmallProgram) -> None:
    try:
        check_hvp(case_of(program))
    except NotSmoothHereError:
        assume(False)


@FEWER
@given(small_programs())
def test_hessians_at_exact_fits(program: SmallProgram) -> None:
    check_exact_fit(case_of(program))


@FEWER
@given(control_programs())
def test_hessians_at_exact_fits_of_functions_of_several_sizes(program) -> None:
    function = program.open_function()
    assume(run(function, program.open_arguments).exception is None)
    check_exact_fit(GradientCase(function, program.open_arguments, options=OPTIONS))


@pytest.mark.parametrize("seed", range(4))
def test_hessians_at_exact_fits_of_sweeps(seed: int) -> None:
    check_exact_fit(case_of(sweep_program(seed)))


ASKS = """
def program(x, y, z, a, p):
    dx, da = inner.grad(x, y, z, a, p, wrt=("x", "a"))
    return (dx * dx).sum() + da * da + 0.1 * (x * y).sum()
"""


@FEW
@given(small_programs())
def test_gradients_that_compiled_code_asks_for(program: SmallProgram) -> None:
    """The adjoint runs the inner program once more, on what its arguments were."""
    inner = mutad.compile(program.function(), grad=True, cache=False, opt=1)
    asks = function_of(ASKS, "program", {"inner": inner})
    case = GradientCase(
        asks, replace(program, layout="apart").arguments, relative=1e-5, options=OPTIONS
    )
    try:
        case.check_pullback()
    except NotSmoothHereError:
        assume(False)
