"""Code that is replaced where functions live on: `__code__` is assigned (as notebooks' autoreload does), and
cells are run again."""

from __future__ import annotations

import linecache
import warnings
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import mutad


def helper(x):
    return 2.0 * x


def other_helper(x):
    return 5.0 * x * x


def calls(x):
    return helper(x).sum()


def mean(x):
    return (x * x).mean()


def with_another_signature(x, k=3.0):
    return (k * x).sum()


async def waits(x):
    return x


X = np.array([1.0, 2.0])


def copied(function: FunctionType) -> Any:
    """A function of the same code, and globals, whose own code may be replaced."""
    made = FunctionType(function.__code__, function.__globals__, function.__name__)
    made.__defaults__ = function.__defaults__
    return made


def test_the_function_s_own() -> None:
    plain = copied(calls)
    f = mutad.compile(plain, grad=True, opt=0)
    assert f(X) == 6.0
    np.testing.assert_array_equal(f.grad(X), [2.0, 2.0])
    plain.__code__ = mean.__code__
    assert f(X) == 2.5
    np.testing.assert_array_equal(f.grad(X), [1.0, 2.0])
    plain.__code__ = calls.__code__
    assert f(X) == 6.0


def test_with_other_parameters() -> None:
    plain = copied(calls)
    f = mutad.compile(plain, grad=True, opt=0)
    assert f(X) == 6.0
    plain.__code__, plain.__defaults__ = with_another_signature.__code__, (3.0,)
    assert (f(X), f(X, 1.0), f(X, k=2.0)) == (9.0, 3.0, 6.0)
    assert f.parameters == ("x", "k")
    assert f.grad(X, wrt="k") == 3.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # since Python 3.13
        plain.__code__ = waits.__code__
    with pytest.raises(TypeError, match="coroutine"):
        f(X)


def test_of_a_function_that_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    f = mutad.compile(calls, grad=True, opt=0)
    assert f(X) == 6.0
    monkeypatch.setattr(helper, "__code__", other_helper.__code__)
    assert f(X) == 25.0
    np.testing.assert_array_equal(f.grad(X), [10.0, 20.0])


class Model:
    def __init__(self, k: float) -> None:
        self.k = k

    def scaled(self, x):
        return self.k * x.sum()


def another_scaled(self, x):
    return self.k * self.k * x.sum()


def test_of_a_method_of_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    @mutad.compile(grad=True, opt=0)
    def run(model, x):
        return model.scaled(x)

    assert run(Model(3.0), X) == 9.0
    monkeypatch.setattr(Model.scaled, "__code__", another_scaled.__code__)
    assert run(Model(3.0), X) == 27.0
    np.testing.assert_array_equal(run.grad(Model(3.0), X, wrt="x"), [9.0, 9.0])


def run_cell(number: int, source: str, names: dict[str, Any]) -> None:
    """A cell of a notebook: its source is where IPython puts it."""
    file = f"<ipython-input-{number}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), names)


def test_cells_that_are_run_again() -> None:
    names: dict[str, Any] = {"mutad": mutad, "X": X, "__name__": "__main__"}
    run_cell(1, "def rate(x):\n    return 2.0 * x\n", names)
    run_cell(2, "@mutad.compile(grad=True, opt=0)\ndef f(x):\n    return rate(x).sum()\n", names)
    run_cell(3, "value, slope = f.value_and_grad(X)", names)
    assert names["value"] == 6.0
    run_cell(4, "def rate(x):\n    return x * x\n", names)
    run_cell(3, "value, slope = f.value_and_grad(X)", names)
    assert names["value"] == 5.0
    np.testing.assert_array_equal(names["slope"], [2.0, 4.0])
    run_cell(2, "@mutad.compile(grad=True, opt=0)\ndef f(x):\n    return rate(x)[0] * 3.0\n", names)
    run_cell(3, "value, slope = f.value_and_grad(X)", names)
    assert names["value"] == 3.0
