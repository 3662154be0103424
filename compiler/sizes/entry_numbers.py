"""Integers that are written into a function: those that are known while compiling are folded."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array

Number = int | SSAValue
"""What is known while compiling, or an `index` of the function that is written."""

Truth = bool | SSAValue
"""A condition, known while compiling or of the function."""

RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
}

PLAIN: dict[type[Operation], type[Operation]] = {
    array.CheckedAddOp: arith.AddiOp,
    array.CheckedSubOp: arith.SubiOp,
    array.CheckedMulOp: arith.MuliOp,
}
"""What integers are computed with where nothing may be raised."""


class Arithmetic:
    """Writes into the block that is open. Where it is `checked`, numbers that 64 bits do not hold raise."""

    def __init__(self, block: Block, *, checked: bool) -> None:
        self.block = block
        self.checked = checked
        self.place: Operation | None = None
        """The op whose location those have that are written."""

    def emit(self, op: Operation) -> Operation:
        if self.place is not None:
            op.location = self.place.location
        self.block.add_op(op)
        return op

    def value(self, number: Number) -> SSAValue:
        if isinstance(number, SSAValue):
            return number
        return self.emit(arith.ConstantOp(array.index_number(number))).results[0]

    def binary(self, kind: type[Operation], a: Number, b: Number) -> SSAValue:
        kind = kind if self.checked else PLAIN.get(kind, kind)
        operands = [self.value(a), self.value(b)]
        return self.emit(kind.create(operands=operands, result_types=[IndexType()])).results[0]

    def add(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        return a if b == 0 else self.binary(array.CheckedAddOp, a, b)

    def sub(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        if a is b:
            return 0
        return a if b == 0 else self.binary(array.CheckedSubOp, a, b)

    def mul(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1:
            return b
        return a if b == 1 else self.binary(array.CheckedMulOp, a, b)

    def larger(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return a if a is b else self.binary(arith.MaxSIOp, a, b)

    def at_least_zero(self, a: Number) -> Number:
        """An extent or a count."""
        owner = None if isinstance(a, int) else a.owner
        if isinstance(owner, memref.DimOp):
            return a
        if isinstance(owner, arith.MaxSIOp) and array.constant_value(owner.rhs) == 0:
            return a
        return self.larger(a, 0)

    def rounded_up(self, a: Number, unit: int) -> Number:
        if isinstance(a, int):
            return -(-a // unit) * unit
        return self.binary(arith.AndIOp, self.add(a, unit - 1), -unit)

    def compare(self, predicate: str, a: Number, b: Number) -> Truth:
        relation = RELATIONS[predicate]
        if isinstance(a, int) and isinstance(b, int):
            return relation(a, b)
        if same(a, b):
            return relation(0, 0)
        return self.emit(arith.CmpiOp(self.value(a), self.value(b), predicate)).results[0]

    def choose(self, condition: Truth, a: Number, b: Number) -> Number:
        if isinstance(condition, bool):
            return a if condition else b
        if a is b or (isinstance(a, int) and a == b):
            return a
        return self.emit(arith.SelectOp(condition, self.value(a), self.value(b))).results[0]

    def all_of(self, *conditions: Truth) -> Truth:
        return self._joined(arith.AndIOp, True, conditions)

    def any_of(self, *conditions: Truth) -> Truth:
        return self._joined(arith.OrIOp, False, conditions)

    def _joined(
        self, kind: type[arith.AndIOp | arith.OrIOp], neutral: bool, conditions: Sequence[Truth]
    ) -> Truth:
        total: Truth = neutral
        for one in conditions:
            if isinstance(one, bool):
                if one is not neutral:
                    return one
            elif isinstance(total, bool):
                total = one
            elif total is not one:
                total = self.emit(kind(total, one)).results[0]
        return total


def same(a: Number, b: Number) -> bool:
    """Surely the same number."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    x, y = a.owner, b.owner
    if isinstance(x, memref.DimOp) and isinstance(y, memref.DimOp):
        axes = [array.constant_value(op.index) for op in (x, y)]
        return x.source is y.source and axes[0] == axes[1]
    return a is b
