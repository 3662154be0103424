"""A sum that an iteration begins with is taken along with the update of the one before (`rotate-sums`)."""

from __future__ import annotations

import numpy as np
import pytest

from mutad import check_gradient, compile
from mutad.compiler.transforms import rotate_sums

rng = np.random.default_rng(3)


def project(q, a):
    s = 0.0
    for k in range(q.shape[0]):
        t = np.dot(q[k], a)
        a -= 0.1 * t * q[k]
        s += t * t
    return s + (a * a).sum()


def backwards(q, a):
    s = 0.0
    for k in range(q.shape[0] - 1, -1, -1):
        t = np.dot(q[k], a)
        a += 0.1 * t * q[k]
        s += t
    return s * s


def columns(q, a):
    n = q.shape[1]
    m = a.shape[0]
    r = np.zeros((n, m))
    for j in range(m):
        for k in range(n):
            r[k, j] = (q[:, k] * a[j]).sum()
            a[j] -= 0.1 * r[k, j] * q[:, k]
    return (r * r).sum() + (a * a * a).sum()


def rows_of_one(q, a):
    """The next row may be the one that is updated: the sum stays where it is."""
    s = 0.0
    for k in range(q.shape[0]):
        t = np.dot(q[k], q[0])
        q[0] -= 0.1 * t * q[k]
        s += t * a[0]
    return s + (q * q).sum()


def two_updates(q, a):
    """The reverse sweep has one update of the cotangent, and a sum that it takes along."""
    s = 0.0
    for k in range(q.shape[0]):
        t = np.dot(q[k], a)
        a -= 0.1 * t * q[k]
        a[0] += 0.5 * t
        s += t * t
    return s + (a * a).sum()


ROTATED, KEPT = (project, backwards, columns), (rows_of_one, two_updates)
SHAPES = ((0, 3), (1, 4), (2, 1), (3, 7), (5, 16), (4, 37), (9, 64))


@pytest.fixture
def found(monkeypatch):
    """The loops of which sums are taken along."""
    loops = []
    rewrite = rotate_sums.rewrite

    def noting(rotation):
        loops.append(rotation)
        rewrite(rotation)

    monkeypatch.setattr(rotate_sums, "rewrite", noting)
    return loops


def arguments(function, shape, dtype=np.float64):
    n, m = shape
    q = rng.normal(size=(m, n) if function is columns else (n, m)).astype(dtype)
    return q, rng.normal(size=(6, m) if function is columns else m).astype(dtype)


@pytest.mark.parametrize("function", [*ROTATED, *KEPT], ids=lambda f: f.__name__)
def test_values_and_gradients(function, found):
    compile(function, cache=False)(*arguments(function, (3, 4)))
    assert bool(found) is (function in ROTATED)
    compiled = compile(function, grad=True, cache=False)
    for shape in SHAPES[1:] if function in KEPT else SHAPES:
        q, a = arguments(function, shape)
        mine, python = (q.copy(), a.copy()), (q.copy(), a.copy())
        expected = function(*python)
        np.testing.assert_allclose(compiled(*mine), expected, rtol=1e-12, atol=1e-12)
        for one, other in zip(mine, python, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        check_gradient(compiled, q, a)


@pytest.mark.parametrize("function", ROTATED, ids=lambda f: f.__name__)
def test_bits_are_those_of_sums_by_themselves(function, monkeypatch):
    results = []
    for most in (4, 0):
        monkeypatch.setattr(rotate_sums.RotateSums, "__post_init__", lessen(most), raising=False)
        compiled = compile(function, grad=True, cache=False)
        copies = [x.copy() for x in arguments_of_bits(function)]
        value, gradients = compiled.value_and_grad(*copies, wrt=("q", "a"))
        results.append([value, *gradients, *copies])
    assert all(np.array_equal(x, y) for x, y in zip(*results, strict=True))


def lessen(most):
    return lambda self: object.__setattr__(self, "most", min(self.most, most))


def arguments_of_bits(function):
    seeded = np.random.default_rng(5)
    shape = (61, 7) if function is columns else (7, 61)
    return seeded.normal(size=shape), seeded.normal(size=(6, 61) if function is columns else 61)


def test_a_row_of_the_matrix_itself():
    compiled = compile(project, grad=True, cache=False)
    q = rng.normal(size=(5, 12))
    mine, python = q.copy(), q.copy()
    expected = project(python, python[3])
    np.testing.assert_allclose(compiled(mine, mine[3]), expected, rtol=1e-12)
    np.testing.assert_allclose(mine, python, rtol=1e-12)


def test_single_precision():
    compiled = compile(project, grad=True, cache=False)
    q, a = arguments(project, (6, 45), np.float32)
    mine, python = a.copy(), a.copy()
    expected = project(q, python)
    np.testing.assert_allclose(compiled(q, mine), expected, rtol=1e-4)
    np.testing.assert_allclose(mine, python, rtol=1e-4, atol=1e-4)
    assert compiled.grad(q, a.copy(), wrt="a").dtype == np.float32
