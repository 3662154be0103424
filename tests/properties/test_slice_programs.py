"""Generated programs of slices by counters: values, exceptions and gradients are Python's.

`MUTAD_SLICES=2000` looks at as many programs, `MUTAD_SLICES=5000:6000` at those of these seeds.
"""

from contextlib import suppress

import pytest
from generated import seeds_of
from gradient_oracle import GradientCase, NotSmoothHereError
from python_oracle import Tolerance, assert_same_outcome, run
from slice_programs import slice_program

from mutad import compile

IN_CI = "0:12"
OPTIONS = (("cache", False), ("opt", 1))
ROUNDING = Tolerance(ulp=64, terms=lambda *_: [1e3])


@pytest.mark.parametrize("seed", seeds_of("MUTAD_SLICES", IN_CI))
def test_slices_by_counters(seed: int) -> None:
    program = slice_program(seed)
    function = program.function()
    want = run(function, program.arguments)
    got = run(compile(function, cache=False, opt=1), program.arguments)
    assert_same_outcome(got, want, program.arguments, ROUNDING)
    if want.exception is not None:
        return
    case = GradientCase(function, program.arguments, relative=1e-5, options=OPTIONS)
    with suppress(NotSmoothHereError):
        if seed % 2:
            case.check_saves_all()
        case.check_pullback()
