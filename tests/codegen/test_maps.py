"""Maps compute what NumPy computes, and their inner loops are vector code."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, f64, i64

from mutad.compiler.codegen.array_to_loops import loop_order

EXP = """
func.func @f(%a : memref<?xf64>, %c : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  array.map(%n) ins(%a : memref<?xf64>) outs(%c : memref<?xf64>) kinds ["store"] {
  ^bb0(%x : f64):
    %y = math.exp %x : f64
    array.yield %y : f64
  }
  func.return
}
"""


def test_exp_is_elementwise_and_calls_the_vector_version(compile_kernel):
    a = np.linspace(-3, 3, 1001)
    c = np.empty_like(a)
    kernel = compile_kernel(EXP)
    assert kernel(a, c).status == 0
    np.testing.assert_allclose(c, np.exp(a), rtol=1e-15)
    if any(s.startswith("_ZGVdN4") for s in kernel.kernel.symbols):
        assert "_ZGVdN4v_exp" in kernel.assembly


STENCIL = """
func.func @f(%u : memref<?x?xf64>, %v : memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %u, %c0 : memref<?x?xf64>
  %m = memref.dim %u, %c1 : memref<?x?xf64>
  %h = arith.subi %n, %c2 : index
  %w = arith.subi %m, %c2 : index
  %up = array.view %u[%c0, %c1] dims [0, 1] extents(%h, %w) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %do = array.view %u[%c2, %c1] dims [0, 1] extents(%h, %w) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %le = array.view %u[%c1, %c0] dims [0, 1] extents(%h, %w) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %ri = array.view %u[%c1, %c2] dims [0, 1] extents(%h, %w) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %to = array.view %v[%c1, %c1] dims [0, 1] extents(%h, %w) steps(%c1, %c1) : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
  %q = arith.constant 0.25 : f64
  array.map(%h, %w) ins(%up, %do, %le, %ri : memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64, strided<[?, 1]>>) outs(%to : memref<?x?xf64, strided<[?, 1]>>) kinds ["store"] {
  ^bb0(%a : f64, %b : f64, %c : f64, %d : f64):
    %s0 = arith.addf %a, %b : f64
    %s1 = arith.addf %s0, %c : f64
    %s2 = arith.addf %s1, %d : f64
    %r = arith.mulf %q, %s2 : f64
    array.yield %r : f64
  }
  func.return
}
"""


@pytest.mark.parametrize("shape", [(7, 9), (40, 50), (2, 5), (3, 3), (3, 100)])
def test_stencil(compile_kernel, shape):
    u = np.random.default_rng(0).normal(size=shape)
    v = np.zeros_like(u)
    kernel = compile_kernel(STENCIL)
    assert kernel(u, v).status == 0
    expected = np.zeros_like(u)
    expected[1:-1, 1:-1] = 0.25 * (((u[:-2, 1:-1] + u[2:, 1:-1]) + u[1:-1, :-2]) + u[1:-1, 2:])
    np.testing.assert_array_equal(v, expected)
    assert "ymm" in kernel.assembly


ADJOINT = """
func.func @f(%s : memref<?xf64>, %g : memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %s, %c0 : memref<?xf64>
  %h = arith.subi %n, %c2 : index
  %l = array.view %s[%c0] dims [0] extents(%h) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %m = array.view %s[%c1] dims [0] extents(%h) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %r = array.view %s[%c2] dims [0] extents(%h) steps(%c1) : memref<?xf64> -> memref<?xf64, strided<[1]>>
  %z = arith.constant 0.0 : f64
  %k = arith.constant 3.0 : f64
  array.map(%h) ins(%g : memref<?xf64>) outs(%g, %l, %m, %r : memref<?xf64>, memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["store", "add", "add", "add"] {
  ^bb0(%x : f64):
    %y = arith.mulf %k, %x : f64
    array.yield %z, %y, %x, %y : f64, f64, f64, f64
  }
  func.return
}
"""


@pytest.mark.parametrize("n", [2, 3, 10, 257, 258, 259, 1000])
def test_adds_at_shifted_views_of_one_array_are_vector_loops(compile_kernel, n):
    rng = np.random.default_rng(1)
    s, g = rng.normal(size=n), rng.normal(size=n - 2)
    expected = s.copy()
    expected[:-2] += 3.0 * g
    expected[1:-1] += g
    expected[2:] += 3.0 * g
    kernel = compile_kernel(ADJOINT)
    assert kernel(s, g).status == 0
    np.testing.assert_allclose(s, expected, rtol=1e-14)
    assert not g.any()
    assert kernel.assembly.count("vaddpd\t(%") + kernel.assembly.count("vaddpd\t") >= 3
    assert "ymm" in kernel.assembly


def reduction(kind: str, axes: str, out: str, result_view: str) -> str:
    return f"""
func.func @f(%a : memref<?x?xf64>, %c : memref<{out}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?x?xf64>
  %m = memref.dim %a, %c1 : memref<?x?xf64>
  %v = array.view %c{result_view} extents(%n, %m) steps(%c1, %c1) : memref<{out}> -> memref<?x?xf64, strided<{axes}>>
  array.map(%n, %m) ins(%a : memref<?x?xf64>) outs(%v : memref<?x?xf64, strided<{axes}>>) kinds ["{kind}"] {{
  ^bb0(%x : f64):
    array.yield %x : f64
  }}
  func.return
}}
"""


NUMPY = {
    "add": (np.add, 0.0),
    "mul": (np.multiply, 1.0),
    "min": (np.minimum, np.inf),
    "max": (np.maximum, -np.inf),
}


@pytest.mark.parametrize("kind", ["add", "mul", "min", "max"])
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (0, 3), (3, 0), (64, 130)])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions(compile_kernel, kind, shape, axis):
    ufunc, start = NUMPY[kind]
    a = 1.0 + 0.01 * np.random.default_rng(2).normal(size=shape)
    if axis is None:
        kernel = compile_kernel(reduction(kind, "[0, 0]", "f64", "[] dims [-1, -1]"))
        out = np.full((), start)
    elif axis == 0:
        kernel = compile_kernel(reduction(kind, "[0, 1]", "?xf64", "[%c0] dims [-1, 0]"))
        out = np.full(shape[1], start)
    else:
        kernel = compile_kernel(reduction(kind, "[1, 0]", "?xf64", "[%c0] dims [0, -1]"))
        out = np.full(shape[0], start)
    assert kernel(a, out).status == 0
    np.testing.assert_allclose(out, ufunc.reduce(a, axis=axis, initial=start), rtol=1e-13)
    assert "ymm" in kernel.assembly
    if kind in ("min", "max") and a.size > 10:
        a[1, 3] = np.nan
        out[...] = start
        assert kernel(a, out).status == 0
        np.testing.assert_array_equal(out, ufunc.reduce(a, axis=axis))


CHOSEN_LANES = """
func.func @f(%a : memref<?xf64>, %v : memref<?xvector<8xf64>>, %w : memref<?xvector<8xf64>>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  array.map(%n) ins(%a, %v : memref<?xf64>, memref<?xvector<8xf64>>) outs(%w : memref<?xvector<8xf64>>) kinds ["store"] {
  ^bb0(%x : f64, %d : vector<8xf64>):
    %zero = arith.constant 0.0 : f64
    %positive = arith.cmpf ogt, %x, %zero : f64
    %minus = arith.negf %d : vector<8xf64>
    %chosen = arith.select %positive, %d, %minus : vector<8xf64>
    array.yield %chosen : vector<8xf64>
  }
  func.return
}
"""


def test_lanes_are_chosen_without_a_branch_in_strips_whose_buffers_stay_in_the_cache(
    compile_kernel,
):
    kernel = compile_kernel(CHOSEN_LANES)
    assert "select <8 x i1>" in kernel.text
    assert "[64 x i64]" in kernel.text
    assert "[256 x i64]" not in kernel.text


@pytest.mark.parametrize(
    ("ins", "outs", "order"),
    [
        ([["n", "1"], ["1", "0"], ["1", "0"], ["1", "0"]], [("add", ["1", "0"])], [0, 1]),
        ([["1", "n"], ["0", "1"], ["0", "1"], ["0", "1"]], [("add", ["0", "1"])], [1, 0]),
        ([["n", "1"], ["1", "n"], ["1", "0"]], [("store", ["k", "k"])], [1, 0]),
        ([["n", "1"], ["1", "n"], ["0", "1"]], [("store", ["k", "k"])], [0, 1]),
        ([["n", "1"]], [("store", ["1", "n"]), ("store", ["1", "n"])], [1, 0]),
        ([["n", "1"]], [("add", ["1", "0"]), ("store", ["1", "n"])], [0, 1]),
    ],
)
def test_whole_operands_decide_which_loop_is_innermost(ins, outs, order) -> None:
    """Broadcast ones only where those do not; saves beside a sum never."""
    memrefs = {
        name: SimpleNamespace(strides=strides, element=f64)
        for name, strides in enumerate([*ins, *(strides for _, strides in outs)])
    }
    kinds = [kind for kind, _ in outs]
    outs = range(len(ins), len(memrefs))
    op = SimpleNamespace(ins=range(len(ins)), outs=outs, out_kinds=kinds, attributes={})
    state = SimpleNamespace(memrefs=memrefs)
    assert loop_order(cast(Any, state), cast(Any, op), ["n", "m"]) == order
    op.attributes["innermost"] = IntegerAttr(0, i64)  # decided for a step (`order-sums`)
    assert loop_order(cast(Any, state), cast(Any, op), ["n", "m"]) == [1, 0]


def backwards(first: int, second: int) -> str:
    """A map from one array to another that goes along either in a direction, and adds up what it stores."""
    types = [f"memref<?xf64, strided<[{step}]>>" for step in (first, second)]
    places = ["%c0" if step > 0 else "%last" for step in (first, second)]
    steps = ["%c1" if step > 0 else "%cm1" for step in (first, second)]
    return f"""
