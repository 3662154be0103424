"""Compute once, before a loop, the extents that all arrays have which change places in it.

Two grids that are swapped are two arguments. That they fit together the entry has checked
(`array.ENTRY_EQUAL`), and in each iteration the check is there once more, for the names of that iteration.
Where it holds for the arrays before the loop it holds in every order: what it compares is one number. Runs
before the derivative: both sweeps have index spaces that do not change, and zeros that one iteration leaves
are seen to be those that the next one adds to (`store-first`). The check of whole extents stays before all
loops: the plan reads there that what is saved of these arrays is as large in each iteration
(`analysis/equal_extents`).

Before::

    func.func @f(%n : index, %u : memref<?xf64>, %v : memref<?xf64>, %x : f64) {
      %c0 = arith.constant 0 : index
      %trips, %a, %b = array.loop %k to %n carry(%p = %u : memref<?xf64>, %q = %v : memref<?xf64>) do {
        %i = memref.dim %p, %c0 : memref<?xf64>
        %j = memref.dim %q, %c0 : memref<?xf64>
        %differ = arith.cmpi ne, %i, %j : index
        array.raise_if %differ, "SystemError", "mutad: extents differ that the entry has found equal"
        array.map(%j) outs(%p : memref<?xf64>) kinds ["store"] {
          array.yield %x : f64
        }
        array.yield %q, %p : memref<?xf64>, memref<?xf64>
      }
      func.return
    }

After::

    func.func @f(%n : index, %u : memref<?xf64>, %v : memref<?xf64>, %x : f64) {
      %c0 = arith.constant 0 : index
      %0 = arith.constant 0 : index
      %1 = memref.dim %u, %0 : memref<?xf64>
      %2 = arith.constant 0 : index
      %3 = memref.dim %v, %2 : memref<?xf64>
      %4 = arith.cmpi ne, %1, %3 : index
      array.raise_if %4, "SystemError", "mutad: extents differ that the entry has found equal"
      %i = memref.dim %u, %c0 : memref<?xf64>
      %trips, %a, %b = array.loop %k to %n carry(%p = %u : memref<?xf64>, %q = %v : memref<?xf64>) do {
        array.map(%i) outs(%p : memref<?xf64>) kinds ["store"] {
          array.yield %x : f64
        }
        array.yield %q, %p : memref<?xf64>, memref<?xf64>
      }
      func.return
    }

Kept: checks that the entry has not made, and extents of arrays that the loop makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.carried_cells import is_outside
from ..analysis.carried_shapes import rounds
from ..analysis.equal_extents import equalities
from ..analysis.views import strip_casts
from .memory_effects import functions

ARITHMETIC = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.MaxSIOp, arith.MinSIOp)

Key = tuple[object, ...]
"""What a number is of the extents of one carried array, whichever that is."""


@dataclass(frozen=True)
class CarriedExtents(ModulePass):
    """Replace extents of arrays that a loop permutes by those before the loop."""

    name = "carried-extents"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for loop in reversed(ops_of_kind(function, array.LoopOp)):
                Carried(loop).settle()


class Carried:
    """The arrays that a loop carries, and what the entry has found equal of them."""

    def __init__(self, loop: array.LoopOp) -> None:
        self.loop, self.body = loop, loop.body.block

    def settle(self) -> None:
        for slots in rounds(self.loop):
            agreed = Agreed(slots)
            for check in self.checks():
                for one, other in equalities(check.condition):
                    agreed.learn(self.key(one), self.key(other))
            for key in agreed.settled():
                match key:
                    case ("extent", int(axis)):
                        self.check_before(axis, slots)
                    case _:
                        pass
                self.replace(key, slots)
        for check in self.checks():
            if all(a is b for a, b in equalities(check.condition)):
                condition = check.condition
                Rewriter.erase_op(check)
                erase_unused(condition)

    def checks(self) -> list[array.RaiseIfOp]:
        """What the entry has found, said once more."""
        raising = (op for op in self.body.ops if isinstance(op, array.RaiseIfOp))
        return [op for op in raising if op.message.data == array.ENTRY_EQUAL]

    def key(self, value: SSAValue) -> tuple[Key, int] | None:
        """The number, and the slot of the array that it is of."""
        found: set[int] = set()
        key = self.part(value, found)
        return (key, found.pop()) if key is not None and len(found) == 1 else None

    def part(self, value: SSAValue, slots: set[int]) -> Key | None:
        constant = array.constant_value(value)
        if constant is not None:
            return "number", constant
        if is_outside(value, self.loop):
            return "value", value
        op = value.owner
        if isinstance(op, memref.DimOp):
            source, axis = strip_casts(op.source), array.constant_value(op.index)
            if (
                not isinstance(source, BlockArgument)
                or source.owner is not self.body
                or axis is None
            ):
                return None
            slots.add(source.index - 1)
            return "extent", axis
        if isinstance(op, ARITHMETIC) and op.parent is self.body:
            parts = [self.part(operand, slots) for operand in op.operands]
            return None if None in parts else (op.name, *parts)
        return None

    def check_before(self, axis: int, slots: frozenset[int]) -> None:
        """Say before all loops that the arrays which this one begins with are as long as each other."""
        first, *others = (strip_casts(self.loop.carried[slot]) for slot in sorted(slots))
        ahead = self.loop
        while isinstance(around := ahead.parent_op(), array.LoopOp):
            if not all(is_outside(one, around) for one in (first, *others)):
                return  # a loop around it would check in each iteration
            ahead = around
        builder = Builder(InsertPoint.before(ahead))
        for other in others:
            if other is not first:
                one, two = (extent(base, axis, builder) for base in (first, other))
                differ = builder.insert(arith.CmpiOp(one, two, "ne"))
                check = array.RaiseIfOp(differ.result, "SystemError", array.ENTRY_EQUAL)
                builder.insert(check).location = self.loop.location

    def replace(self, key: Key, slots: frozenset[int]) -> None:
        """Use the number of the array before the loop."""
        before: SSAValue | None = None
        for op in self.body.ops:
            if len(op.results) != 1 or not isinstance(op, (memref.DimOp, *ARITHMETIC)):
                continue
            found = self.key(op.results[0])
            if found is None or found[0] != key or found[1] not in slots:
                continue
            before = before or self.outside(op.results[0], {}, min(slots))
            Rewriter.replace_op(op, [], [before])

    def outside(self, value: SSAValue, known: dict[SSAValue, SSAValue], slot: int) -> SSAValue:
        """The same number of what a slot begins with."""
        op = value.owner
        if is_outside(value, self.loop):
            return value
        if isinstance(value, BlockArgument):
            return self.loop.carried[slot]
        if value not in known:
            assert not isinstance(op, Block)
            made = op.clone({v: self.outside(v, known, slot) for v in op.operands})
            made.location = op.location
            block = self.loop.parent
            assert block is not None
            block.insert_op_before(made, self.loop)
            known[value] = made.results[0]
        return known[value]


def extent(base: SSAValue, axis: int, builder: Builder) -> SSAValue:
    if isinstance(base.owner, array.AllocOp | array.AnyView):
        return base.owner.extents[axis]
    number = builder.insert(arith.ConstantOp(IntegerAttr(axis, IndexType())))
    return builder.insert(memref.DimOp(base, number.result)).result


def erase_unused(condition: SSAValue) -> None:
    """Erase what only a check has asked."""
    op = condition.owner
    if isinstance(op, arith.OrIOp | arith.CmpiOp) and condition.first_use is None:
        operands = tuple(op.operands)
        Rewriter.erase_op(op)
        for one in operands:
            erase_unused(one)


class Agreed:
    """The numbers of a round of slots that are the same for all of its arrays."""

    def __init__(self, slots: frozenset[int]) -> None:
        self.slots = slots
        self.groups: dict[Key, list[set[int]]] = {}

    def learn(self, one: tuple[Key, int] | None, other: tuple[Key, int] | None) -> None:
        if one is None or other is None or one[0] != other[0]:
            return
        pair = {one[1], other[1]}
        groups = self.groups.setdefault(one[0], [])
        joined = pair.union(*(g for g in groups if g & pair))
        self.groups[one[0]] = [joined, *(g for g in groups if not g & pair)]

    def settled(self) -> Iterator[Key]:
        for key, groups in self.groups.items():
            if any(self.slots <= group for group in groups):
                yield key
