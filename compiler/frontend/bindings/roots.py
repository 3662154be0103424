"""Which memory an array is, asked while the function is being built and when it is done.

A root is an argument or an allocation. Views, casts, branches and what loops carry are seen through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ....dialects import array
from ... import rules
from ..emitter import Emitter, is_placeholder
from ..library import overlap


def roots(
    e: Emitter, value: SSAValue, taken: Mapping[Operation, Region] = overlap.NO_BRANCHES
) -> frozenset[SSAValue]:
    """The arguments and allocations that `value` may be; placeholders of unbound names are nothing."""
    return frozenset(r for r in overlap.roots(e, value, taken) if not is_placeholder(r))


def branches_to(op: Operation) -> dict[Operation, Region]:
    """The branches around an op, and the sides that it is on."""
    found = dict[Operation, Region]()
    region = op.parent_region()
    while region is not None and (above := region.parent_op()) is not None:
        if isinstance(above, scf.IfOp):
            found[above] = region
        region = above.parent_region()
    return found


def is_fresh_in(root: SSAValue, block: Block) -> bool:
    """True for an array allocated in `block` or in a block inside it."""
    owner = root.owner
    return isinstance(owner, array.AllocOp) and is_inside(owner, block)


def is_inside(op: Operation, block: Block) -> bool:
    while op.parent is not None:
        if op.parent is block:
            return True
        above = op.parent.parent_op()
        if above is None:
            return False
        op = above
    return False


def is_made_in(value: SSAValue, block: Block) -> bool:
    """True for what `block`, or a block inside it, computes or has for argument."""
    owner = value.owner
    if not isinstance(owner, Block):
        return is_inside(owner, block)
    above = owner.parent_op()
    return owner is block or (above is not None and is_inside(above, block))


def writes(op: Operation) -> tuple[SSAValue, ...]:
    """The arrays that the op itself stores to; cells are no arrays."""
    written = (write.memref for write in rules.writes(op))
    return tuple(a for a in written if not isinstance(a.owner, memref.AllocaOp))


def accesses(op: Operation) -> Iterator[SSAValue]:
    """The arrays whose elements the op reads or writes."""
    nothing = memref.DimOp | array.StrideOp | array.OverlapOp | array.AnyView | memref.CastOp
    if isinstance(op, nothing | array.LoopOp | array.YieldOp):
        return
    for operand in op.operands:
        if isinstance(operand.type, MemRefType) and not isinstance(operand.owner, memref.AllocaOp):
            yield operand


def choices(value: SSAValue) -> list[SSAValue]:
    """The arrays that `value` may be, one of them at a time: through casts, branches and loops."""
    found, pending, seen = list[SSAValue](), [value], set[SSAValue]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        match owner:
            case memref.CastOp():
                pending.append(owner.source)
            case scf.IfOp():
                number = list(owner.results).index(value)  # pyright: ignore
                lasts = (region.block.last_op for region in owner.regions)
                pending += [last.operands[number] for last in lasts if last is not None]
            case array.LoopOp():
                pending += owner.carried
            case _ if not is_placeholder(value):
                found.append(value)
            case _:
                pass
    return found


def is_root(value: SSAValue) -> bool:
    """True for an argument or an allocation."""
    return isinstance(value, BlockArgument) or isinstance(value.owner, array.AllocOp)
