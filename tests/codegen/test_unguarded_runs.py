"""Scalar loops compute derivatives without the guards of strong zeros, and again where something is infinite."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mutad import compile


def pulled(x, y, out):
    """Each element waits for the one before: scalar code, with products, quotients and a root."""
    for i in range(1, x.size):
        s = x[i] * x[i] + 1.0
        r = math.sqrt(s)
        w = y[i] / (s * r)
        out[i] = 0.5 * out[i - 1] + w * w * x[i] * s + r * y[i] * s
    return (out[:5] ** 2).sum()


def chosen(x, y, out):
    """As `pulled`, with choices between what is finite and what need not be."""
    for i in range(1, x.size):
        a = x[i] * x[i] * y[i]
        b = y[i] / x[i]
        c = a * b if x[i] < 2.0 else y[i] * y[i]
        out[i] = 0.25 * out[i - 1] * y[i] + c * x[i - 1] + a * c
    return (out[:5] ** 2).sum()


def damped(x, y, out):
    """As `pulled`, through functions that make numbers of what is infinite."""
    for i in range(1, x.size):
        s = x[i] * y[i] * x[i]
        t = math.tanh(s * y[i])
        out[i] = 0.5 * out[i - 1] * t + math.exp(-abs(s)) * y[i] * t
    return (out[:5] ** 2).sum()


PROGRAMS = (pulled, chosen, damped)
INFINITE = 7
"""The element of `x` that is infinite, behind all that the results depend on."""


def arguments(at: float = 1.25) -> tuple[Any, ...]:
    rng = np.random.default_rng(3)
    x, y = rng.uniform(0.5, 1.5, 12), rng.uniform(0.5, 1.5, 12)
    x[INFINITE] = at
    return x, y, np.zeros(12)


def directions() -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    dx, dy = rng.normal(size=12), rng.normal(size=12)
    dx[INFINITE:], dy[INFINITE:] = 0.0, 0.0
    dx[INFINITE - 1] = 0.0  # what is chosen reads the element before as well
    return dx, dy


class Everything(set[Any]):
    def __contains__(self, one: object) -> bool:
        return True


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda p: p.__name__)
def compiled(request: pytest.FixtureRequest) -> Any:
    """Code that has its guards from the first call on."""
    made = compile(request.param, grad=True)
    made._dispatcher.era.guarded = Everything()
    return made


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_run_is_written_without_guards_and_once_more_with_them(program: Any) -> None:
    guarded = compile(program, grad=True)
    guarded._dispatcher.options["guards"] = True
    text = guarded.inspect("llvm", *arguments(), wrt=("x", "y"))
    assert "\nguarded." in text


def test_calls_with_and_without_guards_compute_the_same(compiled: Any) -> None:
    """Up to contraction, which a run with a guarded copy has less of."""
    without_guards = compile(compiled.__wrapped__, grad=True)

    def derivatives(of: Any, at: float) -> list[Any]:
        dx, dy = (d.copy() for d in directions())
        given, do = arguments(at), np.zeros(12)
        moved = of.jvp(*given, tangents={"x": dx, "y": dy, "out": do})
        products = of.hvp(*arguments(at), wrt=("x", "y"), direction=directions())
        _, back = of.vjp(*arguments(at), wrt=("x", "y"))
        return [*moved, *given, dx, dy, do, *products, *back(1.0), *back(0.5)]

    for at in (1.25, 1e200, math.inf, math.nan):
        found, expected = derivatives(without_guards, at), derivatives(compiled, at)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)


def test_there_is_no_second_copy_where_a_loop_becomes_vector_code() -> None:
    def scaled(x, y, out):
        for i in range(x.size):
            out[i] = x[i] * x[i] / y[i] * (x[i] * y[i]) * x[i]
        return out[0]

    f = compile(scaled, grad=True)
    f._dispatcher.options["guards"] = True
    text = f.inspect("llvm", *arguments(), wrt=("x", "y"))
    assert "guarded." not in text


@pytest.mark.parametrize("at", [math.inf, -math.inf, math.nan, 1e200])
def test_a_zero_tangent_is_strong_beside_what_is_not_finite(compiled: Any, at: float) -> None:
    dx, dy = directions()

    def tangents(at: float) -> Any:
        do = np.zeros(12)
        compiled.jvp(*arguments(at), tangents={"x": dx.copy(), "y": dy.copy(), "out": do})
        return do

    found, expected = tangents(at), tangents(1.25)
    np.testing.assert_array_equal(found[:INFINITE], expected[:INFINITE])
    if compiled.__name__ == "pulled":  # linear in the element before: tangents go on
        np.testing.assert_array_equal(found, expected)
    assert np.isfinite(found[:INFINITE]).all()


@pytest.mark.parametrize("at", [math.inf, math.nan, 1e200])
def test_a_zero_cotangent_is_strong_beside_what_is_not_finite(compiled: Any, at: float) -> None:
    found = compiled.grad(*arguments(at), wrt=("x", "y"))
    for one, expected in zip(found, compiled.grad(*arguments(), wrt=("x", "y")), strict=True):
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("at", [math.inf, math.nan, 1e200])
def test_second_derivatives_keep_strong_zeros(compiled: Any, at: float) -> None:
    def product(at: float) -> Any:
        return compiled.hvp(*arguments(at), wrt=("x", "y"), direction=directions())

    for one, expected in zip(product(at), product(1.25), strict=True):
        np.testing.assert_array_equal(one, expected)


def test_what_is_infinite_or_no_number_stays_so(compiled: Any) -> None:
    for which, where in ((0, 3), (1, 3)):
        given = [d.copy() for d in directions()]
        given[which][where] = math.nan
        do = np.zeros(12)
        compiled.jvp(*arguments(), tangents={"x": given[0], "y": given[1], "out": do})
        plain = np.zeros(12)
        dx, dy = directions()
        compiled.jvp(*arguments(), tangents={"x": dx, "y": dy, "out": plain})
        np.testing.assert_array_equal(do[:where], plain[:where])
        assert np.isnan(do[where])


def times_infinity(x, p, out):
    for i in range(1, x.size):
        a = x[i] * p[i]
        b = a * x[i]
        c = b * p[i] + a
        out[i] = out[i - 1] * 0.5 + c * x[i]
    return out[-1]


def test_a_tangent_times_infinity_is_infinite() -> None:
    f = compile(times_infinity, grad=True)
    x, p = np.full(4, 2.0), np.full(4, 1.0)
    p[2] = math.inf
    do = np.zeros(4)
    f.jvp(x, p, np.zeros(4), tangents={"x": np.array([0.0, 0.0, 1.0, 0.0]), "out": do})
    assert do[1] == 0.0
    assert do[2] == math.inf
    assert do[3] == math.inf


def unselected(x, u, w, n):
    """What is not chosen has roots and quotients of what is no number."""
    s = 0.0
    for i in range(n - 3, 1, -1):
        u[i - 1] += 0.25 * min(w[i + 2] / (1.0 + x[i + 1] ** 2), w[i] / (1.0 + w[i] ** 2))
        s += min(0.5 * (x[i + 1] + w[i]), math.sqrt(abs(s) + 0.5))
    return s + (u * u).sum()


def test_vectors_of_tangents_keep_their_guards() -> None:
    f = compile(unselected, grad=True, opt=1, cache=False)
    x, w = np.full(9, 0.5), np.full(9, 0.5)
    w[6] = np.nan
    along = np.random.default_rng(5).normal(size=(3, 9))
    together = f.hvp(x, x.copy(), w, 9, wrt="w", direction=along, batch=3)
    alone = [f.hvp(x, x.copy(), w, 9, wrt="w", direction=v) for v in along]
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    assert np.isfinite(together).all()
