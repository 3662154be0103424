"""Bounds of a function's integers, for given arguments.

Extents, counters and what is computed from them are known on entry: their bounds are equal. Numbers that are
known only at run time often have a bound: a slice is at most as long as its array, a loop that may leave
early repeats at most as often as it counts, and a branch is taken at most once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...dialects import ad, array
from .segments import ArrayExtent


@dataclass(frozen=True)
class Unknown:
    """A number of times that is known at run time only."""

    at: Operation


@dataclass(frozen=True)
class Taken:
    """1 where a comparison of integers holds, or where it fails, else 0."""

    test: arith.CmpiOp
    holds: bool

    @property
    def relation(self) -> str:
        names = RELATIONS if self.holds else RELATIONS[::-1]
        return names[SIGNED.index(self.test.predicate.value.data)]


SIGNED = (0, 2, 3, 4, 5, 1)
"""`arith.cmpi`'s numbers of the relations of signed integers, each as far from the end as its opposite is
from the start."""
RELATIONS = ("==", "<", "<=", ">", ">=", "!=")

Number = SSAValue | ArrayExtent | Unknown | Taken

Bound = int | None


@dataclass(frozen=True)
class Interval:
    """Bounds, both included; None where none is known."""

    low: Bound = None
    high: Bound = None

    @property
    def value(self) -> Bound:
        """The number itself, where only one is possible."""
        return self.low if self.low == self.high else None

    def joined(self, other: Interval) -> Interval:
        return Interval(chosen(min, self.low, other.low), chosen(max, self.high, other.high))

    def __neg__(self) -> Interval:
        return Interval(negative(self.high), negative(self.low))

    def __add__(self, other: Interval) -> Interval:
        return Interval(
            both(operator.add, self.low, other.low), both(operator.add, self.high, other.high)
        )

    def mapped(self, other: Interval, compute: Callable[[int, int], int]) -> Interval:
        """A function that is monotonous in either operand: its extremes are those at the corners."""
        found = [
            both(compute, a, b) for a in (self.low, self.high) for b in (other.low, other.high)
        ]
        corners = [c for c in found if c is not None]
        if len(corners) < len(found):
            return not_negative(self, other, compute)
        return Interval(min(corners), max(corners))


ANY = Interval()
NOT_NEGATIVE = Interval(0)
TRUTH = Interval(0, 1)


def exactly(value: int) -> Interval:
    return Interval(value, value)


def negative(bound: Bound) -> Bound:
    return None if bound is None else -bound


def both(compute: Callable[[int, int], int], a: Bound, b: Bound) -> Bound:
    return None if a is None or b is None else compute(a, b)


def chosen(choose: Callable[[int, int], int], a: Bound, b: Bound) -> Bound:
    """The smaller or larger of two bounds; unknown where one is."""
    return both(choose, a, b)


def not_negative(left: Interval, right: Interval, compute: Callable[[int, int], int]) -> Interval:
    """The product (or quotient) of numbers of which neither is negative."""
    is_product = compute(3, 2) == 6
    if is_product and all(i.low is not None and i.low >= 0 for i in (left, right)):
        return Interval(both(compute, left.low, right.low), both(compute, left.high, right.high))
    return ANY


def largest(left: Interval, right: Interval) -> Interval:
    """Of two numbers: at least as large as each, where only one is known."""
    lows = [b for b in (left.low, right.low) if b is not None]
    return Interval(max(lows, default=None), chosen(max, left.high, right.high))


def smallest(left: Interval, right: Interval) -> Interval:
    return -largest(-left, -right)


def quotient(left: Interval, right: Interval) -> Interval:
    if right.low is None or right.low <= 0:
        return exactly(0) if right.value == 0 else ANY
    return left.mapped(right, operator.floordiv)


def rounded_up(left: Interval, right: Interval) -> Interval:
    return -quotient(-left, right)


def remainder(left: Interval, right: Interval) -> Interval:
    """With the sign of the divisor."""
    if left.value is not None and right.value:
        return exactly(left.value % right.value)
    if right.low is None or right.low <= 0:
        return ANY
    return Interval(0, both(operator.sub, right.high, 1))


def remainder_of_dividend(left: Interval, right: Interval) -> Interval:
    """With the sign of the dividend."""
    if left.low is not None and left.low >= 0:
        return remainder(left, right)
    return ANY


COMPUTED: dict[type[Operation], Callable[[Interval, Interval], Interval]] = {
    arith.AddiOp: operator.add,
    arith.SubiOp: lambda a, b: a + -b,
    arith.MuliOp: lambda a, b: a.mapped(b, operator.mul),
    array.CheckedAddOp: operator.add,
    array.CheckedSubOp: lambda a, b: a + -b,
    array.CheckedMulOp: lambda a, b: a.mapped(b, operator.mul),
    arith.FloorDivSIOp: quotient,
    array.FloorDivOp: quotient,
    arith.CeilDivSIOp: rounded_up,
    arith.MaxSIOp: largest,
    arith.MinSIOp: smallest,
    array.FloorModOp: remainder,
    arith.RemSIOp: remainder_of_dividend,
}

COMPARED: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Intervals:
    """The numbers of one function, whose first block is `top`, for its arguments."""

    def __init__(self, top: Block, arguments: Sequence[Any] | None) -> None:
        self.top = top
        self.arguments = arguments
        self._inductions: dict[SSAValue, int] = {}
        """Values of inductions while a sum is worked out."""
        self._known: dict[SSAValue, Interval] = {}
        self._asked: set[SSAValue] = set()

    def set_induction(self, induction: SSAValue, value: int) -> None:
        """Go on where a counter has this value."""
        self._inductions[induction] = value
        self._known.clear()

    def forget_inductions(self) -> None:
        self._inductions.clear()
        self._known.clear()

    def of(self, number: Number) -> Interval:
        match number:
            case Unknown(at):
                return self._repetitions(at)
            case Taken(test):
                left, right = self.of(test.lhs).value, self.of(test.rhs).value
                if left is None or right is None:
                    return TRUTH
                return exactly(int(COMPARED[number.relation](left, right)))
            case ArrayExtent(base, axis):
                return self.extent(base, axis)
            case _:
                return self._value(number)

    def _repetitions(self, op: Operation) -> Interval:
        """How often a block of an op runs."""
        if not isinstance(op, array.LoopOp):
            return TRUTH
        return (
            NOT_NEGATIVE
            if op.count is None
            else Interval(0, largest(self.of(op.count), exactly(0)).high)
        )

    def _value(self, value: SSAValue) -> Interval:
        """What is asked of itself (a counter that a loop changes) is not known."""
        known = array.constant_value(value)
        if known is not None:
            return exactly(known)
        if value.type == i1:
            return self._truth(value)
        if value in self._known:
            return self._known[value]
        if value in self._asked:
            return ANY
        self._asked.add(value)
        found = self._argument(value) if isinstance(value, BlockArgument) else self._result(value)
        self._asked.remove(value)
        self._known[value] = found
        return found

    def _truth(self, value: SSAValue) -> Interval:
        """Of a condition: an argument, or a comparison of integers."""
        test = value.owner
        if isinstance(test, arith.CmpiOp) and test.predicate.value.data in SIGNED:
            return self.of(Taken(test, holds=True))
        given = self._argument(value) if isinstance(value, BlockArgument) else ANY
        return TRUTH if given.value is None else given

    def _argument(self, value: BlockArgument) -> Interval:
        if value.owner is self.top:
            given = None if self.arguments is None else self.arguments[value.index]
            return exactly(int(given)) if isinstance(given, int | np.integer) else ANY
        if value in self._inductions:
            return exactly(self._inductions[value])
        loop = value.owner.parent_op()
        if isinstance(loop, array.LoopOp) and value is loop.induction:
            return Interval(0, both(operator.sub, self._repetitions(loop).high, 1))
        return ANY

    def _result(self, value: SSAValue) -> Interval:
        op = value.owner
        match op:
            case memref.DimOp():
                axis = array.constant_value(op.index)
                return NOT_NEGATIVE if axis is None else self.extent(op.source, axis)
            case arith.IndexCastOp() | array.CastOp():
                return self.of(op.operands[0])
            case array.IndexOp():
                return self._subscript(op)
            case arith.SelectOp():
                return self._either(op.cond, op.lhs, op.rhs)
            case scf.IfOp() if isinstance(value, OpResult):
                ends = [b.last_op for r in op.regions for b in r.blocks]
                return self._either(
                    op.cond, *(e.operands[value.index] for e in ends if e is not None)
                )
            case array.LoopOp() if value is op.trips:
                if op.condition_block is None and op.count is not None:
                    return largest(self.of(op.count), exactly(0))
                return self._repetitions(op)
            case memref.LoadOp() if isinstance(op.memref.owner, memref.AllocaOp):
                return self._held(op.memref)
            case memref.LoadOp() if isinstance(op.memref.owner, ad.PushOp | ad.PopOp):
                return self._saved(op.memref.owner.tape)
            case _ if isinstance(op, Operation) and type(op) in COMPUTED:
                return COMPUTED[type(op)](self.of(op.operands[0]), self.of(op.operands[1]))
            case _:
                return ANY

    def _subscript(self, op: array.IndexOp) -> Interval:
        index = self.of(op.index)
        if index.low is not None and index.low >= 0:
            return index
        return Interval(0, both(operator.sub, self.of(op.extent).high, 1))

    def _either(self, condition: SSAValue, left: SSAValue, right: SSAValue) -> Interval:
        taken = self.of(condition).value
        if taken is not None:
            return self.of(left if taken else right)
        return self.of(left).joined(self.of(right))

    def _held(self, cell: SSAValue) -> Interval:
        """What a cell may hold: what is assigned to it, and all that is added meanwhile."""
        assigned: list[memref.StoreOp] = []
        added: list[tuple[Operation, Interval]] = []
        for use in cell.uses:
            op = use.operation
            match op:
                case memref.LoadOp():
                    continue
                case memref.StoreOp():
                    change = self._change(op.value, cell)
                    if change is None:
                        assigned.append(op)
                    else:
                        added.append((op, change))
                case array.ViewOp():
                    summed = self._summed(op)
                    if summed is None:
                        return ANY
                    added += summed
                case _:
                    return ANY
        if not assigned:
            return ANY
        found = self.of(assigned[0].value)
        for store in assigned[1:]:
            found = found.joined(self.of(store.value))
        for op, change in added:
            most = largest(change, exactly(0)).high
            least = smallest(change, exactly(0)).low
            times = self._between(op, assigned)
            found += Interval(both(operator.mul, least, times), both(operator.mul, most, times))
        return found

    def _saved(self, tape: SSAValue) -> Interval:
        """What a tape may hold: what is stored to its segments."""
        found: Interval | None = None
        for use in tape.uses:
            segment = use.operation
            if not isinstance(segment, ad.PushOp | ad.PopOp):
                return ANY
            for inner in segment.memref.uses:
                match inner.operation:
                    case memref.LoadOp() | memref.DimOp():
                        continue
                    case memref.StoreOp(value=value) if inner.index == 1:
                        stored = self.of(value)
                    case _:
                        return ANY
                found = stored if found is None else found.joined(stored)
        return ANY if found is None else found

    def _change(self, value: SSAValue, cell: SSAValue) -> Interval | None:
        """What a value is more than what the cell held; None where it is not computed from that."""
        op = value.owner
        match op:
            case memref.LoadOp() if op.memref is cell:
                return exactly(0)
            case arith.AddiOp() | array.CheckedAddOp() | arith.SubiOp() | array.CheckedSubOp():
                change = self._change(op.lhs, cell)
                subtracts = isinstance(op, arith.SubiOp | array.CheckedSubOp)
                if change is not None:
                    return change + (-self.of(op.rhs) if subtracts else self.of(op.rhs))
                change = None if subtracts else self._change(op.rhs, cell)
                return None if change is None else change + self.of(op.lhs)
            case arith.SelectOp():
                sides = [self._change(v, cell) for v in (op.lhs, op.rhs)]
            case scf.IfOp() if isinstance(value, OpResult):
                ends = [b.last_op for r in op.regions for b in r.blocks]
                sides = [self._change(e.operands[value.index], cell) for e in ends if e is not None]
            case _:
                return None
        known = [s for s in sides if s is not None]
        return known[0].joined(known[1]) if len(known) == 2 else None

    def _summed(self, view: array.ViewOp) -> list[tuple[Operation, Interval]] | None:
        """What maps add to a cell that is seen at every point; None where others use it."""
        found: list[tuple[Operation, Interval]] = []
        for use in view.result.uses:
            op = use.operation
            if not isinstance(op, array.MapOp) or view.result in op.ins:
                return None
            position = list(op.outs).index(view.result)
            if op.out_kinds[position] != "add":
                return None
            change = self.of(op.yielded[position])
            for extent in op.extents:
                change = change.mapped(largest(self.of(extent), exactly(0)), operator.mul)
            found.append((op, change))
        return found

    def _between(self, op: Operation, assigned: Sequence[memref.StoreOp]) -> Bound:
        """How often an op runs at most between two assignments."""
        every = {store.parent for store in assigned}
        times: Bound = 1
        block = op.parent
        while block is not None and block not in every:
            parent = block.parent_op()
            if isinstance(parent, array.LoopOp):
                times = both(operator.mul, times, self._repetitions(parent).high)
            block = None if parent is None else parent.parent
        return times

    def extent(self, base: SSAValue, axis: int) -> Interval:
        owner = base.owner
        match owner:
            case array.AllocOp() | array.ViewOp() | array.CollapseOp() | ad.PushOp() | ad.PopOp():
                return self.of(owner.extents[axis])
            case memref.CastOp():
                return self.extent(owner.source, axis)
            case scf.IfOp() if isinstance(base, OpResult):
                ends = [b.last_op for r in owner.regions for b in r.blocks]
                sides = [self.extent(e.operands[base.index], axis) for e in ends if e is not None]
                return sides[0].joined(sides[1]) if len(sides) == 2 else NOT_NEGATIVE
            case Block() if owner is self.top and self.arguments is not None:
                assert isinstance(base, BlockArgument)
                shape = np.shape(self.arguments[base.index])
                return exactly(int(shape[axis])) if axis < len(shape) else NOT_NEGATIVE
            case Block():
                return self._carried(owner.parent_op(), base, axis)
            case array.LoopOp():
                return self._carried(owner, base, axis)
            case _:
                return NOT_NEGATIVE

    def _carried(self, loop: Operation | None, base: SSAValue, axis: int) -> Interval:
        """Arrays that swap may differ in size."""
        if not isinstance(loop, array.LoopOp):
            return NOT_NEGATIVE
        sizes = [self.extent(c, axis) for c in loop.carried if c.type == base.type]
        found = sizes[0] if sizes else NOT_NEGATIVE
        for size in sizes[1:]:
            found = found.joined(size)
        return found
