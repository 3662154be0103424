"""After a check that two numbers agree, use one of them for both.

Broadcasting and in-place updates check extents; whoever gets past the check knows that they are
equal. Runs before fusion, which wants one index space for producer and consumer, and before the
derivative, whose sweeps inherit it.

Before::

    func.func @f(%n : index, %m : index) -> index {
      %differ = arith.cmpi ne, %n, %m : index
      array.raise_if %differ, "ValueError", "{} is not {}" (%n, %m : index, index)
      %s = arith.addi %m, %m : index
      func.return %s : index
    }

After::

    func.func @f(%n : index, %m : index) -> index {
      %differ = arith.cmpi ne, %n, %m : index
      array.raise_if %differ, "ValueError", "{} is not {}" (%n, %m : index, index)
      %s = arith.addi %n, %n : index
      func.return %s : index
    }

A check may combine several comparisons by `or`: past it each is false. All numbers that are equal get one
name: a constant; of extents of one array that of the later axis, by which rows are known to lie one behind
the other; else the one that maps and arrays before the check have, as those keep it. What follows from an
`and` is not used, nor what an `scf.if` tests.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ..analysis.equal_extents import equalities
from .memory_effects import functions


@dataclass(frozen=True)
class UnifyExtents(ModulePass):
    """Replace a number by the equal one that a check compared it with."""

    name = "unify-extents"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            unify_in(function.body.block, {}, set(), {})


def unify_in(
    block: Block,
    equal: dict[SSAValue, SSAValue],
    used: set[SSAValue],
    order: dict[Operation, int],
) -> None:
    """Replace within `block`; `equal` holds on entry, and is as it was again at the end.

    `used` are the numbers that maps, views and arrays so far have; `order` numbers the ops so far.
    """
    learnt: list[SSAValue] = []
    for op in block.ops:
        order[op] = len(order)
        if equal:
            for k, operand in enumerate(op.operands):
                if operand in equal:
                    op.operands[k] = name_of(operand, equal)
        for region in op.regions:
            for inner in region.blocks:
                unify_in(inner, equal, used, order)
        if isinstance(op, array.RaiseIfOp):
            for pair in equalities(op.condition):
                names = [name_of(v, equal) for v in pair]
                if is_before(names[1], names[0], order):
                    names.reverse()
                kept, other = sorted(names, key=lambda v: rank(v, used))
                if goes_along_rows(other, kept):
                    kept, other = other, kept
                if kept is not other:
                    equal[other] = kept
                    learnt.append(other)
        elif isinstance(op, array.MapOp | array.ViewOp | array.AllocOp):
            used.update(op.operands)
    for value in learnt:
        del equal[value]


def name_of(value: SSAValue, equal: dict[SSAValue, SSAValue]) -> SSAValue:
    while value in equal:
        value = equal[value]
    return value


def goes_along_rows(one: SSAValue, other: SSAValue) -> bool:
    """Whether they are extents of one array, and the first is that of the later axis."""
    a, b = one.owner, other.owner
    if isinstance(a, memref.DimOp) and isinstance(b, memref.DimOp) and a.source is b.source:
        first, second = array.constant_value(a.index), array.constant_value(b.index)
        return first is not None and second is not None and first > second
    return False


def rank(value: SSAValue, used: set[SSAValue]) -> int:
    """The least one's name is kept; of the same rank the first one's, of which others are made already."""
    return 0 if array.constant_value(value) is not None else 1 if value in used else 2


def is_before(a: SSAValue, b: SSAValue, order: dict[Operation, int]) -> bool:
    """Whether a number is there first, of two of one block."""
    x, y = a.owner, b.owner
    if not isinstance(x, Operation) or not isinstance(y, Operation) or x.parent is not y.parent:
        return False
    return order[x] < order[y]
