"""Which rows of an array a function adds to: `w[0, i]` and `w[3, j]` are in rows 0 and 3, whatever i is.

A shadow that comes as zeros, or is filled with them, holds zeros wherever nobody adds. So what looks for
NaN in it (`drop_guards`) looks at the rows that are added to, where these are few and known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan, prod

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import BlockArgument, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis
from ..analysis.views import strip_casts
from ..rules import Access, writes
from ..rules.table import constant_float

MANY = 16
"""So many rows are looked at as the whole array."""

Place = tuple[int | None, ...]
"""By axis a subscript, or None where it may be any."""
Part = tuple[tuple[int, int] | None, ...]
"""By axis the first subscript and the one behind the last, or None for all."""


@dataclass(frozen=True)
class TouchedParts:
    """The parts of arguments that a function writes to."""

    function: func.FuncOp
    alias: AliasAnalysis

    def of(self, argument: SSAValue) -> Part:
        """A part in which all is that is written to the argument, but for fills; all of it at worst."""
        assert isinstance(argument.type, MemRefType)
        rank = argument.type.get_num_dims()
        whole: Part = (None,) * rank
        found: list[Place] = []
        near = self.alias.interfering(argument)
        for access, roots in self._written:
            if not roots.isdisjoint(near) and not is_fill(access):
                place = place_of(access, argument)
                if place is None:
                    return whole
                found.append(place)
        part = whole if not found else tuple(map(range_of, zip(*found, strict=True)))
        rows = prod(last - first for first, last in filter(None, part))
        return part if rows <= MANY else whole

    def arguments(self) -> list[BlockArgument]:
        """The arguments that may be written to."""
        written = {root for _, roots in self._written for root in roots}
        near = {other for root in written for other in self.alias.interfering(root)}
        return [a for a in self.function.body.block.args if a in near]

    @cached_property
    def _written(self) -> list[tuple[Access, frozenset[SSAValue]]]:
        """What the function writes to, with the memory that this may be."""
        accesses = (a for op in every_op(self.function)[1:] for a in writes(op))
        return [(access, self.alias.roots(access.memref)) for access in accesses]


def is_fill(access: Access) -> bool:
    """Whether a map fills what it writes to with a number that is known."""
    op = access.op
    if not isinstance(op, array.MapOp):
        return False
    written = [v for v, out in zip(op.yielded, op.outs, strict=True) if out is access.memref]
    known = [constant_float(value) for value in written]
    return all(number is not None and not isnan(number) for number in known)


def range_of(subscripts: Sequence[int | None]) -> tuple[int, int] | None:
    known = [k for k in subscripts if k is not None and k >= 0]
    return (min(known), max(known) + 1) if len(known) == len(subscripts) else None


def place_of(access: Access, argument: SSAValue) -> Place | None:
    """Where in the argument an op writes, through views of it; None where that is not known."""
    op, here = access.op, strip_casts(access.memref)
    assert isinstance(here.type, MemRefType)
    place: Place = (None,) * here.type.get_num_dims()
    if isinstance(op, memref.StoreOp):
        place = tuple(map(known_subscript, op.indices))
    while here is not argument:
        view = here.owner
        if not isinstance(view, array.ViewOp):
            return None
        place = through(view, place)
        here = strip_casts(view.source)
    return place


def known_subscript(value: SSAValue) -> int | None:
    """The constant that a subscript is; one from the front of an axis, which may have been checked."""
    while isinstance(value.owner, array.IndexOp) and value.owner.sign.data == "nonneg":
        value = value.owner.index
    return array.constant_value(value)


def through(view: array.ViewOp, inside: Place) -> Place:
    """The place in what is viewed."""
    found: list[int | None] = []
    for axis, offset in enumerate(view.offsets):
        place = known_subscript(offset)
        for dim, (walked, step) in enumerate(zip(view.source_dims, view.steps, strict=True)):
            if walked == axis:
                by, at = array.constant_value(step), inside[dim]
                place = None if place is None or by is None or at is None else place + at * by
        found.append(place)
    return tuple(found)
