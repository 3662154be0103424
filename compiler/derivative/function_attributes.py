"""What a derived function takes over from the function that it is of: source locations, shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, UnknownLoc, i64


def inherit_locations(gradient: func.FuncOp) -> None:
    """Let ops made along the way (constants, slots, terminators) come from where their neighbours do."""
    for block in gradient.body.block.walk_blocks():
        parent = block.parent_op()
        assert parent is not None
        location = parent.location
        for op in block.ops:
            if isinstance(op.location, UnknownLoc):
                op.location = location
            location = op.location


def mirror_overlaps(function: func.FuncOp, tangent_of: Mapping[int, int]) -> None:
    """Tangents share memory where their primals do; `tangent_of` maps indices of arguments."""
    overlaps = function.attributes.get("overlaps")
    if not isinstance(overlaps, ArrayAttr):
        return
    pairs = list(overlaps.data)
    for pair in overlaps.data:
        members = [cast("IntegerAttr[Any]", n).value.data for n in cast("ArrayAttr[Any]", pair)]
        if all(m in tangent_of for m in members):
            pairs.append(ArrayAttr([IntegerAttr(tangent_of[m], i64) for m in members]))
    function.attributes["overlaps"] = ArrayAttr(pairs)


def move_overlaps(function: func.FuncOp, start: int, by: int) -> None:
    """The arguments from `start` on stand `by` places further back."""
    overlaps = function.attributes.get("overlaps")
    if not isinstance(overlaps, ArrayAttr):
        return
    pairs: list[ArrayAttr[Any]] = []
    for pair in overlaps.data:
        members = [cast("IntegerAttr[Any]", n).value.data for n in cast("ArrayAttr[Any]", pair)]
        moved = [m + by if m >= start else m for m in members]
        pairs.append(ArrayAttr([IntegerAttr(m, i64) for m in moved]))
    function.attributes["overlaps"] = ArrayAttr(pairs)
