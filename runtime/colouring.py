"""Colours of the columns of a sparse matrix, such that no row has two entries of one colour.

One product with the sum of the columns of a colour then shows all their entries (Curtis, Powell and Reid
1974). Fewest colours is a hard problem. What is tried, until there are as few as the fullest row has entries:
the columns one after another, each in the first colour that is free; the colours of a stencil on a grid,
which repeat (Goldfarb and Toint 1984); the first in the order "smallest last" (Matula and Beck 1983).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from .keys import Array

MEETINGS = 10**7
"""Smallest-last asks which columns meet: not where there are more pairs."""
SAMPLE = 256
"""So many rows rule out most colours of grids."""


def coloured(pattern: Any, grid: Sequence[int] = ()) -> Array:
    """The colour of each column of a CSC pattern, from 0; `grid` is the shape that the columns have."""
    enough = int(np.bincount(pattern.indices, minlength=1).max()) if pattern.nnz else 1
    best = None
    for colours in candidates(pattern, enough, grid):
        if best is None or colours.max(initial=0) < best.max(initial=0):
            best = colours
        if best.max(initial=0) < enough:
            break
    assert best is not None
    return best


def candidates(pattern: Any, enough: int, grid: Sequence[int]) -> Iterator[Array]:
    """Colourings, the cheapest to find first."""
    count = pattern.shape[1]
    if enough == count:
        yield np.arange(enough)
        return
    first = greedy(pattern, range(count))
    yield first
    yield from on_grid(pattern, range(enough, int(first.max()) + 1), grid)
    if (np.bincount(pattern.indices).astype(float) ** 2).sum() <= MEETINGS:
        yield greedy(pattern, smallest_last((pattern.T @ pattern).tocsc()))


def greedy(pattern: Any, order: Iterable[int]) -> Array:
    """Each column in the first colour that none of its rows has: sets of colours are bits of an integer."""
    rows, ends = pattern.indices.tolist(), pattern.indptr.tolist()
    used = [0] * pattern.shape[0]
    colours = [0] * pattern.shape[1]
    for column in order:
        mine = rows[ends[column] : ends[column + 1]]
        taken = 0
        for row in mine:
            taken |= used[row]
        free = ~taken & (taken + 1)
        colours[column] = free.bit_length() - 1
        for row in mine:
            used[row] |= free
    return np.array(colours, np.int64)


def smallest_last(meetings: Any) -> list[int]:
    """The columns in an order of which each prefix ends with one that meets fewest of the others in it."""
    others, ends = meetings.indices.tolist(), meetings.indptr.tolist()
    degrees = np.diff(meetings.indptr).tolist()
    buckets: list[set[int]] = [set() for _ in range(max(degrees, default=0) + 1)]
    for column, degree in enumerate(degrees):
        buckets[degree].add(column)
    order: list[int] = []
    degree = 0
    while len(order) < len(degrees):
        while not buckets[degree]:
            degree += 1
        column = buckets[degree].pop()
        order.append(column)
        degrees[column] = -1
        for other in others[ends[column] : ends[column + 1]]:
            if degrees[other] > 0:
                buckets[degrees[other]].discard(other)
                degrees[other] -= 1
                buckets[degrees[other]].add(other)
        degree = max(degree - 1, 0)
    return order[::-1]


def on_grid(pattern: Any, counts: Iterable[int], grid: Sequence[int]) -> Iterator[Array]:
    """Colours `(w . i) mod p` of the columns with subscripts i, for the first p that has such weights w."""
    entries = pattern.tocoo()
    rows, columns = entries.row.astype(np.int64), entries.col
    shape = tuple(grid) or (pattern.shape[1],)
    places = np.indices(shape).reshape(len(shape), -1)
    some = np.isin(rows, np.linspace(0, pattern.shape[0] - 1, SAMPLE).astype(np.int64))

    def alone(colours: Array, chosen: Any) -> bool:
        """No two of the chosen entries have row and colour in common."""
        both = np.sort(rows[chosen] * count + colours[columns[chosen]])
        return bool((both[1:] != both[:-1]).all())

    for count in counts:
        for weights in product(range(1, count), repeat=len(shape) - 1):
            colours = np.array([*weights, 1]) @ places % count
            if alone(colours, some) and alone(colours, slice(None)):
                yield colours
                return
