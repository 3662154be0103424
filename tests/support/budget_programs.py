"""Loops whose gradients keep to a budget, with arguments; and what comes of a call, bit for bit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

import mutad


def stencil(u, k, steps):
    for _ in range(steps):
        u[1:-1] -= k * u[1:-1] * (u[2:] - u[:-2])
    return (u * u).sum()


def swapped(u, k, steps):
    v = u.copy()
    for _ in range(steps):
        v[1:-1] = u[1:-1] - k * u[1:-1] * (u[2:] - u[:-2])
        u, v = v, u
    return (u * u).sum()


def three_in_turn(u, v, w, steps):
    for _ in range(steps):
        w[:] = u * v + 0.1 * w
        u, v, w = v, w, u
    return (u + v * 2.0 + w * 3.0).sum()


def numbers_and_branches(u, k, steps):
    s, t, n = 0.0, 1.0, 0
    for i in range(steps):
        t = t * np.sin(u[i % u.size] * k) + s
        if t > 0.3:
            s += t * t
            n += 1
        u[i % u.size] = t * u[(i + 1) % u.size]
    return s + t * n


def overwritten_later(u, w, steps):
    for _ in range(steps):
        u[1:] = u[1:] * w[:-1] + np.cos(u[:-1])
    w *= 2.0
    return (u * w).sum()


def several_local_arrays(u, steps):
    a, b = np.zeros_like(u), np.ones(u.shape)
    for _ in range(steps):
        a[:] = u * b
        b[:] = np.tanh(a) + 0.5 * b
        u += a * b
    return (u * b + a).sum()


def with_scratch(u, k, steps):
    first, second = np.empty_like(u), np.empty_like(u)
    for _ in range(steps):
        first[:] = u * u * k
        second[1:-1] = u[1:-1] * first[2:] + first[:-2]
        u[1:-1] = second[1:-1]
    return u.sum() + first.sum()


def two_axes(u, k, steps):
    for _ in range(steps):
        north = u[1:, :] - u[:-1, :]
        u[1:, :] -= k * north * north
        u[:, 1:] += 0.01 * u[:, :-1] * u[:, 1:]
    return (u**2).sum()


def nested(u, steps, inner):
    for _ in range(steps):
        for _ in range(inner):
            u[1:-1] += 0.01 * u[1:-1] * (u[2:] - u[:-2])
        u *= 1.0 - 0.001 * u
    return u.sum()


def growing_steps(u, steps):
    for i in range(steps):
        for j in range(i):
            u[j] = np.sin(u[j] * u[i])
    return u.sum()


def integers(u, index, steps):
    for t in range(steps):
        for i in range(u.size):
            u[i] = u[i] * u[index[i]] * 0.9
            index[i] = (index[i] + t) % u.size
    return u.sum()


def before_and_after(u, k, steps):
    s = k * 2.0
    for _ in range(steps):
        u *= s * u * 0.5
        s = s * 0.99 + u[0] * k
    for i in range(u.size):
        u[i] = u[i] * k
    return u.sum() * s


def two_loops(u, steps):
    for _ in range(steps):
        u[1:] *= np.cos(u[:-1])
    s = u.sum()
    for _ in range(steps):
        u *= u * 0.5 + 0.5
    return s * u.sum()


def after_each_other(u, w, steps, more):
    for _ in range(steps):
        u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
    s = (u * u).sum()
    for _ in range(more):
        w[1:-1] += 0.05 * w[1:-1] * u[2:] * w[:-2]
        u *= 1.0 - 0.01 * w
    for _ in range(steps):
        w[:-1] = w[1:] * w[:-1] + 0.1
    return s + (u * w).sum()


def in_branches(u, k, steps, which):
    if which > 0:
        c = k * 2.0
        for i in range(steps + which):
            u[1:-1] -= c * u[1:-1] * (u[2:] - u[:-2]) * (i % which)
    else:
        for _ in range(steps):
            u *= 1.0 - k * u
    for _ in range(steps):
        u *= np.sin(u + k)
    return (u * u).sum()


def left_early(u, steps, least):
    for _ in range(steps):
        u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
        u *= 0.97
        if u[0] < least:
            break
        u += 0.01 * u * u
    return (u * u).sum()


def returned_early(u, steps, least):
    for _ in range(steps):
        u *= 1.0 - 0.02 * u
        if u[0] < least:
            return (u * u).sum()
    return u.sum()


def until_small(u, least):
    count = 0
    while (u * u).sum() > least:
        u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
        u *= 0.99
        count += 1
    return (u * u).sum() * count


def until_small_in_turn(u, least):
    v = u.copy()
    while u[0] > least:
        v[:] = u * (1.0 - 0.02 * u)
        u, v = v, u
    return (u * v).sum()


def downwards(u, steps):
    for i in range(steps, 0, -2):
        u *= u * 0.9 + 0.1
        u[i] *= u[i - 1]
    return u.sum()


def sweeps(u, w, steps, inner):
    for _ in range(steps):
        t = u * w
        for _ in range(inner):
            t[1:-1] += 0.1 * t[1:-1] * w[2:] * (t[2:] - t[:-2])
        u[:] = 0.5 * u * t + 0.1 * np.sin(t)
        w *= 0.9 + 0.1 * u
    return (u * w).sum()


def two_in_each(u, w, steps, inner):
    for _ in range(steps):
        q = u * u
        for _ in range(inner):
            u[1:-1] += 0.1 * u[1:-1] * w[2:] * (u[2:] - u[:-2])
        u *= q
        for _ in range(inner):
            w[1:-1] += 0.1 * w[1:-1] * u[2:] * (w[2:] - w[:-2])
        w += 0.01 * q * w
    return (u * w).sum()


def sweeps_until_small(u, inner, least):
    while u[0] > least:
        for _ in range(inner):
            u[1:-1] += 0.1 * u[1:-1] * (u[2:] - u[:-2])
            if u[1] < least:
                break
        u *= 0.98
    return (u * u).sum()


def three_deep(u, w, n, m, k):
    for _ in range(n):
        for _ in range(m):
            q = u * w
            for _ in range(k):
                q[1:-1] += 0.1 * q[1:-1] * (q[2:] - q[:-2])
                w *= 1.0 - 0.01 * q
            u[:] = 0.5 * u + 0.3 * np.sin(q)
        w[1:] *= 0.9 + 0.1 * u[:-1]
    return (u * w).sum()


def four_deep(u, n, m, least):
    for t in range(n):
        for _ in range(m):
            u *= 1.0 - 0.01 * u
            for _ in range(t):
                u[1:] = u[1:] * np.cos(u[:-1])
                for _ in range(m):
                    u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
                if u[0] < least:
                    break
            for _ in range(m):
                u += 0.01 * u * u
    return (u * u).sum()


def until_none_is_large(u, most, least):
    """A `while` of which each step has a `while` that saves numbers."""
    while u.max() > most:
        u *= 1.0 - 0.01 * u
        k = 0
        while u[0] > least and k < 7:
            u[0] *= 0.999 * np.cos(u[0])
            k += 1
    return (u * u).sum()


def point_by_point(u, k, steps):
    n = u.shape[0]
    for _ in range(steps):
        left = u[0]
        for i in range(1, n - 1):
            here = u[i]
            u[i] = here - 0.2 * here * (here - left) + k * (u[i + 1] - 2.0 * here + left)
            left = here
    return (u * u).sum()


def raising_within(u, steps, bad):
    for t in range(steps):
        u *= 1.0 + 0.01 * u
        for k in range(steps):
            u[1:] *= 1.0 - 0.001 * u[:-1]
            if t == bad and k == 3:
                raise ValueError(f"step {t}")
    return u.sum()


def recorded(u, h, steps):
    for t in range(steps):
        u *= u
        u += 0.1
        h[t] = u
    return (h**3).sum() + u.sum()


def raising(u, steps, bad):
    for t in range(steps):
        u *= 1.0 + 0.01 * u
        if t == bad:
            raise ValueError(f"step {t}")
    return u.sum()


CHANCE = np.random.default_rng(3)


def counted_by_elements(u, turns):
    """How often the inner loop runs is known when it begins."""
    for t in range(turns.size):
        for _ in range(turns[t]):
            u[:] = np.sin(u) * u + 0.3
        u *= 0.9
    return u.sum()


def more_and_more(u):
    """So is how much a step saves."""
    n = 1
    while u[0] < 1.0:
        for i in range(n):
            u *= u + 0.5 / (i + 1)
        n += 1
    return u.sum()


def filled_in_a_branch(u, y, steps):
    """Which steps have the array is dynamic; that it is no larger than in the branch is known."""
    total = 0.0
    for t in range(steps):
        if y[t] > 0.5:
            v = np.empty((3, u.size))
            for j in range(3):
                u[:] = np.sin(u) * u + 0.3
                v[j] = u * u
            for j in range(3):
                total += np.sum(v[j] ** 3)
        u *= 0.9
    return u.sum() + total


def determinants(a, y):
    """Of a singular matrix the derivative is that of a polynomial, by products of matrices."""
    total = 0.0
    for t in range(y.size):
        a = 0.9 * a
        a[0] *= y[t]
        total += np.linalg.det(a) * y[t]
    return total


def sweeps_in_a_branch(u, steps, inner):
    """Of the loop in each step there may be none: its sizes are known before."""
    for i in range(steps):
        for k in range(inner):
            u[k] *= u[k + 1]
            u = np.sin(u) + i
        u[0] += 1.0
    return u.sum()


def some(*shape: int) -> np.ndarray:
    return CHANCE.uniform(0.2, 0.9, shape)


def chained(x, following, turns):
    """The steps of steps read an array, as it lies, that is overwritten after them."""
    total = 0.0
    for _ in range(turns):
        k = x.shape[0] - 1
        while k >= 0:
            total += np.sin(x[k, 0] * total + x[k, 1])
            k = following[k]
        x *= 0.9
    return total


def stages(x, w, h, steps):
    """Sums over steps that only sines hand on: their derivatives may come in any order."""
    z, e = np.arange(x.size) * 0.01, np.zeros(x.size)
    for _ in range(steps):
        z = np.sin(z) + 0.1 * z * z
        t = np.sin(x * z)
        e += h * t * np.cos(t)
    x = x * e
    for _ in range(steps):
        z = np.cos(z) + 0.1 * z * z
        t = np.sin(w * z) * np.cos(x * z)
        e += h * t * np.cos(t)
    for _ in range(steps):
        x *= np.sin(x) * h
    return (e * e).sum() + x.sum()


def stages_in_each_step(x, c, h, steps):
    """Steps with loops that go upwards, and others."""
    z = np.arange(x.size) * 0.01
    for _ in range(steps):
        e = np.zeros(x.size)
        for q in range(c.size):
            z = np.sin(z) + 0.1 * z * z
            t = np.sin(x * z) * c[q]
            e += h * t * np.cos(t)
        for q in range(c.size):
            x[1:] *= np.cos(x[:-1] * c[q])
        x = 0.9 * x + e
    return (x * x).sum()


def some_stages_in_each_step(x, turns, h, bad):
    """Elements say how many; one may raise."""
    z = np.arange(x.size) * 0.01
    for i in range(turns.size):
        e = np.zeros(x.size)
        for q in range(turns[i]):
            z = z * 0.9 + 0.3
            t = np.sin(x * z)
            e += h * t * np.cos(t)
            if i == bad and q == 2:
                raise ValueError(f"step {i}")
        x = np.sin(x) * (1.0 + e)
    return (x * x).sum() + z.sum()


STAGED = np.random.default_rng(1).normal(size=46)
TURNS = np.array([3, 0, 7, 1, 2, 5])

ROWS: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[str, ...]]] = [
    (stencil, (some(40), 0.1, 60), ("u", "k")),
    (stencil, (some(21).astype(np.float32), np.float32(0.1), 25), ("u", "k")),
    (stencil, (some(40)[::-2], 0.1, 25), ("u",)),
    (stencil, (some(40), 0.1, 2), ("k",)),
    (swapped, (some(40), 0.1, 31), ("u", "k")),
    (three_in_turn, (some(20), some(20), some(20), 25), ("u", "w")),
    (numbers_and_branches, (some(7), 0.7, 60), ("u", "k")),
    (overwritten_later, (some(50), some(50), 40), ("u", "w")),
    (several_local_arrays, (some(50), 40), ("u",)),
    (with_scratch, (some(50), 0.3, 40), ("u", "k")),
    (two_axes, (some(12, 9), 0.01, 30), ("u", "k")),
    (two_axes, (np.asfortranarray(some(12, 9)), 0.01, 30), ("u", "k")),
    (two_axes, (some(24, 18)[::2, ::-2], 0.01, 30), ("u", "k")),
    (nested, (some(40), 20, 5), ("u",)),
    (growing_steps, (some(30), 25), ("u",)),
    (integers, (some(20), np.arange(20)[::-1].copy(), 25), ("u",)),
    (before_and_after, (some(20), 0.9, 25), ("u", "k")),
    (two_loops, (some(20), 25), ("u",)),
    (recorded, (some(20), np.zeros((30, 20)), 25), ("u", "h")),
    (raising, (some(20), 25, 11), ("u",)),
    (raising, (some(20), 25, 99), ("u",)),
    (after_each_other, (some(30), some(30), 15, 20), ("u", "w")),
    (after_each_other, (some(30), some(30), 9, 0), ("u", "w")),
    (in_branches, (some(20), 0.1, 15, 3), ("u", "k")),
    (left_early, (some(30), 60, 0.1), ("u",)),
    (left_early, (some(30), 7, 0.0), ("u",)),
    (returned_early, (some(30), 60, 0.15), ("u",)),
    (until_small, (some(30), 0.5), ("u",)),
    (until_small, (some(30), 500.0), ("u",)),
    (until_small_in_turn, (some(30), 0.1), ("u",)),
    (downwards, (some(30), 29), ("u",)),
    (sweeps, (some(30), some(30), 12, 9), ("u", "w")),
    (sweeps, (some(30), some(30), 4, 0), ("u", "w")),
    (two_in_each, (some(30), some(30), 9, 7), ("u", "w")),
    (sweeps_until_small, (some(30), 6, 0.1), ("u",)),
    (raising_within, (some(12), 9, 5), ("u",)),
    (three_deep, (some(20), some(20), 6, 5, 4), ("u", "w")),
    (three_deep, (some(20), some(20), 2, 0, 4), ("u", "w")),
    (four_deep, (some(20), 5, 4, 0.1), ("u",)),
    (until_none_is_large, (some(30), 0.4, 0.3), ("u",)),
    (
        counted_by_elements,
        (
            some(30),
            np.array([3, 0, 7, 1, 5]),
        ),
        ("u",),
    ),
    (more_and_more, (np.full(3, 0.9),), ("u",)),
    (filled_in_a_branch, (some(20), some(30), 30), ("u",)),
    (determinants, (np.eye(5) + some(5, 5), some(9)), ("a", "y")),
    (determinants, (np.eye(4) + some(4, 4), some(9) * np.eye(9)[0]), ("a", "y")),
    (sweeps_in_a_branch, (some(9), 6, 7), ("u",)),
    (sweeps_in_a_branch, (some(9), 6, 0), ("u",)),
    (chained, (np.asfortranarray(CHANCE.normal(size=(7, 2))), np.arange(7) - 1, 5), ("x",)),
    (chained, (CHANCE.normal(size=(14, 6))[::2, 1::3], np.arange(7) - 1, 5), ("x",)),
    (stages, (STAGED[:37].copy(), STAGED[9:].copy(), 0.1, 30), ("x", "w", "h")),
    (stages, (STAGED[:37].copy(), STAGED[9:].copy(), 0.1, 2), ("x", "h")),
    (stages_in_each_step, (STAGED[:37].copy(), STAGED[37:].copy(), 0.1, 6), ("x", "c", "h")),
    (some_stages_in_each_step, (STAGED[:37].copy(), TURNS, 0.1, -1), ("x", "h")),
    (some_stages_in_each_step, (STAGED[:37].copy(), TURNS, 0.1, 2), ("x", "h")),
]


def convolved(x, w, steps):
    """In each step a nest whose adjoint adds to elements again and again."""
    for _ in range(steps):
        out = np.zeros((x.shape[0] - 2, x.shape[1]))
        for i in range(out.shape[0]):
            for a in range(3):
                for f in range(x.shape[1]):
                    out[i, f] += x[i + a, f] * w[a, f]
        x[1:-1] = np.sin(out)
    return (x * x).sum()


def convolved_row_by_row(x, w):
    """The steps are the rows of the nest."""
    total = 0.0
    for i in range(x.shape[0] - 3):
        row = np.zeros(x.shape[1])
        for a in range(3):
            for f in range(x.shape[1]):
                row[f] += x[i + a, f] * w[a, f]
        x[i + 3] += row * x[i + 2]
        total += (row * row).sum()
    return total


def orthonormal(matrix):
    """The nest goes through columns, in copies; one step of it sees them as they lie."""
    a = matrix.copy()
    n = a.shape[1]
    q, r = np.zeros_like(a), np.zeros((n, n))
    for k in range(n):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return (r * r * r).sum() + q.sum()


def orthonormal_in_place(a):
    """The caller's matrix, and its shadow."""
    n = a.shape[1]
    r = np.zeros((n, n))
    for k in range(n):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        a[:, k] /= r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.dot(a[:, k], a[:, j])
            a[:, j] -= a[:, k] * r[k, j]
    return (r * r * r).sum() + a[0].sum()


