"""What the ops of the `dense` dialect mean: each step of an elimination as one writes it on paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from xdsl.ir import Operation, SSAValue

from ...dialects import dense
from .memory import Array, Memref, Undefined
from .overlaps import share_bytes


class Frame(Protocol):
    """What the ops ask of a function that runs."""

    @property
    def values(self) -> dict[SSAValue, Any]: ...
    def get(self, value: SSAValue, /) -> Any: ...


def write(memref: Memref, values: Array) -> None:
    memref.root.cells[memref.places()] = values


def square(memref: Memref) -> Array:
    if memref.shape[0] != memref.shape[1]:
        raise Undefined(f"a matrix of {memref.shape} is not square")
    return memref.read()


def factor(frame: Frame, op: dense.FactorOp) -> None:
    memref, places = frame.get(op.a), frame.get(op.pivots)
    a, info = square(memref), 0
    pivots = np.arange(len(a))
    for k in range(len(a)):
        best = pivots[k] = k + int(np.argmax(np.nan_to_num(np.abs(a[k:, k]), nan=-1.0)))
        if np.isnan(a[k, k]):
            best = pivots[k] = k
        a[[k, best]] = a[[best, k]]
        if a[k, k] == 0.0:
            info = info or k + 1
            continue
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    write(memref, a)
    write(places, pivots)
    frame.values[op.info] = np.int64(info)


def by_triangle(t: Array, x: Array, *, upper: bool, unit: bool) -> None:
    """Solve in place."""
    for step in range(len(t)):
        i = len(t) - 1 - step if upper else step
        for j in range(i + 1, len(t)) if upper else range(i):
            x[i] -= t[i, j] * x[j]
        if not unit:
            x[i] /= t[i, i]


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
    steps = list(enumerate(pivots))
    if op.transposed is None:
        for k, best in steps:
            x[[k, best]] = x[[best, k]]
        by_triangle(factors, x, upper=False, unit=True)
        by_triangle(factors, x, upper=True, unit=False)
    else:
        by_triangle(factors.T, x, upper=False, unit=False)
        by_triangle(factors.T, x, upper=True, unit=True)
        for k, best in reversed(steps):
            x[[k, best]] = x[[best, k]]
    write(memref, x)


def solve_triangle(frame: Frame, op: dense.SolveTriangleOp) -> None:
    memref, x = right_hand_sides(frame, op.x, op.t)
    upper, unit = op.upper is not None, op.unit is not None
    by_triangle(square(frame.get(op.t)), x, upper=upper, unit=unit)
    write(memref, x)


def log_determinant(frame: Frame, op: dense.LogDeterminantOp) -> None:
    pivots = np.diagonal(square(frame.get(op.factors)))
    frame.values[op.result] = np.float64(np.sum(np.log(np.abs(pivots))))


def cholesky(frame: Frame, op: dense.CholeskyOp) -> None:
    memref = frame.get(op.a)
    a = square(memref)
    frame.values[op.info] = np.int64(0)
    for i in range(len(a)):
        for j in range(i):
            a[i, j] = (a[i, j] - np.dot(a[i, :j], a[j, :j])) / a[j, j]
        rest = a[i, i] - np.dot(a[i, :i], a[i, :i])
        if not rest > 0.0:
            frame.values[op.info] = np.int64(i + 1)
            break
        a[i, i] = np.sqrt(rest)
    write(memref, np.tril(a))


def lower(frame: Frame, op: dense.LowerOp) -> None:
    memref = frame.get(op.x)
    x = memref.read()
    rows, columns = np.indices(x.shape[:2])
    x[rows < columns] = 0.0
    x[rows == columns] *= op.multiple
    if op.multiple == 0.0:
        x[rows == columns] = 0.0
    write(memref, x)


OPS: Mapping[type[Operation], Callable[[Any, Any], None]] = {
    dense.FactorOp: factor,
    dense.SolveOp: solve,
    dense.LogDeterminantOp: log_determinant,
    dense.CholeskyOp: cholesky,
    dense.SolveTriangleOp: solve_triangle,
    dense.LowerOp: lower,
}
"""What each op does."""
