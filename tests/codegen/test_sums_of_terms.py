"""Several terms that an iteration of adjoint code adds to one number may be added in any order."""

from __future__ import annotations

import numpy as np
import pytest

import mutad

LOOP = """
func.func @f(%x : memref<?xf64>, %cell : memref<f64>, %n : index, %c : f64) {{
  %trips = array.loop %i to %n do {{
    %v = memref.load %x[%i] : memref<?xf64>
    %w = arith.mulf %v, %c {{ad.adjoint}} : f64
    %old = memref.load %cell[] : memref<f64>
    {lines}
    array.yield
  }}
  func.return
}}"""

TWO = """%one = arith.addf %old, %v {ad.adjoint} : f64
    %two = arith.addf %one, %w {ad.adjoint} : f64
    memref.store %two, %cell[] : memref<f64>"""
IN_ORDER = {
    "the primal adds, too": TWO.replace("%old, %v {ad.adjoint}", "%old, %v"),
    "the primal adds last": TWO.replace("%one, %w {ad.adjoint}", "%one, %w"),
    "a part is read": TWO + "\n    memref.store %one, %x[%i] : memref<?xf64>",
    "something else is stored": TWO.replace("store %two", "store %w"),
    "the sum is another's": TWO.replace("%old, %v", "%w, %v"),
    "the place changes": TWO.replace("%cell[] : memref<f64>", "%x[%i] : memref<?xf64>"),
}


def test_terms_are_added_in_any_order(compile_kernel) -> None:
    kernel = compile_kernel(LOOP.format(lines=TWO))
    assert kernel.text.count(" reassoc ") == 2
    x, cell = np.arange(100.0), np.array(1.0)
    kernel(x, cell, 100, 2.0)
    assert cell == 1.0 + 3.0 * x.sum()


@pytest.mark.parametrize("name", IN_ORDER)
def test_terms_stay_in_order(compile_kernel, name: str) -> None:
    assert " reassoc " not in compile_kernel(LOOP.format(lines=IN_ORDER[name])).text


def huber(r, d):
    total = 0.0
    for i in range(r.size):
        a = abs(r[i])
        if a < d:
            total += 0.5 * r[i] * r[i]
        else:
            total += d * (a - 0.5 * d)
    return total


def test_the_slope_of_a_parameter_is_vector_code() -> None:
    """Its two terms of an iteration come from both factors of one product."""
    function, r = mutad.compile(huber, grad=True), np.random.default_rng(1).normal(size=101)
    mutad.check_gradient(function, r, 0.7)
    optimized = function.inspect("llvm-opt", r, 0.7, wrt=("r", "d"))
    assert "llvm.vector.reduce.fadd" in optimized
