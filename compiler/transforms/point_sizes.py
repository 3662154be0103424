"""How many points make a block of `vectorize_outer`: computed at run time, before the blocks."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ...dialects import array
from ..analysis.point_loops import PointLoop
from .hoist_checks import Before

POINTS = 64
"""Points of a block: as many as keep vectors busy, and few enough for what is theirs to stay in cache."""

UNIT = 8
"""Blocks have a multiple of these: a vector."""

CLASH = 128
"""Rows of a multiple of so many numbers begin in few sets of the first-level cache."""

SCRATCH = 1024
"""Elements of scratch memory, of `UNIT` points each, that a block may have: 64 KiB."""


class BlockSize:
    """Writes the number before a loop."""

    def __init__(self, points: PointLoop, before: Before) -> None:
        self.points = points
        self.before = before

    def value(self) -> SSAValue:
        """As many as fit; of those whose rows would fight for the same lines of a cache a vector."""
        before, size = self.before, self._room()
        least = min(UNIT, POINTS)
        for memory in self.points.columns():
            assert isinstance(memory.type, MemRefType)
            axes = range(1, memory.type.get_num_dims())
            if array.is_contiguous(memory.type) and axes:
                extents = [before.emit(memref.DimOp(memory, before.constant(a))) for a in axes]
                length = extents[0]
                for extent in extents[1:]:
                    length = before.emit(arith.MuliOp(length, extent))
                even = before.emit(array.FloorDivOp(length, before.constant(CLASH)))
                over = before.emit(arith.SubiOp(length, before.times(even, CLASH)))
                apart = before.emit(
                    arith.MinSIOp(over, before.constant(1))
                )  # 1, or 0 where they clash
                more = before.emit(arith.SubiOp(size, before.constant(least)))
                more = before.emit(arith.MuliOp(more, apart))
                size = before.plus(more, before.constant(least))
        return size

    def _room(self) -> SSAValue:
        """How many points fit: fewer where each has much scratch memory."""
        before, total = self.before, None
        for extents in self._scratch():
            product = extents[0]
            for extent in extents[1:]:
                product = before.emit(arith.MuliOp(product, extent))
            total = product if total is None else before.plus(total, product)
        if total is None:
            return before.constant(POINTS)
        some = before.emit(arith.MaxSIOp(total, before.constant(1)))
        room = before.emit(array.FloorDivOp(before.constant(SCRATCH), some))
        units = before.emit(arith.MinSIOp(room, before.constant(max(POINTS // UNIT, 1))))
        least = before.emit(arith.MaxSIOp(units, before.constant(1)))
        return before.times(least, min(UNIT, POINTS))

    def _scratch(self) -> list[Sequence[SSAValue]]:
        """The extents of the arrays that a point has, in the order in which they are stored to."""
        arrays = [
            m.owner for m in self.points.written if m in self.points.private & self.points.varying
        ]
        found = [o.extents for o in arrays if isinstance(o, array.AllocOp) and o.extents]
        found += [tuple(counts) for counts in self.points.rows().values()]
        known = [e for e in found if not any(self.points.is_inside(n) for n in e)]
        return [e for e in known if any(array.constant_value(n) is None for n in e)]
