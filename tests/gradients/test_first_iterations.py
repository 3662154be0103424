"""Gradients of loops in which a name is something else at first."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[5] N", N="1 4", saved=lambda u, n: 8 * (n - 1) * u.size)
def a_step_after_a_boundary_condition(u, n):
    for _ in range(n):
        u[0] = 0.5
        u = u + 0.25 * u * u
    return (u * u).sum()


@on("f64[6] 3", saved=0)
def a_linear_step_saves_nothing(u, n):
    for i in range(n):
        u[0] = i
        u[-1] = u[-2]
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u = 0.5 * u
    return u.sum()


@on("f64[4] f64[4] 4")
def two_that_change_places(u, v, n):
    for i in range(n):
        u[0] = i * v[1]
        u, v = v, u * np.sin(v)
    return u.sum() + (v * v).sum()


@on("f64[4] N", N="0 5")
def on_a_branch(u, n):
    for i in range(n):
        u[0] = np.sin(u[1])
        if i % 3 == 1:
            u = u * u
        u[1] *= 1.5
    return (u * u).sum()


@on("f64[4] 2 N", N="0 2")
def in_an_inner_loop(u, m, n):
    for i in range(m):
        for k in range(n):
            u[k] *= u[k + 1]
            u = np.sin(u) + i
        u[0] += 1.0
    return u.sum()


@on("f64[3,2] f64[2]")
def a_sum_that_begins_as_zero(rows, w):
    total = 0
    for row in rows:
        total = total * w + row * row
    return total.sum()


TestGradients = gradient_tests(programs, tangents=True)
