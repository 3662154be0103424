"""Sums, differences and statistics along axes, in Python: see `written`."""

# ruff: noqa: RUF005  # a subscript is no place for a starred item here

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import Case
from .numpy_version import BEFORE_2_5
from .plans import (
    as_float,
    at_axis,
    axes_of,
    axis_of,
    is_int,
    scan_dtype,
    upto,
    weighted_dtype,
    whole,
)
from .written_axes import first
from .written_matrices import Array, in_order, refuse

# Statistics.


def length_along(a: Array, axis: Any) -> int:
    """How many elements a reduction along these axes takes together."""
    count = 1
    for k in axes_of(axis, a.ndim):
        count *= a.shape[k]
    return count


def var(
    a: Array, axis: Any = None, ddof: int = 0, keepdims: bool = False, where: Any = None
) -> Array:
    a = np.asarray(a)
    if where is not None:
        off = a - np.mean(a, axis=axis, keepdims=True, where=where)
        taken = np.sum(np.broadcast_to(where, a.shape), axis=axis, keepdims=keepdims)
        total = np.sum(off * off, axis=axis, keepdims=keepdims, where=where)
        return total / np.maximum(taken - ddof, 0).astype(off.dtype)
    apart = a - np.mean(a, axis=axis, keepdims=True)
    count = max(length_along(a, axis) - ddof, 0)
    return np.sum(apart * apart, axis=axis, keepdims=keepdims) / count


def std(
    a: Array, axis: Any = None, ddof: int = 0, keepdims: bool = False, where: Any = None
) -> Array:
    return np.sqrt(var(a, axis, ddof, keepdims, where))


