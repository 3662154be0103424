"""What one compilation made, others start from: the IR before the derivative, a gradient that was checked."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad
from mutad.compiler import pipeline
from mutad.compiler.compilation import Compilation
from mutad.compiler.frontend.build import Build
from mutad.compiler.stages import machine_code

Array = np.ndarray


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that were lowered, one for each attempt."""
    names: list[str] = []
    run: Callable[[Build], Any] = Build.run

    def noted(self: Build) -> Any:
        names.append(self.function.__name__)
        return run(self)

    monkeypatch.setattr(Build, "run", noted)
    return names


def test_a_function_its_gradient_vjp_and_another_plan_are_lowered_once(lowered: list[str]) -> None:
    def loss(x: Array) -> float:
        x[:] = x * x
        return float(np.sum(np.sin(x)))

    f = mutad.compile(loss, grad=True, cache=False, opt=1)
    mutad.check_gradient(f, np.array([0.5, 1.5]))
    f.explain(np.ones(2))
    assert lowered == ["loss"]


def test_it_is_lowered_again_for_another_constant_from_outside(lowered: list[str]) -> None:
    power = 2

    def loss(x: Array) -> float:
        return float(np.sum(x**power))

    f = mutad.compile(loss, grad=True, cache=False, opt=1)
    assert f(np.array([3.0])) == 9.0
    power = 3
    assert f(np.array([3.0])) == 27.0
    assert f.grad(np.array([3.0]))[0] == 27.0
    assert lowered == ["loss", "loss"]


def test_it_is_lowered_again_where_only_the_gradient_uses_a_rule(lowered: list[str]) -> None:
    def twice(x: float) -> float:
        return 2.0 * x

    def loss(x: float) -> float:
        return twice(x)

    @mutad.rule(twice)
    def _rule(x: Any, result: Any) -> None:
        x.cotangent += 5.0 * result.cotangent

    f = mutad.compile(loss, grad=True, cache=False, opt=1)
    assert f(3.0) == 6.0
    assert f.grad(3.0) == 5.0
    assert lowered.count("loss") == 2


def test_what_is_kept_keeps_no_function_alive() -> None:
    def made() -> weakref.ref[Any]:
        scale = np.ones(2)

        def loss(x: Array) -> float:
            return float(np.sum(x * scale))

        mutad.compile(loss, grad=True, cache=False, opt=1)(np.ones(2))
        return weakref.ref(loss)

    found = made()
    gc.collect()
    assert found() is None


def test_no_code_is_made_that_assumes_what_these_arguments_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[bool] = []
    emitted = machine_code.metadata_of

    def noted(c: Compilation) -> dict[str, Any]:
        made.append(c.request.options.stretch)
        return emitted(c)

    monkeypatch.setattr(pipeline, "metadata_of", noted)

    def loss(x: Array, y: Array) -> float:
        return float(np.sum(x[1:] * y[:-1]))

    f = mutad.compile(loss, grad=True, cache=False, opt=1)
    one, many = np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    assert f(one, many) == loss(one, many)
    np.testing.assert_array_equal(f.grad(one, many), [0.0, 3.0])
    assert made == [True, True]
    assert f(many, many) == loss(many, many)


def test_a_function_whose_gradient_is_there_is_not_checked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked: list[Any] = []
    check = pipeline.check_request

    def counted(request: Any, wanted: Any) -> None:
        checked.append(request.arguments)
        check(request, wanted)

    monkeypatch.setattr(pipeline, "check_request", counted)

    def squares(x: Array) -> float:
        return float(np.sum(x * x))

    f = mutad.compile(squares, grad=True, cache=False)
    f.grad(np.ones(3))
    assert f(np.ones(3)) == 3.0
    assert checked == []
    assert f(np.ones(3, np.float32)) == 3.0
    assert len(checked) == 1
