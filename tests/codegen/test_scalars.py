"""Every scalar op gives what NumPy gives, on every edge."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

TYPES = {"i1": np.bool_, "i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
INTEGERS = [0, 1, -1, 2, -2, 3, 7, -7, 31, 32, 33, 63, 64, 100]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    3.0,
    7.25,
    1e300,
    -1e300,
    1e10,
    -1e10,
    np.inf,
    -np.inf,
    np.nan,
]


def binary(op: str, type_: str, result: str | None = None) -> str:
    result = result or type_
    return f"""
func.func @f(%a : memref<?x{type_}>, %b : memref<?x{type_}>, %c : memref<?x{result}>) {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?x{type_}>
  array.map(%n) ins(%a, %b : memref<?x{type_}>, memref<?x{type_}>) outs(%c : memref<?x{result}>) kinds ["store"] {{
  ^bb0(%x : {type_}, %y : {type_}):
    %z = {op} %x, %y : {type_}
    array.yield %z : {result}
  }}
  func.return
}}
"""


def unary(op: str, type_: str, tail: str, result: str) -> str:
    return f"""
func.func @f(%a : memref<?x{type_}>, %c : memref<?x{result}>) {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?x{type_}>
  array.map(%n) ins(%a : memref<?x{type_}>) outs(%c : memref<?x{result}>) kinds ["store"] {{
  ^bb0(%x : {type_}):
    %z = {op} %x : {tail}
    array.yield %z : {result}
  }}
  func.return
}}
"""


def pairs(type_: str) -> tuple[np.ndarray, np.ndarray]:
    dtype = TYPES[type_]
    if type_[0] == "f":
        with np.errstate(over="ignore"):
            values = np.array(FLOATS).astype(dtype)
    else:
        info = np.iinfo(dtype)
        values = np.array([*INTEGERS, info.min, info.max], dtype)
    both = np.array(list(itertools.product(values, values)), dtype)
    return both[:, 0].copy(), both[:, 1].copy()


INTEGER_OPS = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "array.floordiv": np.floor_divide,
    "array.floormod": np.remainder,
    "arith.minsi": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
}


@pytest.mark.parametrize("type_", ["i32", "i64"])
@pytest.mark.parametrize("op", INTEGER_OPS)
def test_integers(compile_kernel, op, type_):
    a, b = pairs(type_)
    c = np.empty_like(a)
    assert compile_kernel(binary(op, type_))(a, b, c).status == 0
    with np.errstate(all="ignore"):
        expected = INTEGER_OPS[op](a, b)
    np.testing.assert_array_equal(c, expected)


FLOAT_OPS = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "array.floordiv": np.floor_divide,
    "array.floormod": np.remainder,
    "arith.minimumf": np.minimum,
    "arith.maximumf": np.maximum,
    "arith.minnumf": np.fmin,
    "arith.maxnumf": np.fmax,
    "math.powf": np.power,
    "math.atan2": np.arctan2,
    "math.copysign": np.copysign,
}


@pytest.mark.parametrize("type_", ["f32", "f64"])
@pytest.mark.parametrize("op", FLOAT_OPS)
def test_floats(compile_kernel, op, type_):
    a, b = pairs(type_)
    c = np.empty_like(a)
    assert compile_kernel(binary(op, type_))(a, b, c).status == 0
    with np.errstate(all="ignore"):
        expected = FLOAT_OPS[op](a, b)
    if op in ("math.powf", "math.atan2"):
        np.testing.assert_allclose(c, expected, rtol=4 * np.finfo(a.dtype).eps)
    else:
        np.testing.assert_array_equal(c, expected)
        if "min" not in op and "max" not in op:
            real = ~np.isnan(c)
            np.testing.assert_array_equal(np.signbit(c[real]), np.signbit(expected[real]))


UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
    " cbrt sqrt floor ceil trunc absf"
).split()
NUMPY_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh",
               "acosh": "arccosh", "atanh": "arctanh", "absf": "abs"}  # fmt: skip


@pytest.mark.parametrize("type_", ["f32", "f64"])
@pytest.mark.parametrize("name", UNARY)
def test_functions(compile_kernel, name, type_):
    dtype = TYPES[type_]
    with np.errstate(over="ignore"):
        a = np.concatenate(
            [np.array(FLOATS), np.linspace(-4, 4, 64), [700.0, -700.0, 1e-10]]
        ).astype(dtype)
    c = np.empty_like(a)
    assert compile_kernel(unary(f"math.{name}", type_, type_, type_))(a, c).status == 0
    with np.errstate(all="ignore"):
        expected = getattr(np, NUMPY_NAMES.get(name, name))(a)
    eps = np.finfo(dtype).eps
    small = np.finfo(dtype).tiny
    np.testing.assert_allclose(c, expected, rtol=8 * eps, atol=small if type_ == "f64" else 4e-7)


@pytest.mark.parametrize("target", TYPES)
@pytest.mark.parametrize("source", TYPES)
def test_casts(compile_kernel, source, target):
    if source == "i1":
        a = np.array([True, False, True])
    else:
        a = np.unique(pairs(source)[0]).repeat(3)
    c = np.empty(a.shape, TYPES[target])
    assert (
        compile_kernel(unary("array.cast", source, f"{source} -> {target}", target))(a, c).status
        == 0
    )
    with np.errstate(all="ignore"):
        expected = a.astype(TYPES[target])
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("predicate", ["oeq", "une", "olt", "ole", "ogt", "oge", "uno", "ord"])
def test_comparisons(compile_kernel, predicate):
    a, b = pairs("f64")
    c = np.empty(a.shape, np.bool_)
    assert compile_kernel(binary(f"arith.cmpf {predicate},", "f64", "i1"))(a, b, c).status == 0
    nan = np.isnan(a) | np.isnan(b)
    expected = {
        "oeq": a == b, "une": a != b, "olt": a < b, "ole": a <= b, "ogt": a > b, "oge": a >= b,
        "uno": nan, "ord": ~nan,
    }[predicate]  # fmt: skip
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("type_", ["i32", "i64"])
def test_integer_power(compile_kernel, type_):
    a = np.arange(-5, 6, dtype=TYPES[type_]).repeat(20)
    b = np.tile(np.arange(20, dtype=TYPES[type_]), 11)
    c = np.empty_like(a)
    assert compile_kernel(binary("math.ipowi", type_))(a, b, c).status == 0
    np.testing.assert_array_equal(c, a**b)
