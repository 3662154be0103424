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
