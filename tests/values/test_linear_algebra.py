"""`np.linalg`, `scipy.linalg` and `np.polyfit`: dtypes, rank, shapes, triangles, exceptions."""

import numpy as np
import pytest
from scipy import linalg

from mutad import CompileError, check_gradient, compile

RNG = np.random.default_rng(5)
M = RNG.normal(size=(4, 4))
SPD = M @ M.T + np.eye(4)
B = RNG.normal(size=4)


def same(got, want, rtol=1e-11):
    """Values and dtypes, through tuples."""
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other, rtol)
        return
    assert np.asarray(got).dtype == np.asarray(want).dtype
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


def factors(a, b):
    return (
        np.linalg.cholesky(a), linalg.cholesky(a), linalg.cho_solve(linalg.cho_factor(a), b),
        linalg.solve_triangular(a, b), linalg.solve_triangular(a, b, trans="T", unit_diagonal=True),
        linalg.solve(a, b, assume_a="sym", lower=True), np.linalg.solve(a, b), np.linalg.inv(a),
        linalg.inv(a), linalg.det(a),
    )  # fmt: skip


def inverses(a, b):
    return (
        np.linalg.pinv(a),
        linalg.pinv(a),
        np.linalg.lstsq(a, b),
        np.vander(b, 3),
        np.polyfit(b, b * b, 1),
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_dtypes(dtype):
    a, b = (SPD * 8).round().astype(dtype), (B * 8).round().astype(dtype)
    rtol = 1e-3 if dtype == np.float32 else 1e-11
    same(compile(factors, opt=1)(a, b), factors(a, b), rtol)
    same(compile(inverses, opt=1)(a[:, :3], b), inverses(a[:, :3], b), rtol)


def test_only_the_triangle_that_is_named_is_read():
    a = SPD + np.triu(M, 1)
    same(compile(factors, opt=1)(a, B), factors(a, B))


DEFICIENT = np.outer(B, B[:3]) + np.outer(B * B, B[1:])


@pytest.mark.parametrize(
    "a", [DEFICIENT, DEFICIENT.T, np.zeros((4, 2)), M[:2], 1e200 * M, 1e-200 * M, M[:, :0]]
)
def test_ranks_and_shapes(a):
    def all_of(a, b):
        return np.linalg.pinv(a), linalg.pinv(a, return_rank=True), np.linalg.lstsq(a, b)

    b = RNG.normal(size=(a.shape[0], 2))
    got, want = compile(all_of, opt=1)(a, b), all_of(a, b)
    scale = max(1.0, np.abs(want[0]).max(initial=0.0))
    np.testing.assert_allclose(got[0], want[0], rtol=1e-9, atol=1e-12 * scale)
    assert (got[1][1], type(got[2][2]), got[2][2]) == (want[1][1], type(want[2][2]), want[2][2])
    assert got[2][1].shape == want[2][1].shape
    np.testing.assert_allclose(got[2][0], want[2][0], rtol=1e-9, atol=1e-12 * scale)
    np.testing.assert_allclose(
        got[2][3], want[2][3], rtol=1e-9, atol=1e-12 * want[2][3].max(initial=0.0)
    )


def test_gradients():
    def trace(a, b):
        return (np.linalg.pinv(a) @ b).sum() + np.linalg.lstsq(a.T @ a + np.eye(3), b[:3])[0][0]

    check_gradient(compile(trace, grad=True, opt=1), M[:, :3].copy(), B, wrt=("a", "b"))

    def wide(a):
        return (linalg.pinv(a) ** 2).sum() + linalg.cholesky(a @ a.T)[0, 1]

    check_gradient(compile(wide, grad=True, opt=1), M[:2].copy())

    def slope(x, y):
        return np.polyfit(x, y, 2)[0]

    check_gradient(
        compile(slope, grad=True, opt=1), np.arange(6.0), RNG.normal(size=6), wrt=("x", "y")
    )


RAISING = [
    (lambda a: np.linalg.cholesky(-a), SPD),
    (lambda a: linalg.cholesky(a - 2.0), SPD),
    (lambda a: linalg.cholesky(a), np.full((2, 2), np.inf)),
    (lambda a: linalg.cholesky(a), M[:2]),
    (lambda a: linalg.solve(a, a), np.ones((3, 3))),
    (lambda a: linalg.inv(a), np.zeros((2, 2))),
    (lambda a: linalg.inv(a), np.full((2, 2), np.nan)),
    (lambda a: np.linalg.pinv(a), np.full((2, 2), np.nan)),
    (lambda a: linalg.solve_triangular(a, a[0]), np.diag([1.0, 0.0, 2.0])),
    (lambda a: np.linalg.lstsq(a, a[0]), M[:2]),
    (lambda a: np.polyfit(a[0], a[1, :2], 1), M),
    (lambda a: np.polyfit(a[0], a[1], -1), M),
]


@pytest.mark.parametrize(("function", "a"), RAISING)
def test_raises_as_numpy_and_scipy_do(function, a):
    outcomes = []
    for f in (function, compile(function, opt=1)):
        with pytest.raises((ValueError, TypeError)) as raised:
            f(a)
        outcomes.append((type(raised.value), raised.value.args))
    assert outcomes[0] == outcomes[1]


def test_stacks_are_refused():
    with pytest.raises(CompileError, match=r"one matrix(.|\n)*loop over the others"):
        compile(lambda a: np.linalg.cholesky(a))(np.stack((SPD, SPD)))
