"""Assignments to whole arrays that read all of them: arrays are exchanged, and nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad


def shortest_paths(lengths, steps):
    d = lengths.copy()
    for k in range(steps):
        d[:, :] = np.minimum(d, d[:, k : k + 1] + d[k : k + 1, :])
    return (d * d).sum()


def goes_on_after_it(lengths, steps):
    """What is filled before the loop, read behind it through views, and stored to again."""
    d = np.ones_like(lengths)
    d[1:, :] = lengths[1:, :]
    for k in range(steps):
        d[:, :] = d[:, ::-1] * 0.5 + d[k : k + 1, :]
    last = d[1:, 1:]
    total = last.sum() + d[0, 0]
    d[0] = 3.0
    return total + (d * d).sum()


def leaves_early(lengths, steps):
    d = lengths.copy()
    for k in range(steps):
        if lengths[k, 0] > 0.9:
            break
        d[:, :] = np.minimum(d, d[:, k : k + 1] + d[k : k + 1, :])
    return (d * d).sum()


def two_loops(lengths, steps):
    d = lengths.copy()
    for _ in range(2):
        for k in range(steps):
            d[:, :] = np.minimum(d, 0.9 * d[:, k : k + 1] + d[k : k + 1, :])
        d += 0.5
    return (d * d).sum()


def returned(lengths, steps):
    d = lengths.copy()
    for k in range(steps):
        d[:, :] = np.minimum(d, d[:, k : k + 1] + d[k : k + 1, :])
    return d


PROGRAMS = [shortest_paths, goes_on_after_it, leaves_early, two_loops]


@pytest.mark.parametrize("f", [*PROGRAMS, returned])
def test_values(f: Callable[..., Any]):
    compiled = mutad.compile(f)
    for seed, (n, steps) in enumerate(((5, 0), (5, 1), (6, 2), (7, 7), (1, 1))):
        lengths = np.random.default_rng(seed).random((n, n))
        np.testing.assert_allclose(compiled(lengths, steps), f(lengths, steps), rtol=1e-14)


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients_are_those_of_copies(f: Callable[..., Any]):
    """Saved or not; and those of differences."""
    plans = [mutad.compile(f, grad=True), mutad.compile(f, grad=True, saves="all")]
    for steps in (0, 1, 4):
        lengths = np.random.default_rng(steps).random((5, 5))
        one, other = (p.grad(lengths, steps) for p in plans)
        np.testing.assert_allclose(one, other, rtol=1e-13)
        h = 1e-6
        slope = (f(lengths + h * lengths, steps) - f(lengths - h * lengths, steps)) / (2 * h)
        np.testing.assert_allclose((one * lengths).sum(), slope, rtol=1e-6)


def test_there_is_no_copy():
    text = mutad.compile(shortest_paths).inspect("optimize", np.ones((3, 3)), 2)
    assert "array.yield %temporary" in text
