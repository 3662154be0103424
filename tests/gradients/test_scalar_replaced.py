"""Loops whose adjoint adds to two neighbours hand on one of them (`scalar-replace-carried`)."""

import math

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[N] 0.3 2", N="40 0 1 2 3 4")
@on("f32[40] 0.3 2", relative=1e-2)
def burgers(u, nu, steps):
    """The old left neighbour is carried."""
    n = u.size
    for _ in range(steps):
        left = u[0] if n else 0.0
        for i in range(1, n - 1):
            mid = u[i]
            u[i] = mid + (nu * (u[i + 1] - 2.0 * mid + left) - 0.05 * mid * (u[i + 1] - left))
            left = mid


@on("f64[N]", N="37 0 1 2")
def with_the_next(u):
    for i in range(u.size - 1):
        u[i] = 0.5 * u[i] * u[i] + 0.1 * u[i + 1]


@on("f64[N]", N="37 0 1 2")
def summed_in_order(u):
    total = 0.0
    for i in range(u.size - 1):
        u[i] = 0.5 * u[i] * u[i] + 0.1 * np.sin(u[i + 1])
        total += math.sqrt(abs(u[i]) + 1.0)
    return total


@on("f64[N]", N="37 0 1 2")
def downwards(u):
    for i in range(u.size - 1, 0, -1):
        u[i] = u[i] * (1.0 + 0.1 * u[i - 1])


@on("f64[N]", N="37 0 1 2")
def rotated(u):
    """Each iteration stores to both, in the program itself."""
    for i in range(u.size - 1):
        a = u[i]
        b = u[i + 1]
        u[i] = 0.6 * a - 0.8 * b * a
        u[i + 1] = 0.8 * a + 0.6 * b


@on("f64[N] i64[N]", N="12 1 2")
def of_two_arrays(u, k):
    """Numbers and integers; what one array hands on does not depend on the other."""
    for i in range(u.size - 1):
        a = u[i] * (1.0 + 0.1 * k[i])
        u[i] = a * a
        u[i + 1] += 0.5 * a
        k[i] += 1
        k[i + 1] += k[i]


@on("f64[9,9] N", N="8 1 0")
def from_corner_to_corner(x, n):
    """Rows go down as columns go up: no iteration finds what the one before has left."""
    for i in range(n - 1):
        x[n - i, 1 + i] = 0.6 * x[n - i, 2 + i] * x[n - i, 2 + i] + 0.1
    return x


@on("f64[4,N] i64[N]", N="9 2")
def in_rows_of_a_table(x, k):
    for j in range(k.size - 1):
        row = k[j] % 4
        x[row, j] = 0.6 * x[row, j + 1] * x[row, j + 1] + 0.1
    return x


@on("f64[9] f64[9] 9")
def at_halves(x, y, n):
    for i in range(n - 1):
        y[i // 2] = 0.5 * y[i // 2 + 1] * x[i] + y[i // 2]
    return y


@on("f64[4,N]", N="9 1")
def along_columns(x):
    for j in range(x.shape[1]):
        for i in range(3):
            x[i, j] = x[i, j] * (1.0 + 0.1 * x[i + 1, j])


TestGradients = gradient_tests(programs, tangents=True)
