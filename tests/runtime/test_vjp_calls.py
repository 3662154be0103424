"""`vjp` and `back` by entries: they compute and raise what the methods in Python do.

An entry takes a call that needs no more than it can do; everything else goes on to Python. Each call here is
made both ways.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad.runtime.function
from mutad import CompiledFunction, compile
from mutad.runtime.vjp import Back

scale = 1.5


def energy(x, k=2.0):
    return (k * x**3).sum()


def in_place(x, y):
    for i in range(x.size):
        y[i] = x[i] * y[i]


def of_an_array(x, k):
    x[0] = x[1] * k
    return np.sin(x) * k


def with_outside(x):
    return (scale * x**2).sum()


def with_guards(x):
    return np.where(x > 0, np.sqrt(x), 0.0).sum()


def raises(x):
    if x[0] > 5.0:
        raise ValueError("too large", x[0])
    return (x**2).sum()


def numbers(n: int = 4) -> np.ndarray:
    return np.linspace(0.5, 2.0, n)


CALLS: list[tuple[Callable[..., Any], tuple[Any, ...], Any, Any, dict[str, Any]]] = [
    (energy, (numbers(), 3.0), "x", 1.0, {}),
    (energy, (numbers(),), 0, np.float64(2.0), {}),
    (energy, (numbers(), 3.0), ("x", "k"), 2.0, {}),
    (energy, (numbers(), 3.0), ("x",), 2.0, {"x": numbers()}),
    (energy, (numbers(0),), "x", 1.0, {"x": numbers(0)}),
    (in_place, (numbers(), numbers() + 1), ("x", "y"), None, {"y": numbers()}),
    (in_place, (numbers(), numbers() + 1), "x", None, {"y": numbers(), "x": numbers() * 2}),
    (in_place, (numbers(), numbers() + 1), ("x", "y"), None, {}),
    (of_an_array, (numbers(), 0.5), ("x", "k"), numbers(), {"x": numbers()}),
    (of_an_array, (numbers(), 0.5), "k", numbers(), {}),
    (of_an_array, (np.float32([1, 2, 3]), 0.5), "x", np.float32([3, 2, 1]), {"x": np.float32([1, 0, 1])}),
    (with_outside, (numbers(),), 0, 3.0, {}),
    (with_guards, (np.array([-1.0, 0.0, 4.0]),), 0, 1.0, {}),
]  # fmt: skip


def copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)


def compiled(function: Callable[..., Any]) -> CompiledFunction:
    return compile(function, grad=True, cache=False)


@pytest.mark.parametrize(
    ("function", "arguments", "wrt", "bar", "final"),
    CALLS,
    ids=[f"{c[0].__name__}-{c[2]}-{len(c[4])}" for c in CALLS],
)
def test_the_entry_does_what_python_does(function, arguments, wrt, bar, final) -> None:
    f = compiled(function)
    theirs, ours = copied(arguments), copied(arguments)
    by_python, back_by_python = type(f).vjp(f, *theirs, wrt=wrt)
    result, back = f.vjp(*ours, wrt=wrt)
    for a, b in zip((*theirs, by_python), (*ours, result), strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b)
    object.__setattr__(back_by_python, "entry", None)
    wanted = back_by_python(bar, **final)
    for _ in range(2):
        found = back(bar, **final)
        assert type(found) is type(wanted)
        pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
        for a, b in pairs:
            assert type(a) is type(b)
            np.testing.assert_array_equal(a, b)


def test_calls_of_known_kinds_are_left_to_the_entries(monkeypatch) -> None:
    f, g = compiled(energy), compiled(in_place)
    x, y = numbers(), numbers()
    f.vjp(x, 2.0, wrt="x")
    g.vjp(x, y.copy(), wrt=("x", "y"))

    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise AssertionError("in Python")

    monkeypatch.setattr(mutad.runtime.differentiable_function, "run_vjp", refuse)
    monkeypatch.setattr(Back, "pulled_back", refuse)
    _, back = f.vjp(x, 2.0, wrt="x")
    np.testing.assert_allclose(back(2.0, x=x), 12 * x**2 + x)
    _, back = f.vjp(x, wrt=("x",))
    np.testing.assert_allclose(back(1.0)[0], 6 * x**2)
    _, back = g.vjp(x, y.copy(), wrt=("x", "y"))
    np.testing.assert_allclose(back(y=x), (y * x, x * x))


@pytest.mark.parametrize(
    ("final", "error"),
    [
        ({"x": np.ones(3)}, ValueError),
        ({"k": 1.0}, TypeError),
        ({"z": np.ones(4)}, TypeError),
        ({"x": "no"}, (TypeError, ValueError)),
    ],
)
def test_what_is_no_cotangent_is_refused(final, error) -> None:
    _, back = compiled(energy).vjp(numbers(), 2.0, wrt="x")
    with pytest.raises(error):
        back(1.0, **final)


def test_cotangents_of_other_kinds_are_what_python_makes_of_them() -> None:
    f = compiled(energy)
    _, back = f.vjp(numbers(8), wrt="x")
    every_other, whole = numbers(16)[::2], numbers(8)
    np.testing.assert_allclose(back(1, x=every_other), 6 * whole**2 + every_other)
    np.testing.assert_allclose(back(1.0, x=list(whole)), 6 * whole**2 + whole)


def test_cotangents_are_read_and_never_written() -> None:
    _, back = compiled(energy).vjp(numbers(), wrt="x")
    bar = numbers()
    first = back(1.0, x=bar)
    first += 100.0
    np.testing.assert_array_equal(bar, numbers())
    np.testing.assert_allclose(back(1.0, x=bar), 6 * numbers() ** 2 + bar)


def test_a_cotangent_that_the_entry_refuses_costs_no_memory() -> None:
    _, back = compiled(energy).vjp(numbers(1000), wrt="x")
    for call in (lambda: back(1), lambda: back(1.0, x=np.float32(numbers(1000)))):
        held = [memory_held(call, times) for times in (50, 50, 250)]
        assert held[2] - held[1] < 400_000  # two hundred arrays take 1,600,000


def memory_held(call: Callable[[], Any], times: int) -> int:
    """How much more memory there is after so many calls."""
    gc.collect()
    tracemalloc.start()
    for _ in range(times):
        call()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held


def test_what_raises_keeps_nothing_and_raises_the_same() -> None:
    f = compiled(raises)
    f.vjp(numbers())
    with pytest.raises(ValueError, match="too large"):
        f.vjp(numbers() + 5)


def test_a_changed_constant_is_seen(monkeypatch) -> None:
    f = compiled(with_outside)
    f.vjp(numbers())
    monkeypatch.setitem(globals(), "scale", 3.0)
    result, back = f.vjp(numbers())
    assert result == (3.0 * numbers() ** 2).sum()
    np.testing.assert_allclose(back(1.0), 6.0 * numbers())


def test_arguments_that_share_memory_are_left_to_python() -> None:
    f = compiled(in_place)
    f.vjp(numbers(), numbers(), wrt=("x", "y"))
    x = numbers()
    _, back = f.vjp(x, x, wrt=("x", "y"))
    first, second = back(y=np.ones(4))
    assert np.shares_memory(first, second)
    np.testing.assert_allclose(first, 2 * numbers())
