"""Gradients within the least budget have the bits of those without, for each level of x86-64.

What differs between a loop and one of its steps: which numbers are left behind vectors, what is saved and
what is computed again, and how many iterations go side by side.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budget_programs import compiled, least_of, outcome

from mutad.runtime.target import VARIABLE, runnable

Array = np.ndarray
CHANCE = np.random.default_rng(7)
HERE = ("", *runnable()[1:])
"""The CPU at hand, and the levels that it has."""


def sine_chain(x: Array, a: float, b: float) -> float:
    """One number handed on, and two that are summed over all iterations."""
    state, total = 0.5, 0.0
    for i in range(x.size):
        state = a * math.sin(state) + b * math.cos(x[i] * state)
        total += state * x[i]
    return total


def cells(inputs: Array, weights: Array) -> float:
    """Functions of as many numbers as are no multiple of a vector; scalar loops, with a sum in order."""
    h, total = np.zeros(inputs.shape[1]), 0.0
    for t in range(inputs.shape[0]):
        for i in range(h.size):
            h[i] = math.tanh(weights[0, i] * inputs[t, i] + weights[1, i] * h[i]) * math.exp(
                -h[i] * h[i]
            )
            total += h[i] * h[i]
    return total


def gates(inputs: Array, weights: Array) -> float:
    """The same in whole arrays."""
    h, total = np.zeros(inputs.shape[1]), 0.0
    for t in range(inputs.shape[0]):
        h = np.tanh(weights[0] * inputs[t] + weights[1] * h) * np.exp(-h * h)
        total += (h * h).sum()
    return total


def shares(x: Array, w: Array, steps: int) -> float:
    """A sum of rows beside an exponential, which a step has saved and the whole gradient computes again."""
    for _ in range(steps):
        score = x @ w
        e = np.exp(score - np.max(score, axis=1, keepdims=True))
        x = e / np.sum(e, axis=1, keepdims=True) @ w + 0.1 * x
    return (x * x).sum()


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[str, ...]]] = [
    (sine_chain, (CHANCE.uniform(0.5, 1.5, 300), 0.8, 0.3), ("x", "a", "b")),
    (cells, (CHANCE.normal(size=(12, 19)), CHANCE.normal(size=(2, 19))), ("weights",)),
    (gates, (CHANCE.normal(size=(12, 19)), CHANCE.normal(size=(2, 19))), ("weights",)),
    (shares, (CHANCE.normal(size=(9, 70)), CHANCE.normal(size=(70, 70)) / 9, 3), ("x", "w")),
]


@pytest.mark.parametrize("cpu", HERE)
@pytest.mark.parametrize(
    ("function", "arguments", "wrt"), PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_vector_code_of_steps_has_the_bits_of_the_loop(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    wrt: tuple[str, ...],
    cpu: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, cpu)
    _, found = least_of(function, arguments, wrt, opt=3)
    assert found == outcome(compiled(function, None, 3), arguments, wrt)


sys.path.append(str(Path(__file__).parents[2]))
CATALOGUE = importlib.import_module("benchmarks.programs.catalogue").PROGRAMS
SIZES = {"lstm": 67, "lstm_loops": 67, "attention": 64, "hdiff": 32}
"""Programs that are timed, at sizes at which a last bit, or the sign of a zero, would tell."""


@pytest.mark.parametrize("name", SIZES)
def test_so_has_that_of_programs_that_are_timed(name: str) -> None:
    (program,) = (one for one in CATALOGUE if one.name == name)
    given = program.make(SIZES[name])
    _, found = least_of(program.function, given, program.wrt, opt=3)
    assert found == outcome(compiled(program.function, None, 3), given, program.wrt)


def test_a_step_of_a_loop_of_numbers_is_a_block() -> None:
    given = CHANCE.uniform(0.5, 1.5, 1000), 0.8, 0.3
    function = compiled(sine_chain, 1)
    least = function.explain(*given).budget.least
    (loop,) = compiled(sine_chain, least).explain(*given).budget.loops
    assert (loop.steps, loop.executed) == (8, 36)
