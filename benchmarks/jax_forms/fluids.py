"""Weather, flow and transport in JAX."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from .stencils import scanned

loop = lax.fori_loop
CX = (0, 1, 0, -1, 0, 1, -1, -1, 1)
CY = (0, 0, 1, 0, -1, 1, 1, -1, -1)
W = (4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36)


class Written:
    @staticmethod
    def hdiff(field, coefficient):
        lap = 4.0 * field[1:-1, 1:-1] - (
            field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2]
        )
        x = lap[1:, 1:-1] - lap[:-1, 1:-1]
        x = jnp.where(x * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0.0, 0.0, x)
        y = lap[1:-1, 1:] - lap[1:-1, :-1]
        y = jnp.where(y * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0.0, 0.0, y)
        out = field[2:-2, 2:-2] - coefficient * (x[1:] - x[:-1] + y[:, 1:] - y[:, :-1])
        return (out * out).sum()

    @staticmethod
    def vadv(wind, field, tendency, dt):
        levels = field.shape[0]
        above = 0.25 * wind[1]
        diagonal = 1.0 / dt - above
        right = field[0] / dt + tendency[0] - above * (field[1] - field[0])
        c = jnp.zeros_like(field).at[0].set(above / diagonal)
        d = jnp.zeros_like(field).at[0].set(right / diagonal)

        def down(k, cd):
            c, d = cd
            below, above = -0.25 * wind[k], 0.25 * wind[k + 1]
            right = field[k] / dt + tendency[k]
            right = right - below * (field[k - 1] - field[k]) - above * (field[k + 1] - field[k])
            diagonal = 1.0 / dt - below - above - below * c[k - 1]
            return c.at[k].set(above / diagonal), d.at[k].set((right - below * d[k - 1]) / diagonal)

        c, d = loop(1, levels - 1, down, (c, d))
        k = levels - 1
        below = -0.25 * wind[k]
        right = field[k] / dt + tendency[k] - below * (field[k - 1] - field[k])
        diagonal = 1.0 / dt - below - below * c[k - 1]
        x = jnp.zeros_like(field).at[k].set((right - below * d[k - 1]) / diagonal)

        def up(i, x):
            k = levels - 2 - i
            return x.at[k].set(d[k] - c[k] * x[k + 1])

        x = loop(0, levels - 1, up, x)
        return ((x - field) * (x - field)).sum()

    @staticmethod
    def cavity(u0, v0, nu, steps, sweeps):
        n = u0.shape[0]
        h = 2.0 / (n - 1)

        def step(_, state):
            u, v, p = state
            b = source(u, v, h)

            def relax(_, p):
                inside = p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1] - b
                p = p.at[1:-1, 1:-1].set(0.25 * inside)
                p = p.at[:, -1].set(p[:, -2])
                p = p.at[:, 0].set(p[:, 1])
                p = p.at[0, :].set(p[1, :])
                return p.at[-1, :].set(0.0)

            p = loop(0, sweeps, relax, p)
            inside_u, inside_v = moved(u, v, p, nu, h)
            u = u.at[1:-1, 1:-1].set(inside_u)
            v = v.at[1:-1, 1:-1].set(inside_v)
            u = u.at[0, :].set(0.0).at[:, 0].set(0.0).at[:, -1].set(0.0).at[-1, :].set(1.0)
            v = v.at[0, :].set(0.0).at[-1, :].set(0.0).at[:, 0].set(0.0).at[:, -1].set(0.0)
            return u, v, p

        u, v, _ = loop(0, steps, step, (u0, v0, jnp.zeros((n, n))))
        return (u * u).sum() + (v * v).sum()

    @staticmethod
    def lattice_boltzmann(density, omega, steps):
        n, m = density.shape
        f = jnp.zeros((9, n, m))
        for q in range(9):
            f = f.at[q].set(W[q] * density)

        def step(_, f):
            rho, ux, uy = jnp.zeros((n, m)), jnp.zeros((n, m)), jnp.zeros((n, m))
            for q in range(9):
                rho = rho + f[q]
                ux = ux + CX[q] * f[q]
                uy = uy + CY[q] * f[q]
            ux = ux / rho
            uy = uy / rho
            square = 1.5 * (ux * ux + uy * uy)
            for q in range(9):
                along = 3.0 * (CX[q] * ux + CY[q] * uy)
                level = W[q] * rho * (1.0 + along + 0.5 * along * along - square)
                f = f.at[q].add(omega * (level - f[q]))
            for q in range(1, 9):
                f = f.at[q].set(jnp.roll(jnp.roll(f[q], CX[q], 0), CY[q], 1))
            return f

        total = loop(0, steps, step, f).sum(axis=0)
        return (total * total).sum()


def source(u, v, h):
    dt = 0.1 * h
    ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2.0 * h)
    uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2.0 * h)
    vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2.0 * h)
    vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2.0 * h)
    return h * h * ((ux + vy) / dt - ux * ux - 2.0 * uy * vx - vy * vy)


def moved(u, v, p, nu, h):
    """The inside of both velocities after a step."""
    dt = 0.1 * h
    um, vm = u[1:-1, 1:-1], v[1:-1, 1:-1]
    px, py = p[1:-1, 2:] - p[1:-1, :-2], p[2:, 1:-1] - p[:-2, 1:-1]

    def one(w, push):
        mid = w[1:-1, 1:-1]
        carried = um * (mid - w[1:-1, :-2]) + vm * (mid - w[:-2, 1:-1])
        spread = w[1:-1, 2:] + w[1:-1, :-2] + w[2:, 1:-1] + w[:-2, 1:-1] - 4.0 * mid
        return mid - dt / h * carried - dt / (2.0 * h) * push + nu * dt / (h * h) * spread

    return one(u, px), one(v, py)


class Expert:
    @staticmethod
    def vadv(wind, field, tendency, dt):
        none = jnp.zeros_like(wind[:1])
        below = jnp.concatenate([none, -0.25 * wind[1:]])
        above = jnp.concatenate([0.25 * wind[1:], none])
        step = field[1:] - field[:-1]
        right = (
            field / dt
            + tendency
            + below * jnp.concatenate([none, step])
            - above * jnp.concatenate([step, none])
        )

        def down(cd, now):
            below, above, right = now
            c, d = cd
            one = 1.0 / (1.0 / dt - below - above - below * c)
            cd = above * one, (right - below * d) * one
            return cd, cd

        def up(x, cd):
            x = cd[1] - cd[0] * x
            return x, x

        _, cd = lax.scan(down, (none[0], none[0]), (below, above, right))
        _, x = lax.scan(up, none[0], cd, reverse=True)
        return ((x - field) * (x - field)).sum()

    @staticmethod
    def cavity(u0, v0, nu, steps, sweeps):
        n = u0.shape[0]
        h = 2.0 / (n - 1)

        def step(state):
            u, v, p = state
            b = source(u, v, h)

            def relax(p):
                mid = 0.25 * (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1] - b)
                mid = jnp.pad(mid, ((0, 0), (1, 1)), mode="edge")
                return jnp.concatenate([mid[:1], mid, jnp.zeros((1, n))])

            p = scanned(relax, p, sweeps)
            inside_u, inside_v = moved(u, v, p, nu, h)
            u = jnp.concatenate([jnp.pad(inside_u, ((1, 0), (1, 1))), jnp.ones((1, n))])
            return u, jnp.pad(inside_v, 1), p

        u, v, _ = scanned(step, (u0, v0, jnp.zeros((n, n))), steps)
        return (u * u).sum() + (v * v).sum()

    @staticmethod
    def lattice_boltzmann(density, omega, steps):
        """A tuple of nine grids: no array of them is written to."""

        def step(f):
            rho = sum(f)
            ux = sum(c * one for c, one in zip(CX, f, strict=True) if c) / rho
            uy = sum(c * one for c, one in zip(CY, f, strict=True) if c) / rho
            square = 1.5 * (ux * ux + uy * uy)
            after = []
            for cx, cy, w, one in zip(CX, CY, W, f, strict=True):
                along = 3.0 * (cx * ux + cy * uy)
                level = w * rho * (1.0 + along + 0.5 * along * along - square)
                after.append(jnp.roll(one + omega * (level - one), (cx, cy), (0, 1)))
            return tuple(after)

        f = scanned(step, tuple(np.float64(w) * density for w in W), steps)
        total = sum(f)
        return (total * total).sum()
