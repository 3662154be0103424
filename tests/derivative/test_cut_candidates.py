"""Programs that need the same number several times, by several names: it is saved once, or not at all.

Each with the bytes that it has to save. Gradients are held to differences, and to a plan that saves all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mutad import check_gradient, compile

RNG = np.random.default_rng(6)
N, STEPS = 9, 3
U = np.sin(np.arange(float(N)))
LOWER = RNG.random((N, N)) / N


def advected(u, k, steps):
    for _ in range(steps):
        left = u[0]
        for i in range(1, u.size - 1):
            here = u[i]
            u[i] = here - k * here * (here - left) + k * (u[i + 1] - 2.0 * here + left)
            left = here
    return (u**2).sum()


def advected_both_ways(u, k, steps):
    for _ in range(steps):
        left = u[0]
        for i in range(1, u.size - 1):
            here = u[i]
            u[i] = here - k * here * (u[i + 1] - left)
            left = here
    return (u**2).sum()


def two_iterations_ago(u, k, steps):
    for _ in range(steps):
        before, last = u[0], u[1]
        for i in range(2, u.size):
            here = u[i]
            u[i] = here - k * here * last * before
            before, last = last, here
    return (u**2).sum()


def downwards(u, k, steps):
    for _ in range(steps):
        right = u[-1]
        for i in range(u.size - 2, -1, -1):
            here = u[i]
            u[i] = here - k * np.exp(here) * right
            right = here
    return (u**2).sum()


def neighbours_of_what_survives(u, k, steps):
    s, last = 0.0, k
    for i in range(u.size):
        s += u[i] * last * np.sin(last)
        last = u[i] * k
    return s


def of_the_sweep_before(u, k, steps):
    last = 1.0
    for _ in range(steps):
        first = u[0]
        u *= np.cos(k * last)
        u[0] = first * first * last
        last = first
    return (u**2).sum()


def computed_of_itself(u, k, steps):
    s, last = 0.0, 0.5
    for i in range(u.size):
        s += u[i] * last
        last = np.sin(last) * u[i]
    return s


def handed_round(u, k, steps):
    a, b = k, 0.5
    for i in range(u.size):
        a, b = b, np.sin(a) * u[i]
    return a * b


def kept_at_times(u, k, steps):
    for _ in range(steps):
        left = u[0]
        for i in range(1, u.size):
            here = u[i]
            u[i] = here - k * here * left
            if i % 3 > 0:
                left = here
    return (u**2).sum()


def until_it_is_small(u, k, steps):
    for _ in range(steps):
        left = u[0]
        for i in range(1, u.size):
            if abs(u[i]) < 0.15:
                break
            here = u[i]
            u[i] = here - k * here * left
            left = here
    return (u**2).sum()


def triangular_product(b, a, steps):
    n = b.shape[0]
    for i in range(n):
        for j in range(n):
            for k in range(i + 1, n):
                b[i, j] += a[k, i] * b[k, j]
            b[i, j] *= 1.5
    return (b * b).sum()


def repeated_triangular_product(b, a, steps):
    n = b.shape[0]
    for _ in range(steps):
        for i in range(n):
            for k in range(i + 1, n):
                for j in range(n):
                    b[i, j] += a[k, i] * np.sin(b[k, j])
        b[-1] *= b[0]
    return (b * b).sum()


def planes(b, a, steps):
    n = b.shape[0]
    c = np.zeros_like(b)
    for k in range(n):
        if k == 0:
            c[0] = np.sin(b[0])
        elif k < n - 1:
            below = -0.25 * a[k]
            c[k] = b[k] / (2.0 - below * c[k - 1])
        else:
            c[k] = b[k] * c[k - 1] * c[k - 1]
    return (c * c).sum()


def recursion_of_a_quotient(r, a, steps):
    alpha, beta, s = 0.3, 1.0, 0.0
    for k in range(r.size):
        beta *= 1.0 - 0.1 * alpha * alpha
        alpha = -(r[k] + (a[k] * r[k] * r[k]).sum()) / beta
        s += alpha
    return s


@dataclass(frozen=True)
class Program:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    saved: int
    wrt: tuple[int, ...] = (0,)

    def __str__(self) -> str:
        return self.function.__name__


STATE = (U, 0.1, STEPS)
PROGRAMS = [
    # What is handed on was saved one iteration ago.
    Program(advected, STATE, 8 * STEPS * (N - 2)),
    Program(advected_both_ways, STATE, 8 * STEPS * (N - 2)),
    Program(two_iterations_ago, STATE, 8 * STEPS * (N - 2)),
    Program(downwards, STATE, 8 * STEPS * (N - 1)),
    Program(neighbours_of_what_survives, STATE, 0, (0, 1)),
    Program(of_the_sweep_before, STATE, 8 * STEPS * N),
    # It is not where it is had by way of itself, at times only, or where tapes grow.
    Program(computed_of_itself, STATE, 8 * N),
    Program(handed_round, STATE, 8 * N),
    Program(kept_at_times, STATE, 16 * STEPS * (N - 1)),
    Program(until_it_is_small, STATE, 8 * STEPS + 16 * STEPS * (N - 1)),
    # A quotient that the next iteration squares: its sum is not saved beside it.
    Program(recursion_of_a_quotient, (U, LOWER, 1), 16 * N),
    # Rows k and k - 1 are apart where k is not 0; what a branch computes for itself is computed again.
    Program(planes, (LOWER + 0.5, LOWER, 1), 0, (0, 1)),
    # One copy of what the array held serves all reads, of other rows than those that are stored to meanwhile.
    Program(triangular_product, (LOWER + 0.5, LOWER, 1), 8 * N * N, (0, 1)),
    Program(repeated_triangular_product, (LOWER + 0.5, LOWER, STEPS), 8 * STEPS * (N + 1) * N),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_equal_values_are_saved_once(program: Program) -> None:
    made = compile(program.function, grad=True, cache=False, opt=1)
    plan = made.explain(*program.arguments, wrt=program.wrt)
    assert plan.saved_bytes == program.saved, str(plan)
    check_gradient(made, *copy.deepcopy(program.arguments), wrt=program.wrt)
    saving_all = compile(program.function, grad=True, cache=False, opt=1, saves="all")
    pairs = zip(
        made.value_and_grad(*copy.deepcopy(program.arguments), wrt=program.wrt)[1],
        saving_all.value_and_grad(*copy.deepcopy(program.arguments), wrt=program.wrt)[1],
        strict=True,
    )
    for gradient, reference in pairs:
        np.testing.assert_allclose(gradient, reference, rtol=1e-11, atol=1e-12)
