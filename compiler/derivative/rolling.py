"""Reverse cells in the reverse sweep: what each holds, where its updates are undone (see `rollback`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from .inversions import undone
from .rollback import Either, Inverse, Rolled, Selected, Stretch, Undo, above, inner_leaves, leaves
from .segments import value_block
from .sweeps import Primal, Sweep


class Rolling:
    """The reverse cells of one gradient function."""

    def __init__(self, primal: Primal, rolled: dict[SSAValue, Rolled]) -> None:
        self.primal = primal
        self.rolled = rolled
        self.cells: dict[Stretch, SSAValue] = {}
        self.started_in: dict[Block, list[Stretch]] = {}
        self.loads_of: dict[Block, list[SSAValue]] = {}
        self.updates: dict[Operation, tuple[Stretch, Undo]] = {}
        """Each store that is undone."""
        self.reversed: set[Operation] = set()
        """The stores, and the ops around them."""
        for value, one in rolled.items():
            self.loads_of.setdefault(value_block(value), []).append(value)
            if one.is_nested:
                if one.stretch not in self.started_in.setdefault(one.stretch.block, []):
                    self.started_in[one.stretch.block].append(one.stretch)
                for store in one.updates:
                    self.updates[store] = one.stretch, one.updates[store]
                    self.reversed |= {store, *above(store)}

    def open(self, block: Block) -> None:
        """Start the reverse cells of a block, and have all that is rolled back in it.

        At once: where a branch is reversed, what it did can no longer be undone from outside.
        """
        for stretch in self.started_in.get(block, ()):
            last = self.primal.get(stretch.last)
            self.primal.prologues.append(block, memref.StoreOp.get(last, self._cell(stretch), []))
        for value in self.loads_of.get(block, ()):
            self.primal.get(value)

    def value(self, rolled: Rolled, block: Block) -> SSAValue | None:
        """A value, in the prologue of its block; None where the reverse of that is not open."""
        if not rolled.is_nested:
            last = self.primal.get(rolled.stretch.last)
        elif self.primal.is_open(block):
            load = memref.LoadOp.get(self._cell(rolled.stretch), [])
            load.location = rolled.at.location
            last = self.primal.prologues.append(block, load)
        else:
            return None
        return self._undone(rolled.undo, last, block)

    def reverse_store(self, sweep: Sweep, op: memref.StoreOp) -> None:
        """Undo a store, where it is reversed."""
        stretch, undo = self.updates[op]
        block = cast(Block, op.parent)
        for value in leaves(undo):
            home = value_block(value)
            if home is self.primal.top or self.primal.is_open(home):
                self.primal.get(value)
        cell = self._cell(stretch)
        after = sweep.emit(memref.LoadOp.get(cell, []))
        with self.primal.at_place(block, sweep.block):
            before = self._undone(undo, after, block)
        sweep.append(memref.StoreOp.get(before, cell, []))

    def _cell(self, stretch: Stretch) -> SSAValue:
        if stretch not in self.cells:
            element = cast(MemRefType[Attribute], stretch.cell.type).element_type
            cell = self.primal.prologues.cell(element, stretch.end.location)
            cell.name_hint = f"{stretch.cell.name_hint or 'cell'}_back"
            self.cells[stretch] = cell
        return self.cells[stretch]

    def _undone(self, undo: Undo, value: SSAValue, block: Block) -> SSAValue:
        """The value before, in the prologue of the reverse of `block`."""
        for step in undo:
            match step:
                case Inverse():
                    op = undone(step.op, step.operand, value, self.primal.get)
                    op.location = step.op.location
                    value = self.primal.prologues.append(block, op)
                case Selected():
                    value = self._select(step.op.cond, step.sides, value, block)
                case Either() if not inner_leaves((step,), block):
                    value = self._select(step.branch.cond, step.sides, value, block)
                case Either():
                    value = self._of_either(step, value)
        return value

    def _select(
        self, condition: SSAValue, sides: Sequence[Undo], value: SSAValue, block: Block
    ) -> SSAValue:
        """Both sides undone, and a choice: no branch to be guessed wrong."""
        first, second = (self._undone(side, value, block) for side in sides)
        choice = arith.SelectOp(self.primal.get(condition), first, second)
        return self.primal.prologues.append(block, choice)

    def _of_either(self, step: Either, value: SSAValue) -> SSAValue:
        def side(index: int, home: Block) -> list[SSAValue]:
            return [self._undone(step.sides[index], value, home)]

        (chosen,) = self.primal.either(step.branch, side)
        return chosen