def average(a: Array, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    a = np.asarray(a)
    if weights is None:
        mean = np.mean(a, axis=axis)
        return (mean, np.zeros_like(mean) + length_along(a, axis)) if returned else mean
    w = np.asarray(weights)
    if w.ndim != a.ndim:
        if not isinstance(axis, int) or w.ndim != 1:
            refuse(
                "`average` is compiled for weights of the array's shape, or of its axis", "use sums"
            )
        if w.size != a.shape[axis]:
            raise ValueError(
                "Shape of weights must be consistent with shape of a along specified axis."
            )
        w = w[at_axis(a.ndim, axis_of(axis, a.ndim))]
    dtype = weighted_dtype(a.dtype, w.dtype)
    a, w = np.asarray(a, dtype), np.asarray(w, dtype)
    total = np.sum(w, axis=axis)
    if np.any(total == 0.0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    mean = np.sum(a * w, axis=axis) / total
    return (mean, np.zeros_like(mean) + total) if returned else mean


def ptp(a: Array, axis: Any = None) -> Array:
    return np.max(a, axis=axis) - np.min(a, axis=axis)


def cov(
    m: Array, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None
) -> Array:
    x = rows_of(m, rowvar)
    if y is not None:
        x = np.concatenate((x, rows_of(y, rowvar)), axis=0)
    apart = x - np.mean(x, axis=1, keepdims=True)
    count = max(x.shape[1] - ((0 if bias else 1) if ddof is None else ddof), 0)
    found = (apart @ apart.T) * np.true_divide(1, count)
    if y is not None:
        return found
    return np.asarray(found[0, 0]) if np.ndim(m) == 1 else np.squeeze(found)


def rows_of(m: Array, rowvar: bool) -> Array:
    """The variables as the rows of a matrix."""
    m = np.asarray(m)
    if m.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    if m.ndim == 1:
        return np.reshape(m, (1, m.size)).astype(float)
    return (m if rowvar else m.T).astype(float)


def corrcoef(x: Array, y: Any = None, rowvar: bool = True) -> Array:
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    spread = np.sqrt(np.diagonal(c))
    return np.clip(c / spread[:, None] / spread[None, :], -1, 1)


# Without NaN.


def nansum(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    return np.sum(np.where(np.isnan(a), 0, a), axis=axis, keepdims=keepdims)


def nanprod(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    return np.prod(np.where(np.isnan(a), 1, a), axis=axis, keepdims=keepdims)


def nancumsum(a: Array, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    return cumsum(np.where(np.isnan(a), 0, a), axis, dtype, out)


def nanmean(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    if is_int(np.asarray(a).dtype):
        return np.mean(a, axis=axis, keepdims=keepdims)
    count = np.sum(~np.isnan(a), axis=axis, keepdims=keepdims)
    return nansum(a, axis, keepdims) / floats_like(count, a)


def floats_like(count: Array, a: Array) -> Array:
    """The counts in the dtype that the mean of an array has."""
    return np.asarray(count).astype(as_float(a.dtype))[()]


def nanvar(a: Array, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Array:
    if is_int(np.asarray(a).dtype):
        return var(a, axis, ddof, keepdims)
    apart = np.where(np.isnan(a), 0, a - nanmean(a, axis, True))
    count = np.sum(~np.isnan(a), axis=axis, keepdims=keepdims) - ddof
    total = np.sum(apart * apart, axis=axis, keepdims=keepdims)
    return np.where(count <= 0, np.nan, total / floats_like(count, a))


def nanstd(a: Array, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Array:
    return np.sqrt(nanvar(a, axis, ddof, keepdims))


def nanmax(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    return nanextreme(a, axis, keepdims, 1)


def nanmin(a: Array, axis: Any = None, keepdims: bool = False) -> Array:
    return nanextreme(a, axis, keepdims, -1)


def nanextreme(a: Array, axis: Any, keepdims: bool, sign: int) -> Array:
    a = np.asarray(a)
    if is_int(a.dtype):
        if sign > 0:
            return np.max(a, axis=axis, keepdims=keepdims)
        return np.min(a, axis=axis, keepdims=keepdims)
    missing = np.isnan(a)
    if sign > 0:
        found = np.max(np.where(missing, -np.inf, a), axis=axis, keepdims=keepdims)
    else:
        found = np.min(np.where(missing, np.inf, a), axis=axis, keepdims=keepdims)
    return np.where(np.all(missing, axis=axis, keepdims=keepdims), np.nan, found)


def count_nonzero(a: Array, axis: Any = None, *, keepdims: bool = False) -> Any:
    return np.sum(np.not_equal(a, 0), axis=axis, keepdims=keepdims)


# Extremes.


def argmax(a: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    return first_best(np.asarray(a), axis, 1, keepdims)


def argmin(a: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    return first_best(np.asarray(a), axis, -1, keepdims)


def nanargmax(a: Array, axis: Any = None) -> Array:
    if np.any(np.all(np.isnan(a), axis=axis)):
        raise ValueError("All-NaN slice encountered")
    return argmax(np.where(np.isnan(a), -np.inf, a), axis)


def nanargmin(a: Array, axis: Any = None) -> Array:
    if np.any(np.all(np.isnan(a), axis=axis)):
        raise ValueError("All-NaN slice encountered")
    return argmin(np.where(np.isnan(a), np.inf, a), axis)


def first_best(a: Array, axis: Any, sign: int, keepdims: bool) -> Array:
    if a.size == 0:
        if sign > 0:
            raise ValueError("attempt to get argmax of an empty sequence")
        raise ValueError("attempt to get argmin of an empty sequence")
    if axis is None:
        best = np.int64(best_of(in_order(a), sign))
        return np.full((1,) * a.ndim, best) if keepdims else best
    if a.ndim == 1:
        best = np.int64(best_of(first(a, axis), sign))
        return np.full(1, best) if keepdims else best
    at = axis_of(axis, a.ndim)
    of = np.moveaxis(a, at, -1)
    rows = np.reshape(of, (a.size // a.shape[at], a.shape[at]))
    out = np.empty(rows.shape[0], np.int64)
    for i in range(out.size):
        out[i] = best_of(rows[i], sign)
    rest = a.shape[:at] + a.shape[at + 1 :]
    return np.reshape(out, rest[:at] + (1,) + rest[at:] if keepdims else rest)


def best_of(flat: Array, sign: int) -> int:
    best = 0
    for i in range(1, flat.size):
        v, known = flat[i], flat[best]
        better = v > known if sign > 0 else v < known
        if known == known and (better or v != v):
            best = i
    return best


# Running sums and products.


def cumsum(a: Array, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    return accumulated(np.asarray(a), axis, dtype, out, True)


def cumprod(a: Array, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    return accumulated(np.asarray(a), axis, dtype, out, False)


def accumulated(a: Array, axis: Any, dtype: Any, out: Any, adds: bool) -> Array:
    """Running sums or products, in a fresh array, which is stored to `out` at the end: it may overlap `a`."""
    if out is not None and not isinstance(out, np.ndarray):
        raise TypeError("output must be an array")
    if axis is None:
        a = in_order(a)
    along = 0 if axis is None else axis_of(axis, a.ndim)
    found = np.empty(a.shape, scan_dtype(a.dtype, dtype, None if out is None else out.dtype))
    into, of = first(found, along), first(a, along)
    if of.dtype != into.dtype:
        of = of.astype(into.dtype)
    if of.shape[0] > 0:
        into[0] = of[0]
    for i in range(1, of.shape[0]):
        into[i] = into[i - 1] + of[i] if adds else into[i - 1] * of[i]
    if out is None:
        return found
    if BEFORE_2_5 and out.ndim == found.ndim == 1 and (out.size == 0 or found.size == 0):
        return out  # NumPy looked no further
    if out.shape != found.shape:
        raise ValueError("provided out is the wrong size for the accumulation.")
    out[...] = found if out.dtype == found.dtype else found.astype(out.dtype)
    return out


def add_accumulate(array: Array, axis: int = 0, dtype: Any = None, out: Any = None) -> Array:
    return accumulated(np.asarray(array), axis, dtype, out, True)


def multiply_accumulate(array: Array, axis: int = 0, dtype: Any = None, out: Any = None) -> Array:
    return accumulated(np.asarray(array), axis, dtype, out, False)


def maximum_accumulate(array: Array, axis: int = 0) -> Array:
    return extremes(np.asarray(array), axis, 1)


def minimum_accumulate(array: Array, axis: int = 0) -> Array:
    return extremes(np.asarray(array), axis, -1)


def extremes(a: Array, axis: int, sign: int) -> Array:
    """The largest (or smallest) so far."""
    along = axis_of(axis, a.ndim)
    out = np.copy(a)
    into = first(out, along)
    for i in range(1, into.shape[0]):
        into[i] = np.maximum(into[i - 1], into[i]) if sign > 0 else np.minimum(into[i - 1], into[i])
    return out


# Differences.


def diff(a: Array, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    a = np.asarray(a)
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    along = axis_of(axis, a.ndim)
    if n == 0:
        return a
    if prepend is not None:
        a = np.concatenate((one_row(prepend, a, along), a), axis=along)
    if append is not None:
        a = np.concatenate((a, one_row(append, a, along)), axis=along)
    for _ in upto(n):
        a = difference(a, along)
    return a


def one_row(value: Any, like: Array, axis: int) -> Array:
    if np.ndim(value) > 0:
        return np.asarray(value)
    shape = like.shape[:axis] + (1,) + like.shape[axis + 1 :]
    return np.full(shape, value)


def difference(a: Array, axis: int) -> Array:
    before = whole(axis)
    above, below = a[before + (slice(1, None),)], a[before + (slice(None, -1),)]
    return above != below if a.dtype == np.bool_ else above - below


def ediff1d(ary: Array) -> Array:
    flat = in_order(ary)
    return flat[1:] - flat[:-1]


def gradient(f: Array, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    f = without_wrapping(np.asarray(f))
    axes = axes_of(axis, f.ndim)
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError("invalid number of arguments")
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    found: Any = ()
    for k in upto(len(axes)):
        spacing = varargs[k if len(varargs) > 1 else 0] if len(varargs) > 0 else 1.0
        found += (slope(f, spacing, axes[k], edge_order),)
    return found[0] if len(axes) == 1 else found


def without_wrapping(a: Array) -> Array:
    """Ints as floats, whose differences do not wrap around."""
    return a if a.dtype == np.bool_ else np.asarray(a, as_float(a.dtype))


def slope(f: Array, spacing: Any, axis: int, edge_order: int) -> Array:
    """The derivative along one axis: central differences, one-sided ones at the ends."""
    if f.shape[axis] < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )
    out = np.empty(f.shape, as_float(f.dtype))
    into, of = first(out, axis), first(f, axis)
    if np.ndim(spacing) == 0:
        even_slope(into, of, spacing, edge_order)
        return out
    x = without_wrapping(np.asarray(spacing))
    if x.ndim != 1:
        raise ValueError("distances must be either scalars or 1d")
    if x.size != f.shape[axis]:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    h = difference(x, 0)
    if np.all(h == h[0]):
        even_slope(into, of, h[0], edge_order)
    else:
        uneven_slope(into, of, h, edge_order)
    return out


def even_slope(out: Array, f: Array, h: Any, edge_order: int) -> None:
    out[1:-1] = (f[2:] - f[:-2]) / (2.0 * h)
    if edge_order == 1:
        out[0] = (f[1] - f[0]) / h
        out[-1] = (f[-1] - f[-2]) / h
    else:
        out[0] = -1.5 / h * f[0] + 2.0 / h * f[1] + -0.5 / h * f[2]
        out[-1] = 0.5 / h * f[-3] + -2.0 / h * f[-2] + 1.5 / h * f[-1]


def uneven_slope(out: Array, f: Array, h: Array, edge_order: int) -> None:
    up = at_axis(f.ndim, 0)
    h1, h2 = h[:-1], h[1:]
    a, b, c = -h2 / (h1 * (h1 + h2)), (h2 - h1) / (h1 * h2), h1 / (h2 * (h1 + h2))
    out[1:-1] = a[up] * f[:-2] + b[up] * f[1:-1] + c[up] * f[2:]
    if edge_order == 1:
        out[0] = (f[1] - f[0]) / h[0]
        out[-1] = (f[-1] - f[-2]) / h[-1]
    else:
        s, t = h[0], h[1]
        out[0] = (
            -(2.0 * s + t) / (s * (s + t)) * f[0]
            + (s + t) / (s * t) * f[1]
            - s / (t * (s + t)) * f[2]
        )
        s, t = h[-2], h[-1]
        out[-1] = (
            t / (s * (s + t)) * f[-3]
            - (t + s) / (s * t) * f[-2]
            + (2.0 * t + s) / (t * (s + t)) * f[-1]
        )


def trapezoid(y: Array, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    y = np.asarray(y)
    along = axis_of(axis, y.ndim)
    before = whole(along)
    sums = y[before + (slice(1, None),)] + y[before + (slice(None, -1),)]
    if x is None:
        return np.sum(dx * sums / 2.0, axis=along)
    width = diff(x) if np.ndim(x) == 1 else diff(x, 1, axis)
    if np.ndim(x) == 1:
        width = width[at_axis(y.ndim, along)]
    return np.sum(width * sums / 2.0, axis=along)


# Products of sequences.


def convolve(a: Array, v: Array, mode: str = "full") -> Array:
    a, v = in_order(np.asarray(a)), in_order(np.asarray(v))
    if a.size == 0:
        raise ValueError("a cannot be empty")
    if v.size == 0:
        raise ValueError("v cannot be empty")
    return spread(a, v, mode) if v.size <= a.size else spread(v, a, mode)


def correlate(a: Array, v: Array, mode: str = "valid") -> Array:
    a, v = np.asarray(a), np.asarray(v)
    if a.size == 0:
        raise ValueError("first array argument cannot be empty")
    if v.size == 0:
        raise ValueError("second array argument cannot be empty")
    if v.size <= a.size:
        return spread(a, v[::-1], mode)
    return np.copy(spread(v, a[::-1], mode)[::-1])


def spread(a: Array, v: Array, mode: str) -> Array:
    """Each element of the shorter one times all of the longer one, shifted."""
    n, m = a.size, v.size
    if mode == "full":
        start, count = 0, n + m - 1
    elif mode == "same":
        start, count = (m - 1) // 2, n
    elif mode == "valid":
        start, count = m - 1, n - m + 1
    else:
        refuse("this mode is none of full, same, valid", "name one of them")
    out = np.zeros(count, (a[:0] * v[:0]).dtype)
    for j in range(m):
        low, high = max(j, start), min(j + n, start + count)
        out[low - start : high - start] += v[j] * a[low - j : high - j]
    return out


NAMED = (
    var, std, average, ptp, cov, corrcoef, nansum, nanprod, nancumsum, nanmean, nanvar, nanstd, nanmax,
    nanmin,
    count_nonzero, argmax, argmin, nanargmax, nanargmin, cumsum, cumprod, diff, ediff1d, gradient,
    trapezoid,
    convolve, correlate,
)  # fmt: skip

FUNCTIONS: dict[Any, Any] = {
    **{getattr(np, f.__name__): f for f in NAMED},
    np.add.accumulate: add_accumulate,
    np.multiply.accumulate: multiply_accumulate,
    np.maximum.accumulate: maximum_accumulate,
    np.minimum.accumulate: minimum_accumulate,
}

METHODS: dict[str, Any] = {f.__name__: f for f in (var, std, argmax, argmin, cumsum, cumprod)}

CUBE = "np.stack((x, x * x), axis=1)"

CASES: tuple[Case, ...] = (
    *(
        Case(text, {"x": "real"})
        for text in (
            "np.var(x)", "np.std(x)", "np.cumsum(x)", "np.cumprod(x)", "np.argmax(x)", "np.argmin(x)",
            "np.average(x)",
            "np.diff(x)", "np.diff(x, axis=0)", "np.trapezoid(x)", "np.nansum(x)", "np.nanmean(x, axis=0)",
            "np.count_nonzero(x > 0)", "np.nanvar(x)",
        )
    ),
    *(Case(f"x.{f}()", {"x": "special"}) for f in ("argmax", "argmin")),
    *(
        Case(f"np.{f}.accumulate(x), np.{f}.accumulate(x, axis=-1)", {"x": "matrix"})
        for f in ("add", "multiply", "maximum", "minimum")
    ),
    Case("np.maximum.accumulate(x)", {"x": "special"}),
    Case("np.minimum.accumulate(x), np.add.accumulate(x)", {"x": "integer"}),
    *(
        Case(f"np.{f}(x)", {"x": "special"})
        for f in ("nansum", "nanmax", "nanargmin", "nanmean", "nancumsum")
    ),
    Case("np.cumsum(x, out=np.empty(x.size))", {"x": "vector"}),
    Case("x.cumprod(0, out=np.empty_like(x))", {"x": "vector"}),
    Case("np.cumsum(x[::-1][x.size // 2 :])", {"x": "vector"}),
    *(Case(f"np.{f}(x)", {"x": "integer"}) for f in ("cumsum", "cumprod", "argmax", "ptp", "var")),
    Case("np.nanmax(x), np.nanmin(x)", {"x": "integer"}),
    *(
        Case(text.replace("b", "(100 * x).astype(np.uint8)"), {"x": "vector"})
        for text in (
            "np.gradient(b), np.average(b, weights=b // 2 + 1)",
            "np.gradient(x, np.cumsum(b) + b)",
        )
    ),
    *(
        Case(text, {"x": "matrix"})
        for text in (
            "np.var(x, axis=0, ddof=1)", "x.std(axis=1, keepdims=True)", "np.std(x, axis=(0, 1))",
            "np.var(x, where=x > 0)", "np.std(x, axis=1, ddof=1, keepdims=True, where=x > -9)",
            f"np.var({CUBE}, axis=(0, -1))", "np.average(x, axis=1, weights=x[0] ** 2 + 1)", "np.cov(x)",
            "np.corrcoef(x[0], x[-1] + x[0] ** 2)", "np.cov(x, rowvar=False, bias=True)", "np.cov(x[0])",
            "np.argmax(x, axis=0)", f"{CUBE}.argmin(axis=1)", "np.argmin(x, axis=-1, keepdims=True)",
            "np.cumsum(x, axis=0)", f"np.cumprod({CUBE}, axis=-1)", "np.trapezoid(x, axis=0, dx=0.5)",
            f"np.diff({CUBE}, axis=1)", "np.diff(x, n=2, axis=0)",
            "np.diff(x, prepend=0.0, append=x[:, :1])",
            "np.gradient(x)", "np.gradient(x, 0.5, axis=0)",
            "np.gradient(x, 2.0, np.cumsum(x[0] ** 2 + 1), edge_order=2)",
            "np.trapezoid(x, x[0], axis=0)", "np.count_nonzero(x > 0, axis=0)", "np.nanmax(x, axis=1)",
        )
    ),
    *(
        Case(text, {"x": "vector"})
        for text in (
            "np.diff(x, n=3)", "np.trapezoid(x, dx=0.5)", "np.trapezoid(x, x * x)",
            "np.gradient(x, edge_order=2)",
            "np.gradient(x, x + 9 * np.arange(x.size))", "np.ediff1d(x)", "np.cov(x, x * x)",
            *(f"np.convolve(x, [0.5, 2.0, -1.0, 3.0], '{m}')" for m in ("full", "same", "valid")),
            *(f"np.correlate(x, [0.5, 2.0, -1.0, 3.0], '{m}')" for m in ("full", "same", "valid")),
        )
    ),
)  # fmt: skip
