"""Loops of maps that run for one block of rows after the other (`block-rows`)."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[N,M] f64[N,M]", N="97 3 0 1", M="90 4 3 0")
def gathered(x, y):
    """Sums of several arrays, which change each other row by row, and are summed up."""
    n, m = x.shape
    f = np.zeros((3, n, m))
    for q in range(3):
        f[q] = (1.0 + q) * x
    for _ in range(2):
        total = np.zeros((n, m))
        weighted = np.zeros((n, m))
        for q in range(3):
            total += f[q]
            weighted += q * f[q] * y
        weighted /= 2.0 + total * total
        for q in range(3):
            f[q] += 0.1 * (weighted - f[q])
    return (f * f).sum() + (total * weighted).sum()


@on("f64[N,M] 0.3", N="97 3 0 1", M="90 4 3 0")
def relaxed(x, rate):
    """All elements are multiplied with one number, whose cotangent is added up block by block."""
    n, m = x.shape
    f = np.zeros((3, n, m))
    for q in range(3):
        f[q] = (1.0 + q) * x
    for _ in range(2):
        total = np.zeros((n, m))
        for q in range(3):
            total += f[q]
        for q in range(3):
            f[q] += rate * (np.sin(total) - f[q])
    return (f * f).sum()


@on("f64[N,M] f64[N,M]", N="97 3 2", M="90 4 3")
def shifted(x, y):
    """Each iteration reads the rows around its own: the loop stays as it is."""
    u, t = x.copy(), np.zeros(x.shape)
    for q in range(3):
        t[1:-1] += u[2:] * y[:-2]
        u[1:-1] = 0.5 * t[1:-1] + u[:-2] * q
    return (u * u).sum() + t.sum()


@on("f64[N,M] f64[K]", N="97 3", M="90 4", K="4 1 0")
def numbers(x, w):
    """A number that the loop loads is one of the map's own, or of another array."""
    u, v = x.copy(), x.copy()
    for k in range(w.size):
        u += w[k] * x
        v *= 1.0 + 0.1 * v[k % v.shape[0], 0]
    return (u * v).sum()


TestGradients = gradient_tests(programs, tangents=True)
