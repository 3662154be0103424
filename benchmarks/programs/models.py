"""Models that are fitted: mixtures, clusters, particles, tables of alignments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..kernels import nbody
from .program import Program


def gmm(weights, means, scales, lower, x):
    """The log-likelihood of a mixture of Gaussians; two scratch arrays serve all points.

    The inverse of each component's covariance is L^T L, L with exp(scales) on its diagonal.
    """
    n, d = x.shape
    k = weights.size
    away = np.zeros(d)
    term = np.zeros(k)
    total = 0.0
    for i in range(n):
        for c in range(k):
            for e in range(d):
                away[e] = x[i, e] - means[c, e]
            square = 0.0
            logs = 0.0
            for e in range(d):
                z = math.exp(scales[c, e]) * away[e]
                for f in range(e):
                    z += lower[c, e, f] * away[f]
                square += z * z
                logs += scales[c, e]
            term[c] = weights[c] + logs - 0.5 * square
        most = term[0]
        for c in range(1, k):
            most = max(most, term[c])
        inside = 0.0
        for c in range(k):
            inside += math.exp(term[c] - most)
        total += most + math.log(inside)
    return total


def gmm_direct(weights, means, scales, lower, x):
    """The same without scratch arrays; the largest term is met on the way."""
    n, d = x.shape
    k = weights.size
    total = 0.0
    for i in range(n):
        most = -1e300
        inside = 0.0
        for c in range(k):
            square = 0.0
            logs = 0.0
            for e in range(d):
                z = math.exp(scales[c, e]) * (x[i, e] - means[c, e])
                for f in range(e):
                    z += lower[c, e, f] * (x[i, f] - means[c, f])
                square += z * z
                logs += scales[c, e]
            term = weights[c] + logs - 0.5 * square
            if term > most:
                inside = inside * math.exp(most - term) + 1.0
                most = term
            else:
                inside += math.exp(term - most)
        total += most + math.log(inside)
    return total


def gmm_slices(weights, means, scales, lower, x):
    """The same with a point's vector as a slice of nine elements."""
    n, d = x.shape
    k = weights.size
    term = np.zeros(k)
    total = 0.0
    for i in range(n):
        for c in range(k):
            away = x[i] - means[c]
            z = np.exp(scales[c]) * away
            for e in range(1, d):
                z[e] += (lower[c, e, :e] * away[:e]).sum()
            term[c] = weights[c] + scales[c].sum() - 0.5 * (z * z).sum()
        most = term.max()
        total += most + math.log(np.exp(term - most).sum())
    return total


def kmeans(points, centres):
    """The cost of clusters: each point takes its nearest centre."""
    n, d = points.shape
    k = centres.shape[0]
    total = 0.0
    for i in range(n):
        best = np.inf
        for c in range(k):
            square = 0.0
            for e in range(d):
                away = points[i, e] - centres[c, e]
                square += away * away
            if square < best:
                best = square
        total += best
    return total


def kmeans_slices(points, centres):
    """The same with all distances at once."""
    squares = (points * points).sum(axis=1)
    own = (centres * centres).sum(axis=1)
    apart = squares[:, None] - 2.0 * (points @ centres.T) + own[None, :]
    return np.min(apart, axis=1).sum()


def alignment(x, y, gap):
    """Two series aligned by dynamic programming, each cell a soft minimum of three."""
    n = x.size
    m = y.size
    table = np.zeros((n + 1, m + 1))
    for i in range(1, n + 1):
        table[i, 0] = gap * i
    for j in range(1, m + 1):
        table[0, j] = gap * j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a = table[i - 1, j - 1] + (x[i - 1] - y[j - 1]) ** 2
            b = table[i - 1, j] + gap
            c = table[i, j - 1] + gap
            least = min(a, b, c)
            table[i, j] = least - math.log(
                math.exp(least - a) + math.exp(least - b) + math.exp(least - c)
            )
    return table[n, m]


def edit_distance(x, y, gap):
    """The same with a hard minimum, row by row in place."""
    n = x.size
    m = y.size
    row = np.zeros(m + 1)
    for j in range(1, m + 1):
        row[j] = gap * j
    for i in range(1, n + 1):
        corner = row[0]
        row[0] = gap * i
        for j in range(1, m + 1):
            best = corner + abs(x[i - 1] - y[j - 1])
            corner = row[j]
            best = min(best, row[j] + gap)
            row[j] = min(best, row[j - 1] + gap)
    return row[m]


