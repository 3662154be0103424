"""Innermost loops: what is accumulated in registers and what runs in parallel changes no value."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import mutad
from mutad.compiler.codegen import loops_to_llvm

HEAD = """
func.func @f(%s : memref<?xf64>, %g : memref<?xf64>, %i : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %g, %c0 : memref<?xf64>
  %t = array.loop %j to %n do {
    %x = memref.load %g[%j] : memref<?xf64>
"""
TAIL = """
    array.yield
  }
  func.return
}
"""


def add(at: str, value: str, flag: str, k: int) -> str:
    return f"""
    %o{k} = memref.load %s[{at}] : memref<?xf64>
    %a{k} = arith.addf %o{k}, {value} {flag} : f64
    memref.store %a{k}, %s[{at}] : memref<?xf64>
"""


@pytest.mark.parametrize("i", [0, 3, 99])
def test_additions_that_meet_commute(compile_kernel, i):
    adjoint = "{ad.adjoint}"
    kernel = compile_kernel(HEAD + add("%i", "%x", adjoint, 0) + add("%j", "%x", adjoint, 1) + TAIL)
    rng = np.random.default_rng(0)
    s, g = rng.normal(size=100), rng.normal(size=100)
    expected = s + g
    expected[i] += g.sum()
    assert kernel(s, g, i).status == 0
    np.testing.assert_allclose(s, expected, rtol=1e-12)
    assert "ymm" in kernel.assembly


@pytest.mark.parametrize("i", [0, 3, 99])
def test_additions_of_the_primal_keep_their_order(compile_kernel, i):
    kernel = compile_kernel(HEAD + add("%i", "%x", "", 0) + add("%j", "%x", "", 1) + TAIL)
    rng = np.random.default_rng(0)
    s, g = 1e9 * rng.normal(size=100), rng.normal(size=100)
    expected = s.copy()
    for j in range(100):
        expected[i] += g[j]
        expected[j] += g[j]
    assert kernel(s, g, i).status == 0
    np.testing.assert_array_equal(s, expected)


@pytest.mark.parametrize("i", [0, 1, 3])
def test_a_vector_that_meets_has_what_was_added(compile_kernel, i):
    """A place that iterations add to is in no register while they read it among the elements of a vector."""
    row = """
    %v = vector.load %s[%c0] : memref<?xf64>, vector<2xf64>
    %y = vector.extract %v[%c1] : f64 from vector<2xf64>
"""
    kernel = compile_kernel(HEAD + row + add("%i", "%y", "{ad.adjoint}", 0) + TAIL)
    s = np.array([0.5, 0.25, 2.0, 3.0])
    expected = s.copy()
    for _ in range(20):
        expected[i] += expected[1]
    assert kernel(s, np.zeros(20), i).status == 0
    np.testing.assert_array_equal(s, expected)


@pytest.mark.parametrize("i", [0, 1, 3])
def test_what_is_stored_among_a_vector_is_read(compile_kernel, i):
    row = """
    %v = vector.broadcast %x : f64 to vector<2xf64>
    vector.store %v, %s[%c0] : memref<?xf64>, vector<2xf64>
