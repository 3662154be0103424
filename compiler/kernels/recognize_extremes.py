"""Recognize a selection between two integers as their maximum or minimum, so that loops reduce.

Before::

    func.func @f(%a : i64, %b : i64) -> i64 {
      %c = arith.cmpi sgt, %a, %b : i64
      %r = arith.select %c, %a, %b : i64
      func.return %r : i64
    }

After::

    func.func @f(%a : i64, %b : i64) -> i64 {
      %c = arith.cmpi sgt, %a, %b : i64
      %r = arith.maxsi %a, %b : i64
      func.return %r : i64
    }

Kept: floating-point numbers, of which NaN is neither.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects.within import ops_of_kind

GREATER, LESS = (4, 5), (2, 3)
"""How `arith.cmpi` numbers sgt and sge, slt and sle."""


@dataclass(frozen=True)
class RecognizeExtremes(ModulePass):
    """Recognize maxima and minima of integers."""

    name = "recognize-extremes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for one in ops_of_kind(op, arith.SelectOp):
            kind = extreme_of(one)
            if kind is not None:
                new = kind(one.lhs, one.rhs)
                new.location = one.location
                new.result.name_hint = one.result.name_hint
                Rewriter.replace_op(one, new)


def extreme_of(op: arith.SelectOp) -> type[arith.MaxSIOp | arith.MinSIOp] | None:
    compared = op.cond.owner
    if not isinstance(compared, arith.CmpiOp):
        return None
    predicate = compared.predicate.value.data
    if predicate not in (*GREATER, *LESS):
        return None
    sides, chosen = (compared.lhs, compared.rhs), (op.lhs, op.rhs)
    if sides == chosen:
        return arith.MaxSIOp if predicate in GREATER else arith.MinSIOp
    if sides == chosen[::-1]:
        return arith.MinSIOp if predicate in GREATER else arith.MaxSIOp
    return None
