"""Stencils in JAX: as written (`.at` in `fori_loop`), and by an expert (pads that fuse, scans)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

loop = lax.fori_loop


def edge_of(start):
    """The grid with zeros inside."""
    return start.at[(slice(1, -1),) * start.ndim].set(0.0)


class Written:
    @staticmethod
    def jacobi_1d(start, steps):
        def sweep(_, u):
            return u.at[1:-1].set((u[:-2] + u[1:-1] + u[2:]) / 3.0)

        u = loop(0, steps, sweep, start)
        return (u * u).sum()

    @staticmethod
    def jacobi(start, steps):
        def sweep(_, u):
            inside = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
            return u.at[1:-1, 1:-1].set(inside)

        u = loop(0, steps, sweep, start)
        return (u * u).sum()

    jacobi_loops = jacobi

    @staticmethod
    def heat_3d(start, steps):
        def sweep(_, u):
            return u.at[1:-1, 1:-1, 1:-1].set(heated(u))

        u = loop(0, steps, sweep, start)
        return (u * u).sum()

    @staticmethod
    def seidel(start, sweeps):
        n, m = start.shape

        def row(i, u):
            above = u[i - 1, :-2] + u[i - 1, 1:-1] + u[i - 1, 2:]
            below = u[i + 1, :-2] + u[i + 1, 1:-1] + u[i + 1, 2:]

            def element(j, mid):
                around = above[j - 1] + mid[j - 1] + mid[j] + mid[j + 1] + below[j - 1]
                return mid.at[j].set(around / 9.0)

            return u.at[i].set(loop(1, m - 1, element, u[i]))

        u = loop(0, sweeps, lambda _, u: loop(1, n - 1, row, u), start)
        return (u * u).sum()

    @staticmethod
    def adi(start, r, steps):
        n = start.shape[0]

        def implicit(right, first, last):
            """Solves along the first axis for all columns; the edges are given."""

            def down(i, pq):
                p, q = pq
                d = 1.0 + 2.0 * r - r * p[i - 1]
                return p.at[i].set(r / d), q.at[i].set((right[i] + r * q[i - 1]) / d)

            zeros = jnp.zeros_like(right)
            p, q = loop(1, n - 1, down, (zeros, zeros.at[0].set(first)))

            def up(k, x):
                i = n - 2 - k
                return x.at[i].set(p[i] * x[i + 1] + q[i])

            return loop(0, n - 2, up, zeros.at[n - 1].set(last))

        def step(_, uv):
            u, v = uv
            right = u[:, 1:-1] + r * (u[:, :-2] - 2.0 * u[:, 1:-1] + u[:, 2:])
            x = implicit(right, u[0, 1:-1], u[-1, 1:-1])
            v = v.at[1:, 1:-1].set(x[1:])
            right = v[1:-1] + r * (v[:-2] - 2.0 * v[1:-1] + v[2:])
            y = implicit(right.T, v[1:-1, 0], v[1:-1, -1])
            return u.at[1:-1, 1:].set(y[1:].T), v

        u, _ = loop(0, steps, step, (start, start))
        return (u * u).sum()

    @staticmethod
    def fdtd(pulse, steps):
        def step(t, fields):
            ex, ey, hz = fields
            ey = ey.at[0, :].set(0.1 * t)
            ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
            ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
            curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
            return ex, ey, hz.at[:-1, :-1].add(-0.7 * curl)

        zeros = jnp.zeros_like(pulse)
        ex, _, hz = loop(0, steps, step, (zeros, zeros, pulse))
        return (hz * hz).sum() + (ex * ex).sum()

    @staticmethod
    def burgers(start, nu, steps):
        def step(_, u):
            change = nu * (u[2:] - 2.0 * u[1:-1] + u[:-2]) - 0.05 * u[1:-1] * (u[2:] - u[:-2])
            return u.at[1:-1].add(change)

        u = loop(0, steps, step, start)
        return (u * u).sum()

    burgers_loops = burgers

    @staticmethod
    def upwind(start, vx, vy, steps):
        def step(_, c):
            return c.at[1:-1, 1:-1].set(blown(c, vx, vy))

        c = loop(0, steps, step, start)
        return (c * c).sum()


def heated(u):
    mid = u[1:-1, 1:-1, 1:-1]
    return (
        mid
        + 0.125 * (u[2:, 1:-1, 1:-1] - 2.0 * mid + u[:-2, 1:-1, 1:-1])
        + 0.125 * (u[1:-1, 2:, 1:-1] - 2.0 * mid + u[1:-1, :-2, 1:-1])
        + 0.125 * (u[1:-1, 1:-1, 2:] - 2.0 * mid + u[1:-1, 1:-1, :-2])
    )


def blown(c, vx, vy):
    mid = c[1:-1, 1:-1]
    x = jnp.where(vx > 0.0, vx * (mid - c[:-2, 1:-1]), vx * (c[2:, 1:-1] - mid))
    y = jnp.where(vy > 0.0, vy * (mid - c[1:-1, :-2]), vy * (c[1:-1, 2:] - mid))
    return mid - 0.2 * (x + y)


def scanned(step, state, count):
    return lax.scan(lambda s, _: (step(s), None), state, length=count)[0]


def padded(inside, start, steps):
    """`inside` of the grid, step by step; the edge stays."""
    edge = edge_of(start)
    u = scanned(lambda u: jnp.pad(inside(u), 1) + edge, start, steps)
    return (u * u).sum()


class Expert:
    @staticmethod
    def jacobi_1d(start, steps):
        return padded(lambda u: (u[:-2] + u[1:-1] + u[2:]) / 3.0, start, steps)

    @staticmethod
    def jacobi(start, steps):
        def inside(u):
            return 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])

        return padded(inside, start, steps)

    jacobi_loops = jacobi

    @staticmethod
    def heat_3d(start, steps):
        return padded(heated, start, steps)

    @staticmethod
    def seidel(start, sweeps):
        """Within a row each element is an affine map of its left neighbour: a scan of their products."""

        def row(above, now):
            mid, below = now
            three = above[:-2] + above[1:-1] + above[2:] + below[:-2] + below[1:-1] + below[2:]
            t = (three + mid[1:-1] + mid[2:]) / 9.0
            t = t.at[0].add(mid[0] / 9.0)

            def then(a, b):
                return a[0] * b[0], a[1] * b[0] + b[1]

            _, new = lax.associative_scan(then, (jnp.full_like(t, 1.0 / 9.0), t))
            made = jnp.concatenate([mid[:1], new, mid[-1:]])
            return made, made

        def sweep(u):
            _, inside = lax.scan(row, u[0], (u[1:-1], u[2:]))
            return jnp.concatenate([u[:1], inside, u[-1:]])

        u = scanned(sweep, start, sweeps)
        return (u * u).sum()

    @staticmethod
    def adi(start, r, steps):
        """The factors of the tridiagonal matrix are the same everywhere: computed once."""
        n = start.shape[0]
        _, p = lax.scan(lambda p, _: (r / (1.0 + 2.0 * r - r * p),) * 2, 0.0, length=n - 2)

        def implicit(right, first, last):
            def down(q, now):
                p, right = now
                q = (right + r * q) * (p / r)
                return q, q

            def up(x, now):
                p, q = now
                x = p * x + q
                return x, x

            _, q = lax.scan(down, first, (p, right[1:-1]))
            return lax.scan(up, last, (p, q), reverse=True)[1]

        edge = edge_of(start)

        def step(u):
            right = u[:, 1:-1] + r * (u[:, :-2] - 2.0 * u[:, 1:-1] + u[:, 2:])
            v = jnp.pad(implicit(right, u[0, 1:-1], u[-1, 1:-1]), 1) + edge
            right = v[1:-1] + r * (v[:-2] - 2.0 * v[1:-1] + v[2:])
            y = implicit(right.T, v[1:-1, 0], v[1:-1, -1])
            return jnp.pad(y.T, 1) + edge

        u = scanned(step, start, steps)
        return (u * u).sum()

    @staticmethod
    def fdtd(pulse, steps):
        n = pulse.shape[0]

        def step(fields, t):
            ex, ey, hz = fields
            first = jnp.full((1, n), 0.1 * t)
            ey = jnp.concatenate([first, ey[1:] - 0.5 * (hz[1:] - hz[:-1])])
            ex = ex - 0.5 * jnp.pad(hz[:, 1:] - hz[:, :-1], ((0, 0), (1, 0)))
            curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
            return (ex, ey, hz - 0.7 * jnp.pad(curl, ((0, 1), (0, 1)))), None

        zeros = jnp.zeros_like(pulse)
        (ex, _, hz), _ = lax.scan(step, (zeros, zeros, pulse), jnp.arange(steps))
        return (hz * hz).sum() + (ex * ex).sum()

    @staticmethod
    def burgers(start, nu, steps):
        def inside(u):
            mid = u[1:-1]
            return mid + (nu * (u[2:] - 2.0 * mid + u[:-2]) - 0.05 * mid * (u[2:] - u[:-2]))

        return padded(inside, start, steps)

    burgers_loops = burgers

    @staticmethod
    def upwind(start, vx, vy, steps):
        """The two sides of the wind apart: no choice in the loop."""
        right, left = jnp.maximum(vx, 0.0), jnp.minimum(vx, 0.0)
        up, down = jnp.maximum(vy, 0.0), jnp.minimum(vy, 0.0)

        def inside(c):
            mid = c[1:-1, 1:-1]
            x = right * (mid - c[:-2, 1:-1]) + left * (c[2:, 1:-1] - mid)
            y = up * (mid - c[1:-1, :-2]) + down * (c[1:-1, 2:] - mid)
            return mid - 0.2 * (x + y)

        return padded(jax.checkpoint(inside), start, steps)
