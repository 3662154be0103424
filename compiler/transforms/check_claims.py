"""Refuse `prange` over iterations that provably are not independent.

With `parallel=True` only: elsewhere `prange` is `range`. Of `u[i] = u[i - 1] + x[i]` it is certain that an
iteration reads what another one stores: an error. What cannot be decided is the program's word.

Before::

    func.func @f(%k : memref<?xindex>, %y : memref<?xf64>, %v : f64, %n : index) {
      %trips = array.loop %i to %n do {
        %at = memref.load %k[%i] : memref<?xindex>
        memref.store %v, %y[%at] : memref<?xf64>
        array.yield
      } {claimed}
      func.return
    }

After::

    func.func @f(%k : memref<?xindex>, %y : memref<?xf64>, %v : f64, %n : index) {
      %trips = array.loop %i to %n do {
        %at = memref.load %k[%i] : memref<?xindex>
        memref.store %v, %y[%at] : memref<?xf64>
        array.yield
      } {claimed}
      func.return
    }

Changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects import array
from ..analysis.alias import AliasAnalysis
from ..analysis.dependence import Dependence
from ..analysis.independence import broken_claim, is_claimed
from ..diagnostics import refusal
from .memory_effects import functions


@dataclass(frozen=True)
class CheckClaims(ModulePass):
    """Refuse a loop that claims independence and provably has none."""

    name = "check-claims"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            claimed = [
                loop
                for loop in function.walk()
                if isinstance(loop, array.LoopOp) and is_claimed(loop)
            ]
            dependence = Dependence(function, AliasAnalysis(function)) if claimed else None
            for loop in claimed:
                assert dependence is not None
                broken = broken_claim(loop, dependence)
                if broken is not None:
                    raise refusal(*broken)
