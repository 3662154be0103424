"""Tangents of compiled functions, and Hessian-vector products: the calls of tangent functions.

Both end in the `pushforward` entry: the primals, then (of a gradient function) shadows and cotangents, then
the tangents of all that moves. Tangents of arrays share memory, and are laid out, as the arrays are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import keys, memory
from .gradients import (
    as_expected,
    check_kinds,
    check_sharing,
    seeds,
    taken_by,
    unwrapped,
    with_groups,
)
from .keys import Array, Overlaps

if TYPE_CHECKING:
    from .dispatch import Dispatcher, Specialization


def jvp(dispatcher: Dispatcher, values: tuple[Any, ...], tangents: Mapping[str, Any]) -> Any:
    """`f.jvp`: the result and its tangent; the arrays among `tangents` are updated as their primals are."""
    given: dict[int, Any] = {}
    for name, tangent in by_name(tangents):
        (position,), single = dispatcher.resolve_wrt(name)
        assert single
        given[position] = as_tangent(values[position], tangent, name, "jvp")
    return push(dispatcher, values, given)


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


def pushforward(dispatcher: Dispatcher, wrapped: tuple[Any, ...]) -> Any:
    """`f.pushforward`: tangents in the caller's arrays."""
    values, _, given = unwrapped(dispatcher, wrapped, "pushforward")
    for position, tangent in given.items():
        name = dispatcher.names[position]
        given[position] = as_tangent(values[position], tangent, name, "pushforward")
    return push(dispatcher, (*values, *dispatcher.era.captures.values()), given, "pushforward")


def push(
    dispatcher: Dispatcher, values: tuple[Any, ...], given: dict[int, Any], call: str = "jvp"
) -> Any:
    """The result and its tangent, of tangents by position."""
    return pushed(dispatcher, values, given, call)[:2]


def pushed(
    dispatcher: Dispatcher, values: tuple[Any, ...], given: dict[int, Any], call: str
) -> tuple[Any, Any, dict[int, Array]]:
    """The same, and the tangents of all arrays that have one, given or not.

    Where the call raises, the tangents of arrays are those of what the arrays then hold.
    """
    overlaps = keys.overlaps_of(values)
    arrays = {p: t for p, t in given.items() if isinstance(t, np.ndarray)}
    check_kinds(dispatcher, values, set(given), arrays, call)
    check_sharing(dispatcher, values, set(given), arrays, overlaps, call)
    order = with_groups(dispatcher, values, set(given), overlaps)
    if not order:
        value = dispatcher.specialize(values).direct["primal"](*values)
        return value, zero_like(value), {}
    found = dispatcher.specialize(values, order, "tangent")
    moving = complete(values, found, as_expected(values, arrays, overlaps), given, overlaps)
    tangents = {p: t for (_, p), t in zip(found.moving, moving, strict=True)}
    try:
        value, dot = found.direct["pushforward"](*values, *moving)
    finally:
        for position in arrays.keys() & tangents.keys():
            if tangents[position] is not arrays[position]:
                arrays[position][...] = tangents[position]
    tangents = {p: t for p, t in tangents.items() if isinstance(t, np.ndarray)} | arrays
    return value, with_zeros(value, dot), tangents


def complete(
    values: Sequence[Any],
    found: Specialization,
    arrays: Mapping[int, Array],
    numbers: Mapping[int, Any],
    overlaps: Overlaps,
) -> list[Any]:
    """A tangent for all that moves: zeros for arrays without one, which active values are stored to."""
    moving = [position for _, position in found.moving]
    others = [p for p in moving if isinstance(values[p], np.ndarray) and p not in arrays]
    ready = {**arrays, **memory.zero_shadows(values, others, overlaps)}
    return [ready.get(p, numbers.get(p, 0.0)) for p in moving]


def with_zeros(value: Any, dot: Any) -> Any:
    """The tangent of a result, with zeros of its shape where nothing moves; None for what is no float."""
    if dot is None:
        return zero_like(value)
    if isinstance(value, tuple):
        pairs = zip(value, dot, strict=True)  # pyright: ignore[reportUnknownVariableType]
        return tuple(with_zeros(v, d) for v, d in pairs)
    return dot


