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
    keys = [k for k in table if k.mode in ("gradient", "pullback")]
    return [(k.guards, table[k].metadata["retries"]) for k in keys]


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
    """Once for each element: to copy the argument would cost more than the guards."""
    for i in range(x.size):
        x[i] = x[i] / k
    return x.sum()


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


differentiated = mutad.compile(as_arrays, grad=True, opt=1)


def returned(x, k):
    slopes = differentiated.grad(x, 2.0)
    made = np.empty(x.size)
    for _ in range(2):
        for i in range(x.size):
            made[i] = slopes[i] + k / (1.0 + k)
    return made


def test_gradients_that_are_results_are_looked_at() -> None:
    """Those that are returned as gradients are finite here."""
    f = mutad.compile(returned, grad=True, opt=1)
    x = np.array(WITH_ZERO)
    with_guards = f(x, 1.0)
    assert np.isfinite(with_guards).all()
    for k in range(2):
        made, bars = f.pullback(Const(x), Active(1.0), cotangent=np.ones(4))
        np.testing.assert_array_equal(made, with_guards)
        np.testing.assert_allclose(bars, [1.0])
        assert code_of(f) == [(False, True), (True, False)]


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
    np.testing.assert_allclose(got[1], -1.0, rtol=1e-14)
    _, bars = f.jvp(np.ones(4), 2.0, tangents={"k": 1.0})
    np.testing.assert_allclose(bars, -1.0, rtol=1e-14)


# --- Every mode, arguments that are stored to, private functions ------------------------------------


class Everything(set[Any]):
    def __contains__(self, one: object) -> bool:
        return True


def guarded(function: Callable[..., Any]) -> Any:
    """Code that has its guards from the first call on."""
    made = mutad.compile(function, grad=True, opt=1)
    made._dispatcher.era.guarded = Everything()
    return made


def in_place(x, k):
    """Masked branches and infinite slopes (`sqrt`, `log`, `**`, quotients), stored to the argument."""
    for _ in range(3):
        for i in range(x.size):
            root = np.where(x[i] > 0, np.sqrt(x[i]) + np.log(x[i]) / x[i], 0.0)
            x[i] = 0.5 * x[i] * k + root + abs(x[i]) ** 1.5
    return (x * x).sum()


def reciprocals(x, k):
    """The slope at 0 is infinite; a tangent that is 0 stays so."""
    total = 0.0
    for _ in range(3):
        for i in range(x.size):
            x[i] = k / x[i]
            total += x[i]
    return total


def swapped(x, y, k):
    for _ in range(4):
        for i in range(x.size):
            y[i] = np.where(x[i] > 0, k / x[i] + np.sqrt(x[i]), 0.0) * (1.0 + y[i])
        x, y = y, x
    return (x * y).sum()


def halves(x, k, low, high):
    """Recursive; the quotient is masked where the element is 0."""
    if high - low == 1:
        total = 0.0
        for _ in range(2):
            total += np.where(x[low] > 0, k / x[low], 0.0)
        return total
    middle = (low + high) // 2
    return halves(x, k, low, middle) * 0.5 + halves(x, k, middle, high)


def of_halves(x, k):
    return halves(x, k, 0, x.size)


def gradient(f: Any, x: np.ndarray, *rest: Any) -> list[Any]:
    value, bars = f.value_and_grad(x, *rest)
    return [value, bars, x, *rest]


def in_shadows(f: Any, x: np.ndarray, *rest: Any) -> list[Any]:
    shadow = np.arange(float(x.size))
    value, bars = f.pullback(Duplicated(x, shadow), *map(Const, rest), cotangent=2.0)
    return [value, *bars, shadow, x, *rest]


def split(f: Any, x: np.ndarray, *rest: Any) -> list[Any]:
    value, back = f.vjp(x, *rest)
    x[...] = 5.0  # whose memory it is by then
    return [value, back(1.0), back(0.25), *rest]


def tangent(f: Any, x: np.ndarray, *rest: Any) -> list[Any]:
    dot = np.where(x > 0, 1.0, 0.0)
    value, moved = f.jvp(x, *rest, tangents={"x": dot})
    return [value, moved, dot, x, *rest]


def pushed(f: Any, x: np.ndarray, *rest: Any) -> list[Any]:
    dot = np.where(x > 0, 1.0, 0.0)
    value, moved = f.pushforward(Duplicated(x, dot), *map(Const, rest))
    return [value, moved, dot, x, *rest]


def product(f: Any, x: np.ndarray, *rest: Any) -> list[Any]:
    return [f.hvp(x, *rest, direction=np.where(x > 0, 1.0, 0.0)), x, *rest]


def gradient_and_product(f: Any, x: np.ndarray, *rest: Any) -> list[Any]:
    return [*f.value_grad_hvp(x, *rest, direction=np.where(x > 0, 1.0, 0.0)), x, *rest]


