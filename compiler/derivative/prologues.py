"""Prologues: where the reverse of a block has the block's primal values again.

The reverse of a block is a block of its own with a *prologue*: whatever primal values of that block
the adjoint asks for are had again there, once, operands first. They are asked for lazily, so only
what is used is emitted. Nothing in a reverse sweep writes primal memory, so a prologue may reload.
"""

from __future__ import annotations

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import ad


class Prologues:
    """The prologues of one gradient function, whose cells are made at the beginning of `entry`."""

    def __init__(self, entry: Block) -> None:
        self.entry = entry
        self.ends: dict[Block, Operation] = {}
        """For each primal block whose reverse is being emitted, the op that ends the prologue."""

    def __contains__(self, primal: Block) -> bool:
        return primal in self.ends

    def begin(self, primal: Block, reverse: Block) -> None:
        """The prologue of the reverse of `primal` is where `reverse` ends now."""
        marker = arith.ConstantOp(IntegerAttr(0, IndexType()))
        reverse.add_op(marker)
        self.ends[primal] = marker

    def close(self, primal: Block) -> None:
        marker = self.ends.pop(primal)
        marker.detach()
        marker.erase()

    def reverse_of(self, primal: Block) -> Block:
        """The block that has the prologue of the reverse of `primal`."""
        reverse = self.ends[primal].parent_block()
        assert reverse is not None
        return reverse

    def append(self, primal: Block, op: Operation) -> SSAValue:
        """Put `op` at the end of the prologue of the reverse of `primal`."""
        marker = self.ends[primal]
        self.reverse_of(primal).insert_op_before(op, marker)
        return op.results[0] if op.results else marker.results[0]

    def index(self, value: int, primal: Block) -> SSAValue:
        return self.append(primal, arith.ConstantOp(IntegerAttr(value, IndexType())))

    def cell(self, element: Attribute, location: LocationAttr) -> SSAValue:
        """A cell of the whole gradient function."""
        return self._on_entry(memref.AllocaOp.get(element, shape=[]), location)

    def tape(self, location: LocationAttr) -> SSAValue:
        return self._on_entry(ad.TapeOp(), location)

    def _on_entry(self, op: Operation, location: LocationAttr) -> SSAValue:
        op.location = location
        first = self.entry.first_op
        assert first is not None
        self.entry.insert_op_before(op, first)
        return op.results[0]
