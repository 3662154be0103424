"""Let an array that an iteration makes, and saves as a whole, lie on the tape.

`un = u.copy()`, `rho = f.sum(0)`: an array of each iteration, of which the adjoint needs all, is filled, then
copied to its row of the tape. It may as well be filled there.

Before::

    func.func @f(%u : memref<?xf64>, %y : memref<?xf64>, %n : index, %m : index, %t : !ad.tape) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %saved = ad.push %t(%n, %m) : memref<?x?xf64>
      %trips = array.loop %k to %n do {
        %v = array.alloc(%m) : memref<?xf64>
        array.map(%m) ins(%u : memref<?xf64>) outs(%v : memref<?xf64>) kinds ["store"] {
        ^bb0(%e : f64):
          %square = arith.mulf %e, %e : f64
          array.yield %square : f64
        }
        %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1)
            : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
        array.map(%m) ins(%v : memref<?xf64>) outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
        ^bb0(%e : f64):
          array.yield %e : f64
        }
        array.map(%m) ins(%v : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
        ^bb0(%e : f64):
          array.yield %e : f64
        }
        array.yield
      }
      func.return
    }

After::

    !row = memref<?xf64, strided<[1]>>
    func.func @f(%u : memref<?xf64>, %y : memref<?xf64>, %n : index, %m : index, %t : !ad.tape) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %saved = ad.push %t(%n, %m) : memref<?x?xf64>
      %trips = array.loop %k to %n do {
        %row = array.view %saved[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
        array.map(%m) ins(%u : memref<?xf64>) outs(%row : !row) kinds ["store"] {
        ^bb0(%e : f64):
          %square = arith.mulf %e, %e : f64
          array.yield %square : f64
        }
        array.map(%m) ins(%row : !row) outs(%y : memref<?xf64>) kinds ["add"] {
        ^bb0(%e : f64):
          array.yield %e : f64
        }
        array.yield
      }
      func.return
    }

Legality: the save stands in the block that makes the array, and is the only store to the segment, which
nothing in that block reads before; behind it nothing stores to the array. Kept: arrays that change once they
are saved; arrays that are handed to calls or products, or carried by loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import ad, array
from ...dialects.within import ops_of_kind
from .memory_effects import functions
from .saved_steps import USING, Save, ancestor, behind, namings, rename, saver, writes


@dataclass(frozen=True)
class SaveInPlace(ModulePass):
    """Fill arrays where they are saved."""

    name = "save-in-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for push in list(ops_of_kind(function, ad.PushOp)):
                save = saver(push)
                if save is not None and may_lie_there(save, push):
                    lie_there(save)


def may_lie_there(save: Save, push: ad.PushOp) -> bool:
    """Whether a map copies all of an array of its own block to a row, for good."""
    source, row, copy = save.source, save.row.owner, save.map
    made = None if source is None else source.owner
    if not isinstance(made, array.AllocOp) or made.parent is not copy.parent:
        return False
    if {array.GROWABLE, array.STACK, array.CLEARED} & made.attributes.keys():
        return False
    if not isinstance(row, array.ViewOp) or row.source is not push.memref:
        return False
    assert isinstance(row.result.type, MemRefType)
    if array.strides_of(row.result.type)[-1:] != (1,):
        return False
    for op, _ in namings(push.memref):
        at = ancestor(op, copy.parent)
        if at is not None and at.is_before_in_block(copy):
            return False
    if tuple(made.extents) != tuple(copy.extents) or behind([row.result], made) is None:
        return False
    for op, name in namings(made.memref):
        at = ancestor(op, made.parent)
        if at is None or not isinstance(op, USING):
            return False
        if writes(op, name) and not at.is_before_in_block(copy):
            return False
    return True


def lie_there(save: Save) -> None:
    """Make the row where the array was made, and give it the array's names."""
    source, row = save.source, save.row
    made = None if source is None else source.owner
    assert isinstance(made, array.AllocOp)
    assert made.parent is not None
    for op in behind([row], made) or ():
        op.detach()
        made.parent.insert_op_before(op, made)
    save.drop()
    for op in (*reversed(rename(made.memref, row)), made):
        Rewriter.erase_op(op)
