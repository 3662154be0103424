"""Give each product, minimum and maximum a map of its own: their derivatives are of maps with one output.

Runs before a derivative is taken. A gradient function has maps with several outputs, as a map that saves
what it reads stores that, too.

Before::

    func.func @f(%n : index, %x : memref<?xf64>, %m : memref<?xf64, strided<[0]>>, %s : memref<?xf64>) {
      array.map(%n) ins(%x : memref<?xf64>)
          outs(%m, %s : memref<?xf64, strided<[0]>>, memref<?xf64>) kinds ["max", "store"] {
      ^bb0(%a : f64):
        array.yield %a, %a : f64, f64
      }
      func.return
    }

After::

    func.func @f(%n : index, %x : memref<?xf64>, %m : memref<?xf64, strided<[0]>>, %s : memref<?xf64>) {
      array.map(%n) ins(%x : memref<?xf64>) outs(%m : memref<?xf64, strided<[0]>>) kinds ["max"] {
      ^bb0(%a : f64):
        array.yield %a : f64
      }
      array.map(%n) ins(%x : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"] {
      ^bb1(%b : f64):
        array.yield %b : f64
      }
      func.return
    }

Left alone where outputs may share memory, or where several of the maps would write what all of them read.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ...dialects.within import ops_of_kind
from .map_outputs import with_outputs
from .memory_effects import MemoryEffects, functions


@dataclass(frozen=True)
class SplitMaps(ModulePass):
    """Split each product, minimum and maximum into a map of its own."""

    name = "split-maps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            maps = [m for m in ops_of_kind(function, array.MapOp) if combines(m)]
            effects = MemoryEffects(function) if maps else None
            for one in maps:
                if effects is not None and (parts := parts_of(one, effects)):
                    split(one, parts)


def combines(op: array.MapOp) -> bool:
    """Whether one of several outputs is a product, a minimum or a maximum."""
    return len(op.outs) > 1 and not {*op.out_kinds} <= {"store", "add"}


def parts_of(op: array.MapOp, effects: MemoryEffects) -> list[list[int]]:
    """The outputs of each map to be, in order; none where that is not the same."""
    places = range(len(op.outs))
    parts = [[k] for k in places if op.out_kinds[k] not in ("store", "add")]
    sums = [k for k in places if op.out_kinds[k] in ("store", "add")]
    parts += [sums] if sums else []
    written = [{r for k in part for r in effects.roots(op.outs[k])} for part in parts]
    if sum(map(len, written)) > len(set[object]().union(*written)):
        return []
    read = {r for memref in op.ins for r in effects.roots(memref)}
    last = [part for part, roots in zip(parts, written, strict=True) if roots & read]
    return [part for part in parts if part not in last] + last if len(last) < 2 else []


def split(op: array.MapOp, parts: list[list[int]]) -> None:
    for part in parts:
        one = op.clone()
        Rewriter.insert_op(one, InsertPoint.before(op))
        with_outputs(one, part)
    Rewriter.erase_op(op)