def shortest_paths(lengths):
    """All pairs of vertices at once, a vertex in the middle after the other."""
    d = lengths.copy()
    n = d.shape[0]
    for k in range(n):
        d[:, :] = np.minimum(d, d[:, k : k + 1] + d[k : k + 1, :])
    return (d * d).sum()


def particle_in_cell(x0, v0, cells, dt, steps):
    """Charge to a grid, its field by sums, field to particles: subscripts that the data decide."""
    x = x0.copy()
    v = v0.copy()
    n = x.size
    charge = np.zeros(cells)
    field = np.zeros(cells)
    for _ in range(steps):
        charge[:] = 0.0
        for i in range(n):
            left = int(x[i])
            part = x[i] - left
            charge[left % cells] += 1.0 - part
            charge[(left + 1) % cells] += part
        mean = charge.sum() / cells
        away = 0.0
        for c in range(cells):
            away += charge[c] - mean
            field[c] = away
        middle = field.sum() / cells
        for i in range(n):
            left = int(x[i])
            part = x[i] - left
            push = (1.0 - part) * field[left % cells] + part * field[(left + 1) % cells]
            v[i] -= dt * (push - middle)
            x[i] += dt * v[i]
            if x[i] < 0.0:
                x[i] += cells
            elif x[i] >= cells:
                x[i] -= cells
    return (v * v).sum()


def go_fast(a):
    """A trace through tanh, added to every element."""
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    b = a + trace
    return (b * b).sum()


def _gmm(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    d, k = (9, 12) if n > 20 else (3, 2)
    return (
        r.normal(size=k),
        r.normal(size=(k, d)),
        0.1 * r.normal(size=(k, d)),
        0.2 * r.normal(size=(k, d, d)),
        r.normal(size=(n, d)),
    )


def _bodies(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (r.normal(size=(n, 3)), r.normal(size=(n, 3)), r.uniform(0.1, 1.0, n), 0.01, 10)


def _series(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (r.normal(size=n), r.normal(size=n + 10), 0.7)


def _plasma(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    cells = 64 if n > 20 else 5
    scale = 0.1 * cells / n
    return (r.uniform(0.0, cells, n), r.normal(size=n), cells, scale, 10 if n > 20 else 2)


GMM_WRT = ("weights", "means", "scales", "lower")

MODELS = (
    Program(
        nbody, _bodies, (16, 96, 300, 800), 4, ("position", "velocity"), loops=True, by_hand="nbody"
    ),
    Program(gmm, _gmm, (100, 1000, 10_000, 50_000), 5, GMM_WRT, loops=True, by_hand="gmm"),
    Program(gmm_direct, _gmm, (100, 1000, 10_000, 50_000), 5, GMM_WRT, loops=True, by_hand="gmm"),
    Program(gmm_slices, _gmm, (100, 1000, 10_000, 50_000), 5, GMM_WRT, loops=True, by_hand="gmm"),
    Program(
        kmeans,
        lambda r, n: (r.normal(size=(n, 4)), r.normal(size=(8 if n > 20 else 3, 4))),
        (500, 10_000, 100_000, 500_000),
        6,
        ("points", "centres"),
        loops=True,
    ),
    Program(
        kmeans_slices,
        lambda r, n: (r.normal(size=(n, 4)), r.normal(size=(8 if n > 20 else 3, 4))),
        (500, 10_000, 100_000, 500_000),
        6,
        ("points", "centres"),
    ),
    Program(alignment, _series, (50, 300, 1000, 2000), 6, ("x", "y", "gap"), loops=True),
    Program(edit_distance, _series, (50, 300, 1000, 2000), 6, ("x", "y", "gap"), loops=True),
    Program(
        shortest_paths,
        lambda r, n: (r.uniform(0.1, 1.0, (n, n)),),
        (32, 128, 256, 500),
        6,
        ("lengths",),
    ),
    Program(
        particle_in_cell,
        _plasma,
        (500, 5_000, 50_000, 200_000),
        7,
        ("x0", "v0"),
        loops=True,
    ),
    Program(go_fast, lambda r, n: (r.normal(size=(n, n)),), (64, 512, 1500, 4000), 5, ("a",)),
)
