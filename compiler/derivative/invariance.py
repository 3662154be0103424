"""The loops around a value in which it is the same in every iteration.

A load reads one value in all iterations of a loop if its location does not depend on the loop's counter and
nothing in the loop overwrites it. So does a map, at each of its points. What is computed from such values is
one value, too. If it must be saved, one place serves all iterations::

    array.loop %k to %m do {
      array.loop %i to %n do {
        %p = memref.load %c[%k]         // one value for each %k: not saved for each %i
        ...
      }
      memref.store %q, %c[%k]
    }
"""

from __future__ import annotations

from collections.abc import Sequence

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
    """Answers for the scalars of one function, and for those that its maps compute at a point."""

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
            if isinstance(inner, array.MapOp):
                return self._reads_one(inner, inner.ins[value.index], (), loop)
            return isinstance(inner, array.LoopOp) and inner is not loop and value.index == 0
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, memref.LoadOp):
            return self._reads_one(op, op.memref, op.indices, loop)
        return is_recomputable(op) and all(self.holds(o, loop) for o in op.operands)

    def _reads_one(
        self, op: Operation, source: SSAValue, indices: Sequence[SSAValue], loop: array.LoopOp
    ) -> bool:
        """True when what an op reads lies at one place, and nothing in any iteration writes there."""
        numbers = (*indices, *descriptor_values(source))
        if not all(self.holds(n, loop) for n in numbers):
            return False
        return self._unwritten(Access(op, source, "read"), loop)

    def _unwritten(self, read: Access, loop: array.LoopOp) -> bool:
        """True when nothing in the loop, in any of its iterations, writes what is read."""
        if loop in self.dependence.loops(value_block(self.alias.base(read.memref))):
            return False
        inner = self.dependence.loops(read.op.parent)
        levels = (None, *inner[inner.index(loop) :])
        return not any(
            self.alias.may_alias(write.memref, read.memref)
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
