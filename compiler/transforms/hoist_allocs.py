"""Allocate a loop's scratch array once, before the loop.

Runs after the derivative only: an array of its own in each iteration is one whose values no other
iteration kills. What comes out allocates nothing inside loops.

Before::

    func.func @f(%a : memref<?xf64>, %steps : index, %x : f64, %i : index) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %a, %c0 : memref<?xf64>
      %trips = array.loop %k to %steps do {
        %t = array.alloc(%n) : memref<?xf64>
        memref.store %x, %t[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%a : memref<?xf64>, %steps : index, %x : f64, %i : index) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %a, %c0 : memref<?xf64>
      %t = array.alloc(%n) : memref<?xf64>
      %trips = array.loop %k to %steps do {
        memref.store %x, %t[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

An extent that could be anything (`np.zeros(n)`) is 0 where the loop does not run at all: Python would
not have allocated then. Kept inside: arrays whose extents change, that are carried to the next
iteration, or that stand in an `scf.if` (they would be allocated without need).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ..analysis.alias import enclosing_loops
from ..analysis.independence import Independence
from .fold_constants import is_nonnegative
from .hoist_invariants import is_from_outside
from .memory_effects import functions


@dataclass(frozen=True)
class HoistAllocs(ModulePass):
    """Move allocations with invariant extents out of loops; `threads`: not out of those for threads."""

    name = "hoist-allocs"
    threads: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            kept = outermost_independent(function) if self.threads else set()
            for loop in function.walk(region_first=True):
                if isinstance(loop, array.LoopOp) and loop not in kept:
                    hoist_from(loop)


def outermost_independent(function: func.FuncOp) -> set[Operation]:
    """The loops that threads may run, whose iterations each need memory of their own."""
    independence, found = Independence(function), set[Operation]()
    for loop in function.walk():
        if (
            isinstance(loop, array.LoopOp)
            and found.isdisjoint(enclosing_loops(loop))
            and independence.of(loop) is not None
        ):
            found.add(loop)
    return found


def hoist_from(loop: array.LoopOp) -> None:
    """Move the arrays of the loop's own body and condition before it (inner loops have gone first)."""
    block = loop.parent
    assert block is not None
    condition = loop.condition_block
    for op in (*(() if condition is None else condition.ops), *loop.body.block.ops):
        if (
            isinstance(op, array.AllocOp)
            and array.CLEARED not in op.attributes  # of each iteration
            and all(is_from_outside(n, loop) for n in op.extents)
            and not may_outlive_iteration(op.memref, loop)
        ):
            untame = [k for k, n in enumerate(op.extents) if not is_tame(n)]
            if untame and (loop.count is None or loop.condition_block is not None):
                continue
            op.detach()
            if untame:
                op.operands[untame[0]] = if_it_runs(loop, op.extents[untame[0]])
            block.insert_op_before(op, loop)
            if array.GROWABLE in op.attributes:
                for inner in loop.walk():  # another iteration has touched the elements
                    inner.attributes.pop(array.FRESH, None)


def is_tame(extent: SSAValue) -> bool:
    """True when the extent is surely not negative, and no larger than those of arrays that exist."""
    return is_nonnegative(extent) and is_bounded(extent)


def is_bounded(extent: SSAValue) -> bool:
    owner = extent.owner
    match owner:
        case arith.ConstantOp() | memref.DimOp():
            return True
        case arith.AddiOp() | arith.SubiOp():
            return is_bounded(owner.lhs) and array.constant_value(owner.rhs) is not None
        case arith.MinSIOp():
            return is_bounded(owner.lhs) or is_bounded(owner.rhs)
        case arith.MaxSIOp():
            return is_bounded(owner.lhs) and is_bounded(owner.rhs)
        case _:
            return False


def if_it_runs(loop: array.LoopOp, extent: SSAValue) -> SSAValue:
    """`extent`, or 0 where the loop has no iterations; computed before it."""
    block = loop.parent
    assert block is not None
    assert loop.count is not None
    none = arith.ConstantOp(IntegerAttr(0, IndexType()))
    runs = arith.CmpiOp(loop.count, none.result, "sgt")
    chosen = arith.SelectOp(runs.result, extent, none.result)
    for op in (none, runs, chosen):
        op.location = loop.location
        block.insert_op_before(op, loop)
    return chosen.result


def may_outlive_iteration(allocated: SSAValue, loop: array.LoopOp) -> bool:
    """True when a later iteration, or the code after the loop, may read this iteration's array."""
    work, seen = [allocated], {allocated}
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
        case array.ViewOp() | array.CollapseOp():
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
