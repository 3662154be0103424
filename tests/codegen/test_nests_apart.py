"""Nests that are functions of their own compute what they do in place."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mutad
from mutad.compiler.codegen import nests_apart
from mutad.compiler.codegen.llvm_module import optimized_ir

SUM = """
func.func @f(%u : memref<?xf64>, %lo : index, %hi : index) -> f64 {
  %c0 = arith.constant 0 : index
  %n = memref.dim %u, %c0 : memref<?xf64>
  %s = memref.alloca() : memref<f64>
  %zero = arith.constant 0.5 : f64
  memref.store %zero, %s[] : memref<f64>
  %count = arith.subi %hi, %lo : index
  %t = array.loop %k to %count do {
    %i = arith.addi %k, %lo : index
    %j = array.index %i, %n axis 0 sign "any"
    %x = memref.load %u[%j] : memref<?xf64>
    %y = memref.load %s[] : memref<f64>
    %z = arith.addf %y, %x : f64
    memref.store %z, %s[] : memref<f64>
    memref.store %z, %u[%j] : memref<?xf64>
    array.yield
  }
  %r = memref.load %s[] : memref<f64>
  func.return %r : f64
}
"""

RAISES = """
func.func @f(%u : memref<?xf64>, %m : index, %far : i1) -> f64 {
  %c0 = arith.constant 0 : index
  %n = memref.dim %u, %c0 : memref<?xf64>
  %s = memref.alloca() : memref<f64>
  %zero = arith.constant 0.5 : f64
  memref.store %zero, %s[] : memref<f64>
  scf.if %far {
    %trips = array.loop %i to %m do {
      %j = array.index %i, %n axis 0 : i64 sign "nonneg"
      %y = memref.load %s[] : memref<f64>
      %z = arith.addf %y, %zero : f64
      memref.store %z, %s[] : memref<f64>
      memref.store %z, %u[%j] : memref<?xf64>
      array.yield
    }
  } else {
  } {raises}
  %trips_1 = array.loop %i to %m do {
    %j = array.index %i, %n axis 0 : i64 sign "nonneg" unchecked
    %y = memref.load %s[] : memref<f64>
    %z = arith.addf %y, %zero : f64
    memref.store %z, %s[] : memref<f64>
    memref.store %z, %u[%j] : memref<?xf64>
    array.yield
  }
  %r = memref.load %s[] : memref<f64>
  func.return %r : f64
}
"""


def functions(text: str, attribute: str) -> int:
    return len(re.findall(rf"^define internal .*@nest_\d+\(.*\b{attribute}\b", text, re.MULTILINE))


@pytest.mark.parametrize("low", [0, 3, -4])
def test_the_checked_copy_is_a_function_that_changes_the_variables_of_the_kernel(
    compile_kernel, low: int
) -> None:
    kernel = compile_kernel(SUM)
    u = np.arange(9.0)
    expected, total = u.copy(), 0.5
    for i in range(low, 9):
        total += expected[i]
        expected[i] = total
    outcome = kernel(u, low, 9)
    assert (outcome.status, outcome.results) == (0, [total])
    np.testing.assert_array_equal(u, expected)
    assert functions(kernel.kernel.text, "optsize") == 1


def test_what_raises_is_not_optimized_and_leaves_memory_as_it_was_then(compile_kernel) -> None:
    kernel = compile_kernel(RAISES)
    assert functions(kernel.kernel.text, "optnone") == 1
    u = np.zeros(4)
    assert kernel(u, 4, 0).status == 0
    np.testing.assert_array_equal(u, [1.0, 1.5, 2.0, 2.5])
    u[:] = 0.0
    outcome = kernel(u, 7, 1)
    assert outcome.status == 1
    assert outcome.payload == [4, 4]
    np.testing.assert_array_equal(u, [1.0, 1.5, 2.0, 2.5])


def test_variables_stay_registers_beside_a_copy(compile_kernel) -> None:
    """The kernel's loop stores to the array alone; the variable is in memory where the function changes it."""
    text = optimized_ir(compile_kernel(RAISES).text)
    kernel = text[text.index("@kernel(") :].split("\n}", 1)[0]
    copies = re.findall(r"store double .*, ptr (%copy\S*),", kernel)
    assert re.findall(r"= alloca double", kernel) == ["= alloca double"]
    assert len(copies) == 1


def test_what_may_be_one_of_two_variables_stays_where_it_is(compile_kernel) -> None:
    chosen = RAISES.replace(
        "  scf.if %far {",
        """  %o = memref.alloca() : memref<f64>
  memref.store %zero, %o[] : memref<f64>
  %p = scf.if %far -> (memref<f64>) {
    scf.yield %s : memref<f64>
  } else {
    scf.yield %o : memref<f64>
  }
  scf.if %far {""",
        1,
    ).replace("load %s[]", "load %p[]", 1)
    text = compile_kernel(chosen).kernel.text
    assert functions(text, "optnone") == 0


GROWS = """
func.func @f(%u : memref<?xf64>, %n : index) -> f64 {
  %c0 = arith.constant 0 : index
  %many = arith.constant 100000 : index
  %t = array.loop %k to %n do {
    %t_1 = array.loop %i to %n do {
      %m = arith.addi %i, %n : index
      %inner = array.alloc(%m) {growable} : memref<?xf64>
      %x = memref.load %u[%i] : memref<?xf64>
      memref.store %x, %inner[%i] : memref<?xf64>
      %y = memref.load %inner[%i] : memref<?xf64>
      %z = arith.addf %x, %y : f64
      memref.store %z, %u[%i] : memref<?xf64>
      array.yield
    }
    array.yield
  }
  %outer = array.alloc(%many) {growable} : memref<?xf64>
  %r = memref.load %outer[%c0] : memref<?xf64>
  func.return %r : f64
}
"""