MODES = [gradient, in_shadows, split, tangent, pushed, product, gradient_and_product]
SECOND = {"gradient", "vjp", "hvp", "product"}
CALLS = [
    (in_place, [np.array(WITH_ZERO), 0.7], SECOND),
    (in_place, [np.array([[0.5, 0.0], [0.0, 2.0], [1.0, 0.0], [3.0, 0.0]])[:, 0], 0.7], SECOND),
    (reciprocals, [np.array(WITH_ZERO), 0.7], {*SECOND, "tangent"}),
    (swapped, [np.array(WITH_ZERO), np.array([0.0, 1.0, 0.0, np.inf]), 0.7], SECOND),
    (of_halves, [np.array(WITH_ZERO), 0.7], SECOND),
    (as_arrays, [np.array(WITH_ZERO), 0.7], SECOND),
]
"""Functions, arguments, and the modes that need guards for these (hvp has two)."""


@pytest.mark.parametrize(
    ("function", "arguments", "modes"),
    CALLS,
    ids=[f"{k}-{row[0].__name__}" for k, row in enumerate(CALLS)],
)
def test_every_call_that_is_made_anew_is_what_it_is_with_guards(function, arguments, modes) -> None:
    def copies() -> list[Any]:
        return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]

    f, oracle = mutad.compile(function, grad=True, opt=1), guarded(function)
    for call in MODES:
        expected = call(oracle, *copies())
        for _ in range(2):  # made anew, then with guards from the start
            for one, other in zip(call(f, *copies()), expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-13)
    assert {k.mode for k in f._dispatcher.table if k.guards} - {"pullback"} == modes


def halfway(x, bad):
    for i in range(x.size):
        if i == bad:
            raise ValueError("halfway")
        y = np.where(x[i] > 0, np.sqrt(x[i]) * x[i] / (1.0 + x[i]), 0.0)
        x[i] = y * y + y / (2.0 + x[i] * x[i])


def test_tangents_that_a_caller_sees_after_an_exception_keep_their_guards() -> None:
    f = mutad.compile(halfway, grad=True, opt=1)
    x, dot = np.array(WITH_ZERO), np.array([1.0, 0.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="halfway"):
        f.pushforward(Duplicated(x, dot), Const(3))
    assert np.isfinite(dot).all()
    assert dot[1] == 0.0


def saved_tangents(x, steps):
    """Each step is nonlinear, so that Hessian-vector products save tangents; its slope at 0 is infinite."""
    u = x.copy()
    for _ in range(steps):
        u[1:] = np.where(u[1:] > 0, np.sqrt(u[1:]), 0.0) * u[1:] * u[:-1]
    return (u * u).sum()


@pytest.mark.parametrize("batch", [None, 3])
def test_products_save_tangents_without_guards(batch: int | None) -> None:
    f, rng = mutad.compile(saved_tangents, grad=True, opt=1), np.random.default_rng(0)
    shape = (4,) if batch is None else (batch, 4)
    for x in (FINITE, WITH_ZERO):
        d = rng.normal(size=shape)
        got = f.hvp(np.array(x), 3, direction=d, batch=batch)
        for one, product in zip(d.reshape(-1, 4), got.reshape(-1, 4), strict=True):
            still = np.where(
                np.array(x) > 0, one, 0.0
            )  # what is 0 stays 0, and nothing depends on it
            h = 1e-5
            ahead, back = (f.grad(np.array(x) + s * still, 3) for s in (h, -h))
            np.testing.assert_allclose(product, (ahead - back) / (2 * h), rtol=1e-6, atol=1e-7)
    (found,) = (
        one for k, one in f._dispatcher.table.items() if k.mode == "product" and not k.guards
    )
    assert found.metadata["retries"]


def of_rows(w, k):
    total = 0.0
    for i in range(w.shape[1]):
        y = np.log(w[2, i]) * k / w[2, i]
        total += np.where(w[2, i] > 0, y * w[0, i], 0.0) * SCALE
    return total


@pytest.mark.parametrize("at", [None, 0, 3])
@pytest.mark.parametrize("rows", [3, 5])
def test_rows_that_are_added_to_are_looked_at(at: int | None, rows: int) -> None:
    """The loop is over one axis, the array has two: only the rows that the program names are looked at."""
    f, exact = mutad.compile(of_rows, grad=True, opt=1), guarded(of_rows)
    w = np.arange(1.0, 1.0 + 4 * rows).reshape(rows, 4)
    if at is not None:
        w[2, at] = 0.0
    for one, other in zip(f.grad(w, 0.7, wrt=(0, 1)), exact.grad(w, 0.7, wrt=(0, 1)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert code_of(f) == [(False, True)] + [(True, False)] * (at is not None)


def test_a_nan_in_another_row_is_not_the_derivatives() -> None:
    f = mutad.compile(of_rows, grad=True, opt=1)
    w = np.arange(1.0, 13.0).reshape(3, 4)
    shadow = np.zeros((3, 4))
    shadow[1] = np.nan
    f.pullback(Duplicated(w, shadow), Const(0.7), cotangent=1.0)
    assert np.isnan(shadow[1]).all()
    assert np.isfinite(shadow[[0, 2]]).all()


def test_rows_that_are_not_there_raise() -> None:
    f = mutad.compile(of_rows, grad=True, opt=1)
    with pytest.raises(IndexError):
        f.grad(np.ones((2, 4)), 0.7)
    assert f.grad(np.empty((2, 0)), 0.7).shape == (2, 0)
