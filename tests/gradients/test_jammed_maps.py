"""Maps that update one row in each iteration of a loop, four iterations at once (`unroll-and-jam`)."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[N,M] f64[N,N]", N="21 18 3 1 0", M="7 4 2 0")
def triangle(a, c):
    """The rows differ in length, and the entry finds that those of two arrays are as long."""
    x = c.copy()
    n, m = a.shape
    for i in range(n):
        x[i, : i + 1] *= 0.5
        for k in range(m):
            x[i, : i + 1] += 1.5 * a[i, k] * a[: i + 1, k]
    return (x * x).sum()


@on("f64[N,M] f64[M]", N="9 4 3 1 0", M="40 17 16 3")
def weighted(a, w):
    row = np.zeros(w.shape)
    for k in range(a.shape[0]):
        row -= w[k % 3] * a[k] - w
    return (row * row * w).sum()


@on("f64[N,M]", N="9 4 3", M="40 17")
def by_its_own(a):
    """A factor is an element of the row, which the iterations before have changed."""
    row = a[0].copy()
    for k in range(1, a.shape[0]):
        row += row[k] * a[k]
    return (row * row).sum()


@on("f64[N,M]", N="9 4 3", M="40 17")
def of_neighbours(a):
    """The row is read elsewhere, or another one is updated each time."""
    b = a.copy()
    for k in range(1, a.shape[0]):
        b[0, 1:] += a[k, 1:] * b[0, :-1]
        b[k] += b[k - 1] * 0.5
    return (b * b).sum()


TestGradients = gradient_tests(programs, tangents=True)
