"""Jacobians by rows that entries take: the same matrices as Python code makes, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import compile
from mutad.runtime import jacobians
from mutad.runtime.dispatch import Dispatcher


def field(x, k):
    y = x * x * np.sin(x)
    y[1:] += k * x[:-1] * x[1:]
    return y


def table(x, k):
    return np.outer(x, x * k)


def in_single(x, k):
    return (x * k).astype(np.float32)


def of_two(x, y):
    return x * y[0] + np.exp(y)


def energy(x, k):
    return (np.sin(x) * x).sum() * k


def of_single(x, k):
    return np.float32((x * x).sum()) * np.float32(k)


def with_guards(x, k):
    return np.where(x > 0.6, np.sqrt(x - 0.6), 0.0) * k


def constant(x, k):
    return np.ones(3) * k


def prints(x, k):
    print("once")
    return x * k


def raises(x, k):
    if x[0] > 5.0:
        raise ValueError("too large")
    return x * k


def numbers(n: int = 5) -> np.ndarray:
    return np.linspace(0.5, 2.0, n)


CALLS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (field, (numbers(), 0.7), {"mode": "reverse"}),
    (field, (numbers(20), 0.7), {"mode": "reverse", "wrt": "x"}),
    (field, (numbers(8), 0.7), {"wrt": 0, "mode": "reverse"}),
    (field, (np.float32(numbers()), 0.7), {"mode": "reverse"}),
    (field, (numbers()[::-1], 0.7), {"mode": "reverse"}),
    (table, (numbers(3), 0.7), {"mode": "reverse"}),
    (in_single, (numbers(), 0.7), {"mode": "reverse"}),
    (of_two, (numbers(), numbers() + 1), {"mode": "reverse", "wrt": ("x", "y")}),
    (of_two, (numbers(), numbers() + 1), {"mode": "reverse", "wrt": ("y",)}),
    (of_two, (numbers(), numbers() + 1), {"mode": "reverse", "wrt": "y"}),
    (energy, (numbers(), 0.7), {}),
    (energy, (numbers().reshape(1, 5), 0.7), {"wrt": ("x",)}),
    (energy, (numbers(), 0.7), {"wrt": ("x", "k")}),
    (energy, (numbers(), 0.7), {"mode": "reverse"}),
    (energy, (numbers(1), 0.7), {}),
    (energy, (numbers(0), 0.7), {}),
    (of_single, (np.float32(numbers()), 0.5), {}),
    (with_guards, (np.array([0.2, 0.6, 1.0]), 0.5), {"mode": "reverse"}),
    (constant, (numbers(), 0.5), {"mode": "reverse"}),
    (raises, (numbers(), 0.5), {"mode": "reverse"}),
]


@pytest.mark.parametrize(
    ("function", "arguments", "options"),
    CALLS,
    ids=[f"{c[0].__name__}-{k}" for k, c in enumerate(CALLS)],
)
def test_the_entry_makes_what_python_makes(function, arguments, options) -> None:
    f = compile(function, grad=True, cache=False, opt=1)
    wanted = type(f).jacobian(f, *arguments, **options)
    for _ in range(2):
        found = f.jacobian(*arguments, **options)
        assert type(found) is type(wanted)
        both = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
        for a, b in both:
            assert a.shape == b.shape
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_calls_of_known_kinds_are_left_to_the_entry(monkeypatch) -> None:
    f, g = (compile(one, grad=True, cache=False, opt=1) for one in (field, energy))
    x = numbers()
    f.jacobian(x, 0.7, mode="reverse")
    g.jacobian(x, 0.7)

    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise AssertionError("in Python")

    monkeypatch.setattr(jacobians, "started", refuse)
    monkeypatch.setattr(Dispatcher, "method", refuse)
    assert f.jacobian(x, 0.7, mode="reverse").shape == (5, 5)
    assert f.jacobian(x, 0.9, wrt=("x",), mode="reverse")[0].shape == (5, 5)
    np.testing.assert_allclose(g.jacobian(x, 0.5), (np.sin(x) + x * np.cos(x)) * 0.5)


def test_columns_are_columns_still(monkeypatch) -> None:
    """The entries of both modes are in one chain."""
    f = compile(field, grad=True, cache=False, opt=1)
    x = numbers()
    by_rows, by_columns = (f.jacobian(x, 0.7, mode=mode) for mode in ("reverse", "forward"))
    for _ in range(2):
        np.testing.assert_array_equal(f.jacobian(x, 0.7, mode="reverse"), by_rows)
        np.testing.assert_array_equal(f.jacobian(x, 0.7, mode="forward"), by_columns)
        np.testing.assert_array_equal(f.jacobian(x, 0.7), by_columns)


def test_effects_and_exceptions_are_those_of_one_call(capfd) -> None:
    f = compile(prints, grad=True, cache=False, opt=1)
    for _ in range(2):
        f.jacobian(numbers(), 0.5, mode="reverse")
        assert capfd.readouterr().out == "once\n"
    g = compile(raises, grad=True, cache=False, opt=1)
    g.jacobian(numbers(), 0.5, mode="reverse")
    with pytest.raises(ValueError, match="too large"):
        g.jacobian(numbers() + 5, 0.5, mode="reverse")


def test_large_ones_are_left_to_python() -> None:
    f = compile(energy, grad=True, cache=False, opt=1)
    x = np.linspace(0.5, 2.0, 200_000)
    for _ in range(2):
        np.testing.assert_allclose(f.jacobian(x, 0.5), (np.sin(x) + x * np.cos(x)) * 0.5)
