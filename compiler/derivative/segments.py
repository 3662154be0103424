"""Where saved values lie, and what is plain enough to be computed again anywhere.

A saved value is an element of a segment that is indexed by the loops around it, as far out as
their counts are known: `rectangular`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import cast

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import Float32Type, Float64Type, IndexType, IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import Pure

from ...dialects import array


def rectangular(
    at: Operation, own: list[SSAValue] | None, skipped: Collection[array.LoopOp] = ()
) -> tuple[tuple[array.LoopOp, ...], Operation]:
    """The enclosing loops that can index one segment, and the op before which it is pushed.

    Outwards from `at` as long as each loop has a count and all counts and extents are known before it.
    Of the loops `skipped`, in which the value does not change, no count is asked for.
    """
    loops: list[array.LoopOp] = []
    push_before = at
    numbers = list(own or [])
    op: Operation | None = at.parent_op()
    while op is not None and not isinstance(op, func.FuncOp):
        if not isinstance(op, array.LoopOp):
            break
        count = op.count
        if op not in skipped:
            if own is None or count is None or op.condition_block is not None:
                break
            numbers.append(count)
            loops.insert(0, op)
        if not all(known_before(n, op) for n in numbers):
            if op not in skipped:
                del loops[0]
            break
        push_before = op
        op = op.parent_op()
    return tuple(loops), push_before


def known_before(value: SSAValue, loop: Operation) -> bool:
    """True when `value` is defined outside `loop`, or is pure code on such values."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        v = pending.pop()
        if v in seen or not loop.is_ancestor(cast(Operation, value_block(v).parent_op())):
            continue
        seen.add(v)
        op = v.owner
        if not isinstance(op, Operation) or not is_recomputable(op):
            return False
        pending.extend(op.operands)
    return True


def base_extents(base: SSAValue) -> list[SSAValue] | None:
    """The SSA values of an array's extents; None where they must be asked at run time.

    An argument's extents are asked at run time too, but anywhere: its list is empty.
    """
    owner = base.owner
    if isinstance(owner, array.AllocOp):
        return list(owner.extents)
    if isinstance(owner, memref.AllocaOp):
        return []
    if isinstance(owner, Block) and isinstance(owner.parent_op(), func.FuncOp):
        return []
    return None


def enclosing_loops(block: Block) -> Iterator[array.LoopOp]:
    op = block.parent_op()
    while op is not None:
        if isinstance(op, array.LoopOp):
            yield op
        op = op.parent_op()


def value_block(value: SSAValue) -> Block:
    owner = value.owner
    if isinstance(owner, Block):
        return owner
    block = owner.parent_block()
    assert block is not None
    return block


def comes_before(a: Operation, b: Operation) -> bool:
    """True when `a` stands before `b` in the block they share."""
    op: Operation | None = a
    while op is not None:
        if op is b:
            return True
        op = op.next_op
    return False


def is_recomputable(op: Operation) -> bool:
    """Pure scalar code (and views): the same operands give the same result, at little cost.

    A subscript check or an overflow check has passed once and passes again.
    """
    if isinstance(op, array.IndexOp | array.CheckedIntOp):
        return True
    if isinstance(op, memref.LoadOp | memref.DimOp | memref.AllocaOp) or op.regions:
        return False
    if isinstance(op, memref.CastOp | array.AnyView) or op.has_trait(Pure):
        return True
    return op.name.startswith(("arith.", "math.")) and not isinstance(op, scf.IfOp)


def bytes_of(type_: Attribute) -> int:
    """The size of one element in memory."""
    match type_:
        case Float64Type() | IndexType():
            return 8
        case Float32Type():
            return 4
        case IntegerType():
            return max(1, type_.width.data // 8)
        case _:
            raise AssertionError(f"no size for {type_}")
