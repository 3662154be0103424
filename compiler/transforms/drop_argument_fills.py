"""Leave to the caller the zeros that the function itself would only fill an argument with.

A shadow that may hold anything is filled where the reverse sweep begins, and the passes before let what is
first added to it be stored instead. Where they could not, the array may as well come as zeros: large ones
cost nothing where the system has empty pages, and the function then serves `pullback`, whose shadows are
added to. Runs last.

Before::

    func.func @f(%n : index, %s_shadow : memref<?xf64>, %x : f64, %i : index)
        attributes {filled = array<i64: 1>} {
      %zero = arith.constant 0.0 : f64
      array.map(%n) outs(%s_shadow : memref<?xf64>) kinds ["store"] attributes {ad.unseen} {
        array.yield %zero : f64
      }
      %old = memref.load %s_shadow[%i] : memref<?xf64>
      %new = arith.addf %old, %x : f64
      memref.store %new, %s_shadow[%i] : memref<?xf64>
      func.return
    }

After::

    func.func @f(%n : index, %s_shadow : memref<?xf64>, %x : f64, %i : index)
        attributes {filled = array<i64>} {
      %zero = arith.constant 0.0 : f64
      %old = memref.load %s_shadow[%i] : memref<?xf64>
      %new = arith.addf %old, %x : f64
      memref.store %new, %s_shadow[%i] : memref<?xf64>
      func.return
    }

The fill is the first that touches the argument: the derivative put it before all that adds to it, and nothing
is moved across it. The attribute `filled` says which arguments may still hold anything. Kept: fills of
arguments that are not listed, as those of libraries, where callers do not hand in zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i64
from xdsl.ir import BlockArgument
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..rules.calls import listed
from .drop_overwritten import fills_of_arguments
from .memory_effects import functions


@dataclass(frozen=True)
class DropArgumentFills(ModulePass):
    """Drop zero fills of arguments that the caller can pass zeroed."""

    name = "drop-argument-fills"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            if "filled" in function.attributes:
                drop_argument_fills(function)


def drop_argument_fills(function: func.FuncOp) -> None:
    filled = listed(function, "filled")
    for fill in fills_of_arguments(function.body.block):
        place = cast(BlockArgument, fill.outs[0]).index
        if place in filled:
            filled.remove(place)
            Rewriter.erase_op(fill)
    function.attributes["filled"] = DenseArrayBase.from_list(i64, filled)
