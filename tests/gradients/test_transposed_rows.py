"""Nests that come back to short rows go through a transposed copy (`transpose-rows`): of 9 rows, of few."""

import math

from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[N,2] f64[N]", N="0 1 7 9")
def of_all_pairs(x, m):
    """Each row is read, and added to, as either of a pair."""
    total = 0.0
    for i in range(m.size):
        a = 0.0
        b = 0.0
        for j in range(m.size):
            p = x[j, 0] - x[i, 0]
            q = x[j, 1] - x[i, 1]
            r2 = p * p + q * q + 0.5
            w = m[j] / (r2 * math.sqrt(r2))
            a += w * p
            b += w * q
        total += a * a * x[i, 0] + b
    return total


@on("f64[10,3] f64[10,3] 2")
def that_move_between_nests(x, v, steps):
    for _ in range(steps):
        for i in range(x.shape[0]):
            for j in range(x.shape[0]):
                near = math.exp(-((x[i, 0] - x[j, 0]) ** 2))
                v[i, 0] += 0.1 * near * x[j, 1]
                v[i, 1] += 0.1 * near * x[j, 2]
        x += 0.1 * v


@on("f64[9,2]")
def that_are_stored_to_on_the_way(x):
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            x[j, 0] += 0.1 * x[i, 1] * x[j, 1]
            x[j, 1] *= 0.9


@on("f64[2,10,3] f64[9]")
def of_a_plane_from_the_second_on(x, w):
    """The third number is in no row that is read."""
    total = 0.0
    for i in range(w.size):
        for j in range(x.shape[1] - 1):
            total += w[i] * x[1, j + 1, 0] * x[1, j + 1, 1] * w[j]
    return total


@on("f64[12,2] f64[12]")
def downwards(x, w):
    total = 0.0
    for i in range(w.size):
        for j in range(x.shape[0] - 1, -1, -1):
            total = 0.5 * total + w[i] * x[j, 0] * x[j, 1]
    return total


@on("f64[12,2] f64[12] V", V="0.0 0.9 9.0")
def some_of_them(x, w, limit):
    total = 0.0
    for i in range(w.size):
        for j in range(x.shape[0]):
            if w[j] < limit:
                total += w[i] * x[j, 0] * x[j, 1]
    return total


@on("f64[8,2] f64[9]")
def that_end_too_early_in_the_loop(x, w):
    """The row that is not there is never read."""
    total = 0.0
    for i in range(w.size):
        for j in range(w.size):
            if j < x.shape[0]:
                total += w[i] * x[j, 0] * x[j, 1]
    return total


TestGradients = gradient_tests(programs, tangents=True)
