"""`vjp`: the primal now, cotangents later, as often as wanted, whatever the caller does meanwhile.

The compiled code is in two functions. The first runs the primal on the caller's arrays, once, and leaves what
the second needs in a *record*, and in memory that the record refers to. The second runs backwards, and
writes to shadows only. A `Handle` owns both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import keys, memory
from .cotangents import ONE, Form, Spec, cotangents_of, is_float, leaves_of, shape_of, shaped
from .gradients import require_lanes, with_groups

if TYPE_CHECKING:
    from .dispatch import Dispatcher, Specialization


class Handle:
    """What one run of the primal keeps for its reverse sweep. Nobody writes to it."""

    __slots__ = ("_drop", "_record", "address")

    def __init__(self, words: int, drop: Callable[[int], None]) -> None:
        self._drop = drop
        self._record = np.zeros(words, np.int64)
        self.address = keys.address_of(self._record)

    def __del__(self) -> None:
        arena = int(self._record[-1])
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
    positions, single = dispatcher.resolve_wrt(wrt)
    arguments = dispatcher.arguments_of(values)
    for position in positions:
        keys.require_active(arguments[position], dispatcher.names[position])
    overlaps = keys.overlaps_of(values)
    active = with_groups(dispatcher, values, set(positions), overlaps)
    found = dispatcher.specialize(values, active, "vjp", batch or 1)
    with_groups(dispatcher, values, {*active, *found.gradient["shadows"]}, overlaps)
    result, handle = run_primal(found, values)
    places = tuple(memory.placed(v) if isinstance(v, np.ndarray) else None for v in values)
    back = Back(
        found,
        handle,
        dispatcher.names,
        arguments,
        places,
        overlaps,
        positions,
        single,
        shape_of(result),
        Form(batch, 0),
    )
    return result, back


def run_primal(found: Specialization, values: tuple[Any, ...]) -> tuple[Any, Handle]:
    """The result of the function, and what its reverse sweep needs."""
    handle = Handle(found.metadata["record"], found.direct["drop"])
    return found.direct["forward"](*values, handle.address), handle


@dataclass(frozen=True, eq=False)
class Back:
    """Pulls cotangents back through one call: `back(out_bar, u=...)`, any number of times.

    `out_bar` is the cotangent of the result (None for none, a tuple for a tuple); keywords are
    cotangents of the final values of array arguments, by parameter name. Returns the cotangents of
    the initial values of what `wrt` named; of a `batch` all of these have one more axis, the first. The
    primal is not run again, and the arguments are not looked at: they may have changed, or be gone. Several
    threads may call it at once.
    """

    found: Specialization
    handle: Handle
    names: tuple[str, ...]
    keys: tuple[str, ...]
    places: tuple[memory.Placed | None, ...]
    """Where the arguments lay that are arrays: shadows share memory as they did."""
    overlaps: keys.Overlaps
    wrt: tuple[int, ...]
    single: bool
    shape: Any
    """The result's shape: of an array its extents, of a tuple a list of shapes, else None."""
    form: Form = ONE

    def __reduce__(self) -> Any:
        raise TypeError(
            "the function that vjp returns refers to memory of this process: it can be neither copied nor "
            "pickled; pickle the arguments, and call vjp again"
        )

    @property
    def results(self) -> Spec:
        return self.found.results

    def __call__(self, out_bar: Any = None, /, **final: Any) -> Any:
        try:
            return self.pulled_back(self.found, out_bar, final)
        except keys.NeedsGuards as wanted:
            (guarded,) = wanted.args
            assert guarded.metadata["record"] == self.found.metadata["record"]
            object.__setattr__(self, "found", guarded)  # for the calls that follow, too
            return self.pulled_back(guarded, out_bar, final)

    def pulled_back(self, found: Specialization, out_bar: Any, final: dict[str, Any]) -> Any:
        """The same, by the reverse sweep of this code."""
        cotangents, of_arguments = cotangents_of(self.results, out_bar, self.shape, self.form)
        for name, bar in final.items():
            if name not in self.names or self.places[self.names.index(name)] is None:
                raise TypeError(f"back: {name!r} is no array parameter of {self.names}")
            of_arguments.append((self.names.index(name), bar))
        gradient = found.gradient
        wanted = gradient["shadows"]
        lanes = self.form.lanes or 1
        shadows = memory.zero_shadows(self.places, wanted, self.overlaps, lanes)
        for position, bar in of_arguments:
            self.add(position, bar, shadows)
        floats = [i for i, leaf in enumerate(leaves_of(self.results)) if is_float(leaf)]
        bars_in = [
            bar for i, bar in zip(floats, cotangents, strict=True) if i in gradient["cotangents"]
        ]
        bars = found.direct["back"](self.handle.address, *(shadows[p] for p in wanted), *bars_in)
        scalars = [p for p in self.found.wrt if self.places[p] is None]
        by_position = dict(zip(scalars, bars, strict=True)) | shadows
        gradients = tuple(self.form.own(by_position[p], p in scalars) for p in self.wrt)
        return gradients[0] if self.single else gradients

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
