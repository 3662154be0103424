"""Gradients of functions that draw: through parameters, not through draws, and the stream runs on once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mutad

Function = Callable[..., Any]


def draws_one_by_one(mu, sigma, rng, n):
    s = 0.0
    for _ in range(n):
        z = rng.normal(mu, sigma)
        s += np.sin(z) * z
    return s


def parameters_that_are_arrays(mu, sigma, rng):
    x = rng.normal(mu, sigma)
    y = mu + sigma * rng.standard_normal(mu.size)
    return (x * x * y).sum() + rng.uniform(0.0, mu).sum()


def buffer_drawn_into_again_and_again(x, rng, n):
    noise = np.empty(x.size)
    for _ in range(n):
        rng.standard_normal(out=noise)
        noise *= x
        x += 0.1 * np.sin(noise)
        rng.shuffle(x)
    return (x * x).sum()


def until_a_draw_says_so(x, rng, n):
    v = 0.0
    while rng.random() < 0.9 and n > 0:
        i = rng.integers(x.size)
        x[i] *= x[(i + 1) % x.size]
        n -= 1
        v += x[i] * rng.exponential(x[0] ** 2)
    return v


def rows_in_another_order(x, rng):
    rng.shuffle(x)
    y = rng.permutation(x) * x
    return (y * rng.uniform(-1.0, 1.0, y.shape)).sum() + y[rng.integers(len(x)), 0]


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


X = np.array([0.3, 0.5, 0.8])
CASES: list[tuple[Function, tuple[Any, ...]]] = [
    (draws_one_by_one, (0.3, 1.2, rng(), 10)),
    (parameters_that_are_arrays, (X, X + 1, rng())),
    (buffer_drawn_into_again_and_again, (X, rng(), 5)),
    (until_a_draw_says_so, (X, rng(2), 12)),
    (rows_in_another_order, (np.arange(8.0).reshape(4, 2), rng())),
]


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_gradient(function: Function, arguments: tuple[Any, ...]) -> None:
    mutad.check_gradient(mutad.compile(function, grad=True), *arguments)


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_a_gradient_call_advances_the_stream_as_the_function_does(
    function: Function, arguments: tuple[Any, ...]
) -> None:
    f = mutad.compile(function, grad=True)

    def after(call: Callable[..., Any]) -> tuple[Any, str]:
        own = copy.deepcopy(arguments)
        value = call(*own)
        found = next(a for a in own if isinstance(a, np.random.Generator))
        return value, repr(found.bit_generator.state)

    want, state = after(function)
    (value, _), of_joint = after(f.value_and_grad)
    assert value == pytest.approx(want, rel=1e-12)
    (value, back), of_split = after(f.vjp)
    assert value == pytest.approx(want, rel=1e-12)
    back(1.0)
    assert state == of_joint == of_split


NOISE = rng(5)


def noisy(x):
    return (x * NOISE.standard_normal(x.size)).sum()


def test_a_generator_from_outside_is_inert() -> None:
    f = mutad.compile(noisy, grad=True)
    mutad.check_gradient(f, X)
    state = copy.deepcopy(NOISE)
    g = f.grad(X)
    assert (g == state.standard_normal(3)).all()
    assert state.bit_generator.state == NOISE.bit_generator.state


def test_nothing_is_differentiated_with_respect_to_a_generator() -> None:
    f = mutad.compile(draws_one_by_one, grad=True)
    with pytest.raises(TypeError):
        f.grad(0.3, 1.2, rng(), 3, wrt="rng")


@dataclass
class Walker:
    x: np.ndarray
    pace: float
    rng: np.random.Generator

    def step(self):
        self.x += self.pace * self.rng.standard_normal(self.x.size)


def walk(walker, n):
    for _ in range(n):
        walker.step()
        walker.pace = walker.pace * 0.5
    return (walker.x**2).sum()


def test_a_generator_in_an_object() -> None:
    f = mutad.compile(walk, grad=True)
    mine, theirs = Walker(X.copy(), 2.0, rng()), Walker(X.copy(), 2.0, rng())
    assert f(mine, 3) == pytest.approx(walk(theirs, 3))
    assert (mine.x == theirs.x).all()
    assert mine.rng.random() == theirs.rng.random()
    mutad.check_gradient(f, Walker(X.copy(), 2.0, rng()), 3)
