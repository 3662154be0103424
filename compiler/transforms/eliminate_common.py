"""Compute a pure value once: common subexpression elimination over scalar ops, dims and views.

Runs first in every group of passes: the others compare index space, subscripts and views by value
identity, which this pass establishes.

Before::

    func.func @f(%a : memref<?xf64>, %x : f64, %c : i1) -> f64 {
      %c0 = arith.constant 0 : index
      %n = memref.dim %a, %c0 : memref<?xf64>
      %also_c0 = arith.constant 0 : index
      %also_n = memref.dim %a, %also_c0 : memref<?xf64>
      array.raise_if %c, "ValueError", "{} and {}" (%n, %also_n : index, index)
      func.return %x : f64
    }

After::

    func.func @f(%a : memref<?xf64>, %x : f64, %c : i1) -> f64 {
      %c0 = arith.constant 0 : index
      %n = memref.dim %a, %c0 : memref<?xf64>
      array.raise_if %c, "ValueError", "{} and {}" (%n, %n : index, index)
      func.return %x : f64
    }

A check that the same block (or one around it) has already made is a repetition too: the second
`array.index` or `array.raise_if` on the same operands cannot raise. Loads are left to
forward_stores; operands of commutative ops are not sorted.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator, NoMemoryEffect

from ...dialects import array
from ...dialects.quick_xdsl import operands_of
from .memory_effects import functions


@dataclass(frozen=True)
class EliminateCommon(ModulePass):
    """Replace an op by an equal one that dominates it."""

    name = "eliminate-common"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            eliminate_in(function.body.block, {})


def eliminate_in(block: Block, computed: dict[Hashable, Operation]) -> None:
    """Number the values of `block`; what it computes is forgotten again at its end."""
    here: list[Hashable] = []
    for op in tuple(block.ops):
        if is_repeatable(op):
            key: Hashable = (
                (type(op), operands) if (operands := operands_of(op)) else expression(op)
            )
            first = computed.setdefault(key, op)
            if first is not op and operands and not computes_the_same(op, first):
                key = expression(op)
                first = computed.setdefault(key, op)
            if first is not op:
                Rewriter.replace_op(op, [], first.results)
                continue
            here.append(key)
        for region in op.regions:
            for inner in region.blocks:
                eliminate_in(inner, computed)
    for key in here:
        del computed[key]


def computes_the_same(op: Operation, other: Operation) -> bool:
    """Whether two ops of a class, with the same operands, are equal; to hash all of an op takes longer."""
    return (
        op.properties == other.properties
        and op.attributes == other.attributes
        and [r.type for r in op.results] == [r.type for r in other.results]
    )


def is_repeatable(op: Operation) -> bool:
    """True when a second op equal to this one does nothing new."""
    return not op.regions and is_repeatable_kind(type(op))


@cache
def is_repeatable_kind(kind: type[Operation]) -> bool:
    """The same of all ops of a class that have no regions."""
    if kind.has_trait(IsTerminator):
        return False
    may_raise = array.IndexOp, array.RaiseIfOp, array.CheckedIntOp
    return issubclass(kind, may_raise) or kind.has_trait(NoMemoryEffect)


def expression(op: Operation) -> Hashable:
    """What the op computes: equal for two ops exactly when their values are."""
    return (
        type(op),
        operands_of(op),
        tuple(op.properties.items()) if op.properties else (),
        tuple(op.attributes.items()) if op.attributes else (),
        tuple([r.type for r in op.results]),
    )
