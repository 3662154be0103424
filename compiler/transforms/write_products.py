"""Write products where they are copied to: `c[...] = a @ b` needs no temporary.

Runs when maps are what they will be, so that a product which is fused into something else is left alone.

Before::

    func.func @f(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %c : memref<?x?xf64>, %n : index, %m : index) {
      %t = array.alloc(%n, %m) : memref<?x?xf64>
      array.matmul %a, %b into %t : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
      array.map(%n, %m) ins(%t : memref<?x?xf64>) outs(%c : memref<?x?xf64>) kinds ["store"] {
      ^bb0(%x : f64):
        array.yield %x : f64
      }
      func.return
    }

After::

    func.func @f(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %c : memref<?x?xf64>, %n : index, %m : index) {
      %t = array.alloc(%n, %m) : memref<?x?xf64>
      array.matmul %a, %b into %c : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
      func.return
    }

Refused where the destination may share memory with a factor, where a factor may change before the
copy, and where the product is read again.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.affine import equal_numbers
from ..analysis.alias import AliasAnalysis
from ..rules import writes


@dataclass(frozen=True)
class WriteProducts(ModulePass):
    """Write each product that is only copied to the destination of the copy."""

    name = "write-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in ops_of_kind(op, func.FuncOp):
            found = [(m, copy) for m in products(function) if (copy := only_copy(m)) is not None]
            alias = AliasAnalysis(function) if found else None
            for product, copy in found:
                if alias is not None and may_move(product, copy, alias):
                    write_at(product, copy)


def products(function: func.FuncOp) -> list[array.MatmulOp]:
    return [o for o in ops_of_kind(function, array.MatmulOp) if not o.accumulate]


def only_copy(product: array.MatmulOp) -> array.MapOp | None:
    """The map that copies all of the product, where nothing else uses it."""
    seen = product.c
    view = seen.owner if isinstance(seen.owner, array.ViewOp) else None
    alloc = (seen if view is None else view.source).owner
    if not isinstance(alloc, array.AllocOp):
        return None
    users = [u.operation for u in alloc.memref.uses] + (
        [] if view is None else [u.operation for u in seen.uses]
    )
    copies = [o for o in users if o is not product and o is not view]
    if len(copies) != 1 or len(users) != (2 if view is None else 3):
        return None
    (copy,) = copies
    return copy if isinstance(copy, array.MapOp) and is_copy(copy, alloc) else None


def is_copy(op: array.MapOp, alloc: array.AllocOp) -> bool:
    """True for a map that stores each element of the array to one place, and does nothing else."""
    return (
        tuple(op.ins) == (alloc.memref,)
        and op.out_kinds == ("store",)
        and op.outs[0] is not alloc.memref
        and op.yielded[0] is op.body.block.args[0]
        and all(equal_numbers(a, b) for a, b in zip(op.extents, alloc.extents, strict=True))
    )


def may_move(product: array.MatmulOp, copy: array.MapOp, alias: AliasAnalysis) -> bool:
    """True where the factors are at the copy what they are at the product, and lie elsewhere."""
    factors = (product.a, product.b)
    if product.parent_block() is not copy.parent_block():
        return False
    if any(alias.may_alias(copy.outs[0], f) for f in factors):
        return False
    between: Operation | None = product.next_op
    while between is not None and between is not copy:
        for op in between.walk():
            if any(alias.may_alias(w.memref, f) for w in writes(op) for f in factors):
                return False
        between = between.next_op
    return between is copy


def write_at(product: array.MatmulOp, copy: array.MapOp) -> None:
    """Put the product in the place of the copy."""
    block = copy.parent_block()
    assert block is not None
    into: SSAValue = copy.outs[0]
    view = product.c.owner
    if isinstance(view, array.ViewOp):
        again = view.of(into, lambda number: number)
        again.location = view.location
        again.result.name_hint = into.name_hint
        block.insert_op_before(again, copy)
        into = again.result
    moved = array.MatmulOp(product.a, product.b, into)
    moved.location = product.location
    block.insert_op_before(moved, copy)
    for op in (copy, product):
        op.detach()
        op.erase()
