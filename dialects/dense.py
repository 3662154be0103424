"""The `dense` dialect: factors of dense matrices, and what is solved with them.

Whole operations, for their derivatives are other ones of the same kind: that of a solution is a solution with
the transposed matrix and a product, not the reverse of an elimination.

All work in place, on matrices in memory. Right-hand sides are matrices of a column or more; in derivatives
of several directions their elements are vectors, and so are those of cotangents and tangents elsewhere.
"""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, IndexType, MemRefType, UnitAttr, f64
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException


class DenseOp(IRDLOperation):
    """An op of the dialect: it computes, and touches the matrices that it names."""


@irdl_op_definition
class FactorOp(DenseOp):
    """A square matrix becomes its factors, by elimination with the largest pivot of each column.

    `%info = dense.factor %a, %pivots : memref<?x?xf64>, memref<?xi64>`

    The lower one has ones on its diagonal, which are not stored. Step k has swapped row k with row
    `pivots[k]`. `info` is 0, or k + 1 where the pivot of step k is the first that is 0.

    Factors stand for the matrix: they are read by ops of this dialect only, and their shadow is that of the
    matrix. So nothing is to be done for the adjoint of this op, nor for its tangent.
    """

    name = "dense.factor"
    a = operand_def(MemRefType)
    pivots = operand_def(MemRefType)
    info = result_def(IndexType)
    assembly_format = "$a `,` $pivots attr-dict `:` type($a) `,` type($pivots)"

    def __init__(self, a: SSAValue, pivots: SSAValue) -> None:
        super().__init__(operands=[a, pivots], result_types=[IndexType()])


@irdl_op_definition
class SolveOp(DenseOp):
    """`x` becomes the solution y of `A y = x`, or of `A^T y = x` if `transposed`, by the factors of A.

    `dense.solve %lu, %pivots into %x transposed : memref<?x?xf64>, memref<?xi64>, memref<?x?xf64>`

    It overlaps neither. Where a pivot is 0, its elements are infinite or NaN.
    """

    name = "dense.solve"
    factors = operand_def(MemRefType)
    pivots = operand_def(MemRefType)
    x = operand_def(MemRefType)
    transposed = opt_prop_def(UnitAttr)
    assembly_format = (
        "$factors `,` $pivots `into` $x (`transposed` $transposed^)? attr-dict"
        " `:` type($factors) `,` type($pivots) `,` type($x)"
    )

    def __init__(
        self, factors: SSAValue, pivots: SSAValue, x: SSAValue, *, transposed: bool = False
    ) -> None:
        properties = {"transposed": UnitAttr()} if transposed else {}
        super().__init__(operands=[factors, pivots, x], properties=properties)


@irdl_op_definition
class LogDeterminantOp(DenseOp):
    """The logarithm of the size of the determinant of a matrix, by its factors; minus infinity of 0.

    `%y = dense.log_determinant %lu, %pivots : memref<?x?xf64>, memref<?xi64>`
    """

    name = "dense.log_determinant"
    factors = operand_def(MemRefType)
    pivots = operand_def(MemRefType)
    result = result_def(f64)
    assembly_format = "$factors `,` $pivots attr-dict `:` type($factors) `,` type($pivots)"

    def __init__(self, factors: SSAValue, pivots: SSAValue) -> None:
        super().__init__(operands=[factors, pivots], result_types=[f64])


@irdl_op_definition
class CholeskyOp(DenseOp):
    """A matrix becomes the lower factor of the symmetric one whose lower triangle it holds.

    `%info = dense.cholesky %a : memref<?x?xf64>`

    Above the diagonal there are zeros then. `info` is 0, or k + 1 where the k-th element of the diagonal is
    the first that would be no positive number: the matrix holds anything then.
    """

    name = "dense.cholesky"
    a = operand_def(MemRefType)
    info = result_def(IndexType)
    assembly_format = "$a attr-dict `:` type($a)"

    def __init__(self, a: SSAValue) -> None:
        super().__init__(operands=[a], result_types=[IndexType()])


@irdl_op_definition
class SolveTriangleOp(DenseOp):
    """`x` becomes the solution y of `T y = x` for a triangle T of a matrix: the lower, or the `upper` one.

    `dense.solve_triangle %t into %x upper : memref<?x?xf64>, memref<?x?xf64>`

    Nothing else of the matrix is read; of a `unit` triangle the diagonal is not, which is of ones. It does
    not overlap `x`.
    """

    name = "dense.solve_triangle"
    t = operand_def(MemRefType)
    x = operand_def(MemRefType)
    upper = opt_prop_def(UnitAttr)
    unit = opt_prop_def(UnitAttr)
    assembly_format = (
        "$t `into` $x (`upper` $upper^)? (`unit` $unit^)? attr-dict `:` type($t) `,` type($x)"
    )

    def __init__(
        self, t: SSAValue, x: SSAValue, *, upper: bool = False, unit: bool = False
    ) -> None:
        given = {"upper": upper, "unit": unit}
        properties = {name: UnitAttr() for name, held in given.items() if held}
        super().__init__(operands=[t, x], properties=properties)


@irdl_op_definition
class LowerOp(DenseOp):
    """Of a matrix there remains what is below the diagonal, and this multiple of the diagonal.

    `dense.lower %x times 0.5 : f64 : memref<?x?xf64>`

    Of a multiple of 0 the diagonal is 0, whatever it was.
    """

    name = "dense.lower"
    x = operand_def(MemRefType)
    times = prop_def(FloatAttr)
    assembly_format = "$x `times` $times attr-dict `:` type($x)"

    def __init__(self, x: SSAValue, times: float) -> None:
        super().__init__(operands=[x], properties={"times": FloatAttr(times, f64)})

    @property
    def multiple(self) -> float:
        return self.times.value.data

    def verify_(self) -> None:
        if self.multiple not in (0.0, 0.5, 1.0):
            raise VerifyException("dense.lower keeps all, half or nothing of the diagonal")


Dense = Dialect(
    "dense", [FactorOp, SolveOp, LogDeterminantOp, CholeskyOp, SolveTriangleOp, LowerOp], []
)
