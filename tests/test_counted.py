"""What `python -m benchmarks batches` counts: arithmetic, and bytes that are loaded and stored."""

from __future__ import annotations

import importlib

import numpy as np

counted = importlib.import_module("benchmarks.counted").counted

MAPPED = """
func.func @f(%x : memref<?xf64>, %y : memref<?xVALUE>) -> f64 {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %cell = memref.alloca() : memref<f64>
  array.map(%n) ins(%x, %y : memref<?xf64>, memref<?xVALUE>) outs(%y : memref<?xVALUE>) kinds ["store"] {
  ^bb0(%a : f64, %b : VALUE):
    %p = arith.divf %a, %a : f64
    OP
    array.yield %q : VALUE
  }
  %t = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %s = memref.load %cell[] : memref<f64>
    %r = arith.addf %s, %a : f64
    memref.store %r, %cell[] : memref<f64>
    array.yield
  }
  %s = memref.load %cell[] : memref<f64>
  func.return %s : f64
}
"""


def program(value: str, *ops: str) -> str:
    return MAPPED.replace("VALUE", value).replace("OP", "\n".join(ops))


def test_numbers() -> None:
    """A quotient is eight additions; scalars are in registers."""
    found = counted(
        program("f64", "%q = arith.mulf %p, %b : f64"), {"x": np.ones(5), "y": np.ones(5)}
    )
    assert found.operations == 5 * (8 + 1) + 5
    assert found.traffic == 8 * (3 * 5 + 5)


def test_vectors() -> None:
    """Each lane counts; what is spread over them does not."""
    ops = (
        "%w = vector.broadcast %p : f64 to vector<8xf64>",
        "%q = arith.mulf %w, %b : vector<8xf64>",
    )
    found = counted(program("vector<8xf64>", *ops), {"x": np.ones(5), "y": np.ones((5, 8))})
    assert found.operations == 5 * (8 + 8) + 5
    assert found.traffic == 8 * (5 + 2 * 40 + 5)
