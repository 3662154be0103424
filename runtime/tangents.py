"""Tangents of compiled functions: the calls of tangent functions.

They end in the `pushforward` entry: the primals, then the tangents of all that moves. Tangents of arrays
share memory, and are laid out, as the arrays are. Several tangents of a value lie side by side (`lanes`), so
that compiled code computes with vectors of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import keys, memory, sequential_directions
from .gradients import (
    as_expected,
    check_kinds,
    check_sharing,
    lanes_of,
    require_lanes,
    unwrapped,
    with_groups,
)
from .keys import Array, Overlaps
from .lane_copies import turn

if TYPE_CHECKING:
    from .dispatch import Dispatcher, Specialization


def jvp(
    dispatcher: Dispatcher,
    values: tuple[Any, ...],
    tangents: Mapping[str, Any],
    batch: int | None = None,
) -> Any:
    """`f.jvp`: the result and its tangent; the arrays among `tangents` are updated as their primals are."""
    given: dict[int, Any] = {}
    for name, tangent in by_name(tangents):
        (position,), single = dispatcher.resolve_wrt(name, "tangents")
        assert single
        if batch is None:
            given[position] = as_tangent(values[position], tangent, name, "jvp")
        else:
            given[position] = stacked_tangents(values[position], tangent, name, batch)
    if batch is None:
        return push(dispatcher, values, given)
    return pushed_stacked(dispatcher, values, given, "jvp", batch)[:2]


def by_name(tangents: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """The tangents that `jvp` is given, with the names of what they are of."""
    if not isinstance(tangents, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        kind = type(tangents).__name__
        raise TypeError(
            f'jvp: tangents is {kind}: use a dict, as in tangents={{"u": du, "k": 1.0}}'
        )
    return tangents.items()


def as_tangent(primal: Any, tangent: Any, name: str, call: str) -> Any:
    """A tangent as what is pushed forward: an array for an array, a number for a number."""
    if isinstance(primal, np.ndarray):
        if isinstance(tangent, np.ndarray):
            return tangent
        raise TypeError(
            f"{call}: the tangent of {name!r} is {type(tangent).__name__}: "
            "use an array of its shape and dtype"
        )
    if isinstance(tangent, bool) or not isinstance(tangent, int | float | np.generic):
        raise TypeError(
            f"{call}: the tangent of {name!r} is {type(tangent).__name__}: use a number"
        )
    return float(tangent)


def stacked_tangents(primal: Any, tangents: Any, name: str, batch: int) -> Array:
    """The tangents of one argument, of which there are `batch`, along their first axis."""
    require_lanes(batch)
    wanted = (batch, *np.shape(primal))
    if not isinstance(tangents, np.ndarray):
        if isinstance(primal, np.ndarray):
            raise TypeError(
                f"jvp: the tangents of {name!r} are {type(tangents).__name__}: use an array of shape {wanted}"
            )
        tangents = np.asarray(tangents, np.float64)
    if tangents.shape != wanted:
        raise ValueError(
            f"jvp: the tangents of {name!r} have shape {tangents.shape}: with batch={batch} use {wanted}"
        )
    return tangents


def pushforward(dispatcher: Dispatcher, wrapped: tuple[Any, ...]) -> Any:
    """`f.pushforward`: tangents in the caller's arrays."""
    values, _, given = unwrapped(dispatcher, wrapped, "pushforward")
    lanes = lanes_of(dispatcher, wrapped, "pushforward")
    primals = (*values, *dispatcher.era.captures.values())
    if lanes is None:
        for position, tangent in given.items():
            name = dispatcher.names[position]
            given[position] = as_tangent(values[position], tangent, name, "pushforward")
        return push(dispatcher, primals, given, "pushforward")
    return push_beside(dispatcher, primals, given, "pushforward", lanes)


