"""Calls of `back` that an entry takes: the same gradients as Python code makes, to the bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mutad import compile

V, M = np.linspace(0.5, 1.5, 5), np.linspace(-1.0, 1.0, 6).reshape(2, 3)


def one_number(x, k):
    return (np.sin(x) * x).sum() * k


def added_up(x, k):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i] * k
    return total


def of_numbers(x, k):
    return x * k + math.sin(x)


def an_array(x, k):
    return np.exp(x) * k


def changed_as_well(x, k):
    x[0] *= 2.0
    return x * x * k


def column_sums(x, k):
    return x.sum(axis=0) * k


def unused(x, k):
    return x * 2.0


def needs_guards(x, k):
    return np.where(x > 0.5, np.sqrt(x - 0.5), 0.0) * k


CASES: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = [
    (one_number, (V, 0.5), "x"),
    (one_number, (V, 0.5), ("x", "k")),
    (one_number, (V, 0.5), ("k",)),
    (one_number, (V.astype(np.float32), np.float32(0.5)), ("x", "k")),
    (added_up, (V, 0.5), ("x", "k")),
    (added_up, (np.zeros(0), 0.5), ("x", "k")),
    (of_numbers, (0.5, np.float64(1.5)), ("x", "k")),
    (an_array, (V, 0.5), "x"),
    (an_array, (M, 0.5), ("x", "k")),
    (an_array, (np.zeros(0), 0.5), ("x", "k")),
    (changed_as_well, (V, 0.5), ("x", "k")),
    (column_sums, (M, 0.5), ("x", "k")),
    (unused, (V, 0.5), ("x", "k")),
]


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize(("function", "arguments", "wrt"), CASES)
def test_gradients(function: Any, arguments: Any, wrt: Any, batch: int | None) -> None:
    f = compile(function, grad=True, opt=1, cache=False)
    out, back = f.vjp(
        *(np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments), wrt=wrt, batch=batch
    )
    assert back.entry is not None
    rng = np.random.default_rng(0)
    bar = rng.normal(size=(*(() if batch is None else (batch,)), *np.shape(out)))
    bar = float(bar) if bar.ndim == 0 else bar.astype(np.asarray(out).dtype)
    found = taken_by_entry(back, bar)
    assert found is not NotImplemented
    assert_alike(found, replace(back, entry=None)(bar))
    assert_alike(found, back(bar))


def taken_by_entry(back: Any, bar: Any) -> Any:
    return back.entry(*back.kept, bar, *((None,) * len(back.shadowed)))


def assert_alike(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, tuple):
        for a, b in zip(one, other, strict=True):
            assert_alike(a, b)
    else:
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype


def test_what_the_entry_does_not_take_python_code_does() -> None:
    f = compile(an_array, grad=True, opt=1, cache=False)
    _, back = f.vjp(V, 0.5)
    expected = back(np.ones(5))
    wide = np.ones(10)[::2]
    for bar in ([1.0] * 5, wide, np.ones(5, np.float32), np.ones(5, int)):
        assert taken_by_entry(back, bar) is NotImplemented
        np.testing.assert_array_equal(back(bar), expected)
    np.testing.assert_array_equal(back(None), np.zeros(5))
    np.testing.assert_array_equal(back(np.ones(5), x=np.ones(5)), expected + 1.0)
    for wrong in (np.ones(4), np.ones((5, 1)), 1.0):
        with pytest.raises(ValueError, match="shape"):
            back(wrong)
    with pytest.raises(TypeError, match="not an array parameter"):
        back(np.ones(5), z=V)
    number = compile(one_number, grad=True, opt=1, cache=False).vjp(V, 0.5)[1]
    assert_alike(number(np.float64(2.0)), number(2.0))
    assert_alike(number(2), number(2.0))


def test_arguments_that_share_memory_and_orders_of_wrt() -> None:
    f = compile(lambda x, y: (x * y).sum(), grad=True, opt=1, cache=False)
    assert f.vjp(V, V, wrt=(0, 1))[1].entry is None
    straight, turned = (f.vjp(V, V * 2.0, wrt=wrt)[1](1.0) for wrt in ((0, 1), (1, 0)))
    assert_alike(straight, turned[::-1])


def test_infinite_partials_are_guarded_from_the_second_call_on() -> None:
    f = compile(needs_guards, grad=True, opt=1, cache=False)
    x = np.array([0.2, 0.5, 0.9])
    _, back = f.vjp(x, 2.0, wrt=("x", "k"))
    first, second = back(np.array([1.0, 0.0, 1.0])), back(np.array([1.0, 0.0, 1.0]))
    assert_alike(first, second)
    assert np.isfinite(first[0]).all()


def test_each_call_makes_new_gradients() -> None:
    _, back = compile(an_array, grad=True, opt=1, cache=False).vjp(V, 0.5)
    one, two = back(np.ones(5)), back(2.0 * np.ones(5))
    np.testing.assert_allclose(two, 2.0 * one)
    one[:] = 0.0
    np.testing.assert_allclose(back(np.ones(5)), two / 2.0)
