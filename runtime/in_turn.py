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

from .cotangents import Spec
from .keys import Array, Overlaps
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
    found: Specialization, values: Sequence[Any], active: Sequence[int], overlaps: Overlaps
) -> bool:
    """Whether large directions go one after the other, by the code for all of them.

    The function returns numbers, and stores to no argument: it can run again. Each direction is a row.
    """
    arrays = [values[p] for p in active if isinstance(values[p], np.ndarray | Placed)]
    return (
        found.metadata["streams"]
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


def rows_of(directions: Mapping[int, Array], lane: int) -> dict[int, Any]:
    """One direction of each argument: an array, or a number."""
    rows = {p: d[lane] for p, d in directions.items()}
    return {p: r if isinstance(r, np.ndarray) else float(r) for p, r in rows.items()}
