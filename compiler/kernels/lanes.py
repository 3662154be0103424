"""Several derivatives at once are vectors of the CPU: kernels have none."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import VectorType

from ...dialects.within import every_op
from ..analysis.views import is_memref
from ..diagnostics import WithoutLanes, refusal
from .kernel import element_of


def refuse_lanes(function: func.FuncOp) -> None:
    """WithoutLanes at the first op that takes an array of vectors."""
    for op in every_op(function):
        for operand in op.operands:
            if is_memref(operand) and isinstance(element_of(operand), VectorType):
                raise refusal(
                    op,
                    "kernels take one tangent, or cotangent, at a time",
                    "ask for one after the other, or compile the function for the CPU",
                    WithoutLanes,
                )
