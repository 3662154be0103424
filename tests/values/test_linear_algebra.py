"""`np.linalg`, `scipy.linalg` and `np.polyfit`: dtypes, rank, shapes, triangles, exceptions."""

import numpy as np
import pytest
from scipy import linalg

from mutad import CompileError, check_gradient, compile
from mutad.compiler.frontend.library import written_dense

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
    (lambda a: np.linalg.inv(a), np.ones((40, 40))),
    (lambda a: np.linalg.inv(a[0]), M),
    (lambda a: np.linalg.det(a[:2]), M),
    (lambda a: np.linalg.solve(a, a[0, 0]), M),
    (lambda a: np.linalg.cholesky(np.stack((a, -a))), SPD),
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


def test_stacks_are_refused_where_one_matrix_is_compiled():
    with pytest.raises(CompileError, match=r"one matrix(.|\n)*loop over the others"):
        compile(lambda a: np.linalg.pinv(a))(np.stack((SPD, SPD)))


SIZES = (0, 1, 2, 7, 8, 9, 24, 25, 33, 40, 64, 81)
"""Around where matrices are halved, and where panels, triangles and products end."""


def test_sizes():
    """Blocks of all kinds, BLAS beside loops; with a column, few and many right-hand sides."""
    solve, factor = compile(solution, opt=1), compile(triangles, opt=1)
    for n in SIZES:
        rng = np.random.default_rng(n)
        a = rng.normal(size=(n, n))
        for b in (rng.normal(size=n), *(rng.normal(size=(n, m)) for m in (0, 1, 3, 4, 17))):
            got, want = solve(a, b), solution(a, b)
            np.testing.assert_allclose(
                got, want, rtol=1e-8, atol=1e-8 * np.abs(want).max(initial=1)
            )
        a = a @ a.T + n * np.eye(n)
        b = rng.normal(size=(n, 5))
        for got, want in zip(factor(a, b), triangles(a, b), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def solution(a, b):
    return np.linalg.solve(a, b)


def triangles(a, b):
    return (
        np.linalg.cholesky(a),
        linalg.solve_triangular(a, b),
        linalg.solve_triangular(a, b, trans=1),
        linalg.solve_triangular(a, b, lower=True),
        linalg.solve_triangular(a, b, trans=1, lower=True, unit_diagonal=True),
        linalg.solve_triangular(a, b, unit_diagonal=True),
        np.array(np.linalg.slogdet(a)),
    )


def test_stacks():
    s = RNG.normal(size=(2, 3, 4, 4))
    s = s @ s.swapaxes(-1, -2) + np.eye(4)

    def all_of(s, b, v):
        return (
            np.linalg.solve(s, b), np.linalg.solve(s, v), np.linalg.solve(s[0, 0], b), np.linalg.inv(s),
            np.linalg.det(s), np.linalg.slogdet(s), np.linalg.cholesky(s),
            np.linalg.cholesky(s, upper=True), np.linalg.det(s[:, :0]),
        )  # fmt: skip

    args = s, RNG.normal(size=(3, 4, 2)), B
    got, want = compile(all_of, opt=1)(*args), all_of(*args)
    assert type(got[5]) is type(want[5])
    same(got, want, 1e-10)


def test_what_is_solved_for_may_be_the_matrix():
    def both(a, b):
        x = np.linalg.solve(a, a)
        b[:] = np.linalg.solve(a, b)
        a[:] = np.linalg.inv(a.T)
        return x, np.linalg.solve(a[::-1, ::-1], b[::-1])

    ours, theirs = (M.copy(), B.copy()), (M.copy(), B.copy())
    same(compile(both, opt=1)(*ours), both(*theirs), 1e-9)
    same(ours, theirs, 1e-9)


@pytest.mark.parametrize("n", [2, 40])
def test_singular_matrices(n):
    def outcome(a):
        try:
            return np.linalg.inv(a)
        except np.linalg.LinAlgError:
            return a * 2.0

    a = np.diag(np.arange(1.0, n + 1))
    a[-2] = a[-1]
    same(compile(outcome, opt=1)(a), a * 2.0)
    same(tuple(compile(lambda a: np.linalg.slogdet(a), opt=1)(a)), tuple(np.linalg.slogdet(a)))
    a[0, 0] = np.nan
    assert np.isnan(compile(solution, opt=1)(a, a[0])).any()


@pytest.mark.parametrize("n", [1, 4])
def test_what_python_computes_for_whole_operations(n):
    """The oracle of the IR's interpreter, against NumPy and SciPy."""
    a, b = SPD[:n, :n] @ np.diag(RNG.normal(size=n)), RNG.normal(size=(n, 2))
    lu, pivots, x = a.copy(), np.zeros(n, np.int64), b.copy()
    assert written_dense.eliminate(lu, pivots) == 0
    np.testing.assert_allclose(lu, linalg.lu_factor(a)[0], rtol=1e-10)
    assert written_dense.solve_factored(lu, pivots, x) is x
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-9)
    size = written_dense.log_determinant(lu, pivots)
    np.testing.assert_allclose(size, np.linalg.slogdet(a)[1], rtol=1e-9)
    low = SPD[:n, :n].copy()
    assert written_dense.lower_factor(low) == 0
    np.testing.assert_allclose(low, np.linalg.cholesky(SPD[:n, :n]), rtol=1e-10)
    assert written_dense.lower_factor(-SPD[:n, :n]) == 1
    assert written_dense.eliminate(np.zeros((n, n)), pivots) == 1
