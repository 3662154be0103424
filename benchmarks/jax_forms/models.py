"""Mixtures, clusters, particles and alignments in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from .stencils import scanned

loop = lax.fori_loop


class Written:
    @staticmethod
    def nbody(position, velocity, mass, dt, steps):
        def step(_, state):
            x, v = state
            d = x[None] - x[:, None]
            r2 = (d * d).sum(-1) + 0.01
            v = v + dt * ((mass[None] / (r2 * jnp.sqrt(r2)))[..., None] * d).sum(1)
            return x + dt * v, v

        _, v = loop(0, steps, step, (position, velocity))
        return (0.5 * mass * (v * v).sum(-1)).sum()

    @staticmethod
    def gmm(weights, means, scales, lower, x):
        factor = jnp.tril(lower, -1) + jax.vmap(jnp.diag)(jnp.exp(scales))
        away = x[:, None] - means
        z = jnp.einsum("kef,nkf->nke", factor, away)
        term = weights + scales.sum(-1) - 0.5 * (z * z).sum(-1)
        return jax.scipy.special.logsumexp(term, axis=1).sum()

    gmm_direct = gmm_slices = gmm

    @staticmethod
    def kmeans(points, centres):
        away = points[:, None] - centres
        return (away * away).sum(-1).min(axis=1).sum()

    @staticmethod
    def kmeans_slices(points, centres):
        squares = (points * points).sum(axis=1)
        own = (centres * centres).sum(axis=1)
        apart = squares[:, None] - 2.0 * (points @ centres.T) + own[None, :]
        return jnp.min(apart, axis=1).sum()

    @staticmethod
    def alignment(x, y, gap):
        def soft(a, b, c):
            least = jnp.minimum(jnp.minimum(a, b), c)
            return least - jnp.log(jnp.exp(least - a) + jnp.exp(least - b) + jnp.exp(least - c))

        return rows(x, y, gap, lambda a, b: (a - b) ** 2, soft)

    @staticmethod
    def edit_distance(x, y, gap):
        return rows(x, y, gap, lambda a, b: jnp.abs(a - b), hard)

    @staticmethod
    def shortest_paths(lengths):
        def through(k, d):
            return jnp.minimum(d, d[:, k][:, None] + d[k])

        d = loop(0, lengths.shape[0], through, lengths)
        return (d * d).sum()

    @staticmethod
    def particle_in_cell(x0, v0, cells, dt, steps):
        def step(_, state):
            x, v = state
            left = x.astype(int)
            part = x - left
            charge = jnp.zeros(cells).at[left % cells].add(1.0 - part)
            charge = charge.at[(left + 1) % cells].add(part)
            field = jnp.cumsum(charge - charge.sum() / cells)
            push = (1.0 - part) * field[left % cells] + part * field[(left + 1) % cells]
            v = v - dt * (push - field.sum() / cells)
            x = x + dt * v
            return jnp.where(x < 0.0, x + cells, jnp.where(x >= cells, x - cells, x)), v

        _, v = loop(0, steps, step, (x0, v0))
        return (v * v).sum()

    @staticmethod
    def go_fast(a):
        trace = loop(0, a.shape[0], lambda i, trace: trace + jnp.tanh(a[i, i]), 0.0)
        b = a + trace
        return (b * b).sum()


def hard(a, b, c):
    return jnp.minimum(jnp.minimum(a, b), c)


def rows(x, y, gap, cost, least):
    """The table row by row, a row element by element."""
    m = y.size

    def row(i, before):
        def element(j, now):
            a = before[j - 1] + cost(x[i - 1], y[j - 1])
            return now.at[j].set(least(a, before[j] + gap, now[j - 1] + gap))

        return loop(1, m + 1, element, jnp.zeros(m + 1).at[0].set(gap * i))

    return loop(1, x.size + 1, row, gap * jnp.arange(m + 1.0))[m]


def diagonals(x, y, gap, cost, least):
    """The table by its diagonals, whose elements do not depend on each other."""
    n, m = x.size, y.size
    i = jnp.arange(n + 1)
    xs = jnp.concatenate([jnp.zeros(1), x])
    turned = jnp.concatenate([jnp.zeros(n + 1), y[::-1], jnp.zeros(n + 1)])

    def step(state, d):
        before, last = state
        ys = lax.dynamic_slice(turned, (m - d + n + 1,), (n + 1,))
        a = jnp.roll(before, 1) + cost(xs, ys)
        new = least(a, jnp.roll(last, 1) + gap, last + gap)
        new = jnp.where((i == 0) | (i == d), gap * d, new)
        return (last, jnp.where((i <= d) & (d - i <= m), new, 0.0)), None

    first = jnp.zeros(n + 1)
    second = jnp.where(i <= 1, gap, 0.0)
    (_, last), _ = lax.scan(step, (first, second), jnp.arange(2, n + m + 1))
    return last[n]


class Expert:
    @staticmethod
    def nbody(position, velocity, mass, dt, steps):
        """Coordinates apart; the forces are two products with a matrix."""

        def step(state):
            x, v = state
            r2 = sum((x[:, c][None] - x[:, c][:, None]) ** 2 for c in range(3)) + 0.01
            w = mass[None] / (r2 * jnp.sqrt(r2))
            v = v + dt * (w @ x - w.sum(1)[:, None] * x)
            return x + dt * v, v

        _, v = scanned(step, (position, velocity), steps)
        return (0.5 * mass * (v * v).sum(-1)).sum()

    @staticmethod
    def gmm(weights, means, scales, lower, x):
        """One matrix product for all points and components."""
        k, d = means.shape
        factor = jnp.tril(lower, -1) + jnp.exp(scales)[:, :, None] * jnp.eye(d)
        middle = jnp.einsum("kef,kf->ke", factor, means)
        z = (x @ factor.reshape(k * d, d).T).reshape(-1, k, d) - middle
        term = weights + scales.sum(-1) - 0.5 * (z * z).sum(-1)
        return jax.scipy.special.logsumexp(term, axis=1).sum()

    gmm_direct = gmm_slices = gmm

    @staticmethod
    def kmeans(points, centres):
        """Centres first, points in vectors."""
        flipped = points.T
        apart = sum((flipped[e] - centres[:, e, None]) ** 2 for e in range(points.shape[1]))
        return apart.min(axis=0).sum()

    kmeans_slices = kmeans

    @staticmethod
    def alignment(x, y, gap):
        def soft(a, b, c):
            return -jnp.logaddexp(jnp.logaddexp(-a, -b), -c)

        return diagonals(x, y, gap, lambda a, b: (a - b) ** 2, soft)

    @staticmethod
    def edit_distance(x, y, gap):
        return diagonals(x, y, gap, lambda a, b: jnp.abs(a - b), hard)

    @staticmethod
    def particle_in_cell(x0, v0, cells, dt, steps):
        """Charge and field as products with the weights of each particle: no scatters."""
        grid = jnp.arange(cells)

        def step(state):
            x, v = state
            left = x.astype(int)
            part = (x - left)[:, None]
            weight = jnp.where(left[:, None] % cells == grid, 1.0 - part, 0.0) + jnp.where(
                (left[:, None] + 1) % cells == grid, part, 0.0
            )
            charge = weight.sum(0)
            field = jnp.cumsum(charge - charge.sum() / cells)
            v = v - dt * (weight @ field - field.sum() / cells)
            x = x + dt * v
            return jnp.where(x < 0.0, x + cells, jnp.where(x >= cells, x - cells, x)), v

        _, v = scanned(step, (x0, v0), steps)
        return (v * v).sum()

    @staticmethod
    def go_fast(a):
        b = a + jnp.tanh(jnp.diag(a)).sum()
        return (b * b).sum()
