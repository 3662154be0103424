"""NumPy's functions that are written in Python: compiled along where they are called, gradients included.

What a rank, a dtype or an argument that is left out decides, is decided while compiling: of each function
there remains what one would write for these arguments. `refuse` is a compile-time error at the call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import written_matrices
from .cases import Case
from .written_matrices import Array, refuse

FILES = frozenset({__file__, written_matrices.__file__})


# Axes.


def expand_dims(a: Array, axis: int) -> Array:
    a = np.asarray(a)
    at = axis if axis >= 0 else axis + a.ndim + 1
    return np.reshape(a, a.shape[:at] + (1,) + a.shape[at:])  # noqa: RUF005


def atleast_1d(a: Array) -> Array:
    return np.full(1, a) if np.ndim(a) == 0 else np.asarray(a)


def atleast_2d(a: Array) -> Array:
    if np.ndim(a) == 0:
        return np.full((1, 1), a)
    return np.reshape(a, (1, np.size(a))) if np.ndim(a) == 1 else np.asarray(a)


def moveaxis(a: Array, source: int, destination: int) -> Array:
    first = source if source >= 0 else source + a.ndim
    last = destination if destination >= 0 else destination + a.ndim
    return np.transpose(a, moved(a.ndim, first, last))


def moved(n: int, first: int, last: int) -> Any:
    if n == 1:
        return (0,)
    if n == 2:
        return (0, 1) if first == last else (1, 0)
    return refuse("`moveaxis` of more than two dimensions is not compiled: use .transpose")


def swapaxes(a: Array, axis1: int, axis2: int) -> Array:
    if a.ndim > 2:
        refuse("`swapaxes` of more than two dimensions is not compiled: use .transpose")
    return np.transpose(a) if a.ndim == 2 and (axis1 - axis2) % 2 == 1 else a


def flip(a: Array, axis: int | None = None) -> Array:
    if a.ndim == 1:
        return a[::-1]
    if a.ndim != 2:
        refuse("`flip` is compiled for one and two dimensions: use slices")
    if axis is None:
        return a[::-1, ::-1]
    return a[::-1] if axis % 2 == 0 else a[:, ::-1]


def roll(a: Array, shift: int, axis: int | None = None) -> Array:
    if a.ndim != 1:
        refuse("`roll` is compiled for one dimension: assign slices")
    out = np.empty_like(a)
    n = a.size
    if n > 0:
        k = shift % n
        out[k:] = a[: n - k]
        out[:k] = a[n - k :]
    return out


def vstack(tup: Any) -> Array:
    return np.concatenate([atleast_2d(a) for a in tup], axis=0)


def hstack(tup: Any) -> Array:
    return np.concatenate([atleast_1d(a) for a in tup], axis=0 if np.ndim(tup[0]) < 2 else 1)


def column_stack(tup: Any) -> Array:
    return np.concatenate([column(a) for a in tup], axis=1)


def column(a: Array) -> Array:
    return np.reshape(a, (np.size(a), 1)) if np.ndim(a) < 2 else np.asarray(a)


def append(arr: Array, values: Array, axis: int | None = None) -> Array:
    if axis is None:
        return np.concatenate((np.ravel(atleast_1d(arr)), np.ravel(atleast_1d(values))))
    return np.concatenate((arr, values), axis=axis)


# Statistics, sums, differences.


def var(a: Array, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Array:
    a = np.asarray(a)
    apart = a - np.mean(a, axis=axis, keepdims=True)
    count = a.size if axis is None else a.shape[axis]
    return np.sum(apart * apart, axis=axis, keepdims=keepdims) / max(count - ddof, 0)


def std(a: Array, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Array:
    return np.sqrt(var(a, axis, ddof, keepdims))


def average(a: Array, axis: Any = None, weights: Any = None) -> Array:
    if weights is None:
        return np.mean(a, axis=axis)
    if np.ndim(a) != np.ndim(weights):
        refuse("`average` is compiled for weights of the array's own shape: use sums")
    a, weights = np.asarray(a), np.asarray(weights)
    total = np.sum(weights, axis=axis)
    if np.any(total == 0.0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    return np.sum(a * weights, axis=axis) / total


def ptp(a: Array, axis: Any = None) -> Array:
    return np.max(a, axis=axis) - np.min(a, axis=axis)


def argmax(a: Array, axis: Any = None) -> Array:
    return first_best(np.asarray(a), axis, 1)


def argmin(a: Array, axis: Any = None) -> Array:
    return first_best(np.asarray(a), axis, -1)


def first_best(a: Array, axis: Any, sign: int) -> Array:
    if axis is not None and a.ndim > 1:
        refuse("`argmax` and `argmin` along an axis are not compiled: loop over the rows")
    flat = np.ravel(a)
    if flat.size == 0:
        raise ValueError(
            "attempt to get argmax of an empty sequence"
            if sign > 0
            else "attempt to get argmin of an empty sequence"
        )
    best = 0
    for i in range(1, flat.size):
        v, known = flat[i], flat[best]
        better = v > known if sign > 0 else v < known
        if known == known and (better or v != v):
            best = i
    return np.int64(best)


def cumsum(a: Array, axis: Any = None) -> Array:
    return accumulated(np.asarray(a), axis, True)


def cumprod(a: Array, axis: Any = None) -> Array:
    return accumulated(np.asarray(a), axis, False)


def accumulated(a: Array, axis: Any, adds: bool) -> Array:
    if axis is not None and a.ndim > 1:
        refuse("sums and products that accumulate along an axis are not compiled: loop over it")
    flat = np.ravel(a)
    out = np.zeros(flat.size, np.sum(flat[:0]).dtype)
    if flat.size > 0:
        out[0] = flat[0]
    for i in range(1, flat.size):
        out[i] = out[i - 1] + flat[i] if adds else out[i - 1] * flat[i]
    return out


def diff(a: Array, n: int = 1, axis: int = -1) -> Array:
    a = np.asarray(a)
    if n == 1:
        return difference(a, axis)
    if n == 2:
        return difference(difference(a, axis), axis)
    return refuse("`diff` of this order is not compiled: call it several times")


def difference(a: Array, axis: int) -> Array:
    if axis == -1 or axis == a.ndim - 1:
        return a[..., 1:] - a[..., :-1]
    if axis == 0:
        return a[1:] - a[:-1]
    return refuse("`diff` along such an axis is not compiled: subtract slices")


def trapezoid(y: Array, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    y = np.asarray(y)
    if axis != -1 and axis != y.ndim - 1:
        refuse("`trapezoid` is compiled along the last axis: transpose the array")
    width = dx if x is None else diff(x)
    return np.sum(width * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)


def polyval(p: Any, x: Array) -> Array:
    coefficients = np.asarray(p)
    zero = np.zeros((), coefficients.dtype)[()]
    y = (np.zeros_like(x) if np.ndim(x) > 0 else np.zeros_like(np.asarray(x))[()]) + zero
    for c in coefficients:
        y = y * x + c
    return y


def logspace(
    start: float, stop: float, num: int = 50, endpoint: bool = True, base: float = 10.0
) -> Array:
    return np.power(base, np.linspace(start, stop, num, endpoint))


def meshgrid(x: Array, y: Array, indexing: str = "xy") -> Any:
    x, y = np.asarray(x), np.asarray(y)
    if indexing == "xy":
        shape = (y.size, x.size)
        return (np.copy(np.broadcast_to(x, shape)), np.copy(np.broadcast_to(y[:, None], shape)))
    shape = (x.size, y.size)
    return (np.copy(np.broadcast_to(x[:, None], shape)), np.copy(np.broadcast_to(y, shape)))


# Comparison, choice, search.


def isclose(
    a: Array, b: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Array:
    near = (np.abs(np.subtract(a, b)) <= atol + rtol * np.abs(b)) & np.isfinite(b)
    same = near | np.equal(a, b)
    return same | (np.isnan(a) & np.isnan(b)) if equal_nan else same


def allclose(
    a: Array, b: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    return bool(np.all(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1: Array, a2: Array) -> bool:
    a1, a2 = np.asarray(a1), np.asarray(a2)
    if a1.ndim != a2.ndim or a1.shape != a2.shape:
        return False
    return bool(np.all(a1 == a2))


def nan_to_num(x: Array, copy: bool = True, nan: float = 0.0) -> Array:
    x = x if np.ndim(x) > 0 else np.asarray(x)[()]
    if not np.issubdtype(x.dtype, np.floating):
        return np.positive(x)
    largest = np.finfo(x.dtype).max
    return np.where(np.isnan(x), nan, np.clip(x, -largest, largest))


def nansum(a: Array, axis: Any = None) -> Array:
    return np.sum(np.where(np.isnan(a), 0, a), axis=axis)


def sinc(x: Array) -> Array:
    y = np.pi * np.where(np.equal(x, 0), 1.0e-20, x)
    return np.sin(y) / y


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Array:
    chosen = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=False):
        chosen = np.where(condition, choice, chosen)
    return chosen


def piecewise(x: Array, condlist: Any, funclist: Any) -> Array:
    chosen = np.zeros_like(x)
    if len(funclist) == len(condlist) + 1:
        chosen = chosen + value_of(funclist[-1], x)
    for condition, function in zip(condlist, funclist, strict=False):
        chosen = np.where(condition, value_of(function, x), chosen)
    return chosen


def value_of(function: Any, x: Array) -> Array:
    return function if isinstance(function, (int, float)) else function(x)


def place_of(a: Array, v: float, left: bool) -> int:
    low, high = 0, a.size
    while low < high:
        middle = (low + high) // 2
        item = a[middle]
        if left:
            before = item < v or (v != v and item == item)
        else:
            before = not (v < item or (item != item and v == v))
        if before:
            low = middle + 1
        else:
            high = middle
    return low


def searchsorted(a: Array, v: Array, side: str = "left") -> Array:
    a = np.asarray(a)
    if np.ndim(v) == 0:
        return np.int64(place_of(a, v, side == "left"))
    if np.ndim(v) > 1:
        refuse("`searchsorted` is compiled for numbers and vectors: ravel the array")
    v = np.asarray(v)
    out = np.empty(v.size, np.int64)
    for i in range(v.size):
        out[i] = place_of(a, v[i], side == "left")
    return out


def digitize(x: Array, bins: Array, right: bool = False) -> Array:
    bins = np.asarray(bins)
    falls, rises = False, False
    for i in range(1, bins.size):
        rises = rises or bins[i] > bins[i - 1]
        falls = falls or bins[i] < bins[i - 1]
    if rises and falls:
        raise ValueError("bins must be monotonically increasing or decreasing")
    if falls:
        return bins.size - searchsorted(bins[::-1], x, "right" if right else "left")
    return searchsorted(bins, x, "left" if right else "right")


def interp(x: Array, xp: Array, fp: Array, left: Any = None, right: Any = None) -> Array:
    xp, fp = np.asarray(xp), np.asarray(fp)
    if xp.size == 0:
        raise ValueError("array of sample points is empty")
    if xp.size != fp.size:
        raise ValueError("fp and xp are not of the same length.")
    low = fp[0] if left is None else left
    high = fp[-1] if right is None else right
    if np.ndim(x) == 0:
        return np.float64(between(x, xp, fp, low, high))
    flat = np.ravel(x)
    out = np.empty(flat.size)
    for i in range(flat.size):
        out[i] = between(flat[i], xp, fp, low, high)
    return np.reshape(out, np.shape(x))


def between(v: float, xp: Array, fp: Array, low: float, high: float) -> float:
    n = xp.size
    if v != v:
        return v
    if v < xp[0]:
        return low
    if v > xp[n - 1]:
        return high
    if v == xp[n - 1]:
        return fp[n - 1]
    j = place_of(xp, v, False) - 1
    if v == xp[j]:
        return fp[j]
    return (fp[j + 1] - fp[j]) / (xp[j + 1] - xp[j]) * (v - xp[j]) + fp[j]


FUNCTIONS: dict[Any, Any] = {
    **{
        getattr(np, f.__name__): f
        for f in (
            expand_dims, atleast_1d, atleast_2d, moveaxis, swapaxes, flip, roll, vstack, hstack, column_stack,
            append, var, std, average, ptp, argmax, argmin, cumsum, cumprod, diff,
            trapezoid, polyval, logspace, meshgrid, isclose, allclose, array_equal, nan_to_num, nansum, sinc,
            select, piecewise, searchsorted, digitize, interp,
        )
    },
    **written_matrices.FUNCTIONS,
}  # fmt: skip
"""By NumPy's function, ours."""