"""
    kernel = compile_kernel(HEAD + row + add("%i", "%x", "", 0) + TAIL)
    g = np.arange(1.0, 21.0)
    s = np.array([0.5, 0.25, 2.0, 3.0])
    expected = s.copy()
    for x in g:
        expected[:2] = x
        expected[i] += x
    assert kernel(s, g, i).status == 0
    np.testing.assert_array_equal(s, expected)


@pytest.mark.parametrize("i", [0, 3, 99])
def test_a_read_that_meets_sees_what_was_added(compile_kernel, i):
    source = (
        HEAD + "%y = memref.load %s[%j] : memref<?xf64>" + add("%i", "%y", "{ad.adjoint}", 0) + TAIL
    )
    s = np.random.default_rng(0).normal(size=100)
    expected = s.copy()
    for j in range(100):
        expected[i] += expected[j]
    assert compile_kernel(source)(s, s * 0, i).status == 0
    np.testing.assert_allclose(s, expected, rtol=1e-12)


LU = """
func.func @f(%a : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?x?xf64>
  %tk = array.loop %k to %n do {
    %k1 = arith.addi %k, %c1 : index
    %m = arith.subi %n, %k1 : index
    %ti = array.loop %p to %m do {
      %i = arith.addi %p, %k1 : index
      %d = memref.load %a[%k, %k] : memref<?x?xf64>
      %x = memref.load %a[%i, %k] : memref<?x?xf64>
      %q = arith.divf %x, %d : f64
      memref.store %q, %a[%i, %k] : memref<?x?xf64>
      %tj = array.loop %r to %m do {
        %j = arith.addi %r, %k1 : index
        %l = memref.load %a[%i, %k] : memref<?x?xf64>
        %u = memref.load %a[%k, %j] : memref<?x?xf64>
        %lu = arith.mulf %l, %u : f64
        %o = memref.load %a[%i, %j] : memref<?x?xf64>
        %e = arith.subf %o, %lu : f64
        memref.store %e, %a[%i, %j] : memref<?x?xf64>
        array.yield
      }
      array.yield
    }
    array.yield
  }
  func.return
}
"""


def test_rows_of_one_matrix_are_seen_to_differ(compile_kernel):
    kernel = compile_kernel(LU)
    rng = np.random.default_rng(0)
    a = rng.normal(size=(33, 33)) + 40 * np.eye(33)
    lu = a.copy()
    assert kernel(lu).status == 0
    lower, upper = np.tril(lu, -1) + np.eye(33), np.triu(lu)
    np.testing.assert_allclose(lower @ upper, a, atol=1e-12)
    assert "llvm.loop.parallel_accesses" in kernel.text
    assert "ymm" in kernel.assembly


def test_a_recurrence_is_not_parallel(compile_kernel):
    source = """
func.func @f(%x : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %m = arith.subi %n, %c1 : index
  %t = array.loop %i to %m do {
    %j = arith.addi %i, %c1 : index
    %a = memref.load %x[%i] : memref<?xf64>
    %b = memref.load %x[%j] : memref<?xf64>
    %c = arith.addf %a, %b : f64
    memref.store %c, %x[%j] : memref<?xf64>
    array.yield
  }
  func.return
}
"""
    kernel = compile_kernel(source)
    x = np.arange(50.0)
    assert kernel(x).status == 0
    np.testing.assert_array_equal(x, np.cumsum(np.arange(50.0)))
    assert "llvm.loop.parallel_accesses" not in kernel.text


@pytest.mark.parametrize("i", [0, 3])
def test_a_place_that_is_also_read_under_a_condition_meets_others_without_it(compile_kernel, i):
    source = (
        HEAD
        + """
    %c2 = arith.constant 2 : index
    %i2 = arith.muli %i, %c2 : index
    %large = arith.cmpi sge, %i, %c1 : index
    scf.if %large {
      %old = memref.load %s[%i] : memref<?xf64>
      memref.store %old, %g[%j] : memref<?xf64>
    } else {
    }
    memref.store %x, %s[%i] : memref<?xf64>
    %y = memref.load %s[%i2] : memref<?xf64>
    memref.store %y, %g[%j] : memref<?xf64>
"""
        + TAIL
    )
    s, g = np.arange(10.0), np.arange(20.0, 30.0)
    expected = g.copy() if i == 0 else np.full(10, s[2 * i])
    assert compile_kernel(source)(s, g, i).status == 0
    np.testing.assert_array_equal(g, expected)


def scaled(at: str) -> str:
    return f"""
    %y = memref.load %s[{at}] : memref<?xf64>
    %z = arith.mulf %x, %y : f64
    memref.store %z, %s[%j] : memref<?xf64>
