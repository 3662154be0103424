"""Nests that go through a matrix column by column have a copy that lies by columns (`transpose-matrices`)."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[10,N]", N="9 0 1 2")
@on("f32[10,8]", relative=1e-2)
def orthonormal(matrix):
    a = matrix.copy()
    n = a.shape[1]
    q = np.zeros_like(a)
    r = np.zeros((n, n), a.dtype)
    for k in range(n):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return (r * r * r).sum() + q.sum()


@on("f64[3,N] f64[3,N]", N="9 0 1 8")
def in_place(x, y):
    """The caller's matrix, its columns from the second element on, the last one first."""
    n = x.shape[1]
    for k in range(n - 1, -1, -1):
        for j in range(k):
            x[1:, k] += 0.1 * np.sin(x[1:, j]) * y[1:, k]


@on("f64[3,9] 2")
def in_each_step(x, steps):
    for _ in range(steps):
        for k in range(x.shape[1]):
            for j in range(k):
                x[:, k] -= 0.1 * x[:, j] * x[:, k]
        x[0] *= 1.1


@on("f64[2,3,9]")
def of_a_plane(x):
    a = x[1]
    for k in range(a.shape[1]):
        for j in range(k):
            a[:, k] -= 0.1 * a[:, j] * a[:, k]


@on("f64[4,9] f64[9]")
def with_its_rows(x, w):
    """The nest reads rows as well."""
    for k in range(x.shape[1]):
        for j in range(k):
            x[:, k] -= 0.1 * x[:, j] * x[0, j] * w[k]


@on("f64[9,9]")
def of_the_transpose(x):
    """A column of the transpose is a row."""
    t = x.T
    for k in range(9):
        for j in range(k):
            x[:, k] -= 0.1 * t[:, j]


TestGradients = gradient_tests(programs, tangents=True)
