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


def haversines(x: Array) -> float:
    """The adjoint alone asks for the edge of a root, a power or a magnitude, and whether a bound holds."""
    a = np.sin(x) ** 2 * np.cos(x) + np.exp(x)
    bounded = np.clip(np.tanh(x), -0.5, 0.5) + np.maximum(np.sin(x), 0.3)
    smooth = np.sqrt(a) + np.arctan2(a, np.sqrt(1.0 + a)) + np.abs(np.tanh(x)) + a**1.3
    return float((smooth + bounded).sum())


def test_edges_of_adjoints() -> None:
    mutad.check_gradient(mutad.compile(haversines, grad=True), np.linspace(0.1, 0.9, 9))


def in_chain_and_beside(x: Array, y: Array) -> float:
    """Elements that wait for each other, and the same elements side by side."""
    p = 0.0
    for i in range(x.size):
        p = FUNCTION(x[i] + 0.0 * p)
        y[i] = p
    for i in range(x.size):
        y[i] -= FUNCTION(x[i])
    return float((y * y).sum())


FUNCTION = np.sin
"""What `in_chain_and_beside` calls."""


@pytest.mark.parametrize(
    "name", ["exp", "expm1", "tanh", "log", "sin", "cos", "atan", "sinh", "cbrt"]
)
def test_a_function_has_one_version_in_all_loops(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "FUNCTION", getattr(np, name.replace("atan", "arctan")))
    function = mutad.compile(in_chain_and_beside, grad=True, cache=False)
    x = np.random.default_rng(3).uniform(0.1, 9.0, 517)
    y = np.empty_like(x)
    function.value_and_grad(x, y, wrt="x")
    assert np.array_equal(y, np.zeros_like(y))


def powers(x: Array, y: Array, b: float) -> float:
    p = 0.0
    for i in range(x.size):
        p = (x[i] + 0.0 * p) ** 2.7 + b ** x[i] + 3.0 ** x[i]
        y[i] = p
    for i in range(x.size):
        y[i] -= x[i] ** 2.7 + b ** x[i] + 3.0 ** x[i]
    return float((y * y).sum())


def test_powers_have_one_version_in_all_loops() -> None:
    x = np.random.default_rng(3).uniform(0.1, 9.0, 517)
    y = np.empty_like(x)
    mutad.compile(powers, grad=True).value_and_grad(x, y, 1.7, wrt="x")
    assert np.array_equal(y, np.zeros_like(y))
