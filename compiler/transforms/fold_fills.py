"""An array filled with zeros and then added to is stored to; what nobody reads is not stored.

Shadows of scratch arrays begin as zeros, are added to once, and are zeroed after they are read:
two sweeps over memory that say nothing. Runs after the derivative.

Before::

    !v = memref<?xf64>
    func.func @f(%n : index, %x : memref<?xf64>) {
      %a = array.alloc(%n) : memref<?xf64>
      array.map(%n) outs(%a : memref<?xf64>) kinds ["store"] {
        %zero = arith.constant 0.0 : f64
        array.yield %zero : f64
      }
      array.map(%n) ins(%x : memref<?xf64>) outs(%a : memref<?xf64>) kinds ["add"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      array.map(%n) ins(%a : memref<?xf64>) outs(%x, %a : !v, !v) kinds ["store", "store"] {
      ^bb0(%e : f64):
        array.yield %e, %e : f64, f64
      }
      func.return
    }

After::

    func.func @f(%n : index, %x : memref<?xf64>) {
      %a = array.alloc(%n) : memref<?xf64>
      array.map(%n) ins(%x : memref<?xf64>) outs(%a : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      array.map(%n) ins(%a : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      func.return
    }

Kept: arrays that a loop carries, that a branch or the function returns, or that are accessed under
a loop or branch.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array


@dataclass(frozen=True)
class FoldFills(ModulePass):
    """Turn fill-then-add into store, and drop a map's outputs that are never read."""

    name = "fold-fills"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for alloc in [o for o in op.walk() if isinstance(o, array.AllocOp)]:
            while users := accesses_of(alloc):
                if not drop_stores(alloc, users[-1]):
                    break
            if users and len(users) >= 2 and is_zero_fill(users[0], alloc):
                fold(alloc, users[0], users[1])


def accesses_of(alloc: array.AllocOp) -> list[Operation] | None:
    """The ops that access the array, in order; None where it is accessed elsewhere than in its block."""
    found: set[Operation] = set()
    pending: list[SSAValue] = [alloc.memref]
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            if isinstance(op, array.ViewOp | memref.CastOp):
                pending.append(op.results[0])
            elif isinstance(op, memref.DimOp):
                continue
            elif (
                op.parent is not alloc.parent or isinstance(op, array.LoopOp) or op.next_op is None
            ):
                return None
            else:
                found.add(op)
    block = alloc.parent
    assert block is not None
    return [op for op in block.ops if op in found] if found else []


def belongs(value: SSAValue, alloc: array.AllocOp) -> bool:
    while isinstance(owner := value.owner, array.ViewOp | memref.CastOp):
        value = owner.source
    return value is alloc.memref


def drop_stores(alloc: array.AllocOp, last: Operation) -> bool:
    """Drop what the last access stores to the array; False where it only reads."""
    if not isinstance(last, array.MapOp):
        return False
    kept = [i for i, out in enumerate(last.outs) if not belongs(out, alloc)]
    if len(kept) == len(last.outs):
        return False
    if kept:
        keep_outputs(last, kept)
    else:
        last.detach()
        last.erase()
    return True


def keep_outputs(op: array.MapOp, kept: list[int]) -> None:
    """Leave only these outputs of a map."""
    yielded = op.body.block.last_op
    assert isinstance(yielded, array.YieldOp)
    values = [op.yielded[i] for i in kept]
    outs, kinds = [op.outs[i] for i in kept], [op.out_kinds[i] for i in kept]
    last = array.YieldOp(values)
    last.location = yielded.location
    op.body.block.insert_op_before(last, yielded)
    yielded.detach()
    yielded.erase()
    body = op.detach_region(op.body)
    smaller = array.MapOp(op.extents, op.ins, outs, kinds, body)
    replace(op, smaller)


def replace(op: Operation, by: Operation) -> None:
    by.location = op.location
    block = op.parent
    assert block is not None
    block.insert_op_before(by, op)
    op.detach()
    op.erase()


def is_zero_fill(op: Operation, alloc: array.AllocOp) -> bool:
    """True when `op` sets the whole array to 0 and does nothing else."""
    if not isinstance(op, array.MapOp) or len(op.outs) != 1 or op.out_kinds != ("store",):
        return False
    value = op.yielded[0].owner
    return (
        op.outs[0] is alloc.memref
        and isinstance(value, arith.ConstantOp)
        and isinstance(value.value, FloatAttr)
        and value.value.value.data == 0.0
    )


def fold(alloc: array.AllocOp, fill: Operation, add: Operation) -> None:
    """Make the addition that follows the fill a store, where it covers the whole array once."""
    if not isinstance(add, array.MapOp) or any(belongs(m, alloc) for m in add.ins):
        return
    mine = [i for i, out in enumerate(add.outs) if belongs(out, alloc)]
    if len(mine) != 1 or add.outs[mine[0]] is not alloc.memref or add.out_kinds[mine[0]] != "add":
        return
    kinds = ["store" if i == mine[0] else k for i, k in enumerate(add.out_kinds)]
    body = add.detach_region(add.body)
    replace(add, array.MapOp(add.extents, add.ins, add.outs, kinds, body))
    fill.detach()
    fill.erase()
