"""Object code at every optimization level, and what can be read of it."""

from __future__ import annotations

import pytest

from mutad.compiler.codegen.llvm_module import (
    assembly,
    host_features,
    optimize_and_emit,
    optimized_ir,
)
from mutad.compiler.codegen.vector_math import variants

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


def test_vector_versions_are_those_of_the_cpu():
    assert variants("exp", frozenset()) == ()
    assert variants("no_such_function", host_features()) == ()
    for symbol, lanes in variants("expf", host_features()):
        assert symbol.endswith("_expf")
        assert lanes in (4, 8, 16)
