"""Jacobians and Hessians, dense or as operators: many tangents or cotangents of one call.

Each call has the side effects on its arguments of one plain call: that one is made, after all that could be
refused was, and the other runs are on copies that share memory as the arguments do. (In reverse mode the
primal of `vjp` is the plain call, and `back` runs no primal.) What is differentiated has memory of its own:
of arguments that share it with others no elements could be named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from . import keys, memory, result_sizes
from .cotangents import describe
from .diagonal_matrices import is_diagonal, ones, put_diagonal
from .gradients import refuse_overlapping_themselves, seeds, with_groups
from .hessian_products import value_grad_hvp
from .keys import Array
from .tangents import push, push_beside
from .vjp import Back, vjp

if TYPE_CHECKING:
    from .dispatch import Dispatcher

MODES = ("auto", "forward", "reverse")
LANES = 8
"""Columns, or rows, that are computed in one run: a vector of AVX-512."""
WIDE = 32
"""So many where matrices are multiplied, which one run reads once for all columns."""


@dataclass(frozen=True, eq=False)
class Start:
    """What one call starts from, and what it differentiates with respect to."""

    dispatcher: Dispatcher
    values: tuple[Any, ...]
    """Copies of the arguments and inputs, as they were before the call."""
    overlaps: keys.Overlaps
    wrt: tuple[int, ...]
    single: bool
    call: str
    parts: int | None = None
    """Of a function of parts (`objects`): how many of its results are the function's own."""

    def own(self, value: Any) -> Any:
        """The function's own result, of all that a function of parts returns."""
        return value if self.parts is None else value[: self.parts]

    def whole(self, bar: Any) -> Any:
        """The cotangent of all that it returns, where its own result has this one."""
        if self.parts is None:
            return bar
        return (*bar, *[None] * (len(self.results["items"]) - self.parts))

    @property
    def results(self) -> dict[str, Any]:
        """The description of all that it returns."""
        return self.dispatcher.specialize(self.values).results

    @property
    def own_results(self) -> dict[str, Any]:
        """That of its own result."""
        spec = self.results
        return spec if self.parts is None else {**spec, "items": self.own(spec["items"])}

    @property
    def multiplies(self) -> bool:
        """Whether the function calls BLAS."""
        symbols = self.dispatcher.specialize(self.values).metadata["symbols"]
        return "blas" in symbols.values()

    def again(self) -> tuple[Any, ...]:
        """The arguments of one more run: copies, where a run changes any."""
        return copies(self.values, self.overlaps) if self.changes else self.values

    @cached_property
    def changes(self) -> bool:
        """Whether a run may change what it is given."""
        kinds = np.ndarray, float, int, np.generic
        if not all(isinstance(value, kinds) for value in self.values):
            return True
        return bool(self.dispatcher.specialize(self.values).metadata["written"])

    @property
    def names(self) -> tuple[str, ...]:
        """What `wrt` names, as names: inputs from outside have no other."""
        return tuple(self.dispatcher.names[p] for p in self.wrt)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of what `wrt` names."""
        return [np.shape(self.values[p]) for p in self.wrt]

    @property
    def size(self) -> int:
        """The number of elements of what `wrt` names."""
        return sum(map(prod, self.shapes))

    def divided(self, vector: Array) -> list[Any]:
        """The elements of a vector as what `wrt` names, one after another: fresh arrays, and numbers."""
        parts = np.split(vector, np.cumsum([prod(shape) for shape in self.shapes])[:-1])
        return [
            part.reshape(a.shape).astype(a.dtype) if isinstance(a, np.ndarray) else float(part[0])
            for part, a in zip(parts, (self.values[p] for p in self.wrt), strict=True)
        ]

    def beside(self, vectors: Sequence[Array], lanes: int) -> list[Array]:
        """Vectors as what `wrt` names, side by side; further lanes stand still."""
        table = np.zeros((self.size, lanes))
        for lane, vector in enumerate(vectors):
            table[:, lane] = vector
        parts = np.split(table, np.cumsum([prod(shape) for shape in self.shapes])[:-1])
        dtypes = [np.asarray(self.values[p]).dtype for p in self.wrt]
        return [
            part.reshape(*shape, lanes).astype(dtype, copy=False)
            for part, shape, dtype in zip(parts, self.shapes, dtypes, strict=True)
        ]

    def require_lanes(self, mode: str, count: int | None = None) -> int:
        """Compile runs with several derivatives at once; how many. One where there is one, or they cannot.

        `count`: how many are wanted in all, by default one for each element of what `wrt` names.
        """
        wanted = self.size if count is None else count
        if wanted > 1:
            lanes = WIDE if wanted >= 2 * WIDE and self.multiplies else LANES
            try:
                self.require(mode, lanes)
            except Exception as error:
                if not getattr(error, "without_lanes", False):
                    raise
            else:
                return lanes
        self.require(mode)
        return 1

    def units(self, lanes: int) -> Iterator[tuple[list[tuple[int, int]], list[Any]]]:
        """All elements, as many at a time, and the directions along these, side by side.

        An element is the place of its argument in `wrt` and its own there. Lanes without one stand still.
        """
        elements = [(k, e) for k, shape in enumerate(self.shapes) for e in range(prod(shape))]
        for first in range(0, self.size, lanes):
            some = elements[first : first + lanes]
            directions = [
                np.zeros((*shape, lanes), np.asarray(self.values[p]).dtype)
                for p, shape in zip(self.wrt, self.shapes, strict=True)
            ]
            for lane, (place, element) in enumerate(some):
                directions[place].reshape(-1, lanes)[element, lane] = 1.0
            yield some, directions

    def push(self, direction: Sequence[Any]) -> Any:
        """The tangent of the result along a direction."""
        moving = dict(zip(self.wrt, direction, strict=True))
        return self.own(push(self.dispatcher, self.again(), moving, self.call)[1])

    def push_beside(self, directions: Sequence[Array]) -> Any:
        """The tangents of the result along directions that lie side by side, and so do these."""
        moving = dict(zip(self.wrt, directions, strict=True))
        lanes = directions[0].shape[-1]
        return self.own(push_beside(self.dispatcher, self.again(), moving, self.call, lanes)[1])

    def pull(self, back: Back, form: Any, bars: Array) -> list[Array]:
        """The gradients for cotangents of the result, which are rows: for each argument one array of all."""
        lanes, count = back.form.lanes or 1, len(bars)
        found: list[list[Array]] = []
        for first in range(0, count, lanes):
            some = np.zeros((lanes, bars.shape[1]))
            some[: count - first] = bars[first : first + lanes]
            pulled = back(self.whole(bars_of(form, some)))
            found.append([gradient[: count - first] for gradient in pulled])
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]

    def require(self, mode: str, lanes: int = 1) -> None:
        """Compile what the runs on copies need, and refuse here what they would refuse."""
        found = self.dispatcher.specialize(self.values, tuple(sorted(self.wrt)), mode, lanes)
        if mode == "product":
            seeds(self.dispatcher, found)
        with_groups(self.dispatcher, self.values, set(found.shadowed), self.overlaps)


def started(dispatcher: Dispatcher, values: tuple[Any, ...], wrt: Any, call: str) -> Start:
    """What a call starts from; TypeError or ValueError where it is refused."""
    positions, single = dispatcher.resolve_wrt(wrt)
    arguments, names = dispatcher.arguments_of(values), dispatcher.names
    for position in positions:
        keys.require_active(arguments[position], names[position])
    refuse_overlapping_themselves(dispatcher, values, positions)
    keys.refuse_shared_in_tuples(values, names, positions)
    overlaps = keys.overlaps_of(values)
    for group in memory.groups_of(overlaps):
        if set(group) & set(positions):
            shown = ", ".join(names[p] for p in group)
            raise TypeError(f"{call}: {shown} share memory: pass a copy of all but one")
    return Start(dispatcher, copies(values, overlaps), overlaps, positions, single, call)


def copies(values: tuple[Any, ...], overlaps: keys.Overlaps) -> tuple[Any, ...]:
    """Copies that share memory as the values do, and are read-only where these are."""
    made = memory.copies(values, overlaps)
    for value, copy in zip(values, made, strict=True):
        for array, its_copy in zip(keys.leaves(value), keys.leaves(copy), strict=True):
            its_copy.flags.writeable = array.flags.writeable
    return made


def plainly(dispatcher: Dispatcher, values: tuple[Any, ...]) -> Any:
    """The plain call."""
    return dispatcher.specialize(values).direct["primal"](*values)


# Results: trees of tuples, whose leaves have derivatives where they are floats.


def leaves_of(tree: Any) -> Iterator[Any]:
    """What is in a result, or in its tangent, in order."""
    if isinstance(tree, tuple):
        items: tuple[Any, ...] = tree
        for item in items:
            yield from leaves_of(item)
    else:
        yield tree


def with_leaves(tree: Any, leaves: Iterator[Any]) -> Any:
    """The same tuples around other leaves."""
    if isinstance(tree, tuple):
        items: tuple[Any, ...] = tree
        return tuple(with_leaves(item, leaves) for item in items)
    return next(leaves)


def is_float(leaf: Any) -> bool:
    """Whether a part of a result has a derivative."""
    return isinstance(leaf, float) or (
        isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind == "f"
    )


def size_of(value: Any) -> int:
    """The number of floats in a result."""
    return sum(np.size(leaf) for leaf in leaves_of(value) if is_float(leaf))


def bars_of(value: Any, vectors: Array) -> Any:
    """The elements of each of some vectors as the cotangents of a result; None for what is no float."""
    sizes = [np.size(leaf) if is_float(leaf) else 0 for leaf in leaves_of(value)]
    parts = np.split(vectors, np.cumsum(sizes)[:-1], axis=1)
    bars = (
        part.reshape(len(vectors), *np.shape(leaf)) if is_float(leaf) else None
        for leaf, part in zip(leaves_of(value), parts, strict=True)
    )
    return with_leaves(value, bars)


def form_of(value: Any) -> Any:
    """A result without its memory: arrays of the same shapes and dtypes, each of one element."""
    arrays = (
        np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape)
        if isinstance(leaf, np.ndarray)
        else leaf
        for leaf in leaves_of(value)
    )
    return with_leaves(value, arrays)


def require_floats(start: Start) -> None:
    """TypeError where no part of the result has a derivative."""
    spec = start.own_results
    if any("list" in one for one in parts_of(spec)):
        name = start.dispatcher.function.__qualname__
        raise TypeError(f"{start.call} of {name}: its result holds a list: return an array")
    if not any(may_be_float(start, one) for one in parts_of(spec)):
        name = start.dispatcher.function.__qualname__
        raise TypeError(
            f"{start.call} needs a function that returns floats; {name} returns {describe(spec)}: "
            "return the arrays that it computes"
        )


def parts_of(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The descriptions of all but tuples in a result."""
    if spec["kind"] == "tuple":
        for item in spec["items"]:
            yield from parts_of(item)
    else:
        yield spec


