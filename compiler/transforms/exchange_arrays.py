"""Exchange two arrays in place of copying one to the other at the end of an iteration.

`d[:] = np.minimum(d, d[:, k : k + 1] + d[k])` reads all of `d` for each element, so that its result is an
array of its own, which is then copied: a second pass over both. Where each iteration fills that array anew,
and nothing else uses it, the next iteration may take it for `d`, and `d` for it.

Before::

    func.func @f(%x : memref<?xf64>, %n : index, %m : index) {
      %d = array.alloc(%m) : memref<?xf64>
      %t = array.alloc(%m) : memref<?xf64>
      array.map(%m) ins(%x : memref<?xf64>) outs(%d : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      %trips = array.loop %k to %n do {
        array.map(%m) ins(%d : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
        ^bb0(%e : f64):
          %sum = arith.addf %e, %e : f64
          array.yield %sum : f64
        }
        array.map(%m) ins(%t : memref<?xf64>) outs(%d : memref<?xf64>) kinds ["store"] {
        ^bb0(%e : f64):
          array.yield %e : f64
        }
        array.yield
      }
      array.map(%m) ins(%d : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      func.return
    }

After::

    func.func @f(%x : memref<?xf64>, %n : index, %m : index) {
      %d = array.alloc(%m) : memref<?xf64>
      %t = array.alloc(%m) : memref<?xf64>
      array.map(%m) ins(%x : memref<?xf64>) outs(%d : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      %0, %d_1, %t_1 = array.loop %k to %n carry(%d_2 = %d : memref<?xf64>, %t_2 = %t : memref<?xf64>) do {
        array.map(%m) ins(%d_2 : memref<?xf64>) outs(%t_2 : memref<?xf64>) kinds ["store"] {
        ^bb0(%e_1 : f64):
          %sum = arith.addf %e_1, %e_1 : f64
          array.yield %sum : f64
        }
        array.yield %t_2, %d_2 : memref<?xf64>, memref<?xf64>
      }
      array.map(%m) ins(%d_1 : memref<?xf64>) outs(%x : memref<?xf64>) kinds ["store"] {
      ^bb0(%e_2 : f64):
        array.yield %e_2 : f64
      }
      func.return
    }

Kept: arrays that leave the function, or are handed on by a loop or a branch; views from before the loop that
are used in it or after it; copies behind which the iteration goes on. Runs once nothing allocates in loops:
both arrays are there before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..diagnostics import locate
from ..rules import accesses
from .hoist_checks import is_counted
from .memory_effects import functions

NAMING = (array.ViewOp, array.CollapseOp, memref.CastOp)
"""What gives elements of an array another name."""

USING = (*NAMING, array.MapOp, memref.LoadOp, memref.StoreOp, memref.DimOp)
"""What may be done with an array that is exchanged."""


@dataclass(frozen=True)
class ExchangeArrays(ModulePass):
    """Swap two arrays in place of copying one to the other at the end of an iteration."""

    name = "exchange-arrays"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for loop in list(ops_of_kind(function, array.LoopOp)):
                copied = copy_at_end(loop)
                if copied is not None:
                    (filled,), (kept,) = tuple(copied.ins), tuple(copied.outs)
                    Rewriter.erase_op(copied)
                    exchange(loop, kept, filled)


def copy_at_end(loop: array.LoopOp) -> array.MapOp | None:
    """The copy that ends each iteration, where arrays may be exchanged in its place."""
    if not may_carry(loop):
        return None
    for op in reversed(list(loop.body.block.ops)[:-1]):
        if isinstance(op, array.MapOp) and is_copy(op):
            return op if may_exchange(loop, op) else None
        if not names_only(op):
            return None
    return None


def may_carry(loop: array.LoopOp) -> bool:
    """Whether the iterations of a loop may hand arrays on."""
    special = {array.CLAIMED, array.EXCLUSIVE, array.OWN_BYTES} & loop.attributes.keys()
    return is_counted(loop) and not loop.carried and not special


def names_only(op: Operation) -> bool:
    """Whether an op has nothing to do with memory."""
    return not op.regions and not accesses(op) and not array.is_operation_that_may_raise(op)


def is_copy(op: array.MapOp) -> bool:
    arguments = tuple(op.body.block.args)
    return is_plain(op) and list(op.out_kinds) == ["store"] and tuple(op.yielded) == arguments


def is_plain(op: array.MapOp) -> bool:
    """Whether a map visits the points of its outputs, one after the other."""
    free = op.gathers is None and not op.window and not op.origin
    return free and array.READS_FIRST not in op.attributes


def may_exchange(loop: array.LoopOp, copy: array.MapOp) -> bool:
    (filled,), (kept,) = copy.ins, copy.outs
    if not all(is_whole(a.owner, loop, tuple(copy.extents)) for a in (filled, kept)):
        return False
    return filled.type == kept.type and is_filled(filled, copy) and is_only_used(kept, loop, copy)


def is_whole(made: Operation | Block, loop: array.LoopOp, extents: tuple[SSAValue, ...]) -> bool:
    """Whether it makes a whole array of these extents beside the loop."""
    if not isinstance(made, array.AllocOp) or made.parent is not loop.parent:
        return False
    if {array.GROWABLE, array.STACK} & made.attributes.keys():
        return False
    return tuple(made.extents) == extents


def is_filled(value: SSAValue, copy: array.MapOp) -> bool:
    """Whether a map fills the array just before the copy, and nothing else uses it."""
    others = [u for u in value.uses if not isinstance(u.operation, memref.DimOp)]
    fills = [u.operation for u in others if u.operation is not copy]
    if len(others) != 2 or len(fills) != 1:
        return False
    (fill,) = fills
    if not isinstance(fill, array.MapOp) or not is_plain(fill) or fill.parent is not copy.parent:
        return False
    stored = [k for k, o in enumerate(fill.outs) if o is value]
    if len(stored) != 1 or fill.out_kinds[stored[0]] != "store":
        return False
    if tuple(fill.extents) != tuple(copy.extents):
        return False
    between = fill.next_op
    while between is not None and between is not copy:
        if not names_only(between):
            return False
        between = between.next_op
    return between is copy


def is_only_used(value: SSAValue, loop: array.LoopOp, copy: array.MapOp) -> bool:
    """Whether all uses say which iteration's array they mean: by where they are, as their views are."""
    pending: list[tuple[SSAValue, bool | None]] = [(value, None)]
    while pending:
        name, inside = pending.pop()
        for use in name.uses:
            op = use.operation
            now = is_within(op, loop)
            if not isinstance(op, USING) or (op.parent is loop.parent) is now:
                return False
            if inside is not None and (now is not inside or not same_side(name, op, loop)):
                return False
            if isinstance(op, NAMING):
                pending += [(r, now) for r in op.results]
    return True


