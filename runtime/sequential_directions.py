"""Several directions of one call, one after the other, where going side by side would be slower.

Directions side by side share what the primal computes, and make vectors of scalar code. Code that only
streams (`metadata["streams"]`) has neither: one direction is as fast as its arrays come, from a cache that
holds them, and several are out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from . import result_pool
from .cotangents import Spec
from .keys import Array, Overlaps
from .lane_copies import turn
from .memory import Placed, order_of

if TYPE_CHECKING:
    from .dispatch import Specialization

LARGE = 8 << 20
"""Bytes of all directions of the arguments: a few times as much is touched, and leaves a shared cache."""


def are_large(values: Sequence[Any], active: Iterable[int], lanes: int) -> bool:
    """Whether so many directions of the active arrays are too large to stay in a cache."""
    arrays = [values[p] for p in active if isinstance(values[p], np.ndarray | Placed)]
    return lanes > 1 and lanes * sum(prod(a.shape) * a.dtype.itemsize for a in arrays) >= LARGE


def are_better(
    found: Specialization,
    values: Sequence[Any],
    active: Sequence[int],
    overlaps: Overlaps,
    *,
    copied: bool = False,
) -> bool:
    """Whether large directions go one after the other, by the code for all of them.

    The function returns numbers, and stores to no argument: it can run again. Each direction is a row; where
    they are `copied` to be that, each number must be read several times (`metadata["repeats"]`).
    """
    arrays = [values[p] for p in active if isinstance(values[p], np.ndarray | Placed)]
    return (
        found.metadata["streams"]
        and (found.metadata["repeats"] or not copied)
        and not overlaps
        and not found.metadata["written"]
        and returns_numbers(found.results)
        and all(len(a.shape) < 2 or order_of(a) == "C" for a in arrays)
    )


def returns_numbers(spec: Spec) -> bool:
    """Whether no result is an array."""
    if spec["kind"] == "tuple":
        return all(map(returns_numbers, spec["items"]))
    return spec["kind"] in ("scalar", "none")


def beside(each: Sequence[Any]) -> Any:
    """The tangents of results, of each direction, as those of all: numbers to arrays."""
    if isinstance(each[0], tuple):
        return tuple(beside(items) for items in zip(*each, strict=True))
    return None if each[0] is None else np.array(each)


def is_in_rows(beside: Array) -> bool:
    """Whether each of the directions is an array without gaps."""
    return beside.ndim < 2 or beside[..., 0].flags.c_contiguous


def in_rows(beside: Array) -> Array:
    """Directions that lie side by side as one after the other, along a first axis; copied where they are not.

    All at a time: one alone would be a number here and there.
    """
    rows = np.moveaxis(beside, -1, 0)
    if is_in_rows(beside):
        return rows
    made = result_pool.empty(rows.shape, rows.dtype)
    turn(np.moveaxis(made, 0, -1), beside)
    return made


def rows_of(values: Sequence[Any], directions: Mapping[int, Array], lane: int) -> dict[int, Any]:
    """One direction of each argument: an array of an array, of rank 0 too, or a number."""
    return {
        p: d[lane, ...] if isinstance(values[p], np.ndarray | Placed) else float(d[lane])
        for p, d in directions.items()
    }
