"""Gradients without the guards of strong zeros: exact, or made anew with guards."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad
from mutad import Active, Const, Duplicated

SCALE = 2.0


def rooted(x, k):
    """Repeated, so that guards pay; the root's slope is infinite where x is 0 and nobody asks for it."""
    total = 0.0
    for _ in range(2):
        for i in range(x.size):
            y = 1.0 / (x[i] * k)
            total += np.where(x[i] > 0, y, 0.0) * SCALE
    return total


def tabulated(x, k):
    """As `rooted`, but what is not finite comes from an array."""
    table = np.empty(x.size)
    for i in range(x.size):
        table[i] = 1.0 / x[i]
    total = 0.0
    for _ in range(2):
        for i in range(x.size):
            total += np.where(x[i] > 0, k * table[i], 0.0)
    return total


def as_arrays(x, k):
    a = np.where(x > 0, np.log(x) / x + np.exp(k * x) / x, 0.0)
    b = np.where(x > 0, a / x + a * a / (x * x), 0.0)
    return (b * a * k / 2.0).sum()


PROGRAMS = [rooted, tabulated, as_arrays]
FINITE, WITH_ZERO = [0.5, 1.5, 2.0, 3.0], [0.5, 0.0, 2.0, 3.0]


def code_of(f: Any) -> list[tuple[bool, bool]]:
    """Of each gradient that was compiled: was it to keep its guards, may it have to be made anew?"""
    table = f._dispatcher.table
    return [(k.guards, one.metadata["retries"]) for k, one in table.items() if k.mode == "gradient"]


def expected(function: Callable[..., float], x: np.ndarray, k: float) -> tuple[np.ndarray, float]:
    """By differences of the terms that are there."""

    def difference(at: int | None) -> float:
        h = 1e-6
        results: list[float] = []
        for step in (h, -h):
            moved = x.copy()
            if at is not None:
                moved[at] += step
            with np.errstate(all="ignore"):
                results.append(function(moved, k + step if at is None else k))
        return (results[0] - results[1]) / (2 * h)

    slopes = [difference(i) if x[i] else 0.0 for i in range(x.size)]
    return np.array(slopes), difference(None)


@pytest.mark.parametrize("function", PROGRAMS)
def test_gradients_are_exact_with_and_without_guards(function) -> None:
    f = mutad.compile(function, grad=True, opt=1)
    x = np.array(FINITE)
    got = f.grad(x, 0.7, wrt=(0, 1))
    for one, other in zip(got, expected(function, x, 0.7), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7)
    assert code_of(f) == [(False, True)]
    zero = np.array(WITH_ZERO)
    want = expected(function, zero, 0.7)
    for _ in range(2):
        value, got = f.value_and_grad(zero, 0.7, wrt=(0, 1))
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(value, function(zero, 0.7), rtol=1e-13)
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7)
        assert code_of(f) == [(False, True), (True, False)]
    again = f.grad(x, 0.7, wrt=(0, 1))[0]
    np.testing.assert_allclose(again, expected(function, x, 0.7)[0], rtol=1e-7)


@pytest.mark.parametrize("zeros", [True, False])
def test_shadows_of_the_caller_are_as_before_when_the_call_is_made_anew(zeros) -> None:
    f = mutad.compile(tabulated, grad=True, opt=1)
    x = np.array(WITH_ZERO)
    shadow = np.zeros(4) if zeros else np.arange(4.0)
    before = shadow.copy()
    result, bars = f.pullback(Duplicated(x, shadow), Active(0.7), cotangent=3.0)
    x_bar, k_bar = f.grad(x, 0.7, wrt=(0, 1))
    np.testing.assert_allclose(shadow, before + 3.0 * x_bar, rtol=1e-14)
    np.testing.assert_allclose(bars, [3.0 * k_bar], rtol=1e-14)
    assert result == f(x, 0.7)
    f.pullback(Duplicated(x, shadow), Const(0.7), cotangent=1.0)
    np.testing.assert_allclose(shadow, before + 4.0 * x_bar, rtol=1e-14)


