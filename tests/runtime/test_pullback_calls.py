"""Calls of `pullback` that an entry takes: what Python code does, to the bit."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import Active, BatchDuplicated, Const, DifferentiableFunction, Duplicated, compile

V, M = np.linspace(0.5, 1.5, 5), np.linspace(-1.0, 1.0, 6).reshape(2, 3)


def one_number(x, k):
    return (np.sin(x) * x).sum() * k


def in_place(x, k):
    x *= k


def stored(x, k):
    x[0] *= x[1] * k
    return x * x * k


def added_up(x, k):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i] * k
    return total


def needs_guards(x, k):
    return np.where(x > 0.9, np.sqrt(np.abs(x - 0.9)), 0.0) * k


def no_floats(x, k):
    x *= k
    return 3


def of_two(x, k):
    """Its gradient adds to zeros: the code of `grad` is that of `pullback`, too."""
    return x[0] * x[1] * k


CASES: list[tuple[Callable[..., Any], np.ndarray[Any, Any], Any, Any]] = [
    (one_number, V, 0.5, 2.0),
    (one_number, V, 0.5, np.float64(2.0)),
    (one_number, V.astype(np.float32), np.float32(0.5), 2.0),
    (one_number, np.asfortranarray(M), 0.5, 2.0),
    (in_place, M, 0.5, None),
    (in_place, np.zeros((0, 3)), 0.5, None),
    (stored, V, 0.5, np.linspace(1.0, 2.0, 5)),
    (added_up, V, 0.5, 1.0),
    (no_floats, V, 0.5, None),
]


def called(f: Any, x: Any, k: Any, bar: Any, *, moves: bool) -> tuple[Any, ...]:
    """Twice on copies: the results, the array and its shadow."""
    f = f.pullback
    x, shadow = x.copy("K"), np.ones_like(x) * 0.5
    keyword = {} if bar is None else {"cotangent": bar}
    made = [f(Duplicated(x, shadow), Active(k) if moves else Const(k), **keyword) for _ in range(2)]
    return made, x, shadow


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize(("function", "x", "k", "bar"), CASES)
def test_it_is_what_python_code_does(
    function: Any, x: Any, k: Any, bar: Any, moves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = compile(function, grad=True, opt=1, cache=False)
    slowly = type(f).__mro__[1].pullback.__get__(f)
    by_entry, by_python = (
        called(one, x, k, bar, moves=moves) for one in (f, type("", (), {"pullback": slowly}))
    )
    assert f.pullback.__name__ == "pullback"
    assert_alike(by_entry, by_python)
    monkeypatch.delattr(DifferentiableFunction, "pullback")  # the entry does all of it
    assert_alike(called(f, x, k, bar, moves=moves), by_python)


def assert_alike(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, tuple | list):
        for a, b in zip(one, other, strict=True):
            assert_alike(a, b)
    else:
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype


def test_a_call_that_is_made_anew_with_guards_finds_the_shadows_as_they_were() -> None:
    f = compile(needs_guards, grad=True, opt=1, cache=False)
    smooth, x = np.array([0.2, 0.5, 1.9]), np.array([0.2, 0.9, 1.9])
    bar = np.array([1.0, 0.0, 1.0])
    f.pullback(Duplicated(smooth, np.zeros(3)), Active(2.0), cotangent=bar)
    before = f.__dict__["pullback"]
    shadow = np.full(3, 0.25)
    _, (k_bar,) = before(Duplicated(x, shadow), Active(2.0), cotangent=bar)
    expected, back = f.vjp(x, 2.0, wrt=("x", "k"))
    x_bar, expected_k_bar = back(bar)
    np.testing.assert_array_equal(shadow, 0.25 + x_bar)
    assert k_bar == expected_k_bar
    assert np.isfinite(shadow).all()
    again = np.full(3, 0.25)
    f.pullback(Duplicated(x, again), Active(2.0), cotangent=bar)
    np.testing.assert_array_equal(again, shadow)
    assert np.isfinite(expected).all()


def test_what_the_entry_does_not_take_python_code_does_or_refuses() -> None:
    f = compile(stored, grad=True, opt=1, cache=False)
    x, bar = V.copy(), np.ones(5)
    expected = np.zeros(5)
    f.pullback(Duplicated(V.copy(), expected), Const(0.5), cotangent=bar)
    wide = np.zeros(10)
    for shadow, given in (
        (wide[::2], bar),
        (np.zeros(5), [1.0] * 5),
        (np.zeros(5), np.ones(10)[::2]),
    ):
        f.pullback(Duplicated(V.copy(), shadow), Const(0.5), cotangent=given)
        np.testing.assert_array_equal(shadow, expected)
    many = np.zeros((5, 2))
    f.pullback(BatchDuplicated(V.copy(), many), Const(0.5), cotangent=np.ones((5, 2)))
    np.testing.assert_array_equal(many[:, 1], expected)
    for wrong, words in (
        ((Duplicated(x, x), Const(0.5)), "shares memory"),
        ((Duplicated(x, x[::-1]), Const(0.5)), "shares memory"),
        ((Duplicated(x, np.zeros(4)), Const(0.5)), r"shadow of 'x' is float64\[4\]"),
    ):
        with pytest.raises(ValueError, match=words):
            f.pullback(*wrong, cotangent=bar)
    read_only = np.zeros(5)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        f.pullback(Duplicated(x, read_only), Const(0.5), cotangent=bar)
    with pytest.raises(TypeError, match="pass cotangent="):
        f.pullback(Duplicated(x, np.zeros(5)), Const(0.5))
    with pytest.raises(TypeError, match="wrap argument 'k'"):
        f.pullback(Duplicated(x, np.zeros(5)), 0.5, cotangent=bar)
    with pytest.raises(ValueError, match="shape"):
        f.pullback(Duplicated(x, np.zeros(5)), Const(0.5), cotangent=np.ones(4))
    np.testing.assert_array_equal(x, V)


def test_a_cotangent_that_is_the_shadow_is_copied_first() -> None:
    f = compile(stored, grad=True, opt=1, cache=False)
    expected, shadow = np.ones(5), np.ones(5)
    f.pullback(Duplicated(V.copy(), expected), Const(0.5), cotangent=np.ones(5))
    f.pullback(Duplicated(V.copy(), shadow), Const(0.5), cotangent=shadow)
    np.testing.assert_array_equal(shadow, expected)


def test_large_shadows_and_other_kinds() -> None:
    f = compile(one_number, grad=True, opt=1, cache=False)
    for n in (10, 5_000, 50_000):
        x, shadow = np.linspace(0.0, 1.0, n), np.zeros(n)
        for _ in range(2):
            f.pullback(Duplicated(x, shadow), Const(2.0), cotangent=1.0)
        np.testing.assert_allclose(shadow, 2.0 * f.grad(x, 2.0), rtol=1e-14)


def test_entries_that_take_shadows_wait_until_one_is_called() -> None:
    f = compile(of_two, grad=True, opt=1, cache=False)
    value, (gradient, moved) = f.value_and_grad(V.copy(), 2.0, wrt=("x", "k"))
    (found,) = f._dispatcher.era.table.values()
    assert {*found.direct} == {"grad", "value_and_grad"}
    for _ in range(2):
        shadow = np.zeros(5)
        result, bars = f.pullback(Duplicated(V.copy(), shadow), Active(2.0), cotangent=1.0)
        assert (result, bars) == (value, (moved,))
        np.testing.assert_allclose(shadow, gradient, rtol=1e-15)
        assert {*found.direct} == {"grad", "value_and_grad", "pullback", "pulled"}
    assert f.__dict__["pullback"].__module__ == found.library
    with pytest.raises(KeyError):
        found.direct["forward"]


def test_entries_that_waited_outlive_the_function() -> None:
    f = compile(of_two, grad=True, opt=1, cache=False)
    gradient = f.grad(V.copy(), 2.0)
    f.pullback(Duplicated(V.copy(), np.zeros(5)), Const(2.0), cotangent=1.0)
    pullback = f.__dict__["pullback"]
    del f
    gc.collect()
    shadow = np.zeros(5)
    pullback(Duplicated(V.copy(), shadow), Const(2.0), cotangent=1.0)
    np.testing.assert_allclose(shadow, gradient, rtol=1e-15)


@compile(grad=True, opt=1)
def pickled(x):
    return (x * x).sum()


def test_it_pickles_by_name() -> None:
    pickled.pullback(Duplicated(V, np.zeros(5)), cotangent=1.0)
    assert pickle.loads(pickle.dumps(pickled.pullback)) is pickled.pullback or callable(
        pickle.loads(pickle.dumps(pickled.pullback))
    )
