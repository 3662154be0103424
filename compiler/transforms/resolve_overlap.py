"""Choose how an assignment reads all of its right side before it stores: in place, or through a temporary.

The frontend writes NumPy's meaning down, a map that `reads_first`, and decides nothing: while it builds a
loop it cannot know what the loop carries. Here the analyses see the whole function. Runs before
fuse-elementwise, which then finds ordinary maps.

Before::

    func.func @f(%n : index, %u : memref<?xf64>, %v : memref<?xf64>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %low = array.view %u[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
      %up = array.view %u[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%n) ins(%low : memref<?xf64, strided<[1]>>) outs(%v : memref<?xf64>)
          kinds ["store"] attributes {reads_first} {
      ^bb0(%x : f64):
        array.yield %x : f64
      }
      array.map(%n) ins(%low : memref<?xf64, strided<[1]>>) outs(%up : memref<?xf64, strided<[1]>>)
          kinds ["store"] attributes {reads_first} {
      ^bb1(%y : f64):
        array.yield %y : f64
      }
      func.return
    }

After::

    func.func @f(%n : index, %u : memref<?xf64>, %v : memref<?xf64>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %low = array.view %u[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
      %up = array.view %u[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%n) ins(%low : memref<?xf64, strided<[1]>>) outs(%v : memref<?xf64>) kinds ["store"] {
      ^bb0(%x : f64):
        array.yield %x : f64
      }
      %temporary = array.alloc(%n) : memref<?xf64>
      array.map(%n) ins(%low : memref<?xf64, strided<[1]>>) outs(%temporary : memref<?xf64>) kinds ["store"] {
      ^bb1(%y : f64):
        array.yield %y : f64
      }
      array.map(%n) ins(%temporary : memref<?xf64>) outs(%up : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb2(%e : f64):
        array.yield %e : f64
      }
      func.return
    }

In place where `analysis.in_place` proves that no point reads what another writes; where it does not, the
temporary is laid out as the destination is.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ...dialects.array import READS_FIRST
from ...dialects.within import ops_of_kind
from ..analysis.in_place import InPlace
from ..rules.builders import transfer
from .memory_effects import functions


@dataclass(frozen=True)
class ResolveOverlap(ModulePass):
    """Let maps that read before they write write in place, or to a temporary that is copied."""

    name = "resolve-overlap"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        resolve_all(op)


def resolve_all(module: ModuleOp) -> None:
    """The pass, for those who need ordinary maps: derivatives and code of dumps of an early stage."""
    for function in functions(module):
        resolve_in(function)


def resolve_in(function: func.FuncOp) -> None:
    maps = [m for m in ops_of_kind(function, array.MapOp) if READS_FIRST in m.attributes]
    if not maps:
        return
    in_place = InPlace(function)
    for one in maps:
        del one.attributes[READS_FIRST]
        if not in_place.allows(one, one):
            write_to_temporary(one)


def write_to_temporary(op: array.MapOp) -> None:
    """Let the map fill a fresh array, from which its one output is copied."""
    (out,) = op.outs
    made, temporary = temporary_like(out, tuple(op.extents))
    op.operands[op.operands.index(out, len(op.extents) + len(op.ins))] = temporary
    copied = transfer(temporary, out, tuple(op.extents))
    copied.body.block.args[0].name_hint = temporary.name_hint
    for fresh in (*made, *copied.walk()):
        fresh.location = op.location
    Rewriter.insert_op(made, InsertPoint.before(op))
    Rewriter.insert_op(copied, InsertPoint.after(op))


def temporary_like(
    out: SSAValue, extents: tuple[SSAValue, ...]
) -> tuple[list[Operation], SSAValue]:
    """A fresh array over the extents, whose fastest axis is that of `out`: the first one, or the last."""
    assert isinstance(out.type, MemRefType)
    strides = array.strides_of(out.type)
    if len(strides) < 2 or strides[0] != 1 or strides[-1] in (0, 1):
        alloc = array.AllocOp(extents, out.type.element_type)
        alloc.memref.name_hint = "temporary"
        return [alloc], alloc.memref
    rank = len(extents)
    alloc = array.AllocOp(extents[::-1], out.type.element_type)
    zero, one = (arith.ConstantOp(IntegerAttr.from_index_int_value(n)) for n in (0, 1))
    view = array.ViewOp(
        alloc.memref,
        [zero.result] * rank,
        range(rank)[::-1],
        extents,
        [one.result] * rank,
    )
    alloc.memref.name_hint = view.result.name_hint = "temporary"
    return [alloc, zero, one, view], view.result
