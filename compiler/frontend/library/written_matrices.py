"""Functions of vectors, matrices and Python's numbers that are written in Python: see `written`."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from .cases import Case
from .plans import axis_of, contraction, moved, paired

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


def norm(x: Array, ord: Any = None, axis: int | None = None, keepdims: bool = False) -> Array:
    x = np.asarray(x)
    if ord is None or (ord == 2 and (axis is not None or x.ndim == 1)):
        return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))
    if axis is None and x.ndim != 1:
        refuse("this norm of a matrix is not compiled", "write it with sums")
    if ord == np.inf:
        return np.max(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)
    refuse("this `ord` of np.linalg.norm is not compiled", "write it with sums")


def solve(a: Array, b: Array) -> Array:
    """Gauss' elimination with the largest pivot of the column."""
    if a.ndim != 2:
        refuse("np.linalg.solve is compiled for one matrix", "loop over the others")
    n = a.shape[0]
    if a.shape[1] != n:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    lu, x = np.array(a, dtype=float), np.array(b, dtype=float)
    if x.shape[0] != n:
        raise ValueError("solve: the shapes of the matrix and of the right-hand side do not match")
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(lu[i, k]) > abs(lu[best, k]):
                best = i
        if lu[best, k] == 0.0:
            raise np.linalg.LinAlgError("Singular matrix")
        if best != k:
            for j in range(n):
                kept = lu[k, j]
                lu[k, j] = lu[best, j]
                lu[best, j] = kept
            swap_rows(x, k, best)
        for i in range(k + 1, n):
            factor = lu[i, k] / lu[k, k]
            for j in range(k + 1, n):
                lu[i, j] -= factor * lu[k, j]
            subtract_row(x, i, k, factor)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            subtract_row(x, i, j, lu[i, j])
        divide_row(x, i, lu[i, i])
    return x.astype(np.float32) if a.dtype == np.float32 and b.dtype == np.float32 else x


def swap_rows(x: Array, i: int, k: int) -> None:
    if x.ndim == 1:
        kept = x[i]
        x[i] = x[k]
        x[k] = kept
    else:
        for j in range(x.shape[1]):
            kept = x[i, j]
            x[i, j] = x[k, j]
            x[k, j] = kept


def subtract_row(x: Array, i: int, k: int, factor: float) -> None:
    if x.ndim == 1:
        x[i] -= factor * x[k]
    else:
        for j in range(x.shape[1]):
            x[i, j] -= factor * x[k, j]


def divide_row(x: Array, i: int, divisor: float) -> None:
    if x.ndim == 1:
        x[i] /= divisor
    else:
        for j in range(x.shape[1]):
            x[i, j] /= divisor


def inv(a: Array) -> Array:
    return solve(a, np.eye(a.shape[0], dtype=a.dtype))


def det(a: Array) -> Array:
    if a.ndim != 2:
        refuse("np.linalg.det is compiled for one matrix", "loop over the others")
    n = a.shape[0]
    if a.shape[1] != n:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    lu = np.array(a, dtype=float)
    product, stuck = np.float64(1.0), False
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(lu[i, k]) > abs(lu[best, k]):
                best = i
        if best != k:
            product = -product
            for j in range(n):
                kept = lu[k, j]
                lu[k, j] = lu[best, j]
                lu[best, j] = kept
        product = product * lu[k, k]
        stuck = stuck or (lu[k, k] == 0.0 and k < n - 1)
        if lu[k, k] != 0.0:
            for i in range(k + 1, n):
                factor = lu[i, k] / lu[k, k]
                for j in range(k + 1, n):
                    lu[i, j] -= factor * lu[k, j]
    if stuck:
        polynomial = det_without_division(np.array(a, dtype=float))
        if math.isfinite(polynomial):
            product = held(product) + (polynomial - held(polynomial))
    return np.float32(product) if a.dtype == np.float32 else product


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


# Python's `math`.


def remainder(x: float, y: float) -> float:
    if math.isnan(x) or math.isnan(y):
        return x + y
    if math.isinf(x) or y == 0.0:
        raise ValueError("math domain error")
    if math.isinf(y):
        return x
    size, step = abs(x), abs(y)
    below = math.fmod(size, step)
    above = step - below
    if below < above:
        r = below
    elif below > above:
        r = -above
    else:
        r = below - 2.0 * math.fmod(0.5 * (size - below), step)
    return math.copysign(1.0, x) * r


def factorial(n: int) -> int:
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    product = 1
    for k in range(2, n + 1):
        product *= k
    return product


def comb(n: int, k: int) -> int:
    if n < 0 or k < 0:
        raise ValueError("n must be a non-negative integer")
    ways = 1 if k <= n else 0
    for i in range(min(k, n - k)):
        ways = ways * (n - i) // (i + 1)
    return ways


def gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return abs(a)


def math_isclose(a: float, b: float, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> bool:
    if a == b:
        return True
    if math.isinf(a) or math.isinf(b):
        return False
    apart = abs(b - a)
    return apart <= abs(rel_tol * b) or apart <= abs(rel_tol * a) or apart <= abs_tol


def product_of(iterable: Any, *, start: Any = 1) -> Any:
    product = start
    for v in iterable:
        product = product * v
    return product


def dist(p: Any, q: Any) -> float:
    s = 0.0
    for a, b in zip(p, q, strict=False):
        s += (a - b) * (a - b)
    return math.sqrt(s)


FUNCTIONS: dict[Any, Any] = {
    **{
        getattr(np, f.__name__): f
        for f in (diag, diagonal, trace, cross, tri, tril, triu, tensordot)
    },
    **{getattr(np.linalg, f.__name__): f for f in (norm, solve, inv, det)},
    np.linalg.diagonal: matrix_diagonal,
    **{getattr(math, f.__name__): f for f in (remainder, factorial, comb, gcd, dist)},
    math.isclose: math_isclose,
    math.prod: product_of,
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
    Case("np.linalg.solve(m @ m.T + np.eye(m.shape[0]), m)", {"m": "matrix"}),
    Case("np.linalg.solve(m + 9.0 * np.eye(m.shape[0]), m[0])", {"m": "matrix"}),
    Case("np.linalg.inv(m + 9.0 * np.eye(m.shape[0]))", {"m": "matrix"}),
    Case("np.linalg.det(m + 9.0 * np.eye(m.shape[0]))", {"m": "matrix"}),
)
