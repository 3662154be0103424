"""Columns of a matrix whose rows a loop finishes one by one. Part of `reorder_loops`.

Factorizations go row by row, and each row takes those before it::

    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]

With k outside, each element still has its subtractions in order, and those of many j are made side by
side, but `a[j, k]` goes down a column. So each row is copied to a column of a transposed matrix when it is
finished, at the end of its iteration, and the column is read along a row of that. The copies are n * n
elements, of n**3 / 6 that are read.

Legality: every store to the matrix in the loop over i is to row i, and what is read is of a row that an
earlier iteration has finished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.affine import Affine
from ..analysis.alias import AliasAnalysis, enclosing_loops
from ..analysis.dependence import Dependence, Problem
from ..analysis.nest_proofs import AtMostZero
from ..analysis.strides import counts_in
from ..rules import rule_of, writes
from .hoist_checks import Before, is_counted
from .interchange import is_outside, known_before
from .pack_columns import lies_by_rows

MANY = 80
"""With fewer rows the copies take longer than they save."""


@dataclass(frozen=True)
class FinishedRows:
    """A matrix, and the loop that finishes its rows."""

    matrix: SSAValue
    loop: array.LoopOp
    first: Affine
    """The row of the loop's first iteration."""
    count: Affine
    """How many rows the loop finishes."""

    @property
    def are_many(self) -> AtMostZero:
        """That the copies are worth their time."""
        return AtMostZero(Affine(constant=MANY) - self.count)

    def transposed(self) -> SSAValue:
        """A transposed matrix, to which the loop copies each row at the end of its iteration."""
        outermost = self.loop
        for one in reversed(enclosing_loops(self.loop)):
            if not is_outside(self.matrix, one) or one.attributes:  # a thread has memory of its own
                break
            outermost = one
        before = Before(outermost)
        assert isinstance(self.matrix.type, MemRefType)
        height, width = (
            before.emit(memref.DimOp(self.matrix, before.constant(axis))) for axis in (0, 1)
        )
        made = array.AllocOp([width, height], self.matrix.type.element_type)
        made.memref.name_hint = f"{self.matrix.name_hint or 'matrix'}_columns"
        before.insert(made)
        end = self.loop.body.block.last_op
        assert end is not None
        here = Before(end, self.loop)
        row = here.number(self.first + Affine.of(self.loop.induction))
        inside = here.emit(
            arith.AndIOp(
                here.compare("sge", row, here.constant(0)), here.compare("slt", row, height)
            )
        )
        body = Block(arg_types=[IndexType()])
        element = memref.LoadOp.get(self.matrix, [row, body.args[0]])
        store = memref.StoreOp.get(element.res, made.memref, [body.args[0], row])
        body.add_ops([element, store, array.YieldOp()])
        count = here.emit(arith.SelectOp(inside, width, here.constant(0)))
        here.insert(array.LoopOp(count, [], body))
        return made.memref


def finished_rows(
    load: Operation,
    along: array.LoopOp,
    nest: array.LoopOp,
    dependence: Dependence,
    alias: AliasAnalysis,
) -> FinishedRows | None:
    """The matrix down a column of which a loop goes with a load, if that reads finished rows alone."""
    if not isinstance(load, memref.LoadOp) or len(load.indices) != 2:
        return None
    matrix, forms = load.memref, dependence.footprints.subscripts
    row, column = map(forms.affine, load.indices)
    others = (s for s in column.terms if not counts_in(s, along) or s is along.induction)
    if row.terms.get(along.induction) != 1 or any(dependence.varies(s, along) for s in others):
        return None
    if not isinstance(matrix.type, MemRefType) or not lies_by_rows(matrix.type):
        return None
    for loop in reversed(enclosing_loops(along)):
        if loop.attributes:
            return None
        found = stores_in(loop, matrix, alias) if is_outside(matrix, loop) else None
        if found is None:
            return None
        if found:
            return rows_of(load, found, loop, nest, dependence)
    return None


def stores_in(
    loop: array.LoopOp, matrix: SSAValue, alias: AliasAnalysis
) -> list[memref.StoreOp] | None:
    """The stores to a matrix in a loop; None where anything else may write to it, or by another name."""
    found: list[memref.StoreOp] = []
    for op in every_op(loop):
        if rule_of(type(op)).opaque:
            return None
        if any(alias.may_alias(write.memref, matrix) for write in writes(op)):
            if not isinstance(op, memref.StoreOp) or op.memref is not matrix:
                return None
            found.append(op)
    return found


def rows_of(
    load: memref.LoadOp,
    stores: Sequence[memref.StoreOp],
    loop: array.LoopOp,
    nest: array.LoopOp,
    dependence: Dependence,
) -> FinishedRows | None:
    """The rows that a loop finishes, where it stores to one in each iteration, and a load reads others."""
    forms = dependence.footprints.subscripts
    row, *others = {forms.affine(op.indices[0]) for op in stores}
    first = row - Affine.of(loop.induction)
    if others or not is_counted(loop) or loop.carried or loop.count is None:
        return None
    count = forms.affine(loop.count)
    few = count.is_constant and count.constant < MANY
    if few or not known_before(first, loop) or not known_before(count, nest):
        return None
    read = forms.affine(load.indices[0])
    for low, high in ((row, read), (read + 1, first)):  # finished later, or by no iteration
        problem = Problem(dependence, None)
        problem.state_context(load, 0)
        problem.at_least(low, high, 0)
        if problem.may_hold():
            return None
    return FinishedRows(load.memref, loop, first, count)


def read_along_rows(columns: Mapping[Operation, FinishedRows]) -> None:
    """Let loads that go down columns read the transposed matrix."""
    made = {rows: rows.transposed() for rows in dict.fromkeys(columns.values())}
    for load, rows in columns.items():
        assert isinstance(load, memref.LoadOp)
        turned = memref.LoadOp.get(made[rows], [*load.indices][::-1])
        turned.location = load.location
        Rewriter.replace_op(load, turned)