# Nests in a huge loop. -------------------------------------------------------------------------------


def sweeps(u, v, steps):
    total = 0.0
    for _ in range(steps):
        for i in range(1, u.shape[0]):
            u[i] = u[i] * np.sin(v[i]) + 0.5 * u[i - 1]
            total += u[i] * v[i]
        for i in range(v.shape[0] - 1):
            v[i] += 0.1 * u[i + 1] * v[i] + 1e-3 * total
        total *= 0.5
    return total + (u * v).sum()


def swaps(u, v, steps):
    for _ in range(steps):
        for _ in range(3):
            for i in range(1, u.shape[0] - 1):
                v[i] = u[i - 1] * u[i + 1] + 0.5 * v[i] * u[i]
            u, v = v, u
    return (u * v).sum()


def reads(u, at, steps):
    total = 0.0
    for _ in range(steps):
        for i in range(at.shape[0]):
            total += u[at[i]] * u[i]
            u[i] = 0.5 * total + u[at[i]]
    return total


def chosen(u, k, steps):
    for _ in range(steps):
        for i in range(u.shape[0]):
            if u[i] > 0.5:
                u[i] = np.sin(k * u[i]) * u[i]
            else:
                u[i] = 0.3 + u[i]
    return u.sum()


@pytest.fixture
def all_huge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nests_apart, "HUGE", 10)


def both() -> tuple[np.ndarray, np.ndarray]:
    return np.linspace(0.1, 1.0, 40), np.linspace(0.5, 1.5, 40)


def fast_nests(f, *args, **how) -> int:
    text = mutad.compile(f, grad=True, cache=False, **how).inspect("llvm", *args, wrt="u")
    return len(
        re.findall(
            r"^define internal .*@nest_\d+\(.*noinline nounwind alignstack", text, re.MULTILINE
        )
    )


@pytest.mark.parametrize("f", [sweeps, swaps])
def test_a_nest_apart_computes_what_it_does_in_place(monkeypatch, f) -> None:
    found = []
    for huge in (nests_apart.HUGE, 10):
        monkeypatch.setattr(nests_apart, "HUGE", huge)
        u, v = both()
        value, slopes = mutad.compile(f, grad=True, cache=False).value_and_grad(
            u, v, 4, wrt=("u", "v")
        )
        found.append((value, *(x.tobytes() for x in (*slopes, u, v))))
        assert (fast_nests(f, *both(), 4) > 0) == (huge == 10)
    assert found[0] == found[1]


def test_what_iterations_add_to_a_variable_under_a_condition_all_counts(all_huge) -> None:
    """It was in memory, in a loop of which LLVM heard that its iterations touch different memory."""
    u = both()[0]
    assert fast_nests(chosen, u, 0.8, 4) > 0
    f = mutad.compile(chosen, grad=True, cache=False)
    slope = f.grad(u.copy(), 0.8, 4, wrt="k")
    step = 1e-6
    rise = chosen(u.copy(), 0.8 + step, 4) - chosen(u.copy(), 0.8 - step, 4)
    np.testing.assert_allclose(slope, rise / (2 * step), rtol=1e-8)
    mutad.check_gradient(f, u.copy(), 0.8, 4, wrt=("u", "k"))


def test_a_variable_is_in_a_register_of_the_nest_apart(all_huge) -> None:
    """So the loop that adds to it under a condition is vector code."""
    f = mutad.compile(chosen, grad=True, cache=False)
    text = f.inspect("llvm", both()[0], 0.8, 4, wrt="k")
    accesses = [line for line in text.splitlines() if "%own" in line and "group" in line]
    assert "%own" in text
    assert not accesses
    assert "x double> @llvm.masked.gather" not in f.inspect("llvm-opt", both()[0], 0.8, 4, wrt="k")


def test_it_goes_on_with_the_fuel_of_the_kernel(all_huge) -> None:
    text = mutad.compile(sweeps, grad=True, cache=False).inspect("llvm", *both(), 4)
    heads = re.findall(r"^define internal .*@nest_\d+\(.*\n(?:.*\n)*?}", text, re.MULTILINE)
    assert heads
    assert any("%fuel" in head for head in heads)
    assert not any(re.search(r"%fuel\S* = alloca", head) for head in heads)


def test_threads_share_nests_out_in_place(all_huge) -> None:
    assert fast_nests(sweeps, *both(), 4, parallel=True) == 0


def test_what_grows_behind_a_nest_apart_lies_where_nothing_of_the_nest_did(
    compile_kernel, monkeypatch, all_huge
) -> None:
    """Its elements were never touched (`array.FRESH`)."""
    monkeypatch.setattr(nests_apart, "LEAST", 1)
    kernel = compile_kernel(GROWS)
    assert "@nest_" in kernel.kernel.text
    numbers = re.findall(r"call ptr @mutad_reserve\(ptr %ctx, i64 (\d+)\)", kernel.kernel.text)
    assert len(numbers) == 2
    assert len(set(numbers)) == 2


def test_few_ops_stay_in_place(all_huge, monkeypatch) -> None:
    monkeypatch.setattr(nests_apart, "LEAST", 10_000)
    assert fast_nests(sweeps, *both(), 4) == 0


def test_what_is_raised_in_a_nest_apart_comes_out(all_huge) -> None:
    u, at = both()[0], np.arange(40)
    at[30] = 99
    expected = u.copy()
    with pytest.raises(IndexError) as told:
        reads(expected, at, 2)
    compiled = mutad.compile(reads, grad=True, cache=False)
    with pytest.raises(IndexError, match=re.escape(str(told.value))):
        compiled(u, at, 2)
    np.testing.assert_array_equal(u, expected)
