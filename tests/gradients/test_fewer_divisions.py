"""Quotients with one divisor are products with one reciprocal, and give the numbers that divisions give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mutad import compile
from mutad.compiler.derivative import drop_guards
from mutad.compiler.stages import optimize


def quotients(x: Any, m: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        for j in range(x.size):
            w = m[j] / (x[i] + x[j])
            total += w * w * m[i]
    return total


def roots(x: Any, m: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        for j in range(x.size):
            r = x[i] * x[j]
            total += m[j] / (r * math.sqrt(r))
    return total


def by_a_quotient(x: Any, m: Any) -> Any:
    w = m / x
    z = x / w
    return (z / x + w / x).sum()


def plain(guards: Sequence[Any], *, fused: bool) -> list[Any]:
    return list(guards)


def gradients(function: Any, x: Any, m: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Those with shared reciprocals, and those with all divisions."""
    ours: Any = compile(function, grad=True, cache=False)
    shared = ours.grad(x, m, wrt=("x", "m"))
    monkeypatch.setattr(drop_guards, "share_reciprocals", plain)
    divided: Any = compile(function, grad=True, cache=False)
    return shared, divided.grad(x, m, wrt=("x", "m"))


def test_the_bits_are_those_of_divisions(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, m = 10.0 ** rng.uniform(-30, 30, 37), rng.normal(size=37) * 10.0 ** rng.uniform(-30, 30, 37)
    for a, b in zip(*gradients(quotients, x, m, monkeypatch), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_divisor_may_be_such_a_quotient(monkeypatch: pytest.MonkeyPatch) -> None:
    x, m = np.random.default_rng(0).uniform(0.5, 2.0, (2, 37))
    for a, b in zip(*gradients(by_a_quotient, x, m, monkeypatch), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_a_number_by_its_root_is_as_close(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, m = rng.uniform(0.1, 10.0, 37), rng.normal(size=37)
    for a, b in zip(*gradients(roots, x, m, monkeypatch), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


EXTREMES = [5e-324, 1e-310, 2e-308, 1e-155, 1.0, 1e155, 1e308, math.inf]


@pytest.mark.parametrize("function", [quotients, roots])
@pytest.mark.parametrize("extreme", EXTREMES)
def test_extremes_are_computed_with_guards(
    function: Any, extreme: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, m = np.array([1.0, extreme, 2.0]), np.array([1.0, 1e-300, 0.0])
    for a, b in zip(*gradients(function, x, m, monkeypatch), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def divisions(function: Any) -> int:
    x = np.linspace(1.0, 2.0, 20)
    text = compile(function, grad=True, cache=False).inspect("optimize", x, x, wrt=("x", "m"))
    return text.count("arith.divf")


def any_cpu(c: object) -> bool:
    """Instead of `has_fused`: on a CPU without fused multiply-adds quotients share no reciprocal."""
    return True


@pytest.mark.parametrize("function", [quotients, roots])
def test_there_are_fewer_divisions(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimize, "has_fused", any_cpu)
    fewer = divisions(function)
    monkeypatch.setattr(drop_guards, "share_reciprocals", plain)
    assert fewer < divisions(function)
