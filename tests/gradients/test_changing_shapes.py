"""Gradients of loops that change the shapes of their arrays."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[5] N", N="0 4")
def appended_to(x, n):
    a = x[:1] * x[1]
    for i in range(n):
        a = np.append(a, a[-1] * np.sin(x[i]))
    return (a * a).sum()


@on("f64[7]")
def halved_until_one_is_left(x):
    s = 0.0
    while x.size > 1:
        x = x[: x.size // 2 * 2 : 2] * x[1::2]
        s += x[0]
    return s * x[0]


@on("f64[8,4] 2")
def coarser_and_coarser_grids(u, n):
    s = 0.0
    for _ in range(n):
        u[0] *= u[1]
        u = u[::2, ::2] * u[1::2, 1::2]
        s += (u * u).sum()
    return s


@on("f64[4] 2 2")
def in_an_inner_loop(x, m, n):
    total = 0.0
    for i in range(m):
        row = x[:1] * x[i]
        for _ in range(n):
            row = np.concatenate([row, np.sin(row)])
        total += (row * row).sum()
        x = x[x > 0.0] * 0.5
    return total + x.sum()


TestGradients = gradient_tests(programs, tangents=True)
