"""What an index or a bool certainly is, by the ops that make it.

The frontend asks before passes run. A branch whose condition is known leaves one path::

    (n > 1) & False        arith.andi %c, %false                 0
    l = [a, b]; len(l)     memref.store %c2; memref.load         2, unless something stores between
    f(x) and False         scf.if %f { scf.yield %false } ...    0

Not followed: loops, and what was stored before the branch that the value is in.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, i1
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ...dialects.array import constant_value

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
MOST_OPS = 8
"""So many ops, one behind the other, are followed."""

EXACT: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AndIOp: operator.and_,
    arith.OrIOp: operator.or_,
    arith.XOrIOp: operator.xor,
    arith.AddiOp: operator.add,
    arith.SubiOp: operator.sub,
    arith.MuliOp: operator.mul,
    arith.MaxSIOp: max,
    arith.MinSIOp: min,
    array.CheckedAddOp: operator.add,
    array.CheckedSubOp: operator.sub,
    array.CheckedMulOp: operator.mul,
}
ABSORBING: dict[type[Operation], int] = {
    arith.AndIOp: 0,
    arith.OrIOp: 1,
    arith.MuliOp: 0,
    array.CheckedMulOp: 0,
}
"""The operand that decides, whatever the other is (of `or`: for bools)."""

COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
"""The signed predicates of arith.cmpi, by their number."""


def known_value(value: SSAValue, most: int = MOST_OPS) -> int | None:
    """The index or bool that the ops make, where those that matter are known."""
    op = value.owner
    if isinstance(op, Block) or not most or value.type not in (IndexType(), i1):
        return None
    if isinstance(op, arith.ConstantOp):
        known = constant_value(value)
        return known if known is None or value.type != i1 else known & 1
    if isinstance(op, memref.LoadOp):
        stored = stored_before(op)
        return None if stored is None else known_value(stored, most - 1)
    if isinstance(op, arith.SelectOp):
        taken = known_value(op.cond, most - 1)
        return None if taken is None else known_value(op.lhs if taken else op.rhs, most - 1)
    if isinstance(op, scf.IfOp):
        return known_after(op, op.results.index(value), most - 1)  # pyright: ignore
    if type(op) not in EXACT and not isinstance(op, arith.CmpiOp):
        return None
    a, b = (known_value(operand, most - 1) for operand in op.operands)
    decisive = ABSORBING.get(type(op))
    if decisive is not None and decisive in (a, b) and (decisive == 0 or value.type == i1):
        return decisive
    if a is None or b is None:
        return None
    if isinstance(op, arith.CmpiOp):
        predicate = op.predicate.value.data
        signed = predicate < len(COMPARISONS) and op.lhs.type != i1
        return int(COMPARISONS[predicate](a, b)) if signed or predicate < 2 else None
    result = EXACT[type(op)](a, b)
    return result if INT64_MIN <= result <= INT64_MAX else None


def known_after(branch: scf.IfOp, place: int, most: int) -> int | None:
    """What a branch yields, where all its arms that run yield one value."""
    taken = known_value(branch.cond, most)
    found = set[int | None]()
    for holds, region in ((1, branch.true_region), (0, branch.false_region)):
        end = region.block.last_op
        if taken in (None, holds) and isinstance(end, scf.YieldOp):
            yielded = end.operands[place]
            found.add(holds if yielded is branch.cond else known_value(yielded, most))
    return found.pop() if len(found) == 1 else None


def stored_before(load: memref.LoadOp) -> SSAValue | None:
    """What the latest store put into a cell, found in the block of the load alone."""
    uses = [use.operation for use in load.memref.uses]
    stores = [op for op in uses if isinstance(op, memref.StoreOp) and op.memref is load.memref]
    loads = sum(isinstance(op, memref.LoadOp) for op in uses)
    if not isinstance(load.memref.owner, memref.AllocaOp) or len(stores) + loads < len(uses):
        return None
    if load.indices:
        return None
    op: Operation | None = load.prev_op
    while op is not None and op not in stores:
        if op.regions and any(op.is_ancestor(store) for store in stores):
            return None
        op = op.prev_op
    return op.value if isinstance(op, memref.StoreOp) else None
