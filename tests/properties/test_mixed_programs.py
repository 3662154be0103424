"""Generated programs with objects, closures, recursion and generators, against CPython and differences.

`HYPOTHESIS_PROFILE=dev` looks at more programs, and at other ones each time; what it finds becomes
a test of its own.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from hypothesis import assume, given
from mixed_programs import MixedProgram, mixed_programs
from object_oracle import outcome
from profiles import profile

import mutad

PROFILE = profile(few=10)


def assert_agree(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    """The same objects of the same types at the same paths; numbers up to rounding.

    A float that a loop may give a NumPy float is one afterwards, whatever the run did (docs/contract.md).
    """
    assert actual.keys() == expected.keys()
    for path, want in expected.items():
        got = actual[path]
        if isinstance(want, tuple) and path != "raised":
            assert kinds(got) == kinds(want), path
            got, want = got[-1], want[-1]
        if isinstance(want, float | list | np.floating):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12, err_msg=path)
        else:
            assert got == want, path


def kinds(part: tuple[Any, ...]) -> list[Any]:
    return [float if p is np.float64 else p for p in part[:-1]]


@PROFILE
@given(mixed_programs())
def test_values_objects_and_exceptions_are_python_s(program: MixedProgram) -> None:
    """Called twice, the second time with what the first has left."""
    function = program.function()
    compiled = mutad.compile(function, cache=False)
    mine = program.arguments(function)
    theirs = copy.deepcopy(mine)
    for _ in range(2):
        assert_agree(outcome(compiled, mine), outcome(function, theirs))


@PROFILE
@given(mixed_programs())
def test_gradients_are_those_of_differences(program: MixedProgram) -> None:
    function = program.function()
    assume("raised" not in outcome(function, program.arguments(function)))
    compiled = mutad.compile(function, grad=True, cache=False, opt=1)
    wrt = ("x", "y", "a", "s", "q", "given")
    mutad.check_gradient(compiled, *program.arguments(function), wrt=wrt)
