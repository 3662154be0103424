"""Checks without exceptions: the first that fails is noted in a variable, and nothing runs behind it.

::

    array.raise_if %bad, "ValueError", "…"       if %bad: failed = 1
    memref.store %x, %u[%i]                      if failed == 0:
                                                   memref.store %x, %u[%i]

So no element is read at a subscript that is out of range, nothing is divided by a zero that was refused, and
what is stored is what is stored before the exception. Loops around a check go on without doing anything,
and a `while` ends.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, LocationAttr, UnitAttr, i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from .kernel import Writer, zero_of

PLAIN: dict[type[Operation], type[arith.AddiOp | arith.SubiOp | arith.MuliOp]] = {
    array.CheckedAddOp: arith.AddiOp,
    array.CheckedSubOp: arith.SubiOp,
    array.CheckedMulOp: arith.MuliOp,
}

LEAST, HALF, MOST_HALF = -(1 << 63), -(1 << 31), (1 << 31) - 1


class Predication:
    """Rewrites what holds checks; `note` writes what is to be remembered of one, where it fails."""

    def __init__(self, failed: SSAValue, note: Callable[[Writer, Operation], None]) -> None:
        self.failed, self.note = failed, note

    def loop(self, loop: array.LoopOp) -> None:
        """The loop around checks; it may come here with a check that has failed."""
        if loop.condition_block is None:
            self.guard(Behind(loop.body.block, loop.location))
        else:
            self.block(loop.condition_block)
            last = loop.condition_block.last_op
            assert last is not None
            before = Writer(inserting_before(last), last.location)
            last.operands = [before.all([last.operands[0], self.fine(before)])]
            self.block(loop.body.block)

    def block(self, block: Block) -> None:
        for op in block.ops:
            if array.is_operation_that_may_raise(op):
                place = Behind(block, op.location, op)
                self.check(Writer(place.add, op.location), op)
            elif may_raise_within(op):
                place = Behind(block, op.location, op)
                self.within(op)
            else:
                continue
            return self.guard(place)
        return None

    def within(self, op: Operation) -> None:
        if isinstance(op, array.LoopOp):
            self.loop(op)
            return
        for block in (b for region in op.regions for b in region.blocks):
            self.block(block)

    def guard(self, place: Behind) -> None:
        """What follows in the block, in a branch; what the block's end takes from it is 0 elsewhere."""
        end = place.block.last_op
        assert end is not None
        rest = place.rest()
        if not rest:
            return
        values = list(dict.fromkeys(v for v in end.operands if v.owner in rest))
        here = Writer(place.add, place.location)
        fine = self.fine(here)
        inside, outside = Block(), Block()
        for op in rest:
            op.detach()
            inside.add_op(op)
        with here.within(inside):
            here.add(scf.YieldOp(*values))
        with here.within(outside):
            here.add(scf.YieldOp(*(here.emit(zero_of(v.type)) for v in values)))
        otherwise = Region(outside) if values else Region()
        branch = scf.IfOp(fine, [v.type for v in values], Region(inside), otherwise)
        here.add(branch)
        found = dict(zip(values, branch.results, strict=True))
        end.operands = [found.get(v, v) for v in end.operands]
        self.block(inside)

    def fine(self, here: Writer) -> SSAValue:
        return here.emit(arith.CmpiOp(here.load(self.failed), here.index(0), "eq"))

    def check(self, behind: Writer, op: Operation) -> None:
        """The check's place is taken by what notes that it fails."""
        if isinstance(op, array.RaiseIfOp):
            self.note_where(behind, op.condition, op)
            Rewriter.erase_op(op)
        elif isinstance(op, array.IndexOp):
            low = behind.less(op.result, behind.index(0))
            high = behind.emit(arith.CmpiOp(op.result, op.extent, "sge"))
            self.note_where(behind, behind.emit(arith.OrIOp(low, high)), op)
            op.properties["unchecked"] = UnitAttr()
        else:
            assert isinstance(op, array.CheckedIntOp)
            found = behind.emit(PLAIN[type(op)](op.lhs, op.rhs))
            found.name_hint = op.result.name_hint
            self.note_where(behind, overflows(behind, op, found), op)
            Rewriter.replace_op(op, [], [found])

    def note_where(self, behind: Writer, bad: SSAValue, op: Operation) -> None:
        with behind.where(bad):
            self.note(behind, op)


class Behind:
    """Puts ops one after the other behind an op, or at the start of a block."""

    def __init__(self, block: Block, location: LocationAttr, last: Operation | None = None) -> None:
        self.block, self.location, self.last = block, location, last

    def add(self, new: Operation) -> None:
        last = self.last
        point = InsertPoint.at_start(self.block) if last is None else InsertPoint.after(last)
        Rewriter.insert_op(new, point)
        self.last = new

    def rest(self) -> list[Operation]:
        """What follows in the block, but its end."""
        ops = list(self.block.ops)[:-1]
        return ops if self.last is None else ops[ops.index(self.last) + 1 :]


def inserting_before(op: Operation) -> Callable[[Operation], None]:
    return lambda new: Rewriter.insert_op(new, InsertPoint.before(op))


def may_raise_within(op: Operation) -> bool:
    return bool(op.regions) and any(map(array.is_operation_that_may_raise, op.walk()))


def overflows(here: Writer, op: array.CheckedIntOp, found: SSAValue) -> SSAValue:
    """Whether a sum, difference or product, which is `found` in 64 bits, does not fit in them.

    A sum that does not has the sign of neither term, a difference not that of the first.
    """
    lhs, rhs = op.lhs, op.rhs
    if isinstance(op, array.CheckedMulOp):
        return product_overflows(here, lhs, rhs, found)
    other = found if isinstance(op, array.CheckedAddOp) else lhs
    signs = here.emit(arith.XOrIOp(found, lhs)), here.emit(arith.XOrIOp(other, rhs))
    return here.less(here.emit(arith.AndIOp(*signs)), here.index(0))


def product_overflows(here: Writer, lhs: SSAValue, rhs: SSAValue, found: SSAValue) -> SSAValue:
    """By a division, which devices are slow at, but for factors of 32 bits."""

    def is_small(value: SSAValue) -> SSAValue:
        least, most = here.index(HALF), here.index(MOST_HALF)
        return here.all(
            [
                here.emit(arith.CmpiOp(least, value, "sle")),
                here.emit(arith.CmpiOp(value, most, "sle")),
            ]
        )

    def by_division() -> SSAValue:
        minus = here.emit(arith.CmpiOp(lhs, here.index(-1), "eq"))
        zero = here.emit(arith.CmpiOp(lhs, here.index(0), "eq"))
        either = here.emit(arith.OrIOp(minus, zero))
        divisor = here.emit(
            arith.SelectOp(either, here.index(1), lhs)
        )  # of these no quotient is asked
        quotient = here.emit(arith.DivSIOp(found, divisor))
        differs = here.emit(arith.CmpiOp(quotient, rhs, "ne"))
        least = here.emit(arith.CmpiOp(rhs, here.index(LEAST), "eq"))
        return here.emit(arith.SelectOp(either, here.all([minus, least]), differs))

    small = here.all([is_small(lhs), is_small(rhs)])
    return here.either(
        small, i1, lambda: here.emit(arith.ConstantOp(IntegerAttr(0, i1))), by_division
    )
