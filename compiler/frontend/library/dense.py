"""What `written_matrices` and `written_factors` call of the `dense` dialect: see `written_dense`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ....dialects import dense
from ..emitter import Emitter
from ..values import Array, Scalar, Tuple, Value
from . import linalg
from .written_dense import SlogdetResult


def matrix(value: Value) -> SSAValue:
    """A matrix in memory; a vector as a matrix of one column."""
    assert isinstance(value, Array)
    return value.memref


def column(e: Emitter, value: Value) -> SSAValue:
    assert isinstance(value, Array)
    return linalg.as_matrix(e, value, row=False).memref


def flags(values: Sequence[Value]) -> list[bool]:
    """Bools that are known while compiling."""
    found: list[bool] = []
    for value in values:
        assert isinstance(value, Scalar)
        assert isinstance(value.constant, bool)
        found.append(value.constant)
    return found


def eliminate(e: Emitter, a: Value, pivots: Value) -> Value:
    return Scalar("py_int", e.emit(dense.FactorOp(matrix(a), matrix(pivots))), None, 0)


def solve(e: Emitter, factors: Value, pivots: Value, x: Value) -> Value:
    e.insert(dense.SolveOp(matrix(factors), matrix(pivots), column(e, x)))
    return x


def log_determinant(e: Emitter, factors: Value, pivots: Value) -> Value:
    return Scalar("f64", e.emit(dense.LogDeterminantOp(matrix(factors), matrix(pivots))))


def cholesky(e: Emitter, a: Value) -> Value:
    return Scalar("py_int", e.emit(dense.CholeskyOp(matrix(a))), None, 0)


def solve_triangle(e: Emitter, t: Value, x: Value, *given: Value) -> Value:
    upper, unit = flags(given)
    assert isinstance(t, Array)
    read = linalg.ready(e, t, "f64").memref
    e.insert(dense.SolveTriangleOp(read, column(e, x), upper=upper, unit=unit))
    return x


def slogdet_result(_: Emitter, sign: Value, logabsdet: Value) -> Value:
    return Tuple((sign, logabsdet), SlogdetResult)
