"""What functions written in Python (`written`) ask while compiling: orders of axes, subscripts, parsed text.

These functions are not compiled: the compiler runs them, on arguments that it knows, and what they return
(numbers, strings, None, slices, tuples of them) is a constant of the code around the call::

    np.transpose(a, moved(a.ndim, axis, -1))        np.transpose(a, (0, 2, 1))
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

EVERYTHING = slice(None)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Unplanned(Exception):
    """What is asked for is not compiled, or is an error of NumPy's; the reason, and the way out if any."""


FOR_DEVICE: ContextVar[bool] = ContextVar("FOR_DEVICE", default=False)
"""Whether what is compiled will run on a device."""


def has_many_threads() -> bool:
    """Whether more work costs less where all elements are gone through at once."""
    return FOR_DEVICE.get()


def axis_of(axis: int, rank: int) -> int:
    """The axis, counted from the front."""
    if not -rank <= axis < rank:
        raise Unplanned(f"axis {axis} is out of bounds for array of dimension {rank}")
    return axis % rank


def axes_of(axes: Any, rank: int) -> tuple[int, ...]:
    """The axes that `axis=` names, all of them for None."""
    if axes is None:
        return tuple(range(rank))
    found = tuple(axis_of(a, rank) for a in (axes if isinstance(axes, tuple) else (axes,)))
    if len(set(found)) < len(found):
        raise Unplanned("duplicate value in 'axis'")
    return found


def moved(rank: int, source: Any, destination: Any) -> tuple[int, ...]:
    """The order of axes in which those of `source` stand at `destination`."""
    first, last = axes_of(source, rank), axes_of(destination, rank)
    if len(first) != len(last):
        raise Unplanned(
            "`source` and `destination` arguments must have the same number of elements"
        )
    order = [a for a in range(rank) if a not in first]
    for to, axis in sorted(zip(last, first, strict=True)):
        order.insert(to, axis)
    return tuple(order)


def swapped(rank: int, axis1: int, axis2: int) -> tuple[int, ...]:
    order = list(range(rank))
    a, b = axis_of(axis1, rank), axis_of(axis2, rank)
    order[a], order[b] = b, a
    return tuple(order)


def reversing(rank: int, axes: Any) -> tuple[slice, ...]:
    """The subscript that turns these axes around."""
    turned = axes_of(axes, rank)
    return tuple(slice(None, None, -1) if k in turned else EVERYTHING for k in range(rank))


def widened(rank: int, axes: Any) -> tuple[Any, ...]:
    """The subscript after which the result has these axes as new ones, of one element."""
    several = axes if isinstance(axes, tuple) else (axes,)
    total = rank + len(several)
    new = axes_of(several, total)
    return tuple(None if k in new else EVERYTHING for k in range(total))


def quarters(k: int) -> int:
    return k % 4


def whole(count: int) -> tuple[slice, ...]:
    """`:` for as many axes."""
    return (EVERYTHING,) * count


def at_axis(count: int, at: int) -> tuple[Any, ...]:
    """The subscript that makes a vector run along axis `at` of `count`."""
    return tuple(EVERYTHING if k == at else None for k in range(count))


def upto(count: int) -> tuple[int, ...]:
    return tuple(range(count))


def paired(axes: Any, first: int, second: int) -> tuple[tuple[int, int], ...]:
    """The axes of two operands of these ranks that `np.tensordot` sums over, in pairs."""
    if isinstance(axes, int):
        left, right = range(first - axes, first), range(axes)
    else:
        left, right = (side if isinstance(side, tuple) else (side,) for side in axes)
    if len(left) != len(right) or len(left) > min(first, second):
        raise Unplanned("shape-mismatch for sum")
    pairs = [(axis_of(i, first), axis_of(j, second)) for i, j in zip(left, right, strict=True)]
    return tuple(pairs)


def contraction(axes: Any, first: int, second: int) -> str:
    """The subscripts by which `np.einsum` does it."""
    a, b = list(LETTERS[:first]), list(LETTERS[first : first + second])
    pairs = paired(axes, first, second)
    for i, j in pairs:
        b[j] = a[i]
    kept = [c for c in (*a, *b) if c not in {a[i] for i, _ in pairs}]
    return f"{''.join(a)},{''.join(b)}->{''.join(kept)}"


def is_int(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iub"


def is_exact_in_int64(dtype: np.dtype[Any]) -> bool:
    return np.can_cast(dtype, np.int64)


def is_same_kind(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    return np.can_cast(source, target, "same_kind")


def as_float(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that ints are computed in where a fraction may come out."""
    return dtype if dtype.kind == "f" else np.dtype(float)


def weighted_dtype(values: np.dtype[Any], weights: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that a weighted mean is computed in."""
    return np.result_type(as_float(values), weights)


def norm_kind(ord: Any, axis: Any, rank: int) -> str:
    """What `np.linalg.norm` of an array of that rank computes."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    count = rank if axis is None else len(axes)
    if axis is None and ord is None:
        return "root of squares"
    if count not in (1, 2):
        raise Unplanned("Improper number of dimensions to norm.")
    if ord is None or (ord == 2 and count == 1) or (ord == "fro" and count == 2):
        return "root of squares"
    if count == 2:
        of_values = ord in (2, -2, "nuc")
        raise Unplanned(
            f"np.linalg.norm of a matrix with ord={ord!r} is not compiled",
            None if of_values else "take np.abs(x).sum(axis) and its max() or min()",
        )
    if not isinstance(ord, int | float) or ord in (0, -np.inf):
        table: dict[Any, str] = {0: "np.count_nonzero(x)", -np.inf: "np.abs(x).min()"}
        raise Unplanned(
            f"np.linalg.norm with ord={ord!r} is not compiled",
            f"use {table[ord]}" if ord in table else None,
        )
    return "largest" if ord == np.inf else "sum" if ord == 1 else "sum of powers"


def scan_dtype(own: np.dtype[Any], asked: Any, out: np.dtype[Any] | None) -> np.dtype[Any]:
    """The dtype that running sums and products are computed in, as `np.add.accumulate` has it."""
    if asked is not None:
        return np.dtype(asked)
    return np.sum(np.empty(0, own)).dtype if out is None else np.result_type(own, out)


def hash_of_word(word: str) -> int:
    """The same in every process, other than Python's."""
    return zlib.crc32(word.encode()) & 0x7FFFFFFF


PLANS: frozenset[Callable[..., Any]] = frozenset(
    (
        has_many_threads, axis_of, axes_of, moved, swapped, reversing, widened, quarters, whole, at_axis,
        upto, is_int,
        is_same_kind, as_float, norm_kind, weighted_dtype, scan_dtype, hash_of_word, paired,
        is_exact_in_int64, contraction,
    )
)  # fmt: skip
"""All of them."""
