"""Generated recursive programs: values, side effects, exceptions and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from profiles import profile
from recursive_programs import RecursiveProgram, recursive_programs
from refusals import NO_GRADIENT

import mutad

PROFILE = profile(few=2, many=500)

REFUSED = ("share memory", "a view of an array", "the path decides", "or another one")
"""What the generator cannot know beforehand that it is refused."""


def left(function: Any, x: np.ndarray, n: int) -> tuple[Any, ...]:
    """What a call returns or raises, and what it leaves in its argument."""
    x = x.copy()
    try:
        return function(x, n), x
    except mutad.CompileError:
        raise
    except Exception as error:
        return type(error), str(error), x


def is_refused(call: Any, reasons: tuple[str, ...] = REFUSED) -> bool:
    try:
        call()
    except mutad.CompileError as error:
        if not any(words in str(error) for words in reasons):
            raise
        return True
    return False


X = np.linspace(0.2, 0.9, 4)


@PROFILE
@given(recursive_programs())
def test_values_and_exceptions_are_python_s(program: RecursiveProgram) -> None:
    function = program.function()
    compiled = mutad.compile(function, cache=False, opt=0)
    if is_refused(lambda: left(compiled, X, 1)):
        return
    for n in (0, 1, 2, 4):
        for x in (X, X[:1], X[:2]):
            got, want = left(compiled, x, n), left(function, x, n)
            assert got[:-2] == want[:-2], (got, want)
            for g, w in zip(got[-2:], want[-2:], strict=True):
                if isinstance(w, str):
                    assert g == w
                else:
                    np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-12)


@PROFILE
@given(recursive_programs())
def test_gradients_are_differences(program: RecursiveProgram) -> None:
    function = program.function()
    compiled = mutad.compile(function, cache=False, grad=True, opt=0)
    if is_refused(lambda: left(compiled, X, 1), REFUSED + NO_GRADIENT):
        return
    for n in (1, 3):
        if not isinstance(left(function, X, n)[0], type):
            mutad.check_gradient(compiled, X.copy(), n)


@PROFILE
@given(recursive_programs())
def test_the_gradient_s_adjoint_is_its_tangent(program: RecursiveProgram) -> None:
    function = program.function()
    compiled = mutad.compile(function, cache=False, grad=True, opt=0)
    if is_refused(lambda: left(compiled, X, 1), REFUSED + NO_GRADIENT):
        return
    direction = np.array([1.0, -0.5, 2.0, 0.25])
    for n in (1, 3):
        if isinstance(left(function, X, n)[0], type):
            continue
        want, got = (
            compiled.value_grad_hvp(X.copy(), n, direction=direction, mode=mode)
            for mode in ("forward-over-reverse", "reverse-over-reverse")
        )
        np.testing.assert_array_equal(got[0], want[0])
        for g, w in zip(got[1:], want[1:], strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-9 * np.max(np.abs(w)))
