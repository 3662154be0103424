"""Object code at every optimization level, and what can be read of it."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest

from mutad.compiler.codegen.llvm_module import (
    assembly,
    host,
    optimize_and_emit,
    optimized_ir,
    target_machine,
)
from mutad.compiler.codegen.vector_math import variants
from mutad.runtime.target import machine

ADD = """
define i64 @add(i64 %a, i64 %b) {
  %c = add i64 %a, %b
  ret i64 %c
}
"""


@pytest.mark.parametrize("opt", [0, 1, 2, 3])
def test_object_code(opt):
    assert b"add" in optimize_and_emit(ADD, opt)


def test_readable_forms():
    assert "add i64 %" in optimized_ir(ADD)
    assert "add:" in assembly(ADD)


def test_ill_formed_text_is_an_error_and_not_an_abort():
    with pytest.raises(RuntimeError):
        optimize_and_emit("define i64 @f() { ret i32 0 }")


ROOTS = """
declare double @llvm.sqrt.f64(double)

define double @roots(ptr %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %more, %loop ]
  %at = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %at
  %root = call double @llvm.sqrt.f64(double %v)
  %more = fadd double %sum, %root
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %done
done:
  ret double %more
}
"""


@pytest.mark.skipif(machine() != "x86_64", reason="LLVM does so by itself elsewhere")
def test_terms_of_a_sum_in_order_are_vectors_and_the_option_is_ours_alone():
    assert re.search(r"call <\d+ x double> @llvm.sqrt", optimized_ir(ROOTS))
    assert not re.search(r"fadd (reassoc|fast)", optimized_ir(ROOTS))
    module = llvm.parse_assembly(ROOTS)
    machine = target_machine()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    assert " x double>" not in str(module)


def test_vector_versions_are_those_of_the_cpu():
    assert variants("exp", frozenset()) == ()
    assert variants("no_such_function", host().features) == ()
    for symbol, lanes in variants("expf", host().features):
        assert symbol.endswith("_expf")
        assert lanes in (4, 8, 16)
