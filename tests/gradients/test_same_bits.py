"""What both sweeps compute, and something is compared by, has the same bits in both."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import mutad

Array = np.ndarray


def softmax(x: Array, w: Array, m: Array, k: int) -> float:
    """The entries of `t` are made again in a loop that LLVM vectorizes, and was none that it could."""
    n, d = x.shape
    t, q = np.zeros(k), np.zeros((k, d))
    total = 0.0
    for i in range(n):
        for c in range(k):
            z = x[i, 0] + 0.5 * w[c]
            for e in range(d):
                q[c, e] = math.tanh(x[i, e])
            for e in range(d):
                for f in range(e):
                    z += 0.3 * q[c, f] * m[c, e]
            t[c] = np.sin(z) + 0.1 * (np.sin(w[c]) + 0.1 * z)
        total += z * z + np.exp(t - t.max()).sum()
    return total


def chosen(x: Array, w: Array, m: Array, k: int) -> float:
    """The same with an equality that the program asks for itself."""
    n, d = x.shape
    t, q = np.zeros(k), np.zeros((k, d))
    total = 0.0
    for i in range(n):
        for c in range(k):
            z = x[i, 0] + 0.5 * w[c]
            for e in range(d):
                q[c, e] = math.tanh(x[i, e])
            for e in range(d):
                for f in range(e):
                    z += 0.3 * q[c, f] * m[c, e]
            t[c] = np.sin(z) + 0.1 * (np.sin(w[c]) + 0.1 * z)
        least = t.min()
        total += z * z + np.where(t == least, t * t, 0.0).sum()
    return total


def entries(t: Array, q: Array, x: Array, i: int, w: Array, m: Array) -> float:
    """Fill `t`, in a loop that LLVM does not vectorize; what makes `t` again is a loop that it does."""
    z = 0.0
    for c in range(t.size):
        z = x[i, 0] + 0.5 * w[c]
        for e in range(x.shape[1]):
            q[c, e] = math.tanh(x[i, e])
        for e in range(x.shape[1]):
            for f in range(e):
                z += 0.3 * q[c, f] * m[c, e]
        t[c] = np.sin(z) + 0.1 * (np.sin(w[c]) + 0.1 * z)
    return z


def parity(x: Array, w: Array, m: Array, k: int) -> float:
    """What is no comparison, and hangs on the last bit all the same."""
    t, q, total = np.zeros(k), np.zeros((k, x.shape[1])), 0.0
    for i in range(x.shape[0]):
        z = entries(t, q, x, i, w, m)
        total += z * z + (np.floor(t * 2.0**51) % 2.0 * m[i, k:] ** 2).sum()
    return total


def looked_up(x: Array, w: Array, m: Array, k: int) -> float:
    t, q, total = np.zeros(k), np.zeros((k, x.shape[1])), 0.0
    for i in range(x.shape[0]):
        total += entries(t, q, x, i, w, m) ** 2
        for c in range(k):
            total += m[i, k + int(t[c] * 2.0**51) % 2] ** 2 * t[c]
    return total


def columns(x: Array, w: Array, m: Array, k: int) -> float:
    """Whole arrays: made again in a map that goes another way."""
    z, t, total = m[: k + 1].copy(), np.zeros_like(m[: k + 1]), 0.0
    for _ in range(3):
        t[:] = np.tanh(z) * w[0] + np.exp(z * w[1])
        total += np.sum(np.where(t == t.max(axis=0), t * t, 0.0))
        z = z * z * w[0] + 0.1
    return total + x.sum()


@pytest.mark.parametrize("function", [softmax, chosen, columns])
def test_the_largest_entry_keeps_its_share(function: Callable[..., float]) -> None:
    fast = mutad.compile(function, grad=True, opt=3)
    slow = mutad.compile(function, grad=True, opt=1, saves="all")
    rng, size = np.random.default_rng(1), 16 if function is columns else 4
    for _ in range(10):
        x, w, m = (rng.uniform(0.2, 1.2, shape) for shape in ((13, 2), 5, (17, 8)))
        for found, expected in zip(
            fast.grad(x, w, m, size, wrt=("x", "w", "m")),
            slow.grad(x, w, m, size, wrt=("x", "w", "m")),
            strict=True,
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("function", [parity, looked_up])
def test_the_last_bit_is_that_of_the_value(function: Callable[..., float]) -> None:
    """Half of the slope along the columns that are squared is their part of the value."""
    compiled, k = mutad.compile(function, grad=True, opt=3), 4
    rng = np.random.default_rng(1)
    for _ in range(10):
        x, w, m = (rng.uniform(0.2, 1.2, shape) for shape in ((13, 2), 5, (17, 8)))
        value, slope = compiled.value_and_grad(x, w, m, k, wrt="m")
        without = m.copy()
        without[:, k:] = 0.0
        part = value - function(x, w, without, k)
        np.testing.assert_allclose((m * slope)[:, k:].sum() / 2, part, rtol=1e-9)


def test_only_what_is_compared_is_marked() -> None:
    def sums(x: Array) -> float:
        total = 0.0
        for i in range(x.size):
            y = x[i] + 0.5
            x[i] = np.sin(y) * y
            total += x[i]
        return total

    def text(function: Callable[..., float], *arguments: object) -> str:
        return mutad.compile(function, grad=True, opt=1).inspect("adjoint", *arguments, wrt="x")

    assert "ad.again" not in text(sums, np.ones(3))
    rng = np.random.default_rng(1)
    x, w, m = (rng.uniform(0.2, 1.2, shape) for shape in ((13, 2), 5, (5, 4)))
    assert text(softmax, x, w, m, 4).count("ad.again") == 4


def haversines(x: Array) -> float:
    """The adjoint alone asks for the edge of a root, a power or a magnitude, and whether a bound holds."""
    a = np.sin(x) ** 2 * np.cos(x) + np.exp(x)
    bounded = np.clip(np.tanh(x), -0.5, 0.5) + np.maximum(np.sin(x), 0.3)
    smooth = np.sqrt(a) + np.arctan2(a, np.sqrt(1.0 + a)) + np.abs(np.tanh(x)) + a**1.3
    return float((smooth + bounded).sum())


def test_edges_of_adjoints_mark_nothing() -> None:
    x = np.linspace(0.1, 0.9, 9)
    function = mutad.compile(haversines, grad=True)
    assert "ad.again" not in function.inspect("adjoint", x, wrt="x")
    mutad.check_gradient(function, x)
