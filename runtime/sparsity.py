"""Which elements of a result depend on which of the arguments; Jacobians, one product for each colour.

The pattern is found with the derivative's own code: a direction that is NaN in some elements has a tangent
that is NaN wherever one of them has a share in it, as NaN plus or times anything is NaN, and 0 times the
partial of anything else is 0 (the strong zeros). So no entry that is not zero at the given arguments can be
missed, and entries that only happen to be zero are mostly found as well. The same holds of cotangents.

Halves of the arguments are asked for first, then halves of these, and so on: parts that no element of the
result depends on together are asked for in one product (hierarchical probing, as in CasADi: Gillis and Diehl
2014). A stencil costs a few products for each halving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from .colouring import coloured, greedy
from .keys import Array

Run = Callable[[Iterable[Array]], Iterator[Array]]
"""For each direction the product with it: of all columns forward, of all rows in reverse; as vectors."""

FEW = 64
"""So many products a pattern may always cost."""
SHARE = 4
"""And this share of what the columns themselves would."""


@dataclass(frozen=True, eq=False)
class Sparsity:
    """The pattern of a Jacobian, and the colours in which it is computed.

    Several results or arguments come one after another, a number counting as 1. What `f.jacobian_sparsity`
    returns holds at its arguments, and wherever else the function takes the same branches, choices and
    subscripts; at a kink, where derivatives are 0 by convention, it may have less than elsewhere.
    """

    pattern: Any
    """A `scipy.sparse.csc_array` of bools: row i has what element i of the result depends on."""
    grids: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    """The shapes of result and argument, where these are arrays: on them a stencil has few colours."""
    modes: tuple[str, ...] = ("forward", "reverse")
    """The modes that there are: a rule may come without a tangent; of Hessians columns are computed."""

    @cached_property
    def columns(self) -> Coloured:
        """Tangents of columns of one colour are computed together."""
        return Coloured(self.pattern, coloured(self.pattern, self.grids[1]))

    @cached_property
    def rows(self) -> Coloured:
        """Cotangents of rows of one colour are computed together: columns of the transpose."""
        transposed = self.pattern.T.tocsc()
        return Coloured(transposed, coloured(transposed, self.grids[0]))

    @property
    def mode(self) -> str:
        """The mode that takes fewer colours, "forward" or "reverse"."""
        return self.best_of(self.modes)

    def best_of(self, modes: tuple[str, ...]) -> str:
        if len(modes) == 1:
            return modes[0]
        fullest = int(np.diff(self.pattern.indptr).max(initial=0))
        enough = max(fullest, 1) >= self.columns.count
        return (
            "forward"
            if enough or self.colours_in("forward") <= self.colours_in("reverse")
            else "reverse"
        )

    def colours_in(self, mode: str) -> int:
        """How many products the Jacobian takes in this mode."""
        return (self.columns if mode == "forward" else self.rows).count

    @property
    def colours(self) -> int:
        """How many products the Jacobian takes in the mode that takes fewer."""
        return self.colours_in(self.mode)

    def __repr__(self) -> str:
        rows, columns = self.pattern.shape
        entries = f"{self.pattern.nnz} entries, {self.colours} colours ({self.mode})"
        return f"<Sparsity {rows} x {columns}: {entries}>"


def number_of(colours: Array) -> int:
    return int(colours.max(initial=-1)) + 1


class EntryMissing(Exception):
    """A product has entries where the pattern has none."""


@dataclass(frozen=True, eq=False)
class Coloured:
    """A CSC pattern, and the colours of its columns."""

    pattern: Any
    colours: Array

    @property
    def count(self) -> int:
        return number_of(self.colours)

    @cached_property
    def places(self) -> list[Array]:
        """For each colour where its entries lie among all."""
        columns = np.repeat(np.arange(self.pattern.shape[1]), np.diff(self.pattern.indptr))
        of_entries = self.colours[columns]
        order = np.argsort(of_entries, kind="stable")
        return np.split(order, np.cumsum(np.bincount(of_entries, minlength=self.count))[:-1])

    def matrix(self, run: Run, also: Sequence[Array]) -> tuple[Any, list[Array]]:
        """The matrix, one product for each colour, and the products with what else there is.

        EntryMissing where a product has entries where the pattern has none.
        """
        from scipy.sparse import csc_array  # pyright: ignore

        rows, data = self.pattern.indices, np.zeros(self.pattern.nnz)
        directions = (np.where(self.colours == c, 1.0, 0.0) for c in range(self.count))
        products = run(chain(directions, also))
        for mine in self.places[: self.count]:
            found = next(products)
            data[mine] = found[rows[mine]]
            if np.count_nonzero(found) != np.count_nonzero(data[mine]):
                raise EntryMissing
        made: Any = csc_array
        matrix = made((data, rows, self.pattern.indptr), shape=self.pattern.shape)
        return matrix, list(products)


# Finding.


@dataclass(frozen=True, eq=False)
class Parts:
    """Which elements of the results depend on which parts of the inputs, each a range of elements."""

    starts: Array
    """Of each part its first element; the number of elements behind the last."""
    rows: Array
    parts: Array
    """The elements of results, and the parts that they depend on: a pair for each dependence."""

    @property
    def are_elements(self) -> bool:
        return len(self.starts) == self.starts[-1] + 1

    def colours(self, rows: int) -> Array:
        """Parts of one colour have no element that depends on two of them.

        Most elements depend on one part alone, and have no say.
        """
        kept = np.bincount(self.rows, minlength=rows) > 1
        pairs, numbers, count = kept[self.rows], np.cumsum(kept) - 1, len(self.starts) - 1
        shape = int(np.count_nonzero(kept)), count
        return greedy(pattern_of(numbers[self.rows[pairs]], self.parts[pairs], shape), range(count))

    def matrix(self, rows: int) -> Any:
        return pattern_of(self.rows, self.parts, (rows, len(self.starts) - 1))

    def expanded(self, rows: int) -> Any:
        """The pattern of the elements: that of their parts."""
        pattern, sizes = self.matrix(rows), np.diff(self.starts)
        own = np.repeat(np.arange(len(sizes)), sizes)
        counts = np.diff(pattern.indptr)[own]
        ends = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(ends[-1]) - np.repeat(ends[:-1], counts)
        indices = pattern.indices[np.repeat(pattern.indptr[own], counts) + within]
        return pattern_of(indices, np.repeat(np.arange(len(own)), counts), (rows, len(own)))


def pattern_of(rows: Array, columns: Array, shape: tuple[int, int]) -> Any:
    """A pattern in CSC form, of bools, with its rows in order."""
    from scipy.sparse import csc_array  # pyright: ignore

    made: Any = csc_array
    small = np.int32 if max(len(rows), *shape) < 2**31 else np.int64
    places = rows.astype(small), columns.astype(small)
    pattern = made((np.ones(len(rows), bool), places), shape=shape)
    pattern.sort_indices()
    return pattern


def found_by(run: Run, sizes: Sequence[int], rows: int) -> tuple[Any, bool]:
    """The pattern of `rows` by what the sizes add up to, and whether it is fine.

    It is coarse, and has more than it should, where to know more would cost about as many products as the
    Jacobian itself.
    """
    starts = np.unique(np.concatenate([[0], np.cumsum(sizes)]))
    every = np.arange(rows)
    count = len(starts) - 1
    parts = Parts(starts, np.tile(every, count), np.repeat(np.arange(count), rows))
    left = max(FEW, int(starts[-1]) // SHARE)
    while not parts.are_elements:
        colours = parts.colours(rows)
        left -= 2 * number_of(colours)
        if left < 0:
            return parts.expanded(rows), False
        parts = halved(parts, colours, run)
    return parts.expanded(rows), True


def halved(parts: Parts, colours: Array, run: Run) -> Parts:
    """The same of the halves of all parts: two products for each colour."""
    begins, ends = parts.starts[:-1], parts.starts[1:]
    middles = (begins + ends + 1) // 2
    both = ((begins, middles), (middles, ends))
    halves = [
        (low, high, (colours == c) & (low < high))
        for c in range(number_of(colours))
        for low, high in both
    ]
    halves = [one for one in halves if one[2].any()]
    rows, firsts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    size = int(parts.starts[-1])
    directions = (nan_within(low[these], high[these], size) for low, high, these in halves)
    for (low, _, these), found in zip(halves, run(directions), strict=True):
        pairs = np.flatnonzero(these[parts.parts])
        pairs = pairs[found[parts.rows[pairs]] != 0.0]
        rows.append(parts.rows[pairs])
        firsts.append(low[parts.parts[pairs]])
    starts = np.unique(np.concatenate([parts.starts, middles]))
    numbers = np.zeros(size + 1, np.int64)
    numbers[starts] = np.arange(len(starts))
    return Parts(starts, np.concatenate(rows), numbers[np.concatenate(firsts)])


def nan_within(begins: Array, ends: Array, size: int) -> Array:
    """A direction that is NaN in the given ranges, and 0 elsewhere."""
    edges = np.zeros(size + 1, np.int64)
    np.add.at(edges, begins, 1)
    np.add.at(edges, ends, -1)
    return np.where(np.cumsum(edges)[:-1] > 0, np.nan, 0.0)