def may_be_float(start: Start, spec: dict[str, Any]) -> bool:
    if spec["kind"] != "argument":
        return spec.get("type", spec.get("dtype")) in keys.FLOATS
    position = spec["position"]  # None for an array in a tuple
    return position is None or start.values[position].dtype.kind == "f"


# jacobian


def jacobian(dispatcher: Dispatcher, values: tuple[Any, ...], wrt: Any, mode: str) -> Any:
    """`f.jacobian`: by tangents or by cotangents, one for each column or row."""
    start = started(dispatcher, values, wrt, "jacobian")
    value, blocks = blocks_by(start, values, mode)
    arguments = [start.values[p] for p in start.wrt]
    rows = (
        nested([finished(b, leaf, a) for b, a in zip(row, arguments, strict=True)], start.single)
        if is_float(leaf)
        else None
        for leaf, row in zip(leaves_of(value), blocks, strict=True)
    )
    return with_leaves(value, rows)


def blocks_by(start: Start, values: tuple[Any, ...], mode: str) -> tuple[Any, list[list[Array]]]:
    """What the plain call returns, and for each part of its own result a block for each argument."""
    if mode not in MODES:
        raise ValueError(f"mode={mode!r}: use 'auto', 'forward' or 'reverse'")
    require_floats(start)
    if mode == "auto":
        mode = cheaper(start, values)
        mode = mode if mode == "reverse" or has_tangent(start) else "reverse"
    return (by_tangents if mode == "forward" else by_cotangents)(start, values)


