"""Small programs that other systems get wrong, on arrays of a device: gradients are exact.

By whole arrays; those that go element by element, each from the one before, are no programs of a device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad
from mutad import DeviceArray

pytestmark = pytest.mark.usefixtures("on_a_device")

X, Y, A = np.array([1.5, -2.0, 0.5]), np.array([3.0, 1.0, 2.0]), np.arange(9.0).reshape(3, 3) / 5
K = np.array([0, 2, 2])


def doubled(x):
    x[:] = 2 * x
    return x.sum()


def squared_by_elements(x):
    for i in range(x.size):
        x[i] = x[i] ** 2
    return x.sum()


def filled(x):
    y = x * x
    x.fill(0)
    return y.sum()


def inner(z, y):
    for i in range(y.size):
        z[i] = 2 * y[i]


def allocated(y):
    z = np.empty_like(y)
    inner(z, y)
    return (z * z).sum()


def axpy(a, x, y):
    y[:] = a * x * y


def in_a_helper(x, y):
    axpy(2.0, x, y)
    return (y * y).sum()


def transposed(x, xt):
    return (xt * x).sum()


def tied(w, x):
    return (w.T @ (w @ x)).sum()


def by_out(x, y):
    np.multiply(x, y, out=x)
    np.sin(x, out=x)
    return x.sum()


def onto_itself(a, b):
    a[...] = a @ b
    return (a * a).sum()


def overwritten(a, c):
    b = a * a
    a[:] = c
    return b.sum() + a.sum()


def stored_over(a, b):
    for i in range(a.size):
        b[i] = a[i] * a[i]
        a[i] = 1.0
    return b.sum()


def in_place(a, b):
    a *= b
    a /= b + 1
    a **= 2
    return a.sum()


def product(x):
    return np.prod(x)


def computed_before(x, steps):
    w = np.sin(x)
    for _ in range(steps):
        t = x * w
        x[:] = t
    return (x * w).sum()


def loss_overwritten(x, y):
    loss = x**2
    loss *= y
    b = x * y
    loss += b
    b += 100
    return loss.sum()


def indices_changed(x, k):
    y = x[k] ** 2
    k += 1
    x[:] = 0
    return y.sum()


def scratch(x, w):
    s = 0.0
    t = np.empty_like(x)
    for k in range(w.size):
        t[:] = x * w[k]
        s += np.exp(t).sum()
    return s


def early(x):
    for i in range(3):
        x *= x
        if x.sum() > 4.0:
            return x.sum()
    return 0.0


def adaptive(u, tf):
    t = 0.0
    while t < tf:
        dt = min(0.3, tf - t)
        u += dt * u * u
        t += dt
    return u.sum()


def shrinking(u, n):
    k = 0
    while k < n:
        u *= u
        n -= 1
        k += 1
    return u.sum()


def ahead(u):
    u[:-1] = u[1:] * u[1:]
    return (u * u).sum()


def shifted(x):
    x[1:] = x[:-1]
    x[:-1] += x[1:] * x[1:]
    return (x * x).sum()


def stencil(u):
    u[1:-1] = u[:-2] - 2 * u[1:-1] + u[2:]
    return (u * u).sum()


def blocks(a, b):
    b[:2, :2] = a
    b.T[::-1] *= 2.0
    return (b * b).sum()


def last_wins(x, k, v):
    x[k] += v
    return (x * x).sum()


def accumulated(x, k, v):
    np.add.at(x, k, v)
    return (x * x).sum()


def ping_pong(u, v, steps):
    for _ in range(steps):
        v[:] = u * u
        u, v = v, u
    return u.sum()


def kinks(x):
    return (
        np.where(x > 0, np.sqrt(x), 0.0).sum()
        + np.maximum(x, 0).sum()
        + np.abs(x).sum()
        + np.hypot(x, x).sum()
    )


def powers(x, y):
    return (x**y).sum()


def largest(x):
    return x.max()


ZERO = np.array([0.0, -1.0, 4.0])
PROGRAMS: tuple[tuple[Callable[..., Any], tuple[Any, ...], Any], ...] = (
    (doubled, (X,), 2.0 + 0 * X),
    (squared_by_elements, (X,), 2 * X),
    (filled, (X,), 2 * X),
    (allocated, (X,), 8 * X),
    (in_a_helper, (X, Y), 8 * X * Y * Y),
    (tied, (A, X), None),
    (by_out, (X, Y), Y * np.cos(X * Y)),
    (onto_itself, (A, A + 1), None),
    (overwritten, (X, Y), 2 * X),
    (overwritten, (X, 2.0), 2 * X),
    (stored_over, (X, Y), 2 * X),
    (in_place, (X, Y), 2 * X * (Y / (Y + 1)) ** 2),
    (product, (np.full(3, 2.0),), [4.0, 4.0, 4.0]),
    (computed_before, (X, 2), None),
    (loss_overwritten, (X, Y), 2 * X * Y + Y),
    (indices_changed, (X, K), [2 * X[0], 0.0, 4 * X[2]]),
    (scratch, (X, Y), None),
    (early, (X,), 2 * X),
    (adaptive, (X / 9, 1.0), None),
    (shrinking, (X, 3), 4 * X**3),
    (ahead, (X,), None),
    (shifted, (X,), None),
    (stencil, (np.arange(6.0),), None),
    (blocks, (A[:2, :2].copy(), A), 8 * A[:2, :2]),
    (last_wins, (X, K, Y), 2 * (X + [3.0, 0.0, 2.0])),
    (accumulated, (X, K, Y), 2 * (X + [3.0, 0.0, 3.0])),
    (ping_pong, (X, Y, 2), 4 * X**3),
    (ping_pong, (X, Y, 3), 8 * X**7),
    (kinks, (ZERO,), [0.5 + 1.0 + 1.0, -1.0 - math.sqrt(2), 0.25 + 1 + 1 + math.sqrt(2)]),
    (powers, (np.array([0.0, 2.0, 3.0]), np.array([1.0, 0.0, 2.0])), [1.0, 0.0, 6.0]),
    (largest, (np.array([2.0, 2.0, 1.0]),), [0.5, 0.5, 0.0]),
)


@pytest.mark.parametrize(
    ("function", "given", "exact"), PROGRAMS, ids=lambda x: getattr(x, "__name__", "")
)
def test_gradients_are_exact(
    function: Callable[..., Any], given: tuple[Any, ...], exact: Any
) -> None:
    """Against closed forms, and the CPU's; what is left of the arguments is CPython's."""
    compiled = mutad.compile(function, grad=True, opt=1)
    plain, there, here = (
        tuple(put(a) if isinstance(a, np.ndarray) else a for a in given)
        for put in (np.copy, mutad.device_array, np.copy)
    )
    with np.errstate(invalid="ignore"):
        wanted = function(*plain)
    value, gradient = compiled.value_and_grad(*there)
    assert value == pytest.approx(wanted, rel=1e-13)
    found = gradient.copy_to_host()
    np.testing.assert_allclose(found, compiled.grad(*here), rtol=1e-12, atol=1e-13)
    if exact is not None:
        np.testing.assert_allclose(found, exact, rtol=1e-13, atol=1e-13)
    for one, other in zip(there, plain, strict=True):
        if isinstance(one, DeviceArray):
            np.testing.assert_allclose(one.copy_to_host(), other, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "views",
    [lambda x: (x, x), lambda x: (x, x.T), lambda x: (x[:-1], x[1:])],
    ids=("twice", "transpose", "shifted"),
)
def test_gradients_share_memory_as_arguments_do(views: Callable[[Any], Any]) -> None:
    compiled = mutad.compile(transposed, grad=True, opt=1)
    outcomes: list[Any] = []
    for put in (np.copy, mutad.device_array):
        a, b = compiled.grad(*views(put(A)), wrt=(0, 1))
        outcomes.append((a, b) if put is np.copy else (a.copy_to_host(), b.copy_to_host()))
    for one, other in zip(*outcomes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
