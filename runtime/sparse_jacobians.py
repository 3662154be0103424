"""Sparse Jacobians and Hessians: `f.jacobian(..., sparsity=...)`, `f.hessian(..., sparsity=...)`.

All runs are on copies. The plain call comes last: what is refused is refused before it. A pattern that was
found is right where it was found (`sparsity`). One that is given is checked, at each call: a product has no
entries but those of the pattern, and one more, along a random direction, is that of the matrix. Where it is
not, the pattern is found as well, and an entry that is missing is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .hessian_products import value_grad_hvp
from .jacobians import (
    MODES,
    Start,
    form_of,
    has_tangent,
    is_float,
    leaves_of,
    nested,
    plainly,
    require_floats,
    rows_of,
    size_of,
    started,
    tried,
    with_leaves,
)
from .keys import Array
from .sparsity import EntryMissing, Run, Sparsity, found_by, pattern_of
from .vjp import Back, vjp

if TYPE_CHECKING:
    from .dispatch import Dispatcher

ROUNDING = 1e3
"""So many units of rounding a product may differ from the matrix's before the pattern is found anew."""


@dataclass(frozen=True, eq=False)
class Products:
    """The ways to multiply with one Jacobian: forward with directions, in reverse with cotangents."""

    start: Start
    form: Any
    """The result without its memory: see `form_of`."""
    modes: tuple[str, ...]
    """The modes that may be taken, the one of fewer elements first."""

    def sizes(self, mode: str) -> list[int]:
        """Of what is multiplied with: the numbers of elements, one after another."""
        if mode == "forward":
            return [prod(shape) for shape in self.start.shapes]
        return [np.size(leaf) for leaf in leaves_of(self.form) if is_float(leaf)]

    @property
    def shape(self) -> tuple[int, int]:
        return size_of(self.form), self.start.size

    @property
    def grids(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of rows and columns, as far as they have some."""
        results = [np.shape(leaf) for leaf in leaves_of(self.form) if is_float(leaf)]
        return grid_of(results), grid_of(self.start.shapes)

    @property
    def rounding(self) -> float:
        """A unit of rounding of the least exact type."""
        leaves = [*leaves_of(self.form), *(self.start.values[p] for p in self.start.wrt)]
        return max(float(np.finfo(np.asarray(a).dtype).eps) for a in leaves if is_float(a))

    def run(self, mode: str) -> Run:
        return self.forward if mode == "forward" else self.reverse

    def forward(self, directions: Iterable[Array]) -> Iterator[Array]:
        directions = iter(directions)
        while some := list(islice(directions, self.lanes)):
            yield from rows_of(self.along(self.start.beside(some, self.lanes)), len(some))

    @cached_property
    def lanes(self) -> int:
        """How many directions a run takes."""
        return self.start.require_lanes("tangent")

    def along(self, directions: Sequence[Array]) -> list[Array]:
        """The products with directions that lie side by side, and so do they."""
        dots = leaves_of(self.start.push_beside(directions))
        return [dot for dot in dots if dot is not None]

    def reverse(self, directions: Iterable[Array]) -> Iterator[Array]:
        directions = iter(directions)
        while some := list(islice(directions, self.back.form.lanes)):
            pulled = self.start.pull(self.back, self.form, np.stack(some))
            yield from np.concatenate([part.reshape(len(some), -1) for part in pulled], axis=1)

    @cached_property
    def back(self) -> Back:
        lanes = self.start.require_lanes("vjp", size_of(self.form))
        return vjp(self.start.dispatcher, self.start.again(), self.start.names, lanes)[1]


class Symmetric(Products):
    """The same of a Hessian: Hessian-vector products."""

    @cached_property
    def lanes(self) -> int:
        return self.start.require_lanes("product")

    def along(self, directions: Sequence[Array]) -> list[Array]:
        start, stacked = self.start, [np.moveaxis(d, -1, 0) for d in directions]
        found = value_grad_hvp(
            start.dispatcher, start.again(), start.names, stacked, self.lanes, alone=True
        )
        return [np.moveaxis(product, 0, -1) for product in found[2]]


def grid_of(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The subscripts that elements of several arrays of one shape have; none of other arrays."""
    if len(set(shapes)) != 1:
        return ()
    return shapes[0] if len(shapes) == 1 else (len(shapes), *shapes[0])


# What is called.


def sparse_jacobian(
    dispatcher: Dispatcher, values: tuple[Any, ...], wrt: Any, mode: str, sparsity: Any
) -> Any:
    """`f.jacobian(..., sparsity=...)`: blocks in CSC form, of rank 2 whatever shapes there are."""
    start = started(dispatcher, values, wrt, "jacobian")
    value, blocks = blocks_by(start, values, mode, sparsity)
    rows = (
        nested(next(blocks), start.single) if is_float(leaf) else None for leaf in leaves_of(value)
    )
    return with_leaves(value, rows)


def blocks_by(
    start: Start, values: tuple[Any, ...], mode: str, sparsity: Any
) -> tuple[Any, Iterator[list[Any]]]:
    """What the plain call returns, and for each float part of its own result the blocks of the arguments."""
    products = products_of(start, values, mode)
    matrix = matrix_of(products, sparsity)
    return plainly(start.dispatcher, values), blocks_of(products, matrix)


def jacobian_sparsity(
    dispatcher: Dispatcher, values: tuple[Any, ...], wrt: Any, mode: str
) -> Sparsity:
    """`f.jacobian_sparsity`: the pattern, found by products at these arguments."""
    start = started(dispatcher, values, wrt, "jacobian_sparsity")
    return pattern_by(start, values, mode)[1]


def pattern_by(start: Start, values: tuple[Any, ...], mode: str) -> tuple[Any, Sparsity]:
    """What the plain call returns, and the pattern."""
    found = detected(products_of(start, values, mode))
    return plainly(start.dispatcher, values), found


def sparse_hessian(dispatcher: Dispatcher, values: tuple[Any, ...], wrt: Any, sparsity: Any) -> Any:
    """`f.hessian(..., sparsity=...)`: the same of the gradient, by Hessian-vector products."""
    start = started(dispatcher, values, wrt, "hessian")
    _, rows = blocks_of_hessian(start, values, sparsity)
    return nested([nested(row, start.single) for row in rows], start.single)


def blocks_of_hessian(
    start: Start, values: tuple[Any, ...], sparsity: Any
) -> tuple[Any, list[list[Any]]]:
    """What the plain call returns, and for each argument a block for each."""
    own = unchecked(start)
    own.require_lanes("product")
    tried(own, values)
    products = Symmetric(own, form_of(tuple(own.values[p] for p in own.wrt)), ("forward",))
    matrix = matrix_of(products, sparsity)
    return plainly(start.dispatcher, values), list(blocks_of(products, matrix))


def unchecked(start: Start) -> Start:
    """The same function, whose derivatives are not checked: patterns are found by some that are NaN."""
    if not start.dispatcher.options["sanitize"]:
        return start
    return replace(start, dispatcher=start.dispatcher.apart(sanitize=""))


def products_of(start: Start, values: tuple[Any, ...], mode: str) -> Products:
    """The products of a call, whose primal has run on copies."""
    if mode not in MODES:
        raise ValueError(f"mode={mode!r}: use 'auto', 'forward' or 'reverse'")
    start = unchecked(start)
    require_floats(start)
    modes = ("forward", "reverse") if mode == "auto" else (mode,)
    if mode == "auto" and not has_tangent(start):
        modes = ("reverse",)
    if mode == "forward":
        start.require_lanes("tangent")
    if "reverse" in modes:
        start.require("vjp")
    form = form_of(start.own(tried(start, values)))
    if start.size > size_of(form):
        modes = modes[::-1]
    return Products(start, form, modes)


# Patterns.


def detected(products: Products) -> Sparsity:
    """The pattern at the arguments."""
    try:
        return probed(products)
    except Exception as error:  # of a foreign function that a rule calls, say
        error.add_note(
            f"{products.start.call}: the pattern is found by derivatives in directions that are not numbers, "
            "and a run of one has raised: give sparsity= a pattern"
        )
        raise


def probed(products: Products) -> Sparsity:
    """What the mode of fewer elements finds, or both where that is coarse."""
    pattern: Any = None
    for mode in products.modes:
        forward = mode == "forward"
        other = products.shape[0] if forward else products.shape[1]
        one, fine = found_by(products.run(mode), products.sizes(mode), other)
        one = one if forward else one.T.tocsc()
        pattern = one if pattern is None or fine else pattern.multiply(one).tocsc()
        if fine:
            break
    return Sparsity(pattern, products.grids, products.modes)


def given(products: Products, sparsity: Any) -> Sparsity:
    """A pattern of the user's, of a sparse matrix what it stores; TypeError or ValueError if it is none."""
    from scipy.sparse import csc_array, issparse  # pyright: ignore

    call = products.start.call
    if isinstance(sparsity, Sparsity):
        known = sparsity
    elif isinstance(sparsity, np.ndarray | list) or issparse(sparsity):
        made: Any = csc_array
        stored = made(sparsity if issparse(sparsity) else np.atleast_2d(sparsity)).tocoo()
        pattern = pattern_of(stored.row, stored.col, stored.shape)
        known = Sparsity(pattern, products.grids, products.modes)
    else:
        raise TypeError(
            f"{call}: sparsity={sparsity!r}: use 'auto', an array, a sparse matrix, or what "
            "jacobian_sparsity returns"
        )
    if known.pattern.shape != products.shape:
        raise ValueError(
            f"{call}: the sparsity has shape {known.pattern.shape}, and the matrix {products.shape}"
        )
    return known


# The matrix.


def matrix_of(products: Products, sparsity: Any) -> Any:
    """The Jacobian in CSC form, of float64."""
    if isinstance(sparsity, str) and sparsity == "auto":
        return certain(products, detected(products))
    known = given(products, sparsity)
    try:
        matrix, agrees = checked(products, known)
        if agrees:
            return matrix
    except EntryMissing:
        matrix = None
    full = certain(products, joint(products, known))
    extra = full.copy()
    extra.data = (full.data != 0.0).astype(np.int8)
    extra = (extra - extra.multiply(known.pattern)).tocoo()
    if extra.nnz and extra.data.any():
        k = int(np.flatnonzero(extra.data)[0])
        raise ValueError(
            f"{products.start.call}: the sparsity has no entry ({extra.row[k]}, {extra.col[k]}), and the "
            "matrix has one: use sparsity='auto', or a pattern with all entries"
        )
    return full if matrix is None else matrix


def joint(products: Products, known: Sparsity) -> Sparsity:
    """What is known and what is found."""
    pattern = (known.pattern + detected(products).pattern).tocsc()
    pattern.sort_indices()
    return Sparsity(pattern, products.grids, products.modes)


def certain(products: Products, sparsity: Sparsity) -> Any:
    """The matrix by a pattern that has all of its entries, if each run computes the same."""
    try:
        return computed(products, sparsity, ())[0]
    except EntryMissing:
        name = products.start.dispatcher.function.__qualname__
        raise RuntimeError(
            f"{products.start.call}: two runs of {name} with the same arguments differ"
        ) from None


def computed(
    products: Products, sparsity: Sparsity, also: Sequence[Array]
) -> tuple[Any, list[Array]]:
    """The matrix, one product for each colour, and the products with what else there is.

    EntryMissing where the pattern is seen to be too small.
    """
    mode = sparsity.best_of(products.modes)
    coloured = sparsity.columns if mode == "forward" else sparsity.rows
    matrix, others = coloured.matrix(products.run(mode), also)
    return matrix if mode == "forward" else matrix.T.tocsc(), others


def checked(products: Products, sparsity: Sparsity) -> tuple[Any, bool]:
    """The matrix, and whether it is the derivative along a random direction, up to rounding."""
    forward = sparsity.best_of(products.modes) == "forward"
    rng, size = np.random.default_rng(0), products.shape[1 if forward else 0]
    direction = rng.uniform(0.5, 1.5, size) * rng.choice([-1.0, 1.0], size)
    matrix, (found,) = computed(products, sparsity, [direction])
    multiplied = matrix if forward else matrix.T
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = multiplied @ direction
        bound = abs(multiplied) @ abs(direction)
        near = abs(found - wanted) <= ROUNDING * products.rounding * bound
    return matrix, bool((near | ~(np.isfinite(found) | np.isfinite(wanted))).all())


def blocks_of(products: Products, matrix: Any) -> Iterator[list[Any]]:
    """For each part of the result the blocks of the arguments, in its dtype."""
    ends = np.cumsum([0, *products.sizes("forward")])
    first = 0
    for leaf in leaves_of(products.form):
        if is_float(leaf):
            rows = matrix[first : first + np.size(leaf)]
            first += np.size(leaf)
            dtype = np.asarray(leaf).dtype
            yield [rows[:, a:b].astype(dtype) for a, b in pairwise(ends)]
