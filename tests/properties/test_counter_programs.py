"""Generated programs whose integers are rolled back, against CPython, differences, and saving all.

`HYPOTHESIS_PROFILE=dev` looks at more programs, and at other ones each time; what it finds becomes
a test of its own.
"""

from __future__ import annotations

from counter_programs import CounterProgram, counter_programs
from gradient_oracle import GradientCase, NotSmoothHereError
from hypothesis import assume, given
from profiles import profile
from python_oracle import run

PROFILE = profile(few=5)


@PROFILE
@given(counter_programs())
def test_gradients_are_those_of_differences(program: CounterProgram) -> None:
    function = program.function()
    want = run(function, program.arguments)
    assume(want.exception is None)
    assume(abs(want.result) < 1e6)
    options = (("cache", False), ("opt", 1))
    case = GradientCase(function, program.arguments, relative=1e-5, options=options)
    try:
        case.check_gradient()
        case.check_saves_all()
    except NotSmoothHereError:
        assume(False)
