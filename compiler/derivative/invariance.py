"""The loops around a value in which it is the same in every iteration.

A load reads one value in all iterations of a loop if its location does not depend on the loop's counter and
nothing in the loop overwrites it. What is computed from such values is one value, too. If it must be saved,
one place serves all iterations::

    array.loop %k to %m do {
      array.loop %i to %n do {
        %p = memref.load %c[%k]         // one value for each %k: not saved for each %i
        ...
      }
      memref.store %q, %c[%k]
    }
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.ir import BlockArgument, Operation, SSAValue

from ...dialects import array
from ..analysis.dependence import Dependence
from ..analysis.kills import Kills
from ..analysis.memory_ssa import walk_normal
from ..rules import Access, writes
from ..rules.descriptors import descriptor_values
from .segments import is_recomputable, value_block


class Invariance:
    """Answers for the scalars of one function."""

    def __init__(self, kills: Kills) -> None:
        self.alias = kills.alias
        self.dependence: Dependence = kills.dependence
        self._known: dict[tuple[SSAValue, array.LoopOp], bool] = {}
        self._writes: dict[array.LoopOp, list[Access]] = {}

    def loops(self, value: SSAValue) -> frozenset[array.LoopOp]:
        """The loops around a scalar in which it does not change."""
        around = self.dependence.loops(value_block(value))
        return frozenset(loop for loop in around if self.holds(value, loop))

    def holds(self, value: SSAValue, loop: array.LoopOp) -> bool:
        """True when the value is the same in every iteration of `loop`, inner counters being equal."""
        if loop not in self.dependence.loops(value_block(value)):
            return True
        key = (value, loop)
        if key not in self._known:
            self._known[key] = False
            self._known[key] = self._compute(value, loop)
        return self._known[key]

    def _compute(self, value: SSAValue, loop: array.LoopOp) -> bool:
        if isinstance(value, BlockArgument):
            inner = value.owner.parent_op()
            return isinstance(inner, array.LoopOp) and inner is not loop and value.index == 0
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, memref.LoadOp):
            numbers = (*op.indices, *descriptor_values(op.memref))
            return all(self.holds(n, loop) for n in numbers) and self._unwritten(op, loop)
        return is_recomputable(op) and all(self.holds(o, loop) for o in op.operands)

    def _unwritten(self, load: memref.LoadOp, loop: array.LoopOp) -> bool:
        """True when nothing in the loop, in any of its iterations, writes what the load reads."""
        if loop in self.dependence.loops(value_block(self.alias.base(load.memref))):
            return False
        read = Access(load, load.memref, "read")
        inner = self.dependence.loops(load.parent)
        levels = (None, *inner[inner.index(loop) :])
        return not any(
            self.alias.may_alias(write.memref, load.memref)
            and any(self._meet(read, write, level) for level in levels)
            for write in self._writes_in(loop)
        )

    def _meet(self, read: Access, write: Access, level: array.LoopOp | None) -> bool:
        if level is not None and level not in self.dependence.loops(write.op.parent):
            return False
        return self.dependence.may_meet(read, write, level) or self.dependence.may_meet(
            write, read, level
        )

    def _writes_in(self, loop: array.LoopOp) -> list[Access]:
        if loop not in self._writes:
            self._writes[loop] = [w for op in walk_normal(loop) for w in writes(op)]
        return self._writes[loop]
