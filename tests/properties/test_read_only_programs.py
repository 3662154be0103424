"""Generated programs with a read-only argument: what is raised, and what was stored before, is NumPy's."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from argument_rows import make_arguments
from hypothesis import assume, given
from hypothesis import strategies as st
from profiles import profile
from python_oracle import Tolerance, assert_same_outcome, run
from raising_programs import ROWS, RaisingProgram, raising_programs
from small_programs import SmallProgram, small_programs

import mutad
from mutad import Active, Const, Duplicated

PROFILE = profile(few=8)

LATE = "known only at run time"


def read_only(
    arguments: Callable[[], tuple[Any, ...]], which: int
) -> Callable[[], tuple[Any, ...]]:
    """The arguments, of which the array at this place is read-only."""

    def made() -> tuple[Any, ...]:
        values = arguments()
        values[which].flags.writeable = False
        return values

    return made


@PROFILE
@given(small_programs(), st.integers(0, 2))
def test_plain_calls(program: SmallProgram, which: int) -> None:
    arguments = read_only(program.arguments, which)
    want = run(program.function(), arguments)
    got = run(mutad.compile(program.function(), cache=False, opt=1), arguments)
    assume(LATE not in str(got.exception))
    rounding = Tolerance() if program.is_exact else Tolerance(terms=lambda *_: [1e7])
    assert_same_outcome(got, want, arguments, rounding)


@PROFILE
@given(raising_programs(), st.integers(0, 2))
def test_gradient_calls(program: RaisingProgram, which: int) -> None:
    """They raise where the plain call does, and leave the caller's shadows as they were."""
    function = program.function()
    compiled = mutad.compile(function, cache=False, grad=True, opt=1)
    for row in ROWS[:2]:
        arguments = read_only(partial(make_arguments, row), which)
        want = run(function, arguments)
        if isinstance(want.exception, OverflowError):
            continue
        shadows = [np.full(np.shape(a), 0.5) for a in want.arguments[:3]]

        def pulled(x, y, z, p, a, k):
            arrays = [Duplicated(v, s) for v, s in zip((x, y, z), shadows, strict=True)]
            return compiled.pullback(*arrays, Const(p), Active(a), Const(k), cotangent=1.0)[0]

        rounding = Tolerance(ulp=8, terms=lambda *_: [1e5])
        got = run(pulled, arguments)
        assume(LATE not in str(got.exception))
        assert_same_outcome(got, want, arguments, rounding)
        if want.exception is not None:
            assert all((s == 0.5).all() for s in shadows)
