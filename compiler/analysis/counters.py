"""Variables to which each iteration of a loop adds a bounded number.

Python's ints raise where 64 bits do not suffice. A counter never gets there: it begins with some number,
and is greater by so many steps at most as iterations came before::

    memref.store %c0, %count[]
    array.loop %j to %n do {
      %1 = memref.load %count[]                  // at least 0, at most %j
      %2 = scf.if %c -> (index) {
        %3 = array.checked_add %1, %c1
        scf.yield %3
      } else {
        scf.yield %1
      }
      memref.store %2, %count[]                  // %1, or one more
    }
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, memref, scf
from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..rules import accesses
from .affine import Affine, Subscripts
from .alias import if_blocks
from .carried_cells import cell_of, is_cell

DEPTH = 12
"""Choices and steps that follow each other more often are given up."""


@dataclass(frozen=True)
class Counter:
    """A variable to which each iteration adds between `least` and `most`."""

    first: Affine
    least: int
    most: int
    iteration: SSAValue
    """How many iterations came before."""

    def extreme(self, greatest: bool) -> Affine:
        """A bound at the beginning of an iteration."""
        return self.first + Affine({self.iteration: self.most if greatest else self.least})


def counter_of(loaded: SSAValue, subscripts: Subscripts) -> Counter | None:
    """What is known of the variable that was loaded; None where it is no counter.

    The load begins the iteration, and a store ends it; nothing else in the loop uses the variable.
    """
    load = loaded.owner
    assert isinstance(load, memref.LoadOp)
    loop = load.parent_op()
    if not isinstance(loop, array.LoopOp) or not is_cell(load.memref):
        return None
    if load.parent is not loop.body.block or loop.condition_block is not None:
        return None
    first = stored_before(loop, load.memref)
    uses = [op for op in every_op(loop) if touches(op, load.memref)]
    if first is None or len(uses) != 2 or uses[0] is not load:
        return None
    store = uses[1]
    if not isinstance(store, memref.StoreOp) or store.parent is not load.parent:
        return None
    steps = steps_from(loaded, store.value)
    return None if steps is None else Counter(subscripts.affine(first), *steps, loop.induction)


def touches(op: Operation, cell: SSAValue) -> bool:
    return any(cell_of(a.memref) is cell for a in accesses(op))


def stored_before(loop: array.LoopOp, cell: SSAValue) -> SSAValue | None:
    """What the variable holds where the loop is entered, if a store in the loop's block says so."""
    op = loop.prev_op
    while op is not None:
        if isinstance(op, memref.StoreOp) and op.memref is cell:
            return op.value
        if any(touches(inner, cell) for inner in op.walk()) and not isinstance(op, memref.LoadOp):
            return None
        op = op.prev_op
    return None


def steps_from(start: SSAValue, value: SSAValue, depth: int = 0) -> tuple[int, int] | None:
    """The least and the most by which the value is greater than `start`; None where that is not known."""
    if value is start:
        return 0, 0
    op = value.owner
    ways: list[SSAValue] = []
    match op:
        case arith.AddiOp() | array.CheckedAddOp():
            for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
                step, base = array.constant_value(other), None
                if step is not None and depth < DEPTH:
                    base = steps_from(start, one, depth + 1)
                if step is not None and base is not None:
                    return base[0] + step, base[1] + step
            return None
        case arith.SelectOp():
            ways = [op.lhs, op.rhs]
        case scf.IfOp():
            ends = [block.last_op for block in if_blocks(op)]
            ways = [end.operands[cast("OpResult", value).index] for end in ends if end is not None]
        case _:
            pass
    bounds = [steps_from(start, way, depth + 1) if depth < DEPTH else None for way in ways]
    known = [b for b in bounds if b is not None]
    if not known or len(known) < len(bounds):
        return None
    return min(low for low, _ in known), max(high for _, high in known)
