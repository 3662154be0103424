"""Gradients of compiled functions: the calls that need more than an entry.

`grad` and `value_and_grad` of arguments that share memory, and `pullback` with the caller's
shadows. Both end in the `pullback` entry: primals, shadows of the active arrays, cotangents of the
float results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import keys, memory, result_pool
from .cotangents import Form, Spec, cotangents_of, describe, is_float, leaves_of, shape_of
from .keys import Array, NeedsGuards, Overlaps
from .lane_copies import turn
from .union_results import is_one_float

if TYPE_CHECKING:
    from .dispatch import Dispatcher, Specialization


@dataclass(frozen=True, eq=False, slots=True)
class Duplicated:
    """An active array argument of `pullback` and its shadow.

    On entry the shadow holds the cotangent of the array's final value, on exit that of its initial
    value.
    """

    primal: Array
    shadow: Array


@dataclass(frozen=True, eq=False, slots=True)
class BatchDuplicated:
    """An argument of `pushforward` and several tangents of it, side by side: those of an array of shape
    `(n, m)` are one of shape `(n, m, k)`, those of a number one of shape `(k,)`. Of `pullback`: an array and
    as many shadows.
    """

    primal: Any
    tangents: Array


@dataclass(frozen=True, eq=False, slots=True)
class Active:
    """An active float argument of `pullback`, whose cotangent is returned."""

    primal: Any


@dataclass(frozen=True, eq=False, slots=True)
class Const:
    """An argument of `pullback` without a derivative."""

    primal: Any


def primal_of(argument: Any) -> Any:
    """An argument of `pullback` or `pushforward` without its wrapper."""
    kinds = Duplicated, BatchDuplicated, Active, Const
    return argument.primal if isinstance(argument, kinds) else argument


def refuse_overlapping_themselves(
    dispatcher: Dispatcher, values: Sequence[Any], active: Iterable[int]
) -> None:
    for position in active:
        value = values[position]
        if isinstance(value, np.ndarray) and keys.overlaps_itself(value):
            name = dispatcher.names[position]
            raise ValueError(
                f"argument {name!r} is active and overlaps itself in memory (a broadcast or sliding "
                f"window): pass {name}.copy()"
            )


def no_scalar(dispatcher: Dispatcher, found: Specialization) -> str:
    way_out = {
        "none": "return a number, or use pullback",
        "scalar": "return the float that it is made of",
    }.get(found.results["kind"], "use vjp, pullback or jacobian")
    return (
        f"grad, hvp and hessian need a function that returns one float; "
        f"{dispatcher.function.__qualname__} returns {describe(found.results)}: {way_out}"
    )


def with_groups(
    dispatcher: Dispatcher, values: Sequence[Any], active: set[int], overlaps: Overlaps
) -> tuple[int, ...]:
    """The active parameters: if one member of a sharing group is, all are."""
    result = set(active)
    for group in memory.groups_of(overlaps):
        if active & set(group):
            result |= set(group)
            if len({values[p].dtype for p in group}) > 1:
                shown = ", ".join(dispatcher.names[p] for p in group)
                raise TypeError(f"active arguments {shown} share memory but differ in dtype")
    refuse_overlapping_themselves(dispatcher, values, result)
    return tuple(sorted(result))


def run(
    dispatcher: Dispatcher,
    values: tuple[Any, ...],
    active: tuple[int, ...],
    shadows: Mapping[int, Array],
    cotangents: Sequence[Any],
    found: Specialization | None = None,
    mode: str = "pullback",
    lanes: int = 1,
) -> tuple[Any, dict[int, Any]]:
    """Call the `pullback` entry: the result, and the cotangents of active scalars by position.

    `cotangents` has one for each float result. Arrays that are not in `active` but that active
    values are written to get shadows of their own. `found`: the code, where the caller has looked it up; of
    the mode "gradient" where all shadows are zeros.
    """
    found = found or dispatcher.specialize(values, active, mode, lanes)
    wanted = found.gradient["shadows"]
    others = [p for p in wanted if p not in shadows]
    if others:
        overlaps = keys.overlaps_of(values)
        with_groups(dispatcher, values, set(wanted), overlaps)
        shadows = {**shadows, **memory.zero_shadows(values, others, overlaps, lanes)}
    bars_in = taken_by(found, cotangents)
    call = (*values, *(shadows[p] for p in wanted), *bars_in)
    before = {}
    if found.metadata["retries"]:
        before = {p: shadows[p].copy() for p in wanted if memory.may_hold(shadows[p])}
    try:
        result, bars = found.direct["pullback"](*call)
    except NeedsGuards:
        for p in wanted:
            shadows[p][...] = before.get(p, 0)
        found = dispatcher.specialize(values, active, mode, lanes)
        result, bars = found.direct["pullback"](*call)
    scalars = [p for p in active if not isinstance(values[p], np.ndarray)]
    return result, dict(zip(scalars, bars, strict=True))


def taken_by(found: Specialization, cotangents: Sequence[Any]) -> list[Any]:
    """Of the cotangents of all float results those that the code takes."""
    floats = [i for i, leaf in enumerate(leaves_of(found.results)) if is_float(leaf)]
    wanted = found.gradient["cotangents"]
    return [bar for i, bar in zip(floats, cotangents, strict=True) if i in wanted]


def of_sharing_arguments(
    dispatcher: Dispatcher, kind: str, values: tuple[Any, ...], wrt: tuple[int, ...], single: bool
) -> Any:
    """`grad` or `value_and_grad` where active arguments share memory: so do the gradients."""
    overlaps = keys.overlaps_of(values)
    active = with_groups(dispatcher, values, set(wrt), overlaps)
    found = dispatcher.specialize(values, active)
    shadows = memory.zero_shadows(values, active, overlaps)
    bars_in = seeds(dispatcher, found)
    result, bars = run(dispatcher, values, active, shadows, bars_in, found, "gradient")
    gradients = tuple(shadows[p] if p in shadows else bars[p] for p in wrt)
    gradient = gradients[0] if single else gradients
    return gradient if kind == "grad" else (result, gradient)


def seeds(dispatcher: Dispatcher, found: Specialization) -> list[Any]:
    """The cotangents of the float results where the gradient of one float is taken: 1, and zeros for what a
    function of parts (`objects`) returns besides; TypeError where the result is no float."""
    if found.results.get("type") in keys.FLOATS:
        return [1.0]
    records, leaves = found.metadata["records"], list(leaves_of(found.results))
    if records is not None and is_one_float(records["result"]):
        leaves = leaves[1:]  # without the number that says whether it is there
    elif records is None or records["result"] != ["flat"]:
        raise TypeError(no_scalar(dispatcher, found))
    if leaves[0].get("type") not in keys.FLOATS:
        raise TypeError(no_scalar(dispatcher, found))
    others = [leaf for leaf in leaves[1:] if is_float(leaf)]
    return [1.0, *(0.0 if leaf["kind"] == "scalar" else None for leaf in others)]


def seeds_taken(dispatcher: Dispatcher, found: Specialization) -> list[Any]:
    """Of the `seeds` those that the code takes, looked up once."""
    if found.seeds is None:
        found.seeds = taken_by(found, seeds(dispatcher, found))
    return found.seeds


# pullback


def unwrapped(
    dispatcher: Dispatcher, wrapped: tuple[Any, ...], call: str
) -> tuple[list[Any], set[int], dict[int, Any]]:
    """The primals, which of them are active, and the shadows (or tangents) that come with them.

    `call` is "pullback" or "pushforward", where numbers have tangents as arrays have.
    """
    values: list[Any] = []
    active: set[int] = set()
    given: dict[int, Any] = {}
    for position, (argument, name) in enumerate(zip(wrapped, dispatcher.parameters, strict=True)):
        match argument:
            case Duplicated(primal, shadow):
                given[position] = shadow
                active.add(position)
                values.append(primal)
            case BatchDuplicated(primal, tangents):
                given[position] = tangents
                active.add(position)
                values.append(primal)
            case Active(primal) if call == "pullback":
                active.add(position)
                values.append(primal)
            case Const(primal):
                values.append(primal)
            case _ if any(argument is default for default in dispatcher.defaults):
                values.append(argument)
            case _:
                raise TypeError(f"{call}: wrap argument {name!r}: {WRAPPERS[call]} or Const(value)")
    return values, active, given


WRAPPERS = {
    "pullback": "Duplicated(array, shadow), BatchDuplicated(array, shadows), Active(float)",
    "pushforward": "Duplicated(value, tangent), BatchDuplicated(value, tangents)",
}
"""How what is active is handed to each call."""


def pullback(dispatcher: Dispatcher, wrapped: tuple[Any, ...], cotangent: Any) -> tuple[Any, Any]:
    """`f.pullback`: accumulate into the caller's shadows."""
    values, active, given = unwrapped(dispatcher, wrapped, "pullback")
    form = Form(lanes_of(dispatcher, wrapped, "pullback"))
    lanes = form.lanes or 1
    if form.lanes == 1:
        given = {p: s[..., 0] for p, s in given.items()}
    primals = (*values, *dispatcher.era.captures.values())
    overlaps = keys.overlaps_of(primals)
    check_kinds(dispatcher, primals, active, given, lanes=lanes)
    check_sharing(dispatcher, primals, active, given, overlaps, lanes=lanes)
    order = with_groups(dispatcher, primals, active, overlaps)
    found = dispatcher.specialize(primals, order, "pullback" if order else "", lanes)
    _require_cotangent(found.results, cotangent)
    cotangents, of_arguments = cotangents_of(found.results, cotangent, None, form)
    refuse_of_tuples(found.results, cotangent)
    if of_arguments:
        name = dispatcher.names[of_arguments[0][0]]
        raise ValueError(
            f"pullback: the function returns its argument {name!r} itself: add that cotangent to its shadow"
        )
    if not order:
        result = found.direct["primal"](*primals)
        cotangents_of(found.results, cotangent, shape_of(result), form)
        return result, ()
    compact = as_expected(primals, given, overlaps, lanes)
    result, bars = run(dispatcher, primals, order, compact, cotangents, found, lanes=lanes)
    for position, shadow in given.items():
        if compact[position] is not shadow:
            shadow[...] = compact[position]
    return result, tuple(form.own(bars[p], True) for p in order if p in bars)


