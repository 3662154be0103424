"""Loops, checks and cells: values, raises where CPython raises, vector code where the range proves it."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

SWEEP = """
func.func @f(%u : memref<?xf64>, %v : memref<?xf64>, %lo : index, %hi : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %u, %c0 : memref<?xf64>
  %m = memref.dim %v, %c0 : memref<?xf64>
  %count = arith.subi %hi, %lo : index
  %t = array.loop %k to %count do {
    %i = arith.addi %k, %lo : index
    %l = arith.subi %i, %c1 : index
    %r = arith.addi %i, %c1 : index
    %jl = array.index %l, %n axis 0 sign "any"
    %jr = array.index %r, %n axis 0 sign "any"
    %ji = array.index %i, %m axis 0 sign "any"
    %x = memref.load %u[%jl] : memref<?xf64>
    %y = memref.load %u[%jr] : memref<?xf64>
    %s = arith.addf %x, %y : f64
    memref.store %s, %v[%ji] : memref<?xf64>
    array.yield
  }
  func.return
}
"""


def test_range_is_proved_and_the_loop_is_vector_code(compile_kernel):
    kernel = compile_kernel(SWEEP)
    u = np.random.default_rng(0).normal(size=100)
    v = np.zeros(100)
    assert kernel(u, v, 1, 99).status == 0
    np.testing.assert_array_equal(v[1:-1], u[:-2] + u[2:])
    assert "ymm" in kernel.assembly


def test_negative_subscripts_wrap_in_the_checked_copy(compile_kernel):
    u, v = np.arange(10.0), np.zeros(10)
    assert compile_kernel(SWEEP)(u, v, 0, 9).status == 0
    assert v[0] == u[-1] + u[1]
    np.testing.assert_array_equal(v[1:9], u[:-2] + u[2:])


def test_the_raise_comes_after_the_iterations_before_it(compile_kernel):
    kernel = compile_kernel(SWEEP)
    u, v = np.arange(10.0), np.zeros(10)
    outcome = kernel(u, v, 1, 12)
    assert outcome.status == 1
    assert outcome.payload == [10, 10]
    site = kernel.kernel.sites[outcome.site]
    assert site["exception"] == "IndexError"
    assert site["operands"] == ["index", "index"]
    np.testing.assert_array_equal(v[1:9], u[:-2] + u[2:])
    assert v[9] == 0.0


def test_no_trips(compile_kernel):
    u, v = np.arange(0.0), np.zeros(0)
    assert compile_kernel(SWEEP)(u, v, 5, 2).status == 0


TRIANGLE = """
func.func @f(%a : memref<?x?xf64>) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?x?xf64>
  %m = memref.dim %a, %c1 : memref<?x?xf64>
  %z = arith.constant 0.0 : f64
  %acc = memref.alloca() : memref<f64>
  memref.store %z, %acc[] : memref<f64>
  %t = array.loop %i to %n do {
    %w = arith.subi %n, %i : index
    %tt = array.loop %k to %w do {
      %j = arith.addi %i, %k : index
      %p = array.index %i, %n axis 0 sign "nonneg"
      %q = array.index %j, %m axis 1 sign "nonneg"
      %x = memref.load %a[%p, %q] : memref<?x?xf64>
      %s = memref.load %acc[] : memref<f64>
      %s1 = arith.addf %s, %x {ad.adjoint} : f64
      memref.store %s1, %acc[] : memref<f64>
      array.yield
    }
    array.yield
  }
  %r = memref.load %acc[] : memref<f64>
  func.return %r : f64
}
"""


def test_triangular_nest_is_proved_on_entry(compile_kernel):
    kernel = compile_kernel(TRIANGLE)
    a = np.random.default_rng(1).normal(size=(50, 50))
    outcome = kernel(a)
    assert outcome.status == 0
    assert outcome.results[0] == pytest.approx(np.triu(a).sum())
    assert kernel(a[:, :40]).status == 1
    assert "ymm" in kernel.assembly


SWAP = """
func.func @f(%u0 : memref<?xf64>, %steps : index) -> memref<?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %u0, %c0 : memref<?xf64>
  %h = arith.subi %n, %c2 : index
  %a = array.alloc(%n) : memref<?xf64>
  %b = array.alloc(%n) : memref<?xf64>
  array.map(%n) ins(%u0 : memref<?xf64>) outs(%a, %b : memref<?xf64>, memref<?xf64>) kinds ["store", "store"] {
  ^bb0(%x : f64):
    array.yield %x, %x : f64, f64
  }
  %half = arith.constant 0.5 : f64
  %t, %ra, %rb = array.loop %s to %steps carry(%u = %a : memref<?xf64>, %v = %b : memref<?xf64>) do {
    %tt = array.loop %k to %h do {
      %i = arith.addi %k, %c1 : index
      %r = arith.addi %k, %c2 : index
      %x = memref.load %u[%k] : memref<?xf64>
      %y = memref.load %u[%r] : memref<?xf64>
      %w = arith.addf %x, %y : f64
      %q = arith.mulf %w, %half : f64
      memref.store %q, %v[%i] : memref<?xf64>
      array.yield
    }
    array.yield %v, %u : memref<?xf64>, memref<?xf64>
  }
  func.return %ra : memref<?xf64>
}
"""


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_swapped_arrays_stay_apart(compile_kernel, steps):
    kernel = compile_kernel(SWAP)
    u0 = np.random.default_rng(3).normal(size=37)
    u, v = u0.copy(), u0.copy()
    for _ in range(steps):
        v[1:-1] = 0.5 * (u[:-2] + u[2:])
        u, v = v, u
    outcome = kernel(u0, steps)
    assert outcome.status == 0
    np.testing.assert_array_equal(outcome.results[0], u)
    assert "ymm" in kernel.assembly


WHILE = """
func.func @f(%x : f64) -> (f64, index) {
  %cell = memref.alloca() : memref<f64>
  memref.store %x, %cell[] : memref<f64>
  %one = arith.constant 1.0 : f64
  %half = arith.constant 0.5 : f64
  %trips = array.loop %i while {
  ^bb0(%j : index):
    %v = memref.load %cell[] : memref<f64>
    %c = arith.cmpf ogt, %v, %one : f64
    array.condition %c
  } do {
    %v = memref.load %cell[] : memref<f64>
    %w = arith.mulf %v, %half : f64
    memref.store %w, %cell[] : memref<f64>
    array.yield
  }
  %r = memref.load %cell[] : memref<f64>
  func.return %r, %trips : f64, index
}
"""


def test_while_counts_its_trips(compile_kernel):
    assert compile_kernel(WHILE)(100.0).results == [100.0 / 128, 7]
    assert compile_kernel(WHILE)(1.0).results == [1.0, 0]


SCRATCH = """
func.func @f(%x : memref<?xf64>, %steps : index, %big : index) -> f64 {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f64
  %acc = memref.alloca() : memref<f64>
  memref.store %z, %acc[] : memref<f64>
  %t = array.loop %s to %steps do {
    %y = array.alloc(%n) : memref<?xf64>
    %pad = array.alloc(%big) : memref<?xf64>
    array.map(%n) ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["store"] {
    ^bb0(%v : f64):
      %w = arith.addf %v, %v : f64
      array.yield %w : f64
    }
    %a = array.view %acc[] dims [-1] extents(%n) steps(%c1) : memref<f64> -> memref<?xf64, strided<[0]>>
    array.map(%n) ins(%y : memref<?xf64>) outs(%a : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%v : f64):
      array.yield %v : f64
    }
    array.yield
  }
  %r = memref.load %acc[] : memref<f64>
  func.return %r : f64
}
"""


@pytest.mark.parametrize("big", [0, 1000, 1_000_000])
def test_scratch_memory_is_given_back_each_iteration(compile_kernel, big):
    x = np.ones(3000)
    outcome = compile_kernel(SCRATCH)(x, 200, big)
    assert outcome.status == 0
    assert outcome.results[0] == 200 * 6000


@pytest.mark.parametrize("big", [-1, 2**61, 2**62, 2**45])
def test_impossible_sizes_are_out_of_memory(compile_kernel, big):
    assert compile_kernel(SCRATCH)(np.ones(3), 1, big).status == 3


CHECKED = """
func.func @f(%a : index, %b : index) -> (index, index) {
  %s = array.checked_add %a, %b
  %p = array.checked_mul %a, %b
  func.return %s, %p : index, index
}
"""


def test_checked_arithmetic_raises_overflow_error(compile_kernel):
    kernel = compile_kernel(CHECKED)
    assert kernel(3, -4).results == [-1, -12]
    outcome = kernel(2**62, 2**62)
    assert outcome.status == 1
    assert kernel.kernel.sites[outcome.site]["exception"] == "OverflowError"
    assert outcome.payload == [2**62, 2**62]
    assert kernel(2**40, 2**40).status == 1


GUARDED = """
func.func @f(%u : memref<?xf64>, %v : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %u, %c0 : memref<?xf64>
  %t = array.loop %i to %n do {
    %p = arith.cmpi sgt, %i, %c0 : index
    %x = memref.load %u[%i] : memref<?xf64>
    %w = scf.if %p -> (f64) {
      %l = arith.subi %i, %c1 : index
      %j = array.index %l, %n axis 0 sign "any"
      %y = memref.load %u[%j] : memref<?xf64>
      scf.yield %y : f64
    } else {
      scf.yield %x : f64
    }
    %s = arith.addf %x, %w : f64
    memref.store %s, %v[%i] : memref<?xf64>
    array.yield
  }
  func.return
}
"""


def test_a_branch_condition_proves_a_subscript(compile_kernel):
    kernel = compile_kernel(GUARDED)
    u, v = np.arange(20.0), np.zeros(20)
    assert kernel(u, v).status == 0
    np.testing.assert_array_equal(v, u + np.concatenate([u[:1], u[:-1]]))
    assert "call void @mutad_raise" not in kernel.text
    assert kernel.kernel.sites == []


PRINT = """
func.func @f(%x : f64, %k : index, %a : memref<?xf32, strided<[?]>>) {
  array.print "{} {} {}" (%x, %k, %a : f64, index, memref<?xf32, strided<[?]>>)
  func.return
}
"""


def test_print_calls_back_with_a_payload(compile_kernel):
    kernel = compile_kernel(PRINT)
    seen: list[tuple[int, list[int]]] = []

    def callback(_context: int, site: int, payload: int) -> int:
        seen.append((site, list((ctypes.c_int64 * 5).from_address(payload))))
        return 0

    kernel.print_callback = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
    )(callback)
    a = np.ones(6, np.float32)[::2]
    assert kernel(1.5, 42, a).status == 0
    bits = int(np.float64(1.5).view(np.int64))
    assert seen == [(0, [bits, 42, a.ctypes.data, 3, 2])]
    assert kernel.kernel.sites[0]["print"] == "{} {} {}"
    assert kernel.kernel.sites[0]["operands"] == ["f64", "index", "memref<f32,1>"]


TAPE = """
func.func @f(%x : memref<?xf64>, %steps : index, %size : index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %tape = ad.tape
  %z = arith.constant 0.0 : f64
  %acc = memref.alloca() : memref<f64>
  memref.store %z, %acc[] : memref<f64>
  %outer = array.loop %o to %c1 do {
  %t = array.loop %s to %steps do {
    %k = arith.addi %s, %size : index
    %seg = ad.push %tape(%k) : memref<?xf64>
    %i = array.cast %s : index -> f64
    array.map(%k) outs(%seg : memref<?xf64>) kinds ["store"] {
      array.yield %i : f64
    }
    array.yield
  }
  %t2 = array.loop %s to %steps do {
    %last = arith.subi %steps, %c1 : index
    %r = arith.subi %last, %s : index
    %k = arith.addi %r, %size : index
    %seg = ad.pop %tape(%k) : memref<?xf64>
    %a = array.view %acc[] dims [-1] extents(%k) steps(%c1) : memref<f64> -> memref<?xf64, strided<[0]>>
    array.map(%k) ins(%seg : memref<?xf64>) outs(%a : memref<?xf64, strided<[0]>>) kinds ["add"] {
    ^bb0(%v : f64):
      array.yield %v : f64
    }
    array.yield
  }
  array.yield
  }
  %r = memref.load %acc[] : memref<f64>
  func.return %r : f64
}
"""


@pytest.mark.parametrize(("steps", "size"), [(0, 0), (1, 0), (100, 0), (300, 1000), (7, 100000)])
def test_tape_segments_come_back_in_reverse(compile_kernel, steps, size):
    outcome = compile_kernel(TAPE)(np.ones(2), steps, size)
    assert outcome.status == 0
    assert outcome.results[0] == sum(i * (size + i) for i in range(steps))
    assert outcome.context[4] == 0
    assert outcome.context[5] == 8 * sum(size + i for i in range(steps))


STRIDED_RANGE = """
func.func @f(%x : memref<?xf64>, %lo : index, %hi : index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %one = arith.constant 1.0 : f64
  %span = arith.subi %hi, %lo : index
  %up = arith.addi %span, %c2 : index
  %count = array.floordiv %up, %c3 : index
  %t = array.loop %k to %count do {
    %k3 = arith.muli %k, %c3 : index
    %i = arith.addi %lo, %k3 : index
    %j = array.index %i, %n axis 0 sign "any"
    memref.store %one, %x[%j] : memref<?xf64>
    array.yield
  }
  func.return
}
"""


@pytest.mark.parametrize(
    ("lo", "hi"), [(0, 20), (1, 20), (2, 19), (5, 5), (7, 2), (-4, 20), (3, 2**63 - 5), (0, 23)]
)
def test_range_with_a_step(compile_kernel, lo, hi):
    kernel = compile_kernel(STRIDED_RANGE)
    x, expected = np.zeros(20), np.zeros(20)
    raised = False
    for i in range(lo, hi, 3):
        try:
            expected[i] = 1.0
        except IndexError:
            raised = True
            break
    assert kernel(x, lo, hi).status == int(raised)
    np.testing.assert_array_equal(x, expected)
    assert "udiv i128" not in kernel.text


OVERLAP = """
func.func @f(%x : memref<?xf64>, %y : memref<?xf64>, %z : memref<?xf64>)
    attributes {{overlaps = {pairs}}} {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %t = array.loop %i to %n do {{
    %a = memref.load %x[%i] : memref<?xf64>
    %b = memref.load %z[%c0] : memref<?xf64>
    %s = arith.addf %a, %b : f64
    memref.store %s, %y[%i] : memref<?xf64>
    array.yield
  }}
  func.return
}}
"""


def test_overlapping_arguments_keep_the_order_of_their_accesses(compile_kernel):
    pairs = "[[0 : index, 1 : index], [1 : index, 2 : index]]"
    kernel = compile_kernel(OVERLAP.format(pairs=pairs))
    memory = np.arange(30.0)
    expected = memory.copy()
    for i in range(20):
        expected[5 + i] = expected[i] + expected[7]
    assert kernel(memory[:20], memory[5:25], memory[7:8]).status == 0
    np.testing.assert_array_equal(memory, expected)


def test_disjoint_arguments_need_no_check(compile_kernel):
    kernel = compile_kernel(OVERLAP.format(pairs="[]"))
    x, y, z = np.arange(20.0), np.zeros(20), np.ones(1)
    assert kernel(x, y, z).status == 0
    np.testing.assert_array_equal(y, x + 1)
    assert "llvm.loop.parallel_accesses" in kernel.text


SEQUENTIAL = """
func.func @f(%x : memref<?xf64>) -> f64 {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %z = arith.constant 0.0 : f64
  %acc = memref.alloca() : memref<f64>
  memref.store %z, %acc[] : memref<f64>
  %t = array.loop %i to %n do {
    %a = memref.load %x[%i] : memref<?xf64>
    %s = memref.load %acc[] : memref<f64>
    %b = arith.mulf %a, %a : f64
    %s1 = arith.addf %s, %b : f64
    memref.store %s1, %acc[] : memref<f64>
    array.yield
  }
  %r = memref.load %acc[] : memref<f64>
  func.return %r : f64
}
"""


def test_a_sum_in_a_loop_keeps_its_order_unless_fastmath(compile_kernel):
    x = np.random.default_rng(5).normal(size=1001)
    total = 0.0
    for v in x:
        total += v * v
    exact, fast = compile_kernel(SEQUENTIAL), compile_kernel(SEQUENTIAL, fastmath=True)
    assert exact(x).results == [total]
    assert "vfmadd" not in exact.assembly
    assert fast(x).results[0] == pytest.approx(total, rel=1e-13)
    assert "ymm" in fast.assembly
    assert "vfmadd" in fast.assembly


RAISING = """
func.func @f(%x : memref<?xf64>, %bad : i1) -> f64 {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %z = arith.constant 0.0 : f64
  %true = arith.constant true
  scf.if %bad {
    %t = array.loop %i to %n do {
      memref.store %z, %x[%i] : memref<?xf64>
      array.yield
    }
    array.raise_if %true, "ValueError", "no"
  } {raises}
  %r = memref.load %x[%c0] : memref<?xf64>
  func.return %r : f64
}
"""


def test_a_branch_that_raises(compile_kernel):
    kernel = compile_kernel(RAISING)
    x = np.ones(5)
    assert kernel(x, False).results == [1.0]
    assert kernel(x, True).status == 1
    assert not x.any()
    assert kernel.kernel.sites == [
        {
            "exception": "ValueError",
            "message": "no",
            "operands": [],
            "file": "",
            "line": 0,
            "column": 0,
            "source": "",
        }
    ]
