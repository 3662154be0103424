"""How long the buffers of a list must be, decided when the function has been built.

Where the appends stand in loops whose counts are known when the list is made, their number is a bound,
and the buffers are arrays of that length::

    l = []                        %l = array.alloc(%x_0)
    for v in x:
        l.append(v * v)

Elsewhere (a `while`, a `break`, counts that the program computes on the way) they are `growable`: reserved
address space that becomes memory where it is touched, checked at each append.

Nests are bounds only where every iteration appends and nothing is taken away: a rare append in a large nest
should not cost the nest's memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Pure

from ....dialects import array
from ..facts import Facts
from .lists import Growth, ListObject, only_grows

FACTOR, TOO_LONG = 2**31, 2**59
"""A product of larger factors counts as a length for which there never is memory."""


def make_room(lists: Iterable[ListObject], facts: Facts) -> None:
    """Give each list's buffers the length that is known to suffice; the others stay growable.

    Of those no array may keep the memory: the next build copies them. Appended items of a list that only
    grows lie where nobody has been (`array.FRESH`).
    """
    for seq in lists:
        if only_grows(seq):
            for op in seq.appended:
                op.attributes[array.FRESH] = UnitAttr()
        if seq.buffers and isinstance(seq.buffers[0].owner, array.AllocOp):
            length = None if seq.passed or seq.taken_over else Room(seq).length()
            if length is not None:
                fix_length(seq, length)
            elif seq.lent and seq.key not in facts.unbounded_lists:
                facts.unbounded_lists.add(seq.key)
                facts.changed = True


def fix_length(seq: ListObject, length: SSAValue) -> None:
    for buffer in seq.buffers:
        alloc = buffer.owner
        assert isinstance(alloc, array.AllocOp)
        alloc.operands[0] = length
        del alloc.attributes[array.GROWABLE]
    for growth in seq.growths:
        growth.check.detach()
        growth.check.erase()


class Room:
    """The length of one list's buffers, computed before the first of them."""

    def __init__(self, seq: ListObject) -> None:
        self.list = seq
        first = seq.buffers[-1].owner  # each was put right behind the start
        assert isinstance(first, array.AllocOp)
        self.before: Operation = first
        self.made: dict[SSAValue, SSAValue] = {}

    def length(self) -> SSAValue | None:
        """The sum over the places that append; None where one has no bound."""
        products = [self.factors(g) for g in self.list.growths]
        if any(p is None or not all(map(self.is_available, p)) for p in products):
            return None
        totals = [self.product(p) for p in products if p is not None]
        if len(totals) == 1:
            return totals[0]
        total = self.constant(0)
        for one in totals:
            if array.constant_value(one) is None:
                one = self.emit(arith.MinSIOp(one, self.constant(TOO_LONG)))
            total = self.emit(arith.AddiOp(total, one))
        return total

    def factors(self, growth: Growth) -> list[SSAValue] | None:
        """What to multiply for one place: how much it appends, the counts of the loops around it."""
        found, always = [growth.amount], not self.list.shrinks
        block = growth.at.parent
        while block is not None and block is not self.list.home:
            op = block.parent_op()
            match op:
                case array.LoopOp() if op.count is not None and op.condition_block is None:
                    found.append(op.count)
                case scf.IfOp():
                    always = False
                case _:
                    return None
            block = op.parent
        if len(found) > 2 and not always:
            return None
        return found

    # Numbers at the list's start.

    def is_available(self, value: SSAValue) -> bool:
        """True where the value is known at the list's start, or pure code can compute it there."""
        owner = value.owner
        if isinstance(owner, Block):
            return self.encloses(owner)
        if self.is_earlier(owner):
            return True
        if owner.regions or not (owner.has_trait(Pure) or isinstance(owner, memref.DimOp)):
            return False
        return all(map(self.is_available, owner.operands))

    def encloses(self, block: Block) -> bool:
        return block.find_ancestor_op_in_block(self.before) is not None

    def is_earlier(self, op: Operation) -> bool:
        block = op.parent
        mine = None if block is None else block.find_ancestor_op_in_block(self.before)
        if mine is None:
            return False
        later = op.next_op
        while later is not None:
            if later is mine:
                return True
            later = later.next_op
        return False

    def value(self, value: SSAValue) -> SSAValue:
        """An available value, at the list's start."""
        owner = value.owner
        if isinstance(owner, Block) or self.is_earlier(owner):
            return value
        if value not in self.made:
            again = owner.clone({o: self.value(o) for o in owner.operands})
            self.insert(again)
            self.made.update(zip(owner.results, again.results, strict=True))
        return self.made[value]

    def product(self, factors: list[SSAValue]) -> SSAValue:
        known = 1
        unknown = list[SSAValue]()
        for factor in factors:
            constant = array.constant_value(factor)
            if constant is None:
                unknown.append(self.value(factor))
            else:
                known *= max(constant, 0)
        if known >= FACTOR:
            return self.constant(TOO_LONG)
        if not unknown:
            return self.constant(known)
        total = unknown[0]
        for other in [*unknown[1:], *([self.constant(known)] if known != 1 else [])]:
            total = self.times(total, other)
        return total

    def times(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The product; so large that no memory suffices where it could exceed 64 bits."""
        limit = self.constant(FACTOR)
        tests = [
            self.emit(arith.CmpiOp(x, limit, "sgt"))
            for x in (a, b)
            if array.constant_value(x) is None
        ]
        result = self.emit(arith.MuliOp(a, b))
        for test in tests:
            result = self.emit(arith.SelectOp(test, self.constant(TOO_LONG), result))
        return result

    def constant(self, value: int) -> SSAValue:
        return self.emit(arith.ConstantOp(IntegerAttr(value, IndexType())))

    def emit(self, op: Operation) -> SSAValue:
        self.insert(op)
        return op.results[0]

    def insert(self, op: Operation) -> None:
        op.location = self.before.location
        block = self.before.parent
        assert block is not None
        block.insert_op_before(op, self.before)
