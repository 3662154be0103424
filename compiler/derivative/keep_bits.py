"""Functions that have the same bits in every copy of a loop, in both sweeps and within a budget.

A vector version of `sin` has other last bits than the scalar one, and LLVM decides loop by loop which it
takes. Within a budget the loop of a step is another one than that of the forward sweep, which saves, and the
gradients are to have the same bits. So what independent iterations of the primal compute, which is what LLVM
may vectorize, is marked in the primal, before there are sweeps::

    array.loop %i to %n do {                    array.loop %i to %n do {
      %e = memref.load %x[%i]                     %e = memref.load %x[%i]
      %y = math.sin %e : f64                      %y = math.sin %e {ad.again} : f64
      memref.store %y, %x[%i]                     memref.store %y, %x[%i]
      array.yield                                 array.yield
    }                                           }

Not marked are those in loops whose iterations wait for each other: the scalar version takes less time there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ModuleOp, UnitAttr, UnknownLoc
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.independence import Independence
from ..rules.builders import element_of
from ..rules.math import AGAIN, is_transcendental
from .passes import functions


@dataclass(frozen=True)
class KeepBits(ModulePass):
    """Mark the transcendentals of maps, and of loops with independent iterations."""

    name = "keep-bits"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            found = [one for one in every_op(function) if is_transcendental(one)]
            independence = Independence(function) if found else None
            for loop, inside in by_loop(found).items():
                assert independence is not None
                if isinstance(loop, array.MapOp) or goes_side_by_side(independence, loop):
                    for one in inside:
                        one.attributes[AGAIN] = UnitAttr()


def by_loop(found: Sequence[Operation]) -> dict[array.LoopOp | array.MapOp, list[Operation]]:
    """Ops by the map or loop that they stand in; those outside are left out."""
    loops: dict[array.LoopOp | array.MapOp, list[Operation]] = {}
    for op in found:
        around = op.parent_op()
        while around is not None and not isinstance(around, array.LoopOp | array.MapOp):
            around = around.parent_op()
        if around is not None:
            loops.setdefault(around, []).append(op)
    return loops


def goes_side_by_side(independence: Independence, loop: array.LoopOp) -> bool:
    """Whether no iteration hands a float on to the next, not even to add to it."""
    found = independence.of(loop)
    return found is not None and not any(
        role.ordered and isinstance(element_of(cell), AnyFloat)
        for cell, role in found.cells.items()
    )


def keep_same_bits_again(module: ModuleOp) -> None:
    """Steps within a budget run more than twice: what is marked in one copy is marked in all."""
    ops = [op for op in every_op(module) if is_transcendental(op)]
    marked = {(op.name, op.location) for op in ops if AGAIN in op.attributes}
    for op in ops:
        if (op.name, op.location) in marked:
            op.attributes[AGAIN] = UnitAttr()


def keep_bits_of_derivatives(module: ModuleOp) -> None:
    """What the derivatives of marked functions compute is marked, too."""
    ops = [op for op in every_op(module) if is_transcendental(op)]
    marked = {op.location for op in ops if AGAIN in op.attributes} - {UnknownLoc()}
    for op in ops:
        if op.location in marked:
            op.attributes[AGAIN] = UnitAttr()
