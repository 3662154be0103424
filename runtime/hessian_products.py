"""Hessian-vector products: the calls of the tangent functions of gradient functions.

They end in the `pushforward` entry: the primals, then shadows and cotangents, then the tangents of all that
moves. Several directions lie side by side, as in `tangents`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from . import keys, memory, result_pool, sequential_directions
from .gradients import (
    as_expected,
    require_lanes,
    seeds_taken,
    with_groups,
)
from .keys import Array, Overlaps
from .lane_copies import turn
from .tangents import of_number, zero_like

if TYPE_CHECKING:
    from .dispatch import Dispatcher, Specialization


FORWARD_OVER_REVERSE = "forward-over-reverse"
SECOND_MODES = {FORWARD_OVER_REVERSE: "hvp", "reverse-over-reverse": "reverse-hvp"}
"""How a product is computed, by tangents or by cotangents of the gradient: with the mode of compilation."""


def value_grad_hvp(
    dispatcher: Dispatcher,
    values: tuple[Any, ...],
    wrt: Any,
    direction: Any,
    batch: int | None = None,
    mode: str = FORWARD_OVER_REVERSE,
    alone: bool = False,
) -> tuple[Any, Any, Any]:
    """`f.value_grad_hvp`: the result, the gradient, and the derivative of the gradient in a direction.

    With `batch` there are as many directions and products, along first axes. Where the product is wanted
    `alone`, the other two mean nothing.
    """
    if mode not in SECOND_MODES:
        raise ValueError(f"mode={mode!r}: use {' or '.join(map(repr, SECOND_MODES))}")
    if batch is not None and mode != FORWARD_OVER_REVERSE:
        raise ValueError(f"hvp: mode={mode!r} takes one direction, and there are batch={batch}")
    positions, single = dispatcher.resolve_wrt(wrt)
    names = dispatcher.names
    for position in positions:
        name = names[position]
        keys.require_active(keys.argument_key(values[position], name), name)
    given = (direction,) if single else direction
    directions = by_position(dispatcher, values, positions, given, batch)
    lanes = batch or 1
    if batch == 1:
        directions = sequential_directions.rows_of(values, directions, 0)
    value, gradient, product = products(
        dispatcher, values, positions, directions, lanes, mode, alone
    )
    if batch == 1:
        product = tuple(keys.as_array(p)[None] for p in product)
    elif batch is not None:
        product = tuple(np.moveaxis(p, -1, 0) for p in product)
    return (value, gradient[0], product[0]) if single else (value, gradient, product)


def products(
    dispatcher: Dispatcher,
    values: tuple[Any, ...],
    positions: tuple[int, ...],
    directions: Mapping[int, Any],
    lanes: int,
    mode: str,
    alone: bool,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """The result, the gradients, and their derivatives: of several lanes along last axes.

    The directions are along first ones.
    """
    overlaps = keys.overlaps_of(values)
    active = with_groups(dispatcher, values, set(positions), overlaps)
    compiled = "product" if alone and mode == FORWARD_OVER_REVERSE else SECOND_MODES[mode]
    found = dispatcher.specialize(values, active, compiled, lanes, overlaps)
    shadowed = found.gradient["shadows"]
    moved = {*active, *shadowed}
    if overlaps or not set(active).issuperset(shadowed):
        with_groups(dispatcher, values, moved, overlaps)
    take = Product(dispatcher, values, positions, overlaps, moved, mode, compiled)
    try:
        read = directions.keys() - set(found.unread)
        if sequential_directions.are_large(
            values, read, lanes
        ) and sequential_directions.are_better(found, values, tuple(moved), overlaps):
            first = dispatcher.specialize(values, active, compiled, 1, overlaps)
            others = dispatcher.specialize(values, active, "product", 1, overlaps)
            return take.in_turn(first, others, directions, lanes)
        seconds = memory.zero_shadows(values, shadowed, overlaps, lanes, found.filled, found.zeros)
        return take.along(found, directions, seconds, lanes)
    except keys.NeedsGuards:
        assert found.metadata["retries"]
        return products(dispatcher, values, positions, directions, lanes, mode, alone)


@dataclass(frozen=True)
class Product:
    """Hessian-vector products of one call."""

    dispatcher: Dispatcher
    values: tuple[Any, ...]
    positions: tuple[int, ...]
    overlaps: Overlaps
    moved: set[int]
    """The parameters with a direction, or a shadow."""
    mode: str
    compiled: str

    def along(
        self,
        found: Specialization,
        directions: Mapping[int, Any],
        seconds: dict[int, Array],
        lanes: int,
    ) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
        """The result, the gradients, and their derivatives, for which there is memory (`seconds`)."""
        values, overlaps, shadowed = self.values, self.overlaps, found.gradient["shadows"]
        apart = self.compiled == "product" and not overlaps
        shadows = {p: values[p] for p in found.idle} if apart else {}
        if len(shadows) < len(shadowed):
            rest = [p for p in shadowed if p not in shadows]
            shadows |= memory.zero_shadows(values, rest, overlaps, filled=found.gradient["filled"])
        stored_to = self.mode != FORWARD_OVER_REVERSE or bool(found.metadata["written"])
        unread = {p: seconds[p] for p in found.unread if p in seconds} if apart else {}
        along = {p: d for p, d in directions.items() if p not in unread}
        active = self.moved - unread.keys()
        arrays = unread | as_tangents(values, active, along, overlaps, lanes, stored_to)
        moving = [
            seconds[p]
            if of == "shadow"
            else arrays[p]
            if p in arrays
            else of_number(values[p], directions.get(p, 0.0), lanes)
            for of, p in found.moving
        ]
        bars_in = seeds_taken(self.dispatcher, found)
        value, bars, _, bar_dots = found.direct["pushforward"](
            *values, *(shadows[p] for p in shadowed), *bars_in, *moving
        )
        numbers = found.gradient["scalars"]
        dots = [np.array(d) if isinstance(d, tuple) else d for d in bar_dots]
        gradient = named(values, self.positions, shadows | dict(zip(numbers, bars, strict=True)))
        found_too = seconds | dict(zip(numbers, dots, strict=True))
        return value, gradient, named(values, self.positions, found_too, lanes)

    def in_turn(
        self,
        first: Specialization,
        others: Specialization,
        directions: Mapping[int, Any],
        lanes: int,
    ) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
        """The same, one direction after the other: the first by the code for one, the others by what
        computes no more than products."""
        rows = memory.in_rows(self.values, first.gradient["shadows"], lanes, result_pool.empty)
        each: list[tuple[Any, ...]] = []
        for lane in range(lanes):
            found = others if lane else first
            seconds = {p: row[lane] for p, row in rows.items()}
            for position in seconds.keys() - set(found.filled):
                seconds[position][...] = 0
            take = replace(self, compiled="product") if lane else self
            each.append(
                take.along(
                    found, sequential_directions.rows_of(self.values, directions, lane), seconds, 1
                )
            )
        value, gradient, _ = each[0]
        product = tuple(
            np.moveaxis(rows[p], 0, -1) if p in rows else np.array([one[2][k] for one in each])
            for k, p in enumerate(self.positions)
        )
        return value, gradient, product


def as_tangents(
    values: Sequence[Any],
    active: set[int],
    directions: Mapping[int, Any],
    overlaps: Overlaps,
    lanes: int,
    stored_to: bool,
) -> dict[int, Array]:
    """The tangents of the active arrays: the directions, zeros where there are none.

    Directions themselves where nothing is stored to and nothing shares memory, else copies. Raises ValueError
    where the directions of arrays that share memory differ in it.
    """
    given = {
        p: d if lanes == 1 else np.moveaxis(d, 0, -1)
        for p, d in directions.items()
        if isinstance(values[p], np.ndarray)
    }
    if not overlaps and not stored_to:
        ready = as_expected(values, given, overlaps, lanes)
        if len(ready) < len(active):
            ready |= memory.zero_shadows(values, active - given.keys(), overlaps, lanes)
        return ready
    arrays = memory.zero_shadows(values, active, overlaps, lanes)
    for position, direction in given.items():
        turn(arrays[position], direction)
    for position, direction in given.items():
        if overlaps and not np.array_equal(arrays[position], direction, equal_nan=True):
            raise ValueError("hvp: the directions of arguments that share memory differ in it")
    return arrays


def named(
    values: Sequence[Any], positions: Sequence[int], found: Mapping[int, Any], lanes: int = 1
) -> tuple[Any, ...]:
    """What was found for each of the positions; zeros where that is nothing."""
    every = [(p, found.get(p)) for p in positions]
    return tuple([zero_like(values[p], lanes) if one is None else one for p, one in every])


def by_position(
    dispatcher: Dispatcher,
    values: Sequence[Any],
    positions: Sequence[int],
    directions: Any,
    batch: int | None,
) -> dict[int, Any]:
    """The directions of what `wrt` names; ValueError where one has another shape."""
    given = tuple(directions)
    if batch is not None:
        require_lanes(batch)
    if len(given) != len(positions):
        raise ValueError(
            f"wrt names {len(positions)} arguments, and there are {len(given)} directions"
        )
    result: dict[int, Any] = {}
    for position, direction in zip(positions, given, strict=True):
        own = np.shape(values[position])
        shape = own if batch is None else (batch, *own)
        if np.shape(direction) != shape:
            name, wanted = dispatcher.names[position], f"with batch={batch} use {shape}"
            raise ValueError(
                f"the direction of {name!r} has shape {np.shape(direction)}, not {own}"
                if batch is None
                else f"the directions of {name!r} have shape {np.shape(direction)}: {wanted}"
            )
        is_array = isinstance(values[position], np.ndarray)
        dtype = values[position].dtype if is_array else np.float64
        result[position] = (
            keys.as_array(direction).astype(dtype, copy=False)
            if is_array or shape
            else float(direction)
        )
    return result
