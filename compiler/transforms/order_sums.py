"""Let sums of steps that run again go along the axis along which they go in the gradient that saves all.

A sum over rows goes along the axis along which most of what it reads lies side by side (`row_order`). Within
a budget a step reads contiguous copies, of arguments too that have steps along both axes: there it would go
along rows, and where no type says how such an argument lies, along the columns. The order of its terms would
be another. So the functions of steps follow the gradient that runs no step again (`decided_sums`). Runs last:
maps are final.

Before::

    !along = memref<?x?xf64, strided<[1, 0]>>
    !argument = memref<?x?xf64, strided<[?, ?]>>
    func.func @f(%n : index, %m : index, %g : !along, %a : !argument, %s : !along) {
      array.map(%n, %m) ins(%g, %a : !along, !argument) outs(%s : !along) kinds ["add"] {
      ^bb0(%x : f64, %y : f64):
        %z = arith.mulf %x, %y {ad.adjoint} : f64
        array.yield %z : f64
      } loc("program.py":7:5)
      func.return
    }
    func.func private @f_step(%n : index, %m : index, %g : !along, %a : memref<?x?xf64>, %s : !along)
        attributes {live = array<i64: 0>} {
      array.map(%n, %m) ins(%g, %a : !along, memref<?x?xf64>) outs(%s : !along) kinds ["add"] {
      ^bb0(%x : f64, %y : f64):
        %z = arith.mulf %x, %y {ad.adjoint} : f64
        array.yield %z : f64
      } loc("program.py":7:5)
      func.return
    }

After::

    !along = memref<?x?xf64, strided<[1, 0]>>
    !argument = memref<?x?xf64, strided<[?, ?]>>
    func.func @f(%n : index, %m : index, %g : !along, %a : !argument, %s : !along) {
      array.map(%n, %m) ins(%g, %a : !along, !argument) outs(%s : !along) kinds ["add"] {
      ^bb0(%x : f64, %y : f64):
        %z = arith.mulf %x, %y {ad.adjoint} : f64
        array.yield %z : f64
      } loc("program.py":7:5)
      func.return
    }
    func.func private @f_step(%n : index, %m : index, %g : !along, %a : memref<?x?xf64>, %s : !along)
        attributes {live = array<i64: 0>} {
      array.map(%n, %m) ins(%g, %a : !along, memref<?x?xf64>) outs(%s : !along) kinds ["add"]
          attributes {innermost = 0 : i64} {
      ^bb0(%x : f64, %y : f64):
        %z = arith.mulf %x, %y {ad.adjoint} : f64
        array.yield %z : f64
      } loc("program.py":7:5)
      func.return
    }

Kept: a sum that the gradient has twice, in two orders; and maps with windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, LocationAttr, ModuleOp, i64
from xdsl.passes import ModulePass

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.row_order import INNERMOST, known_innermost, summed_axes
from .decided_sums import runs_steps
from .maps_as_loops import is_adjoint
from .memory_effects import functions

Place = tuple[LocationAttr, tuple[tuple[int, ...], ...], bool]
"""Where a sum stands in the source, over which axes it goes, and whether it is one of the reverse sweep."""


@dataclass(frozen=True)
class OrderSums(ModulePass):
    """Give sums of steps the order that they have in the gradient."""

    name = "order-sums"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        steps = [function for function in functions(op) if runs_steps(function)]
        if not steps:
            return
        decided: dict[Place, set[int]] = {}
        for function in functions(op):
            if not runs_steps(function):
                for _, place, axis in sums(function):
                    decided.setdefault(place, set()).add(axis)
        for function in steps:
            for one, place, axis in sums(function):
                match [*decided.get(place, ())]:
                    case [other] if other != axis:
                        one.attributes[INNERMOST] = IntegerAttr(other, i64)
                    case _:
                        pass


def sums(function: func.FuncOp) -> Iterator[tuple[array.MapOp, Place, int]]:
    """The maps with sums, and the axes of their innermost loops."""
    for one in ops_of_kind(function, array.MapOp):
        axis = known_innermost(one)
        if axis is not None:
            over = tuple(sorted(set(summed_axes(one))))
            yield one, (one.location, over, any(map(is_adjoint, one.yielded))), axis
