"""The numbers that say where and how large a memref is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects import memref, scf
from xdsl.ir import Block, BlockArgument, OpResult, SSAValue

from ...dialects import ad, array


def trips_source(loop: array.LoopOp) -> SSAValue:
    """The number of trips; of a counted loop its count, which the segments of its tapes have for extent."""
    counted = loop.condition_block is None and loop.count is not None
    return cast(SSAValue, loop.count) if counted else loop.trips


def descriptor_values(memref_value: SSAValue) -> Iterator[SSAValue]:
    """The numbers that say where and how large a memref is: what rebuilding the view takes."""
    pending = [memref_value]
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        match owner:
            case array.ViewOp():
                yield from (*owner.offsets, *owner.extents, *owner.steps)
                pending.append(owner.source)
            case array.CollapseOp():
                yield from owner.extents
                pending.append(owner.source)
            case memref.CastOp():
                pending.append(owner.source)
            case array.AllocOp() | ad.SegmentOp():
                yield from owner.extents
            case scf.IfOp() if isinstance(value, OpResult):
                yield owner.cond
                for region in owner.regions:
                    terminator = region.block.last_op
                    assert isinstance(terminator, scf.YieldOp)
                    pending.append(terminator.operands[value.index])
            case array.LoopOp():
                yield trips_source(owner)
                pending.extend(owner.carried)
            case Block() if isinstance(value, BlockArgument):
                loop = owner.parent_op()
                if isinstance(loop, array.LoopOp):
                    pending.extend(loop.carried)
            case _:
                pass