METHODS: dict[str, Any] = {
    f.__name__: f for f in (var, std, argmax, argmin, cumsum, cumprod, swapaxes, searchsorted)
} | written_matrices.METHODS
"""The same, of arrays' methods."""

CASES: tuple[Case, ...] = (
    *written_matrices.CASES,
    *(Case(f"np.{f}(x)", {"x": "vector"}) for f in ("atleast_1d", "atleast_2d", "flip")),
    Case("np.flip(x)", {"x": "matrix"}),
    Case("np.expand_dims(x, 1)", {"x": "vector"}),
    Case("np.expand_dims(x, -1)", {"x": "matrix"}),
    Case("np.moveaxis(x, 0, -1)", {"x": "matrix"}),
    Case("np.swapaxes(x, 0, 1)", {"x": "matrix"}),
    Case("np.roll(x, 2)", {"x": "vector"}),
    Case("np.roll(x, -1)", {"x": "vector"}),
    Case("np.vstack([x, x * 2])", {"x": "vector"}),
    Case("np.hstack((x, x * 2, x[:1]))", {"x": "vector"}),
    Case("np.column_stack((x, x * 2))", {"x": "vector"}),
    Case("np.append(x, 3.0)", {"x": "vector"}),
    Case(
        "np.cross(np.stack((x, x * x, x + 1), axis=1), np.array([0.5, 2.0, -1.0]))", {"x": "vector"}
    ),
    *(
        Case(f"np.{f}(x)", {"x": "real"})
        for f in ("var", "std", "cumsum", "cumprod", "argmax", "argmin")
    ),
    *(Case(f"x.{f}()", {"x": "special"}) for f in ("argmax", "argmin")),
    *(Case(f"np.{f}(x)", {"x": "integer"}) for f in ("cumsum", "cumprod", "argmax", "ptp", "var")),
    Case("np.var(x, axis=0, ddof=1)", {"x": "matrix"}),
    Case("x.std(axis=1, keepdims=True)", {"x": "matrix"}),
    Case("np.average(x)", {"x": "real"}),
    Case("np.diff(x)", {"x": "real"}),
    Case("np.diff(x, axis=0)", {"x": "real"}),
    Case("np.diff(x, n=2)", {"x": "vector"}),
    Case("np.trapezoid(x)", {"x": "real"}),
    Case("np.trapezoid(x, dx=0.5)", {"x": "vector"}),
    Case("np.trapezoid(x, x * x)", {"x": "vector"}),
    Case("np.polyval([1.5, -2.0, 0.5], x)", {"x": "real"}),
    Case("np.polyval(x, 0.7)", {"x": "vector"}),
    Case("np.logspace(0.0, s, 5)", {"s": "scalar"}),
    Case("np.isclose(x, x + 1e-9)", {"x": "special"}),
    Case("np.isclose(x, x[::-1], equal_nan=True)", {"x": "special"}),
    Case("np.allclose(x, x)", {"x": "special"}),
    Case("np.array_equal(x, x + 0)", {"x": "real"}),
    Case("np.nan_to_num(x)", {"x": "special"}),
    Case("np.nansum(x)", {"x": "special"}),
    Case("np.sinc(x)", {"x": "real"}),
    Case("np.select([x > 1, x < 0], [x, x * x], 2.0)", {"x": "real"}),
    Case("np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v])", {"x": "real"}),
    Case("np.searchsorted(np.cumsum(w), 2.0)", {"w": "positive"}),
    Case("np.searchsorted(np.cumsum(w), w.ravel(), side='right')", {"w": "positive"}),
    Case("np.digitize(x.ravel(), [-1.0, 0.0, 1.0])", {"x": "real"}),
    Case("np.digitize(x.ravel(), [1.0, 0.0, -1.0], right=True)", {"x": "real"}),
    Case("np.interp(x, [-1.0, 0.0, 0.5, 2.0], [2.0, 1.0, 4.0, 3.0])", {"x": "real"}),
    Case(
        "np.interp(s, np.cumsum(w), np.cumsum(w * w), left=-1.0)", {"s": "scalar", "w": "positive"}
    ),
)
