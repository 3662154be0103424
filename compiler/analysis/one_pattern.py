"""Whether a function's Jacobian has the same pattern at all numbers of its arguments.

So it is where nothing depends on how large a float is: no comparison, no maximum, no magnitude, no conversion
to an integer, and no partial that is 0 by convention (a root at 0). What is left are sums, products,
quotients, smooth functions, and subscripts and branches that integers decide. The pattern that is found for
some arguments (`runtime/sparsity.py`) is then that of all arguments of these extents and integers: a tangent
that is NaN stays NaN, whatever the partial is.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith, func, math, memref, scf
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Attribute, Operation

from ...dialects import array
from ...dialects.array import constant_value
from ..rules.table import constant_float

DECIDING = (
    *(arith.CmpfOp, arith.FPToSIOp, arith.FPToUIOp, arith.BitcastOp),
    *(arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp),
)
"""What tells floats apart."""

SMOOTH = (
    *(math.ExpOp, math.Exp2Op, math.ExpM1Op, math.LogOp, math.Log2Op, math.Log10Op, math.Log1pOp),
    *(math.SinOp, math.CosOp, math.TanOp, math.AtanOp, math.SinhOp, math.CoshOp, math.TanhOp),
    *(math.AsinhOp, math.ErfOp, math.RsqrtOp, math.FmaOp),
)
"""Functions whose partials are 0 nowhere by convention."""

OF_MEMORY = (
    *(array.AllocOp, array.ViewOp, array.CollapseOp, array.StrideOp, array.LoopOp, array.YieldOp),
    *(array.ConditionOp, array.IndexOp, array.RaiseIfOp, array.FloorDivOp, array.FloorModOp),
    *(array.CheckedAddOp, array.CheckedSubOp, array.CheckedMulOp, scf.IfOp, scf.YieldOp),
    *(func.FuncOp, func.ReturnOp, memref.LoadOp, memref.StoreOp, memref.DimOp, memref.CastOp),
    *(memref.AllocaOp, ModuleOp),
)
"""Memory, control and integers."""


def has_one_pattern(ops: Iterable[Operation]) -> bool:
    """Whether none of the ops makes the pattern depend on floats."""
    return all(map(keeps_pattern, ops))


def is_float(type_: Attribute) -> bool:
    return isinstance(type_, AnyFloat)


def keeps_pattern(op: Operation) -> bool:
    match op:
        case math.PowFOp():
            exponent = constant_float(op.rhs)
            return exponent is not None and exponent >= 1.0
        case math.FPowIOp():
            power = constant_value(op.rhs)
            return power is not None and power >= 1
        case array.MapOp():
            return all(kind in ("store", "add") for kind in op.out_kinds)
        case array.CastOp():
            return not is_float(op.operands[0].type) or is_float(op.results[0].type)
        case _:
            plain = op.name.startswith("arith.") and not isinstance(op, DECIDING)
            return plain or isinstance(op, (*SMOOTH, *OF_MEMORY))
