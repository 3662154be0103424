"""Remove what nobody can observe: unused values, maps of no points, local memory that is never read.

Runs after the passes that make things unused; a store that is gone kills no value.

Before::

    func.func @f(%a : memref<?xf64>, %n : index, %i : index) -> f64 {
      %cell = memref.alloca() : memref<f64>
      %t = array.alloc(%n) : memref<?xf64>
      %x = memref.load %a[%i] : memref<?xf64>
      %y = memref.load %a[%n] : memref<?xf64>
      memref.store %y, %cell[] : memref<f64>
      array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      func.return %x : f64
    }

After::

    func.func @f(%a : memref<?xf64>, %n : index, %i : index) -> f64 {
      %x = memref.load %a[%i] : memref<?xf64>
      func.return %x : f64
    }

Kept: whatever may raise, writes the caller's memory, or may not end (`while`). Not handled: a store
that a later store overwrites before it is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator, NoMemoryEffect

from ...dialects import ad, array
from ..rules import is_whole_array, writes
from .memory_effects import functions


@dataclass(frozen=True)
class RemoveDead(ModulePass):
    """Erase unused ops and local memory that is only written."""

    name = "remove-dead"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            remove_in(function)


def remove_in(function: func.FuncOp) -> None:
    """Erase dead ops, users before what they use; erasing one makes its operands candidates."""
    work = list(function.body.walk())  # popped from its end: users first
    waiting = set(work)
    erased: set[Operation] = set()
    while work:
        op = work.pop()
        waiting.discard(op)
        for dead in () if op in erased else dead_with(op):
            inside = list(dead.walk())
            owners = {v.owner for inner in inside for v in inner.operands}
            erased.update(inside)
            Rewriter.erase_op(dead)
            for owner in owners - erased - waiting:
                if isinstance(owner, Operation):
                    waiting.add(owner)
                    work.append(owner)


def dead_with(op: Operation) -> list[Operation]:
    """What may go now because of `op`, in an order that erases users first."""
    if is_unused(op) and is_removable(op):
        return [op]
    if isinstance(op, array.MapOp) and any(array.constant_value(n) == 0 for n in op.extents):
        return [op]
    if isinstance(op, array.AllocOp | memref.AllocaOp):
        writers = writers_of_unread(op.memref)
        return [] if writers is None else [*reversed(writers), op]
    return []


def is_unused(op: Operation) -> bool:
    return all(r.first_use is None for r in op.results)


def is_removable(op: Operation) -> bool:
    """True when the op, its results unused, does nothing that anybody could observe."""
    if isinstance(op, scf.IfOp | array.LoopOp):
        if isinstance(op, array.LoopOp) and op.count is None:
            return False
        return all(
            inner.has_trait(IsTerminator) or is_removable(inner)
            for region in op.regions
            for block in region.blocks
            for inner in block.ops
        )
    if isinstance(op, array.IndexOp):
        return op.unchecked is not None
    if isinstance(op, memref.LoadOp | memref.AllocaOp | array.AllocOp | ad.TapeOp):
        return True
    return op.has_trait(NoMemoryEffect) and not op.has_trait(IsTerminator)


def writers_of_unread(allocated: SSAValue) -> list[Operation] | None:
    """The views and writes of local memory, a view before its users; None if anything else uses it."""
    users: dict[Operation, None] = {}
    work = [allocated]
    while work:
        value = work.pop()
        for use in value.uses:
            op = use.operation
            match op:
                case array.ViewOp() | array.CollapseOp():
                    work.append(op.result)
                case memref.StoreOp() if op.value is not value:
                    pass
                case _ if is_whole_array(op) and all(w.memref is value for w in writes(op)):
                    pass
                case _:
                    return None
            users[op] = None
    return list(users)
