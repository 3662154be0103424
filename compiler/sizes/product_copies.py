"""The bytes of the matrices that products copy, because BLAS cannot walk them as they lie."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ..codegen.scratch import SCRATCH, Copies, InBlocks
from .amounts import LINE, ZERO, Amount, Amounts, unknown
from .entry_numbers import Arithmetic, Number, Truth, same
from .entry_values import EntryValues, Undetermined, why


@dataclass
class ProductCopies:
    """Writes how many they are."""

    a: Arithmetic
    amounts: Amounts
    values: EntryValues

    def of(self, op: Operation) -> Amount:
        """The matrices that a product copies."""
        self.a.place = op
        try:
            copies = SCRATCH[type(op)](op)
            return ZERO if copies is None else self._copied(copies, op)
        except InBlocks:
            return unknown(why("several tangents at once go through a matrix product", op))
        except Undetermined as error:
            return unknown(error.why)

    def _copied(self, copies: Copies, op: Operation) -> Amount:
        total, bound = ZERO, None
        for matrix in copies.matrices:
            assert isinstance(matrix.type, MemRefType)
            if array.is_contiguous(matrix.type):
                continue
            rows, columns = (self.values.extent(matrix, d) for d in (0, 1))
            bytes_ = self.a.mul(self.a.mul(rows, columns), copies.item)
            needed = self.a.rounded_up(bytes_, LINE)
            try:
                walkable = self._walkable(matrix, rows, columns, copies.farthest)
                needed = self.a.choose(walkable, 0, needed)
            except Undetermined as error:
                bound = error.why
            total = self.amounts.add(total, Amount(needed, 1))
        if total.is_zero:
            return ZERO
        sizes = [self.values.extent(m, axis) for m, axis in copies.sizes]
        chosen = self.a.choose(self._is_packed(sizes, copies), total.number, 0)
        return Amount(chosen, 1, None, None if bound is None else why(bound.reason, op))

    def _is_packed(self, sizes: list[Number], copies: Copies) -> Truth:
        """Whether BLAS multiplies two matrices of these sizes."""
        a, (rows, inner, columns) = self.a, sizes
        possible = [a.compare("sgt", n, 0) for n in sizes]
        possible += [a.compare("sle", n, copies.farthest) for n in sizes]
        large = a.any_of(*(a.compare("sgt", n, copies.tiny) for n in (rows, inner, columns)))
        lines = [a.compare("ne", n, 1) for n in (rows, columns)]
        return a.all_of(*possible, large, *lines)

    def _walkable(self, matrix: SSAValue, rows: Number, columns: Number, farthest: int) -> Truth:
        """Whether BLAS can walk the matrix, by rows or by columns."""
        s0, s1 = (self.values.stride(matrix, d) for d in (0, 1))
        return self.a.any_of(
            self._by_rows(rows, columns, s0, s1, farthest),
            self._by_rows(columns, rows, s1, s0, farthest),
        )

    def _by_rows(
        self, rows: Number, columns: Number, s0: Number, s1: Number, farthest: int
    ) -> Truth:
        a = self.a
        unit = a.any_of(a.compare("eq", s1, 1), a.compare("eq", columns, 1))
        near = True if same(s0, columns) else a.compare("sle", s0, farthest)  # as columns are
        apart = a.all_of(a.compare("sge", s0, columns), near)
        return a.all_of(unit, a.any_of(apart, a.compare("eq", rows, 1)))
