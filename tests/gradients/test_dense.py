"""Derivatives of factors and of what is solved with them: both modes, both orders, in loops and stacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import linalg

from mutad import check_gradient, compile

RNG = np.random.default_rng(3)
W = RNG.normal(size=(40, 40))


def solved(a, b):
    return (np.linalg.solve(a, b) * np.cos(b)).sum()


def inverse(a, b):
    return (np.linalg.inv(a) * np.sin(a)).sum() * b[0]


def lower(a, b):
    return (np.linalg.cholesky(a) * np.cos(a)).sum() + b[1]


def likelihood(a, b):
    """Of a Gaussian process."""
    low = np.linalg.cholesky(a)
    white = linalg.solve_triangular(low, b, lower=True)
    return -0.5 * (white @ white) - np.log(np.diag(low)).sum() + np.linalg.slogdet(a)[1]


def determinant(a, b):
    return np.linalg.det(a / 2.0) * b[0]


def triangles(a, b):
    x = linalg.solve_triangular(a, b[:, None] * b, trans=1)
    return (x * linalg.solve_triangular(a, x, lower=True, unit_diagonal=True)).sum()


def of_itself(a, b):
    return (np.linalg.solve(a, a) * np.cos(a)).sum() + (
        linalg.cho_solve(linalg.cho_factor(a), b)
    ).sum()


def steps(a, b):
    """The factors of each step are saved, for the next one overwrites them."""
    for _ in range(3):
        b[:] = np.linalg.solve(a, np.sin(b))
        a[0, 1] += b[0]
    return (b**2).sum()


def filter_(a, b):
    """Kalman's, of a matrix `a` of covariances."""
    p, x, total = a.copy(), b.copy(), 0.0
    for k in range(3):
        gain = np.linalg.solve(p + np.eye(a.shape[0]), p).T
        x += gain @ (np.cos(b + k) - x)
        p = p - gain @ p + 0.1 * a
        total += x @ x + np.linalg.slogdet(p)[1]
    return total


def stacks(a, b):
    s = np.stack((a, a.T + np.eye(a.shape[0]), 2.0 * a))
    found = (np.linalg.solve(s, b) * np.linalg.det(s / 2.0)[0]).sum() + (
        np.linalg.inv(s) ** 2
    ).sum()
    return found + (np.linalg.cholesky(s) ** 3).sum() + np.linalg.slogdet(s)[1].sum()


PROGRAMS: tuple[Callable[..., Any], ...] = (
    solved, inverse, lower, likelihood, determinant, triangles, of_itself, steps, filter_, stacks,
)  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_both_modes_both_orders(f):
    minimal, every = (compile(f, grad=True, opt=1, saves=saves) for saves in ("minimal", "all"))
    for n in (2, 5, 30):
        a, b = W[:n, :n] @ W[:n, :n].T / n + 2.0 * np.eye(n), W[0, :n].copy()
        assert minimal(a.copy(), b.copy()) == pytest.approx(f(a.copy(), b.copy()), rel=1e-10)
        check_gradient(minimal, a.copy(), b.copy(), wrt=("a", "b"))
        slopes = [g.grad(a.copy(), b.copy(), wrt=("a", "b")) for g in (minimal, every)]
        for one, other in zip(*slopes, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * abs(one).max())
        if n == 30:
            continue
        direction = W[:n, -n:].copy()
        ways = [
            minimal.hvp(a.copy(), b.copy(), wrt="a", direction=direction, mode=mode)
            for mode in ("forward-over-reverse", "reverse-over-reverse")
        ]
        near = [minimal.grad(a + e * direction, b.copy()) for e in (1e-6, -1e-6)]
        size = max(1.0, abs(ways[0]).max())
        np.testing.assert_allclose(ways[0], ways[1], atol=1e-9 * size)
        np.testing.assert_allclose(ways[0], (near[0] - near[1]) / 2e-6, atol=1e-5 * size)


def test_several_directions():
    """Right-hand sides of vectors: side by side, in one column, and in columns that are apart."""

    def vectors(a, b):
        x = linalg.solve_triangular(a, b[:, None] * b, trans=1)
        return np.linalg.solve(a, b) + np.linalg.cholesky(a) @ b + x[:, 0]

    f = compile(vectors, grad=True, opt=1)
    a, b = W[:5, :5] @ W[:5, :5].T + np.eye(5), W[0, :5].copy()
    expected = np.empty((5, 5, 5))
    for i, j in np.ndindex(5, 5):
        d = np.zeros((5, 5))
        d[i, j] = 1e-6
        expected[:, i, j] = (vectors(a + d, b) - vectors(a - d, b)) / 2e-6
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(f.jacobian(a, b, wrt="a", mode=mode), expected, atol=1e-6)
    g = compile(likelihood, grad=True, opt=1)
    hessian = g.hessian(a, b, wrt="a")
    for i, j in np.ndindex(5, 5):
        d = np.zeros((5, 5))
        d[i, j] = 1.0
        np.testing.assert_allclose(
            hessian[:, :, i, j], g.hvp(a, b, wrt="a", direction=d), atol=1e-10
        )


def test_factors_are_saved_and_not_each_step():
    f = compile(steps, grad=True, opt=1)
    n, kept = 24, 3
    a, b = W[:n, :n] + 9.0 * np.eye(n), W[0, :n].copy()
    saved = f.explain(a, b, wrt=("a", "b")).saved_bytes
    assert saved <= kept * 8 * (n * n + 4 * n + 2)
    once = compile(solved, grad=True, opt=1)
    assert once.explain(a, b, wrt=("a", "b")).saved_bytes == 0


def test_ill_conditioned_and_singular_matrices():
    """Derivatives as good as two solutions are; those of a determinant where there is no inverse."""
    h, ones = linalg.hilbert(7), np.ones(7)
    found = compile(lambda a, b: np.linalg.solve(a, b).sum(), grad=True, opt=1).grad(h, ones)
    expected = -np.outer(np.linalg.solve(h.T, ones), np.linalg.solve(h, ones))
    np.testing.assert_allclose(found, expected, atol=1e-6 * abs(expected).max())
    a = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 5.0]])
    cofactors = [
        [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(3)]
        for i in range(3)
    ]
    found = compile(lambda a: np.linalg.det(a), grad=True, opt=1).grad(a)
    np.testing.assert_allclose(found, cofactors, atol=1e-9)


def test_what_was_undone_is_as_numpy_leaves_it():
    """An exception halfway: what was stored before it stays, and the gradient raises it, too."""

    def stops(a, b):
        b[:] = np.linalg.solve(a, b)
        a[1] = a[0]
        return np.linalg.solve(a, b).sum()

    f = compile(stops, grad=True, opt=1)
    a, b = W[:3, :3].copy(), W[0, :3].copy()
    expected = np.linalg.solve(a, b)
    for call in (f, f.grad):
        x, y = a.copy(), b.copy()
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            call(x, y)
        np.testing.assert_allclose(y, expected)
        np.testing.assert_array_equal(x[1], x[0])
