"""Memrefs in the reverse sweep: the primal's own, their shadows, and stand-ins of the same extents.

The shadow of a view is the view of the shadow, the shadow of a permuted memref is the permuted shadow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType, UnitAttr, UnknownLoc
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from ...dialects import ad, array
from ..analysis.alias import permutation_order
from ..diagnostics import CompileError, refusal
from ..rules.builders import fill
from ..rules.sweeps import PRIMAL, SHADOW
from ..rules.table import float_constant
from .segments import value_block
from .sweeps import Primal

EXTENTS = "extents"
"""What may be asked of a memref beside its memory and its shadow: a stand-in that has its extents alone."""


class Memrefs:
    """The memrefs of one gradient function, each found in the reverse of its block."""

    def __init__(self, primal: Primal) -> None:
        self.primal = primal
        self.prologues = primal.prologues

    def open(self, block: Block) -> None:
        """Push and pop the shadows of segments where the reverse of their block begins: each once.

        The last first: what is popped in the block that pushes it has its shadow on the tape by then.
        """
        for op in reversed(list(block.ops)):
            if isinstance(op, ad.SegmentOp) and self._is_active(op.memref):
                self.get(op.memref, SHADOW)

    def get(self, value: SSAValue, kind: str) -> SSAValue:
        """The primal memref `value` itself, or its shadow, in the reverse of its block."""
        if kind == PRIMAL and value_block(value) is self.primal.top:
            return self.primal.forward.values[value]
        key = (value, kind)
        found = self.primal.known.memrefs.get(key)
        if found is None:
            found = self._found(value, kind)
            if found.name_hint is None and value.name_hint is not None:
                found.name_hint = value.name_hint + ("_shadow" if kind == SHADOW else "")
            self.primal.known.memrefs[key] = found
        return found

    def _found(self, value: SSAValue, kind: str) -> SSAValue:
        owner, block = value.owner, value_block(value)
        if kind == EXTENTS and not isinstance(owner, array.LoopOp):
            return self._stand_in(value, block)
        match owner:
            case array.ViewOp() | array.CollapseOp():
                view = owner.of(self.get(owner.source, kind), self.primal.get)
                view.location = owner.location
                return self.prologues.append(block, view)
            case memref.CastOp():
                source = self.get(owner.source, kind)
                lanes = self.primal.lanes if kind == SHADOW else 1
                wanted = cast(MemRefType[Attribute], ad.wide(value.type, lanes))
                if source.type == wanted:
                    return source
                return self.prologues.append(block, memref.CastOp.get(source, wanted))
            case array.AllocOp() | memref.AllocaOp() if kind == SHADOW:
                return self._zeroed(owner, block)
            case ad.SegmentOp() if kind == SHADOW:
                return self._shadow_segment(owner, block)
            case array.LoopOp():
                assert isinstance(value, OpResult)
                self._after_loop(owner, kind, value.index - 1)
                return self.primal.known.memrefs[(value, kind)]
            case scf.IfOp():
                assert isinstance(value, OpResult)
                return self._chosen(owner, value.index, kind)
            case array.AllocOp():
                raise scratch_refusal(owner)
            case _:
                raise AssertionError(f"no {kind} memref for {value}")

    def _stand_in(self, value: SSAValue, block: Block) -> SSAValue:
        """A view of one cell, which is never read, that is as large as a memref."""
        type_ = cast(MemRefType[Attribute], value.type)
        made_by = value.owner
        location = made_by.location if isinstance(made_by, Operation) else UnknownLoc()
        cell = self.prologues.cell(type_.element_type, location)
        rank, zero = type_.get_num_dims(), self.prologues.index(0, block)
        extents = [
            self.primal.get(made_by.extents[axis])
            if isinstance(made_by, array.AllocOp | ad.SegmentOp)
            else self.extent(value, axis, block)
            for axis in range(rank)
        ]
        view = array.ViewOp(cell, [], [-1] * rank, extents, [zero] * rank)
        alike = array.strided(type_.element_type, type_.get_shape(), [0] * rank)
        made = self.prologues.append(block, view)
        if made.type == alike:
            return made
        return self.prologues.append(block, memref.CastOp.get(made, alike))

    def _zeroed(self, op: array.AllocOp | memref.AllocaOp, block: Block) -> SSAValue:
        """The shadow of memory that the program allocates: as large, and 0."""
        type_ = cast(MemRefType[Attribute], op.results[0].type)
        element = ad.wide(type_.element_type, self.primal.lanes)
        if isinstance(op, memref.AllocaOp):
            shadow = self.prologues.cell(element, op.location)
            zero = float_constant(0.0, element)
            self.prologues.append(block, zero)
            self.prologues.append(block, memref.StoreOp.get(zero.result, shadow, []))
            return shadow
        if block is not self.primal.top and not self.primal.is_open(block):
            raise scratch_refusal(op)  # it would be another one where the branch itself is reversed
        extents = [self.primal.get(e) for e in op.extents]
        alloc = array.AllocOp(extents, element)
        alloc.location = op.location
        self.prologues.append(block, alloc)
        if array.GROWABLE in op.attributes:
            left_zero = not op.attributes.keys() & {array.ZERO, array.CLEARED}
            alloc.attributes[array.GROWABLE] = UnitAttr()
            alloc.attributes[array.ZERO if left_zero else array.CLEARED] = UnitAttr()
        else:
            self.prologues.append(block, fill(alloc.memref, extents, op))
        return alloc.memref

    def _shadow_segment(self, op: ad.SegmentOp, block: Block) -> SSAValue:
        """The shadow of a segment, which is pushed on the shadow tape where it itself is popped, or popped.

        What is never popped is read where it was pushed, and its shadow is no segment.
        """
        element = ad.wide(op.memref.type.element_type, self.primal.lanes)
        extents = [self.primal.get(e) for e in op.extents]
        made: ad.SegmentOp | array.AllocOp
        if isinstance(op, ad.PopOp):
            made = ad.PushOp(self.tape(op.tape), extents, element)
        elif is_popped(op.tape):
            made = ad.PopOp(self.tape(op.tape), extents, element)
        else:
            made = array.AllocOp(extents, element)
        made.location = op.location
        self.prologues.append(block, made)
        if not isinstance(made, ad.PopOp):
            self.prologues.append(block, fill(made.memref, extents, op))
        return made.memref

    def tape(self, value: SSAValue) -> SSAValue:
        """The tape of the shadows of a tape's segments."""
        if isinstance(value.owner, ad.ReaderOp):
            return self.tape(value.owner.source)
        tapes = self.primal.known.tapes
        if value not in tapes:
            assert isinstance(value.owner, ad.TapeOp), f"no shadow tape for {value}"
            tapes[value] = self.prologues.tape(value.owner.location)
            tapes[value].name_hint = f"{value.name_hint or 'tape'}_shadow"
        return tapes[value]

    def _after_loop(self, loop: array.LoopOp, kind: str, wanted: int) -> None:
        """The carried memrefs after the loop: the initial ones, permuted as often as it ran.

        Of those that change places with the one that is wanted: they share its roots.
        """
        block = cast(Block, loop.parent_block())
        roots = [self.primal.alias.roots(c) for c in loop.body_carried]
        slots = [p for p, r in enumerate(roots) if r == roots[wanted]]
        results: Sequence[SSAValue] = [self.get(loop.carried[p], kind) for p in slots]
        permutation = self.primal.alias.permutation(loop)
        moves = [slots.index(cast(int, permutation[p])) for p in slots]
        order = permutation_order(moves)
        if order > 1:
            trips = self.primal.get(loop.trips)
            remainder = self.prologues.append(
                block, arith.RemSIOp(trips, self.prologues.index(order, block))
            )
            body = Block(arg_types=[IndexType(), *(i.type for i in results)])
            body.add_op(array.YieldOp([body.args[1 + move] for move in moves]))
            replay = array.LoopOp(remainder, results, body)
            replay.location = loop.location
            self.prologues.append(block, replay)
            results = list(replay.results_carried)
        for p, found in zip(slots, results, strict=True):
            self.primal.known.memrefs[(loop.results_carried[p], kind)] = found

    def _chosen(self, op: scf.IfOp, index: int, kind: str) -> SSAValue:
        """The memref that a branch yielded, chosen again by the same condition.

        Together with all that it changes places with: the one choice shows that they are apart.
        """
        roots = self.primal.alias.roots(op.results[index])
        wanted = [
            k
            for k, r in enumerate(op.results)
            if isinstance(r.type, MemRefType)
            and (r, kind) not in self.primal.known.memrefs
            and self.primal.alias.roots(r) == roots
        ]
        ends = [cast(Operation, r.block.last_op).operands for r in op.regions]
        chosen = self.primal.either(
            op, lambda side, _: [self.get(ends[side][k], kind) for k in wanted]
        )
        for k, result in zip(wanted, chosen, strict=True):
            self.primal.known.memrefs[(op.results[k], kind)] = result
        return chosen[wanted.index(index)]

    def kind_with_extents(self, value: SSAValue) -> str:
        """What the reverse sweep has that is as large as a memref: scratch memory is gone by then."""
        if self.outlives_its_block(value):
            return PRIMAL
        return SHADOW if self._is_active(value) else EXTENTS

    def _is_active(self, value: SSAValue) -> bool:
        return self.primal.plan.needed.activity.active_memref(value)

    def extent(self, source: SSAValue, axis: int, block: Block) -> SSAValue:
        """The extent of a primal memref, from the op that made it where that is possible."""
        owner = source.owner
        if value_block(source) is not self.primal.top:
            if isinstance(owner, array.AnyView | array.AllocOp | ad.SegmentOp):
                return self.primal.get(owner.extents[axis])
            if isinstance(owner, memref.CastOp):
                return self.extent(owner.source, axis, block)
            if isinstance(owner, scf.IfOp):
                assert isinstance(source, OpResult)
                k = source.index
                ends = [cast(Operation, r.block.last_op).operands for r in owner.regions]
                (found,) = self.primal.either(
                    owner, lambda side, home: [self.extent(ends[side][k], axis, home)]
                )
                return found
        rebuilt = self.get(source, self.kind_with_extents(source))
        return self.prologues.append(
            block, memref.DimOp(rebuilt, self.prologues.index(axis, block))
        )

    def outlives_its_block(self, value: SSAValue) -> bool:
        """False for scratch memory of a loop's body: the reverse sweep has its shadow only."""
        return all(
            isinstance(root, BlockArgument)
            or value_block(root) is self.primal.top
            or isinstance(root.owner, memref.AllocaOp)
            for root in self.primal.alias.roots(value)
        )


def is_popped(tape: SSAValue) -> bool:
    """Whether anything is taken off a tape, here or by who is given it."""
    return any(not isinstance(use.operation, ad.PushOp) for use in tape.uses)


def scratch_refusal(op: array.AllocOp) -> CompileError:
    """What a branch allocates, where the branch is chosen again."""
    return refusal(
        op,
        "the gradient needs an array that only this branch allocates",
        "allocate it before the branch",
    )
