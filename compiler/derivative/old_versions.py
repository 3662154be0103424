"""The contents of whole arrays as they were when something read them, in the reverse sweep.

A copy that was saved, or one that the map that made them makes once more; views of the array become views
of the copy.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue

from ...dialects import array
from ..rules import Contents
from ..rules.builders import transfer
from ..rules.sweeps import PRIMAL
from .known import is_inside
from .map_values import MapValues
from .old_contents import OldContents
from .segments import value_block
from .sweeps import Primal
from .versions import Version, maker_of


class OldVersions:
    """The copies of one gradient function."""

    def __init__(self, primal: Primal) -> None:
        self.primal = primal
        self.prologues = primal.prologues

    def contents(self, read: Contents | BlockArgument, source: SSAValue) -> SSAValue:
        """A memref that holds what `read` read of `source`: the memory where it survives, else a copy."""
        answer = self.primal.plan.answers.get(read)
        if answer is not None:
            op = answer.access.op
            block = cast(Block, op.parent_block())
            rank = cast(MemRefType[Attribute], source.type).get_num_dims()
            extents = [self.primal.extent(source, axis, block) for axis in range(rank)]
            return OldContents(self.primal, block).view(answer, extents)
        version = self.primal.plan.versions.get(read)
        if version is not None:
            return self.rebuild_on(source, version)
        return self.primal.memref(source, PRIMAL)

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
            # As the array lies, the copy does not.
            rebuilt = self._in_c_order(owner, rebuilt, inner)
        view = owner.of(rebuilt, self.primal.get)
        view.location = owner.location
        return self.prologues.append(inner, view)

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
        """The contents of an array as they were: saved, or computed again by the map that made them."""
        known = self.primal.known
        found = known.copies.get(version)
        if found is None:
            save = self.primal.plan.save_of(version)
            if save is None:
                found = self._recompute(version)
            else:
                found = self.primal.slot(save, self.home_of(version))
            known.copies[version] = found
        return found

    def home_of(self, version: Version) -> Block:
        """The primal block in whose reverse the copy of a version is had."""
        save = self.primal.plan.save_of(version)
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
        values = MapValues(self.primal, op)
        element = values.get(op.yielded[position])
        values.append(array.YieldOp([element]))
        copy = array.AllocOp(values.extents, element.type)
        copy.location = op.location
        copy.memref.name_hint = f"{version.base.name_hint or 'array'}_again"
        self.prologues.append(block, copy)
        again = array.MapOp(values.extents, values.ins, [copy.memref], ["store"], values.body)
        again.location = op.location
        self.prologues.append(block, again)
        return copy.memref
