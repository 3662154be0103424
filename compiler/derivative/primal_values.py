"""Primal values and memrefs as the reverse sweep sees them: free, reloaded, recomputed, or read from a tape.

The reverse of a block is a block of its own with a *prologue*: whatever primal values of that block
the adjoint asks for are had again there, once, operands first. They are asked for lazily, so only
what is used is emitted. Nothing in a reverse sweep writes primal memory, so a prologue may reload.

Shadows are found the same way: the shadow of a view is the view of the shadow, the shadow of a
permuted memref is the permuted shadow.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TypeVar, cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    FloatAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue

from ...dialects import ad, array
from ..analysis.alias import AliasAnalysis
from ..diagnostics import CompileError, refusal
from ..rules import Contents
from ..rules.builders import fill, transfer
from ..rules.sweeps import PRIMAL, SHADOW
from . import bits
from .forward_sweep import ForwardSweep, hint_of, segment_slot
from .inversions import undone
from .map_values import MapValues
from .old_contents import OldContents
from .plan import Plan, Save
from .rollback import Rolled
from .rolling import Rolling
from .segments import base_extents, is_recomputable, value_block
from .versions import Version, maker_of

EXTENTS = "extents"
"""What may be asked of a memref beside its memory and its shadow: a stand-in that has its extents alone."""

Key = TypeVar("Key")


class PrimalValues:
    """What the reverse sweep knows of the primal, block by block."""

    def __init__(self, plan: Plan, alias: AliasAnalysis, forward: ForwardSweep) -> None:
        self.plan = plan
        self.alias = alias
        self.forward = forward
        self.top = plan.function.body.block
        self.values: dict[SSAValue, SSAValue] = {}
        self.memrefs: dict[tuple[SSAValue, str], SSAValue] = {}
        self.popped: dict[Save, SSAValue] = {}
        self.copies: dict[Version, SSAValue] = {}
        self.prologue_end: dict[Block, Operation] = {}
        """For each primal block whose reverse is being emitted, the op that ends the prologue."""
        self.rolling = Rolling(self, plan.rolled)
        self.induction: dict[array.LoopOp, SSAValue] = {}

    # Blocks.

    def open(self, primal: Block, reverse: Block) -> None:
        """Start the reverse of `primal` at the end of `reverse`: its prologue, and what was pushed there."""
        self.begin_prologue(primal, reverse)
        self.rolling.begin(primal)
        for save in self.plan.saves:
            if save.push_before.parent_block() is primal and primal is not self.top:
                self.segment(save)
        self.rolling.open(primal)

    def begin_prologue(self, primal: Block, reverse: Block) -> None:
        marker = arith.ConstantOp(IntegerAttr(0, IndexType()))
        reverse.add_op(marker)
        self.prologue_end[primal] = marker

    def close(self, primal: Block) -> None:
        self.rolling.close(primal)
        marker = self.prologue_end.pop(primal)
        marker.detach()
        marker.erase()

    @contextmanager
    def at_place(self, primal: Block, reverse: Block) -> Generator[None]:
        """For a while let the prologue of the reverse of `primal` be where `reverse` ends now.

        What is had there is forgotten afterwards: it comes too late for all that the prologue is asked for.
        """
        marker, is_open = self.prologue_end[primal], self.rolling.open_blocks.copy()
        before = dict(self.values), dict(self.memrefs), dict(self.copies)
        self.begin_prologue(primal, reverse)
        yield
        self.close(primal)
        self.values, self.memrefs, self.copies = before
        self.prologue_end[primal], self.rolling.open_blocks = marker, is_open

    def at_prologue(self, primal: Block, op: Operation) -> SSAValue:
        """Put `op` at the end of the prologue of the reverse of `primal`."""
        marker = self.prologue_end[primal]
        reverse = marker.parent_block()
        assert reverse is not None
        reverse.insert_op_before(op, marker)
        return op.results[0] if op.results else marker.results[0]

    def index(self, value: int, primal: Block) -> SSAValue:
        return self.at_prologue(primal, arith.ConstantOp(IntegerAttr(value, IndexType())))

    # Scalars.

    def get(self, value: SSAValue) -> SSAValue:
        """A primal scalar, usable from the prologue of its own block on."""
        known = self.values.get(value)
        if known is not None:
            return known
        block = value_block(value)
        if block is self.top:
            return self.forward.values[value]
        if block not in self.prologue_end:
            raise AssertionError(f"{value} is asked for outside its block")
        found = self._again(value, block)
        found.name_hint = value.name_hint
        self.values[value] = found
        return found

    def early(self, value: SSAValue, primal: Block) -> SSAValue:
        """A number that an inner block computes by pure code, computed in the prologue of `primal`.

        What the forward sweep did when it pushed a segment before the inner block.
        """
        home = value_block(value)
        if value in self.values or home is self.top or home in self.prologue_end:
            return self.get(value)
        op = value.owner
        assert isinstance(op, Operation)
        return self.compute(op, primal, lambda o: self.early(o, primal))

    def compute(self, op: Operation, block: Block, get: Callable[[SSAValue], SSAValue]) -> SSAValue:
        return self.at_prologue(block, computed_again(op, get))

    def _again(self, value: SSAValue, block: Block) -> SSAValue:
        save = self.plan.save_of(value)
        if save is not None:
            return self._from_tape(save, block)
        answer = self.plan.answers.get(value)
        if answer is not None:
            return OldContents(self, block).scalar(answer)
        store = self.plan.stored_at.get(value)
        if isinstance(store, memref.StoreOp):
            return self._load(store.memref, store.indices, block, store)
        undo = self.plan.inverted.get(value)
        if undo is not None:
            return self.at_prologue(block, undone(undo, value, self.get(undo.results[0]), self.get))
        rolled = self.plan.rolled.get(value)
        if rolled is not None:
            return self._rolled(rolled, block)
        op = value.owner
        assert isinstance(op, Operation), value
        match op:
            case memref.LoadOp():
                version = self.plan.versions.get(value)
                if version is None:
                    return self._load(op.memref, op.indices, block, op)
                source = self.rebuild_on(op.memref, version)
                return self._load_from(source, op.indices, block, op)
            case memref.DimOp():
                axis = array.constant_value(op.index)
                assert axis is not None
                return self.extent(op.source, axis, block)
            case array.LoopOp():
                assert op.count is not None
                zero = self.index(0, block)
                return self.at_prologue(block, arith.MaxSIOp(self.get(op.count), zero))
            case _:
                return self.compute(op, block, self.get)

    def _rolled(self, rolled: Rolled, block: Block) -> SSAValue:
        found = self.rolling.value(rolled, block)
        if found is None:
            raise branch_refusal(rolled.at)
        return found

    def _load(
        self, source: SSAValue, indices: Sequence[SSAValue], block: Block, like: Operation
    ) -> SSAValue:
        return self._load_from(self.memref(source, PRIMAL), indices, block, like)

    def _load_from(
        self, source: SSAValue, indices: Sequence[SSAValue], block: Block, like: Operation
    ) -> SSAValue:
        load = memref.LoadOp.get(source, [self.get(i) for i in indices])
        load.location = like.location
        return self.at_prologue(block, load)

    def extent(self, source: SSAValue, axis: int, block: Block) -> SSAValue:
        """The extent of a primal memref, from the op that made it where that is possible."""
        owner = source.owner
        if value_block(source) is not self.top:
            if isinstance(owner, array.AnyView | array.AllocOp):
                return self.get(owner.extents[axis])
            if isinstance(owner, memref.CastOp):
                return self.extent(owner.source, axis, block)
            if isinstance(owner, scf.IfOp):
                assert isinstance(source, OpResult)
                k = source.index
                ends = [cast(Operation, r.block.last_op).operands for r in owner.regions]
                (found,) = self.either(
                    owner, lambda side, home: [self.extent(ends[side][k], axis, home)]
                )
                return found
        rebuilt = self.memref(source, self.kind_with_extents(source))
        return self.at_prologue(block, memref.DimOp(rebuilt, self.index(axis, block)))

    def kind_with_extents(self, value: SSAValue) -> str:
        """What the reverse sweep has that is as large as a memref: scratch memory is gone by then."""
        if self.outlives_its_block(value):
            return PRIMAL
        return SHADOW if self.plan.needed.activity.active_memref(value) else EXTENTS

    # Tapes.

    def _pop(self, save: Save, primal: Block) -> None:
        counts: list[SSAValue] = []
        for loop, (first, last) in zip(save.loops, save.margins, strict=True):
            count = self.early(cast(SSAValue, loop.count), primal)
            if first + last:
                left_out = self.index(first + last, primal)
                count = self.at_prologue(primal, arith.SubiOp(count, left_out))
            counts.append(count)
        zero = self.index(0, primal)
        counts = [self.at_prologue(primal, arith.MaxSIOp(c, zero)) for c in counts]
        if save.in_bits:
            counts[-1] = bits.bytes_for(counts[-1], lambda op: self.at_prologue(primal, op))
        pop = ad.PopOp(self.forward.tapes[save], [*counts, *self._own(save, primal)], save.stored)
        pop.memref.name_hint = f"{hint_of(save)}_saved"
        pop.location = save.at.location
        self.popped[save] = self.at_prologue(primal, pop)

    def _own(self, save: Save, primal: Block) -> list[SSAValue]:
        """The extents of one saved value."""
        if isinstance(save.node, Version):
            base = save.node.base
            known = base_extents(base)
            if known:
                return [self.early(e, primal) for e in known]
            rank = cast(MemRefType[Attribute], base.type).get_num_dims()
            return [self.extent(base, axis, primal) for axis in range(rank)]
        if isinstance(save.at, array.MapOp):
            return [self.early(e, primal) for e in save.at.extents]
        return []

    def segment(self, save: Save) -> SSAValue:
        popped = self.popped.get(save)
        if popped is not None:
            return popped
        home = cast(Block, save.push_before.parent_block())
        if home is not self.top:
            if home not in self.rolling.open_blocks:
                raise branch_refusal(save.at)
            self._pop(save, home)
            return self.popped[save]
        return self.forward.segments[save]

    def _from_tape(self, save: Save, block: Block) -> SSAValue:
        indices = [self.induction[loop] for loop in save.loops]
        if save.in_bits:
            return bits.load_bit(
                self.segment(save), indices, lambda op: self.at_prologue(block, op)
            )
        load = memref.LoadOp.get(self.segment(save), indices)
        load.location = save.at.location
        return self.at_prologue(block, load)

    def slot(self, save: Save, block: Block) -> SSAValue:
        """The saved elements of a map, or the saved array, of the current iteration."""
        scratch = Block()
        view = segment_slot(
            self.segment(save),
            [self.induction[lp] for lp in save.loops],
            self._own(save, block),
            scratch,
        )
        for op in list(scratch.ops):
            op.detach()
            self.at_prologue(block, op)
        return view

    def copy_of(self, version: Version) -> SSAValue:
        """The contents of an array as they were: saved, or computed again by the map that made them."""
        if version not in self.copies:
            save = self.plan.save_of(version)
            self.copies[version] = (
                self._recompute(version) if save is None else self.slot(save, self.home_of(version))
            )
        return self.copies[version]

    def home_of(self, version: Version) -> Block:
        """The primal block in whose reverse the copy of a version is had."""
        save = self.plan.save_of(version)
        if save is not None:
            return cast(Block, save.at.parent_block())
        maker = maker_of(version)
        assert maker is not None, "the plan has no way to the contents of an array"
        return cast(Block, maker[0].parent_block())

    def _recompute(self, version: Version) -> SSAValue:
        maker = maker_of(version)
        assert maker is not None, "the plan has no way to the contents of an array"
        op, position = maker
        block = cast(Block, op.parent_block())
        values = MapValues(self, op)
        element = values.get(op.yielded[position])
        values.append(array.YieldOp([element]))
        copy = array.AllocOp(values.extents, element.type)
        copy.location = op.location
        copy.memref.name_hint = f"{version.base.name_hint or 'array'}_again"
        self.at_prologue(block, copy)
        again = array.MapOp(values.extents, values.ins, [copy.memref], ["store"], values.body)
        again.location = op.location
        self.at_prologue(block, again)
        return copy.memref

    # Memrefs.

    def rebuild_on(self, source: SSAValue, version: Version) -> SSAValue:
        """The view `source` of an array, taken of a copy of the array's contents instead."""
        if source is version.base:
            return self.copy_of(version)
        owner = source.owner
        if isinstance(owner, memref.CastOp):
            return self.rebuild_on(owner.source, version)
        assert isinstance(owner, array.AnyView)
        home, made = self.home_of(version), value_block(source)
        inner = home if is_inside(home, made) else made
        rebuilt = self.rebuild_on(owner.source, version)
        base_type = cast(MemRefType[Attribute], version.base.type)
        if isinstance(owner, array.CollapseOp) and not array.is_contiguous(base_type):
            rebuilt = self._in_c_order(
                owner, rebuilt, inner
            )  # as the array lies, the copy does not
        return self._view(owner, rebuilt, inner)

    def _in_c_order(self, op: array.CollapseOp, source: SSAValue, block: Block) -> SSAValue:
        """A copy of `source`, which `op` collapses, without gaps."""
        rank = cast(MemRefType[Attribute], source.type).get_num_dims()
        extents = [self.extent(op.source, axis, block) for axis in range(rank)]
        element = cast(MemRefType[Attribute], source.type).element_type
        copy = array.AllocOp(extents, element)
        for made in (copy, transfer(source, copy.memref, extents)):
            made.location = op.location
            self.at_prologue(block, made)
        return copy.memref

    def _view(self, op: array.AnyView, source: SSAValue, block: Block) -> SSAValue:
        """The view that `op` takes, of another memref, in the reverse of `block`."""
        view = op.of(source, self.get)
        view.location = op.location
        return self.at_prologue(block, view)

    def contents(self, read: Contents | BlockArgument, source: SSAValue) -> SSAValue:
        """A memref that holds what `read` read of `source`: the memory where it survives, else a copy."""
        answer = self.plan.answers.get(read)
        if answer is not None:
            op = answer.access.op
            block = cast(Block, op.parent_block())
            rank = cast(MemRefType[Attribute], source.type).get_num_dims()
            extents = [self.extent(source, axis, block) for axis in range(rank)]
            return OldContents(self, block).view(answer, extents)
        version = self.plan.versions.get(read)
        if version is not None:
            return self.rebuild_on(source, version)
        return self.memref(source, PRIMAL)

    def memref(self, value: SSAValue, kind: str) -> SSAValue:
        """The primal memref `value` itself, or its shadow, in the reverse of its block."""
        if kind == PRIMAL and value_block(value) is self.top:
            return self.forward.values[value]
        key = (value, kind)
        found = self.memrefs.get(key)
        if found is None:
            found = self._memref(value, kind)
            if found.name_hint is None and value.name_hint is not None:
                found.name_hint = value.name_hint + ("_shadow" if kind == SHADOW else "")
            self.memrefs[key] = found
        return found

    def _memref(self, value: SSAValue, kind: str) -> SSAValue:
        owner, block = value.owner, value_block(value)
        if kind == EXTENTS and not isinstance(owner, array.LoopOp):
            return self._stand_in(value, block)
        match owner:
            case array.ViewOp() | array.CollapseOp():
                return self._view(owner, self.memref(owner.source, kind), block)
            case memref.CastOp():
                source = self.memref(owner.source, kind)
                if source.type == value.type:
                    return source
                return self.at_prologue(
                    block, memref.CastOp.get(source, cast(MemRefType[Attribute], value.type))
                )
            case array.AllocOp() | memref.AllocaOp() if kind == SHADOW:
                return self._zeroed(owner, block)
            case array.LoopOp():
                assert isinstance(value, OpResult)
                self._after_loop(owner, kind, value.index - 1)
                return self.memrefs[(value, kind)]
            case scf.IfOp():
                assert isinstance(value, OpResult)
                return self._chosen(owner, value.index, kind)
            case array.AllocOp():
                raise scratch_refusal(owner)
            case _:
                raise AssertionError(f"no {kind} memref for {value}")

    def _stand_in(self, value: SSAValue, block: Block) -> SSAValue:
        """A view of one cell, which nobody reads, that is as large as a memref."""
        type_ = cast(MemRefType[Attribute], value.type)
        cell = self._cell(type_.element_type, value)
        rank, zero = type_.get_num_dims(), self.index(0, block)
        extents = [
            self.get(owner.extents[axis])
            if isinstance(owner := value.owner, array.AllocOp)
            else self.extent(value, axis, block)
            for axis in range(rank)
        ]
        view = array.ViewOp(cell, [], [-1] * rank, extents, [zero] * rank)
        alike = array.strided(type_.element_type, type_.get_shape(), [0] * rank)
        made = self.at_prologue(block, view)
        if made.type == alike:
            return made
        return self.at_prologue(block, memref.CastOp.get(made, alike))

    def _cell(self, element: Attribute, like: SSAValue) -> SSAValue:
        """A cell of the whole gradient function."""
        cell = memref.AllocaOp.get(element, shape=[])
        cell.location = like.owner.location if isinstance(like.owner, Operation) else UnknownLoc()
        first = self.forward.entry.first_op
        assert first is not None
        self.forward.entry.insert_op_before(cell, first)
        return cell.memref

    def _zeroed(self, op: array.AllocOp | memref.AllocaOp, block: Block) -> SSAValue:
        """The shadow of memory that the program allocates: as large, and 0."""
        type_ = cast(MemRefType[Attribute], op.results[0].type)
        if isinstance(op, memref.AllocaOp):
            shadow = self._cell(type_.element_type, op.memref)
            zero = arith.ConstantOp(FloatAttr(0.0, type_.element_type))  # pyright: ignore
            self.at_prologue(block, zero)
            self.at_prologue(block, memref.StoreOp.get(zero.result, shadow, []))
            return shadow
        if block is not self.top and block not in self.rolling.open_blocks:
            raise scratch_refusal(op)  # it would be another one where the branch itself is reversed
        extents = [self.get(e) for e in op.extents]
        alloc = array.AllocOp(extents, type_.element_type)
        alloc.location = op.location
        self.at_prologue(block, alloc)
        if array.GROWABLE in op.attributes:
            alloc.attributes |= {array.GROWABLE: UnitAttr(), array.ZERO: UnitAttr()}
        else:
            self.at_prologue(block, fill(alloc.memref, extents, op))
        return alloc.memref

    def _after_loop(self, loop: array.LoopOp, kind: str, wanted: int) -> None:
        """The carried memrefs after the loop: the initial ones, permuted as often as it ran.

        Of those that change places with the one that is wanted: they share its roots.
        """
        block = cast(Block, loop.parent_block())
        roots = [self.alias.roots(c) for c in loop.body_carried]
        slots = [p for p, r in enumerate(roots) if r == roots[wanted]]
        results: Sequence[SSAValue] = [self.memref(loop.carried[p], kind) for p in slots]
        permutation = self.alias.permutation(loop)
        moves = [slots.index(cast(int, permutation[p])) for p in slots]
        order = permutation_order(moves)
        if order > 1:
            trips = self.get(loop.trips)
            remainder = self.at_prologue(block, arith.RemSIOp(trips, self.index(order, block)))
            body = Block(arg_types=[IndexType(), *(i.type for i in results)])
            body.add_op(array.YieldOp([body.args[1 + move] for move in moves]))
            replay = array.LoopOp(remainder, results, body)
            replay.location = loop.location
            self.at_prologue(block, replay)
            results = list(replay.results_carried)
        for p, found in zip(slots, results, strict=True):
            self.memrefs[(loop.results_carried[p], kind)] = found

    def _chosen(self, op: scf.IfOp, index: int, kind: str) -> SSAValue:
        """The memref that a branch yielded, chosen again by the same condition.

        Together with all that it changes places with: the one choice shows that they are apart.
        """
        roots = self.alias.roots(op.results[index])
        wanted = [
            k
            for k, r in enumerate(op.results)
            if isinstance(r.type, MemRefType)
            and (r, kind) not in self.memrefs
            and self.alias.roots(r) == roots
        ]
        ends = [cast(Operation, r.block.last_op).operands for r in op.regions]
        chosen = self.either(op, lambda side, _: [self.memref(ends[side][k], kind) for k in wanted])
        for k, result in zip(wanted, chosen, strict=True):
            self.memrefs[(op.results[k], kind)] = result
        return chosen[wanted.index(index)]

    def either(
        self, op: scf.IfOp, found: Callable[[int, Block], list[SSAValue]]
    ) -> Sequence[SSAValue]:
        """What `found` makes in the branch taken, which is chosen again in the reverse of its block.

        It is given the number of the branch, and its block, whose values it may ask for.
        """
        condition = self.get(op.cond)
        regions: list[Region] = []
        for side, region in enumerate(op.regions):
            before = dict(self.values), dict(self.memrefs), dict(self.copies)
            inner = Block()
            source = region.block if region.blocks else Block()
            self.begin_prologue(source, inner)
            values = found(side, source)
            self.close(source)
            inner.add_op(scf.YieldOp(*values))
            regions.append(Region(inner))
            self.values = kept_outside(inner, before[0], self.values)
            self.memrefs = kept_outside(inner, before[1], self.memrefs)
            self.copies = kept_outside(inner, before[2], self.copies)
        types = {tuple(r.block.last_op.operand_types) for r in regions if r.block.last_op}
        if len(types) != 1:
            raise AssertionError("the branches of an if yield values of different types")
        choice = scf.IfOp(condition, list(types.pop()), regions[0], regions[1])
        choice.location = op.location
        self.at_prologue(cast(Block, op.parent_block()), choice)
        return list(choice.results)

    def outlives_its_block(self, value: SSAValue) -> bool:
        """False for scratch memory of a loop's body: the reverse sweep has its shadow only."""
        return all(
            isinstance(root, BlockArgument)
            or value_block(root) is self.top
            or isinstance(root.owner, memref.AllocaOp)
            for root in self.alias.roots(value)
        )