def test_a_call_that_is_made_anew_leaves_no_references() -> None:
    outside = np.array([2.0, 3.0, 4.0, 5.0])

    def scaled(x):
        total = 0.0
        for _ in range(2):
            for i in range(x.size):
                total += np.where(x[i] > 0, outside[i] / x[i], 0.0)
        return total

    f = mutad.compile(scaled, grad=True, opt=1)
    f.grad(np.ones(4))
    entry = f._dispatcher.heads["grad"]
    link = entry.__self__
    x = np.array(WITH_ZERO)
    f.grad(x)
    link.next = lambda *args, **kwargs: (args, kwargs)
    counts: list[int] = []
    for _ in range(3):  # the older entry, which tries without guards each time
        assert entry(x)[0][0] is x
        counts.append(sys.getrefcount(outside) + sys.getrefcount(x))
    assert len(set(counts)) == 1


def changed(x, k):
    for i in range(x.size):
        x[i] = x[i] / k
    total = 0.0
    for _ in range(2):
        for i in range(x.size):
            total += x[i] / k
    return total


def printed(x, k):
    total = 0.0
    for _ in range(2):
        for i in range(x.size):
            total += x[i] / k
    print(total)
    return total


def without_loops(x, k):
    return (x * k).sum()


@pytest.mark.parametrize("function", [changed, printed, without_loops])
def test_calls_that_cannot_be_made_anew_and_those_that_are_cheap_keep_their_guards(
    function,
) -> None:
    f = mutad.compile(function, grad=True, opt=1)
    f.grad(np.ones(4), 2.0, wrt=(0, 1))
    assert code_of(f) == [(False, False)]


differentiated = mutad.compile(tabulated, grad=True, opt=1)


def returned(x, k):
    slopes = differentiated.grad(x, 2.0)
    made = np.empty(x.size)
    for _ in range(2):
        for i in range(x.size):
            made[i] = slopes[i] + k / (1.0 + k)
    return made


def test_gradients_that_are_results_keep_their_guards() -> None:
    """Those that are returned as gradients are finite here: nobody would look at the result."""
    f = mutad.compile(returned, grad=True, opt=1)
    x = np.array(WITH_ZERO)
    made, bars = f.pullback(Const(x), Active(1.0), cotangent=np.ones(4))
    np.testing.assert_array_equal(made, f(x, 1.0))
    assert np.isfinite(made).all()
    np.testing.assert_allclose(bars, [1.0])
    assert code_of(f) == [(False, False)]


def test_an_infinite_gradient_is_one() -> None:
    f = mutad.compile(rooted, grad=True, opt=1)
    got = f.grad(np.array([1e-200, 1.0]), 1.0)
    assert got.tolist() == [-np.inf, -4.0]


def test_nan_in_arguments_stays_where_it_is() -> None:
    f = mutad.compile(as_arrays, grad=True, opt=1)
    got = f.grad(np.array([np.nan, 1.0]), 0.5)
    assert np.isfinite(got[1])


def test_sanitized_gradients_and_those_ahead_of_time_keep_their_guards() -> None:
    f = mutad.compile(rooted, grad=True, opt=1, sanitize="grad")
    f.grad(np.ones(4), 2.0)
    assert code_of(f) == [(False, False)]


def test_fast_math_has_no_guards() -> None:
    for options in ({"fastmath": True}, {}):
        f = mutad.compile(changed, grad=True, opt=1, **options)
        text = f.inspect("optimize", np.ones(4), 2.0, wrt=(0, 1))
        assert ("ad.mul" in text or "ad.div" in text) == (not options)
        assert "ad.retry_if" not in text
    f = mutad.compile(changed, grad=True, opt=1, fastmath=True)
    got = f.grad(np.ones(4), 2.0, wrt=(0, 1))
    np.testing.assert_allclose(got[0], np.full(4, 0.5), rtol=1e-14)
    np.testing.assert_allclose(got[1], -2.0, rtol=1e-14)
    _, bars = f.jvp(np.ones(4), 2.0, tangents={"k": 1.0})
    np.testing.assert_allclose(bars, -2.0, rtol=1e-14)
