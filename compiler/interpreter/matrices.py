"""What products of matrices mean, and the ops of the `dense` dialect: see `written_dense`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from ...dialects import array, dense
from ..frontend.library.written_dense import eliminate, lower_factor, solve_factored
from ..frontend.library.written_dense import log_determinant as determinant
from ..frontend.library.written_dense import solve_triangle as triangle
from .frame import Frame
from .memory import Array, Memref, Undefined
from .overlaps import share_bytes


def write(memref: Memref, values: Array) -> None:
    memref.root.cells[memref.places()] = values


def square(memref: Memref) -> Array:
    if memref.shape[0] != memref.shape[1]:
        raise Undefined(f"a matrix of {memref.shape} is not square")
    return memref.read()


def factor(frame: Frame, op: dense.FactorOp) -> None:
    memref, places = frame.get(op.a), frame.get(op.pivots)
    a = square(memref)
    pivots = np.arange(len(a))
    frame.values[op.info] = np.int64(eliminate(a, pivots))
    write(memref, a)
    write(places, pivots)


def right_hand_sides(frame: Frame, x: SSAValue, *read: SSAValue) -> tuple[Memref, Array]:
    """Where they are, and their elements."""
    memref: Memref = frame.get(x)
    if any(share_bytes(memref, frame.get(other)) for other in read):
        raise Undefined("what is solved for overlaps the matrix")
    if memref.shape[0] != frame.get(read[0]).shape[0]:
        raise Undefined(f"{memref.shape} right-hand sides do not fit the matrix")
    return memref, memref.read()


def solve(frame: Frame, op: dense.SolveOp) -> None:
    memref, x = right_hand_sides(frame, op.x, op.factors, op.pivots)
    factors, pivots = square(frame.get(op.factors)), frame.get(op.pivots).read()
    if op.transposed is None:
        solve_factored(factors, pivots, x)
    else:
        triangle(factors.T, x, upper=False, unit=False)
        triangle(factors.T, x, upper=True, unit=True)
        for k, best in reversed(list(enumerate(pivots))):
            x[[k, best]] = x[[best, k]]
    write(memref, x)


def solve_triangle(frame: Frame, op: dense.SolveTriangleOp) -> None:
    memref, x = right_hand_sides(frame, op.x, op.t)
    upper, unit = op.upper is not None, op.unit is not None
    triangle(square(frame.get(op.t)), x, upper=upper, unit=unit)
    write(memref, x)


def log_determinant(frame: Frame, op: dense.LogDeterminantOp) -> None:
    factors, pivots = square(frame.get(op.factors)), frame.get(op.pivots).read()
    frame.values[op.result] = np.float64(determinant(factors, pivots))


def cholesky(frame: Frame, op: dense.CholeskyOp) -> None:
    memref = frame.get(op.a)
    a = square(memref)
    frame.values[op.info] = np.int64(lower_factor(a))
    write(memref, a)


def lower(frame: Frame, op: dense.LowerOp) -> None:
    memref = frame.get(op.x)
    x = memref.read()
    rows, columns = np.indices(x.shape[:2])
    x[rows < columns] = 0.0
    x[rows == columns] *= op.multiple
    if op.multiple == 0.0:
        x[rows == columns] = 0.0
    write(memref, x)


def matmul(frame: Frame, op: array.MatmulOp) -> None:
    """One sum for each element of the product, its terms in order."""
    a, b, c = (frame.get(x) for x in (op.a, op.b, op.c))
    if share_bytes(c, a) or share_bytes(c, b):
        raise Undefined("the product overlaps a factor")
    if (c.shape, a.shape[1]) != ((a.shape[0], b.shape[1]), b.shape[0]):
        raise Undefined(f"shapes {a.shape} and {b.shape} into {c.shape}")
    left, right, places = a.read(), b.read(), c.places()
    lanes = c.root.cells.ndim - 1
    left = left if left.ndim > 2 or not lanes else left[..., None]
    right = right if right.ndim > 2 or not lanes else right[..., None]
    total = np.zeros((*c.shape, *c.root.cells.shape[1:]), c.root.cells.dtype)
    for k in range(a.shape[1]):
        total = total + left[:, k, None] * right[None, k]
    c.root.cells[places] = c.root.cells[places] + total if op.accumulate is not None else total


OPS: Mapping[type[Operation], Callable[[Any, Any], None]] = {
    array.MatmulOp: matmul,
    dense.FactorOp: factor,
    dense.SolveOp: solve,
    dense.LogDeterminantOp: log_determinant,
    dense.CholeskyOp: cholesky,
    dense.SolveTriangleOp: solve_triangle,
    dense.LowerOp: lower,
}
"""What each op does."""
