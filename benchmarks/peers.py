"""The same kernels for the peers: JAX and PyTorch where functional code is natural, adjoints by hand.

The hand-written adjoints are what a careful programmer writes, compiled by numba: each returns the value
and the gradient with respect to the first array, and saves only what it must.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

ValueAndGrad = Callable[..., Any]


def jax_versions(jax: Any) -> dict[str, Callable[..., Any]]:
    """JAX's spelling of the kernels that have one: pure functions, loops by `fori_loop`."""
    jnp = jax.numpy

    def jacobi(start, steps):
        def sweep(_, u):
            inside = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
            return u.at[1:-1, 1:-1].set(inside)

        return jax.lax.fori_loop(0, steps, sweep, start).sum()

    def burgers(start, nu, steps):
        def step(_, u):
            change = nu * (u[2:] - 2.0 * u[1:-1] + u[:-2]) - 0.05 * (u[2:] ** 2 - u[:-2] ** 2)
            return u.at[1:-1].add(change)

        u = jax.lax.fori_loop(0, steps, step, start)
        return (u * u).sum()

    def nbody(position, velocity, mass, dt, steps):
        def step(_, state):
            x, v = state
            d = x[None] - x[:, None]
            r2 = (d * d).sum(-1) + 0.01
            v = v + dt * ((mass[None] / (r2 * jnp.sqrt(r2)))[..., None] * d).sum(1)
            return x + dt * v, v

        _, v = jax.lax.fori_loop(0, steps, step, (position, velocity))
        return (0.5 * mass * (v * v).sum(-1)).sum()

    def waves(x):
        return (jnp.exp(-0.5 * x * x) * jnp.sin(3.0 * x) + jnp.cos(x) * jnp.log(1.0 + x * x)).sum()

    def two_layers(x, w1, w2):
        return (jnp.tanh(x @ w1) @ w2).sum()

    def axpy_dot(a, x, y):
        return ((y + a * x) * x).sum()

    def black_scholes(*arguments):
        return _black_scholes(jnp, jnp.where, *arguments)

    return {
        "jacobi_slices": jacobi,
        "jacobi_loops": jacobi,
        "burgers": burgers,
        "nbody": nbody,
        "waves": waves,
        "two_layers": two_layers,
        "axpy_dot": axpy_dot,
        "black_scholes": black_scholes,
    }


JAX_STATIC = {"jacobi_slices": (1,), "jacobi_loops": (1,), "burgers": (2,), "nbody": (4,)}
"""Trip counts must be static for JAX to reverse a loop."""


def torch_versions(torch: Any) -> dict[str, Callable[..., Any]]:
    """PyTorch's spelling of the kernels that have one."""

    def jacobi(start, steps):
        u = start
        for _ in range(steps):
            inside = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
            u = u.clone()
            u[1:-1, 1:-1] = inside
        return u.sum()

    def burgers(start, nu, steps):
        u = start
        for _ in range(steps):
            change = nu * (u[2:] - 2.0 * u[1:-1] + u[:-2]) - 0.05 * (u[2:] ** 2 - u[:-2] ** 2)
            u = u.clone()
            u[1:-1] += change
        return (u * u).sum()

    def waves(x):
        return (
            torch.exp(-0.5 * x * x) * torch.sin(3.0 * x) + torch.cos(x) * torch.log(1.0 + x * x)
        ).sum()

    def two_layers(x, w1, w2):
        return (torch.tanh(x @ w1) @ w2).sum()

    def axpy_dot(a, x, y):
        return ((y + a * x) * x).sum()

    def black_scholes(*arguments):
        return _black_scholes(torch, torch.where, *arguments)

    return {
        "jacobi_slices": jacobi,
        "jacobi_loops": jacobi,
        "burgers": burgers,
        "waves": waves,
        "two_layers": two_layers,
        "axpy_dot": axpy_dot,
        "black_scholes": black_scholes,
    }