func.func @f(%a : memref<?xf64>, %b : memref<?xf64>, %c : memref<?xf64>, %s : memref<f64>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %last = arith.subi %n, %c1 : index
  %x = array.view %a[{places[0]}] dims [0] extents(%n) steps({steps[0]}) : memref<?xf64> -> {types[0]}
  %y = array.view %b[{places[0]}] dims [0] extents(%n) steps({steps[0]}) : memref<?xf64> -> {types[0]}
  %z = array.view %c[{places[1]}] dims [0] extents(%n) steps({steps[1]}) : memref<?xf64> -> {types[1]}
  %t = array.view %s[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
  array.map(%n) ins(%x, %y : {types[0]}, {types[0]}) outs(%z, %t : {types[1]}, memref<?xf64, strided<[0]>>)
      kinds ["store", "add"] {{
  ^bb0(%p : f64, %q : f64):
    %r = arith.subf %p, %q : f64
    array.yield %r, %r : f64, f64
  }}
  func.return
}}"""


@pytest.mark.parametrize("n", [0, 1, 7, 65])
@pytest.mark.parametrize(("first", "second"), [(-1, -1), (-1, 1), (1, -1)])
def test_rows_that_lie_backwards_are_walked_from_their_ends(
    compile_kernel, first: int, second: int, n: int
) -> None:
    """Two of the three rows go along with the counter, whichever way they lie."""
    kernel = compile_kernel(backwards(first, second))
    a, b = np.random.default_rng(0).normal(size=(2, n))
    c, s = np.zeros(n), np.array(1.0)
    assert kernel(a, b, c, s).status == 0
    expected = (a - b)[::first][::second]
    assert c.tolist() == expected.tolist()
    np.testing.assert_allclose(s, 1.0 + expected.sum(), rtol=1e-12, atol=1e-12)
    offsets = dict(
        re.findall(r"(%p\.\d+) = getelementptr inbounds double, .*, i64 (\S+)", kernel.text)
    )
    loads = re.findall(r"load double, ptr (%p\.\d+)", kernel.text)
    assert [offsets[place].startswith("%j.") for place in loads if place in offsets] == [True, True]
