"""Loops that hand on old elements in scalars are maps before the plan is made (`raise-recurrences`)."""

import numpy as np
import pytest
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

import mutad

programs = GradientPrograms()
on = programs.on


@on("f64[N] S", N="20 1 2 3 4", S="3 1 0")
@on("f32[20] 2", relative=1e-2)
def burgers(x, steps):
    u = x.copy()
    for _ in range(steps):
        left = u[0]
        for i in range(1, u.size - 1):
            mid = u[i]
            u[i] = mid + 0.1 * (u[i + 1] - 2.0 * mid + left) - 0.05 * mid * (u[i + 1] - left)
            left = mid
    return (u * u).sum()


@on("f64[N] 3", N="20 1 2 3")
@on("f64[20]R 3")
@on("f64[20]S 3")
def advection(x, steps):
    """One neighbour, up to the end of the array."""
    u = x.copy()
    for _ in range(steps):
        left = u[0]
        for i in range(1, u.size):
            mid = u[i]
            u[i] = mid - 0.1 * mid * (mid - left)
            left = mid
    return (u * u).sum()


@on("f64[N] 3", N="20 1 2 3 4")
def downwards(x, steps):
    u = x.copy()
    for _ in range(steps):
        right = u[-1]
        for i in range(u.size - 2, 0, -1):
            mid = u[i]
            u[i] = mid + 0.1 * mid * (u[i - 1] - right)
            right = mid
    return (u * u).sum()


@on("f64[N] 3", N="20 2 3 4 5 6")
def two_scalars(x, steps):
    u = x.copy()
    for _ in range(steps):
        further = u[0]
        left = u[1]
        for i in range(2, u.size - 2):
            mid = u[i]
            u[i] = mid - 0.1 * mid * (left - further) + 0.05 * u[i + 1] * u[i + 2]
            further = left
            left = mid
    return (u * u).sum()


@on("f64[N] 3", N="20 0 1 2")
def without_scalars(x, steps):
    u = x.copy()
    for _ in range(steps):
        for i in range(u.size - 1):
            u[i] = u[i] - 0.1 * u[i] * u[i + 1]
    return (u * u).sum()


@on("f64[N] 3", N="20 0 1 2")
def without_scalars_downwards(x, steps):
    u = x.copy()
    for _ in range(steps):
        for i in range(u.size - 1, 0, -1):
            u[i] = u[i] - 0.1 * u[i] * u[i - 1]
    return (u * u).sum()


@on("f64[N] 3", N="20 2 3")
def edges_set_behind(x, steps):
    u = x.copy()
    n = u.size
    for _ in range(steps):
        left = u[0]
        for i in range(1, n - 1):
            mid = u[i]
            u[i] = mid - 0.1 * mid * (u[i + 1] - left)
            left = mid
        u[0] = u[1] * u[1]
        u[n - 1] = 0.5 * u[n - 2]
    return (u * u).sum()


@on("f64[N] 3", N="20 3")
def copied_back(x, steps):
    u = x.copy()
    for _ in range(steps):
        left = u[0]
        for i in range(1, u.size - 1):
            mid = u[i]
            u[i] = mid - 0.1 * mid * (u[i + 1] - left)
            left = mid
    x[:] = u
    return u


RAISED = [one.__name__ for one in (
    burgers, advection, downwards, two_scalars, without_scalars, without_scalars_downwards,
    edges_set_behind, copied_back,
)]  # fmt: skip


# What stays a loop.


@on("f64[N] 3", N="20 1 2 3")
def around_a_circle(x, steps):
    u = x.copy()
    n = u.size
    for _ in range(steps):
        left = u[n - 1]
        for i in range(n - 1):
            mid = u[i]
            u[i] = mid - 0.1 * mid * (mid - left)
            left = mid
    return (u * u).sum()


@on("f64[N] 3", N="20 2 3")
def fluxes(x, steps):
    """What is computed is handed on."""
    u = x.copy()
    for _ in range(steps):
        inflow = 0.1 * u[0] * u[0]
        for i in range(1, u.size - 1):
            outflow = 0.1 * u[i] * u[i]
            u[i] = u[i] - (outflow - inflow)
            inflow = outflow
    return (u * u).sum()


@on("f64[N] 3", N="20 2 3")
def new_neighbours(x, steps):
    u = x.copy()
    for _ in range(steps):
        left = u[0]
        for i in range(1, u.size - 1):
            left = u[i] - 0.1 * u[i] * (u[i + 1] - left)
            u[i] = left
    return (u * u).sum()


@on("f64[N] 3", N="20 2 3")
def an_edge_set_in_between(x, steps):
    u = x.copy()
    for _ in range(steps):
        left = u[0]
        u[0] = 0.5 * left * left
        for i in range(1, u.size - 1):
            mid = u[i]
            u[i] = mid - 0.1 * mid * (u[i + 1] - left)
            left = mid
    return (u * u).sum()


@on("f64[N] 3", N="20 2 3")
def read_in_the_step(x, steps):
    u = x.copy()
    total = 0.0
    for _ in range(steps):
        left = u[0]
        for i in range(1, u.size - 1):
            mid = u[i]
            u[i] = mid - 0.1 * mid * (u[i + 1] - left)
            left = mid
        total += left * left
    return (u * u).sum() + total


@on("f64[N] S", N="20 2 3", S="3 0")
def read_at_the_end(x, steps):
    u = x.copy()
    left = 0.5
    for _ in range(steps):
        left = u[0]
        for i in range(1, u.size - 1):
            mid = u[i]
            u[i] = mid - 0.1 * mid * (u[i + 1] - left)
            left = mid
    return (u * u).sum() + left * left


@on("f64[N] 3", N="20 2 3")
def read_by_the_next_step(x, steps):
    u = x.copy()
    left = 0.5
    for _ in range(steps):
        u_scale = 1.0 + 0.1 * left
        left = u[0]
        for i in range(1, u.size - 1):
            mid = u[i]
            u[i] = mid - 0.1 * u_scale * mid * (u[i + 1] - left)
            left = mid
    return (u * u).sum()


@on("f64[N] f64[N] 3", N="20 2 3")
def coefficients(x, c, steps):
    """Cotangents go to another array, too."""
    u = x.copy()
    for _ in range(steps):
        left = u[0]
        for i in range(1, u.size - 1):
            mid = u[i]
            u[i] = mid - 0.1 * c[i] * mid * (u[i + 1] - left)
            left = mid
    return (u * u).sum()


@on("f64[N] 3", N="20 2 3")
def of_the_caller(x, steps):
    for _ in range(steps):
        left = x[0]
        for i in range(1, x.size - 1):
            mid = x[i]
            x[i] = mid - 0.1 * mid * (x[i + 1] - left)
            left = mid


TestGradients = gradient_tests(programs)


@pytest.mark.parametrize("program", programs.first, ids=str)
def test_whose_iterations_are_one_map(program):
    """The time loop has no loop in it, but in the copy that raises."""
    function = program.function
    compiled = mutad.compile(function, grad=True, cache=False)
    plan = compiled.inspect("plan", *program.arguments(), wrt=program.active())
    body = plan[plan.rindex("array.loop %_") :]
    assert (body.count("array.loop") == 1) is (function.__name__ in RAISED)


def test_keeps_versions_on_the_tape():
    """Beside them there are the shadow and one array that takes turns with it."""
    x, steps = np.random.default_rng(0).normal(size=4_000), 8
    saved = mutad.compile(burgers, grad=True).explain(x, steps).saved_bytes
    assert saved == x.nbytes * steps
