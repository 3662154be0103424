"""Primal values as the reverse sweep sees them: free, reloaded, recomputed, rolled back, or from a tape.

Each is had again in the prologue of the reverse of its block (`prologues`), where it is first asked for.
Memrefs are found in `memrefs`, tapes in `saved_values`, contents of arrays in `old_versions` and
`old_contents`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from ...dialects import array
from ..analysis.alias import AliasAnalysis
from ..rules import Contents
from ..rules.builders import common_type
from ..rules.sweeps import PRIMAL
from .available_values import Known
from .forward_sweep import ForwardSweep
from .inversions import undone
from .memrefs import Memrefs
from .old_contents import OldContents
from .old_versions import OldVersions
from .plan import How, Invert, Plan, ReadOld, Reload, RollBack, Save
from .prologues import Prologues
from .rollback import Rolled
from .rolling import Rolling
from .saved_values import SavedValues, branch_refusal
from .segments import is_recomputable, value_block
from .versions import Version


class PrimalValues:
    """What the reverse sweep knows of the primal, block by block."""

    def __init__(
        self, plan: Plan, alias: AliasAnalysis, forward: ForwardSweep, lanes: int = 1
    ) -> None:
        self.plan = plan
        self.lanes = lanes
        self.alias = alias
        self.forward = forward
        self.top = plan.function.body.block
        self.prologues = Prologues(forward.entry)
        self.known = Known()
        self.induction: dict[array.LoopOp, SSAValue] = {}
        self.open_blocks: set[Block] = set()
        """Those whose reverse is being written."""
        self.rolling = Rolling(self, plan.rolled)
        self.saved = SavedValues(self)
        self.memrefs = Memrefs(self)
        self.versions = OldVersions(self)

    # Blocks.

    def open(self, primal: Block, reverse: Block) -> None:
        """Start the reverse of `primal` at the end of `reverse`: its prologue, and what was pushed there."""
        self.prologues.begin(primal, reverse)
        self.open_blocks.add(primal)
        self.saved.open(primal)
        self.memrefs.open(primal)
        self.rolling.open(primal)

    def close(self, primal: Block) -> None:
        self.open_blocks.discard(primal)
        self.prologues.close(primal)

    def is_open(self, block: Block) -> bool:
        return block in self.open_blocks

    @contextmanager
    def at_place(self, primal: Block, reverse: Block) -> Generator[None]:
        """For a while let the prologue of the reverse of `primal` be where `reverse` ends now.

        What is had there is forgotten afterwards: it comes too late for all that the prologue is asked for.
        """
        end, known = self.prologues.ends[primal], self.known.mark()
        self.prologues.begin(primal, reverse)
        yield
        self.prologues.close(primal)
        self.known.return_to(known)
        self.prologues.ends[primal] = end

    def either(
        self, op: scf.IfOp, found: Callable[[int, Block], list[SSAValue]]
    ) -> Sequence[SSAValue]:
        """What `found` makes in the branch taken, which is chosen again in the reverse of its block.

        It is given the number of the branch, and its block, whose values it may ask for.
        """
        condition = self.get(op.cond)
        regions, yields = list[Region](), list[list[SSAValue]]()
        for side, region in enumerate(op.regions):
            known, inner = self.known.mark(), Block()
            source = region.block if region.blocks else Block()
            self.prologues.begin(source, inner)
            yields.append(found(side, source))
            self.close(source)
            regions.append(Region(inner))
            self.known.leave(inner, known)
        types = [common_type_of(alike) for alike in zip(*yields, strict=True)]
        for region, values in zip(regions, yields, strict=True):
            end_branch(region.block, values, types)
        choice = scf.IfOp(condition, types, regions[0], regions[1])
        choice.location = op.location
        self.prologues.append(cast(Block, op.parent_block()), choice)
        return list(choice.results)

    # Scalars.

    def get(self, value: SSAValue) -> SSAValue:
        """A primal scalar, usable from the prologue of its own block on."""
        known = self.known.values.get(value)
        if known is not None:
            return known
        block = value_block(value)
        if block is self.top:
            return self.forward.values[value]
        if block not in self.prologues:
            raise AssertionError(f"{value} is asked for outside its block")
        found = self._again(value, block)
        found.name_hint = found.name_hint or value.name_hint
        self.known.values[value] = found
        return found

    def early(self, value: SSAValue, primal: Block) -> SSAValue:
        """A number that an inner block computes by pure code, computed in the prologue of `primal`.

        What the forward sweep did when it pushed a segment before the inner block.
        """
        home = value_block(value)
        if value in self.known.values or home is self.top or home in self.prologues:
            return self.get(value)
        op = value.owner
        assert isinstance(op, Operation)
        return self.compute(op, primal, lambda o: self.early(o, primal))

    def compute(self, op: Operation, block: Block, get: Callable[[SSAValue], SSAValue]) -> SSAValue:
        return self.prologues.append(block, computed_again(op, get))

    def _again(self, value: SSAValue, block: Block) -> SSAValue:
        how = self.plan.how(value)
        match how:
            case Save():
                return self.saved.scalar(how, block)
            case ReadOld(answer):
                return OldContents(self, block).scalar(answer)
            case Reload(stored=memref.StoreOp() as store):
                return self._load(self.memref(store.memref, PRIMAL), store.indices, block, store)
            case Invert(op):
                again = undone(op, value, self.get(op.results[0]), self.get)
                return self.prologues.append(block, again)
            case RollBack(rolled):
                return self._rolled(rolled, block)
            case _:
                return self._read_or_computed(value, how, block)

    def _read_or_computed(self, value: SSAValue, how: How, block: Block) -> SSAValue:
        op = value.owner
        assert isinstance(op, Operation), value
        match op:
            case memref.LoadOp():
                if isinstance(how, Reload) and how.copy is not None:
                    source = self.versions.rebuild_on(op.memref, how.copy)
                else:
                    source = self.memref(op.memref, PRIMAL)
                return self._load(source, op.indices, block, op)
            case memref.DimOp():
                axis = array.constant_value(op.index)
                assert axis is not None
                return self.extent(op.source, axis, block)
            case array.LoopOp():
                assert op.count is not None
                zero = self.prologues.index(0, block)
                return self.prologues.append(block, arith.MaxSIOp(self.get(op.count), zero))
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
        load = memref.LoadOp.get(source, [self.get(i) for i in indices])
        load.location = like.location
        return self.prologues.append(block, load)

    # Memory.

    def memref(self, value: SSAValue, kind: str) -> SSAValue:
        return self.memrefs.get(value, kind)

    def extent(self, source: SSAValue, axis: int, block: Block) -> SSAValue:
        return self.memrefs.extent(source, axis, block)

    def contents(self, read: Contents | BlockArgument, source: SSAValue) -> SSAValue:
        return self.versions.contents(read, source)

    def copy_of(self, version: Version) -> SSAValue:
        return self.versions.copy_of(version)

    def segment(self, save: Save) -> SSAValue:
        return self.saved.segment(save)

    def slot(self, save: Save, block: Block) -> SSAValue:
        return self.saved.slot(save, block)


def common_type_of(values: Sequence[SSAValue]) -> Attribute:
    """The type of what is one of these: memrefs of two types are cast to a third."""
    types = [v.type for v in values if isinstance(v.type, MemRefType)]
    return common_type(types) if types else values[0].type


def end_branch(block: Block, values: Sequence[SSAValue], types: Sequence[Attribute]) -> None:
    """Yield the values from a branch, in these types."""
    ends: list[SSAValue] = []
    for value, type_ in zip(values, types, strict=True):
        if value.type != type_:
            cast_ = memref.CastOp.get(value, cast(MemRefType[Attribute], type_))
            block.add_op(cast_)
            value = cast_.dest
        ends.append(value)
    block.add_op(scf.YieldOp(*ends))


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
