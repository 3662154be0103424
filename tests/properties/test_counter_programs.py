"""Generated programs whose integers are rolled back, against CPython, differences, and saving all.

`HYPOTHESIS_PROFILE=dev` looks at more programs, and at other ones each time; what it finds becomes
a test of its own.
"""

from __future__ import annotations

import os

from counter_programs import CounterProgram, counter_programs
from gradient_oracle import GradientCase, NotSmoothHereError
from hypothesis import HealthCheck, assume, given, settings
from python_oracle import run

QUICK = settings(
    max_examples=5,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
LONG = settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
PROFILE = LONG if os.environ.get("HYPOTHESIS_PROFILE") == "dev" else QUICK


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