def computed_again(op: Operation, get: Callable[[SSAValue], SSAValue]) -> Operation:
    """Pure code once more, on operands that `get` finds. Checks have passed and are not repeated."""
    match op:
        case array.IndexOp():
            again = op.clone({o: get(o) for o in op.operands})
            again.properties["unchecked"] = UnitAttr()
            return again
        case array.CheckedAddOp():
            return arith.AddiOp(get(op.lhs), get(op.rhs))
        case array.CheckedSubOp():
            return arith.SubiOp(get(op.lhs), get(op.rhs))
        case array.CheckedMulOp():
            return arith.MuliOp(get(op.lhs), get(op.rhs))
        case _:
            assert is_recomputable(op), f"the plan has no way to {op.name}"
            return op.clone({o: get(o) for o in op.operands})


def kept_outside(
    block: Block, before: dict[Key, SSAValue], now: dict[Key, SSAValue]
) -> dict[Key, SSAValue]:
    """What was known before, with what was made meanwhile outside of `block`: a shadow exists once."""
    return {k: v for k, v in now.items() if not is_inside(value_block(v), block)} | before


def permutation_order(permutation: Sequence[int]) -> int:
    """After how many applications the permutation is the identity."""
    current, order = list(permutation), 1
    while current != list(range(len(permutation))):
        current = [permutation[c] for c in current]
        order += 1
    return order


def is_inside(inner: Block, outer: Block) -> bool:
    """True when `inner` is `outer` or nested in it."""
    block: Block | None = inner
    while block is not None and block is not outer:
        parent = block.parent_op()
        block = None if parent is None else parent.parent_block()
    return block is outer


def branch_refusal(op: Operation) -> CompileError:
    """What a branch computes cannot be had where the branch is chosen again."""
    return refusal(
        op,
        "a view chosen by this branch depends on a value that the gradient must save",
        "compute the bounds of the view before the branch",
    )


def scratch_refusal(op: array.AllocOp) -> CompileError:
    """What a branch allocates, where the branch is chosen again."""
    return refusal(
        op,
        "the gradient needs an array that only this branch allocates",
        "allocate it before the branch",
    )
