"""Let loops carry only arrays that are used, and that change places.

A reverse sweep carries primal arrays through its loops as the primal did, in case the adjoint reads
them. What it does not read keeps memory alive that is not needed, and is hard to see through.

Before::

    func.func @f(%n : index, %x : memref<?xf64>, %y : memref<?xf64>, %v : f64, %i : index) {
      %trips, %a, %b = array.loop %k to %n carry(%p = %x : memref<?xf64>, %q = %y : memref<?xf64>) do {
        memref.store %v, %x[%i] : memref<?xf64>
        array.yield %q, %p : memref<?xf64>, memref<?xf64>
      }
      func.return
    }

After::

    func.func @f(%n : index, %x : memref<?xf64>, %y : memref<?xf64>, %v : f64, %i : index) {
      %trips = array.loop %k to %n do {
        memref.store %v, %x[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

An array that every iteration hands on unchanged is used by its own name, and carried no more. Kept: whatever
else is used in the loop or after it, and the arrays that take its place.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import ops_of_kind
from .memory_effects import functions


@dataclass(frozen=True)
class DropCarried(ModulePass):
    """Remove unused memrefs that loops carry."""

    name = "drop-carried"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            loops = ops_of_kind(function, array.LoopOp)
            for loop in reversed(loops):
                name_unchanged(loop)
            for loop in reversed(loops):  # users first: inner and later loops
                unused = unused_slots(loop)
                if unused:
                    without(loop, unused)


def name_unchanged(loop: array.LoopOp) -> None:
    """Use the array itself where every iteration hands it on as it is."""
    blocks = [b for b in (loop.condition_block, loop.body.block) if b is not None]
    for k, initial in enumerate(loop.carried):
        if loop.yielded[k] is loop.body.block.args[1 + k]:
            for value in (*(b.args[1 + k] for b in blocks), loop.results_carried[k]):
                value.replace_all_uses_with(initial)


def unused_slots(loop: array.LoopOp) -> set[int]:
    """The slots whose memrefs are only handed on, to slots of which the same is true."""
    body = loop.body.block
    blocks = [body] if loop.condition_block is None else [loop.condition_block, body]
    unused = {k for k, result in enumerate(loop.results_carried) if result.first_use is None}
    while True:
        used = {
            k
            for k in unused
            for block in blocks
            for use in block.args[1 + k].uses
            if use.operation is not body.last_op or use.index not in unused
        }
        if not used:
            return unused
        unused -= used


def without(loop: array.LoopOp, slots: set[int]) -> None:
    """Put in the place of `loop` one that does not carry these."""
    kept = [k for k in range(len(loop.carried)) if k not in slots]
    yielded, last = loop.yielded, loop.body.block.last_op
    assert last is not None
    end = array.YieldOp([yielded[k] for k in kept])
    end.location = last.location
    Rewriter.replace_op(last, end)
    body, condition = loop.body.block, loop.condition_block
    for region in tuple(loop.regions):
        for block in tuple(region.blocks):
            for k in sorted(slots, reverse=True):
                block.erase_arg(block.args[1 + k])
            region.detach_block(block)
    narrower = array.LoopOp(loop.count, [loop.carried[k] for k in kept], body, condition)
    narrower.location = loop.location
    narrower.attributes.update(loop.attributes)
    results: list[SSAValue | None] = [None] * len(loop.results)
    results[0] = narrower.trips
    for k, result in zip(kept, narrower.results_carried, strict=True):
        results[1 + k] = result
    for old, fresh in zip(loop.results, results, strict=True):
        if fresh is not None:
            fresh.name_hint = old.name_hint
    Rewriter.replace_op(loop, narrower, results)
