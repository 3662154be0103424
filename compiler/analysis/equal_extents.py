"""The extents that the entry of a function has found equal, where a check before a loop says so once more.

Such a check (`array.ENTRY_EQUAL`) never raises, and what it compares is defined before it: so its two numbers
are equal wherever both can be asked for, not behind the check alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array

Key = TypeVar("Key", bound=Hashable)


def found_equal(near: SSAValue) -> Iterator[tuple[SSAValue, SSAValue]]:
    """The pairs of extents that checks compare in the blocks around `near`."""
    block: Block | None = near.owner if isinstance(near.owner, Block) else near.owner.parent
    while block is not None:
        for op in block.ops:
            if isinstance(op, array.RaiseIfOp) and op.message.data == array.ENTRY_EQUAL:
                test = op.condition.owner
                if isinstance(test, arith.CmpiOp) and test.predicate.value.data == NOT_EQUAL:
                    yield test.lhs, test.rhs
        around: Operation | None = block.parent_op()
        block = None if around is None else around.parent


NOT_EQUAL = 1
"""The number of the predicate `ne`."""


def all_equal(numbers: Sequence[Key], pairs: Sequence[tuple[Key, Key]]) -> bool:
    """True where the numbers are one, by these pairs of equal ones."""
    group, grown = {numbers[0]}, True
    while grown:
        more = {n for pair in pairs if group.intersection(pair) for n in pair}
        grown = not more <= group
        group |= more
    return group.issuperset(numbers)


def equalities(condition: SSAValue) -> Iterator[tuple[SSAValue, SSAValue]]:
    """The pairs of numbers that are equal where `condition` is false."""
    work = [condition]
    while work:
        op = work.pop().owner
        if isinstance(op, arith.OrIOp):
            work += op.operands
        elif isinstance(op, arith.CmpiOp) and compares_extents(op):
            yield op.lhs, op.rhs


def compares_extents(op: arith.CmpiOp) -> bool:
    return op.predicate.value.data == NOT_EQUAL and isinstance(op.lhs.type, IndexType)
