"""Let a loop that goes from row to row downwards go upwards, where its iterations may come in any order.

A reverse sweep reads what was saved from its end. The caches fetch ahead what follows in memory; of rows that
come in the other order the first lines are waited for, row by row. Part of `reorder_loops`.

Before::

    %last = arith.subi %n, %c1
    array.loop %i to %n do {
      %j = arith.subi %last, %i
      %row = array.view %saved[%j, %c0] dims [1] extents(%m) steps(%c1)
      array.map(%m) ins(%row, %u) outs(%u_shadow) kinds ["add"] ...
      array.yield
    }

After::

    array.loop %j to %n do {
      %row = array.view %saved[%j, %c0] dims [1] extents(%m) steps(%c1)
      array.map(%m) ins(%row, %u) outs(%u_shadow) kinds ["add"] ...
      array.yield
    }

What the iterations have in common they add to, in adjoint code, or it is a number that each of them leaves as
all others found it. Kept: loops with other loops, branches or whole-array ops but maps in them, and loops in
which something may raise or that have memory of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func, memref
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure

from ...dialects import array
from ...dialects.within import every_op, ops_of_kind
from ..analysis.affine import Subscripts
from ..analysis.carried_cells import Role, cell_of
from ..analysis.independence import Independence, Independent
from ..analysis.views import strip_views
from ..rules import accesses
from .decided_sums import DecidedSums
from .hoist_checks import is_counted
from .run_upwards import run_upwards

MOVED = (array.MapOp, array.ViewOp, array.YieldOp, memref.LoadOp, memref.StoreOp, memref.DimOp)


def rows_upwards(function: func.FuncOp, fastmath: bool, sums: DecidedSums) -> None:
    """Turn all such loops of a function; those with sums that `sums` leaves to it."""
    downward = [loop for loop in ops_of_kind(function, array.LoopOp) if goes_down(loop)]
    if not downward:
        return
    independence = Independence(function, fastmath=fastmath)  # none of the loops is in another
    for loop in downward:
        found = independence.of(loop)
        if found is None or not (fastmath or adds_in_any_order(loop, found)):
            continue
        if not sums.may_change(function, loop.location):
            continue
        if all(is_free_of_order(c, role, loop, function) for c, role in found.cells.items()):
            sums.changed(loop.location)
            run_upwards(loop)


def goes_down(loop: array.LoopOp) -> bool:
    """Whether all rows of a loop of maps, those that are not the same in all iterations, go down."""
    body = list(loop.body.block.ops)
    if not is_counted(loop) or loop.carried or not any(isinstance(op, array.MapOp) for op in body):
        return False
    if not all(isinstance(op, MOVED) or (op.has_trait(Pure) and not op.regions) for op in body):
        return False
    forms = Subscripts()
    ways = {forms.affine(n).terms.get(loop.induction, 0) for op in body for n in subscripts(op)}
    return min(ways, default=0) < 0 and max(ways, default=0) <= 0


def subscripts(op: Operation) -> Iterator[SSAValue]:
    if isinstance(op, array.ViewOp):
        yield from op.offsets
    elif isinstance(op, memref.LoadOp | memref.StoreOp):
        yield from op.indices


def adds_in_any_order(loop: array.LoopOp, found: Independent) -> bool:
    """Whether what maps add to, over the iterations, is cotangents."""
    sums = [cell for cell, role in found.cells.items() if role.name == "reduction"]
    return all(
        kind == "store" or is_of_adjoint(value)
        for op in ops_of_kind(loop, array.MapOp)
        for memref_, kind, value in zip(op.outs, op.out_kinds, op.yielded, strict=True)
        if strip_views(memref_) in (*found.summed, *sums)
    )


def is_of_adjoint(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and "ad.adjoint" in value.owner.attributes


def is_free_of_order(cell: SSAValue, role: Role, loop: array.LoopOp, function: func.FuncOp) -> bool:
    """Whether each iteration finds in a number what it found, and what the last leaves is not read."""
    if role.name not in ("private", "reset"):
        return True
    outside = [
        (op, a)
        for op in every_op(function)
        for a in accesses(op)
        if cell_of(a.memref) is cell and not loop.is_ancestor(op)
    ]
    if role.name == "private":
        return all(a.kind == "write" for _, a in outside)
    stores = [op for op, a in outside if a.kind == "write"]
    return all(isinstance(op, memref.StoreOp) and op.value is role.value for op in stores)