MOST_LANES = 64
"""Derivatives that go along in one call: each value is then a vector of as many numbers."""


def require_lanes(batch: int) -> None:
    if isinstance(batch, bool) or not isinstance(batch, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"batch={batch!r}: use the number of directions")
    if not 1 <= batch <= MOST_LANES:
        raise ValueError(f"batch={batch}: use 1 to {MOST_LANES} directions in one call")


def lanes_of(dispatcher: Dispatcher, wrapped: Sequence[Any], call: str) -> int | None:
    """How many derivatives come with each argument; None where there is one, which is no batch."""
    counts: set[int] = set()
    noun = NOUNS.get(call, "tangent")
    for argument, name in zip(wrapped, dispatcher.parameters, strict=True):
        if isinstance(argument, BatchDuplicated):
            shape = np.shape(argument.primal)
            if not isinstance(argument.tangents, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"{call}: the {noun}s of {name!r} are no numpy.ndarray")
            if argument.tangents.ndim != len(shape) + 1:
                raise ValueError(
                    f"{call}: the {noun}s of {name!r} have shape {argument.tangents.shape}: "
                    f"use ({', '.join(map(str, (*shape, 'k')))})"
                )
            counts.add(argument.tangents.shape[-1])
    if not counts:
        return None
    if len(counts) > 1 or any(isinstance(a, Duplicated) for a in wrapped):
        raise TypeError(
            f"{call}: all arguments that move have as many {noun}s: use BatchDuplicated with one k"
        )
    (lanes,) = counts
    require_lanes(lanes)
    return lanes


