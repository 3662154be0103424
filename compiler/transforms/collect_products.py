"""Collect the products of a loop's iterations, each with a vector, into one of matrices.

Before::

    func.func @f(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %k : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %trips = array.loop %i to %n do {
        %x = array.view %a[%i, %c0] dims [-1, 1] extents(%c1, %k) steps(%c0, %c1)
            : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
        %y = array.view %c[%i, %c0] dims [-1, 1] extents(%c1, %n) steps(%c0, %c1)
            : memref<?x?xf64> -> memref<1x?xf64, strided<[0, 1]>>
        array.matmul %x, %b into %y
            : memref<1x?xf64, strided<[0, 1]>>, memref<?x?xf64>, memref<1x?xf64, strided<[0, 1]>>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %k : index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %0 = arith.constant 0 : index
      %1 = arith.maxsi %n, %0 : index
      %2 = memref.dim %b, %0 : memref<?x?xf64>
      %3 = arith.constant 1 : index
      %4 = memref.dim %b, %3 : memref<?x?xf64>
      %x = array.view %a[%0, %0] dims [0, 1] extents(%1, %2) steps(%3, %3)
          : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
      %y = array.view %c[%0, %0] dims [0, 1] extents(%1, %4) steps(%3, %3)
          : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
      array.matmul %x, %b into %y
          : memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64>, memref<?x?xf64, strided<[?, 1]>>
      func.return
    }

What an adjoint adds to a weight is an outer product in each iteration, which goes over the whole matrix for
two operations an element. A block of iterations keeps its vectors in the rows of two small arrays, where they
are not the rows of an array already, and one product adds them all::

    for first in range(0, steps, 32):
        for s in range(min(32, steps - first)):
            ...                                            # makes g from x[first + s]
            kept[s] = g
        w_bar += kept[:length].T @ x[first : first + length]

The additions of an adjoint, and those within a product, come in any order (`analysis/additions`); all else
keeps its values. What iterations add to the same elements stays `in_order`, though, as if it were added one
by one: within a budget each iteration is a step of its own. What belongs to a product may run before a block,
or after it, where nothing that it passes touches the same memory: that is asked of the split loop itself
(`product_places`). Where the iterations' vectors differ in length (triangles, `analysis/slabs`), what a block
has in common is one product, and the rest, at the diagonal, stays in the loop. Nests of scalar code, or of
maps, that are such products are written as ones first (`raise_products`), and put back where that led to
nothing.

Kept: products in branches, loops that carry memrefs, or that may raise, and those over `prange`. Runs after
the last derivative, when nests are in the order in which their products stand out.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import Pure

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.affine import Subscripts
from ..analysis.alias import AliasAnalysis
from ..analysis.dependence import Dependence
from ..rules import rule_of
from .hoist_allocs import hoist_from, outermost_independent
from .hoist_checks import Before, is_counted
from .memory_effects import functions
from .merged_products import groups_of
from .product_blocks import Blocks
from .product_places import Place, Places
from .product_stacks import (
    OPERANDS,
    Common,
    Stack,
    erase,
    lies_in_array,
    product,
    products_in,
    stack_of,
    stacks_of,
)
from .raise_products import is_attached, nests_in, raised


@dataclass(frozen=True)
class CollectProducts(ModulePass):
    """Collect products of a loop's iterations into products of blocks of iterations."""

    name = "collect-products"
    fastmath: bool = False
    """The primal's additions may come in any order, too."""
    threads: bool = False
    """Iterations that threads may run are left alone."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            loops = [o for o in function.walk(region_first=True) if isinstance(o, array.LoopOp)]
            kept = self.kept(function)
            found = [collected(function, o, self.fastmath) for o in loops if o not in kept]
            if any(found):
                kept = self.kept(function)
                for loop in list(function.walk(region_first=True)):
                    if isinstance(loop, array.LoopOp) and loop not in kept:
                        hoist_from(loop)

    def kept(self, function: func.FuncOp) -> set[Operation]:
        return outermost_independent(function) if self.threads else set()


def collected(
    function: func.FuncOp, loop: array.LoopOp, fastmath: bool, *, merged: bool = True
) -> bool:
    """Collect what can be of the loop's products; whether anything was.

    `merged`: those of an iteration that add to one matrix are one.
    """
    if not is_attached(loop) or not may_be_collected(loop):
        return False
    if not products_in(loop) and not any(nests_in(loop)):
        return False
    backup = loop.clone()
    nests = raised(loop, Dependence(function, AliasAnalysis(function)), fastmath)
    changed = collected_whole(function, loop, merged)
    stacks = stacks_of(loop)
    if stacks and changed:
        drop(backup)
        backup = loop.clone()
    built = bool(stacks) and Blocks(function, loop, stacks).build(merged)
    if not built and (stacks or (nests and not changed)):
        replace(loop.parent_op() if stacks else loop, backup)
        return changed
    drop(backup)
    if changed or built:
        tidy(loop)
    return changed or built


def drop(loop: array.LoopOp) -> None:
    """Erase a copy: what it reads has one user fewer."""
    loop.erase(safe_erase=False)


def tidy(loop: array.LoopOp) -> None:
    """Remove the views that only products had, and the loop where it is left with nothing."""
    for op in reversed(list(loop.body.block.ops)):
        if op.has_trait(Pure) and not any(result.first_use for result in op.results):
            erase(op)
    if len(list(loop.body.block.ops)) == 1 and loop.trips.first_use is None:
        erase(loop)


def replace(loop: Operation | None, other: array.LoopOp) -> None:
    assert isinstance(loop, array.LoopOp)
    block = loop.parent
    assert block is not None
    block.insert_op_before(other, loop)
    loop.trips.replace_all_uses_with(other.trips)
    loop.detach()
    loop.erase(safe_erase=False)


def may_be_collected(loop: array.LoopOp) -> bool:
    marked = {array.CLAIMED, array.EXCLUSIVE, array.SMALL} & loop.attributes.keys()
    return (
        is_counted(loop)
        and not loop.carried
        and not marked
        and not any(
            array.is_operation_that_may_raise(op) or rule_of(type(op)).opaque
            for op in every_op(loop)[1:]
        )
    )


# All iterations at once.


def collected_whole(function: func.FuncOp, loop: array.LoopOp, merged: bool) -> bool:
    """Put each product whose vectors lie in arrays, and that may run before the loop or after it, there."""
    changed = False
    groups = groups_of(loop, stacks_of(loop)) if merged else []
    shared = {member.stack.op for one in groups for member in one}
    for op in products_in(loop):
        stack = None if op in shared else stack_of(op, loop, Subscripts())
        if stack is None or stack.ragged or not all(lies_in_array(stack, n) for n in OPERANDS):
            continue
        dependence = Dependence(function, AliasAnalysis(function))
        place = Places(loop, op, dependence).place(packable=(), buffered=False, late=True)
        if place is not None:
            move_whole(loop, stack, place)
            changed = True
    return changed


def move_whole(loop: array.LoopOp, stack: Stack, place: Place) -> None:
    assert loop.count is not None
    anchor = loop if place.before else loop.next_op
    assert anchor is not None
    here = Before(anchor, loop)
    zero = here.constant(0)
    trips = here.emit(arith.MaxSIOp(loop.count, zero))
    common = Common(stack, zero, zero, here)
    views: dict[str, SSAValue] = {}
    for name, slab in stack.slabs.items():
        assert slab is not None
        views[name] = common.view(name, slab, here, zero, trips)
    accumulate = stack.op.accumulate is not None
    made = product(stack.op, views, accumulate=accumulate, in_order=stack.adds_up)
    here.insert(made)
    erase(stack.op)
