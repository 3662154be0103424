"""Programs whose temporaries, scratch arrays and helpers' results are filled again instead of being saved.

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

RNG = np.random.default_rng(0)
N, STEPS = 11, 3
MATRIX = RNG.random((N, N)) / N
MIXTURE = (RNG.random((7, 3)), RNG.random((4, 3)), 0.1 * RNG.random((4, 3)), RNG.random(4))


def four_differences(image, k, steps):
    for _ in range(steps):
        north = np.zeros_like(image)
        south = np.zeros_like(image)
        east = np.zeros_like(image)
        west = np.zeros_like(image)
        north[1:, :] = image[:-1, :] - image[1:, :]
        south[:-1, :] = image[1:, :] - image[:-1, :]
        east[:, :-1] = image[:, 1:] - image[:, :-1]
        west[:, 1:] = image[:, :-1] - image[:, 1:]
        flux = np.exp(-((north / k) ** 2)) * north + np.exp(-((south / k) ** 2)) * south
        flux += np.exp(-((east / k) ** 2)) * east + np.exp(-((west / k) ** 2)) * west
        image += 0.2 * flux
    return (image**2).sum()


def four_differences_in_scratch(image, k, steps):
    """The edges of the scratch arrays are 0 all along."""
    north, south = np.zeros_like(image), np.zeros_like(image)
    east, west = np.zeros_like(image), np.zeros_like(image)
    for _ in range(steps):
        north[1:, :] = image[:-1, :] - image[1:, :]
        south[:-1, :] = image[1:, :] - image[:-1, :]
        east[:, :-1] = image[:, 1:] - image[:, :-1]
        west[:, 1:] = image[:, :-1] - image[:, 1:]
        flux = np.exp(-((north / k) ** 2)) * north + np.exp(-((south / k) ** 2)) * south
        flux += np.exp(-((east / k) ** 2)) * east + np.exp(-((west / k) ** 2)) * west
        image += 0.2 * flux
    return (image**2).sum()


def scratch_with_an_edge(u, k, steps):
    """An interior and an edge are all of it."""
    left = np.empty_like(u)
    for _ in range(steps):
        left[1:] = u[:-1]
        left[0] = u[0]
        u *= 1.0 - k * left
    return (u**2).sum()


def edges_of_the_start(u, k, steps):
    """What the scratch array holds beside its interior was computed before the loops."""
    lap = 0.5 * u * u
    for _ in range(steps):
        for _ in range(2):
            lap[1:-1] = u[2:] - 2 * u[1:-1] + u[:-2]
            u += k * u * lap
        u *= 1.0 + 0.1 * lap
    return (u**2).sum() + (lap * u).sum()


def fluxes_by_a_loop(u, k, steps):
    flux = np.zeros(u.size + 1)
    for _ in range(steps):
        for i in range(1, u.size):
            flux[i] = 0.5 * (u[i] ** 2 + u[i - 1] ** 2)
        u -= k * (flux[1:] - flux[:-1]) ** 2
    return (u**2).sum()


def an_edge_that_changes(u, k, steps):
    """Nothing is had again: the scratch array, and `u`, are saved."""
    lap = 0.5 * u
    for s in range(steps):
        lap[1:-1] = u[2:] * u[:-2]
        u += k * u * lap
        if s > 0:
            lap[-1] = u[0]
    return (u**2).sum()


def an_interior_that_moves(u, k, steps):
    lap = 0.5 * u
    for s in range(steps):
        m = u.size - 1 - s % 2
        lap[1:m] = u[1:m] * u[: m - 1]
        u += k * u * lap
    return (u**2).sum()


def four_rolled_differences(image, k, steps):
    for _ in range(steps):
        north, south = np.roll(image, 1, 0) - image, np.roll(image, -1, 0) - image
        east, west = np.roll(image, -1, 1) - image, np.roll(image, 1, 1) - image
        flux = np.exp(-((north / k) ** 2)) * north + np.exp(-((south / k) ** 2)) * south
        image += 0.2 * (
            flux + np.exp(-((east / k) ** 2)) * east + np.exp(-((west / k) ** 2)) * west
        )
    return (image**2).sum()


def limited(a, b):
    return np.where(a * b > 0, np.where(np.abs(a) < np.abs(b), a, b), 0.0)


def fluxes_of_a_padded_state(u, c, steps):
    padded = np.empty(u.size + 4)
    from_left = np.empty(u.size + 1)
    from_right = np.empty(u.size + 1)
    flux = np.empty(u.size + 1)
    for _ in range(steps):
        padded[2:-2] = u
        padded[:2] = u[-2:]
        padded[-2:] = u[:2]
        slope = limited(padded[1:-1] - padded[:-2], padded[2:] - padded[1:-1])
        left = padded[1:-2] + 0.5 * slope[:-1]
        right = padded[2:-1] - 0.5 * slope[1:]
        from_left[:] = 0.5 * left * left
        from_right[:] = 0.5 * right * right
        speed = np.maximum(np.abs(left), np.abs(right))
        flux[:] = 0.5 * (from_left + from_right) - 0.5 * speed * (right - left)
        u -= c * (flux[1:] - flux[:-1])
    return (u**2).sum()


def rolled(u, k):
    out = np.empty_like(u)
    for i in range(u.size):
        out[i] = u[(i - k) % u.size]
    return out


def shifted(u, k):
    out = np.empty_like(u)
    out[k:] = u[:-k]
    out[:k] = u[-k:]
    return out


def rolled_by_a_loop(u, nu, steps):
    for _ in range(steps):
        left, right = rolled(u, 1), rolled(u, -1)
        u = u - 0.1 * u * (right - left) + nu * (right - 2 * u + left)
    return (u**2).sum()


def rolled_by_two_slices(u, nu, steps):
    for _ in range(steps):
        left, right = shifted(u, 1), shifted(u, u.size - 1)
        u = u - 0.1 * u * (right - left) + nu * (right - 2 * u + left)
    return (u**2).sum()


def mixture(points, means, scales, weights):
    total = 0.0
    for i in range(points.shape[0]):
        terms = np.empty(means.shape[0])
        for j in range(means.shape[0]):
            q = (points[i] - means[j]) * np.exp(-scales[j])
            terms[j] = weights[j] - scales[j].sum() - 0.5 * (q**2).sum()
        top = terms.max()
        total += top + np.log(np.exp(terms - top).sum())
    return total


def mixture_with_scratch(points, means, scales, weights):
    q, terms = np.empty(means.shape[1]), np.empty(means.shape[0])
    shares = np.empty(means.shape[0])
    total = 0.0
    for i in range(points.shape[0]):
        for j in range(means.shape[0]):
            q[:] = (points[i] - means[j]) * np.exp(-scales[j])
            terms[j] = weights[j] - scales[j].sum() - 0.5 * (q**2).sum()
        top = terms.max()
        shares[:] = np.exp(terms - top)
        total += top + np.log(shares.sum())
    return total


def sweep_between_products(u, a, steps):
    s = 0.0
    for _ in range(steps):
        y = a @ u
        s += (y * y).sum() + (u * y).sum()
        for i in range(1, u.size - 1):
            u[i] = 0.5 * (u[i - 1] * u[i] + u[i + 1])
        z = a @ u
        s += (z * z * u).sum()
    return s


def sweep_of_a_copied_state(u, a, steps):
    s = 0.0
    for _ in range(steps):
        old = u.copy()
        y = a @ old
        s += (y * y).sum() + (old * y).sum()
        for i in range(1, u.size - 1):
            u[i] = 0.5 * (u[i - 1] * u[i] + u[i + 1])
        z = a @ u
        s += (z * z * u).sum()
    return s


def conjugate_gradients(b, a, steps):
    x = np.zeros_like(b)
    r = b.copy()
    p = r.copy()
    rs = r @ r
    for _ in range(steps):
        product = a @ p
        alpha = rs / (p @ product)
        x += alpha * p
        r -= alpha * product
        new = r @ r
        p = r + (new / rs) * p
        rs = new
    return (x**2).sum()


def gates(v, m, h, n, current, dt, steps):
    trace = np.empty(steps)
    for i in range(steps):
        am = 0.1 * (v + 40.0) / (1.0 - np.exp(-(v + 40.0) / 10.0))
        ah = 0.07 * np.exp(-(v + 65.0) / 20.0)
        an = 0.01 * (v + 55.0) / (1.0 - np.exp(-(v + 55.0) / 10.0))
        m += dt * (am * (1 - m) - 4.0 * np.exp(-(v + 65.0) / 18.0) * m)
        h += dt * (ah * (1 - h) - h / (1.0 + np.exp(-(v + 35.0) / 10.0)))
        n += dt * (an * (1 - n) - 0.125 * np.exp(-(v + 65.0) / 80.0) * n)
        v += dt * (
            current - 120.0 * m**3 * h * (v - 50.0) - 36.0 * n**4 * (v + 77.0) - 0.3 * (v + 54.4)
        )
        trace[i] = v
    return (trace**2).sum()


def recorded(u, dt, steps):
    history = np.empty((steps, u.size))
    for t in range(steps):
        u[1:-1] += dt * u[1:-1] * (u[2:] - u[:-2])
        history[t] = u
    return (history**2).sum()


def recorded_in_blocks(u, dt, steps):
    history = np.empty((steps, 2, u.size))
    s = 0.0
    for t in range(steps):
        for k in range(2):
            u += dt * u * u
            s += u[0] * u[1]
            history[t, k] = u
    return (history**2).sum() + s


def recorded_and_overwritten(u, dt, steps):
    history = np.empty((2, u.size))
    for t in range(steps):
        u += dt * u * u
        history[t % 2] = u
    return (history**2).sum()


@dataclass(frozen=True)
class Program:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    saved: int
    wrt: tuple[int, ...] = (0,)

    def __str__(self) -> str:
        return self.function.__name__


IMAGE, STATE = RNG.random((9, 8)), np.sin(np.arange(20.0) / 3)
POINTS, TERMS = MIXTURE[0].shape[0], MIXTURE[1].shape[0]


def slopes(s):
    d = np.empty_like(s)
    d[0] = 10.0 * (s[1] - s[0])
    d[1] = s[0] * (28.0 - s[2]) - s[1]
    d[2] = s[0] * s[1] - 8.0 / 3.0 * s[2]
    return d


def components_of_a_state(s, dt, steps):
    """Rows of a state that several maps read, of two stages: the state is all."""
    for _ in range(steps):
        half = slopes(s + 0.5 * dt * slopes(s))
        s += dt * half
    return (s[2] ** 2).sum()


def columns_of_points(x, v, dt, steps):
    """One copy of the columns that all maps read."""
    for _ in range(steps):
        r = np.sqrt(x[:, 0] ** 2 + x[:, 1] ** 2 + 0.1)
        v[:, 0] -= dt * x[:, 0] / r
        v[:, 1] -= dt * x[:, 1] / r
        x += dt * v
    return (x * x).sum()


def a_gate_of_two_maps(w, steps):
    """The gate, read before and behind a product, is saved once; so are the product's tanh and the state."""
    h = np.ones(w.shape[0])
    for _ in range(steps):
        z = 1.0 / (1.0 + np.exp(-(w @ h)))
        c = np.tanh(w @ (z * h))
        h = (1.0 - z) * h + z * c
    return (h * h).sum()


