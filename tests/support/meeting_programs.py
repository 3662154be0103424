"""Array programs whose threads, or those of whose gradients, meet in elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from device_programs import Arguments, bodies, waves

KS = np.array([0, 3, 3, 1, -1, 3])


def added_at(u, k, v):
    np.add.at(u, k, v)
    return (u * u).sum()


def gathered(x, k, m):
    return (x[k] * x[m]).sum()


def counted_in_bins(h, k):
    for i in range(k.size):
        h[k[i]] += 1
    return h.sum()


def weighed_in_bins(k, w):
    return (np.bincount(k, w, 5) ** 2).sum()


def largest_at(u, k, v):
    np.maximum.at(u, k, v)
    return (u * u).sum()


def stored_at(u, k, v):
    u[k] = v
    return (u * u).sum()


def chosen_by_what_is_there(u, k, v, y):
    for i in range(k.size):
        t, s = u[k[i]], v[i] * y[i]
        if t < 2.0:
            y[i] = t * s
        u[k[i]] = t * s + 1.0
    return (u * u).sum() + y.sum()


def bins_of_two_axes(h, i, j, w):
    for a in range(i.shape[0]):
        for b in range(i.shape[1]):
            h[i[a, b], j[a, b]] += w[a, b] * h[i[a, b], j[a, b]]
    return (h * h).sum()


def weights_of_all(x, a, y):
    for i in range(x.size):
        if x[i] > 1.5:
            y[i] = x[i] * a[0] + x[i] * x[i] * a[1]
        else:
            y[i] += a[1]
    return (y * y).sum()


def neurons(x, w, y):
    n, m = x.shape
    for i in range(n):
        s = 0.0
        for j in range(m):
            s += np.tanh(x[i, j] * w[j])
        y[i] = s * w[0]
    return (y * y).sum()


def polynomials(x, a, y):
    for i in range(x.size):
        s = 0.0
        for j in range(a.size):
            s = s * x[i] + a[j]
        y[i] = s
    return (y * y).sum()


def rows_and_columns(x, w, v, y):
    n, m = x.shape
    for i in range(n):
        s = v[i]
        for j in range(m):
            if x[i, j] > 1.0:
                s += x[i, j] * w[j] * v[i]
            else:
                s -= w[m - 1 - j]
        y[i] = s
        v[i] = s
    return (y * y).sum()


def mean_in_single(x, k, y):
    for i in range(k.size):
        y[i] = x[k[i]] * x[k[i]] * np.float32(0.5)
    return y.sum()


def pairs():
    i = np.array([[0, 3, 3], [1, -1, 3]])
    return waves(4, 3), i, np.array([[0, 2, 2], [1, 1, 2]]), waves(2, 3)


def neighbours_in_rows(x, w, y):
    for i in range(x.shape[0]):
        h = 0.0
        for t in range(1, x.shape[1]):
            h = h * w[t] + x[i, t] * w[t - 1]
            y[i, t] = h
    return (y * y).sum()


def two_loops_in_rows(x, w, b, y):
    for i in range(x.size):
        h = x[i]
        for t in range(w.shape[0]):
            h = np.sin(h * w[t, 0])
            if h > 0.2:
                h = h * w[t, 1] + x[i]
        for t in range(b.size):
            h = h * b[t] + x[i] * b[b.size - 1 - t]
        y[i] = h
    return (y * y).sum()


@dataclass(frozen=True)
class Meeting:
    """A program, its arguments, what gradients are taken for, how often its kernels add atomically."""

    function: Callable[..., Any]
    arguments: Arguments
    wrt: tuple[str, ...]
    atomics: tuple[int, int]
    """In the primal, and in the gradient."""
    deterministic: bool = True
    """Whether its gradient can do without."""


MEETING = (
    Meeting(added_at, lambda: (waves(5), KS, waves(6)), ("u", "v"), (0, 0)),
    Meeting(gathered, lambda: (waves(5), KS, KS[::-1].copy()), ("x",), (0, 1)),
    Meeting(counted_in_bins, lambda: (np.zeros(5, int), KS), (), (1, 1)),
    Meeting(weighed_in_bins, lambda: (KS % 5, waves(6)), ("w",), (0, 0)),
    Meeting(largest_at, lambda: (waves(5), KS, waves(6)), ("u", "v"), (0, 0)),
    Meeting(stored_at, lambda: (waves(5), KS, waves(6)), ("u", "v"), (0, 0)),
    Meeting(
        chosen_by_what_is_there,
        lambda: (waves(5), KS, waves(6), waves(6)),
        ("u", "v", "y"),
        (0, 0),
    ),
    Meeting(bins_of_two_axes, pairs, ("h", "w"), (0, 0)),
    Meeting(weights_of_all, lambda: (waves(300), waves(2), waves(300)), ("x", "a"), (0, 0)),
    Meeting(neurons, lambda: (waves(4, 5), waves(5), np.zeros(4)), ("x", "w"), (0, 0)),
    Meeting(
        mean_in_single,
        lambda: (waves(5, dtype="f4"), KS, np.zeros(6, "f4")),
        ("x",),
        (0, 1),
    ),
    Meeting(bodies, lambda: (waves(300), np.zeros(300)), ("x",), (0, 0)),
    Meeting(
        rows_and_columns,
        lambda: (waves(300, 3), waves(3), waves(300), np.zeros(300)),
        ("x", "w", "v"),
        (0, 0),
    ),
    Meeting(polynomials, lambda: (waves(9), waves(4), np.zeros(9)), ("x", "a"), (0, 1), False),
    Meeting(
        neighbours_in_rows,
        lambda: (waves(270, 5), waves(5), np.zeros((270, 5))),
        ("x", "w"),
        (0, 2),
        False,
    ),
    Meeting(
        two_loops_in_rows,
        lambda: (waves(270), waves(3, 2), waves(4), np.zeros(270)),
        ("x", "w", "b"),
        (0, 4),
        False,
    ),
)
