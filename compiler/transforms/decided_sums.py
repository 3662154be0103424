"""Which sums a pass reorders: the gradient that runs no step again decides for all functions.

Passes that reorder the additions of a nest look at what is around it, and that differs between a loop and the
function of one of its steps. Within a budget both are in the module, first the gradient that saves all. So a
pass asks here: of the functions of steps it may change only sums that it has changed in that gradient, too.
A sum is known by its place in the source.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import LocationAttr

from ...dialects import activation

IN_STEPS = {activation.CHECKPOINTED, activation.LIVE}
"""The attributes of functions that belong to the gradient that runs steps again."""


@dataclass
class DecidedSums:
    """What one pass did in one module."""

    places: set[LocationAttr] = field(default_factory=set[LocationAttr])

    def may_change(self, function: func.FuncOp, place: LocationAttr) -> bool:
        return not runs_steps(function) or place in self.places

    def prefers(self, function: func.FuncOp, place: LocationAttr, *, wanted: bool) -> bool:
        """Whether to change a sum that may be: of the functions of steps, what is wanted does not count."""
        return place in self.places if runs_steps(function) else wanted

    def changed(self, place: LocationAttr) -> None:
        self.places.add(place)


def runs_steps(function: func.FuncOp) -> bool:
    """Whether a function is the gradient that runs steps again, or one of its steps."""
    return not IN_STEPS.isdisjoint(function.attributes)