PROGRAMS = [
    Program(components_of_a_state, (RNG.random((3, N)), 0.02, STEPS), 8 * STEPS * 3 * N, (0, 1)),
    Program(
        columns_of_points,
        (RNG.random((N, 2)), RNG.random((N, 2)), 0.1, STEPS),
        8 * STEPS * 2 * N,
        (0, 1),
    ),
    Program(a_gate_of_two_maps, (RNG.random((6, 6)) / 6, STEPS), 8 * STEPS * 3 * 6),
    Program(four_differences, (IMAGE, 0.5, STEPS), 8 * STEPS * IMAGE.size),
    Program(four_differences_in_scratch, (IMAGE, 0.5, STEPS), 8 * STEPS * IMAGE.size),
    Program(scratch_with_an_edge, (STATE, 0.1, STEPS), 8 * STEPS * STATE.size),
    # What the inner loop overwrites twice a step; `u` and what is made of `lap` behind it.
    Program(edges_of_the_start, (STATE, 0.1, STEPS), 8 * STEPS * 4 * STATE.size),
    Program(fluxes_by_a_loop, (STATE, 0.1, STEPS), 8 * STEPS * STATE.size),
    Program(an_edge_that_changes, (STATE, 0.1, STEPS), 16 * STEPS * STATE.size),
    Program(an_interior_that_moves, (STATE, 0.1, STEPS), 16 * STEPS * STATE.size),
    Program(four_rolled_differences, (IMAGE, 0.5, STEPS), 8 * STEPS * IMAGE.size),
    Program(fluxes_of_a_padded_state, (STATE, 0.1, STEPS), 8 * STEPS * (STATE.size + 4)),
    Program(rolled_by_a_loop, (STATE, 0.1, STEPS), 8 * STEPS * STATE.size),
    Program(rolled_by_two_slices, (STATE, 0.1, STEPS), 8 * STEPS * STATE.size),
    # The terms of each point, and the shares; their maximum and the sum, which are dear to compute. A block of
    # points releases its memory at its end, so those of the last point as well.
    Program(mixture, MIXTURE, (16 * TERMS + 16) * POINTS, (1, 2, 3)),
    Program(mixture_with_scratch, MIXTURE, (16 * TERMS + 16) * POINTS, (1, 2, 3)),
    # Two products, which are not computed again, and what the sweep overwrites.
    Program(sweep_between_products, (RNG.random(N), MATRIX, STEPS), 8 * STEPS * (2 * N + N - 2)),
    Program(sweep_of_a_copied_state, (RNG.random(N), MATRIX, STEPS), 8 * STEPS * (2 * N + N - 2)),
    # The gates of each step; what was recorded of v is read again.
    Program(gates, (-65.0, 0.05, 0.6, 0.32, 10.0, 0.01, 30), 24 * 30, (0, 4)),
    # What the array held at first, or in each step.
    Program(recorded, (STATE, 0.1, 4), 8 * STATE.size),
    Program(recorded_in_blocks, (STATE, 0.1, 4), 8 * 4 * STATE.size),
    Program(recorded_and_overwritten, (STATE, 0.1, 4), 8 * 4 * STATE.size),
    # The product, r and p of each step; p @ product and new, which the next step has as rs.
    Program(
        conjugate_gradients,
        (RNG.random(N), MATRIX @ MATRIX.T + np.eye(N), STEPS),
        24 * STEPS * N + 16 * (STEPS - 1),
    ),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_arrays_are_filled_again(program: Program) -> None:
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
