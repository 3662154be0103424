"""Reverse steps store to a second array in place of copying what they overwrite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutad
from mutad.compiler.transforms.exchange_copied import ExchangeCopied


def burgers(start: Any, nu: float, steps: int) -> Any:
    u = start.copy()
    for _ in range(steps):
        u[1:-1] += nu * (u[2:] - 2.0 * u[1:-1] + u[:-2]) - 0.05 * u[1:-1] * (u[2:] - u[:-2])
    return (u * u).sum()


def twisted(start: Any, nu: float, steps: int) -> Any:
    """Other widths at either end, and the loop within another."""
    u = start.copy()
    for _ in range(2):
        for _ in range(steps):
            u[2:-1] = np.sin(u[1:-2]) * u[3:] + nu * u[:-3]
        u *= 0.5
    return (u * u).sum() + u[0]


def plane(start: Any, nu: float, steps: int) -> Any:
    u = start.copy()
    for _ in range(steps):
        mid = u[1:-1, 1:-1]
        u[1:-1, 1:-1] += nu * mid * (u[2:, 1:-1] - u[:-2, 1:-1] + u[1:-1, 2:] - u[1:-1, :-2])
    return (u * u).sum()


def no_pass(self: Any, ctx: Any, op: Any) -> None:
    pass


def compiled(function: Any, **options: Any) -> Any:
    return mutad.compile(function, grad=True, cache=False, **options)


SIZES = (2, 3, 4, 5, 6, 17, 200)


@pytest.mark.parametrize("function", [burgers, twisted])
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_bits_are_those_of_copies(
    function: Any, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = compiled(function)
    saved = compiled(function, saves="all")
    results: list[list[Any]] = [[], [], []]
    cases = [(np.random.default_rng(n).normal(size=n), 0.1, steps) for n in SIZES]
    for case in cases:
        results[0].append(made.value_and_grad(*case, wrt=("start", "nu")))
        results[2].append(saved.value_and_grad(*case, wrt=("start", "nu")))
    monkeypatch.setattr(ExchangeCopied, "apply", no_pass)
    without = compiled(function)
    for case in cases:
        results[1].append(without.value_and_grad(*case, wrt=("start", "nu")))
    for new, old, every in zip(*results, strict=True):
        assert new[0] == old[0]
        for a, b, c in zip(new[1], old[1], every[1], strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", [burgers, twisted, plane])
def test_gradients_are_those_of_differences(function: Any) -> None:
    shape = (9, 7) if function is plane else (12,)
    start = np.random.default_rng(1).normal(size=shape)
    mutad.check_gradient(compiled(function), start, 0.1, 3)


def test_reverse_steps_hand_two_arrays_on() -> None:
    text = compiled(burgers).inspect("optimize", np.ones(9), 0.1, 3, wrt=("start",))
    reverse = text[text.index("u_shadow = array.alloc") :]
    assert "carry(%u_shadow" in reverse
