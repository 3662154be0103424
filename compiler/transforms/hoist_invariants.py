"""Compute what does not change before the loop: extents, views, index arithmetic, scalars.

Runs before the derivative: the reverse sweep then reads a value that is there, once, instead of
recomputing it in every iteration; and before codegen, which asks what is invariant.

Before::

    func.func @f(%a : memref<?x?xf64>, %n : index, %x : f64) {
      %c1 = arith.constant 1 : index
      %trips = array.loop %i to %n do {
        %m = arith.addi %n, %c1 : index
        memref.store %x, %a[%i, %m] : memref<?x?xf64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%a : memref<?x?xf64>, %n : index, %x : f64) {
      %c1 = arith.constant 1 : index
      %m = arith.addi %n, %c1 : index
      %trips = array.loop %i to %n do {
        memref.store %x, %a[%i, %m] : memref<?x?xf64>
        array.yield
      }
      func.return
    }

So do checks that the entry has made (`array.ENTRY_EQUAL`), which never raise: what they compare is equal in
the blocks around the loop as well, and a loop without exits may be reordered. Of one that holds in iterations
alone (`array.IN_ITERATIONS`) the same is asked where the loop has any.

Kept inside: loads, anything that may raise or trap (the loop may not run at all), and what stands
in an `scf.if`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator, NoMemoryEffect

from ...dialects import array
from .memory_effects import functions

TRAPS = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
)
"""Ops that must not run where the program would not have run them."""


@dataclass(frozen=True)
class HoistInvariants(ModulePass):
    """Move pure ops with operands from outside out of a loop; `divisions`: also those by known numbers.

    Where plans are made, these stay: saved values have the extents of the loops that they are saved in.
    """

    name = "hoist-invariants"
    divisions: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for loop in function.walk(region_first=True):
                if isinstance(loop, array.LoopOp):
                    hoist_from(loop, divisions=self.divisions)


def hoist_from(loop: array.LoopOp, *, divisions: bool = False) -> None:
    """Move the invariant ops of the loop's own blocks before it (inner loops have gone first)."""
    block = loop.parent
    assert block is not None
    for region in loop.regions:
        for inside in region.blocks:
            for op in tuple(inside.ops):
                movable = is_movable(op) or (divisions and divides_by_number(op))
                if movable and all(is_from_outside(v, loop) for v in op.operands):
                    op.detach()
                    block.insert_op_before(op, loop)
                    if array.IN_ITERATIONS in op.attributes and loop.count is not None:
                        require_iterations(op, loop.count)


def require_iterations(check: Operation, count: SSAValue) -> None:
    """Let a check before a loop find nothing where the loop has no iteration."""
    assert isinstance(check, array.RaiseIfOp)
    zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
    runs = arith.CmpiOp(count, zero.result, "sgt")
    both = arith.AndIOp(check.condition, runs.result)
    for op in (zero, runs, both):
        op.location = check.location
    Rewriter.insert_op((zero, runs, both), InsertPoint.before(check))
    check.operands[0] = both.result


def is_movable(op: Operation) -> bool:
    if isinstance(op, array.RaiseIfOp):
        return op.message.data == array.ENTRY_EQUAL  # It never raises, wherever it stands.
    if op.regions or not is_movable_kind(type(op)):
        return False
    return not isinstance(op, array.IndexOp) or op.unchecked is not None


@cache
def is_movable_kind(kind: type[Operation]) -> bool:
    """The same of a class of ops, but for what the op itself says."""
    if kind.has_trait(IsTerminator) or issubclass(kind, TRAPS):
        return False
    return issubclass(kind, array.IndexOp) or kind.has_trait(NoMemoryEffect)


def divides_by_number(op: Operation) -> bool:
    """Whether the op divides, and cannot trap: its divisor is known, and above 0."""
    return isinstance(op, TRAPS) and (array.constant_value(op.operands[1]) or 0) > 0


def is_from_outside(value: SSAValue, loop: array.LoopOp) -> bool:
    """True when the value is defined outside of the loop's own blocks."""
    owner = value.owner
    home = owner if isinstance(owner, Block) else owner.parent
    return home is None or home.parent_op() is not loop
