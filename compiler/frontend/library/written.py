"""NumPy's functions that are written in Python: compiled along where they are called, gradients included.

What a rank, a dtype or an argument that is left out decides, is decided while compiling: of each function
there remains what one would write for these arguments. `refuse` is a compile-time error at the call.
"""

from __future__ import annotations

import sys
from types import BuiltinMethodType
from typing import Any

import numpy as np

from . import (
    written_axes,
    written_counts,
    written_dense,
    written_factors,
    written_matrices,
    written_ranks,
    written_sorting,
    written_sums,
)
from .cases import Case
from .plans import as_float
from .written_matrices import Array, in_order, refuse
from .written_sorting import place_of

PARTS = (
    written_axes,
    written_sums,
    written_sorting,
    written_counts,
    written_matrices,
    written_factors,
)

CALLED = (written_dense, written_ranks)
FILES = frozenset({__file__, *(part.__file__ for part in (*PARTS, *CALLED))})


# Polynomials, grids.


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


def ix_(*args: Any) -> Any:
    return tuple(along(np.asarray(a), args[:k], args[k + 1 :]) for k, a in enumerate(args))


def along(indices: Array, before: Any, behind: Any) -> Array:
    """The indices of one axis, with an axis of one element for each of the others."""
    if indices.ndim != 1:
        raise ValueError("Cross index must be 1 dimensional")
    if indices.dtype == bool:
        indices = np.flatnonzero(indices)
    return indices[(None,) * len(before) + (slice(None),) + (None,) * len(behind)]


# Comparison, choice, search.


def isclose(
    a: Array, b: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Array:
    b = np.asarray(b, as_float(np.asarray(b).dtype))  # what no difference wraps around in
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
    if not copy and np.ndim(x) == 0:
        refuse("`nan_to_num` of a number is not compiled with copy=False", "leave copy=False out")
    x = x if np.ndim(x) > 0 else np.asarray(x)[()]
    if not np.issubdtype(x.dtype, np.floating):
        return np.array(x)[()] if copy else x
    largest = np.finfo(x.dtype).max
    finite = np.where(np.isnan(x), nan, np.clip(x, -largest, largest))
    if copy:
        return finite
    x[...] = finite
    return x


def sinc(x: Array) -> Array:
    z = (np.pi * x) ** 2
    y = np.pi * np.where(np.equal(x, 0), 1.0e-20, x)
    at_zero = 1.0 - z / 6.0 * (1.0 - z / 20.0)  # with the derivatives that it has there
    return np.where(np.equal(x, 0), at_zero, np.sin(y) / y)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Array:
    dtype = np.result_type(*choicelist, default)
    chosen = np.asarray(default, dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=False):
        chosen = np.where(condition, np.asarray(choice, dtype), chosen)
    return chosen


def piecewise(x: Array, condlist: Any, funclist: Any) -> Array:
    chosen = np.zeros_like(x)
    if len(funclist) == len(condlist) + 1:
        chosen = chosen + value_of(funclist[-1], x)
    for condition, function in zip(condlist, funclist, strict=False):
        chosen = np.where(condition, value_of(function, x), chosen)
    return chosen if np.ndim(x) == 0 else np.asarray(chosen, x.dtype)


def value_of(function: Any, x: Array) -> Array:
    return function if isinstance(function, (int, float)) else function(x)


def interp(x: Array, xp: Array, fp: Array, left: Any = None, right: Any = None) -> Array:
    xp, fp = np.asarray(xp, float), np.asarray(fp, float)
    if xp.size == 0:
        raise ValueError("array of sample points is empty")
    if xp.size != fp.size:
        raise ValueError("fp and xp are not of the same length.")
    low = fp[0] if left is None else left
    high = fp[-1] if right is None else right
    if np.ndim(x) == 0:
        return np.float64(between(x, xp, fp, low, high))
    flat = in_order(x)
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
            polyval, logspace, meshgrid, ix_, isclose, allclose, array_equal, nan_to_num, sinc, select,
            piecewise,
            interp,
        )
    },
    **{function: ours for part in PARTS for function, ours in part.FUNCTIONS.items()},
}  # fmt: skip
"""By NumPy's function, ours."""


def code_of(function: Any) -> Any:
    """Our code of a function of NumPy or of `scipy.linalg`; None where there is none."""
    for known, code in FUNCTIONS.items():
        if function is known or (type(function) is BuiltinMethodType and function == known):
            return code
    linalg, name = sys.modules.get("scipy.linalg"), getattr(function, "__name__", None)
    if name not in written_factors.SCIPY or getattr(linalg, name, None) is not function:
        return None
    return written_factors.SCIPY[name]


def is_written(function: object) -> bool:
    """True for a function of NumPy or SciPy that has code of ours."""
    return code_of(function) is not None


METHODS: dict[str, Any] = {name: ours for part in PARTS for name, ours in part.METHODS.items()}
"""The same, of arrays' methods."""

CASES: tuple[Case, ...] = (
    *(case for part in PARTS for case in part.CASES),
    Case(
        "np.cross(np.stack((x, x * x, x + 1), axis=1), np.array([0.5, 2.0, -1.0]))", {"x": "vector"}
    ),
    Case("np.polyval([1.5, -2.0, 0.5], x)", {"x": "real"}),
    Case("np.polyval(x, 0.7)", {"x": "vector"}),
    Case("np.logspace(0.0, s, 5)", {"s": "scalar"}),
    Case("a[np.ix_([0, 0], a[0] > 0)]", {"a": "matrix"}),
    Case("np.isclose(x, x + 1e-9)", {"x": "special"}),
    Case("np.isclose(x, x[::-1], equal_nan=True)", {"x": "special"}),
    Case("np.allclose(x, x)", {"x": "special"}),
    Case("np.array_equal(x, x + 0)", {"x": "real"}),
    Case("np.nan_to_num(x)", {"x": "special"}),
    Case("np.sinc(x)", {"x": "real"}),
    Case("np.select([x > 1, x < 0], [x, x * x], 2.0)", {"x": "real"}),
    Case("np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v])", {"x": "real"}),
    Case("np.interp(x, [-1.0, 0.0, 0.5, 2.0], [2.0, 1.0, 4.0, 3.0])", {"x": "real"}),
    Case(
        "np.interp(s, np.cumsum(w), np.cumsum(w * w), left=-1.0)", {"s": "scalar", "w": "positive"}
    ),
)