def zero_like(value: Any) -> Any:
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value
        return tuple(zero_like(item) for item in items)
    if isinstance(value, list):
        return [zero_like(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, np.ndarray):
        return np.zeros_like(value) if value.dtype.kind == "f" else None  # pyright: ignore[reportUnknownArgumentType]
    return type(value)(0.0) if isinstance(value, float | np.floating) else None


# Hessian-vector products.


def value_grad_hvp(
    dispatcher: Dispatcher, values: tuple[Any, ...], wrt: Any, direction: Any
) -> tuple[Any, Any, Any]:
    """`f.value_grad_hvp`: the result, the gradient, and the derivative of the gradient in a direction."""
    positions, single = dispatcher.resolve_wrt(wrt)
    arguments = dispatcher.arguments_of(values)
    for position in positions:
        keys.require_active(arguments[position], dispatcher.names[position])
    directions = by_position(dispatcher, values, positions, (direction,) if single else direction)
    overlaps = keys.overlaps_of(values)
    active = with_groups(dispatcher, values, set(positions), overlaps)
    found = dispatcher.specialize(values, active, "hvp")
    shadowed = found.gradient["shadows"]
    with_groups(dispatcher, values, {*active, *shadowed}, overlaps)
    shadows = memory.zero_shadows(values, shadowed, overlaps)
    products = memory.zero_shadows(values, shadowed, overlaps)
    arrays = as_tangents(found, values, {*active, *shadowed}, directions, overlaps)
    tangents = {p: arrays.get(p, d) for p, d in directions.items()} | arrays
    moving = [products[p] if of == "shadow" else tangents.get(p, 0.0) for of, p in found.moving]
    bars_in = taken_by(found, seeds(dispatcher, found))
    value, bars, _, bar_dots = found.direct["pushforward"](
        *values, *(shadows[p] for p in shadowed), *bars_in, *moving
    )
    numbers = found.gradient["scalars"]
    gradient = named(values, positions, shadows | dict(zip(numbers, bars, strict=True)))
    product = named(values, positions, products | dict(zip(numbers, bar_dots, strict=True)))
    return (value, gradient[0], product[0]) if single else (value, gradient, product)


def as_tangents(
    found: Specialization,
    values: Sequence[Any],
    active: set[int],
    directions: Mapping[int, Any],
    overlaps: Overlaps,
) -> dict[int, Array]:
    """The tangents of the active arrays: the directions, zeros where there are none.

    Directions themselves where nothing is stored to and nothing shares memory, else copies. Raises ValueError
    where the directions of arrays that share memory differ in it.
    """
    given = {p: d for p, d in directions.items() if isinstance(values[p], np.ndarray)}
    if not overlaps and not found.metadata["written"]:
        rest = memory.zero_shadows(values, active - given.keys(), overlaps)
        return rest | as_expected(values, given, overlaps)
    arrays = memory.zero_shadows(values, active, overlaps)
    for position, direction in given.items():
        arrays[position][...] = direction
    for position, direction in given.items():
        if overlaps and not np.array_equal(arrays[position], direction, equal_nan=True):
            raise ValueError("hvp: the directions of arguments that share memory differ in it")
    return arrays


def named(
    values: Sequence[Any], positions: Sequence[int], found: Mapping[int, Any]
) -> tuple[Any, ...]:
    """What was found for each of the positions; zeros where that is nothing."""
    every = ((p, found.get(p)) for p in positions)
    return tuple(zero_like(values[p]) if one is None else one for p, one in every)


def by_position(
    dispatcher: Dispatcher, values: Sequence[Any], positions: Sequence[int], directions: Any
) -> dict[int, Any]:
    """The directions of what `wrt` names; ValueError where one has another shape."""
    given = tuple(directions)
    if len(given) != len(positions):
        raise ValueError(
            f"wrt names {len(positions)} arguments, and there are {len(given)} directions"
        )
    result: dict[int, Any] = {}
    for position, direction in zip(positions, given, strict=True):
        shape = np.shape(values[position])
        if np.shape(direction) != shape:
            name = dispatcher.names[position]
            raise ValueError(
                f"the direction of {name!r} has shape {np.shape(direction)}, and it itself {shape}"
            )
        is_array = isinstance(values[position], np.ndarray)
        dtype = values[position].dtype if is_array else None
        result[position] = np.asarray(direction, dtype) if is_array else float(direction)
    return result
