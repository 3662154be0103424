"""Let an array take the memory of another that nothing uses any more.

Runs after the derivative: scratch arrays of the forward sweep have done their work when the shadows of
the reverse sweep are made, and are often as large.

Before::

    func.func @f(%n : index, %a : f64, %i : index) -> f64 {
      %t = array.alloc(%n) : memref<?xf64>
      memref.store %a, %t[%i] : memref<?xf64>
      %x = memref.load %t[%i] : memref<?xf64>
      %s = array.alloc(%n) : memref<?xf64>
      memref.store %x, %s[%i] : memref<?xf64>
      %y = memref.load %s[%i] : memref<?xf64>
      func.return %y : f64
    }

After::

    func.func @f(%n : index, %a : f64, %i : index) -> f64 {
      %t = array.alloc(%n) : memref<?xf64>
      memref.store %a, %t[%i] : memref<?xf64>
      %x = memref.load %t[%i] : memref<?xf64>
      memref.store %x, %t[%i] : memref<?xf64>
      %y = memref.load %t[%i] : memref<?xf64>
      func.return %y : f64
    }

Only allocations of the function's own block with the same extents; not memory that outlives the call.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TypeGuard

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import ad, array
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis
from .memory_effects import functions

OUTLIVES = (func.ReturnOp, ad.HandoverOp)
"""Ops after which memory has another owner."""


@dataclass(frozen=True)
class ReuseAllocs(ModulePass):
    """Give an array the memory of one that is dead."""

    name = "reuse-allocs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            allocs = [a for a in function.body.block.ops if is_plain(a)]
            if len(allocs) > 1:
                reuse_in(function, allocs)


def is_plain(op: Operation) -> TypeGuard[array.AllocOp]:
    """A growable array is a range of addresses, with promises of its own about what it holds."""
    return isinstance(op, array.AllocOp) and array.GROWABLE not in op.attributes


def reuse_in(function: func.FuncOp, allocs: list[array.AllocOp]) -> None:
    """Replace each allocation that finds one of its kind free; in program order."""
    position = {op: k for k, op in enumerate(function.body.block.ops)}
    last = last_uses(function, position)
    held: dict[object, list[array.AllocOp]] = {}
    for op in allocs:
        same_kind = held.setdefault((tuple(op.extents), op.memref.type), [])
        free = next((a for a in same_kind if last.get(a.memref, 0) < position[op]), None)
        if free is None or last.get(op.memref, 0) == inf:
            same_kind.append(op)
            continue
        last[free.memref] = last.get(op.memref, 0)
        op.memref.replace_all_uses_with(free.memref)
        op.detach()
        op.erase()


def last_uses(function: func.FuncOp, position: dict[Operation, int]) -> dict[SSAValue, float]:
    """For each root, the place in the function's block of the last op that may use its memory."""
    alias = AliasAnalysis(function)
    last: dict[SSAValue, float] = {}
    for op in every_op(function):
        used = [o for o in op.operands if isinstance(o.type, MemRefType)]
        if not used:
            continue
        at = inf if isinstance(op, OUTLIVES) else place_of(op, position)
        for root in (r for o in used for r in alias.roots(o)):
            last[root] = max(last.get(root, 0), at)
    return last


def place_of(op: Operation, position: dict[Operation, int]) -> int:
    """The place of the op of the function's block that contains `op`, or is it."""
    while op not in position:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return position[op]
