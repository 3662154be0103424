"""Take a value that both sides of a branch yield in the place of the branch's result.

The adjoint of a sum under a condition hands on the cotangent of what is summed on either side. So it is seen
that iterations leave it as it is, and have nothing to do with each other.

Before::

    func.func @f(%c : i1, %x : f64) -> f64 {
      %r = scf.if %c -> (f64) {
        scf.yield %x : f64
      } else {
        scf.yield %x : f64
      }
      func.return %r : f64
    }

After::

    func.func @f(%c : i1, %x : f64) -> f64 {
      %r = scf.if %c -> (f64) {
        scf.yield %x : f64
      } else {
        scf.yield %x : f64
      }
      func.return %x : f64
    }

Kept: values that a side computes itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.within import ops_of_kind


@dataclass(frozen=True)
class FoldEqualYields(ModulePass):
    """Replace a result of a branch by the value that both arms yield."""

    name = "fold-equal-yields"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for branch in ops_of_kind(op, scf.IfOp):
            ends = [region.block.last_op for region in branch.regions if region.blocks]
            if len(ends) < 2:
                continue
            first, second = (end.operands if end is not None else () for end in ends)
            for result, one, other in zip(branch.results, first, second, strict=True):
                if one is other:
                    result.replace_all_uses_with(one)
