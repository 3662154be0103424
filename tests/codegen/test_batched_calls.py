"""Functions of several numbers of one iteration are one call, in loops that stay scalar."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

import mutad
from mutad.compiler.codegen import batched_calls
from mutad.compiler.codegen.llvm_module import host
from mutad.runtime.target import chosen

Array = np.ndarray
Function = Callable[..., float]
NEEDS = pytest.mark.skipif(
    "avx512vl" not in (chosen() or host()).features, reason="code without AVX-512"
)
X = np.random.default_rng(11).uniform(-1.0, 1.0, 37)


def soft_minimum(x: Array, left: float) -> float:
    for i in range(1, x.size):
        a, b, c = x[i - 1] + left, x[i] * 0.5, left + 0.3
        least = min(a, b, c)
        left = least - math.log(math.exp(least - a) + math.exp(least - b) + math.exp(least - c))
        x[i] = left
    return left


def five(x: Array, s: float) -> float:
    for i in range(x.size):
        t = math.tanh(s) + math.tanh(x[i]) + math.tanh(-s) + math.tanh(s + 1.0)
        s = t - math.tanh(x[i] * s)
    return s


def nested(x: Array, s: float) -> float:
    for i in range(x.size):
        s = math.sin(math.sin(s + x[i]))
    return s


def behind_a_quotient(x: Array, s: float) -> float:
    for i in range(x.size):
        s = math.cos(s) + math.cos(x[i] / (s * s + 2.0))
    return s


def behind_a_store(x: Array, s: float) -> float:
    for i in range(x.size):
        t = math.sin(s)
        x[i] = t * 0.5
        s = math.sin(x[0] + s) + t
    return s


def lanes(function: Function, *args: object) -> list[str]:
    text = mutad.compile(function, cache=False).inspect("llvm", *args)
    kernel = text[text.index("@kernel(") :]
    return re.findall(r"call <\d+ x double> @mutad_(\w+)\(", kernel[: kernel.index("\n}")])


@NEEDS
def test_numbers_of_an_iteration_are_lanes() -> None:
    assert lanes(soft_minimum, X, 0.2) == ["exp_of_4"]
    assert lanes(five, X, 0.2) == ["tanh_of_4", "tanh_of_2"]  # a load stays where it is


@NEEDS
@pytest.mark.parametrize("function", [nested, behind_a_quotient, behind_a_store])
def test_no_number_waits_for_more_than_before(function: Function) -> None:
    assert lanes(function, X, 0.2) == []


ALL = [soft_minimum, five, nested, behind_a_quotient, behind_a_store]


@pytest.mark.parametrize("function", ALL)
def test_values_are_pythons(function: Function) -> None:
    ours, theirs = X.copy(), X.copy()
    found = mutad.compile(function, cache=False)(ours, 0.2)
    assert found == pytest.approx(function(theirs, 0.2), rel=1e-12)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("function", ALL)
def test_gradients_have_the_bits_of_single_calls(
    function: Function, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutad.check_gradient(mutad.compile(function, grad=True), X.copy(), 0.2)
    results: list[tuple[float, Array]] = []
    for memory in (None, 2000):
        gradient = mutad.compile(function, grad=True, cache=False, memory=memory)
        results.append(gradient.value_and_grad(X.copy(), 0.2))
    monkeypatch.setattr(batched_calls, "MOST", 1)
    gradient = mutad.compile(function, grad=True, cache=False)
    results.append(gradient.value_and_grad(X.copy(), 0.2))
    for value, slopes in results[1:]:
        assert value == results[0][0]
        np.testing.assert_array_equal(slopes, results[0][1])


def raising(x: Array, s: float) -> float:
    for i in range(x.size):
        t = math.exp(s * 0.5)
        x[i] = t
        u = math.exp(x[0] + s * 700.0)
        s = math.log(t + u) * 0.25
    return s


def two_that_raise(x: Array, s: float) -> float:
    for i in range(x.size):
        a = math.exp(s)
        x[i] = a
        s = math.log(a + math.exp(s * x.size))
    return s


@pytest.mark.parametrize("function", [raising, two_that_raise])
@pytest.mark.parametrize("s", [-0.5, 0.5, 3.0, 100.0, 1e6])
def test_exceptions_come_when_they_did(function: Function, s: float) -> None:
    ours, theirs = X.copy(), X.copy()
    compiled = mutad.compile(function, cache=False)
    try:
        expected = function(theirs, s)
    except OverflowError as error:
        with pytest.raises(OverflowError, match=str(error)):
            compiled(ours, s)
    else:
        assert compiled(ours, s) == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_calls_have_a_place_in_the_source() -> None:
    f = mutad.compile(soft_minimum, cache=False, debug=True)
    assert f(X.copy(), 0.2) == pytest.approx(soft_minimum(X.copy(), 0.2), rel=1e-12)
