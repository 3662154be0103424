"""Do all that is done to a row, or to a column, before anything is done to the next.

    for k in range(n):                            for j in range(n):
        q[k] = a[k] / norm(a[k])                      for k in range(j):
        for j in range(k + 1, n):                         r[k, j] = np.dot(q[k], a[j])
            r[k, j] = np.dot(q[k], a[j])                  a[j] -= q[k] * r[k, j]
            a[j] -= q[k] * r[k, j]                    q[j] = a[j] / norm(a[j])

A step that updates all later rows sends each of them through the caches once a step. And the reverse sweep
needs what a row was before each of its updates: of all rows, n * n / 2 of them. With the loops interchanged
one row's are enough, if they are made again (`derivative.replays`).

Before::

    func.func @f(%a : memref<?x?xf64>, %n : index, %m : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %trips = array.loop %k to %n do {
        %row = array.view %a[%k, %c0] dims [1] extents(%m) steps(%c1)
            : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
        array.map(%m) ins(%row : memref<?xf64, strided<[1]>>)
            outs(%row : memref<?xf64, strided<[1]>>) kinds ["store"] {
        ^bb0(%x : f64):
          %root = math.sqrt %x : f64
          array.yield %root : f64
        }
        %next = arith.addi %k, %c1 : index
        %count = arith.subi %n, %next : index
        %trips_1 = array.loop %j to %count do {
          %at = arith.addi %next, %j : index
          %later = array.view %a[%at, %c0] dims [1] extents(%m) steps(%c1)
              : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
          array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>)
              outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
          ^bb0(%x : f64, %y : f64):
            %z = arith.subf %y, %x : f64
            array.yield %z : f64
          }
          array.yield
        }
        array.yield
      }
      func.return
    }

After::

    func.func @f(%a: memref<?x?xf64>, %n: index, %m: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %0 = array.loop %j to %n do {
        %1 = array.loop %k to %j do {
          %row = array.view %a[%k, %c0] dims [1] extents(%m) steps(%c1)
              : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
          %later = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1)
              : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
          array.map(%m) ins(%row, %later : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>)
              outs(%later : memref<?xf64, strided<[1]>>) kinds ["store"] {
          ^bb0(%x: f64, %y: f64):
            %z = arith.subf %y, %x : f64
            array.yield %z : f64
          }
          array.yield
        }
        %row_1 = array.view %a[%j, %c0] dims [1] extents(%m) steps(%c1)
            : memref<?x?xf64> -> memref<?xf64, strided<[1]>>
        array.map(%m) ins(%row_1 : memref<?xf64, strided<[1]>>)
            outs(%row_1 : memref<?xf64, strided<[1]>>) kinds ["store"] {
        ^bb0(%x_1: f64):
          %root = math.sqrt %x_1 : f64
          array.yield %root : f64
        }
        array.yield
      }
      func.return
    }

`jam-maps` interchanges such loops for the caches, `analysis/loop_order` says when that may be: each element
sees the same operations in the same order. Runs on what a plan is made of, before the plan. Kept: what
`jam-maps` keeps, and nests that go row by row as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import every_op, ops_of_kind
from ..analysis.affine import Affine, Subscripts
from .jam_maps import MapNest, is_of_maps
from .memory_effects import functions
from .tile_registers import is_plain


@dataclass(frozen=True)
class FinishRows(ModulePass):
    """Interchange loops whose steps update all later rows, so that each row is finished before the next."""

    name = "finish-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for inner in [one for one in ops_of_kind(function, array.LoopOp) if is_of_maps(one)]:
                outer = inner.parent_op()
                if isinstance(outer, array.LoopOp) and is_plain(outer):
                    made = MapNest(function, outer, fastmath=False).interchanged()
                    if made is not None:
                        name_counters(made.outer)


def name_counters(nest: array.LoopOp) -> None:
    """Put a counter in the place of numbers equal to it, and drop those that nothing asks for now."""
    forms, inside = Subscripts(), every_op(nest)[1:]
    loops = [op for op in [nest, *inside] if isinstance(op, array.LoopOp)]
    counters = {Affine.of(loop.induction): loop.induction for loop in loops}
    for op in inside:
        if isinstance(op, arith.AddiOp | arith.SubiOp) and op.result.type == IndexType():
            counter = counters.get(forms.affine(op.result))
            if counter is not None:
                op.result.replace_all_uses_with(counter)
    before, op = list[Operation](), nest.prev_op
    while op is not None and is_number(op):
        before, op = [op, *before], op.prev_op
    for op in reversed([*before, *filter(is_number, inside)]):
        if all(result.first_use is None for result in op.results):
            Rewriter.erase_op(op)


def is_number(op: Operation) -> bool:
    return op.name.startswith("arith.") or isinstance(op, array.IndexOp | memref.DimOp)
