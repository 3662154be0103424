"""Linear algebra in JAX: as written, columns under masks; by an expert, library calls and products."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

loop = lax.fori_loop


class Written:
    @staticmethod
    def lu(matrix):
        n = matrix.shape[0]
        index = jnp.arange(n)

        def eliminate(k, a):
            column = jnp.where(index > k, a[:, k] / a[k, k], 0.0)
            a = a - jnp.outer(column, jnp.where(index > k, a[k], 0.0))
            return a.at[:, k].set(jnp.where(index > k, column, a[:, k]))

        a = loop(0, n, eliminate, matrix)
        return jnp.log(jnp.abs(jnp.diag(a))).sum()

    lu_outer = lu_slices = lu

    @staticmethod
    def cholesky(matrix):
        n = matrix.shape[0]
        index = jnp.arange(n)

        def column(j, a):
            done = jnp.where(index < j, a[j], 0.0)
            pivot = jnp.sqrt(a[j, j] - done @ done)
            new = (a[:, j] - jnp.where(index[None] < j, a, 0.0) @ done) / pivot
            new = jnp.where(index > j, new, jnp.where(index == j, pivot, a[:, j]))
            return a.at[:, j].set(new)

        return jnp.tril(loop(0, n, column, matrix)).sum()

    @staticmethod
    def gramschmidt(matrix):
        n = matrix.shape[1]
        index = jnp.arange(n)

        def column(k, state):
            a, q, r = state
            length = jnp.sqrt(a[:, k] @ a[:, k])
            one = a[:, k] / length
            row = jnp.where(index > k, one @ a, 0.0)
            r = r.at[k].set(jnp.where(index == k, length, row))
            return a - jnp.outer(one, row), q.at[:, k].set(one), r

        state = (matrix, jnp.zeros_like(matrix), jnp.zeros((n, n)))
        _, q, r = loop(0, n, column, state)
        return (r * r * r).sum() + q.sum()

    @staticmethod
    def trmm(lower, b, alpha):
        n = b.shape[0]
        index = jnp.arange(n)

        def row(i, x):
            return x.at[i].set(alpha * (x[i] + jnp.where(index > i, lower[:, i], 0.0) @ x))

        x = loop(0, n, row, b)
        return (x * x).sum()

    @staticmethod
    def syrk(a, c, alpha, beta):
        n = a.shape[0]
        index = jnp.arange(n)

        def row(i, x):
            return x.at[i].set(jnp.where(index <= i, beta * x[i] + alpha * (a @ a[i]), x[i]))

        x = loop(0, n, row, c)
        return (x * x).sum()

    @staticmethod
    def durbin(r):
        n = r.size
        index = jnp.arange(n)

        def step(k, state):
            y, alpha, beta = state
            back = k - 1 - index
            beta = beta * (1.0 - alpha * alpha)
            alpha = -(r[k] + jnp.where(back >= 0, r[back], 0.0) @ y) / beta
            y = y + alpha * jnp.where(back >= 0, y[back], 0.0)
            return y.at[k].set(alpha), alpha, beta

        y, _, _ = loop(1, n, step, (jnp.zeros(n).at[0].set(-r[0]), -r[0], 1.0))
        return (y * y).sum()

    @staticmethod
    def correlation(data):
        columns = data.shape[1]
        away = scaled(data)
        index = jnp.arange(columns)

        def column(i, found):
            products = jnp.where(index > i, away[:, i] @ away, 0.0)
            return found.at[:, i].add(products).at[i, :].add(products)

        found = loop(0, columns - 1, column, jnp.eye(columns))
        return (found * found * found).sum()

    @staticmethod
    def recurrence(x, a, b):
        def step(i, state):
            s, total = state
            s = a * jnp.sin(s) + b * jnp.cos(x[i] * s)
            return s, total + s * x[i]

        return loop(0, x.size, step, (0.5, 0.0))[1]


def scaled(data):
    rows = data.shape[0]
    away = data - data.sum(axis=0) / rows
    deviation = jnp.sqrt((away * away).sum(axis=0) / rows)
    return away / (jnp.sqrt(1.0 * rows) * deviation)


class Expert:
    @staticmethod
    def lu(matrix):
        return jnp.linalg.slogdet(matrix)[1]

    lu_outer = lu_slices = lu

    @staticmethod
    def cholesky(matrix):
        whole = jnp.tril(matrix) + jnp.tril(matrix, -1).T
        return jnp.linalg.cholesky(whole, symmetrize_input=False).sum()

    @staticmethod
    def gramschmidt(matrix):
        q, r = jnp.linalg.qr(matrix)
        sign = jnp.sign(jnp.diag(r))
        r = r * sign[:, None]
        return (r * r * r).sum() + (q * sign).sum()

    @staticmethod
    def trmm(lower, b, alpha):
        x = alpha * (b + jnp.tril(lower, -1).T @ b)
        return (x * x).sum()

    @staticmethod
    def syrk(a, c, alpha, beta):
        x = jnp.tril(alpha * (a @ a.T) + beta * c) + jnp.triu(c, 1)
        return (x * x).sum()

    @staticmethod
    def durbin(r):
        """Reversed vectors are slices of padded ones: no gathers."""
        n = r.size
        zeros = jnp.zeros(n)
        backwards = jnp.concatenate([r[::-1], zeros])

        def step(state, now):
            y, alpha, beta = state
            k, rk = now
            beta = beta * (1.0 - alpha * alpha)
            alpha = -(rk + lax.dynamic_slice(backwards, (n - k,), (n,)) @ y) / beta
            turned = lax.dynamic_slice(jnp.concatenate([y[::-1], zeros]), (n - k,), (n,))
            y = y + alpha * turned + jnp.where(jnp.arange(n) == k, alpha, 0.0)
            return (y, alpha, beta), None

        start = (zeros.at[0].set(-r[0]), -r[0], 1.0)
        (y, _, _), _ = lax.scan(step, start, (jnp.arange(1, n), r[1:]))
        return (y * y).sum()

    @staticmethod
    def correlation(data):
        away = scaled(data)
        found = away.T @ away
        one = jnp.eye(found.shape[0])
        found = found * (1.0 - one) + one
        return (found * found * found).sum()

    @staticmethod
    def recurrence(x, a, b):
        def step(s, x):
            s = a * jnp.sin(s) + b * jnp.cos(x * s)
            return s, s

        _, states = lax.scan(step, 0.5, x, unroll=4)
        return states @ x


OTHER_ALGORITHMS = {"lu", "lu_outer", "lu_slices", "cholesky", "gramschmidt"}
"""The expert calls LAPACK, which blocks; gradients by formulas of whole matrices."""
