"""Products that are added to a matrix one after the other: the bits of as many outer products."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from functools import cache

import llvmlite.binding as llvm
import numpy as np
import pytest

import mutad
from mutad.compiler.codegen.llvm_module import host, optimize_and_emit
from mutad.compiler.codegen.shared_code import shared_text
from mutad.runtime.target import LEVELS, Target

Array = np.ndarray
DTYPES = {"double": np.float64, "float": np.float32}
LEVEL = [None, *(level for level in LEVELS if LEVELS[level] <= host().features)]


@cache
def linked(type_: str, level: str | None) -> tuple[object, Callable[..., None]]:
    target = Target(level, LEVELS[level]) if level else None
    asked = {"kind": "ordered", "type": type_, "fastmath": False, "spread": False, "wide": True}
    made, (name,) = shared_text(json.dumps(asked), target)
    builder = llvm.JITLibraryBuilder()
    builder.add_object_img(optimize_and_emit(made.module(), target=target))
    builder.add_current_process()
    library = builder.export_symbol(name).link(llvm.create_lljit_compiler(), f"{name}_{level}")
    size, at = ctypes.c_int64, ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(None, *[size] * 3, *[at, size, size] * 3)
    return library, kind(library[name])


def add(a: Array, b: Array, c: Array, level: str | None) -> None:
    (n, k), m, item = a.shape, b.shape[1], c.itemsize
    type_ = "double" if item == 8 else "float"
    places = [(x.ctypes.data, *(s // item for s in x.strides)) for x in (a, b, c)]
    linked(type_, level)[1](n, k, m, *places[0], *places[1], *places[2])


def laid(x: Array, way: str) -> Array:
    """The same numbers, which lie in another way."""
    match way:
        case "columns":
            return np.array(x, order="F")
        case "backwards":
            return x[::-1, ::-1].copy()[::-1, ::-1]
        case "apart":
            wide = np.zeros((2 * x.shape[0], 3 * x.shape[1]), x.dtype)
            wide[::2, ::3] = x
            return wide[::2, ::3]
        case _:
            return x.copy()


SIZES = [
    (1, 5, 40),
    (40, 5, 1),
    (3, 2, 2),
    (9, 32, 24),
    (17, 131, 55),
    (30, 1, 300),
    (8, 260, 48),
    (0, 3, 4),
    (4, 0, 4),
]


@pytest.mark.parametrize("level", LEVEL)
@pytest.mark.parametrize("type_", DTYPES)
@pytest.mark.parametrize("ways", ["rows rows rows", "columns rows rows", "rows columns columns", "backwards apart rows",
                                  "apart backwards columns", "columns columns apart"])  # fmt: skip
def test_they_have_the_bits_of_outer_products(type_: str, ways: str, level: str | None) -> None:
    rng = np.random.default_rng(3)
    for n, k, m in SIZES:
        given = [rng.normal(size=s).astype(DTYPES[type_]) for s in ((n, k), (k, m), (n, m))]
        a, b, c = (laid(x, way) for x, way in zip(given, ways.split(), strict=True))
        single = given[2].copy()
        add(a, b, c, level)
        for step in range(k):
            add(given[0][:, step : step + 1], given[1][step : step + 1], single, level)
        assert np.array_equal(c, single), (n, k, m)
        exact = given[2].astype("f8") + given[0].astype("f8") @ given[1].astype("f8")
        np.testing.assert_allclose(c, exact, rtol=0, atol=100 * np.finfo(c.dtype).eps * (k + 1))


def recurrent(w: Array, x: Array, y: Array) -> float:
    """Each step adds an outer product to the gradient of the matrix."""
    total = 0.0
    h = y.copy()
    for i in range(x.shape[0]):
        h = np.tanh(w @ h + x[i])
        total += (h * h).sum()
    return total


@pytest.mark.parametrize("size", [3, 24, 37, 130, 300])
def test_steps_within_a_budget_have_the_bits_of_blocks(size: int) -> None:
    rng = np.random.default_rng(size)
    w, x, y = (
        rng.normal(size=(size, size)) / size,
        rng.normal(size=(45, size)),
        rng.normal(size=size),
    )
    free = mutad.compile(recurrent, grad=True)
    tight = mutad.compile(recurrent, grad=True, memory=36 * 8 * size + 20_000)
    assert "in_order" in free.inspect("optimize", w, x, y, wrt=("w", "x", "y"))
    for one, other in zip(
        free.grad(w, x, y, wrt=("w", "x", "y")),
        tight.grad(w, x, y, wrt=("w", "x", "y")),
        strict=True,
    ):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("level", LEVEL)
@pytest.mark.parametrize("type_", DTYPES)
def test_narrow_tiles_leave_alone_what_lies_beside_them(type_: str, level: str | None) -> None:
    dtype, rng = DTYPES[type_], np.random.default_rng(4)
    for n, k, m in [(3, 4, 5), (1, 130, 23), (9, 3, 17), (20, 2, 1)]:
        b, c = (np.full((rows + 2, m + 40), np.nan, dtype) for rows in (k, n))
        inside_b, inside_c = b[1 : k + 1, 1 : m + 1], c[1 : n + 1, 1 : m + 1]
        a = rng.integers(-9, 9, (n, k)).astype(dtype)
        inside_b[...] = rng.integers(-9, 9, (k, m))
        inside_c[...] = 1
        add(a, inside_b, inside_c, level)
        assert np.array_equal(inside_c, 1 + a @ inside_b), (n, k, m)
        assert np.isnan(c).sum() == c.size - n * m
