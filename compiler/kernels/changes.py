"""What a loop computes from elements that it stores: such values are others before it runs."""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis, enclosing_loops
from ..analysis.carried_cells import cell_of


def changed_values(
    loop: array.LoopOp, alias: AliasAnalysis, *, by_others: bool = False
) -> set[SSAValue]:
    """What is computed from elements that the iteration has stored before, variables included.

    `by_others`: or that another iteration may have stored; where they are independent, there are none.
    """
    ops = every_op(loop)
    stores = [op for op in ops if isinstance(op, memref.StoreOp) and not is_variable(op)]
    places = {op: number for number, op in enumerate(ops)}

    def is_after(load: memref.LoadOp, store: memref.StoreOp) -> bool:
        return by_others or places[store] < places[load] or is_again(store, load, loop)

    found: set[SSAValue] = set()
    while True:
        before = len(found)
        for op in ops:
            match op:
                case memref.LoadOp() if cell_of(op.memref) is None:
                    near = (s for s in stores if alias.may_alias(op.memref, s.memref))
                    tainted = any(is_after(op, s) for s in near)
                case memref.StoreOp():
                    if is_variable(op) and op.value in found:
                        found.add(op.memref)
                    continue
                case _:
                    tainted = False
            if tainted or not found.isdisjoint(inputs_of(op)):
                found.update(op.results)
        if len(found) == before:
            return found


def is_again(store: Operation, load: Operation, loop: array.LoopOp) -> bool:
    """Whether an inner loop comes to the load again after the store."""
    inner = (one for one in enclosing_loops(store) if one is not loop and loop.is_ancestor(one))
    return any(one.is_ancestor(load) for one in inner)


def inputs_of(op: Operation) -> list[SSAValue]:
    """What the results of an op come from: of a branch also what its blocks yield."""
    ends = [b.last_op for region in op.regions for b in region.blocks]
    return [*op.operands, *(v for end in ends if end is not None for v in end.operands)]


def is_variable(op: memref.StoreOp) -> bool:
    return cell_of(op.memref) is not None
