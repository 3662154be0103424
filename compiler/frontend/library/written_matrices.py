"""Functions of vectors, matrices and Python's numbers that are written in Python: see `written`."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from .cases import Case
from .plans import as_float, axis_of, contraction, moved, norm_kind, paired
from .written_dense import SlogdetResult, eliminate, log_determinant, solve_factored

Array = Any


def refuse(reason: str, way_out: str) -> NoReturn:
    """What is asked for is not compiled."""
    raise NotImplementedError(reason, way_out)


def held(x: Any) -> Any:
    """The same, without a gradient."""
    return x


held.__mutad__ = "stop_gradient"  # pyright: ignore[reportFunctionMemberAccess]


def in_order(a: Array) -> Array:
    """The elements in C order, for reading only: `np.ravel` that may copy where NumPy has a view."""
    return np.ravel(a)


# Matrices.


def diag(v: Array, k: int = 0) -> Array:
    v = np.asarray(v)
    if v.ndim == 1:
        n, below, right = v.size + abs(k), max(-k, 0), max(k, 0)
        out = np.zeros((n, n), v.dtype)
        for i in range(v.size):
            out[i + below, i + right] = v[i]
        return out
    if v.ndim != 2:
        raise ValueError("Input must be 1- or 2-d.")
    return np.diagonal(v, k)


def diagonal(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    return main_diagonal(diagonal_first(np.asarray(a), offset, axis1, axis2))


def matrix_diagonal(x: Array, *, offset: int = 0) -> Array:
    return diagonal(x, offset, -2, -1)


def main_diagonal(a: Array) -> Array:
    """The diagonal of the last two axes: a view, read-only."""
    return np.linalg.diagonal(a)


def diagonal_first(a: Array, offset: int, axis1: int, axis2: int) -> Array:
    """A view of the array in which this diagonal is the main one of the last two axes."""
    if a.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    if axis_of(axis1, a.ndim) == axis_of(axis2, a.ndim):
        raise ValueError("axis1 and axis2 cannot be the same")
    a = np.transpose(a, moved(a.ndim, (axis1, axis2), (-2, -1)))
    return a[..., max(-offset, 0) :, max(offset, 0) :]


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Array:
    rows, columns = np.arange(N), np.arange(N if M is None else M)
    return (rows[:, None] >= columns - k).astype(dtype)


def tril(m: Array, k: int = 0) -> Array:
    m = below_rows(np.asarray(m))
    rows, columns = np.arange(m.shape[-2]), np.arange(m.shape[-1])
    return np.where(rows[:, None] >= columns - k, m, np.zeros(1, m.dtype))


def triu(m: Array, k: int = 0) -> Array:
    m = below_rows(np.asarray(m))
    rows, columns = np.arange(m.shape[-2]), np.arange(m.shape[-1])
    return np.where(rows[:, None] >= columns - k + 1, np.zeros(1, m.dtype), m)


def below_rows(m: Array) -> Array:
    """A vector as a row of a square matrix, which is its like."""
    return m if m.ndim > 1 else np.broadcast_to(m, (m.size, m.size))


def tensordot(a: Array, b: Array, axes: Any = 2) -> Array:
    a, b = np.asarray(a), np.asarray(b)
    for i, j in paired(axes, a.ndim, b.ndim):
        if a.shape[i] != b.shape[j]:
            raise ValueError("shape-mismatch for sum")
    found = np.einsum(contraction(axes, a.ndim, b.ndim), a, b)
    return np.asarray(found)


def trace(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    a = diagonal_first(np.asarray(a), offset, axis1, axis2)
    n = min(a.shape[-2], a.shape[-1])
    out = np.empty((*a.shape[:-2], n), a.dtype)
    for i in range(n):
        out[..., i] = a[..., i, i]
    return np.sum(out, axis=-1)


def cross(a: Array, b: Array) -> Array:
    a, b = np.asarray(a), np.asarray(b)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors")
    x = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    y = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    z = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return np.array([x, y, z]) if np.ndim(x) == 0 else np.stack((x, y, z), axis=np.ndim(x))


def norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    x = np.asarray(x)
    x = np.asarray(x, as_float(x.dtype))
    kind = norm_kind(ord, axis, x.ndim)
    if kind == "root of squares":
        return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))
    if kind == "largest":
        return np.max(np.abs(x), axis=axis, keepdims=keepdims)
    if kind == "sum":
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)
    return np.sum(np.abs(x) ** ord, axis=axis, keepdims=keepdims) ** (1.0 / ord)


def square(a: Array) -> None:
    """Refuse what NumPy does not take as a matrix, or a stack of them, that has an inverse."""
    if a.ndim < 2:
        raise np.linalg.LinAlgError(
            f"{a.ndim}-dimensional array given. Array must be at least two-dimensional"
        )
    if a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")


def doubles(a: Array) -> Array:
    """A fresh array of float64 in C order."""
    made = np.empty(a.shape)
    made[...] = a
    return made


def like(x: Array, *of: Array) -> Array:
    """`x` in single precision where all of these are."""
    single = True
    for a in of:
        single = single and a.dtype == np.float32
    return x.astype(np.float32) if single else x


def solve(a: Array, b: Array) -> Array:
    """By the factors of elimination with the largest pivot of each column."""
    a, b = np.asarray(a), np.asarray(b)
    square(a)
    if b.ndim == 0:
        raise ValueError(
            "solve: Input operand 1 does not have enough dimensions (has 0, gufunc core with signature "
            "(m,m),(m,n)->(m,n) requires 2)"
        )
    return like(solution(a, b), a, b)


def solution(a: Array, b: Array) -> Array:
    """Of one matrix, or of each of a stack; right-hand sides of one dimension are one for all."""
    n = a.shape[-1]
    if b.shape[-1 if b.ndim == 1 else -2] != n:
        raise ValueError("solve: the shapes of the matrix and of the right-hand side do not match")
    if a.ndim == 2 and b.ndim <= 2:
        x = doubles(b)
        solve_in_place(doubles(a), x)
        return x
    if b.ndim == 1:
        x, given = np.empty(a.shape[:-1]), a
        x[...] = b
        right = np.reshape(x, (count_of(a), n, 1))
    else:
        stack = np.broadcast_arrays(np.empty(a.shape[:-2]), np.empty(b.shape[:-2]))[0].shape
        x, given = np.empty((*stack, *b.shape[-2:])), np.broadcast_to(a, (*stack, n, n))
        x[...] = b
        right = np.reshape(x, (count_of(x), n, b.shape[-1]))
    matrices = one_stack(given)
    for i in range(right.shape[0]):
        solve_in_place(matrices[i], right[i])
    return x


def solve_in_place(a: Array, x: Array) -> None:
    """`a` becomes its factors, `x` the solution."""
    pivots = np.empty(a.shape[0], np.int64)
    if eliminate(a, pivots) != 0:
        raise np.linalg.LinAlgError("Singular matrix")
    solve_factored(a, pivots, x)


def count_of(a: Array) -> int:
    """How many matrices there are in a stack, which may be empty ones."""
    return np.empty(a.shape[:-2]).size


def one_stack(a: Array) -> Array:
    """Fresh copies of all matrices, of float64, one after the other."""
    return np.reshape(doubles(a), (count_of(a), a.shape[-2], a.shape[-1]))


def inv(a: Array) -> Array:
    a = np.asarray(a)
    square(a)
    return like(solution(a, np.eye(a.shape[-1])), a)


def det(a: Array) -> Array:
    a = np.asarray(a)
    square(a)
    if a.ndim == 2:
        return like(determinant(a), a)
    found, matrices = np.empty(a.shape[:-2]), one_stack(a)
    each = np.reshape(found, count_of(a))
    for i in range(each.size):
        each[i] = determinant(matrices[i])
    return like(found, a)


def determinant(a: Array) -> float:
    """The product of the pivots, whose derivatives are those of its logarithm.

    Of a singular matrix these are infinite: a polynomial of the elements has the right ones.
    """
    factors, pivots = doubles(a), np.empty(a.shape[0], np.int64)
    stuck = eliminate(factors, pivots) != 0
    product = sign_of(pivots)
    for k in range(a.shape[0]):
        product = product * held(factors[k, k])
    size = log_determinant(factors, pivots)
    if stuck:
        polynomial = det_without_division(doubles(a))
        if math.isfinite(polynomial):
            product = product + (polynomial - held(polynomial))
    elif math.isfinite(size):
        product = product * np.exp(size - held(size))
    return product


def sign_of(pivots: Array) -> float:
    """The sign of the permutation."""
    sign = np.float64(1.0)
    for k in range(pivots.size):
        if pivots[k] != k:
            sign = -sign
    return sign


def slogdet(a: Array) -> Any:
    a = np.asarray(a)
    square(a)
    if a.ndim == 2:
        sign, log = sign_and_log(doubles(a))
        return SlogdetResult(like(sign, a), like(log, a))
    signs, logs, matrices = np.empty(a.shape[:-2]), np.empty(a.shape[:-2]), one_stack(a)
    each_sign, each_log = np.reshape(signs, count_of(a)), np.reshape(logs, count_of(a))
    for i in range(each_sign.size):
        each_sign[i], each_log[i] = sign_and_log(matrices[i])
    return SlogdetResult(like(signs, a), like(logs, a))


def sign_and_log(a: Array) -> Any:
    """Those of the determinant; `a` becomes its factors."""
    pivots = np.empty(a.shape[0], np.int64)
    stuck = eliminate(a, pivots) != 0
    sign = np.float64(0.0) if stuck else sign_of(pivots)
    for k in range(a.shape[0]):
        if held(a[k, k]) < 0.0:
            sign = -sign
    return sign, log_determinant(a, pivots)


def det_without_division(a: Array) -> float:
    """The determinant as a polynomial of the elements: its derivatives are right where elimination stops.

    By products of matrices: Bird, Information Processing Letters 111 (2011), 1072.
    """
    n = a.shape[0]
    f = a.copy()
    for _ in range(n - 1):
        upper, below = np.zeros((n, n)), np.float64(0.0)
        for i in range(n - 1, -1, -1):
            upper[i, i] = -below
            below += f[i, i]
            for j in range(i + 1, n):
                upper[i, j] = f[i, j]
        f = upper @ a
    return f[0, 0] if n % 2 == 1 else -f[0, 0]


FUNCTIONS: dict[Any, Any] = {
    **{
        getattr(np, f.__name__): f
        for f in (diag, diagonal, trace, cross, tri, tril, triu, tensordot)
    },
    **{getattr(np.linalg, f.__name__): f for f in (norm, solve, inv, det, slogdet)},
    np.linalg.diagonal: matrix_diagonal,
}

METHODS: dict[str, Any] = {"diagonal": diagonal, "trace": trace}

CASES: tuple[Case, ...] = (
    Case("np.tri(n), np.tri(n, 4, 1), np.tri(3, n, -1, dtype=np.int64)", {"n": "count"}),
    *(Case(f"np.{f}(x), np.{f}(x, 1), np.{f}(x, k=-1)", {"x": "matrix"}) for f in ("tril", "triu")),
    Case("np.tril(x), np.triu(x)", {"x": "vector"}),
    Case("np.tensordot(x[None] * y[:, None], y, axes=1)", {"x": "matrix", "y": "matrix"}),
    Case("np.tensordot(x, x * y * y), np.tensordot(x, y, 0)", {"x": "matrix", "y": "matrix"}),
    Case("np.tensordot(x, x[None] * y[:, None], ([0, 1], [2, 0]))", {"x": "matrix", "y": "matrix"}),
    Case("np.tensordot(x, y, axes=(-1, 0))", {"x": "matrix", "y": "vector"}),
    Case("np.diag(x), np.diag(x, 2), np.diag(x, k=-1)", {"x": "vector"}),
    *(
        Case(f"np.{f}(x), np.{f}(x, 1), np.{f}(x[:, ::-1], -1)", {"x": "matrix"})
        for f in ("diag", "trace", "diagonal")
    ),
    *(
        Case(f"np.{f}(np.stack((x, x * x, x + 1), axis=1), {rest})", {"x": "matrix"})
        for f in ("trace", "diagonal")
        for rest in ("0, 1, 2", "axis1=-1, axis2=0", "offset=1, axis2=2")
    ),
    Case("x.diagonal(-1), x.trace(1), np.linalg.diagonal(x[None], offset=1)", {"x": "matrix"}),
    Case("np.linalg.norm(x, axis=1)", {"x": "matrix"}),
    Case("np.linalg.norm(x, axis=-1, keepdims=True)", {"x": "matrix"}),
    Case("np.linalg.norm(x, 1)", {"x": "vector"}),
    Case("np.linalg.norm(x, ord=np.inf)", {"x": "vector"}),
    Case("np.linalg.norm(x, 3), np.linalg.norm(x, 2.5)", {"x": "vector"}),
    Case("np.linalg.norm(x, 'fro'), np.linalg.norm(x, axis=(1, 0))", {"x": "matrix"}),
    Case(
        "np.linalg.norm((100 * x).astype(np.int8)), np.linalg.norm(x.astype(int), 1)",
        {"x": "vector"},
    ),
    Case("np.linalg.solve(m @ m.T + np.eye(m.shape[0]), m)", {"m": "matrix"}),
    Case("np.linalg.solve(m + 9.0 * np.eye(m.shape[0]), m[0])", {"m": "matrix"}),
    Case("np.linalg.inv(m + 9.0 * np.eye(m.shape[0]))", {"m": "matrix"}),
    Case("np.linalg.det(m + 9.0 * np.eye(m.shape[0]))", {"m": "matrix"}),
    Case("np.linalg.slogdet(m - 9.0 * np.eye(m.shape[0]))[1]", {"m": "matrix"}),
    Case("np.linalg.inv(np.stack((m, m.T)) + 9.0 * np.eye(m.shape[0]))", {"m": "matrix"}),
    Case("np.linalg.det(np.stack((m, m.T)) + 9.0 * np.eye(m.shape[0]))", {"m": "matrix"}),
)
