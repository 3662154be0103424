"""Linear algebra by factors, written in Python: triangles, Cholesky, the pseudo-inverse, least squares.

Singular values come from rotations of pairs of columns until all are orthogonal (one-sided Jacobi; Golub and
Van Loan, Matrix Computations, 8.6.3). Nothing is differentiated through the rotations: derivatives of the
pseudo-inverse are those of Newton steps that end there (Ben-Israel and Cohen, SIAM J. Numer. Anal. 3, 1966,
410), for a constant rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import Case
from .numpy_version import SCIPY_BEFORE_1_18
from .written_dense import lower_factor, solve_triangle
from .written_matrices import (
    Array,
    count_of,
    det,
    doubles,
    held,
    like,
    norm,
    refuse,
    solve,
    square,
)


def without_derivative(x: Any) -> Any:
    """The same; a derivative of it is refused."""
    return x


without_derivative.__mutad__ = "singular values"  # pyright: ignore[reportFunctionMemberAccess]


def eps_of(*of: Array) -> float:
    return np.finfo(like(np.empty(0), *of).dtype).eps


def require_finite(a: Array, asked: bool) -> None:
    if asked and not np.all(np.isfinite(a)):
        raise ValueError("array must not contain infs or NaNs")


def matrix(a: Any) -> Array:
    a = np.asarray(a)
    if a.ndim != 2:
        refuse("linear algebra is compiled for one matrix", "loop over the others")
    return a


# Triangles.


def triangle_solve(t: Array, x: Array, upper: bool, transposed: bool, unit: bool) -> None:
    """`x` becomes the solution of the triangle of `t` times it, or of the triangle's transpose."""
    if transposed:
        t, upper = t.T, not upper
    solve_triangle(t, x, upper, unit)


def solve_triangular(
    a: Array,
    b: Array,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    a, b = matrix(a), np.asarray(b)
    require_finite(a, check_finite)
    require_finite(b, check_finite)
    if a.shape[0] != a.shape[1]:
        raise ValueError("expected square matrix")
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"shapes of a {a.shape} and b {b.shape} are incompatible")
    if not unit_diagonal:
        for i in range(a.shape[0]):
            if a[i, i] == 0.0:
                raise np.linalg.LinAlgError(f"singular matrix: resolution failed at diagonal {i}")
    x = doubles(b)
    transposed = trans == 1 or trans == 2 or trans == "T" or trans == "C"
    triangle_solve(a, x, not lower, transposed, unit_diagonal)
    return like(x, a, b)


# Cholesky's factors.


def factor(a: Array, minors: bool) -> Array:
    """The lower factor of the matrix whose lower triangle is that of `a`."""
    low = doubles(a)
    factor_in_place(low, minors)
    return low


def factor_in_place(a: Array, minors: bool) -> None:
    stop = lower_factor(a)
    if stop != 0:
        if minors and not SCIPY_BEFORE_1_18:
            raise np.linalg.LinAlgError(f"Internal potrf return info = [{stop}] for slices [0].")
        if minors:
            raise np.linalg.LinAlgError(
                f"{stop}-th leading minor of the array is not positive definite"
            )
        raise np.linalg.LinAlgError("Matrix is not positive definite")


def cholesky(a: Array, /, *, upper: bool = False) -> Array:
    a = np.asarray(a)
    square(a)
    low = doubles(np.matrix_transpose(a) if upper else a)
    matrices = np.reshape(low, (count_of(a), a.shape[-1], a.shape[-1]))
    for i in range(matrices.shape[0]):
        factor_in_place(matrices[i], False)
    return like(np.matrix_transpose(low) if upper else low, a)


def scipy_cholesky(
    a: Array, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    a = matrix(a)
    require_finite(a, check_finite)
    if a.shape[0] != a.shape[1] and not SCIPY_BEFORE_1_18:
        raise ValueError(f"Expected a square matrix or batch thereof, got a1.shape={a.shape}")
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"Input array is expected to be square but has the shape: {a.shape}.")
    return like(factor(a, True) if lower else factor(a.T, True).T, a)


