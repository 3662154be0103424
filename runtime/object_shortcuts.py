"""Gradients with objects, where one of the same kind came before: no look-up in Python.

Which kind of arguments a call has, the compiled entry finds out by itself. It is asked first, out of the
chains of `dispatch`, and returns None for arguments that are not its own; then they are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import keys, memory

if TYPE_CHECKING:
    from .dispatch import Era, Specialization
    from .objects import Flat, Records, Selection
    from .structures import Parts

MOST = 4
"""As many kinds of arguments are remembered for one structure and one `wrt`."""

Gather = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Any]
"""Puts a gradient together (`object_code.gatherer`)."""


@dataclass(frozen=True)
class Reading:
    """A gradient of a function that returns a number and assigns to no field."""

    entry: Callable[..., Any]
    """`value_and_grad` of the parts."""
    names: tuple[str, ...]
    """Of the parts that it is taken with respect to."""
    gather: Gather

    def call(self, flat: Flat, made: Parts) -> tuple[Any, Any] | None:
        """The value and the gradient; None for other arguments."""
        found = self.entry(*made.leaves, flat.journal(), wrt=self.names)
        if found is None:
            return None
        return found[0], self.gather(found[1], made.leaves, made.others)


@dataclass(frozen=True)
class Assigning:
    """One of a function that assigns to fields: the results of the parts' function are the new values.

    Its entry takes the sharing of memory for granted, so that is looked at here: there is none.
    """

    entry: Callable[..., Any]
    """`pullback` of the parts."""
    era: Era
    records: Records
    active: tuple[int, ...]
    shadowed: tuple[int, ...]
    bars: tuple[Any, ...]
    """The cotangents of the results."""
    gather: Gather

    def call(self, flat: Flat, made: Parts) -> tuple[Any, Any] | None:
        """The value and the gradient; None for other arguments."""
        if flat.dispatcher.era is not self.era:
            return None
        values = (*flat.values_of(made), *self.era.captures.values())
        if keys.overlaps_of(values):
            return None
        shadows = memory.zero_shadows(values, self.shadowed, ())
        try:
            found = self.entry(*values, *(shadows[p] for p in self.shadowed), *self.bars)
        except BaseException as raised:
            flat.replay(raised, values, made)
            raise
        if found is None:
            return None
        result, scalars = found
        value = flat.finisher(self.records)(result, made.objects)
        rest = iter(scalars)
        bars = [shadows[p] if p in shadows else next(rest) for p in self.active]
        return value, self.gather(bars, made.leaves, made.others)


Shortcut = Reading | Assigning


def key_of_wrt(wrt: Any) -> Any:
    """What names the same parts as `wrt` does; None where only a closer look tells."""
    if type(wrt) in (str, int):
        return wrt
    if type(wrt) in (tuple, list) and all(type(name) in (str, int) for name in wrt):
        return tuple(wrt)
    return None


def add_reading(flat: Flat, wrt: Any, selection: Selection, found: Specialization) -> None:
    """The next gradient of this kind need not be looked up."""
    own = flat.dispatcher
    names = tuple([own.names[p] for p in found.wrt])
    gather = flat.gatherer(selection, found.wrt)
    add(flat, wrt, Reading(own.alone(found, "value_and_grad"), names, gather))


def add_assigning(
    flat: Flat, wrt: Any, selection: Selection, found: Specialization, bars: Sequence[Any]
) -> None:
    """Neither need the next one of a function that assigns to fields."""
    own = flat.dispatcher
    made = Assigning(
        own.alone(found, "pullback", proved=True),
        own.era_of(found),
        found.metadata["records"],
        found.wrt,
        tuple(found.gradient["shadows"]),
        tuple(bars),
        flat.gatherer(selection, found.wrt),
    )
    add(flat, wrt, made)


def add(flat: Flat, wrt: Any, made: Shortcut) -> None:
    key = key_of_wrt(wrt)
    if key is not None:
        flat.shortcuts[key] = [made, *flat.shortcuts.get(key, ())][:MOST]
