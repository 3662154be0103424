"""Generated programs that leave loops, rebind arrays and read names from outside.

`HYPOTHESIS_PROFILE=dev` looks at more programs, and at other ones each time; what it finds becomes
a test of its own.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from control_programs import ControlProgram, control_programs
from gradient_oracle import GradientCase, NotSmoothHereError
from hypothesis import assume, given
from profiles import profile
from python_oracle import Tolerance, assert_same, assert_same_outcome, run
from reach_oracle import check_cotangents_reach, check_tangents_reach

import mutad

PROFILE = profile(few=5)
ROUNDING = Tolerance(terms=lambda *_: [1e7])


def case_of(program: ControlProgram) -> GradientCase:
    """The gradient at a point where CPython raises nothing, G and H being arguments."""
    function = program.open_function()
    assume(run(function, program.open_arguments).exception is None)
    options = (("cache", False), ("opt", 1))
    return GradientCase(function, program.open_arguments, relative=1e-6, options=options)


@PROFILE
@given(control_programs())
def test_values_and_exceptions_are_python_s(program: ControlProgram) -> None:
    """In every size, whatever the names from outside are bound to at each call."""
    expected, function = program.function(), program.function()
    compiled = mutad.compile(function, cache=False)
    for seed, n in enumerate((program.n, program.n + 1, 2, 1, 7)):
        for f in (expected, function):
            f.__globals__.update(program.names(n, seed))

        def row(n: int = n) -> tuple[Any, ...]:
            return program.arguments(n)

        assert_same_outcome(run(compiled, row), run(expected, row), row, ROUNDING)
        got, want = (f.__globals__["G"] for f in (function, expected))
        assert_same(got, want, ROUNDING, (), "G")


@PROFILE
@given(control_programs())
def test_gradients_are_derivatives(program: ControlProgram) -> None:
    case = case_of(program)
    case.check_saves_all()
    check_cotangents_reach(case)
    check_tangents_reach(case)
    try:
        case.check_pullback()
    except NotSmoothHereError:
        pass  # What the differences cannot tell, saving everything has told.


@PROFILE
@given(control_programs())
def test_vjps_are_derivatives(program: ControlProgram) -> None:
    """The caller overwrites all arrays, G too, before it asks for cotangents again."""
    try:
        case_of(program).check_vjp()
    except NotSmoothHereError:
        assume(False)


@PROFILE
@given(control_programs())
def test_gradients_of_names_from_outside_are_those_of_arguments(program: ControlProgram) -> None:
    function, opened = program.function(), program.open_function()
    compiled, reference = (
        mutad.compile(f, cache=False, grad=True, opt=1) for f in (function, opened)
    )
    read = [name for name in "GH" if re.search(rf"\b{name}\b", program.source)]
    wrt = ("x", "y", "z", "a", *read)
    for seed in range(2):
        names = program.names(seed=seed)
        function.__globals__.update(names)
        opened.__globals__["K"] = names["K"]

        def row(names: dict[str, Any] = names) -> tuple[Any, ...]:
            return (*program.arguments(), names["G"].copy(), names["H"])

        assume(run(opened, row).exception is None)
        arguments = row()
        want = reference.value_and_grad(*arguments, wrt=wrt)
        got = compiled.value_and_grad(*program.arguments(), wrt=wrt)
        assert_same(got, want, ROUNDING, (), "gradients")
        assert np.allclose(function.__globals__["G"], arguments[5], rtol=1e-12)