def cheaper(start: Start, values: tuple[Any, ...]) -> str:
    """The mode that takes fewer runs. Which it is a run on copies says, once, where the result has arrays."""
    if start.size == 1:
        return "forward"
    d, outputs = start.dispatcher, count_of_outputs(start)
    if outputs is None:
        outputs = result_sizes.recall(d, values)
    if outputs is None:
        outputs = result_sizes.remember(d, values, size_of(start.own(tried(start, values))))
    return "forward" if start.size <= outputs else "reverse"


def tried(start: Start, values: tuple[Any, ...]) -> Any:
    """The primal's result on copies: if that raises, the plain call does, and has its effects."""
    try:
        return plainly(start.dispatcher, start.again())
    except Exception as error:
        raised = error  # of which the other exception has nothing to say
    plainly(start.dispatcher, values)
    raise raised


def has_tangent(start: Start) -> bool:
    """Whether forward mode can be compiled; False where a function has a rule, which has no tangent."""
    try:
        start.require_lanes("tangent")
    except Exception as error:
        if getattr(error, "without_tangent", False):
            return False
        raise
    return True


def by_tangents(start: Start, values: tuple[Any, ...]) -> tuple[Any, list[list[Array]]]:
    """The result of the plain call, and the blocks of each part of it, column by column."""
    lanes = start.require_lanes("tangent")
    value = plainly(start.dispatcher, values)
    blocks = blocks_of(start, start.own(value))
    if is_diagonal(start, "tangent", lanes, blocks):
        dots = leaves_of(start.push_beside([ones(start, lanes)]))
        for (block,), dot in zip(blocks, dots, strict=True):
            put_diagonal(block, dot[..., 0])
        return value, blocks
    for elements, directions in start.units(lanes):
        for row, dots in zip(blocks, leaves_of(start.push_beside(directions)), strict=True):
            if row:
                put_columns(start, row, elements, dots)
    return value, blocks


