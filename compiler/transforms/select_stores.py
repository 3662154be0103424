"""Turn a store on a branch into a store of a choice, where the element was stored just before.

Runs before loops are raised to maps: without the branch, iterations that only touch their own elements are
a map, whose loop and whose adjoint's loop are vectorized.

Before::

    func.func @f(%v : memref<?xf64>, %i : index, %a : f64, %outside : i1) {
      memref.store %a, %v[%i] : memref<?xf64>
      scf.if %outside {
        %b = arith.negf %a : f64
        memref.store %b, %v[%i] : memref<?xf64>
      }
      func.return
    }

After::

    func.func @f(%v : memref<?xf64>, %i : index, %a : f64, %outside : i1) {
      %b = arith.negf %a : f64
      %0 = arith.select %outside, %b, %a : f64
      memref.store %0, %v[%i] : memref<?xf64>
      func.return
    }

Kept: branches that do more than a little arithmetic, and stores whose element may be read, overwritten
or seen by an exception between the two.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, math, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ...dialects.within import ops_of_kind
from .hoist_invariants import is_movable
from .memory_effects import MemoryEffects, functions

FEW = 8
"""A branch of more ops than this stays one."""


@dataclass(frozen=True)
class SelectStores(ModulePass):
    """Replace branches that only store by selections."""

    name = "select-stores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            branches = [b for b in ops_of_kind(function, scf.IfOp) if only_stores(b)]
            effects = MemoryEffects(function) if branches else None
            for branch in branches:
                assert effects is not None
                select_in(branch, effects)


def select_in(branch: scf.IfOp, effects: MemoryEffects) -> None:
    """Straighten one branch, if each of its stores has one before it to the same element."""
    stores = [op for op in branch.true_region.block.ops if isinstance(op, memref.StoreOp)]
    before = [store_before(branch, store, effects) for store in stores]
    if not all(before) or len(set(before)) < len(stores):
        return
    for op in tuple(branch.true_region.block.ops):
        if isinstance(op, scf.YieldOp):
            continue
        if not isinstance(op, memref.StoreOp):
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(branch))
            continue
        earlier = before[stores.index(op)]
        assert earlier is not None
        choice = arith.SelectOp(branch.cond, op.value, earlier.value)
        store = memref.StoreOp.get(choice.result, op.memref, op.indices)
        choice.location = store.location = op.location
        Rewriter.insert_op([choice, store], InsertPoint.before(branch))
        Rewriter.erase_op(earlier)
    Rewriter.erase_op(branch)


def only_stores(branch: scf.IfOp) -> bool:
    """True when one side does nothing, and the other a little arithmetic and stores."""
    if branch.results or array.RAISES in branch.attributes:
        return False
    otherwise = [op for block in branch.false_region.blocks for op in block.ops]
    ops = list(branch.true_region.block.ops)
    return (
        all(isinstance(op, scf.YieldOp) for op in otherwise)
        and 1 < len(ops) <= FEW
        and all(isinstance(op, scf.YieldOp | memref.StoreOp) or is_cheap(op) for op in ops)
    )


def is_cheap(op: Operation) -> bool:
    """Arithmetic that may run where the program would not have run it."""
    return is_movable(op) and (isinstance(op, math.AbsFOp) or op.name.startswith("arith."))


def store_before(
    branch: scf.IfOp, store: memref.StoreOp, effects: MemoryEffects
) -> memref.StoreOp | None:
    """The store in the branch's block to the same element, which nothing has noticed since."""
    roots = effects.roots(store.memref)
    if any(is_within(i.owner, branch) for i in (store.memref, *store.indices)):
        return None
    op = branch.prev_op
    while op is not None:
        if (
            isinstance(op, memref.StoreOp)
            and op.memref is store.memref
            and all(a is b for a, b in zip(op.indices, store.indices, strict=True))
        ):
            return op
        of_op = effects.of(op)
        if of_op.writes_any(roots) or of_op.reads_any(roots) or not always_goes_on(op):
            return None
        op = op.prev_op
    return None


def is_within(owner: Operation | Block, branch: scf.IfOp) -> bool:
    parent = owner if isinstance(owner, Operation) else owner.parent_op()
    return parent is not None and parent is not branch and branch.is_ancestor(parent)


def always_goes_on(op: Operation) -> bool:
    """No exception comes from `op`, no interrupt, and no want of memory."""
    return isinstance(op, memref.LoadOp | memref.StoreOp | array.MapOp) or is_movable(op)
