"""Primal values of a map's body, element by element, in a map of the reverse sweep.

A new map is made over the same points; whatever it asks for of the primal map's body becomes an
input (an element reloaded from memory, from a tape, or from a copy) or is computed again.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ...dialects import array
from ..rules.sweeps import PRIMAL
from .inversions import undone
from .old_contents import OldContents
from .plan import Invert, ReadOld, Reload, Save
from .segments import is_recomputable, value_block
from .sweeps import Primal


class MapValues:
    """The inputs and the body of a map under construction that needs values of `op`'s body."""

    def __init__(self, primal: Primal, op: array.MapOp) -> None:
        self.primal = primal
        self.op = op
        self.block = cast(Block, op.parent_block())
        self.location = op.location
        """Where the op is whose values or adjoint are being emitted."""
        self.body = Block()
        self.ins: list[SSAValue] = []
        self.extents = [primal.get(e) for e in op.extents]
        self.elements: dict[SSAValue, SSAValue] = {}

    def append(self, op: Operation) -> None:
        op.location = self.location
        self.body.add_op(op)

    def read(self, source: SSAValue) -> SSAValue:
        """One element of `source` at the current point."""
        self.ins.append(source)
        element = cast(MemRefType[Attribute], source.type).element_type
        return self.body.insert_arg(element, len(self.body.args))

    def get(self, value: SSAValue) -> SSAValue:
        """A primal value of the body, or one from outside that the body uses."""
        if value_block(value) is not self.op.body.block:
            return self.primal.get(value)
        found = self.elements.get(value)
        if found is None:
            found = self._again(value)
            found.name_hint = value.name_hint
            self.elements[value] = found
        return found

    def _again(self, value: SSAValue) -> SSAValue:
        primal, plan = self.primal, self.primal.plan
        match plan.how(value):
            case Save() as save:
                return self.read(primal.slot(save, self.block))
            case Reload(stored=array.MapOp() as op, output=output) if op is self.op:
                return self.read(primal.memref(op.outs[output], PRIMAL))
            case Invert(op):
                undo = undone(op, value, self.get(op.results[0]), self.get)
                self.append(undo)
                return undo.results[0]
            case ReadOld(answer):
                return self.read(OldContents(primal, self.block).view(answer, self.extents))
            case _:
                pass
        if isinstance(value, BlockArgument):
            return self.read(primal.contents(value, self.op.ins[value.index]))
        inner = value.owner
        assert isinstance(inner, Operation)
        assert is_recomputable(inner), value
        clone = inner.clone({o: self.get(o) for o in inner.operands})
        self.append(clone)
        return clone.results[0]