def put_columns(
    start: Start, row: list[Array], elements: Sequence[tuple[int, int]], dots: Array
) -> None:
    """Put what moves with each of these elements into the blocks of one part of the result.

    Those of one argument follow each other, so do their columns.
    """
    beside = np.reshape(dots, (-1, dots.shape[-1]))  # on the host
    for place, block in enumerate(row):
        lanes = [lane for lane, (of, _) in enumerate(elements) if of == place]
        if lanes:
            first, count = elements[lanes[0]][1], len(lanes)
            columns = block.reshape(-1, prod(start.shapes[place]))
            columns[:, first : first + count] = beside[:, lanes[0] : lanes[0] + count]


def by_cotangents(start: Start, values: tuple[Any, ...]) -> tuple[Any, list[list[Array]]]:
    """The same, row by row."""
    lanes = start.require_lanes("vjp", count_of_outputs(start))
    value, back = vjp(start.dispatcher, values, start.names, lanes)
    own = start.own(value)
    blocks, size = blocks_of(start, own), size_of(own)
    for first in range(0, size, lanes):
        bars = np.eye(min(lanes, size - first), size, first)
        put_rows(blocks, own, first, start.pull(back, own, bars))
    return value, blocks


def put_rows(blocks: list[list[Array]], value: Any, first: int, gradients: Sequence[Array]) -> None:
    """Put the gradients of some elements of a result, from the `first` on, into the blocks of its parts."""
    before, last = 0, first + len(gradients[0])
    for row, leaf in zip(blocks, leaves_of(value), strict=True):
        count = np.size(leaf) if row else 0
        low, high = max(first, before), min(last, before + count)
        for block, gradient in zip(row, gradients, strict=bool(row)) if low < high else ():
            rows = block.reshape(count, -1)[low - before : high - before]
            rows[...] = gradient.reshape(last - first, -1)[low - first : high - first]
        before += count


