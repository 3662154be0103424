"""The contents of whole arrays as they were when something read them, in the reverse sweep.

They are a copy: one that was saved, or one that the ops which made the contents fill again. Views of the
array become views of the copy.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ...dialects import array
from ..analysis.alias import if_blocks
from ..rules import Contents
from ..rules.builders import transfer
from ..rules.sweeps import PRIMAL
from .available_values import is_inside
from .iteration_before import IterationBefore
from .map_values import MapValues
from .mirrored_contents import Mirror
from .neighbours import Neighbour
from .old_contents import OldContents, common_type
from .overwritten import Answer, is_view
from .plan import ReadMirror, ReadNeighbour, ReadOld, Recompute, Reload, Save
from .refills import Refill
from .segments import value_block
from .sweeps import Primal
from .versions import Version


class OldVersions:
    """The copies of one gradient function."""

    def __init__(self, primal: Primal) -> None:
        self.primal = primal
        self.prologues = primal.prologues

    def contents(self, read: Contents | BlockArgument, source: SSAValue) -> SSAValue:
        """A memref that holds what `read` read of `source`: the memory where it survives, else a copy."""
        match self.primal.plan.how(read):
            case ReadOld(answer):
                op = answer.access.op
                block = cast(Block, op.parent_block())
                rank = cast(MemRefType[Attribute], source.type).get_num_dims()
                extents = [self.primal.extent(source, axis, block) for axis in range(rank)]
                return OldContents(self.primal, block).view(answer, extents)
            case Save() as save:
                return self.primal.slot(save, cast(Block, save.at.parent_block()))
            case Reload(copy=Version() as version):
                return self.rebuild_on(source, version)
            case _:
                return self.primal.memref(source, PRIMAL)

    def rebuild_on(self, source: SSAValue, version: Version) -> SSAValue:
        """The view `source` of an array, taken of a copy of the array's contents instead."""
        home, base = self.home_of(version), version.base
        return self._rebuilt(source, base, home, self.copy_of(version))

    def _rebuilt(self, source: SSAValue, base: SSAValue, home: Block, copy: SSAValue) -> SSAValue:
        """The view `source` of `base`, taken of a copy instead that the reverse of `home` has."""
        while isinstance(owner := source.owner, memref.CastOp):
            source = owner.source
        if source is base:
            return copy
        assert isinstance(owner, array.AnyView)
        made = value_block(source)
        inner = home if is_inside(home, made) else made
        views, key = self.primal.known.views, (source, copy, inner)
        if (known := views.get(key)) is not None:
            return known
        rebuilt = self._rebuilt(owner.source, base, home, copy)
        is_compact = array.is_contiguous(cast(MemRefType[Attribute], base.type))
        if isinstance(owner, array.CollapseOp) and not is_compact:
            # As the array lies, the copy does not.
            rebuilt = self._in_c_order(owner, rebuilt, inner)
        view = owner.of(rebuilt, self.primal.get)
        view.location = owner.location
        found = self.prologues.append(inner, view)
        if is_compact:  # else there may be a copy of what the copy held
            views[key] = found
        return found

    def _in_c_order(self, op: array.CollapseOp, source: SSAValue, block: Block) -> SSAValue:
        """A copy of `source`, which `op` collapses, without gaps."""
        rank = cast(MemRefType[Attribute], source.type).get_num_dims()
        extents = [self.primal.extent(op.source, axis, block) for axis in range(rank)]
        element = cast(MemRefType[Attribute], source.type).element_type
        copy = array.AllocOp(extents, element)
        for made in (copy, transfer(source, copy.memref, extents)):
            made.location = op.location
            self.prologues.append(block, made)
        return copy.memref

    def copy_of(self, version: Version) -> SSAValue:
        """The contents of an array as they were: saved, or made again by the ops that filled it."""
        known = self.primal.known
        found = known.copies.get(version)
        if found is None:
            match self.primal.plan.how(version):
                case Save() as save:
                    found = self.primal.slot(save, self.home_of(version))
                case ReadOld(answer):
                    found = self._put_together(answer)
                case ReadMirror(mirror):
                    found = self._mirrored(mirror)
                case ReadNeighbour(neighbour):
                    found = self._handed_on(version, neighbour)
                case _:
                    found = self._refilled(self._refill_of(version))
            known.copies[version] = found
            known.filled[version] = self.prologues.reverse_of(self.home_of(version))
        return found

    def home_of(self, version: Version) -> Block:
        """The primal block in whose reverse the copy of a version is had."""
        match self.primal.plan.how(version):
            case Save() as save:
                return cast(Block, save.at.parent_block())
            case ReadOld(answer):
                return cast(Block, answer.access.op.parent_block())
            case ReadMirror(mirror):
                return mirror.block
            case ReadNeighbour(neighbour):
                return neighbour.loop.body.block
            case _:
                return self._refill_of(version).block

    def _handed_on(self, version: Version, neighbour: Neighbour) -> SSAValue:
        """A variable with what it holds at the start of an iteration."""
        block, location = neighbour.loop.body.block, neighbour.loop.location
        counter = self.primal.get(neighbour.loop.induction)
        value = IterationBefore(self.primal, neighbour.loop, counter).handed_on(neighbour)
        cell = self.prologues.cell(value.type, location)
        cell.name_hint = f"{version.base.name_hint or 'variable'}_again"
        self.prologues.append(block, memref.StoreOp.get(value, cell, []))
        return cell

    def _mirrored(self, mirror: Mirror) -> SSAValue:
        """What was stored elsewhere, too."""
        block = mirror.block
        if mirror.loop is None or mirror.entry is None:
            found = self.primal.memref(mirror.target, PRIMAL)
            return self._element(found, [self.primal.get(i) for i in mirror.indices], block)
        return self._one_iteration_ago(mirror, mirror.loop, mirror.entry)

    def _element(self, found: SSAValue, places: list[SSAValue], block: Block) -> SSAValue:
        """One element as an array of rank 0; an array that has no subscripts as it is."""
        if not places:
            return found
        return self.prologues.append(block, array.ViewOp(found, places, [], [], []))

    def _one_iteration_ago(self, mirror: Mirror, loop: array.LoopOp, entry: Version) -> SSAValue:
        """What the iteration before has stored; in the first one, the contents before the loop."""
        block, induction = mirror.block, self.primal.get(loop.induction)
        one = self.prologues.index(1, block)
        before = self.prologues.append(block, arith.SubiOp(induction, one))
        numbers: dict[SSAValue, SSAValue] = {loop.induction: before}

        def number(value: SSAValue) -> SSAValue:
            """A number as the iteration before has computed it."""
            if value not in numbers:
                if is_inside(value_block(value), block):
                    op = cast(Operation, value.owner)
                    numbers[value] = self.primal.compute(op, block, number)
                else:
                    numbers[value] = self.primal.get(value)
            return numbers[value]

        def rebuilt(view: SSAValue) -> SSAValue:
            owner = view.owner
            if not is_inside(value_block(view), block):
                return self.primal.memref(view, PRIMAL)
            assert isinstance(owner, array.AnyView | memref.CastOp)
            source = rebuilt(owner.source)
            if isinstance(owner, array.AnyView):
                return self.prologues.append(block, owner.of(source, number))
            type_ = cast(MemRefType[Attribute], view.type)
            return self.prologues.append(block, memref.CastOp.get(source, type_))

        places = [number(i) for i in mirror.indices]
        ends = [self._element(rebuilt(mirror.target), places, block), self.copy_of(entry)]
        type_ = common_type([cast(MemRefType[Attribute], v.type) for v in ends])
        sides = [
            v if v.type == type_ else self.prologues.append(block, memref.CastOp.get(v, type_))
            for v in ends
        ]
        zero = self.prologues.index(0, block)
        later = self.prologues.append(block, arith.CmpiOp(induction, zero, "sgt"))
        regions = [[Block([scf.YieldOp(v)])] for v in sides]
        return self.prologues.append(block, scf.IfOp(later, [type_], regions[0], regions[1]))

    def _put_together(self, answer: Answer) -> SSAValue:
        """The contents of an array from the old contents of the stores that overwrote them."""
        base, op = answer.access.memref, answer.access.op
        block = cast(Block, op.parent_block())
        rank = cast(MemRefType[Attribute], base.type).get_num_dims()
        extents = [self.primal.extent(base, axis, block) for axis in range(rank)]
        old = OldContents(self.primal, block)
        return old.view(answer, extents) if is_view(answer) else old.mosaic(answer, extents)

    def _refill_of(self, version: Version) -> Refill:
        how = self.primal.plan.how(version)
        assert isinstance(how, Recompute)
        assert how.refill is not None, "the plan has no way to the contents of an array"
        return how.refill

    # Filling once more.

    def _refilled(self, refill: Refill) -> SSAValue:
        """An array of the reverse sweep with the contents that the ops make."""
        base, home = refill.base, refill.home
        type_ = cast(MemRefType[Attribute], base.type)
        like = refill.steps[-1].location
        if not isinstance(base.owner, memref.AllocaOp):
            extents = self._extents(base, home)
            alloc = array.AllocOp(extents, type_.element_type)
            alloc.location = like
            copy = self.prologues.append(home, alloc)
        else:
            extents = []
            copy = self.prologues.cell(type_.element_type, like)
        copy.name_hint = f"{base.name_hint or 'array'}_again"
        if refill.start is not None:
            start = transfer(self.copy_of(refill.start), copy, extents)
            start.location = like
            self.prologues.append(home, start)
        for step in refill.steps:
            self._clone(step, refill, copy)
        return copy

    def _extents(self, base: SSAValue, block: Block) -> list[SSAValue]:
        if isinstance(base.owner, array.AllocOp):
            return [self.primal.get(e) for e in base.owner.extents]
        rank = cast(MemRefType[Attribute], base.type).get_num_dims()
        return [self.primal.extent(base, axis, block) for axis in range(rank)]

    def _clone(self, op: Operation, refill: Refill, copy: SSAValue) -> None:
        """Do once more what `op` does to the array, in the prologue of the reverse of its block."""
        block = cast(Block, op.parent_block())

        def rebuilt(view: SSAValue) -> SSAValue:
            return self._rebuilt(view, refill.base, block, copy)

        match op:
            case array.MapOp():
                position = refill.output(op)
                values = MapValues(self.primal, op)
                values.append(array.YieldOp([values.get(op.yielded[position])]))
                out, kind = rebuilt(op.outs[position]), op.out_kinds[position]
                again = array.MapOp(values.extents, values.ins, [out], [kind], values.body)
            case memref.StoreOp():
                value, at = self.primal.get(op.value), [self.primal.get(i) for i in op.indices]
                again = memref.StoreOp.get(value, rebuilt(op.memref), at)
            case scf.IfOp():
                sides = [Block(), Block()]
                for side, source in zip(sides, if_blocks(op), strict=False):
                    self._clone_inside(op, refill, copy, source, side)
                for side in sides:
                    side.add_op(scf.YieldOp())
                again = scf.IfOp(self.primal.get(op.cond), [], [sides[0]], [sides[1]])
            case array.LoopOp():
                again = self._clone_loop(op, refill, copy)
            case _:
                raise AssertionError(f"{op.name} is not cloned")
        again.location = op.location
        self.prologues.append(block, again)

    def _clone_loop(self, op: array.LoopOp, refill: Refill, copy: SSAValue) -> array.LoopOp:
        """The iterations in the program's order: values are had by the counters alone."""
        body = Block(arg_types=[IndexType()])
        trips = self.primal.get(op.trips)
        outer = self.primal.induction.get(op)
        self.primal.induction[op] = body.args[0]
        body.args[0].name_hint = op.induction.name_hint
        self._clone_inside(op, refill, copy, op.body.block, body, {op.induction: body.args[0]})
        if outer is None:
            del self.primal.induction[op]
        else:
            self.primal.induction[op] = outer
        body.add_op(array.YieldOp([]))
        return array.LoopOp(trips, [], body)

    def _clone_inside(
        self,
        op: Operation,
        refill: Refill,
        copy: SSAValue,
        source: Block,
        target: Block,
        counters: dict[SSAValue, SSAValue] | None = None,
    ) -> None:
        """Clone what a block inside of `op` does to the array to the end of `target`."""
        known = self.primal.known.mark()
        for counter, again in (counters or {}).items():
            self.primal.known.values[counter] = again
        self.prologues.begin(source, target)
        for inner in refill.inside[source]:
            self._clone(inner, refill, copy)
        self.prologues.close(source)
        self.primal.known.leave(target, known)
