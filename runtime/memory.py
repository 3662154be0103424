"""Arguments that share memory: their groups, copies and shadows that share as they do.

Gradients are with respect to memory: two arrays share memory if and only if their shadows do. A lone
argument's shadow is compact, in the order of the argument; the members of a sharing group get views
of one buffer, placed as the members are placed in theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from . import result_pool
from .keys import Array, Overlaps, address_of, copy_of_array, is_generator

Make = Callable[..., Array]
"""`zeros` or `empty`, of NumPy or of `result_pool`."""


@dataclass(frozen=True)
class Placed:
    """Where an array lies and how it is laid out, without the array."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    address: int
    """Of element (0, ..., 0)."""

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize


def placed(a: Array | Placed) -> Placed:
    """The place of an array."""
    return a if isinstance(a, Placed) else Placed(a.shape, a.strides, a.dtype, address_of(a))


def groups_of(overlaps: Overlaps) -> list[list[int]]:
    """The parameter positions that share memory, directly or through others."""
    if not overlaps:
        return []
    group: dict[int, set[int]] = {}
    for i, j, _ in overlaps:
        joined = group.get(i, {i}) | group.get(j, {j})
        for member in joined:
            group[member] = joined
    return [sorted(g) for g in {id(g): g for g in group.values()}.values()]


def with_sharers(positions: Iterable[int], overlaps: Overlaps) -> set[int]:
    """These, and all that share memory with one of them."""
    found = set(positions)
    for group in groups_of(overlaps):
        if not found.isdisjoint(group):
            found.update(group)
    return found


def bounds(a: Placed) -> tuple[int, int]:
    """First byte, and the byte behind the last."""
    low = high = a.address
    for extent, stride in zip(a.shape, a.strides, strict=True):
        reach = (extent - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + a.itemsize


def zeros_placed_as(arrays: Sequence[Array | Placed]) -> list[Array]:
    """Zero arrays that lie relative to each other as the given ones do, in one fresh buffer."""
    places = [placed(a) for a in arrays]
    low = min(bounds(a)[0] for a in places)
    high = max(bounds(a)[1] for a in places)
    buffer = result_pool.zeros(high - low + 64, np.uint8)
    start = (low - address_of(buffer)) % 64
    return [
        type(buffer)(a.shape, a.dtype, buffer, start + a.address - low, a.strides) for a in places
    ]


def in_lanes(a: Array | Placed, lanes: int) -> Placed:
    """Where so many tangents of an array lie: side by side, the elements as many times further apart."""
    p = placed(a)
    steps = tuple(step * lanes for step in p.strides)
    return Placed((*p.shape, lanes), (*steps, p.itemsize), p.dtype, p.address * lanes)


def compact_zeros(like: Array | Placed, lanes: int = 1, make: Make = result_pool.zeros) -> Array:
    """Zeros of an array's shape, in its order; of lanes with one axis more, the innermost."""
    if lanes == 1:
        return make(like.shape, like.dtype, order_of(like))
    if order_of(like) == "C":
        return make((*like.shape, lanes), like.dtype)
    rank = len(like.shape)
    return make((*like.shape[::-1], lanes), like.dtype).transpose(*reversed(range(rank)), rank)


def in_rows(
    values: Sequence[Any], active: Iterable[int], lanes: int, make: Make = result_pool.zeros
) -> dict[int, Array]:
    """Zeros of as many shadows of each active array, one after the other: along a first axis.

    Of arrays in C's order that share no memory.
    """
    return {
        p: make((lanes, *values[p].shape), values[p].dtype)
        for p in active
        if isinstance(values[p], np.ndarray | Placed)
    }


def zero_shadows(
    values: Sequence[Any],
    active: Iterable[int],
    overlaps: Overlaps,
    lanes: int = 1,
    filled: Sequence[int] = (),
    zeros: Sequence[int] = (),
) -> dict[int, Array]:
    """A zero shadow for each active array, or as many as there are lanes.

    Of the arrays only their places are asked for. Those in `filled` are filled by who gets them, where
    nothing shares memory; nothing stores to those in `zeros`.
    """
    wanted = [p for p in active if isinstance(values[p], np.ndarray | Placed)]
    if not overlaps:
        make: dict[int, Make] = dict.fromkeys(filled, result_pool.empty)
        make |= dict.fromkeys(zeros, result_pool.untouched)
        return {p: compact_zeros(values[p], lanes, make.get(p, result_pool.zeros)) for p in wanted}
    shadows: dict[int, Array] = {}
    for group in groups_of(overlaps):
        members = [p for p in group if p in wanted]
        if members:
            places = [values[p] if lanes == 1 else in_lanes(values[p], lanes) for p in members]
            made = zeros_placed_as(places)
            shadows.update(zip(members, made, strict=True))
    for position in wanted:
        if position not in shadows:
            shadows[position] = compact_zeros(values[position], lanes)
    return shadows


def order_of(a: Array | Placed) -> Literal["C", "F"]:
    """The order of the shadow of a lone array: Fortran's where the array has that, else C."""
    stride = a.itemsize
    for extent, step in zip(a.shape, a.strides, strict=True):
        if extent != 1 and step != stride:
            return "C"
        stride *= extent
    return "F"


def copies(values: Sequence[Any], overlaps: Overlaps) -> tuple[Any, ...]:
    """Copies of the arrays among the arguments, which share memory as these do (with themselves, too).

    Those with steps have them in their copies: what a function reshapes is a view of some, of others not.
    """
    copied: dict[int, Any] = {}
    result = [copy_of(v, copied) for v in values]
    for group in groups_of(overlaps):
        for position, copy in zip(group, zeros_placed_as([values[p] for p in group]), strict=True):
            copy[...] = values[position]
            result[position] = copy
    return tuple(result)


def copy_of(value: Any, copied: dict[int, Any]) -> Any:
    """A copy of an array, of a random generator, or of a tuple of them; anything else itself.

    `copied` has the generators that were copied before: what draws from one stream goes on to.
    """
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value
        return tuple(copy_of(item, copied) for item in items)
    if is_generator(value):
        return deepcopy(value, copied)  # which goes on from the same state
    return copy_of_array(value) if isinstance(value, np.ndarray) else value


def may_hold(shadow: Array) -> bool:
    """Whether a shadow may hold more than zeros. Those of a device are not looked at."""
    return type(shadow) is not np.ndarray or bool(np.any(shadow))


def share_alike(primals: Sequence[Array], shadows: Sequence[Array]) -> bool:
    """The shadows share memory exactly as the primals do."""
    if all(p.strides == s.strides for p, s in zip(primals, shadows, strict=True)):
        shifts = {address_of(s) - address_of(p) for p, s in zip(primals, shadows, strict=True)}
        if len(shifts) == 1:
            return True
    mine = np.concatenate([addresses(p) for p in primals])
    theirs = np.concatenate([addresses(s) for s in shadows])
    pairs = len(np.unique(np.stack([mine, theirs]), axis=1).T)
    return pairs == len(np.unique(mine)) == len(np.unique(theirs))


def addresses(a: Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The address of each element, in C order."""
    result = np.full(a.shape, address_of(a), np.int64)
    for axis, (extent, stride) in enumerate(zip(a.shape, a.strides, strict=True)):
        shape = [1] * a.ndim
        shape[axis] = extent
        result += (np.arange(extent) * stride).reshape(shape)
    return result.ravel()