def cho_factor(
    a: Array, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The other triangle, of which SciPy says nothing, is that of `a`."""
    found = scipy_cholesky(a, lower, overwrite_a, check_finite)
    a = np.asarray(a)
    n = a.shape[0]
    for i in range(n):
        for j in range(i + 1, n):
            if lower:
                found[i, j] = a[i, j]
            else:
                found[j, i] = a[j, i]
    return (found, lower)


def cho_solve(
    c_and_lower: Any, b: Array, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    c, lower = c_and_lower
    c, b = matrix(c), np.asarray(b)
    require_finite(b, check_finite)
    require_finite(c, check_finite)
    if c.shape[0] != c.shape[1]:
        raise ValueError("The factored matrix c is not square.")
    if c.shape[1] != b.shape[0]:
        raise ValueError(f"incompatible dimensions ({c.shape} and {b.shape})")
    x = doubles(b)
    triangle_solve(c, x, not lower, not lower, False)
    triangle_solve(c, x, not lower, bool(lower), False)
    return like(x, c, b)


# SciPy's words for what NumPy has.


def scipy_square(a: Array, check_finite: bool) -> None:
    require_finite(a, check_finite)
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"Expected square matrix, got a1.shape={a.shape}")


def symmetric(a: Array, lower: bool) -> Array:
    """The matrix of which one triangle is given."""
    n = a.shape[0]
    whole = np.array(a, dtype=float)
    for i in range(n):
        for j in range(i + 1, n):
            if lower:
                whole[i, j] = a[j, i]
            else:
                whole[j, i] = a[i, j]
    return whole


def whole_matrix(a: Array, assume_a: Any, lower: bool) -> Array:
    if assume_a is None or assume_a == "gen" or assume_a == "general":
        return a
    known = ("pos", "sym", "her", "positive definite", "symmetric", "hermitian")
    if assume_a not in known:
        refuse("of `assume_a`, None, 'gen', 'sym', 'her' and 'pos' are compiled", "leave it out")
    return symmetric(a, lower)


def scipy_solve(
    a: Array,
    b: Array,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: Any = None,
    transposed: bool = False,
) -> Array:
    a, b = matrix(a), np.asarray(b)
    require_finite(b, check_finite)
    scipy_square(a, check_finite)
    given = whole_matrix(a, assume_a, lower)
    try:
        x = solve(given.T if transposed else given, b)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(
            "A singular matrix detected: slice(s) [0] are singular."
        ) from None
    return like(x, a, b)


def scipy_inv(
    a: Array,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: Any = None,
    lower: bool = False,
) -> Array:
    a = matrix(a)
    found = scipy_solve(a, np.eye(a.shape[0]), lower, False, False, check_finite, assume_a)
    return like(found, a)


def scipy_det(a: Array, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    require_finite(matrix(a), check_finite)
    return det(np.array(a, dtype=float))


def scipy_norm(
    a: Array, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Array:
    require_finite(np.asarray(a), check_finite)
    return norm(a, ord, axis, keepdims)


# Singular values.


def rotations(a: Array) -> Any:
    """`u`, `s`, `v`: `u @ v.T` is `a`, or `a.T` where that is taller; the columns of `u` are orthogonal and
    as long as the singular values `s`, which are in no order; `v` is orthogonal."""
    m, n = a.shape
    rows, cols = max(m, n), min(m, n)
    u, v, s = np.empty((rows, cols)), np.eye(cols), np.empty(cols)
    for i in range(rows):
        for j in range(cols):
            u[i, j] = a[i, j] if m >= n else a[j, i]
    turned, sweeps = True, 0
    while turned and sweeps < 60:
        turned = False
        sweeps += 1
        for p in range(cols - 1):
            for q in range(p + 1, cols):
                pp, qq, pq = np.float64(0.0), np.float64(0.0), np.float64(0.0)
                for i in range(rows):
                    pp += u[i, p] * u[i, p]
                    qq += u[i, q] * u[i, q]
                    pq += u[i, p] * u[i, q]
                if abs(pq) > 1e-15 * np.sqrt(pp) * np.sqrt(qq):
                    turned = True
                    ratio = (qq - pp) / (2.0 * pq)
                    t = np.copysign(1.0, ratio) / (abs(ratio) + np.sqrt(1.0 + ratio * ratio))
                    c = 1.0 / np.sqrt(1.0 + t * t)
                    turn(u, p, q, c, c * t)
                    turn(v, p, q, c, c * t)
    for j in range(cols):
        size = np.float64(0.0)
        for i in range(rows):
            size += u[i, j] * u[i, j]
        s[j] = np.sqrt(size)
    return u, s, v


def turn(u: Array, p: int, q: int, c: float, s: float) -> None:
    for i in range(u.shape[0]):
        left = u[i, p]
        u[i, p] = c * left - s * u[i, q]
        u[i, q] = s * left + c * u[i, q]


def largest_of(s: Array) -> float:
    found = np.float64(0.0)
    for k in range(s.size):
        found = max(found, s[k])
    return found


def scale_of(a: Array) -> float:
    """The largest size of an element; 1 where there is none but 0."""
    m, n = a.shape
    scale = np.float64(0.0)
    for i in range(m):
        for j in range(n):
            if not np.isfinite(a[i, j]):
                raise np.linalg.LinAlgError("SVD did not converge")
            scale = max(scale, abs(a[i, j]))
    return scale if scale > 0.0 else np.float64(1.0)


def inverted(a: Array, relative: float, absolute: float) -> Any:
    """The pseudo-inverse, singular values up to the cutoff counting as 0; all of these; the rank."""
    m, n = a.shape
    u, s, v = rotations(a)
    cutoff = absolute + relative * largest_of(s)
    p, rank = np.zeros((n, m)), 0
    for k in range(s.size):
        if s[k] > cutoff:
            rank += 1
            for i in range(n):
                for j in range(m):
                    product = v[i, k] * u[j, k] if m >= n else u[i, k] * v[j, k]
                    p[i, j] += product / s[k] / s[k]
    return p, s, rank


def pseudo_inverse(a: Array, relative: float, absolute: float) -> Any:
    """`inverted` with derivatives for a constant rank, those of terms whose value is 0.

    Between the spaces of rows and columns of `a`, where `near` lies whatever `a` is, a Newton step squares
    the distance from the inverse: after two, three derivatives are those of the pseudo-inverse.
    """
    scale = held(scale_of(np.array(held(a), dtype=float)))
    unit = a / scale
    found, s, rank = inverted(
        np.array(without_derivative(unit), dtype=float), relative, absolute / scale
    )
    p = np.array(held(found))
    near = (p @ unit).T @ p @ (unit @ p).T
    for _ in range(2):
        near = 2.0 * near - near @ (unit @ near)
    p = p + (near - held(near))
    return p / scale, s * scale, rank


def pinv(a: Array, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    a = matrix(a)
    if hermitian:
        refuse("np.linalg.pinv is compiled without `hermitian`", "leave it out")
    if rcond is not None and rtol is not None:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    cutoff = rcond if rcond is not None else 1e-15 if rtol is None else rtol
    return like(pseudo_inverse(a, cutoff, 0.0)[0], a)


def scipy_pinv(
    a: Array,
    *,
    atol: Any = None,
    rtol: Any = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    a = matrix(a)
    require_finite(a, check_finite)
    absolute = 0.0 if atol is None else atol
    relative = max(a.shape[0], a.shape[1]) * eps_of(a) if rtol is None else rtol
    if absolute < 0.0 or relative < 0.0:
        raise ValueError("atol and rtol values must be positive.")
    found, _, rank = pseudo_inverse(a, relative, absolute)
    p = like(found, a)
    return (p, rank) if return_rank else p


def lstsq(a: Array, b: Array, rcond: Any = None) -> Any:
    a, b = matrix(a), np.asarray(b)
    m, n = a.shape
    if m != b.shape[0]:
        raise np.linalg.LinAlgError("Incompatible dimensions")
    eps = eps_of(a, b)
    cutoff = eps * max(m, n) if rcond is None else eps if rcond < 0 else rcond
    p, s, rank = pseudo_inverse(a, cutoff, 0.0)
    x = p @ b
    off = b - a @ x
    squares = np.sum(np.reshape(off * off, (m, -1)), axis=0)
    count = squares.size if rank == n and m > n else 0
    residuals = squares[:count].copy()
    sizes = np.sort(s)[::-1].copy()
    return like(x, a, b), like(residuals, a, b), np.int32(rank), like(sizes, a, b)


def vander(x: Array, N: Any = None, increasing: bool = False) -> Array:
    x = np.asarray(x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = x.size if N is None else N
    v = np.ones((x.size, count), (x[:1] + np.zeros(1, np.int64)).dtype)
    for i in range(x.size):
        for k in range(1, count):
            if increasing:
                v[i, k] = v[i, k - 1] * x[i]
            else:
                v[i, count - 1 - k] = v[i, count - k] * x[i]
    return v


def polyfit(
    x: Array,
    y: Array,
    deg: int,
    rcond: Any = None,
    full: bool = False,
    w: Any = None,
    cov: Any = False,
) -> Array:
    if full or cov:
        refuse("np.polyfit is compiled without `full` and `cov`", "use np.linalg.lstsq")
    x, y = np.asarray(x) + 0.0, np.asarray(y) + 0.0
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if x.size == 0:
        raise TypeError("expected non-empty vector for x")
    if y.ndim < 1 or y.ndim > 2:
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    cutoff = x.size * np.finfo(x.dtype).eps if rcond is None else rcond
    lhs = vander(x, deg + 1)
    if w is not None:
        weights = np.asarray(w) + 0.0
        if weights.ndim != 1:
            raise TypeError("expected a 1-d array for weights")
        if weights.shape[0] != y.shape[0]:
            raise TypeError("expected w and y to have the same length")
        lhs = lhs * weights[:, None]
        y = y * weights[:, None] if y.ndim == 2 else y * weights
    scale = np.sqrt(np.sum(lhs * lhs, axis=0))
    found = pseudo_inverse(lhs / scale, cutoff, 0.0)[0] @ y
    return found / scale[:, None] if y.ndim == 2 else found / scale


FUNCTIONS: dict[Any, Any] = {
    **{getattr(np.linalg, f.__name__): f for f in (cholesky, pinv, lstsq)},
    **{getattr(np, f.__name__): f for f in (vander, polyfit)},
}

SCIPY: dict[str, Any] = {
    "cho_factor": cho_factor,
    "cho_solve": cho_solve,
    "cholesky": scipy_cholesky,
    "det": scipy_det,
    "inv": scipy_inv,
    "norm": scipy_norm,
    "pinv": scipy_pinv,
    "solve": scipy_solve,
    "solve_triangular": solve_triangular,
}
"""By the name in `scipy.linalg`."""

METHODS: dict[str, Any] = {}

SPD = "m @ m.T + np.eye(m.shape[0])"

CASES: tuple[Case, ...] = (
    *(
        Case(text.replace("SPD", SPD), {"m": "matrix"})
        for text in (
            "np.linalg.cholesky(SPD)",
            "np.linalg.cholesky(SPD, upper=True)",
            "np.linalg.cholesky(np.stack((SPD, 4.0 * SPD)))",
            "linalg.cholesky(SPD)",
            "linalg.cholesky(SPD, lower=True)",
            "linalg.cho_solve(linalg.cho_factor(SPD), m)",
            "linalg.cho_solve(linalg.cho_factor(SPD, True), m[0])",
            "linalg.solve(SPD, m, assume_a='pos')",
            "linalg.solve(m + 9.0 * np.eye(m.shape[0]), m[0], transposed=True)",
            "linalg.inv(m + 9.0 * np.eye(m.shape[0]))",
            "linalg.det(m + 9.0 * np.eye(m.shape[0]))",
            "linalg.norm(m, axis=0)",
            "linalg.solve_triangular(m + 9.0 * np.eye(m.shape[0]), m, lower=True)",
            "linalg.solve_triangular(m + 9.0 * np.eye(m.shape[0]), m[0], trans=1)",
            "np.linalg.pinv(m + 3.0 * np.eye(m.shape[0]))",
            "linalg.pinv(m[:, :2] + 3.0 * np.eye(m.shape[0])[:, :2])",
            "np.linalg.pinv(m[:1] + 3.0)",
            "np.linalg.lstsq(np.stack((m[0], m[0] + 1.0, np.sin(m[0])), axis=1), m[0] * m[0])[0]",
        )
    ),
    Case("np.polyfit(x, x * x + np.sin(x), 1)", {"x": "vector"}),
    Case("np.polyfit(np.arange(x.size) + 0.5, x, 0, w=np.arange(x.size) + 1.0)", {"x": "vector"}),
    Case("np.vander(x, 3)", {"x": "vector"}),
    Case("np.vander(x, increasing=True)", {"x": "vector"}),
)
