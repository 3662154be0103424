"""Statements `a[i] += x` whose additions may come in any order: the adjoint's, and all under `fastmath`."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, memref
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..rules import is_opaque, writes

Place = tuple[SSAValue, tuple[SSAValue, ...]]
"""A memref and the subscripts of one of its elements."""


def place_of(op: memref.LoadOp | memref.StoreOp) -> Place:
    return op.memref, tuple(op.indices)


def additions_in(
    loop: array.LoopOp, may_alias: Callable[[SSAValue, SSAValue], bool], fastmath: bool
) -> set[Operation]:
    """The loads and stores of statements `a[i] += x` whose additions may be reordered.

    Nothing else is stored to the array between the load and the store.
    """
    found: set[Operation] = set()
    for block in (b for op in every_op(loop) for r in op.regions for b in r.blocks):
        loaded: dict[Place, memref.LoadOp] = {}
        for op in block.ops:
            if op.regions or is_opaque(op):
                loaded.clear()
            elif isinstance(op, memref.LoadOp) and not is_cell(op.memref):
                loaded[place_of(op)] = op
            elif isinstance(op, memref.StoreOp):
                last = loaded.get(place_of(op))
                if last is not None and is_addition(last, op, fastmath):
                    found |= {last, op}
            for write in writes(op):
                for place in [p for p in loaded if may_alias(p[0], write.memref)]:
                    del loaded[place]
    return found


def is_addition(load: memref.LoadOp, store: memref.StoreOp, fastmath: bool) -> bool:
    """Whether what is stored is what was loaded plus a term, in any order."""
    total = store.value.owner
    return (
        isinstance(total, arith.AddfOp)
        and (fastmath or "ad.adjoint" in total.attributes)
        and load.res in (total.lhs, total.rhs)
        and total.lhs is not total.rhs
        and load.res.has_one_use()
        and total.result.has_one_use()
    )


def is_cell(value: SSAValue) -> bool:
    """A scalar variable: LLVM keeps it in a register."""
    return isinstance(value.owner, memref.AllocaOp)
