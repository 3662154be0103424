"""Give memory of its own to a sum that a map adds to a row or a cell of an array, and to its elements, too.

`d += d[k]` reads a row for each of its points, so its adjoint adds to each element of the shadow, and to that
row. One vector loop cannot do both in one array: each is written to a strip first, and added from there. A
sum with memory of its own meets nobody: it stays in a register, or in a row, and is added to the shadow once,
behind the map. Then the map touches each element of the shadow once, so `store-first` and `fuse-elementwise`
take away the copy of the shadow that it reads.

Before::

    !row = memref<?xf64, strided<[1]>>
    !still = memref<?x?xf64, strided<[0, 1]>>
    func.func @f(%n : index, %m : index, %k : index, %v : memref<?x?xf64>, %s : memref<?x?xf64>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %row = array.view %s[%k, %c0] dims [-1, 1] extents(%n, %m) steps(%c0, %c1)
          : memref<?x?xf64> -> !still
      array.map(%n, %m) ins(%v : memref<?x?xf64>) outs(%s, %row : memref<?x?xf64>, !still)
          kinds ["add", "add"] {
      ^bb0(%x : f64):
        array.yield %x, %x : f64, f64
      }
      func.return
    }

After::

    !row = memref<?xf64, strided<[1]>>
    !still = memref<?x?xf64, strided<[0, 1]>>
    func.func @f(%n : index, %m : index, %k : index, %v : memref<?x?xf64>, %s : memref<?x?xf64>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %row = array.view %s[%k, %c0] dims [-1, 1] extents(%n, %m) steps(%c0, %c1)
          : memref<?x?xf64> -> !still
      %row_sum = array.alloc(%m) : memref<?xf64>
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      %2 = arith.constant -0.0 : f64
      array.map(%m) outs(%row_sum : memref<?xf64>) kinds ["store"] {
        array.yield %2 : f64
      }
      %3 = array.view %row_sum[%0] dims [-1, 0] extents(%n, %m) steps(%c0, %1)
          : memref<?xf64> -> !still
      array.map(%n, %m) ins(%v : memref<?x?xf64>) outs(%s, %3 : memref<?x?xf64>, !still)
          kinds ["add", "add"] {
      ^bb0(%x : f64):
        array.yield %x, %x : f64, f64
      }
      %row_1 = array.view %s[%k, %c0] dims [1] extents(%m) steps(%c1) : memref<?x?xf64> -> !row
      array.map(%m) ins(%row_sum : memref<?xf64>) outs(%row_1 : !row) kinds ["add"] {
      ^bb0(%y : f64):
        array.yield %y : f64
      }
      func.return
    }

Why it is the same: an element gets the same terms in another order, as the sums of adjoints may have it. The
sum begins with -0.0, which changes no term. Only adjoints add to one array at several views.

Kept: what meets no other output of its map; maps that read, or store to, the memory that they add to; maps
that gather; views that walk an axis in steps of nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import AnyFloat, MemRefType, ModuleOp, VectorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...dialects import array
from ..analysis.alias import AliasAnalysis
from ..rules.table import float_constant, index_constant
from .gather_adds import apart, may_scatter
from .memory_effects import functions


@dataclass(frozen=True)
class SeparateSums(ModulePass):
    """Let a map add to a temporary where it adds to one array in two ways."""

    name = "separate-sums"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            separate_in(function)


def separate_in(function: func.FuncOp) -> None:
    alias: AliasAnalysis | None = None
    for op in tuple(function.walk()):
        if isinstance(op, array.MapOp) and may_scatter(op):
            outputs = [k for k in range(len(op.outs)) if is_sum(op, k)]
            if outputs:
                alias = alias or AliasAnalysis(function)
                separate(op, outputs, alias)


def separate(op: array.MapOp, outputs: Sequence[int], alias: AliasAnalysis) -> None:
    """Give memory of its own to each of the sums that meets an output that does not have it."""
    left = dict(enumerate(op.outs))
    made: dict[int, SSAValue] = {}
    for k in outputs:
        out = left.pop(k)
        meeting = [j for j, other in left.items() if not apart(alias, out, other)]
        adds_only = all(op.out_kinds[j] == "add" for j in meeting)
        if meeting and adds_only and all(apart(alias, out, read) for read in op.ins):
            made[k] = sum_apart(op, out)
        else:
            left[k] = out
    if made:
        op.operands = [
            *op.extents,
            *op.ins,
            *(made.get(k, out) for k, out in enumerate(op.outs)),
        ]


# Sums.


def is_sum(op: array.MapOp, k: int) -> bool:
    """Whether an output adds many points to one element: its view stands still along an axis."""
    out = op.outs[k]
    type_, view = out.type, out.owner
    assert isinstance(type_, MemRefType)
    if op.out_kinds[k] != "add" or not isinstance(view, array.ViewOp):
        return False
    if not isinstance(type_.element_type, AnyFloat | VectorType) or -1 not in view.source_dims:
        return False
    strides = zip(array.strides_of(type_), view.source_dims, strict=True)
    return all(stride != 0 or d < 0 for stride, d in strides)


def sum_apart(op: array.MapOp, out: SSAValue) -> SSAValue:
    """Memory for the sum, -0.0 before the map and added to `out` behind it; the view of it to add to."""
    view = out.owner
    assert isinstance(view, array.ViewOp)
    assert isinstance(out.type, MemRefType)
    element = out.type.element_type
    walked = [r for r, d in enumerate(view.source_dims) if d >= 0]
    extents = [op.extents[r] for r in walked]
    before, behind = (Emitter(Builder(at), op) for at in around(op))
    sums = before.emit(
        array.AllocOp(extents, element) if walked else memref.AllocaOp.get(element, shape=[])
    )
    sums.name_hint = f"{out.name_hint or 'array'}_sum"
    none, one = (before.emit(index_constant(k)) for k in (0, 1))
    zero = before.emit(float_constant(-0.0, element))
    dims = [view.source_dims[r] for r in walked]
    steps = [view.steps[r] for r in walked]
    target = behind.emit(array.ViewOp(view.source, view.offsets, dims, extents, steps))
    target.name_hint = out.name_hint
    if walked:
        before.emit(array.MapOp(extents, [], [sums], ["store"], Block([array.YieldOp([zero])])))
        body = Block(arg_types=[element])
        body.add_op(array.YieldOp([body.args[0]]))
        behind.emit(array.MapOp(extents, [sums], [target], ["add"], body))
    else:
        before.emit(memref.StoreOp.get(zero, sums, []))
        old, sum_ = (behind.emit(memref.LoadOp.get(m, [])) for m in (target, sums))
        behind.emit(memref.StoreOp.get(behind.emit(arith.AddfOp(old, sum_)), target, []))
    places = [walked.index(r) if r in walked else -1 for r in range(len(op.extents))]
    still = array.ViewOp(
        sums,
        [none] * len(walked),
        places,
        op.extents,
        [view.steps[r] if place < 0 else one for r, place in enumerate(places)],
    )
    return before.emit(still)


def around(op: Operation) -> tuple[InsertPoint, InsertPoint]:
    return InsertPoint.before(op), InsertPoint.after(op)


@dataclass
class Emitter:
    """Puts ops where a map is, with its location."""

    builder: Builder
    like: Operation

    def emit(self, op: Operation) -> SSAValue:
        for one in op.walk():
            one.location = self.like.location
        self.builder.insert(op)
        return op.results[0] if op.results else op.operands[0]
