"""`keep-tangents`: of a tangent function keep the tangents alone.

Directions that are computed one after the other share the primal of the first call. In the other calls the
primal's results are zeros, and what only they needed is dead. For a linear function that is half of the work,
and all arrays but those of tangents::

    func.func @f(%x, %x_dot) -> (f64, f64) {
      ... store to %u and %u_dot, in each step ...
      return %value, %value_dot

becomes ::

      ... store to %u_dot, in each step ...
      return %zero, %value_dot

Results that are not floats remain, and so do stores to arguments and what may raise.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..rules.calls import listed
from ..rules.table import float_constant


@dataclass(frozen=True)
class KeepTangents(ModulePass):
    """Drop the primal's results from tangent functions."""

    name = "keep-tangents"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, func.FuncOp) and "moved" in function.attributes:
                drop_values(function)


def drop_values(function: func.FuncOp) -> None:
    """Zeros for all results that are floats and no tangents."""
    last = function.body.block.last_op
    assert isinstance(last, func.ReturnOp)
    for k in range(len(last.arguments) - len(listed(function, "moved"))):
        result = last.arguments[k]
        if isinstance(result.type, AnyFloat):
            zero = float_constant(0.0, result.type)
            zero.location = last.location
            Rewriter.insert_op(zero, InsertPoint.before(last))
            last.operands[k] = zero.result
