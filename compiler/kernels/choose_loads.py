"""Load on both sides of a branch, rather than from the memory that a branch chooses.

The adjoint finds what a variable was in the element that it went to, or, in the first iteration, in a
variable that is filled again: a branch yields the one memref or the other, and a load reads it. Variables
become each thread's own, arrays the device's, so a memref cannot be either; what is loaded can.

Before::

    func.func @f(%c : i1, %u : memref<?xf64>, %i : index) -> f64 {
      %x = memref.alloca() : memref<f64>
      %v = array.view %u[%i] dims [] extents() steps() : memref<?xf64> -> memref<f64, strided<[]>>
      %y = "memref.cast"(%x) : (memref<f64>) -> memref<f64, strided<[]>>
      %m = scf.if %c -> (memref<f64, strided<[]>>) {
        scf.yield %v : memref<f64, strided<[]>>
      } else {
        scf.yield %y : memref<f64, strided<[]>>
      }
      %r = memref.load %m[] : memref<f64, strided<[]>>
      func.return %r : f64
    }

After::

    func.func @f(%c : i1, %u : memref<?xf64>, %i : index) -> f64 {
      %x = memref.alloca() : memref<f64>
      %v = array.view %u[%i] dims [] extents() steps() : memref<?xf64> -> memref<f64, strided<[]>>
      %y = "memref.cast"(%x) : (memref<f64>) -> memref<f64, strided<[]>>
      %r = scf.if %c -> (f64) {
        %0 = memref.load %v[] : memref<f64, strided<[]>>
        scf.yield %0 : f64
      } else {
        %1 = memref.load %x[] : memref<f64>
        scf.yield %1 : f64
      }
      func.return %r : f64
    }

The load stays where it is, so nothing is stored between. Kept: memory that a side makes itself, and what is
used otherwise than by loads.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.within import ops_of_kind
from ..analysis.views import is_memref, strip_casts


@dataclass(frozen=True)
class ChooseLoads(ModulePass):
    """Load in both arms of a branch that yields a memref, and yield the value."""

    name = "choose-loads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        branches = ops_of_kind(op, scf.IfOp)
        for branch in reversed(branches):  # a choice of a choice: the outer one's loads come first
            for k, result in enumerate(branch.results):
                if is_memref(result):
                    load_on_both_sides(branch, k, result)
        for branch in reversed(branches):
            if branch.results and not any(r.first_use for r in branch.results) and is_bare(branch):
                Rewriter.erase_op(branch)


def load_on_both_sides(branch: scf.IfOp, k: int, result: SSAValue) -> None:
    sources = [yielded(region, k) for region in branch.regions]
    if any(lives_in(source, branch) for source in sources):
        return
    for use in list(result.uses):
        load = use.operation
        if isinstance(load, memref.LoadOp):
            blocks = [loading(load, source) for source in sources]
            then, otherwise = (Region(b) for b in blocks)
            chosen = scf.IfOp(branch.cond, [load.res.type], then, otherwise)
            chosen.location = load.location
            chosen.results[0].name_hint = load.res.name_hint
            Rewriter.insert_op(chosen, InsertPoint.before(load))
            load.res.replace_all_uses_with(chosen.results[0])
            Rewriter.erase_op(load)


def yielded(region: Region, k: int) -> SSAValue:
    last = region.block.last_op
    assert isinstance(last, scf.YieldOp)
    return last.operands[k]


def lives_in(value: SSAValue, branch: scf.IfOp) -> bool:
    owner = value.owner
    return isinstance(owner, Operation) and branch.is_ancestor(owner)


def loading(load: memref.LoadOp, source: SSAValue) -> Block:
    """A side that loads; of a variable that was cast the variable itself."""
    made = memref.LoadOp.get(strip_casts(source), list(load.indices))
    made.attributes.update(load.attributes)
    end = scf.YieldOp(made.res)
    made.location = end.location = load.location
    block = Block()
    block.add_ops([made, end])
    return block


def is_bare(branch: scf.IfOp) -> bool:
    """Whether a branch does nothing but yield."""
    return all(len(region.block.ops) == 1 for region in branch.regions if region.blocks)
