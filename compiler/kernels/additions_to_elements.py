"""What iterations of a loop add to elements of arrays: part of `updates` and of `gathered_sums`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ..analysis.carried_cells import is_outside
from ..analysis.independence import Addition, addition
from ..analysis.views import strip_views
from .kernel import Writer

Place = tuple[SSAValue, tuple[SSAValue, ...]]
"""An array, and the subscripts of an element."""


def place_of_addition(one: Addition) -> Place:
    return one.store.memref, tuple(one.store.indices)


def is_uniform(one: Addition, loop: array.LoopOp) -> bool:
    """Whether all iterations add to one element."""
    target, indices = place_of_addition(one)
    return all(is_outside(v, loop) for v in (target, *indices))


def additions_to(loop: array.LoopOp, bases: Sequence[SSAValue]) -> list[Addition]:
    """What a loop does to arrays that it only adds to (`Independent.summed`)."""
    loads = (op for op in loop.walk() if isinstance(op, memref.LoadOp))
    found = (addition(op, free=True) for op in loads if strip_views(op.memref) in bases)
    return [one for one in found if one is not None]


def put_before(place: Operation, new: Operation) -> None:
    Rewriter.insert_op(new, InsertPoint.before(place))


def make_local(one: Addition, cell: SSAValue) -> None:
    """Let a variable add up."""
    here = Writer(partial(put_before, one.store), one.store.location)
    here.store(one.store.value, cell)
    one.load.operands = [cell]
    Rewriter.erase_op(one.store)


def steps_of(values: Sequence[SSAValue], loop: array.LoopOp) -> set[Operation]:
    """The ops of a loop that values are computed by."""
    found: set[Operation] = set()
    pending = list(values)
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner not in found and loop.is_ancestor(owner):
            found.add(owner)
            pending.extend(owner.operands)
    return found
