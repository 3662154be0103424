"""How far out of the loops around it something that only reads may be computed.

What checks look at (`inspect_checks`) and the order of iterations that meet (`sorted_kernels`) often come
from arrays that no loop around changes: the cells of a river, in each step of a model. Then they are computed
once. As the program may not read these elements at all, they are read only where there are any.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeGuard

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis, enclosing_loops
from ..analysis.carried_cells import cell_of, is_outside
from ..rules import writes
from .kernel import Writer, args_of, element_of, is_in_range, zero_of


def place_of(loop: array.LoopOp, ops: Collection[Operation], alias: AliasAnalysis) -> array.LoopOp:
    """The outermost loop before which `ops`, which are those of a loop, compute the same."""
    found = loop
    for around in reversed(enclosing_loops(loop)):
        if not are_invariant(loop, ops, around, alias):
            break
        found = around
    return found


def are_invariant(
    loop: array.LoopOp, ops: Collection[Operation], around: array.LoopOp, alias: AliasAnalysis
) -> bool:
    own = {loop.induction, *(v for op in ops for v in (*op.results, *args_of(op)))}
    used = {v for op in ops for v in op.operands} - own
    if loop.count is None or not all(is_outside(v, around) for v in (loop.count, *used)):
        return False
    read = {op.memref for op in ops if is_element(op)}
    written = [access.memref for op in every_op(around) for access in writes(op)]
    return not any(alias.may_alias(m, w) for m in read for w in written)


def is_element(op: Operation) -> TypeGuard[memref.LoadOp]:
    """Whether an op reads an element of an array."""
    return isinstance(op, memref.LoadOp) and cell_of(op.memref) is None


def load_if_there(writer: Writer, source: SSAValue, at: list[SSAValue]) -> SSAValue:
    """An element, or 0 where there is none."""
    element = element_of(source)
    return writer.either(
        is_in_range(writer, source, at),
        element,
        lambda: writer.load(source, at),
        lambda: writer.emit(zero_of(element)),
    )