def same_side(name: SSAValue, user: Operation, loop: array.LoopOp) -> bool:
    """Whether a view and its user are both before the loop, both in it, or both after it."""
    view = name.owner
    assert isinstance(view, Operation)
    return is_within(user, loop) or view.is_before_in_block(loop) == user.is_before_in_block(loop)


def is_within(op: Operation, loop: array.LoopOp) -> bool:
    parent = op.parent_op()
    while parent is not None and parent is not loop:
        parent = parent.parent_op()
    return parent is loop


def exchange(loop: array.LoopOp, kept: SSAValue, filled: SSAValue) -> None:
    """Hand on both arrays, the one as the other."""
    body = loop.body.detach_block(0)
    arrays: Sequence[SSAValue] = (kept, filled)
    names = [body.insert_arg(a.type, k) for k, a in enumerate(arrays, start=1)]
    for a, name in zip(arrays, names, strict=True):
        name.name_hint = a.name_hint
    end = body.last_op
    assert end is not None
    Rewriter.erase_op(end)
    body.add_op(array.YieldOp([names[1], names[0]]))
    made = array.LoopOp(loop.count, arrays, body)
    made.attributes.update(loop.attributes)
    locate(made, loop.location)
    block = loop.parent
    assert block is not None
    block.insert_op_before(made, loop)
    loop.trips.replace_all_uses_with(made.trips)
    loop.detach()
    for a, name, after in zip(arrays, names, made.results[1:], strict=True):
        after.name_hint = a.name_hint
        for use in list(a.uses):
            if use.operation is made or use.operation is loop:
                continue
            if is_within(use.operation, made):
                use.operation.operands[use.index] = name
            elif made.is_before_in_block(use.operation):
                use.operation.operands[use.index] = after
    loop.erase()
