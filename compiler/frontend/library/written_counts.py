"""Counts, sums of weights and bins of elements, in Python: see `written`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import Case
from .plans import as_float, is_exact_in_int64
from .written_matrices import Array, in_order, refuse
from .written_sorting import place_of


def bincount(x: Array, weights: Any = None, minlength: int = 0) -> Array:
    x = np.asarray(x)
    if not is_exact_in_int64(x.dtype):
        refuse("`bincount` counts ints", "convert them with .astype(np.int64)")
    x, most = x.astype(np.int64), -1
    for i in range(x.size):
        if x[i] < 0:
            raise ValueError("'list' argument must have no negative elements")
        most = max(most, x[i])
    if weights is None:
        counts = np.zeros(max(most + 1, minlength), np.int64)
        for i in range(x.size):
            counts[x[i]] += 1
        return counts
    w = np.asarray(weights)
    if w.size != x.size:
        raise ValueError("The weights and list don't have the same length.")
    sums = np.zeros(max(most + 1, minlength))
    for i in range(x.size):
        sums[x[i]] += w[i]
    return sums


def histogram_bin_edges(a: Array, bins: Any = 10, range: Any = None) -> Array:
    a = np.asarray(a)
    if isinstance(bins, str):
        refuse(
            "`histogram` is compiled for a number of bins, or their edges", "give a number: bins=10"
        )
    if np.ndim(bins) > 0:
        edges = np.asarray(bins)
        if np.any(edges[1:] < edges[:-1]):
            raise ValueError("`bins` must increase monotonically, when an array")
        return edges
    if bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    if range is None:
        kind = as_float(a.dtype).type
        low = kind(np.min(a)) if a.size > 0 else kind(0.0)
        high = kind(np.max(a)) if a.size > 0 else kind(1.0)
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"autodetected range of [{low}, {high}] is not finite")
    else:
        low, high = range[0], range[1]
        if low > high:
            raise ValueError("max must be larger than min in range parameter.")
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"supplied range of [{low}, {high}] is not finite")
        low, high = low * 1.0, high * 1.0
    if low == high:
        low, high = low - 0.5, high + 0.5
    kind = as_float((low + high + np.zeros(0, a.dtype)).dtype)
    return np.linspace(low, high, bins + 1).astype(kind)


def histogram(
    a: Array,
    bins: Any = 10,
    range: Any = None,
    density: Any = None,
    weights: Any = None,
) -> Any:
    a = np.asarray(a)
    edges = histogram_bin_edges(a, bins, range)
    counts = tallied(in_order(a), edges, weights, np.ndim(bins) == 0)
    if density:
        width = (edges[1:] - edges[:-1]).astype(float)
        return counts / width / np.sum(counts), edges
    return counts, edges


def tallied(flat: Array, edges: Array, weights: Any, even: bool) -> Array:
    """How many elements, or which sum of weights, each bin has; the last one has its upper edge."""
    n = edges.size - 1
    w = in_order(weights) if weights is not None else flat
    counts = np.zeros(n, np.int64 if weights is None else w.dtype)
    for i in range(flat.size):
        v = flat[i]
        if edges[0] <= v <= edges[n]:
            k = even_bin(edges, v) if even else min(place_of(edges, v, False), n) - 1
            counts[k] += 1 if weights is None else w[i]
    return counts


def even_bin(edges: Array, v: float) -> int:
    """The bin of a number between evenly spaced edges: where it should be, or a bin beside that."""
    n = edges.size - 1
    share = (v - edges[0]) / (edges[n] - edges[0]) * n
    k = int(share) if share < n else n - 1
    while k > 0 and v < edges[k]:
        k -= 1
    while k < n - 1 and v >= edges[k + 1]:
        k += 1
    return k


NAMED = (bincount, histogram, histogram_bin_edges)

FUNCTIONS: dict[Any, Any] = {getattr(np, f.__name__): f for f in NAMED}

METHODS: dict[str, Any] = {}

CASES: tuple[Case, ...] = (
    *(
        Case(text, {"x": "vector"})
        for text in (
            "np.histogram(x, bins=3)", "np.histogram(x, [-1.0, 0.0, 0.5, 1.0], weights=x * x)[0]",
            "np.histogram(x, 4, (-2, 2), density=True)",
        )
    ),
    *(
        Case(text, {"n": "natural"})
        for text in (
            "np.bincount(n.ravel())", "np.bincount(np.append(n, 2), np.append(n, 1) * 0.5, minlength=9)",
        )
    ),
)  # fmt: skip
