"""What the forward sweep has saved, read from its tapes in the reverse sweep.

Segments that were pushed in a block are popped in the prologue of its reverse; those that stand at the top
level are still at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import memref
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import ad, array
from ..diagnostics import CompileError, refusal
from . import bits
from .forward_sweep import segment_slot
from .plan import Save, hint_of
from .segments import as_it_lies
from .sweeps import Primal


class SavedValues:
    """The segments of all saves of one gradient function."""

    def __init__(self, primal: Primal) -> None:
        self.primal = primal
        self.prologues = primal.prologues
        self.popped: dict[Save, SSAValue] = {}
        self.unpacked: dict[tuple[Save, Block], SSAValue] = {}
        """The truths of a map, of saves that are packed."""

    def open(self, block: Block) -> None:
        """Pop what was pushed in a block, where its reverse starts."""
        for save in self.primal.plan.read_back:
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
        found = self._pop(save, home)
        if save.segment.turned:
            found = as_it_lies(found, lambda op: self.prologues.append(home, op))
        self.popped[save] = found
        return found

    def _pop(self, save: Save, block: Block) -> SSAValue:
        counts = save.segment.sizes(
            lambda n: self.primal.early(n, block),
            lambda base, axis: self.primal.extent(base, axis, block),
            lambda op: self.prologues.append(block, op),
        )
        if save in self.primal.forward.rows:
            rows, place = self.primal.forward.rows[save]
            row = self._view(rows, [place], counts, block)
            row.name_hint = f"{hint_of(save)}_saved"
            return row
        tape = self.primal.forward.tapes[save]
        pop = ad.PopOp(tape, counts, save.stored)
        pop.memref.name_hint = f"{hint_of(save)}_saved"
        pop.location = save.at.location
        return self.prologues.append(block, pop)

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
        if save.in_packed_rows:
            if (save, block) not in self.unpacked:
                self.unpacked[save, block] = self._unpack(save, block)
            return self.unpacked[save, block]
        return self._slot(save, block, self._own_sizes(save, block))

    def _unpack(self, save: Save, block: Block) -> SSAValue:
        def emit(op: Operation) -> SSAValue:
            op.location = save.at.location
            self.prologues.append(block, op)
            return op.results[0] if op.results else truths

        extents = self._own_sizes(save, block)
        truths = self.prologues.append(block, array.AllocOp(extents, save.element))
        truths.name_hint = hint_of(save)
        sizes = [*extents[:-1], bits.bytes_for(extents[-1], emit)]
        bits.unpack(self._slot(save, block, sizes), truths, extents, save.at, emit)
        return truths

    def _own_sizes(self, save: Save, block: Block) -> list[SSAValue]:
        return save.segment.own_sizes(
            lambda n: self.primal.early(n, block),
            lambda base, axis: self.primal.extent(base, axis, block),
        )

    def _slot(self, save: Save, block: Block, sizes: Sequence[SSAValue]) -> SSAValue:
        """The part of the segment that belongs to the current iteration."""
        loops = [self.primal.induction[loop] for loop in save.loops]
        return self._view(self.segment(save), loops, sizes, block)

    def _view(
        self, of: SSAValue, at: Sequence[SSAValue], sizes: Sequence[SSAValue], block: Block
    ) -> SSAValue:
        scratch = Block()
        view = segment_slot(of, at, sizes, scratch)
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
