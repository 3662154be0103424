"""Allocate a loop's scratch array once, before the loop.

Runs after the derivative only: an array of its own in each iteration is one whose values no other
iteration kills. What comes out allocates nothing inside loops.

Before::

    func.func @f(%n : index, %x : f64, %i : index) {
      %trips = array.loop %k to %n do {
        %t = array.alloc(%n) : memref<?xf64>
        memref.store %x, %t[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%n : index, %x : f64, %i : index) {
      %t = array.alloc(%n) : memref<?xf64>
      %trips = array.loop %k to %n do {
        memref.store %x, %t[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

Kept inside: arrays whose extents change, that are carried to the next iteration, or that stand in
an `scf.if` (they would be allocated without need).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from .hoist_invariants import is_from_outside
from .memory_effects import functions


@dataclass(frozen=True)
class HoistAllocs(ModulePass):
    """Move allocations with invariant extents out of loops."""

    name = "hoist-allocs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for loop in function.walk(region_first=True):
                if isinstance(loop, array.LoopOp):
                    hoist_from(loop)


def hoist_from(loop: array.LoopOp) -> None:
    """Move the arrays of the loop's own body before it (inner loops have gone first)."""
    block = loop.parent
    assert block is not None
    for op in tuple(loop.body.block.ops):
        if (
            isinstance(op, array.AllocOp)
            and all(is_from_outside(n, loop) for n in op.extents)
            and not may_outlive_iteration(op.memref, loop)
        ):
            op.detach()
            block.insert_op_before(op, loop)


def may_outlive_iteration(memref: SSAValue, loop: array.LoopOp) -> bool:
    """True when a later iteration, or the code after the loop, may read this iteration's array."""
    work, seen = [memref], {memref}
    while work:
        for use in work.pop().uses:
            op = use.operation
            if isinstance(op, array.YieldOp) and op.parent_op() is loop:
                return True
            names = names_for(op, use.index)
            work += [n for n in names if n not in seen]
            seen.update(names)
    return False


def names_for(op: Operation, operand: int) -> list[SSAValue]:
    """The values that may denote the memory of this operand of `op`."""
    match op:
        case array.ViewOp():
            return [op.result]
        case array.LoopOp():
            blocks = (b for region in op.regions for b in region.blocks)
            return [*op.results[1:], *(a for b in blocks for a in b.args[1:])]
        case scf.YieldOp():
            branch = op.parent_op()
            return [branch.results[operand]] if isinstance(branch, scf.IfOp) else []
        case array.YieldOp():
            inner = op.parent_op()
            return list(inner.results[1:]) if isinstance(inner, array.LoopOp) else []
        case _:
            return []
