"""Kernels that have their memory from their caller: an area, or an allocator that counts."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest
from work_area import Counting

from mutad.compiler.codegen.kernel_memory import KernelMemory
from mutad.compiler.codegen.support.area import ROOM
from mutad.compiler.codegen.support.context import CURSOR, END

OUT_OF_MEMORY = 3

SQUARES = """
func.func @f(%u : memref<?xf64>, %steps : index) -> f64 {
  %c0 = arith.constant 0 : index
  %n = memref.dim %u, %c0 : memref<?xf64>
  %c8 = arith.constant 8 : index
  %row = arith.muli %n, %c8 : index
  %all = arith.muli %row, %steps : index
  %t = ad.tape reserves %all
  %sum = memref.alloca() : memref<f64>
  %zero = arith.constant 0.0 : f64
  memref.store %zero, %sum[] : memref<f64>
  %trips = array.loop %i to %steps do {
    %s = ad.push %t(%n) : memref<?xf64>
    %old = array.alloc(%n) : memref<?xf64>
    array.map(%n) ins(%u : memref<?xf64>) outs(%s, %old, %u : memref<?xf64>, memref<?xf64>, memref<?xf64>)
        kinds ["store", "store", "store"] {
    ^bb0(%x : f64):
      %y = arith.mulf %x, %x : f64
      array.yield %x, %y, %y : f64, f64, f64
    }
    array.yield
  }
  %again = array.loop %i to %steps do {
    %s = ad.pop %t(%n) : memref<?xf64>
    %x = memref.load %s[%c0] : memref<?xf64>
    %a = memref.load %sum[] : memref<f64>
    %b = arith.addf %a, %x : f64
    memref.store %b, %sum[] : memref<f64>
    array.yield
  }
  %r = memref.load %sum[] : memref<f64>
  func.return %r : f64
}
"""

FRESH = """
func.func @f(%n : index) -> memref<?xf64> {
  %a = array.alloc(%n) : memref<?xf64>
  %b = array.alloc(%n) : memref<?xf64>
  array.map(%n) outs(%a, %b : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
    %x = arith.constant 1.0 : f64
    array.yield %x, %x : f64, f64
  }
  func.return %b : memref<?xf64>
}
"""


def area(size: int) -> tuple[np.ndarray[Any, Any], Any]:
    """An area of so many bytes at a multiple of 64, and a context that has it."""
    memory = np.zeros(size + 128, np.uint8)
    start = -(-memory.ctypes.data // 64) * 64 or 64
    context = (ctypes.c_int64 * 36)()
    for offset, value in (
        (CURSOR, start), (END, start + size), (ROOM, size)
    ):  # fmt: skip
        context[offset // 8] = value
    return memory, context


@pytest.mark.parametrize(("n", "steps"), [(5, 3), (8, 1), (100, 0)])
def test_an_area_of_the_peak_is_enough_and_one_line_less_is_not(compile_kernel, n, steps):
    kernel = compile_kernel(SQUARES, memory=KernelMemory.AREA)
    assert not kernel.kernel.symbols
    needed = -(-8 * n * steps // 64) * 64 + (-(-8 * n // 64) * 64 if steps else 0)
    expected = sum(2.0 ** (2**k) for k in range(steps))
    for size in (needed, needed + 6400):
        memory, context = area(size)
        outcome = kernel(np.full(n, 2.0), steps, context=context)
        assert (outcome.status, outcome.results) == (0, [expected])
        assert size - context[ROOM // 8] == needed
        del memory
    if needed:
        memory, context = area(needed - 64)
        assert kernel(np.full(n, 2.0), steps, context=context).status == OUT_OF_MEMORY


def test_what_is_returned_lies_in_the_area(compile_kernel):
    kernel = compile_kernel(FRESH, memory=KernelMemory.AREA)
    memory, context = area(256)
    outcome = kernel(10, context=context)
    assert outcome.status == 0
    np.testing.assert_array_equal(outcome.results[0], np.ones(10))
    assert context[ROOM // 8] == 0
    assert kernel(2**61, context=area(256)[1]).status == OUT_OF_MEMORY
    assert kernel(-1, context=area(256)[1]).status == OUT_OF_MEMORY
    del memory


def test_an_allocator_has_all_back_but_what_is_returned(compile_kernel):
    squares = compile_kernel(SQUARES, memory=KernelMemory.ALLOCATOR)
    assert not squares.kernel.symbols
    for limit, status in ((1 << 20, 0), (100, OUT_OF_MEMORY)):
        counting = Counting(limit)
        assert squares(np.full(50, 1.0), 40, context=counting.context()).status == status
        assert not counting.live
    counting = Counting(1 << 20)
    fresh = compile_kernel(FRESH, memory=KernelMemory.ALLOCATOR)
    outcome = fresh(10, context=counting.context())
    np.testing.assert_array_equal(outcome.results[0], np.ones(10))
    assert [len(block) for block in counting.live.values()] == [80]
    assert fresh(2**61, context=Counting(100).context()).status == OUT_OF_MEMORY


LISTS = """
func.func @f(%n : index) -> f64 {
  %room = arith.constant 8589934592 : index
  %a = array.alloc(%room) {growable} : memref<8589934592xf64>
  %trips = array.loop %i to %n do {
    %x = arith.constant 2.0 : f64
    memref.store %x, %a[%i] : memref<8589934592xf64>
    array.yield
  }
  %c0 = arith.constant 0 : index
  %r = memref.load %a[%c0] : memref<8589934592xf64>
  func.return %r : f64
}
"""


def test_arrays_that_grow_with_an_allocator(compile_kernel):
    kernel = compile_kernel(LISTS, memory=KernelMemory.ALLOCATOR)
    counting = Counting(1 << 20)
    assert kernel(10_000, context=counting.context()).results == [2.0]
    assert not counting.live
    assert kernel(1, context=Counting(8).context()).status == OUT_OF_MEMORY


def test_the_half_of_a_kernel_that_ends_what_it_began_takes_the_other_in_at_once(compile_kernel):
    text = compile_kernel(FRESH).kernel.text
    assert re.search(r"^define internal i32 @kernel_body\(.*\) alwaysinline ", text, re.MULTILINE)