def columns_in_each_step(a, steps):
    for _ in range(steps):
        for k in range(a.shape[1]):
            for j in range(k):
                a[:, k] -= 0.1 * a[:, j] * np.dot(a[:, j], a[:, k])
        a += 0.01 * a * a
    return (a * a).sum()


def columns_read_in_each_step(a, x, steps):
    for _ in range(steps):
        for k in range(a.shape[1]):
            x[k % x.size] += 0.1 * np.dot(a[:, k], a[:, k]) * x[(k + 1) % x.size]
        x *= 0.5 * x
    return x.sum()


VECTOR_ROWS: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[str, ...]]] = [
    (convolved, (some(20, 19), some(3, 19), 6), ("x", "w")),
    (convolved_row_by_row, (some(30, 21), some(3, 21)), ("x", "w")),
    (orthonormal, (CHANCE.normal(size=(48, 24)),), ("matrix",)),
    (orthonormal_in_place, (CHANCE.normal(size=(45, 33)),), ("a",)),
    (columns_in_each_step, (CHANCE.normal(size=(45, 13)) / 3, 5), ("a",)),
    (columns_read_in_each_step, (some(45, 23), some(23), 6), ("a", "x")),
]
"""Sums of many terms, which are added up in vectors."""


def compiled(function: Callable[..., Any], memory: Any, opt: int = 1) -> mutad.CompiledFunction:
    return mutad.compile(function, grad=True, opt=opt, memory=memory)


