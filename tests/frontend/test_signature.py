"""Argument keys and what they stand for."""

from __future__ import annotations

import pytest

from mutad.compiler.argument_keys import parse
from mutad.compiler.frontend.signature import ir_types


@pytest.mark.parametrize(
    ("key", "types"),
    [
        ("f64[?]C", ["memref<?xf64>"]),
        ("f32[?,1]C", ["memref<?x1xf32>"]),
        ("i64[?,?]F", ["memref<?x?xi64, strided<[1, ?]>>"]),
        ("b1[?,?]S", ["memref<?x?xi1, strided<[?, ?]>>"]),
        ("f64[]C", ["memref<f64>"]),
        ("f64[?]Cr", ["memref<?xf64>"]),
        ("py_int", ["index"]),
        ("py_bool", ["i1"]),
        ("i32", ["i32"]),
        ("None", []),
        ("(f64[?]C,(py_int,None),f32)", ["memref<?xf64>", "index", "f32"]),
        ("()", []),
    ],
)
def test_a_key_stands_for_ir_types(key: str, types: list[str]) -> None:
    assert [str(t) for t in ir_types(parse(key))] == types


@pytest.mark.parametrize("text", ["f16[?]C", "f64[?]", "f64[?]X", "f64[?]CR", "int", ""])
def test_anything_else_is_no_key(text: str) -> None:
    with pytest.raises(ValueError, match="not an argument key"):
        ir_types(parse(text))