def pushed_stacked(
    dispatcher: Dispatcher,
    values: tuple[Any, ...],
    stacked: Mapping[int, Array],
    call: str,
    lanes: int,
) -> tuple[Any, Any, dict[int, Array]]:
    """`pushed` of tangents along first axes, those of arrays updated; they lie side by side meanwhile, or are
    taken in turn."""
    if sequential_directions.are_large(values, stacked, lanes):
        apart = {p: np.moveaxis(t, 0, -1) for p, t in stacked.items()}
        together = pushed_in_turn(dispatcher, values, apart, call, lanes)
        if together is not None:
            moved = {p: t for p, t in stacked.items() if isinstance(values[p], np.ndarray)}
            return *together, moved
    beside = {
        p: one_lane(values[p], t, 0) if lanes == 1 else np.moveaxis(t, 0, -1)
        for p, t in stacked.items()
    }
    value, dot, moved = pushed(dispatcher, values, beside, call, lanes)
    own = {id(beside[p]): t for p, t in stacked.items() if isinstance(values[p], np.ndarray)}

    def first(d: Any) -> Any:
        if d is None or id(d) in own:
            return None if d is None else own[id(d)]
        return keys.as_array(d)[None] if lanes == 1 else np.moveaxis(d, -1, 0)

    return value, with_leaves_of(dot, first), {p: first(t) for p, t in moved.items()}


def pushed_in_turn(
    dispatcher: Dispatcher,
    values: tuple[Any, ...],
    beside: dict[int, Array],
    call: str,
    lanes: int,
) -> tuple[Any, Any] | None:
    """The result and its tangents, each direction by a call of its own; None where they are better side by
    side. The first call runs the primal for all."""
    active, overlaps = set(beside), keys.overlaps_of(values)
    arrays = {p: t for p, t in beside.items() if isinstance(values[p], np.ndarray)}
    check_kinds(dispatcher, values, active, arrays, call, lanes)
    check_sharing(dispatcher, values, active, arrays, overlaps, call, lanes)
    order = with_groups(dispatcher, values, active, overlaps)
    found = dispatcher.specialize(values, order, "tangent", lanes, overlaps)
    copied = not all(map(sequential_directions.is_in_rows, beside.values()))
    if not sequential_directions.are_better(found, values, order, overlaps, copied=copied):
        return None
    stacked = {p: sequential_directions.in_rows(t) for p, t in beside.items()}
    first = dispatcher.specialize(values, order, "tangent", 1, overlaps)
    others = dispatcher.specialize(values, order, "tangent-alone", 1, overlaps)
    each: list[tuple[Any, Any]] = []
    for lane in range(lanes):
        single, given = (
            others if lane else first,
            sequential_directions.rows_of(values, stacked, lane),
        )
        rows = as_expected(values, {p: given[p] for p in arrays}, overlaps)
        moving = complete(values, single, rows, given, overlaps, 1)
        value, dot = single.direct["pushforward"](*values, *moving)
        each.append((value, with_zeros(value, dot, 1)))
    return each[0][0], sequential_directions.beside([dot for _, dot in each])


def one_lane(primal: Any, tangents: Array, axis: int) -> Any:
    """The one tangent that there is, of all tangents along an axis."""
    if isinstance(primal, np.ndarray):
        return tangents[0, ...] if axis == 0 else tangents[..., 0]  # an array, of rank 0 too
    return float(tangents[0])


def with_leaves_of(dot: Any, change: Callable[[Any], Any]) -> Any:
    """Tuples of tangents, each of which is changed."""
    if isinstance(dot, tuple):
        items: tuple[Any, ...] = dot
        return tuple(with_leaves_of(item, change) for item in items)
    return change(dot)


def push_beside(
    dispatcher: Dispatcher, values: tuple[Any, ...], beside: dict[int, Array], call: str, lanes: int
) -> Any:
    """`push` of tangents that lie side by side, in all arrays along a last axis."""
    if sequential_directions.are_large(values, beside, lanes):
        together = pushed_in_turn(dispatcher, values, beside, call, lanes)
        if together is not None:
            return together
    if lanes > 1:
        return push(dispatcher, values, beside, call, lanes)
    single = {p: one_lane(values[p], t, -1) for p, t in beside.items()}
    value, dot = push(dispatcher, values, single, call)
    own = {id(one): beside[p] for p, one in single.items() if isinstance(one, np.ndarray)}

    def widened(d: Any) -> Any:
        return None if d is None else own.get(id(d), keys.as_array(d)[..., None])

    return value, with_leaves_of(dot, widened)


