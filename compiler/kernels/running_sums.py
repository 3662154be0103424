"""Let the device add up what a loop takes of its sums, iteration by iteration.

`total += (u * u).sum()` in a loop is a sum, which kernels leave in a variable, and an addition, which the
host would do: it would fetch a number in each iteration, and wait for it. The addition is a map of one point
instead, so both variables may be the device's (`placement`), and the host fetches the total behind the loop.
Runs right before kernels are outlined. The order of the additions, and their bits, are as they were.

Before::

    func.func @f(%n : index, %m : index, %u : memref<?xf64>) -> f64 {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f64
      %total = memref.alloca() : memref<f64>
      memref.store %zero, %total[] : memref<f64>
      %trips = array.loop %k to %m do {
        %sum = memref.alloca() : memref<f64>
        %all = array.view %sum[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
        memref.store %zero, %sum[] : memref<f64>
        array.map(%n) ins(%u : memref<?xf64>) outs(%all : memref<?xf64, strided<[0]>>) kinds ["add"] {
        ^bb0(%x : f64):
          array.yield %x : f64
        }
        %old = memref.load %total[] : memref<f64>
        %one = memref.load %sum[] : memref<f64>
        %new = arith.addf %old, %one : f64
        memref.store %new, %total[] : memref<f64>
        array.yield
      }
      %r = memref.load %total[] : memref<f64>
      func.return %r : f64
    }

After::

    func.func @f(%n : index, %m : index, %u : memref<?xf64>) -> f64 {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f64
      %total = memref.alloca() : memref<f64>
      memref.store %zero, %total[] : memref<f64>
      %sum = memref.alloca() : memref<f64>
      %trips = array.loop %k to %m do {
        %all = array.view %sum[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
        memref.store %zero, %sum[] : memref<f64>
        array.map(%n) ins(%u : memref<?xf64>) outs(%all : memref<?xf64, strided<[0]>>) kinds ["add"] {
        ^bb0(%x : f64):
          array.yield %x : f64
        }
        array.map() ins(%total, %sum : memref<f64>, memref<f64>) outs(%total : memref<f64>) kinds ["store"] {
        ^bb0(%old : f64, %one : f64):
          %new = arith.addf %old, %one : f64
          array.yield %new : f64
        }
        array.yield
      }
      %r = memref.load %total[] : memref<f64>
      func.return %r : f64
    }

Kept on the host: variables that something else in the loop reads (a condition, a subscript), and functions of
the C library, whose last bits differ there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import AnyFloat, MemRefType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import every_op, ops_of_kind
from ..analysis.carried_cells import cell_of, is_outside
from ..rules import accesses
from .placement import combines, is_left_to_maps

EXACT = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp, arith.ConstantOp)
"""What a device computes to the same bits."""


@dataclass(frozen=True)
class RunningSums(ModulePass):
    """Replace additions of sums in a loop by maps of one point, which a device runs."""

    name = "running-sums"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.ops if isinstance(f, func.FuncOp)]:
            for loop in ops_of_kind(function, array.LoopOp):
                if loop.condition_block is None:
                    for store in [s for s in loop.body.block.ops if isinstance(s, memref.StoreOp)]:
                        keep_running(loop, store)


def keep_running(loop: array.LoopOp, store: memref.StoreOp) -> None:
    """Have a kernel do what the host does for a store, if a sum of the loop goes into it alone."""
    total = cell_of(store.memref)
    if total is None or not is_outside(total, loop) or not is_float(total):
        return
    steps = steps_to(store, loop.body.block)
    if steps is None:
        return
    loads = [op for op in steps if isinstance(op, memref.LoadOp)]
    cells = dict.fromkeys(cell_of(load.memref) for load in loads)
    inside = touched_in(loop)
    own: set[Operation] = {*steps, store}
    if not all(op in own for op in inside.get(total, ())):
        return
    sums = [cell for cell in cells if cell is not None and cell is not total]
    if len(sums) + (total in cells) < len(cells) or not sums or not all(map(is_float, sums)):
        return
    for cell in sums:
        others = [op for op in inside[cell] if op not in own]
        left_to_maps = any(combines(op, cell) for op in others)
        if (
            not left_to_maps
            or not is_left_to_maps(others, loop)
            or not is_still(cell, loads, store)
        ):
            return
    for cell in sums:
        if isinstance(cell.owner, Operation) and cell.owner.parent is loop.body.block:
            cell.owner.detach()
            block = loop.parent
            assert block is not None
            block.insert_op_before(cell.owner, loop)
    write(store, steps, loads)


def is_float(cell: SSAValue) -> bool:
    return isinstance(cell.type, MemRefType) and isinstance(cell.type.element_type, AnyFloat)


def steps_to(store: memref.StoreOp, block: Block) -> list[Operation] | None:
    """What computes the stored number in the block, from loads of variables on, and nothing else uses."""
    found: set[Operation] = set()
    pending: list[SSAValue] = [store.value]
    while pending:
        op = pending.pop().owner
        if isinstance(op, Block) or op.parent is not block or op in found:
            continue
        is_load = isinstance(op, memref.LoadOp) and cell_of(op.memref) is not None
        if not is_load and not isinstance(op, EXACT):
            return None
        found.add(op)
        pending += [] if is_load else op.operands
    alone = all(use.operation in {*found, store} for op in found for use in op.results[0].uses)
    return [op for op in block.ops if op in found] if alone and found else None


def touched_in(loop: array.LoopOp) -> dict[SSAValue, list[Operation]]:
    """What touches each variable in a loop."""
    found: dict[SSAValue, list[Operation]] = {}
    for op in every_op(loop)[1:]:
        for cell in dict.fromkeys(cell_of(one.memref) for one in accesses(op)):
            if cell is not None:
                found.setdefault(cell, []).append(op)
    return found


def is_still(cell: SSAValue, loads: Sequence[memref.LoadOp], store: memref.StoreOp) -> bool:
    """Whether nothing writes to the variable from where it is loaded to the store."""
    mine = [load for load in loads if cell_of(load.memref) is cell]
    op: Operation | None = mine[0]
    while op is not None and op is not store:
        inner = [op, *every_op(op)[1:]] if op.regions else [op]
        if any(
            one.kind == "write" and cell_of(one.memref) is cell
            for o in inner
            for one in accesses(o)
        ):
            return False
        op = op.next_op
    return True


def write(
    store: memref.StoreOp, steps: Sequence[Operation], loads: Sequence[memref.LoadOp]
) -> None:
    """The map in the store's place."""
    body = Block(arg_types=[load.res.type for load in loads])
    here: dict[SSAValue, SSAValue] = {}
    for argument, load in zip(body.args, loads, strict=True):
        argument.name_hint = load.res.name_hint
        here[load.res] = argument
    for op in steps:
        if not isinstance(op, memref.LoadOp):
            body.add_op(op.clone(here))
    end = array.YieldOp([here.get(store.value, store.value)])
    body.add_op(end)
    made = array.MapOp([], [load.memref for load in loads], [store.memref], ["store"], body)
    made.location = end.location = store.location
    Rewriter.replace_op(store, made, [])
    for op in reversed(steps):
        Rewriter.erase_op(op)