def refuse_of_tuples(spec: Spec, bar: Any) -> None:
    """TypeError for the cotangent of an array that came in a tuple: it has no shadow to be added to."""
    if bar is None:
        return
    if spec["kind"] == "tuple":
        for item, part in zip(spec["items"], bar, strict=True):
            refuse_of_tuples(item, part)
    elif spec["kind"] == "argument" and spec["position"] is None:
        raise TypeError(
            "pullback: the function returns an array of a tuple that it is given, which has no shadow: "
            "pass the array as an argument of its own"
        )


def as_expected(
    primals: Sequence[Any], shadows: dict[int, Array], overlaps: Overlaps, lanes: int = 1
) -> dict[int, Array]:
    """The shadows, or copies of those whose layout is not what compiled code expects.

    That is: compact for a lone array, in its order; the array's own strides for one that shares memory. Lanes
    lie side by side.
    """
    result: dict[int, Array] = {}
    for group in memory.groups_of(overlaps):
        members = [p for p in group if p in shadows]
        places = [
            memory.placed(primals[p]) if lanes == 1 else memory.in_lanes(primals[p], lanes)
            for p in members
        ]
        if any(shadows[p].strides != a.strides for p, a in zip(members, places, strict=True)):
            made = memory.zeros_placed_as(places)
            for position, copy in zip(members, made, strict=True):
                copy[...] = shadows[position]
                result[position] = copy
        else:
            result.update((p, shadows[p]) for p in members)
    for position, shadow in shadows.items():
        if position not in result and lanes == 1:
            order = memory.order_of(primals[position])
            result[position] = shadow.astype(shadow.dtype, order, copy=False)
        elif position not in result:
            made = memory.compact_zeros(primals[position], lanes, result_pool.empty)
            if made.strides != shadow.strides:
                turn(made, shadow)
            result[position] = shadow if made.strides == shadow.strides else made
    return result


