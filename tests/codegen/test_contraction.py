"""Adjoint code contracts sums with products by what is computed from what; primals are exact."""

from __future__ import annotations

from fractions import Fraction

import llvmlite.binding as llvm
import numpy as np
import pytest

from mutad.compiler.codegen.llvm_module import host, made_anew

FORMS = {
    "a*b + c": ("addf %p, %c", lambda a, b, c: a * b + c),
    "c + a*b": ("addf %c, %p", lambda a, b, c: a * b + c),
    "a*b - c": ("subf %p, %c", lambda a, b, c: a * b - c),
    "c - a*b": ("subf %c, %p", lambda a, b, c: c - a * b),
}


def source(form: str, attribute: str) -> str:
    return f"""
func.func @f(%a : f64, %b : f64, %c : f64) -> f64 {{
  %p = arith.mulf %a, %b {attribute}: f64
  %r = arith.{form} {attribute}: f64
  func.return %r : f64
}}"""


@pytest.mark.parametrize("name", FORMS)
def test_a_sum_with_a_product_is_rounded_once_in_adjoint_code(compile_kernel, name: str) -> None:
    form, formula = FORMS[name]
    rng = np.random.default_rng(0)
    adjoint = compile_kernel(source(form, "{ad.adjoint} "))
    primal = compile_kernel(source(form, ""))
    assert " contract" not in adjoint.text + primal.text
    differ = 0
    for a, b, c in rng.normal(size=(50, 3)).tolist():
        once = float(formula(Fraction(a), Fraction(b), Fraction(c)))
        differ += once != formula(a, b, c)
        assert primal(a, b, c).results == [formula(a, b, c)]
        expected = once if "fma" in host().features else formula(a, b, c)
        assert adjoint(a, b, c).results == [expected]
    assert differ


@pytest.mark.parametrize("extents", [("strided<[1]>", "%c1", 5), ("strided<[0]>", "%c0", 1)])
def test_so_is_what_a_map_adds(compile_kernel, extents: tuple[str, str, int]) -> None:
    """To elements, and to one that stands still: there is one point, so that the sum has one order."""
    layout, step, n = extents

    def added(attribute: str) -> str:
        return f"""
func.func @f(%a : memref<?xf64>, %b : memref<?xf64>, %c : memref<?xf64>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  %to = array.view %c[%c0] dims [0] extents(%n) steps({step}) : memref<?xf64> -> memref<?xf64, {layout}>
  array.map(%n) ins(%a, %b : memref<?xf64>, memref<?xf64>) outs(%to : memref<?xf64, {layout}>) kinds ["add"] {{
  ^bb0(%x : f64, %y : f64):
    %p = arith.mulf %x, %y {attribute}: f64
    array.yield %p : f64
  }}
  func.return
}}"""

    adjoint, primal = compile_kernel(added("{ad.adjoint} ")), compile_kernel(added(""))
    assert "fmuladd" in adjoint.text
    assert "fmuladd" not in primal.text
    rng, differ = np.random.default_rng(1), 0
    for _ in range(20):
        a, b, c = rng.normal(size=(3, n))
        numbers = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
        once = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in numbers]
        differ += once != (c + a * b).tolist()
        exact, rounded = c.copy(), c.copy()
        primal(a, b, exact)
        adjoint(a, b, rounded)
        assert exact.tolist() == (c + a * b).tolist()
        if n > 1 and "fma" in host().features:
            assert rounded.tolist() == once
        np.testing.assert_allclose(rounded, once, rtol=1e-12)
    assert differ


def test_a_constant_divisor_is_a_factor_in_adjoint_code(compile_kernel) -> None:
    def quotient(divisor: str, attribute: str) -> str:
        return f"""
func.func @f(%a : f64) -> f64 {{
  %d = arith.constant {divisor} : f64
  %r = arith.divf %a, %d {attribute}: f64
  func.return %r : f64
}}"""

    for divisor in ("6.0", "1.0e-308", "0.0"):
        primal = compile_kernel(quotient(divisor, ""))
        adjoint = compile_kernel(quotient(divisor, "{ad.adjoint} "))
        assert "fdiv" in primal.text
        assert ("fdiv" in adjoint.text) == (divisor != "6.0")
        with np.errstate(all="ignore"):
            expected = np.float64(7.0) / float(divisor)
        assert primal(7.0).results == [expected]
        np.testing.assert_allclose(adjoint(7.0).results, [expected], rtol=1e-15)


def test_what_is_left_out_between_words_is_no_load_made_anew() -> None:
    text = """
declare <4 x double> @llvm.masked.load.v4f64.p0(ptr, <4 x i1>, <4 x double>)
define <4 x double> @f(ptr %p, <4 x i1> %mask, <4 x double> %other) {{
  %x = call <4 x double> @llvm.masked.load.v4f64.p0(ptr align 8 %p, <4 x i1> {0}, <4 x double> {1})
  ret <4 x double> %x
}}"""
    constant = "<i1 true, i1 false, i1 true, i1 true>"
    for mask, other, found in (
        (constant, "poison", 0),
        (constant, "%other", 1),
        ("%mask", "poison", 1),
        ("%mask", "%other", 1),
    ):
        assert len(made_anew(llvm.parse_assembly(text.format(mask, other)))) == found
