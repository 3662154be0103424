"""In a kernel of many maps the loops of each are a function, and nothing else changes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mutad.compiler.codegen.outlined_maps import MANY

HEAD = """
func.func @f(%a : memref<?xf64>, %b : memref<?xf64>, %t : f64) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
"""
MAP = """
  array.map(%n) ins(%a : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["add"] {
  ^bb0(%x : f64):
    %y = arith.mulf %x, %t : f64
    array.yield %y : f64
  }
  array.map(%n) ins(%b : memref<?xf64>) outs(%a : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = math.absf %x : f64
    array.yield %y : f64
  }
"""


def program(maps: int) -> str:
    return HEAD + MAP * (maps // 2) + "  func.return\n}\n"


@pytest.mark.parametrize("maps", [2, MANY, 3 * MANY])
@pytest.mark.parametrize("n", [0, 1, 37, 1000])
def test_many_maps_compute_what_they_compute_one_by_one(compile_kernel, maps: int, n: int) -> None:
    a, b = np.linspace(-1, 1, n), np.linspace(0, 3, n)
    expected_a, expected_b = a.copy(), b.copy()
    for _ in range(maps // 2):
        expected_b += expected_a * 0.5
        expected_a[:] = np.abs(expected_b)
    assert compile_kernel(program(maps))(a, b, 0.5).status == 0
    np.testing.assert_array_equal(a, expected_a)
    np.testing.assert_array_equal(b, expected_b)


def test_maps_that_are_alike_share_a_function(compile_kernel) -> None:
    text = compile_kernel(program(MANY)).kernel.text
    assert text.count("define internal void @map_") == 2
    assert text.count("call void @map_") == MANY


def test_maps_that_differ_in_a_number_or_in_what_may_meet_have_functions_of_their_own(
    compile_kernel,
) -> None:
    body = "".join(
        f"""
  %k{k} = arith.constant {k % 3}.5 : f64
  array.map(%n) ins(%{ins} : memref<?xf64>) outs(%b : memref<?xf64>) kinds ["store"] {{
  ^bb0(%x : f64):
    %y{k} = arith.mulf %x, %k{k} : f64
    array.yield %y{k} : f64
  }}"""
        for k, ins in enumerate("ab" * MANY)
    )
    text = compile_kernel(HEAD + body + "  func.return\n}\n").kernel.text
    assert text.count("define internal void @map_") == 6


def test_what_a_map_does_not_use_is_no_parameter_of_its_function(compile_kernel) -> None:
    text = compile_kernel(chain(MANY)).kernel.text
    heads = re.findall(r"define internal void @map_\d+\((.*)\) noinline", text)
    types = [[one.split()[0] for one in head.split(", ")] for head in heads]
    assert types == [["ptr", "i64", "ptr", "ptr"]] * MANY


def test_a_few_maps_stay_in_the_kernel(compile_kernel) -> None:
    assert "@map_" not in compile_kernel(program(2)).kernel.text


def chain(maps: int) -> str:
    """Each map reads one argument and writes the next, no two in the same way."""
    arguments = ", ".join(f"%a{k} : memref<?xf64>" for k in range(maps + 1))
    body = "".join(
        f"""
  %k{k} = arith.constant {k}.0 : f64
  array.map(%n) ins(%a{k} : memref<?xf64>) outs(%a{k + 1} : memref<?xf64>) kinds ["store"] {{
  ^bb0(%x : f64):
    %y{k} = arith.addf %x, %k{k} : f64
    array.yield %y{k} : f64
  }}"""
        for k in range(maps)
    )
    return f"""
func.func @f({arguments}) {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %a0, %c0 : memref<?xf64>{body}
  func.return
}}
"""


def test_what_may_not_meet_is_listed_for_the_own_arrays_of_a_map(compile_kernel) -> None:
    text = compile_kernel(chain(2 * MANY)).kernel.text
    nodes = {line.split(" = ")[0]: line for line in text.splitlines() if line.startswith("!")}
    listed = set(re.findall(r"!noalias (![0-9]+)", text))
    assert len(listed) > MANY
    assert all("," not in nodes[n] for n in listed)


OF_VECTORS = """
  array.map(%n) ins(%a : memref<?xvector<2xf64>>) outs(%b : memref<?xvector<2xf64>>) kinds ["store"] {
  ^bb0(%x : vector<2xf64>):
    %y = ad.mul %x, %v : vector<2xf64>
    array.yield %y : vector<2xf64>
  }
"""


def test_the_number_that_a_vector_is_made_of_is_handed_on(compile_kernel) -> None:
    """A vector times a number is looked at as a number, also where the vector is made outside of the map."""
    head = HEAD.replace("?xf64", "?xvector<2xf64>")
    spread = "  %v = vector.broadcast %t : f64 to vector<2xf64>\n"
    text = compile_kernel(head + spread + OF_VECTORS * MANY + "  func.return\n}\n").text
    assert re.search(r"define internal void @map_0\(.*double %p", text)


GATHERING = """
func.func @f(%a : memref<?x?xf64>, %b : memref<?x?xf64>, %first : index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?x?xf64>
  %m = memref.dim %a, %c1 : memref<?x?xf64>
  %rows = arith.addi %n, %c1 : index
  {maps}
  func.return
}}
"""
GATHER = """
  array.map(%rows, %m) ins(%a, %a : memref<?x?xf64>, memref<?x?xf64>) outs(%b : memref<?x?xf64>) kinds ["add"]
      window(%n, %m) {origin} shifts [0, 0, 1, 0] zeros [0, 1] {{
  ^bb0(%x : f64, %y : f64):
    %z = arith.addf %x, %y : f64
    array.yield %z : f64
  }}
"""


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("first", [-1, 0, 2])
def test_maps_that_gather_for_all_rows_and_for_some_share_a_function(
    compile_kernel, n: int, first: int
) -> None:
    origins = "", "origin(%first, %c0)", "origin(%c0, %c0)", "origin(%c1, %c0)"
    maps = "".join(GATHER.format(origin=one) for one in origins) * (MANY // len(origins))
    kernel = compile_kernel(GATHERING.format(maps=maps))
    assert kernel.kernel.text.count("define internal void @map_") == 1
    a = np.arange(3.0 * n).reshape(n, 3) + 1.0
    b, expected = np.zeros((n + 1, 3)), np.zeros((n + 1, 3))
    assert kernel(a, b, first).status == 0
    for row in range(n + 1):
        for origin in (0, first, 0, 1):
            for at in (row + origin, row + origin - 1):
                expected[row] += a[at] if 0 <= at < n else 0.0
    np.testing.assert_array_equal(b, expected * (MANY // len(origins)))