def push(
    dispatcher: Dispatcher,
    values: tuple[Any, ...],
    given: dict[int, Any],
    call: str = "jvp",
    lanes: int = 1,
) -> Any:
    """The result and its tangent, of tangents by position; of several lanes an array with one axis more."""
    return pushed(dispatcher, values, given, call, lanes)[:2]


def pushed(
    dispatcher: Dispatcher,
    values: tuple[Any, ...],
    given: dict[int, Any],
    call: str,
    lanes: int = 1,
) -> tuple[Any, Any, dict[int, Array]]:
    """The same, and the tangents of all arrays that have one, given or not.

    Where the call raises, the tangents of arrays are those of what the arrays then hold.
    """
    overlaps = keys.overlaps_of(values)
    arrays = {
        p: t
        for p, t in given.items()
        if isinstance(t, np.ndarray) and (lanes == 1 or isinstance(values[p], np.ndarray))
    }
    check_kinds(dispatcher, values, set(given), arrays, call, lanes)
    check_sharing(dispatcher, values, set(given), arrays, overlaps, call, lanes)
    order = with_groups(dispatcher, values, set(given), overlaps)
    if not order:
        value = dispatcher.specialize(values).direct["primal"](*values)
        return value, zero_like(value, lanes), {}
    found = dispatcher.specialize(values, order, "tangent", lanes, overlaps)
    ready = as_expected(values, arrays, overlaps, lanes)
    moving = complete(values, found, ready, given, overlaps, lanes)
    tangents = {p: t for (_, p), t in zip(found.moving, moving, strict=True)}
    try:
        value, dot = found.direct["pushforward"](*values, *moving)
    finally:
        copied = [p for p in arrays.keys() & tangents.keys() if tangents[p] is not arrays[p]]
        if copied:
            stored = memory.with_sharers(found.metadata["written"], overlaps)
            for position in stored.intersection(copied):
                turn(arrays[position], tangents[position])
    if copied:
        own: dict[int, Any] = {id(tangents[p]): arrays[p] for p in copied}
        dot = with_leaves_of(dot, lambda d: own.get(id(d), d))
    tangents = {p: t for p, t in tangents.items() if isinstance(values[p], np.ndarray)} | arrays
    return value, with_zeros(value, dot, lanes), tangents


def complete(
    values: Sequence[Any],
    found: Specialization,
    arrays: Mapping[int, Array],
    numbers: Mapping[int, Any],
    overlaps: Overlaps,
    lanes: int,
) -> list[Any]:
    """A tangent for all that moves: zeros for arrays without one, which active values are stored to."""
    moving = [position for _, position in found.moving]
    others = [p for p in moving if isinstance(values[p], np.ndarray) and p not in arrays]
    ready = {**arrays, **memory.zero_shadows(values, others, overlaps, lanes)}
    return [
        ready[p] if p in ready else of_number(values[p], numbers.get(p, 0.0), lanes) for p in moving
    ]


def of_number(value: Any, tangents: Any, lanes: int) -> Any:
    """The tangent of a number; of several lanes an array of its type that has one in each."""
    if lanes == 1:
        return tangents
    made = np.empty(lanes, np.asarray(value).dtype)
    made[...] = tangents
    return made


def with_zeros(value: Any, dot: Any, lanes: int) -> Any:
    """The tangent of a result, with zeros of its shape where nothing moves; None for what is no float."""
    if dot is None:
        return zero_like(value, lanes)
    if isinstance(value, tuple):
        pairs = zip(value, dot, strict=True)  # pyright: ignore[reportUnknownVariableType]
        return tuple(with_zeros(v, d, lanes) for v, d in pairs)
    return np.array(dot) if isinstance(dot, tuple) else dot


def zero_like(value: Any, lanes: int = 1) -> Any:
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value
        return tuple(zero_like(item, lanes) for item in items)
    if isinstance(value, list):
        return [zero_like(item, lanes) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, np.ndarray):
        return memory.compact_zeros(value, lanes) if value.dtype.kind == "f" else None  # pyright: ignore[reportUnknownArgumentType]
    if not isinstance(value, float | np.floating):
        return None
    return type(value)(0.0) if lanes == 1 else np.zeros(lanes, np.asarray(value).dtype)
