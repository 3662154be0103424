"""Models that are fitted: mixtures, clusters, particles, tables of alignments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .program import Program


def nbody(position, velocity, mass, dt, steps):
    """Gravity between all pairs; the kinetic energy at the end."""
    x = position.copy()
    v = velocity.copy()
    n = mass.size
    for _ in range(steps):
        for i in range(n):
            ax = 0.0
            ay = 0.0
            az = 0.0
            for j in range(n):
                dx = x[j, 0] - x[i, 0]
                dy = x[j, 1] - x[i, 1]
                dz = x[j, 2] - x[i, 2]
                r2 = dx * dx + dy * dy + dz * dz + 0.01
                w = mass[j] / (r2 * math.sqrt(r2))
                ax += w * dx
                ay += w * dy
                az += w * dz
            v[i, 0] += dt * ax
            v[i, 1] += dt * ay
            v[i, 2] += dt * az
        for i in range(n):
            for c in range(3):
                x[i, c] += dt * v[i, c]
    energy = 0.0
    for i in range(n):
        energy += 0.5 * mass[i] * (v[i, 0] ** 2 + v[i, 1] ** 2 + v[i, 2] ** 2)
    return energy


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


GMM_WRT = ("weights", "means", "scales", "lower")

MODELS = (
    Program(
        nbody, _bodies, (16, 96, 300, 800), 4, ("position", "velocity"), loops=True, by_hand="nbody"
    ),
    Program(gmm, _gmm, (100, 1000, 10_000, 50_000), 5, GMM_WRT, loops=True, by_hand="gmm"),
    Program(gmm_direct, _gmm, (100, 1000, 10_000, 50_000), 5, GMM_WRT, loops=True, by_hand="gmm"),
    Program(gmm_slices, _gmm, (100, 1000, 10_000, 50_000), 5, GMM_WRT, loops=True, by_hand="gmm"),
)