def copies(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """With the strides of the arrays."""
    found: list[Any] = []
    for one in arguments:
        if isinstance(one, np.ndarray) and one.base is not None:
            whole = one.base.copy(order="K")
            offset = one.__array_interface__["data"][0] - one.base.__array_interface__["data"][0]
            found.append(np.ndarray(one.shape, one.dtype, whole, offset, one.strides))
        else:
            found.append(one.copy(order="K") if isinstance(one, np.ndarray) else one)
    return tuple(found)


def outcome(
    function: mutad.CompiledFunction, arguments: tuple[Any, ...], wrt: tuple[str, ...]
) -> list[bytes]:
    """The value, the gradients and what the arrays hold afterwards, bit for bit; or the exception."""
    given = copies(arguments)
    try:
        value, gradients = function.value_and_grad(*given, wrt=wrt)
    except ValueError as error:
        value, gradients = 0.0, (np.frombuffer(str(error).encode(), np.uint8),)
    return [np.asarray(x).tobytes() for x in (value, *gradients, *given)]


def least_of(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    wrt: tuple[str, ...],
    disk: str = "",
    opt: int = 1,
) -> tuple[int, list[bytes]]:
    """The least budget, by what errors say: those of loops that come later know of those before.

    A byte is seldom enough: code that ends with that error needs no level of LLVM.
    """
    least, level = 1, min(opt, 1)
    for _ in range(5):
        given = (least, disk) if disk else least
        try:
            found = outcome(compiled(function, given, level), arguments, wrt)
            if level == opt:
                return least, found
        except MemoryError as error:
            told = re.search(r"at least (\d+)", str(error))
            assert told is not None
            assert int(told[1]) > least
            least = int(told[1])
        level = opt
    raise AssertionError(f"no budget is enough, not even {least}")