"""


def test_an_element_that_no_iteration_writes_is_loaded_once(compile_kernel):
    kernel = compile_kernel(HEAD + scaled("%n") + TAIL)
    s, g = np.arange(1.0, 12.0), np.arange(20.0, 30.0)
    assert kernel(s, g, 0).status == 0
    np.testing.assert_array_equal(s, [*(g * 11.0), 11.0])
    assert "%register" in kernel.text


@pytest.mark.parametrize("i", [0, 3, 10])
def test_an_element_that_an_iteration_may_write_is_loaded_each_time(compile_kernel, i):
    kernel = compile_kernel(HEAD + scaled("%i") + TAIL)
    s, g = np.arange(1.0, 12.0), np.arange(20.0, 30.0)
    expected = s.copy()
    for j in range(10):
        expected[j] = g[j] * expected[i]
    assert kernel(s, g, i).status == 0
    np.testing.assert_array_equal(s, expected)
    assert "%register" not in kernel.text


def chunked(x, n, m):
    total, last = x[0], -1
    for i in range(n, m):
        total = np.sin(total) + 0.5 * i
        last = i
    for k in range(n, m, 3):
        x[1] += k * x[2]
        x[k % 2 + 3] *= 1.01
    for _ in range(2):
        for k in range(m):
            if k * total > 1e9:
                break
            total *= 0.99
    return total + last


@pytest.mark.parametrize(("n", "m"), [(0, 0), (3, -2), (0, 1), (2, 6), (1, 6), (-5, 8)])
def test_loops_of_numbers_ask_for_signals_between_chunks(n, m, monkeypatch):
    monkeypatch.setattr(loops_to_llvm, "CHUNK", 4)
    x = np.linspace(0.5, 1.5, 5)
    before = x.copy()
    assert CHUNKED(x, n, m) == chunked(before, n, m)
    np.testing.assert_array_equal(x, before)
    mutad.check_gradient(CHUNKED, np.linspace(0.5, 1.5, 5), n, m)
    assert "%chunk" in CHUNKED.inspect("llvm", x, n, m)


CHUNKED = mutad.compile(chunked, grad=True, cache=False)


def test_loops_over_elements_end_with_them() -> None:
    @mutad.compile
    def over_elements(x):
        for i in range(x.size // 2):
            x[2 * i + 1] = 0.5 * x[2 * i] + i
        return x

    assert "%chunk" not in over_elements.inspect("llvm", np.ones(4))


def calls_of_kernels(code: str, name: str) -> list[bool]:
    """For each call of a function of numbers in a kernel, in order, whether it has vector versions."""
    groups = dict(re.findall(r"^attributes (#\d+) = (.*)$", code, re.MULTILINE))
    found: list[bool] = []
    for kernel in re.findall(r"^define [^\n]* @kernel\w*\(.*?^}", code, re.MULTILINE | re.DOTALL):
        calls = re.findall(rf"call double @(?:mutad_)?{name}(_alone)?\(.*\) (#\d+)", kernel)
        for alone, group in calls:
            found.append("vector-function-abi-variant" in groups[group])
            assert not (alone and found[-1])
    return found


def test_functions_beside_what_each_iteration_stores_again_are_side_by_side() -> None:
    """Nothing reads what the loop stores to one place, so no iteration waits for another one."""

    def waves(x, last):
        for i in range(x.size):
            x[i] = np.sin(x[i])
            last[0] = x[i]
        return x.sum()

    compiled = mutad.compile(waves, grad=True, opt=3)
    code = compiled.inspect("llvm", np.ones(9), np.ones(1), wrt=("x", "last"))
    assert calls_of_kernels(code, "sin") == [True, True]
    assert "call double @mutad_sin(" in code


def test_functions_of_a_recurrence_have_no_vector_versions() -> None:
    """LLVM would pair two calls in one place, and not in another one. Primals are left to it, where libm's
    function is as fast as ours."""

    def chain(x):
        s = 0.5
        for i in range(x.size):
            s = math.sin(s) * x[i]
        return s

    def growth(x):
        s = 0.5
        for i in range(x.size):
            s = math.exp(s) * x[i]
        return s

    gradient = mutad.compile(chain, grad=True, opt=3).inspect("llvm", np.ones(9), wrt="x")
    # The forward sweep, short blocks of the reverse sweep, and the loop before the chain of a long one.
    assert calls_of_kernels(gradient, "sin") == [False, False, True]
    assert calls_of_kernels(gradient, "cos") == [False, True]
    assert calls_of_kernels(mutad.compile(growth, opt=3).inspect("llvm", np.ones(9)), "exp") == [
        True
    ]
