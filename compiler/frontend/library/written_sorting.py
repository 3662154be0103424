"""Functions that sort, rank and look for elements, in Python: see `written`.

All of them sort places, not elements: comparisons have no derivative,
and elements are read through the places.
Equal elements stay in order, as with NumPy's `kind="stable"`; NaN is behind all else.
"""

# ruff: noqa: RUF005  # a subscript is no place for a starred item here

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import Case
from .plans import as_float, axis_of, has_many_threads, is_int, upto, whole
from .written_matrices import Array, in_order, refuse
from .written_ranks import rank, rank_slabs

# Places in order.


def slabs(a: Array, axis: int) -> Array:
    """The array as one of rank 3, whose second axis is that axis."""
    before, behind = 1, 1
    for k in upto(axis):
        before *= a.shape[k]
    for k in upto(a.ndim - axis - 1):
        behind *= a.shape[axis + 1 + k]
    return np.reshape(a, (before, a.shape[axis], behind))


def argsort(a: Array, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Array:
    a = np.asarray(a)
    if axis is None:
        a = in_order(a)
    along = a.ndim - 1 if axis is None else axis_of(axis, a.ndim)
    out = np.empty(a.shape, np.int64)
    of, into = slabs(a, along), slabs(out, along)
    if has_many_threads():
        rank_slabs(of, into)
    else:
        spare = np.empty(a.shape[along], np.int64)
        for i in range(of.shape[0]):
            for k in range(of.shape[2]):
                rank(of[i, :, k], into[i, :, k], spare)
    return out


def select(a: Array, order: Array, k: int) -> None:
    """Let the k-th place be that of the k-th element in order: those before it are smaller.

    The first pivot is in the middle, as suits what is in order; the others are scattered, so that no pattern
    of the elements makes one bad pivot after another.
    """
    low, high, rounds = 0, a.size - 1, 0
    while low < high:
        pivot = 1103515245 * rounds % (high - low + 1) if rounds > 0 else (high - low) // 2
        middle, i, j = order[low + pivot], low, high
        while i <= j:
            while is_before(a, order[i], middle):
                i += 1
            while is_before(a, middle, order[j]):
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i, j = i + 1, j - 1
        low, high = (i if k > j else low), (j if k < i else high)
        rounds += 1


def is_before(a: Array, p: int, q: int) -> bool:
    """Whether the element at one place comes before that at another: of equal ones the first."""
    u, v = a[p], a[q]
    if u < v or (v != v and u == u):
        return True
    return p < q and not (v < u or (u != u and v == v))


def places(a: Array, axis: int, wanted: Any) -> Array:
    """Places of which those at the `wanted` ones are in order, and no others."""
    out, ends = np.empty(a.shape, np.int64), np.array(wanted)  # so that there is one loop over them
    of, into = slabs(a, axis), slabs(out, axis)
    for i in range(of.shape[0]):
        for k in range(of.shape[2]):
            for j in range(of.shape[1]):
                into[i, j, k] = j
            for at in ends:
                select(of[i, :, k], into[i, :, k], at)
    return out


def partly_sorted(a: Array, axis: int, wanted: Any) -> Array:
    return chosen(a, places(a, axis, wanted), axis)


def sort(a: Array, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Array:
    a = np.asarray(a)
    if axis is None:
        a = in_order(a)
    along = a.ndim - 1 if axis is None else axis_of(axis, a.ndim)
    return chosen(a, argsort(a, along), along)


def take_along_axis(arr: Array, indices: Array, axis: Any = -1) -> Array:
    a = np.asarray(arr)
    if axis is None:
        a = in_order(a)
    if indices.ndim != a.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    return chosen(a, indices, 0 if axis is None else axis_of(axis, a.ndim))


def chosen(a: Array, places: Array, axis: int) -> Array:
    """Elements by their places along an axis."""
    if a.ndim == 1:
        return a[places]
    out = np.empty(places.shape, a.dtype)
    of, at, into = slabs(a, axis), slabs(places, axis), slabs(out, axis)
    if of.shape[0] != at.shape[0] or of.shape[2] != at.shape[2]:
        raise IndexError("shape mismatch: indexing arrays could not be broadcast together")
    for i in range(at.shape[0]):
        for j in range(at.shape[1]):
            for k in range(at.shape[2]):
                into[i, j, k] = of[i, at[i, j, k], k]
    return out


def put_along_axis(arr: Array, indices: Array, values: Any, axis: Any) -> None:
    along = axis_of(axis, arr.ndim)
    if arr.ndim > 2 or np.ndim(values) not in (0, arr.ndim):
        refuse("`put_along_axis` is compiled for vectors and matrices", "write the loop")
    if arr.ndim == 1:
        arr[indices] = values
        return
    for i in range(indices.shape[0]):
        for j in range(indices.shape[1]):
            v = values if np.ndim(values) == 0 else values[i, j]
            if along == 0:
                arr[indices[i, j], j] = v
            else:
                arr[i, indices[i, j]] = v


def lexsort(keys: Any, axis: int = -1) -> Array:
    if not isinstance(keys, tuple):
        refuse("`lexsort` is compiled for a tuple of vectors", "give it a tuple: (k[0], k[1])")
    order = argsort(keys[0])
    for k in upto(len(keys) - 1):
        order = order[argsort(keys[k + 1][order])]
    return order


def partition(a: Array, kth: Any, axis: Any = -1) -> Array:
    require_within(a, kth, axis)
    return sort(a, axis)


def argpartition(a: Array, kth: Any, axis: Any = -1) -> Array:
    require_within(a, kth, axis)
    return argsort(a, axis)


def require_within(a: Array, kth: Any, axis: Any) -> None:
    flat = in_order(a) if axis is None else np.asarray(a)
    n = flat.shape[0 if axis is None else axis_of(axis, flat.ndim)]
    for at in (kth,) if np.ndim(kth) == 0 else kth:
        if not -n <= at < n:
            raise ValueError(f"kth(={at + n if at < 0 else at}) out of bounds ({n})")


def sort_in_place(a: Array, axis: int = -1, kind: Any = None, *, stable: Any = None) -> None:
    a[...] = sort(a, axis)


def partition_in_place(a: Array, kth: Any, axis: int = -1) -> None:
    a[...] = partition(a, kth, axis)


# Quantiles.


def median(a: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    a = np.asarray(a)
    if isinstance(axis, tuple):
        refuse("`median` is compiled along one axis, or of all", "reshape the array")
    along = 0 if axis is None else axis_of(axis, a.ndim)
    flat = in_order(a) if axis is None else a
    before, n = whole(along), flat.shape[along]
    if n == 0:
        return np.mean(a, axis=axis, keepdims=keepdims)
    ordered = partly_sorted(flat, along, ((n - 1) // 2, n // 2, n - 1))
    low, high = ordered[before + ((n - 1) // 2,)], ordered[before + (n // 2,)]
    low, high = np.asarray(low, as_float(a.dtype)), np.asarray(high, as_float(a.dtype))
    found = np.where(n % 2 == 1, high, (low + high) / 2)
    return with_axis(a, without_nan(ordered, before, found), axis, keepdims)


def without_nan(ordered: Array, before: Any, found: Array) -> Array:
    """The result, NaN where there is one among the elements."""
    if is_int(ordered.dtype):
        return found
    last = ordered[before + (-1,)]
    return np.where(np.isnan(last), last, found)


def with_axis(a: Array, found: Array, axis: Any, keepdims: bool) -> Array:
    """The result with a unit axis in the place of the one that is gone."""
    if not keepdims:
        return found
    if axis is None:
        return np.full((1,) * a.ndim, found)
    return np.expand_dims(found, axis_of(axis, a.ndim))


def quantile(
    a: Array, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    return at_quantiles(a, q, axis, method, keepdims, "Quantiles must be in the range [0, 1]")


def percentile(
    a: Array, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    message = "Percentiles must be in the range [0, 100]"
    share = q / 100 if np.ndim(q) == 0 else np.asarray(q) / 100
    return at_quantiles(a, share, axis, method, keepdims, message)


def at_quantiles(a: Array, q: Any, axis: Any, method: str, keepdims: bool, message: str) -> Array:
    a = np.asarray(a)
    if method != "linear":
        refuse("quantiles are compiled with method='linear'", "index the sorted array")
    if isinstance(axis, tuple):
        refuse("quantiles are compiled along one axis, or of all", "reshape the array")
    flat = in_order(a) if axis is None else a
    along = 0 if axis is None else axis_of(axis, a.ndim)
    if np.ndim(q) == 0:
        if not 0 <= q <= 1:
            raise ValueError(message)
        last = flat.shape[along] - 1
        first = int(np.floor(last * q))
        ordered = partly_sorted(flat, along, (max(first, 0), min(first + 1, last), last))
        return with_axis(a, at_quantile(ordered, q, along), axis, keepdims)
    if keepdims or np.ndim(q) > 1:
        refuse("several quantiles are compiled for a vector of them, without keepdims", "loop")
    shares, ordered = np.asarray(q), sort(flat, along)
    if not np.all((shares >= 0) & (shares <= 1)):
        raise ValueError(message)
    out = np.empty(shares.shape + ordered.shape[:along] + ordered.shape[along + 1 :])
    for k in range(shares.size):
        out[k] = at_quantile(ordered, shares[k], along)
    return out


def at_quantile(ordered: Array, q: Any, axis: int) -> Array:
    before, n = whole(axis), ordered.shape[axis]
    at = (n - 1) * q
    k = int(np.floor(at))
    t = at - k
    low, high = ordered[before + (k,)], ordered[before + (min(k + 1, n - 1),)]
    step = high - low
    found = np.where(t >= 0.5, high - step * (1 - t), low + step * t)
    return without_nan(ordered, before, found)


def nanmedian(a: Array) -> Array:
    flat = in_order(a)
    return median(flat[~np.isnan(flat)])


def nanquantile(a: Array, q: Any) -> Array:
    flat = in_order(a)
    return quantile(flat[~np.isnan(flat)], q)


def nanpercentile(a: Array, q: Any) -> Array:
    flat = in_order(a)
    return percentile(flat[~np.isnan(flat)], q)


# What is different, what is in.


def unique(
    ar: Array,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
) -> Any:
    if axis is not None:
        refuse(
            "`unique` is compiled for all elements, without `axis`", "call it outside compiled code"
        )
    a = np.asarray(ar)
    flat = in_order(a)
    order = argsort(flat)
    n = flat.size
    inverse = np.empty(n, np.int64)
    count = 0
    for i in range(n):
        if i > 0:
            u, v = flat[order[i - 1]], flat[order[i]]
            if u != v and (u == u or v == v):
                count += 1
        inverse[order[i]] = count
    count = count + 1 if n > 0 else 0
    places, counts = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for i in range(n - 1, -1, -1):
        places[inverse[i]] = i
        counts[inverse[i]] += 1
    found = (flat[places],)
    if return_index:
        found += (places,)
    if return_inverse:
        found += (np.reshape(inverse, a.shape),)
    if return_counts:
        found += (counts,)
    return found[0] if len(found) == 1 else found


def isin(element: Array, test_elements: Any, invert: bool = False) -> Array:
    a, wanted = np.asarray(element), np.sort(in_order(np.asarray(test_elements)))
    out = np.empty(a.shape, np.bool_)
    flat, of = np.reshape(out, a.size), in_order(a)
    for i in range(of.size):
        k = place_of(wanted, of[i], True)
        flat[i] = (k < wanted.size and wanted[k] == of[i]) != invert
    return out


def intersect1d(ar1: Array, ar2: Array) -> Array:
    u, other = unique(ar1), np.asarray(ar2)
    return np.asarray(u[isin(u, other)], np.result_type(u, other))


def setdiff1d(ar1: Array, ar2: Array) -> Array:
    u = unique(ar1)
    return u[isin(u, ar2, True)]


def union1d(ar1: Array, ar2: Array) -> Array:
    return unique(np.concatenate((in_order(np.asarray(ar1)), in_order(np.asarray(ar2)))))


# Search.


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
    v = np.asarray(v)
    out = np.empty(v.shape, np.int64)
    into, of = np.reshape(out, v.size), in_order(v)
    for i in range(of.size):
        into[i] = place_of(a, of[i], side == "left")
    return out


def digitize(x: Array, bins: Array, right: bool = False) -> Array:
    bins = np.asarray(bins)
    falls, rises = False, False
    for i in range(1, bins.size):
        rises = rises or bins[i] > bins[i - 1]
        falls = falls or bins[i] < bins[i - 1]
    if rises and falls:
        raise ValueError("bins must be monotonically increasing or decreasing")
    side = "left" if right else "right"
    return bins.size - searchsorted(bins[::-1], x, side) if falls else searchsorted(bins, x, side)


NAMED = (
    argsort, sort, take_along_axis, put_along_axis, lexsort, partition, argpartition, median, quantile,
    percentile,
    nanmedian, nanquantile, nanpercentile, unique, isin, intersect1d, setdiff1d, union1d, searchsorted,
    digitize,
)  # fmt: skip

FUNCTIONS: dict[Any, Any] = {getattr(np, f.__name__): f for f in NAMED}

METHODS: dict[str, Any] = {
    "argsort": argsort,
    "argpartition": argpartition,
    "searchsorted": searchsorted,
    "sort": sort_in_place,
    "partition": partition_in_place,
}

CUBE = "np.stack((x, -x * x), axis=1)"

CASES: tuple[Case, ...] = (
    *(
        Case(text, {"x": "vector"})
        for text in (
            "np.sort(x)", "np.argsort(-x)", "x[x.argsort()][::-1]", "np.partition(x, 1)[1]", "np.median(x)",
            "np.quantile(x, 0.3)", "np.percentile(x, [10, 50, 95])", "np.quantile(x, x[0] ** 2 % 1.0)",
            "np.lexsort((x, np.round(x)))", "np.unique(x)", "np.nanmedian(x * x)",
        )
    ),
    *(
        Case(text, {"x": "matrix"})
        for text in (
            "np.sort(x)", "np.sort(x, axis=0)", f"np.sort({CUBE}, axis=1)", "np.argsort(x, axis=0)",
            "np.median(x, axis=1)", "np.median(x, axis=0, keepdims=True)", "np.percentile(x, 40, axis=0)",
            "np.quantile(x, [0.1, 0.9], axis=1)", "np.take_along_axis(x, np.argsort(-x, axis=1), axis=1)",
            "np.sort(x, axis=None)", "np.searchsorted(np.sort(x[0]), x)",
        )
    ),
    *(
        Case(text, {"n": "natural"})
        for text in (
            "np.unique(n)",
            "np.unique(n, return_index=True, return_inverse=True, return_counts=True)[2]",
            "np.isin(n, [1, 3, 9])",
            "np.intersect1d(n, [4, 3, 3])", "np.setdiff1d(n, [2, 1])", "np.union1d(n, [7])",
            "np.sort(n, axis=None)",
        )
    ),
    *(Case(f"np.{f}(x, axis=None)", {"x": "special"}) for f in ("sort", "median")),
    Case("np.unique(x)", {"x": "special"}),
    Case("np.searchsorted(np.cumsum(w), 2.0)", {"w": "positive"}),
    Case("np.searchsorted(np.cumsum(w), w.ravel(), side='right')", {"w": "positive"}),
    Case("np.digitize(x.ravel(), [-1.0, 0.0, 1.0])", {"x": "real"}),
    Case("np.digitize(x.ravel(), [1.0, 0.0, -1.0], right=True)", {"x": "real"}),
)  # fmt: skip
