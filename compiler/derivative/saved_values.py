"""What the forward sweep has saved, read from its tapes in the reverse sweep.

Segments that were pushed in a block are popped in the prologue of its reverse; those that stand at the top
level are still at hand.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import ad, array
from ..diagnostics import CompileError, refusal
from . import bits
from .forward_sweep import hint_of, segment_slot
from .plan import Save
from .segments import base_extents
from .sweeps import Primal
from .versions import Version


class SavedValues:
    """The segments of all saves of one gradient function."""

    def __init__(self, primal: Primal) -> None:
        self.primal = primal
        self.prologues = primal.prologues
        self.popped: dict[Save, SSAValue] = {}

    def open(self, block: Block) -> None:
        """Pop what was pushed in a block, where its reverse starts."""
        for save in self.primal.plan.saves:
            if save.push_before.parent_block() is block and block is not self.primal.top:
                self.segment(save)

    def segment(self, save: Save) -> SSAValue:
        """The segment that belongs to the current iteration of the loops around the push."""
        popped = self.popped.get(save)
        if popped is not None:
            return popped
        home = cast(Block, save.push_before.parent_block())
        if home is self.primal.top:
            return self.primal.forward.segments[save]
        if not self.primal.is_open(home):
            raise branch_refusal(save.at)
        found = self.popped[save] = self._pop(save, home)
        return found

    def _pop(self, save: Save, block: Block) -> SSAValue:
        counts: list[SSAValue] = []
        for loop, (first, last) in zip(save.loops, save.margins, strict=True):
            count = self.primal.early(cast(SSAValue, loop.count), block)
            if first + last:
                left_out = self.prologues.index(first + last, block)
                count = self.prologues.append(block, arith.SubiOp(count, left_out))
            counts.append(count)
        zero = self.prologues.index(0, block)
        counts = [self.prologues.append(block, arith.MaxSIOp(c, zero)) for c in counts]
        if save.in_bits:
            counts[-1] = bits.bytes_for(counts[-1], lambda op: self.prologues.append(block, op))
        tape = self.primal.forward.tapes[save]
        pop = ad.PopOp(tape, [*counts, *self._own(save, block)], save.stored)
        pop.memref.name_hint = f"{hint_of(save)}_saved"
        pop.location = save.at.location
        return self.prologues.append(block, pop)

    def _own(self, save: Save, block: Block) -> list[SSAValue]:
        """The extents of one saved value."""
        if isinstance(save.node, Version):
            base = save.node.base
            known = base_extents(base)
            if known:
                return [self.primal.early(e, block) for e in known]
            rank = cast(MemRefType[Attribute], base.type).get_num_dims()
            return [self.primal.extent(base, axis, block) for axis in range(rank)]
        if isinstance(save.at, array.MapOp):
            return [self.primal.early(e, block) for e in save.at.extents]
        return []

    def scalar(self, save: Save, block: Block) -> SSAValue:
        """The saved number of the current iteration, in the prologue of the reverse of `block`."""
        indices = [self.primal.induction[loop] for loop in save.loops]
        if save.in_bits:
            return bits.load_bit(
                self.segment(save), indices, lambda op: self.prologues.append(block, op)
            )
        load = memref.LoadOp.get(self.segment(save), indices)
        load.location = save.at.location
        return self.prologues.append(block, load)

    def slot(self, save: Save, block: Block) -> SSAValue:
        """The saved elements of a map, or the saved array, of the current iteration."""
        scratch = Block()
        view = segment_slot(
            self.segment(save),
            [self.primal.induction[lp] for lp in save.loops],
            self._own(save, block),
            scratch,
        )
        for op in list(scratch.ops):
            op.detach()
            self.prologues.append(block, op)
        return view


def branch_refusal(op: Operation) -> CompileError:
    """What a branch computes cannot be had where the branch is chosen again."""
    return refusal(
        op,
        "a view chosen by this branch depends on a value that the gradient must save",
        "compute the bounds of the view before the branch",
    )