def _require_cotangent(spec: Spec, cotangent: Any) -> None:
    if cotangent is None and any(is_float(leaf) for leaf in leaves_of(spec)):
        raise TypeError(f"pullback: the function returns {describe(spec)}: pass cotangent=")


NOUNS = {"pullback": "shadow"}
"""What each call has beside an array; "tangent" where nothing is said."""


def check_kinds(
    dispatcher: Dispatcher,
    primals: tuple[Any, ...],
    active: set[int],
    shadows: dict[int, Array],
    call: str = "pullback",
    lanes: int = 1,
) -> None:
    """Each wrapper holds what it may hold; `shadows` are tangents where the `call` is no pullback."""
    noun = NOUNS.get(call, "tangent")
    names = dispatcher.names
    for position in active:
        name = names[position]
        keys.require_active(keys.argument_key(primals[position], name), name)
        is_array = isinstance(primals[position], np.ndarray)
        if is_array != (position in shadows) and (is_array or call == "pullback"):
            wanted = f"Duplicated(array, {noun})" if is_array else "Active(float)"
            raise TypeError(f"{call}: argument {name!r}: use {wanted}")
    for position, shadow in shadows.items():
        name, primal = names[position], primals[position]
        if not keys.is_array(shadow):
            raise TypeError(f"{call}: the {noun} of {name!r} is no numpy.ndarray")
        shape = primal.shape if lanes == 1 else (*primal.shape, lanes)
        if shadow.shape != shape or shadow.dtype != primal.dtype:
            raise ValueError(
                f"{call}: the {noun} of {name!r} is {shadow.dtype}{list(shadow.shape)}, "
                f"the array {primal.dtype}{list(primal.shape)}"
            )
        if not shadow.flags.writeable:
            raise ValueError(f"{call}: the {noun} of {name!r} is read-only")
        if not shadow.flags.aligned or keys.overlaps_itself(shadow):
            raise ValueError(f"{call}: the {noun} of {name!r} is not aligned or overlaps itself")


def each_lane(arrays: Sequence[Array], lanes: int) -> Iterator[Sequence[Array]]:
    """The arrays of each lane: all of them where there is only one."""
    if lanes == 1:
        yield arrays
    else:
        yield from ([a[..., lane] for a in arrays] for lane in range(lanes))


def check_sharing(
    dispatcher: Dispatcher,
    primals: tuple[Any, ...],
    active: set[int],
    shadows: dict[int, Array],
    overlaps: Overlaps,
    call: str = "pullback",
    lanes: int = 1,
) -> None:
    """The shadows (or tangents) share memory as the primals do, and with nothing else."""
    names, noun = dispatcher.names, NOUNS.get(call, "tangent")
    group_of: dict[int, int] = {}
    for number, group in enumerate(memory.groups_of(overlaps)):
        group_of.update(dict.fromkeys(group, number))
        members = [p for p in group if p in active]
        shown = ", ".join(names[p] for p in group)
        if members and len(members) < len(group):
            raise ValueError(f"{call}: {shown} share memory: all of them are Duplicated, or none")
        if members and not all(
            memory.share_alike([primals[p] for p in members], one)
            for one in each_lane([shadows[p] for p in members], lanes)
        ):
            raise ValueError(f"{call}: the {noun}s of {shown} do not share memory as the arrays do")
    for i, shadow in shadows.items():
        for j, other in shadows.items():
            apart = group_of.get(i, -1 - i) != group_of.get(j, -1 - j)
            if i < j and apart and keys.sharing(shadow, other):
                raise ValueError(
                    f"{call}: the {noun}s of {names[i]} and {names[j]} share memory, the arrays do not"
                )
        for j, primal in enumerate(primals):
            for array in keys.leaves(primal):
                if keys.sharing(shadow, array):
                    raise ValueError(
                        f"{call}: the {noun} of {names[i]} shares memory with {names[j]}: pass a copy"
                    )
