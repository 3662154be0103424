"""How far apart the iterations of a loop touch memory."""

from __future__ import annotations

from typing import Literal

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import BlockArgument

from ...dialects import array
from ..rules import Access
from .affine import Symbol
from .dependence import Dependence
from .footprint import Point
from .views import strip_casts

Stride = Literal["still", "unit", "down", "far"]


def stride(dependence: Dependence, access: Access, loop: array.LoopOp) -> Stride:
    """At one element, at the next one, at the one before, or somewhere else."""
    region = dependence.region(access)
    type_ = strip_casts(region.base).type
    assert isinstance(type_, MemRefType)
    distance: int | None = 0
    for dimension, step in zip(region.dimensions, array.strides_of(type_), strict=True):
        if not isinstance(dimension, Point):
            return "far"
        factor = dimension.at.terms.get(loop.induction, 0)
        others = [s for s in dimension.at.terms if not counts_in(s, loop)]
        if any(dependence.varies(s, loop) for s in others):
            return "far"
        if factor:
            distance = None if step is None or distance is None else distance + factor * step
    names: dict[int, Stride] = {0: "still", 1: "unit", -1: "down"}
    return "far" if distance is None else names.get(distance, "far")


def counts_in(symbol: Symbol, loop: array.LoopOp) -> bool:
    """Whether a symbol counts the iterations of the loop, or of one in it."""
    if not isinstance(symbol, BlockArgument):
        return False
    counted = symbol.owner.parent_op()
    if not isinstance(counted, array.LoopOp):
        return False
    return symbol is counted.induction and loop.is_ancestor(counted)