def count_of_outputs(start: Start) -> int | None:
    """How many floats the result has, where that is known before the call."""
    parts = list(parts_of(start.own_results))
    if all(one["kind"] in ("none", "scalar") for one in parts):
        return sum(may_be_float(start, one) for one in parts)
    return None


def blocks_of(start: Start, value: Any) -> list[list[Array]]:
    """For each part of the result one zero block for each argument; none for what is no float."""
    return [
        [np.zeros((*np.shape(leaf), *shape), np.asarray(leaf).dtype) for shape in start.shapes]
        if is_float(leaf)
        else []
        for leaf in leaves_of(value)
    ]


def finished(block: Array, value: Any, argument: Any) -> Any:
    """A block as users get it: a number where both value and argument are, of the value's type."""
    if isinstance(value, np.ndarray) or isinstance(argument, np.ndarray):
        return block
    return float(block) if type(value) is float else block[()]


def nested(items: list[Any], single: bool) -> Any:
    return items[0] if single else tuple(items)


# hessian


def hessian(dispatcher: Dispatcher, values: tuple[Any, ...], wrt: Any) -> Any:
    """`f.hessian`: a Hessian-vector product for each column, some columns at a time."""
    start = started(dispatcher, values, wrt, "hessian")
    _, blocks = blocks_of_hessian(start, values)
    arguments = [start.values[p] for p in start.wrt]
    rows = [
        nested(
            [finished(b, a, other) for b, other in zip(row, arguments, strict=True)], start.single
        )
        for a, row in zip(arguments, blocks, strict=True)
    ]
    return nested(rows, start.single)


def blocks_of_hessian(start: Start, values: tuple[Any, ...]) -> tuple[Any, list[list[Array]]]:
    """What the plain call returns, and for each argument a block for each."""
    lanes = start.require_lanes("product")
    value = plainly(start.dispatcher, values)
    blocks = blocks_of(start, tuple(start.values[p] for p in start.wrt))
    if is_diagonal(start, "product", lanes, blocks):
        along = [np.moveaxis(ones(start, lanes), -1, 0)]
        found = value_grad_hvp(
            start.dispatcher, start.again(), start.names, along, lanes, alone=True
        )
        put_diagonal(blocks[0][0], found[2][0][0])
        return value, blocks
    for elements, directions in start.units(lanes):
        stacked = [np.moveaxis(d, -1, 0) for d in directions]
        products = value_grad_hvp(
            start.dispatcher, start.again(), start.names, stacked, lanes, alone=True
        )[2]
        for row, product in zip(blocks, products, strict=True):
            put_columns(start, row, elements, np.moveaxis(product, 0, -1))
    return value, blocks


def rows_of(tangents: Sequence[Array], count: int) -> Array:
    """The first of the tangents that lie side by side, as vectors: all elements of one a row."""
    parts = [t.reshape(-1, t.shape[-1]).T[:count].astype(np.float64) for t in tangents]
    return np.concatenate(parts, axis=1)
