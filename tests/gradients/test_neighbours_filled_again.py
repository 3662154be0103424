"""Variables that hold what the iteration before has computed, in arrays that are filled again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutad


def twice_after(v, w, n):
    """`w` is filled again twice from its saved contents: each time `left` is had in a loop of its own."""
    for _ in range(n):
        left = w[0]
        for q in range(1, w.size):
            here = w[q]
            w[q] = 0.5 * here * left + 0.2
            left = here
        w *= w * v
        w[::2] += 0.1 * w[::2] * v[::2]
    return (w * w).sum()


def in_between(v, w, n):
    for _ in range(n):
        left = w[0]
        for q in range(1, w.size):
            here = w[q]
            w[q] = 0.5 * here * left + 0.2
            left = here
        t = w * v
        w += 0.1 * t * t
        w[::2] += 0.1 * w[::2] * v[::2]
    return (w * w).sum()


@pytest.mark.parametrize("n", [1, 6])
@pytest.mark.parametrize("program", [twice_after, in_between])
def test_each_loop_has_its_own_neighbour(program: Any, n: int) -> None:
    w, v = np.random.default_rng(0).uniform(0.2, 0.9, (2, 6))
    found, wanted = (
        mutad.compile(program, grad=True, saves=saves).grad(v, w.copy(), n, wrt=("v", "w"))
        for saves in ("minimal", "all")
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
