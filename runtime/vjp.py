"""`vjp`: the primal now, cotangents later, as often as wanted, whatever the caller does meanwhile.

The compiled code is in two functions. The first runs the primal on the caller's arrays, once, and leaves what
the second needs in a *record*, and in memory that the record refers to. The second runs backwards, and
writes to shadows only. A `Handle` owns both.

Where that is more than a budget allows, the first says so before it has done anything. Then the arguments are
copied, as a restart state, and each `back` runs the whole gradient on copies of these, which keeps to the
budget.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from . import budgets, keys, memory, sequential_directions
from .cotangents import ONE, Form, Spec, cotangents_of, shape_of, shaped
from .gradients import require_lanes, taken_by, with_groups
from .user_tracebacks import concise, like_a_function

if TYPE_CHECKING:
    from .dispatch import Dispatcher, Era, Specialization


@cache
def words_of(count: int) -> Any:
    """The type of so many words in memory."""
    return ctypes.c_int64 * count


class Handle:
    """What one run of the primal keeps for its reverse sweep. Nothing writes to it."""

    __slots__ = ("_drop", "_record", "address")

    def __init__(self, words: int, drop: Callable[[int], None]) -> None:
        self._drop = drop
        self._record = words_of(words)()
        self.address = ctypes.addressof(self._record)

    def __del__(self) -> None:
        arena = self._record[-1]
        if arena:
            self._drop(arena)

    def __reduce__(self) -> Any:
        raise TypeError(
            "what vjp keeps is memory of this process: it can be neither copied nor pickled"
        )


def vjp(
    dispatcher: Dispatcher, values: tuple[Any, ...], wrt: Any, batch: int | None = None
) -> tuple[Any, Back]:
    """Run the primal; its result, and the function that pulls cotangents back: `batch` of them at once."""
    if batch is not None:
        require_lanes(batch)
    known = era, arguments = dispatcher.known_of(values)  # once: it looks at what is outside
    parameters, captured = dispatcher.parameters, era.captures.names
    positions, single = keys.resolve_wrt(wrt, parameters, captured, "wrt")
    names = (*parameters, *captured)
    for position in positions:
        keys.require_active(arguments[position], names[position])
    overlaps = keys.overlaps_of(values)
    active = with_groups(dispatcher, values, set(positions), overlaps)
    found = dispatcher.specialize(values, active, "vjp", batch or 1, overlaps, known)
    if overlaps or not {*found.gradient["shadows"]} <= {*active}:
        with_groups(dispatcher, values, {*active, *found.gradient["shadows"]}, overlaps)
    laid = [lie_of(v, keys.address_of(v)) if isinstance(v, np.ndarray) else None for v in values]
    told = names, arguments, tuple(laid), overlaps, positions, single
    form, kind = Form(batch, 0), Back
    shadowed = [*active, *found.gradient["shadows"]]
    if sequential_directions.are_large(
        values, active, batch or 1
    ) and sequential_directions.are_better(found, values, shadowed, overlaps):
        found, kind = dispatcher.specialize(values, active, "vjp"), BackInTurn
    try:
        result, handle = run_primal(found, values)
    except budgets.TooLarge:
        active_too = {*active, *found.gradient["shadows"]}
        start = Start.of(dispatcher, values, active_too, overlaps, batch or 1)
        result = dispatcher.specialize(values).direct["primal"](*values)
        if kind is BackInTurn:
            found = dispatcher.specialize(values, active, "vjp", batch or 1)
        return result, BackAgain(found, None, *told, shape_of(result), form, start=start)
    shape = shape_of(result)
    entry = found.direct.get("pull")
    if entry is None or kind is not Back or batch == 1 or overlaps or positions != found.wrt:
        return result, kind(found, handle, *told, shape, form)
    shadowed = found.gradient["shadows"]
    shapes, named = tuple([values[p].shape for p in shadowed]), tuple([names[p] for p in shadowed])
    kept = handle.address, shapes, shape, single
    return result, Back(found, handle, *told, shape, form, entry, kept, named)


Recorder = Callable[..., tuple[Any, "Back"]]


def recorder(dispatcher: Dispatcher, found: Specialization, arguments: tuple[str, ...]) -> Recorder:
    """What the entry of `vjp` calls once it has found the arguments to be its own, with whether `wrt` was one
    name, and the arguments: no two share memory, none come from outside, and all shadows are of `wrt`."""
    names, positions = dispatcher.parameters, found.wrt
    forward, drop, entry = (found.direct.get(kind) for kind in ("forward", "drop", "pull"))
    assert forward is not None
    assert drop is not None
    shadowed, words = found.gradient["shadows"], found.metadata["record"]
    named = tuple([names[p] for p in shadowed])
    same: dict[str, Any] = {"found": found, "names": names, "keys": arguments, "overlaps": ()}
    same |= {"wrt": positions, "form": ONE, "entry": entry, "shadowed": named}

    @concise
    def record(single: bool, *values: Any) -> tuple[Any, Back]:
        handle = Handle(words, drop)
        try:
            result = forward(*values, handle.address)
        except budgets.TooLarge:
            wrt = tuple([names[p] for p in positions])
            return vjp(dispatcher, values, wrt[0] if single else wrt)
        shape = shape_of(result)
        back = object.__new__(Back)
        laid = tuple([lie_of(v) if isinstance(v, np.ndarray) else None for v in values])
        back.__dict__.update(same, handle=handle, laid=laid, single=single, shape=shape)
        if entry is not None:
            shapes = tuple([values[p].shape for p in shadowed])
            back.__dict__["kept"] = handle.address, shapes, shape, single
        return result, back

    return record


Laid = tuple[tuple[int, ...], tuple[int, ...], Any, int]
"""Of an array its shape, its strides, its dtype and its address."""


def lie_of(array: keys.Array, address: int = 0) -> Laid:
    """How an array lies; where matters only if it shares memory."""
    return array.shape, array.strides, array.dtype, address


def run_primal(found: Specialization, values: tuple[Any, ...]) -> tuple[Any, Handle]:
    """The result of the function, and what its reverse sweep needs."""
    handle = Handle(found.metadata["record"], found.direct["drop"])
    return found.direct["forward"](*values, handle.address), handle


@dataclass(frozen=True, eq=False)
class Start:
    """Where a gradient begins that is run again: the arguments as they were."""

    dispatcher: Dispatcher
    era: Era
    """What the function reads from outside, which its code knows."""
    values: tuple[Any, ...]
    overlaps: keys.Overlaps
    active: tuple[int, ...]
    lanes: int
    found: Specialization

    @staticmethod
    def of(
        dispatcher: Dispatcher,
        values: tuple[Any, ...],
        active: set[int],
        overlaps: keys.Overlaps,
        lanes: int,
    ) -> Start:
        kept = memory.copies(values, overlaps)
        order = with_groups(dispatcher, kept, active, overlaps)
        found = dispatcher.specialize(kept, order, "pullback", lanes)
        return Start(dispatcher, dispatcher.era, kept, overlaps, order, lanes, found)

    def run(self, given: dict[int, keys.Array], cotangents: Sequence[Any]) -> dict[int, Any]:
        """Pull back to the shadows, and to the active numbers, by position."""
        found = self.found
        others = [p for p in found.gradient["shadows"] if p not in given]
        try:
            return self.once(found, given, others, cotangents)
        except keys.NeedsGuards:
            if self.dispatcher.era is not self.era:
                text = "what the function reads from outside has changed since vjp was called"
                raise RuntimeError(text) from None
            guarded = self.dispatcher.specialize(self.values, self.active, "pullback", self.lanes)
            return self.once(guarded, given, others, cotangents)

    def once(
        self,
        found: Specialization,
        given: dict[int, keys.Array],
        others: Sequence[int],
        cotangents: Sequence[Any],
    ) -> dict[int, Any]:
        """The same by this code; `given` is as it was where that needs guards."""
        values = memory.copies(self.values, self.overlaps)
        wanted = [*given, *others]
        shadows = memory.zero_shadows(values, wanted, self.overlaps, self.lanes)
        for position, shadow in given.items():
            shadows[position][...] = shadow
        ordered = (shadows[p] for p in found.gradient["shadows"])
        _, bars = found.direct["pullback"](*values, *ordered, *taken_by(found, cotangents))
        for position, shadow in given.items():
            shadow[...] = shadows[position]
        scalars = [p for p in self.active if not isinstance(values[p], np.ndarray)]
        return dict(zip(scalars, bars, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class Back:
    """Pulls cotangents back through one call: `back(out_bar, u=...)`, any number of times.

    `out_bar` is the cotangent of the result (None for none, a tuple for a tuple); keywords are
    cotangents of the final values of array arguments, by parameter name. Returns the cotangents of
    the initial values of what `wrt` named; of a `batch` all of these have one more axis, the first. The
    primal is not run again, and the arguments are not looked at: they may have changed, or be gone. Several
    threads may call it at once.
    """

    found: Specialization
    handle: Handle | None
    names: tuple[str, ...]
    keys: tuple[str, ...]
    laid: tuple[Laid | None, ...]
    """Where the arguments lay that are arrays: shadows share memory as they did."""
    overlaps: keys.Overlaps
    wrt: tuple[int, ...]
    single: bool
    shape: Any
    """The result's shape: of an array its extents, of a tuple a list of shapes, else None."""
    form: Form = ONE
    entry: Callable[..., Any] | None = None
    """What takes most cotangents of the result, given what is `kept`."""
    kept: tuple[Any, ...] = ()
    shadowed: tuple[str, ...] = ()
    """The arrays that the entry makes shadows of."""

    def __reduce__(self) -> Any:
        raise TypeError(
            "the function that vjp returns refers to memory of this process: it can be neither copied nor "
            "pickled; pickle the arguments, and call vjp again"
        )

    @property
    def places(self) -> tuple[memory.Placed | None, ...]:
        return tuple([None if one is None else memory.Placed(*one) for one in self.laid])

    @property
    def results(self) -> Spec:
        return self.found.results

    def __repr__(self) -> str:
        source = self.found.metadata.get("source") or {"backward": "back"}
        return f"<{source['backward']}, which takes cotangents>"

    __dir__ = like_a_function

    @concise
    def __call__(self, out_bar: Any = None, /, **final: Any) -> Any:
        if self.entry is not None:
            finals = self.in_order(final) if final else (None,) * len(self.shadowed)
            pulled = NotImplemented if finals is None else self.entry(*self.kept, out_bar, *finals)
            if pulled is not NotImplemented:
                return pulled
        try:
            return self.pulled_back(self.found, out_bar, final)
        except keys.NeedsGuards as wanted:
            (guarded,) = wanted.args
            assert guarded.metadata["record"] == self.found.metadata["record"]
            object.__setattr__(self, "found", guarded)  # for the calls that follow, too
            if self.entry is not None:
                object.__setattr__(self, "entry", guarded.direct["pull"])
            return self.pulled_back(guarded, out_bar, final)

    def in_order(self, final: dict[str, Any]) -> tuple[Any, ...] | None:
        """The cotangents of final values as the entry takes them; None where one is of something else."""
        found = tuple([final.get(name) for name in self.shadowed])
        given = sum([bar is not None for bar in found])
        return found if given == len(final) else None

    def pulled_back(self, found: Specialization, out_bar: Any, final: dict[str, Any]) -> Any:
        """The same, by the reverse sweep of this code."""
        cotangents, of_arguments = cotangents_of(self.results, out_bar, self.shape, self.form)
        for name, bar in final.items():
            if name not in self.names or self.laid[self.names.index(name)] is None:
                raise TypeError(f"back: {name!r} is not an array parameter of {self.names}")
            of_arguments.append((self.names.index(name), bar))
        gradient = found.gradient
        shadows = self.zeros(gradient["shadows"])
        for position, bar in of_arguments:
            self.add(position, bar, shadows)
        bars = self.swept(found, shadows, cotangents)
        by_position = bars | shadows
        gradients = tuple(self.form.own(by_position[p], p in bars) for p in self.wrt)
        return gradients[0] if self.single else gradients

    def zeros(self, wanted: Sequence[int]) -> dict[int, keys.Array]:
        """Shadows of zeros."""
        return memory.zero_shadows(self.places, wanted, self.overlaps, self.form.lanes or 1)

    def swept(
        self, found: Specialization, shadows: dict[int, keys.Array], cotangents: Sequence[Any]
    ) -> dict[int, Any]:
        """Pull the cotangents back to the shadows; those of numbers by position."""
        assert self.handle is not None
        ordered = (shadows[p] for p in found.gradient["shadows"])
        bars_in = taken_by(found, cotangents)
        bars = found.direct["back"](self.handle.address, *ordered, *bars_in)
        scalars = [p for p in self.found.wrt if self.laid[p] is None]
        return dict(zip(scalars, bars, strict=True))

    def add(self, position: int, bar: Any, shadows: dict[int, keys.Array]) -> None:
        """Add a cotangent of an argument's final contents to its shadow, where anything depends on it."""
        place = self.places[position]
        assert place is not None
        if not keys.is_active_key(self.keys[position]):
            raise TypeError(
                f"back: {self.names[position]!r} holds no floats, so it has no cotangent"
            )
        given = shaped(bar, place.shape, self.names[position], self.form)
        if position in shadows:
            shadows[position] += given


class BackInTurn(Back):
    """The same for cotangents that are pulled back one after the other (`sequential_directions`)."""

    def zeros(self, wanted: Sequence[int]) -> dict[int, keys.Array]:
        """Shadows of zeros, seen side by side."""
        rows = memory.in_rows(self.places, wanted, self.form.lanes or 1)
        return {p: np.moveaxis(row, 0, -1) for p, row in rows.items()}

    def swept(
        self, found: Specialization, shadows: dict[int, keys.Array], cotangents: Sequence[Any]
    ) -> dict[int, Any]:
        each = [
            super(BackInTurn, self).swept(
                found,
                {p: shadow[..., lane] for p, shadow in shadows.items()},
                [float(bars[lane]) for bars in cotangents],
            )
            for lane in range(self.form.lanes or 1)
        ]
        return {p: tuple(one[p] for one in each) for p in each[0]}


@dataclass(frozen=True, eq=False, repr=False)
class BackAgain(Back):
    """The same within a budget: the primal is run again each time, from copies of the arguments."""

    start: Start = field(kw_only=True)

    def swept(
        self, found: Specialization, shadows: dict[int, keys.Array], cotangents: Sequence[Any]
    ) -> dict[int, Any]:
        return self.start.run(shadows, cotangents)
