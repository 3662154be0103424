"""Programs for the memory benchmark: as NumPy is written, and once more without mutation for JAX and PyTorch.

The functional versions share their text: `Functional` hides how each peer loops and how it updates an array.
Each returns one float; what is differentiated is the first argument, and `and_more` others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


class Functional:
    """What differs between the peers."""

    def __init__(self, xp: Any, loop: Callable[..., Any], put: Callable[..., Any]) -> None:
        self.xp, self.loop, self.put = xp, loop, put


INSIDE = np.s_[1:-1, 1:-1]


def diffusion(u, steps):
    """A linear stencil in place."""
    for _ in range(steps):
        u[1:-1] += 0.2 * (u[:-2] - 2.0 * u[1:-1] + u[2:])
    return u.sum()


def diffusion_pure(f, u, steps):
    def step(_, u):
        return f.put(u, np.s_[1:-1], u[1:-1] + 0.2 * (u[:-2] - 2.0 * u[1:-1] + u[2:]))

    return f.loop(steps, step, u).sum()


def jacobi(u, steps):
    """A linear stencil on two grids that swap."""
    v = u.copy()
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, v = v, u
    return u.sum()


def jacobi_pure(f, u, steps):
    def step(_, u):
        mean = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        return f.put(u, INSIDE, mean)

    return f.loop(steps, step, u).sum()


def burgers(u, nu, steps):
    """A nonlinear stencil in place."""
    for _ in range(steps):
        u[1:-1] += nu * (u[2:] - 2.0 * u[1:-1] + u[:-2]) - 0.05 * (u[2:] ** 2 - u[:-2] ** 2)
    return (u * u).sum()


def burgers_pure(f, u, nu, steps):
    def step(_, u):
        change = nu * (u[2:] - 2.0 * u[1:-1] + u[:-2]) - 0.05 * (u[2:] ** 2 - u[:-2] ** 2)
        return f.put(u, np.s_[1:-1], u[1:-1] + change)

    u = f.loop(steps, step, u)
    return (u * u).sum()


def reaction(u, steps):
    """Diffusion and a cubic reaction on a 2-D grid."""
    for _ in range(steps):
        near = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1]
        u[1:-1, 1:-1] += 0.1 * near + 0.05 * (u[1:-1, 1:-1] - u[1:-1, 1:-1] ** 3)
    return (u * u).sum()


def reaction_pure(f, u, steps):
    def step(_, u):
        c = u[INSIDE]
        near = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * c
        return f.put(u, INSIDE, c + 0.1 * near + 0.05 * (c - c**3))

    u = f.loop(steps, step, u)
    return (u * u).sum()


def gauss_seidel(u, sweeps):
    """In place: each element reads one neighbour of this sweep and one of the last, nonlinearly."""
    for _ in range(sweeps):
        for i in range(1, u.size - 1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1]) - 0.01 * u[i] * u[i]
    return u.sum()


def gauss_seidel_pure(f, u, sweeps):
    n = u.shape[0]

    def element(i, u):
        return f.put(u, i + 1, 0.5 * (u[i] + u[i + 2]) - 0.01 * u[i + 1] * u[i + 1])

    return f.loop(sweeps, lambda _, u: f.loop(n - 2, element, u), u).sum()


def lu(a):
    """LU in place, the logarithm of the determinant."""
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    total = 0.0
    for k in range(n):
        total += math.log(abs(a[k, k]))
    return total


def lu_pure(f, a):
    xp, n = f.xp, a.shape[0]
    index = xp.arange(n)

    def eliminate(k, a):
        column = xp.where(index > k, a[:, k] / a[k, k], 0.0)
        return a - column[:, None] * xp.where(index >= k, a[k], 0.0)

    return xp.log(xp.abs(xp.diagonal(f.loop(n, eliminate, a)))).sum()


def cholesky(a):
    """Cholesky in place, the logarithm of the determinant."""
    n = a.shape[0]
    total = 0.0
    for k in range(n):
        a[k, k] = math.sqrt(a[k, k])
        total += math.log(a[k, k])
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
        for j in range(k + 1, n):
            for i in range(j, n):
                a[i, j] -= a[i, k] * a[j, k]
    return total


def cholesky_pure(f, a):
    xp, n = f.xp, a.shape[0]
    index = xp.arange(n)

    def step(k, state):
        a, total = state
        pivot = xp.sqrt(a[k, k])
        column = xp.where(index > k, a[:, k] / pivot, 0.0)
        return a - column[:, None] * column[None, :], total + xp.log(pivot)

    return f.loop(n, step, (a, a[0, 0] * 0.0))[1]


def leapfrog(x, v, mass, dt, steps):
    """Gravity between all pairs."""
    n = mass.size
    for _ in range(steps):
        for i in range(n):
            ax = ay = az = 0.0
            for j in range(n):
                dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
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
    return (v * v).sum()


def leapfrog_pure(f, x, v, mass, dt, steps):
    def step(_, state):
        x, v = state
        d = x[None] - x[:, None]
        r2 = (d * d).sum(-1) + 0.01
        v = v + dt * ((mass[None] / (r2 * f.xp.sqrt(r2)))[..., None] * d).sum(1)
        return x + dt * v, v

    _, v = f.loop(steps, step, (x, v))
    return (v * v).sum()


def rnn(w, u, inputs):
    """A recurrent network; its state is overwritten at each step."""
    h = np.zeros(w.shape[0])
    loss = 0.0
    for t in range(inputs.shape[0]):
        h[:] = np.tanh(w @ h + u @ inputs[t])
        loss += (h * h).sum()
    return loss


def rnn_pure(f, w, u, inputs):
    def step(t, state):
        h, loss = state
        h = f.xp.tanh(w @ h + u @ inputs[t])
        return h, loss + (h * h).sum()

    return f.loop(inputs.shape[0], step, (w[0] * 0.0, w[0, 0] * 0.0))[1]


def kmeans(centers, points):
    """The sum of squared distances to the nearest center."""
    total = 0.0
    for i in range(points.shape[0]):
        best = math.inf
        for k in range(centers.shape[0]):
            d = 0.0
            for c in range(points.shape[1]):
                d += (points[i, c] - centers[k, c]) ** 2
            best = min(best, d)
        total += best
    return total


def kmeans_pure(f, centers, points):
    d = ((points[:, None] - centers[None]) ** 2).sum(-1)
    return f.xp.amin(d, 1).sum()


def adaptive(u, end):
    """A while loop: steps as long as the largest rate allows."""
    t = 0.0
    while t < end:
        rate = 0.0
        for i in range(u.size):
            rate = max(rate, abs(u[i]))
        dt = min(0.02 / (1.0 + rate), end - t)
        for i in range(u.size):
            u[i] += dt * u[i] * (1.0 - u[i])
        t += dt
    return u.sum()


def adaptive_pure(f, u, end):
    t = 0.0
    while t < end:
        rate = f.xp.abs(u).max()
        dt = f.xp.clamp(0.02 / (1.0 + rate), max=end - t)
        u = u + dt * u * (1.0 - u)
        t = t + dt
    return u.sum()


def time_expanded(start, steps):
    """All times kept, A[t + 1] = f(A[t])."""
    a = np.empty((steps + 1, start.size))
    a[0] = start
    for t in range(steps):
        a[t + 1] = 3.7 * a[t] * (1.0 - a[t])
    return a.sum()


def time_expanded_pure(f, start, steps):
    a = f.xp.zeros((steps + 1, start.shape[0]), dtype=start.dtype)
    a = f.put(a, 0, start)
    return f.loop(steps, lambda t, a: f.put(a, t + 1, 3.7 * a[t] * (1.0 - a[t])), a).sum()


def thomas(x, diagonal):
    """A tridiagonal system solved in place."""
    n = x.size
    for i in range(1, n):
        w = -1.0 / diagonal[i - 1]
        diagonal[i] += w
        x[i] -= w * x[i - 1]
    x[n - 1] /= diagonal[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = (x[i] + x[i + 1]) / diagonal[i]
    return (x * x).sum()


def thomas_pure(f, x, diagonal):
    n = x.shape[0]

    def down(i, state):
        x, d = state
        w = -1.0 / d[i]
        d = f.put(d, i + 1, d[i + 1] + w)
        return f.put(x, i + 1, x[i + 1] - w * x[i]), d

    def up(i, state):
        x, d = state
        k = n - 2 - i
        return f.put(x, k, (x[k] + x[k + 1]) / d[k]), d

    x, d = f.loop(n - 1, down, (x, diagonal))
    x = f.put(x, n - 1, x[n - 1] / d[n - 1])
    x, d = f.loop(n - 1, up, (x, d))
    return (x * x).sum()


def waves(x):
    """One elementwise expression."""
    return (np.exp(-0.5 * x * x) * np.sin(3.0 * x) + np.cos(x) * np.log(1.0 + x * x)).sum()


def waves_pure(f, x):
    xp = f.xp
    return (xp.exp(-0.5 * x * x) * xp.sin(3.0 * x) + xp.cos(x) * xp.log(1.0 + x * x)).sum()


def ldl(a):
    """LDL^T in place, in two passes for each column, the logarithm of the determinant."""
    n = a.shape[0]
    total = 0.0
    for k in range(n):
        total += math.log(a[k, k])
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
        for i in range(k + 1, n):
            for j in range(k + 1, i + 1):
                a[i, j] -= a[i, k] * a[j, k] * a[k, k]
    return total


def ldl_pure(f, a):
    xp, n = f.xp, a.shape[0]
    index = xp.arange(n)

    def step(k, state):
        a, total = state
        column = xp.where(index > k, a[:, k], 0.0)
        return a - column[:, None] * column[None, :] / a[k, k], total + xp.log(a[k, k])

    return f.loop(n, step, (a, a[0, 0] * 0.0))[1]


def householder(a):
    """QR in place by reflections, the logarithm of the absolute determinant."""
    n = a.shape[0]
    total = 0.0
    for k in range(n - 1):
        norm = 0.0
        for i in range(k, n):
            norm += a[i, k] * a[i, k]
        norm = math.sqrt(norm)
        total += math.log(norm)
        a[k, k] += norm
        scale = norm * a[k, k]
        for j in range(k + 1, n):
            dot = 0.0
            for i in range(k, n):
                dot += a[i, k] * a[i, j]
            dot /= scale
            for i in range(k, n):
                a[i, j] -= dot * a[i, k]
    return total + math.log(abs(a[n - 1, n - 1]))


def householder_pure(f, a):
    xp, n = f.xp, a.shape[0]
    index = xp.arange(n)

    def step(k, state):
        a, total = state
        v = xp.where(index >= k, a[:, k], 0.0)
        norm = xp.sqrt((v * v).sum())
        v = v + norm * (index == k)
        scale = norm * v[k]
        return a - v[:, None] * ((v @ a) / scale)[None, :], total + xp.log(norm)

    a, total = f.loop(n - 1, step, (a, a[0, 0] * 0.0))
    return total + xp.log(xp.abs(a[n - 1, n - 1]))


def recursive_filter(x, c):
    """A recursive filter of second order, in place."""
    for i in range(2, x.size):
        x[i] += c[0] * x[i - 1] + c[1] * x[i - 2]
    return (x * x).sum()


def recursive_filter_pure(f, x, c):
    def element(i, x):
        return f.put(x, i + 2, x[i + 2] + c[0] * x[i + 1] + c[1] * x[i])

    x = f.loop(x.shape[0] - 2, element, x)
    return (x * x).sum()


def alignment(cost):
    """Dynamic time warping with a soft minimum, its table in the place of the costs."""
    n, m = cost.shape
    for i in range(1, n):
        for j in range(1, m):
            a, b, c = cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1]
            cost[i, j] -= math.log(math.exp(-a) + math.exp(-b) + math.exp(-c))
    return cost[n - 1, m - 1]


def alignment_pure(f, cost):
    xp, (n, m) = f.xp, cost.shape

    def row(i, r):
        def element(j, r):
            near = xp.exp(-r[i, j + 1]) + xp.exp(-r[i + 1, j]) + xp.exp(-r[i, j])
            return f.put(r, (i + 1, j + 1), r[i + 1, j + 1] - xp.log(near))

        return f.loop(m - 1, element, r)

    return f.loop(n - 1, row, cost)[n - 1, m - 1]


def shortest_paths(w):
    """All shortest paths of a graph, in place."""
    n = w.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                w[i, j] = min(w[i, j], w[i, k] + w[k, j])
    return w.sum()


def shortest_paths_pure(f, w):
    def step(k, w):
        return f.xp.minimum(w, w[:, k][:, None] + w[k][None, :])

    return f.loop(w.shape[0], step, w).sum()


def red_black(u, sweeps):
    """Nonlinear relaxation in two colours: each half reads the other."""
    for _ in range(sweeps):
        u[1:-1:2] = 0.5 * (u[:-2:2] + u[2::2]) - 0.01 * u[1:-1:2] ** 3
        u[2:-1:2] = 0.5 * (u[1:-2:2] + u[3::2]) - 0.01 * u[2:-1:2] ** 3
    return u.sum()


def red_black_pure(f, u, sweeps):
    def sweep(_, u):
        u = f.put(u, np.s_[1:-1:2], 0.5 * (u[:-2:2] + u[2::2]) - 0.01 * u[1:-1:2] ** 3)
        return f.put(u, np.s_[2:-1:2], 0.5 * (u[1:-2:2] + u[3::2]) - 0.01 * u[2:-1:2] ** 3)

    return f.loop(sweeps, sweep, u).sum()


@dataclass(frozen=True)
class Program:
    function: Callable[..., Any]
    pure: Callable[..., Any]
    arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    and_more: int = 0
    """How many arguments after the first are differentiated too."""
    jax: bool = True
    """False where JAX cannot reverse the loop."""

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def wrt(self) -> tuple[int, ...]:
        return tuple(range(1 + self.and_more))

    def make(self) -> tuple[Any, ...]:
        return self.arguments(np.random.default_rng(0))


def _positive(r: np.random.Generator, n: int) -> Any:
    a = r.normal(size=(n, n))
    return a @ a.T + n * np.eye(n)


PROGRAMS = (
    Program(diffusion, diffusion_pure, lambda r: (r.normal(size=20_000), 100)),
    Program(jacobi, jacobi_pure, lambda r: (r.normal(size=(256, 256)), 50)),
    Program(burgers, burgers_pure, lambda r: (np.sin(np.linspace(0, 6, 20_000)), 0.1, 100)),
    Program(reaction, reaction_pure, lambda r: (r.uniform(-1, 1, (128, 128)), 50)),
    Program(gauss_seidel, gauss_seidel_pure, lambda r: (r.uniform(size=200), 4)),
    Program(lu, lu_pure, lambda r: (r.normal(size=(96, 96)) + 192.0 * np.eye(96),)),
    Program(cholesky, cholesky_pure, lambda r: (_positive(r, 96),)),
    Program(
        leapfrog,
        leapfrog_pure,
        lambda r: (r.normal(size=(64, 3)), r.normal(size=(64, 3)), r.uniform(0.1, 1, 64), 0.01, 20),
        and_more=1,
    ),
    Program(
        rnn,
        rnn_pure,
        lambda r: (
            0.1 * r.normal(size=(64, 64)),
            r.normal(size=(64, 16)),
            r.normal(size=(500, 16)),
        ),
        and_more=1,
    ),
    Program(kmeans, kmeans_pure, lambda r: (r.normal(size=(16, 4)), r.normal(size=(5_000, 4)))),
    Program(adaptive, adaptive_pure, lambda r: (r.uniform(0.1, 0.5, 2_000), 2.0), jax=False),
    Program(time_expanded, time_expanded_pure, lambda r: (r.uniform(size=5_000), 50)),
    Program(thomas, thomas_pure, lambda r: (r.normal(size=300), 4.0 + r.random(300)), and_more=1),
    Program(waves, waves_pure, lambda r: (r.normal(size=100_000),)),
    Program(ldl, ldl_pure, lambda r: (_positive(r, 96),)),
    Program(
        householder, householder_pure, lambda r: (r.normal(size=(96, 96)) + 96.0 * np.eye(96),)
    ),
    Program(
        recursive_filter,
        recursive_filter_pure,
        lambda r: (r.normal(size=1_000), np.array([0.5, -0.3])),
        and_more=1,
    ),
    Program(alignment, alignment_pure, lambda r: (r.uniform(0.5, 1.5, (48, 48)),)),
    Program(shortest_paths, shortest_paths_pure, lambda r: (r.uniform(1.0, 9.0, (64, 64)),)),
    Program(red_black, red_black_pure, lambda r: (r.uniform(-1, 1, 20_001), 50)),
)