def _black_scholes(xp, where, spot, strike, years, rate, volatility):
    def cdf(d):
        k = 1.0 / (1.0 + 0.2316419 * xp.abs(d))
        poly = k * (
            0.31938153
            + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
        )
        tail = 0.3989422804014327 * xp.exp(-0.5 * d * d) * poly
        return where(d > 0.0, 1.0 - tail, tail)

    root = xp.sqrt(years)
    d1 = (xp.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / (volatility * root)
    d2 = d1 - volatility * root
    return (spot * cdf(d1) - strike * xp.exp(-rate * years) * cdf(d2)).sum()


# --- adjoints by hand ---------------------------------------------------------------------


def jacobi_by_hand(start, steps):
    """Linear, so nothing is saved; the adjoint stencil is written to gather."""
    u = start.copy()
    v = start.copy()
    n, m = u.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        u, v = v, u
    value = u.sum()
    # The shadow of the grid written last starts as 1; the other grid's as 0.
    u_bar = np.ones((n, m))
    v_bar = np.zeros((n, m))
    for _ in range(steps):
        u_bar, v_bar = v_bar, u_bar
        # v_bar holds the cotangent of what the sweep wrote; gather it into u_bar.
        for i in range(n):
            for j in range(m):
                s = 0.0
                if 1 <= j < m - 1:
                    if i >= 2:
                        s += v_bar[i - 1, j]
                    if i < n - 2:
                        s += v_bar[i + 1, j]
                if 1 <= i < n - 1:
                    if j >= 2:
                        s += v_bar[i, j - 1]
                    if j < m - 2:
                        s += v_bar[i, j + 1]
                u_bar[i, j] += 0.25 * s
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v_bar[i, j] = 0.0
    return value, u_bar + v_bar


def lu_by_hand(matrix):
    """Every value the adjoint reads is final where it is read: nothing is saved."""
    a = matrix.copy()
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            f = a[i, k]
            for j in range(k + 1, n):
                a[i, j] -= f * a[k, j]
    value = 0.0
    bar = np.zeros((n, n))
    for k in range(n):
        value += math.log(abs(a[k, k]))
        bar[k, k] = 1.0 / a[k, k]
    for k in range(n - 1, -1, -1):
        for i in range(n - 1, k, -1):
            f = a[i, k]
            f_bar = 0.0
            for j in range(k + 1, n):
                f_bar -= bar[i, j] * a[k, j]
            for j in range(k + 1, n):
                bar[k, j] -= bar[i, j] * f
            f_bar += bar[i, k]
            bar[i, k] = f_bar / a[k, k]
            bar[k, k] -= f_bar * f / a[k, k]
    return value, bar


def burgers_by_hand(start, nu, steps):
    """Saves one grid a step."""
    n = start.size
    saved = np.empty((steps + 1, n))
    saved[0] = start
    for t in range(steps):
        u = saved[t]
        w = saved[t + 1]
        w[0] = u[0]
        w[n - 1] = u[n - 1]
        for i in range(1, n - 1):
            w[i] = (
                u[i]
                + nu * (u[i + 1] - 2.0 * u[i] + u[i - 1])
                - 0.05 * (u[i + 1] ** 2 - u[i - 1] ** 2)
            )
    value = (saved[steps] ** 2).sum()
    bar = 2.0 * saved[steps]
    before = np.empty(n)
    for t in range(steps - 1, -1, -1):
        u = saved[t]
        bar, before = before, bar
        for i in range(n):
            s = before[i]
            if 1 <= i < n - 1:
                s -= 2.0 * nu * before[i]
            if i >= 2:
                s += before[i - 1] * (nu - 0.1 * u[i])
            if i < n - 2:
                s += before[i + 1] * (nu + 0.1 * u[i])
            bar[i] = s
    return value, bar


def axpy_dot_by_hand(a, x, y):
    """With respect to x and y."""
    z = y.copy()
    total = 0.0
    for i in range(x.size):
        z[i] += a * x[i]
    for i in range(x.size):
        total += z[i] * x[i]
    x_bar = np.empty_like(x)
    y_bar = np.empty_like(y)
    for i in range(x.size):
        x_bar[i] = z[i] + a * x[i]
        y_bar[i] = x[i]
    return total, (x_bar, y_bar)


def waves_by_hand(x):
    """The derivative as one more expression."""
    bell = np.exp(-0.5 * x * x)
    sine = np.sin(3.0 * x)
    cosine = np.cos(x)
    square = 1.0 + x * x
    logarithm = np.log(square)
    value = (bell * sine + cosine * logarithm).sum()
    slope = (
        bell * (3.0 * np.cos(3.0 * x) - x * sine)
        - np.sin(x) * logarithm
        + cosine * 2.0 * x / square
    )
    return value, slope


BY_HAND: dict[str, ValueAndGrad] = {
    "jacobi_slices": jacobi_by_hand,
    "jacobi_loops": jacobi_by_hand,
    "lu": lu_by_hand,
    "burgers": burgers_by_hand,
    "axpy_dot": axpy_dot_by_hand,
    "waves": waves_by_hand,
}


def jax_value_and_grad(
    jax: Any, name: str, function: Callable[..., Any], positions: Any
) -> ValueAndGrad:
    """Compiled `value_and_grad` that waits for its results."""
    made = jax.jit(jax.value_and_grad(function, positions), static_argnums=JAX_STATIC.get(name, ()))
    return lambda *arguments: jax.block_until_ready(made(*arguments))


def torch_value_and_grad(
    torch: Any, function: Callable[..., Any], positions: tuple[int, ...]
) -> ValueAndGrad:
    """Eager PyTorch: forward, backward, gradients as NumPy arrays."""

    def call(*arguments):
        tensors = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments]
        for p in positions:
            tensors[p] = tensors[p].detach().requires_grad_()
        value = function(*tensors)
        gradients = torch.autograd.grad(value, [tensors[p] for p in positions])
        return float(value.detach()), tuple(g.numpy() for g in gradients)

    return partial(call)
