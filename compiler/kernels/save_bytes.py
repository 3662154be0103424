"""Let each iteration of a loop that may be a kernel save truths in bytes of its own.

The forward sweep packs the truths that iterations save, eight to a byte. Iterations that share a byte are
not independent, and so their loop is no kernel: here such loops are marked (`array.OWN_BYTES`).

Before::

    func.func @f(%u : memref<?xf64>, %n : index, %x : f64) {
      %trips = array.loop %i to %n do {
        memref.store %x, %u[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%u : memref<?xf64>, %n : index, %x : f64) {
      %trips = array.loop %i to %n do {
        memref.store %x, %u[%i] : memref<?xf64>
        array.yield
      }{own_bytes}
      func.return
    }

Kept: loops around operations on whole arrays, which the host runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from ...dialects import array
from ...dialects.within import ops_of_kind
from .nest_kernels import touches_arrays, whole_arrays_in


@dataclass(frozen=True)
class SaveBytes(ModulePass):
    """Mark loops whose iterations save bits in bytes of their own."""

    name = "save-bytes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in ops_of_kind(op, array.LoopOp):
            if touches_arrays(loop) and not whole_arrays_in(loop):
                loop.attributes[array.OWN_BYTES] = UnitAttr()
