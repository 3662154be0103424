"""Say of each call of a private function what it touches: which arrays it reads, which it writes.

Why here: after the simplifications that drop what is never read, before the analyses, which take a call
for what it says. The frontend has described the calls once; fewer effects are left now.

Before::

    func.func @f(%a : memref<?xf64>, %i : index) -> f64 {
      %r, %y = activation.call @walk(%a, %i : memref<?xf64>, index) frames 1 -> f64
      func.return %y : f64
    }
    func.func private @walk(%a : memref<?xf64>, %i : index) -> f64 {
      %y = memref.load %a[%i] : memref<?xf64>
      func.return %y : f64
    }

After::

    func.func @f(%a : memref<?xf64>, %i : index) -> f64 {
      %r, %y = activation.call @walk(%a, %i : memref<?xf64>, index) frames 1 reads [0] writes [] -> f64
      func.return %y : f64
    }
    func.func private @walk(%a : memref<?xf64>, %i : index) -> f64 attributes {overlaps = []} {
      %y = memref.load %a[%i] : memref<?xf64>
      func.return %y : f64
    }
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects import activation
from ...dialects.within import ops_of_kind
from ..analysis.effects import describe_calls


@dataclass(frozen=True)
class DescribeCalls(ModulePass):
    """Annotate calls with the effects of what they call, and functions with the arrays that may overlap."""

    name = "describe-calls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.ops if isinstance(f, func.FuncOp)]
        if ops_of_kind(op, activation.CallOp):
            describe_calls(functions)
