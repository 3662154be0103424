"""Let the functions of steps sum over columns in the order of the nest that they are steps of.

The terms of such a sum may be added in any order: in vectors where they lie side by side, one by one where
they do not. In a nest whose matrices lie by columns (`transpose_matrices`, `transpose_columns`) they do; in
a step
of that nest, which is run again within a budget, they need not. So where the gradient that runs no step again
sums over columns of copies, the functions of steps copy these columns (`decided_sums`).

Before::

    func.func @f(%p : memref<?xf64>, %t : memref<?xf64, strided<[0]>>, %m : index) {
      array.map(%m) ins(%p : memref<?xf64>) outs(%t : memref<?xf64, strided<[0]>>) kinds ["add"]
          attributes {by_columns} {
      ^bb0(%x : f64):
        array.yield %x : f64
      }
      func.return
    }
    func.func private @step(%a : memref<?x?xf64>, %t : memref<?xf64, strided<[0]>>, %k : index)
        attributes {live = array<i64: 0>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %m = memref.dim %a, %c0 : memref<?x?xf64>
      %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1)
          : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      array.map(%m) ins(%p : memref<?xf64, strided<[?]>>) outs(%t : memref<?xf64, strided<[0]>>)
          kinds ["add"] {
      ^bb0(%x : f64):
        array.yield %x : f64
      }
      func.return
    }

After::

    func.func @f(%p: memref<?xf64>, %t: memref<?xf64, strided<[0]>>, %m: index) {
      array.map(%m) ins(%p : memref<?xf64>) outs(%t : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%x: f64):
        array.yield %x : f64
      }
      func.return
    }
    func.func private @step(%a: memref<?x?xf64>, %t: memref<?xf64, strided<[0]>>, %k: index)
        attributes {live = array<i64: 0>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %m = memref.dim %a, %c0 : memref<?x?xf64>
      %p = array.view %a[%c0, %k] dims [0] extents(%m) steps(%c1)
          : memref<?x?xf64> -> memref<?xf64, strided<[?]>>
      %p_packed = array.alloc(%m) : memref<?xf64>
      array.map(%m) ins(%p : memref<?xf64, strided<[?]>>) outs(%p_packed : memref<?xf64>) kinds ["store"] {
      ^bb0(%0: f64):
        array.yield %0 : f64
      }
      array.map(%m) ins(%p_packed : memref<?xf64>) outs(%t : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%x: f64):
        array.yield %x : f64
      }
      func.return
    }

Columns that the map stores to, beside the sum, are copied back behind it. The attribute `by_columns`, which
the two passes give the sums over columns of their copies, ends here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import AnyFloat, MemRefType, ModuleOp, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.alias import AliasAnalysis, enclosing_loops
from ..diagnostics import locate
from ..rules.builders import element_of, transfer
from .decided_sums import DecidedSums, runs_steps
from .hoist_allocs import hoist_from
from .memory_effects import functions

BY_COLUMNS = "by_columns"
"""The attribute of sums over columns of copies."""


@dataclass(frozen=True)
class PackColumns(ModulePass):
    """Pack columns that are summed over into contiguous memory."""

    name = "pack-columns"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        sums = DecidedSums()
        for one in ops_of_kind(op, array.MapOp):
            if one.attributes.pop(BY_COLUMNS, None) and not columns(one):
                sums.changed(one.location)
        if not sums.places:
            return
        for function in filter(runs_steps, functions(op)):
            for one in ops_of_kind(function, array.MapOp):
                if is_sum(one) and sums.may_change(function, one.location) and pack(function, one):
                    for loop in enclosing_loops(one):
                        hoist_from(loop)


def mark_sums(column: array.ViewOp) -> None:
    """Mark the sums over a column, which is about to be one of a copy."""
    for use in column.result.uses:
        if isinstance(use.operation, array.MapOp) and is_sum(use.operation):
            use.operation.attributes[BY_COLUMNS] = UnitAttr()


def is_sum(op: array.MapOp) -> bool:
    if len(op.extents) != 1 or op.gathers is not None:
        return False
    return any(
        kind in ("add", "mul") and stride_of(out) == 0 and isinstance(element_of(out), AnyFloat)
        for out, kind in zip(op.outs, op.out_kinds, strict=True)
    )


def pack(function: func.FuncOp, op: array.MapOp) -> bool:
    """Pack the columns of a map; whether it has any, and those that it stores to share no memory."""
    found = columns(op)
    stored = [c for c in found if c in op.outs]
    alias = AliasAnalysis(function)
    if not found or any(alias.may_alias(a, b) for a, b in combinations(stored, 2)):
        return False
    block, extents = op.parent_block(), [*op.extents]
    assert block is not None
    for column in found:
        made = array.AllocOp(extents, element_of(column))
        made.memref.name_hint = f"{column.name_hint or 'column'}_packed"
        before: list[Operation] = [made, transfer(column, made.memref, extents)]
        after = [transfer(made.memref, column, extents)] if column in stored else []
        for one in (*before, *after):
            locate(one, op.location)
        block.insert_ops_before(before, op)
        block.insert_ops_after(after, op)
        for index, operand in enumerate(op.operands):
            if operand is column:
                op.operands[index] = made.memref
    return True


def columns(op: array.MapOp) -> list[SSAValue]:
    return [v for v in dict.fromkeys((*op.ins, *op.outs)) if is_column(v)]


def is_column(value: SSAValue) -> bool:
    """Whether a map's operand is a part of a matrix whose elements need not lie side by side."""
    view = value.owner
    if not isinstance(view, array.ViewOp) or len(view.offsets) != 2 or stride_of(value) in (0, 1):
        return False
    assert isinstance(view.source.type, MemRefType)
    return lies_by_rows(view.source.type)


def stride_of(value: SSAValue) -> int | None:
    assert isinstance(value.type, MemRefType)
    return array.strides_of(value.type)[0]


def lies_by_rows(type_: MemRefType[Attribute]) -> bool:
    return array.is_contiguous(type_) or array.strides_of(type_)[-1] == 1
