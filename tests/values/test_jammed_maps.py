"""Loops of maps run for four rows at once, if each row sees the same operations in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutad
from mutad.compiler.transforms.jam_maps import JamMaps


def rows(m: int) -> Any:
    q = np.full((5, m), 0.3)
    q[:, ::2] = -0.1
    q[3] = 0.2
    return q


def orthonormal(a: Any) -> Any:
    """Row by row: all later rows are updated as soon as there is one."""
    n = a.shape[0]
    q, r = np.zeros_like(a), np.zeros((n, n))
    for k in range(n):
        r[k, k] = np.sqrt(np.dot(a[k], a[k]))
        q[k] = a[k] / r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.dot(q[k], a[j])
            a[j] -= q[k] * r[k, j]
    return q, r


def by_columns(a: Any) -> Any:
    b = a.copy()
    n = b.shape[1]
    for k in range(n):
        b[:, k] *= 1.0 / np.sqrt(np.dot(b[:, k], b[:, k]))
        for j in range(k + 1, n):
            s = np.dot(b[:, k], b[:, j])
            b[:, j] -= s * b[:, k]
    return b


def finished_first(a: Any) -> Any:
    """A row is finished before the next one begins."""
    r = np.zeros((a.shape[0], a.shape[0]))
    for j in range(a.shape[0]):
        for k in range(j):
            r[j, k] = np.dot(a[k], a[j])
            a[j] -= a[k] * r[j, k]
        a[j] /= 2.0 + np.dot(a[j], a[j])
    return r


def rectangle(a: Any) -> Any:
    q = rows(a.shape[1])
    for j in range(a.shape[0]):
        for k in range(q.shape[0]):
            a[j] = a[j] * 0.5 + q[k] * np.dot(q[k], a[j])
    return q.sum()


def chained(a: Any) -> Any:
    """Each row needs the one before, as it is in the end."""
    q = rows(a.shape[1])
    for j in range(1, a.shape[0]):
        for k in range(q.shape[0]):
            a[j] = a[j - 1] * 0.5 + q[k] * np.dot(q[k], a[j])
    return q.sum()


def shared_number(a: Any) -> Any:
    """A number of each step, which every row reads, and sets for the next one."""
    t = np.ones(5)
    q = rows(a.shape[1])
    for j in range(a.shape[0]):
        for k in range(q.shape[0]):
            a[j] -= q[k] * t[k]
            t[k] = np.dot(q[k], a[j])
    return t


def updated_base(a: Any) -> Any:
    """What all rows read changes meanwhile."""
    n = a.shape[0]
    for k in range(n):
        for j in range(k + 1, n):
            a[j] -= a[k] * np.dot(a[k], a[j]) / (1.0 + np.dot(a[k], a[k]))
        a[n - 1] *= 0.5
    return a.sum()


def used_behind(a: Any) -> Any:
    """The last product is used behind the nest."""
    s = 0.0
    for j in range(a.shape[0]):
        for k in range(j):
            s = np.dot(a[k], a[j]) / (1.0 + np.dot(a[k], a[k]))
            a[j] -= a[k] * s
        a[j] *= 0.5
    return s


def no_pass(self: Any, ctx: Any, op: Any) -> None:
    pass


def results(function: Any, n: int, m: int, compiled: Any = None) -> list[Any]:
    shape = (m, n) if function is by_columns else (n, m)
    a = np.random.default_rng(n).normal(size=shape)
    found = (compiled or function)(a)
    return [a, *(found if isinstance(found, tuple) else (found,))]


JAMMED = [orthonormal, by_columns, finished_first, rectangle]
KEPT = [chained, shared_number, updated_base, used_behind]
SIZES = ((1, 5), (2, 3), (3, 3), (4, 7), (5, 5), (6, 40), (8, 9), (9, 33), (21, 70), (40, 140))


@pytest.mark.parametrize("function", JAMMED + KEPT)
def test_rows_have_the_same_bits(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = mutad.compile(function, cache=False)
    found = [results(function, *size, made) for size in SIZES]
    monkeypatch.setattr(JamMaps, "apply", no_pass)
    plain = mutad.compile(function, cache=False)
    for size, new in zip(SIZES, found, strict=True):
        for a, b in zip(new, results(function, *size, plain), strict=True):
            np.testing.assert_array_equal(a, b)
        for a, b in zip(new, results(function, *size), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("function", "jammed"),
    [(f, f in JAMMED) for f in JAMMED + KEPT],
)
def test_which_nests_are_jammed(function: Any, jammed: bool) -> None:
    text = mutad.compile(function, cache=False).inspect("optimize", np.ones((9, 12)))
    four = any(line.count("%a_") + line.count("%b_") >= 8 for line in text.splitlines())
    assert four is jammed


@pytest.mark.parametrize("function", [finished_first, rectangle, orthonormal])
def test_gradients_are_those_of_differences(function: Any) -> None:
    def loss(a: Any) -> Any:
        b = a.copy()
        found = function(b)
        return (b * b * b).sum() + (found[1].sum() if function is orthonormal else 0.0)

    start = np.random.default_rng(3).normal(size=(7, 12))
    mutad.check_gradient(mutad.compile(loss, grad=True, cache=False), start)
