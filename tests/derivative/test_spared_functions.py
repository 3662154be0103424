"""A function of elements is spared by a save of its result, where that is derived of it and stays in the cache."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mutad import check_gradient, compile

N, STEPS = 11, 5


def gated(x, w, steps):
    h = np.zeros_like(x)
    for _ in range(steps):
        gate = 1.0 / (1.0 + np.exp(-w * (x + h)))
        h = gate * np.tanh(h + w) + x
    return (h * h).sum()


def gated_in_loops(x, w, steps):
    h = np.zeros(x.size)
    total = 0.0
    for _ in range(steps):
        for i in range(x.size):
            gate = 1.0 / (1.0 + math.exp(-w[i] * (x[i] + h[i])))
            h[i] = gate * math.tanh(h[i] + w[i]) + x[i]
            total += h[i] * h[i]
    return total


def of_what_survives(x, w, steps):
    total = 0.0
    for t in range(steps):
        total += (np.exp(-x * w * t) * x).sum()
    return total


def of_grids(x, w, steps):
    for _ in range(steps):
        x[1:-1] += 0.1 * np.exp(-(x[1:-1] ** 2)) * x[1:-1] * w[1:-1]
    return (x * x).sum()


def in_a_chain(x, w, steps):
    state, total = 0.5, 0.0
    for i in range(x.size):
        state = math.exp(-state * x[i]) * state + w[i] * steps
        total += state
    return total


def sines(x, w, steps):
    for _ in range(steps):
        x[:] = np.sin(x) * np.cos(x) + w
    return (x * x).sum()


def of_a_number_a_step(x, w, steps):
    rate, total = w[0], 0.0
    for _ in range(steps):
        rate = 0.9 * rate + 0.1 * rate * rate
        total += np.exp(-x * rate).sum()
    return total


@dataclass(frozen=True)
class Case:
    function: Callable[..., Any]
    saved: int
    """Numbers, for each element."""
    fewest: int

    def __str__(self) -> str:
        return self.function.__name__


CASES = (
    # The state, `exp` and `tanh`.
    Case(gated, 3 * STEPS, STEPS),
    Case(gated_in_loops, 3 * STEPS, STEPS),
    Case(of_what_survives, 0, 0),
    Case(in_a_chain, 1, 1),
    Case(sines, STEPS, STEPS),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_functions_are_spared_where_that_is_faster(case: Case) -> None:
    x, w = np.random.default_rng(0).random((2, N))
    made = compile(case.function, grad=True, cache=False, opt=1)
    assert made.explain(x, w, STEPS, wrt=(0, 1)).saved_bytes == 8 * N * case.saved
    fewest = compile(case.function, grad=True, cache=False, opt=1, saves="fewest")
    assert fewest.explain(x, w, STEPS, wrt=(0, 1)).saved_bytes == 8 * N * case.fewest
    tight = compile(case.function, grad=True, cache=False, opt=1, memory="1MB")
    assert tight.explain(x, w, STEPS, wrt=(0, 1)).saved_bytes == 8 * N * case.fewest
    check_gradient(made, x.copy(), w, STEPS, wrt=(0, 1))
    value, gradients = made.value_and_grad(x.copy(), w, STEPS, wrt=(0, 1))
    within, others = tight.value_and_grad(x.copy(), w, STEPS, wrt=(0, 1))
    assert within == value
    for one, other in zip(gradients, others, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


def test_many_results_are_computed_again() -> None:
    """A grid a step: twice of that would not stay in the cache."""
    x, w = np.random.default_rng(0).random((2, 6, 7))
    made = compile(of_grids, grad=True, cache=False, opt=1)
    assert made.explain(x, w, STEPS, wrt=(0, 1)).saved_bytes == 8 * STEPS * x[1:-1].size
    check_gradient(made, x, w, STEPS, wrt=(0, 1))


def test_no_tape_is_longer_for_it() -> None:
    """A number a step is saved, and the functions of n elements are computed again."""
    x, w = np.random.default_rng(0).random((2, N))
    made = compile(of_a_number_a_step, grad=True, cache=False, opt=1)
    assert made.explain(x, w, STEPS, wrt=(0, 1)).saved_bytes <= 8 * 2 * (STEPS + 1)
    check_gradient(made, x, w, STEPS, wrt=(0, 1))


def test_on_a_device_memory_is_slower_than_functions() -> None:
    x, w = np.random.default_rng(0).random((2, N))
    made = compile(gated, grad=True, cache=False, opt=1, target="cuda:host")
    assert made.explain(x, w, STEPS, wrt=(0, 1)).saved_bytes == 8 * STEPS * N
