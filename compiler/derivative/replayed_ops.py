"""What the ops of a replayed loop are (`replays`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import array
from ..analysis.views import strip_views
from ..rules import Contents
from .overwritten import Overwritten
from .plan import Save
from .versions import Version


def base_of(save: Save) -> SSAValue | None:
    """The array whose contents are saved."""
    match save.node:
        case Version(base=base):
            return base
        case Overwritten(target=target):
            return strip_views(target)
        case Contents() as read:
            return strip_views(read.memref)
        case _:
            return None


def is_set_first(base: SSAValue, loop: array.LoopOp) -> bool:
    """Whether a variable holds nothing from one iteration to the next, and adds nothing up."""
    if not isinstance(base.owner, memref.AllocaOp):
        return False
    users = {use.operation for use in base.uses}
    inside = [op for op in loop.walk() if op in users]
    if not inside:
        return False
    stores = [op for op in inside if isinstance(op, memref.StoreOp)]
    known = all(isinstance(op, memref.LoadOp | memref.StoreOp) for op in inside)
    first = inside[0] in stores and inside[0].parent is loop.body.block
    return known and first and not any(base in cells_read(op.value) for op in stores)


def cells_read(value: SSAValue) -> Iterator[SSAValue]:
    """The variables that a value is computed from, in its block."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        part = pending.pop()
        if part in seen or not isinstance(part.owner, Operation):
            continue
        seen.add(part)
        if isinstance(part.owner, memref.LoadOp):
            yield part.owner.memref
        pending += [o for o in part.owner.operands if not isinstance(o.type, MemRefType)]


def is_column(view: array.ViewOp) -> bool:
    return view.source_dims == (0,) and len(view.offsets) == 2


def is_sum(op: Operation) -> bool:
    """A map that adds up all its points, a product, or what a loop hands on in a variable."""
    if isinstance(op, memref.StoreOp):
        return isinstance(op.memref.owner, memref.AllocaOp)
    if not isinstance(op, array.MapOp):
        return isinstance(op, array.MatmulOp)
    return any(
        kind == "add" and 0 in array.strides_of(cast(MemRefType[Attribute], out.type))
        for kind, out in zip(op.out_kinds, op.outs, strict=True)
    )


def taken_in_body(op: array.MapOp, value: SSAValue) -> Iterator[SSAValue]:
    """A value of a map's body, and all that it is computed from: of the body, and from outside."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        part = pending.pop()
        if part in seen:
            continue
        seen.add(part)
        yield part
        if isinstance(part.owner, Operation) and part.owner.parent is op.body.block:
            pending.extend(part.owner.operands)
