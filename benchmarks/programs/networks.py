"""Networks as they are written by hand in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .program import Program


def lstm(inputs, weights, bias):
    """A recurrent layer whose gates look at their own cell alone, in slices.

    weights[g, 0] is of the input, weights[g, 1] of the state; g: forget, input, output, candidate.
    """
    steps, cells = inputs.shape
    h = np.zeros(cells)
    c = np.zeros(cells)
    total = 0.0
    for t in range(steps):
        x = inputs[t]
        forget = 1.0 / (1.0 + np.exp(-(weights[0, 0] * x + weights[0, 1] * h + bias[0])))
        enter = 1.0 / (1.0 + np.exp(-(weights[1, 0] * x + weights[1, 1] * h + bias[1])))
        leave = 1.0 / (1.0 + np.exp(-(weights[2, 0] * x + weights[2, 1] * h + bias[2])))
        new = np.tanh(weights[3, 0] * x + weights[3, 1] * h + bias[3])
        c = forget * c + enter * new
        h = leave * np.tanh(c)
        total += (h * h).sum()
    return total


def lstm_loops(inputs, weights, bias):
    """The same in scalar loops."""
    steps, cells = inputs.shape
    h = np.zeros(cells)
    c = np.zeros(cells)
    total = 0.0
    for t in range(steps):
        for i in range(cells):
            x = inputs[t, i]
            forget = 1.0 / (
                1.0 + math.exp(-(weights[0, 0, i] * x + weights[0, 1, i] * h[i] + bias[0, i]))
            )
            enter = 1.0 / (
                1.0 + math.exp(-(weights[1, 0, i] * x + weights[1, 1, i] * h[i] + bias[1, i]))
            )
            leave = 1.0 / (
                1.0 + math.exp(-(weights[2, 0, i] * x + weights[2, 1, i] * h[i] + bias[2, i]))
            )
            new = math.tanh(weights[3, 0, i] * x + weights[3, 1, i] * h[i] + bias[3, i])
            c[i] = forget * c[i] + enter * new
            h[i] = leave * math.tanh(c[i])
            total += h[i] * h[i]
    return total


def _lstm(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    steps = 50 if n > 20 else 4
    weights = 0.5 * r.normal(size=(4, 2, n))
    return (r.normal(size=(steps, n)), weights, 0.1 * r.normal(size=(4, n)))


NETWORKS = (
    Program(lstm, _lstm, (64, 1024, 8192, 32_768), 3, ("weights", "bias"), by_hand="lstm"),
    Program(
        lstm_loops,
        _lstm,
        (64, 1024, 8192, 32_768),
        3,
        ("weights", "bias"),
        loops=True,
        by_hand="lstm",
    ),
)
