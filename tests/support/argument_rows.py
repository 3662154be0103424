"""Argument lists written as text, so that a table of calls reads like a table.

A row is one token for each argument::

    "f64[7] f32[3,4]F f64[7]R:pos 3 -1 2.5 True None f64(0.5)"

`f64[7]` is an array (a dtype of `DTYPE`, a shape), then its layout (C contiguous unless it
says F, or R reversed along every axis, S every second element along every axis, T the transpose of a
C array, O the inside of a larger array), then after a colon what its elements are (`:pos` positive,
`:unit` inside (-0.9, 0.9), `:int` small integers, `:nz` integers that are not zero, `:special`
infinities, NaN, zeros of both signs and denormals, `:ties` few distinct values, `:zero`, `:wide` integers of
the whole range of the dtype, its ends among them), and after
`#` which of many. `f64(0.5)` is a NumPy scalar, the rest are Python literals. The same row always
makes the same contents, in fresh memory. After `&` stands a view; arrays that are the same before it
share their memory: `f64[7]&[:-1] f64[7]&[1:]`, or `f64[3,3]& f64[3,3]&.T`.
"""

from __future__ import annotations

import ast
import itertools
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

DTYPE = {
    "f64": np.float64, "f32": np.float32, "b1": np.bool_,
    "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
    "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8,
}  # fmt: skip
ARRAY = re.compile(rf"({'|'.join(DTYPE)})\[([\d,]*)\]([CFRSTO]?)(?::(\w+))?(?:#(\d+))?$")
SCALAR = re.compile(rf"({'|'.join(DTYPE)})\((.*)\)$")
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    np.inf,
    -np.inf,
    np.nan,
    5e-324,
    1e300,
    -1e-300,
    0.5,
    3.0,
    -2.5,
    2.0,
]

Row = str | Callable[[], tuple[Any, ...]]


def make_arguments(row: Row) -> tuple[Any, ...]:
    """Fresh arguments for a row; a callable row makes its own."""
    if callable(row):
        return row()
    shared: dict[str, np.ndarray] = {}
    return tuple(make_argument(token, shared) for token in row.split())


def make_argument(token: str, shared: dict[str, np.ndarray]) -> Any:
    """The argument that one token describes; `shared` holds the arrays of which the row has views."""
    array, is_view, view = token.partition("&")
    if is_view:
        base = shared.setdefault(array, make_argument(array, shared))
        return eval(f"base{view}", {"base": base})
    if m := ARRAY.match(token):
        dtype, extents, layout, domain, seed = m.groups()
        shape = tuple(int(n) for n in extents.split(",") if n)
        return laid_out(DTYPE[dtype], shape, layout or "C", domain or "", int(seed or 0))
    if m := SCALAR.match(token):
        return DTYPE[m[1]](ast.literal_eval(m[2]))
    if token in ("inf", "-inf", "nan"):
        return float(token)
    return ast.literal_eval(token)


def elements(dtype: type, shape: tuple[int, ...], domain: str = "", seed: int = 0) -> np.ndarray:
    """A C-contiguous array with contents that depend on nothing but the arguments."""
    rng = np.random.default_rng(zlib.crc32(repr((shape, domain, seed)).encode()))
    if domain == "special":
        with np.errstate(over="ignore"):
            return np.resize(np.array(SPECIAL), shape).astype(dtype)
    if domain == "zero":
        return np.zeros(shape, dtype)
    if domain == "wide":
        ends = np.iinfo(dtype)
        numbers = rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)
        numbers.flat[: min(3, numbers.size)] = [ends.max, ends.min, 3][: numbers.size]
        return rng.permuted(numbers)
    if dtype is np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if domain in ("int", "nz") or issubclass(dtype, np.integer):
        numbers = rng.integers(1 if domain == "pos" else -5, 6, shape)
        return (
            np.where(numbers == 0, 3, numbers).astype(dtype)
            if domain == "nz"
            else numbers.astype(dtype)
        )
    if domain == "ties":
        return rng.integers(0, 3, shape).astype(dtype)
    low, high = {"pos": (0.1, 2.0), "unit": (-0.9, 0.9), "": (-2.0, 2.0)}[domain]
    return rng.uniform(low, high, shape).astype(dtype)


def laid_out(
    dtype: type, shape: tuple[int, ...], layout: str, domain: str = "", seed: int = 0
) -> np.ndarray:
    """An array with the same contents whatever its layout."""
    contents = elements(dtype, shape, domain, seed)
    if layout == "C":
        return contents
    if layout == "F":
        return np.asfortranarray(contents)
    if layout == "T":
        return contents.T.copy().T
    if layout == "R":
        every = (slice(None, None, -1),) * len(shape)
        return contents[every].copy()[every]
    around = np.full([2 * n + 3 for n in shape], 7).astype(dtype)
    if layout == "S":
        view = around[tuple(slice(1, 2 * n + 1, 2) for n in shape)]
    else:
        assert layout == "O", layout
        view = around[tuple(slice(1, n + 1) for n in shape)]
    view[...] = contents
    return view


def expanded(row: str, letters: dict[str, str]) -> Iterator[str]:
    """Every row that results when each letter takes each of its space-separated values."""
    for chosen in itertools.product(*(values.split(" ") for values in letters.values())):
        text = row
        for letter, value in zip(letters, chosen, strict=True):
            text = re.sub(rf"\b{letter}\b", value, text)
        yield text


def memory_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of `array`: what lies outside a view must not change either."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
