"""Sums along rows: which lane a number is added to depends on the row's length alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import check_gradient, compile
from mutad.compiler.codegen.llvm_module import host
from mutad.compiler.codegen.vector_width import is_wide

Array = np.ndarray
WIDE = pytest.mark.skipif(not is_wide(host().features), reason="LLVM adds up here")
LENGTHS = (1, 2, 3, 5, 7, 8, 12, 15, 16, 17, 30, 31, 33, 140, 255, 256, 257, 300)


def of_terms(x: Array) -> Any:
    """The adjoint has a product."""
    return x.sum() * 2.0


def of_products(x: Array, y: Array, k: float) -> Any:
    return (k * x * y).sum()


def of_functions(x: Array, y: Array) -> Any:
    return (np.exp(x) * y).sum() + np.log1p(y * y).sum()


def of_quotients(x: Array, y: Array) -> Any:
    """The adjoint has quotients by numbers, too."""
    return (np.sin(0.7 * y) / 7.0 * x).sum() + (x / 3.0).sum()


def of_choices(x: Array, y: Array) -> Any:
    return np.where(x > y, x / (1.0 + y * y), np.abs(y)).sum()


def of_integers(x: Array) -> Any:
    return ((x > 0.0) * np.arange(x.size) * x).sum()


def of_rows(x: Array, y: Array) -> Any:
    m = np.outer(x, y)
    return (np.sqrt(1.0 + (m * m).sum(axis=1)) * y[0]).sum()


def updated(x: Array, y: Array) -> Any:
    """Rows that are stored to, forwards and backwards, beside a sum."""
    z, total = x.copy(), 0.0
    for k in range(3):
        total += np.dot(z[::-1], y)
        z -= 0.1 * y * total + 0.01 * k
    return total + (z * z).sum()


FUNCTIONS = (of_products, of_functions, of_quotients, of_choices, of_rows, updated)


def arguments(f: Callable[..., Any], n: int, dtype: Any = np.float64) -> tuple[Any, ...]:
    chance = np.random.default_rng(n)
    x, y = (chance.uniform(0.2, 1.0, n).astype(dtype) for _ in range(2))
    return {of_terms: (x,), of_integers: (x,), of_products: (x, y, 0.7)}.get(f, (x, y))


@pytest.mark.parametrize("f", [of_terms, of_integers, *FUNCTIONS])
def test_rows_of_any_length(f: Callable[..., Any]) -> None:
    compiled = compile(f, grad=True, cache=False)
    for n in LENGTHS:
        found, _ = compiled.value_and_grad(*arguments(f, n))
        np.testing.assert_allclose(found, f(*arguments(f, n)), rtol=1e-13 * n)
    for n in (5, 31, 44):
        check_gradient(compiled, *arguments(f, n))


@pytest.mark.parametrize("f", FUNCTIONS)
def test_rows_of_float32(f: Callable[..., Any]) -> None:
    compiled = compile(f, grad=True, cache=False)
    for n in LENGTHS:
        given = arguments(f, n, np.float32)
        found, gradient = compiled.value_and_grad(*given)
        exact = compiled.grad(*(np.float64(a) if isinstance(a, np.ndarray) else a for a in given))
        np.testing.assert_allclose(found, f(*given), rtol=2e-6 * n)
        np.testing.assert_allclose(gradient, exact, rtol=2e-4, atol=1e-4)


def test_zeros_keep_their_sign() -> None:
    compiled = compile(of_terms, grad=True, cache=False)
    for n in LENGTHS:
        assert np.signbit(compiled.value_and_grad(np.full(n, -0.0))[0]) == np.signbit(
            of_terms(np.full(n, -0.0))
        )


def in_lanes(x: Array, lanes: int = 8) -> float:
    """The sum in the order that the docstring of `lane_sums` tells."""
    whole = x.size // (2 * lanes) * 2 * lanes
    sides, left = np.full((2, lanes), -0.0), x[whole:]
    for block in x[:whole].reshape(-1, 2, lanes):
        sides += block
    width = lanes
    while width:
        if left.size & width:
            first = 0 if width == lanes else lanes - 2 * width
            sides[int(width < lanes), first : first + width] += left[:width]
            left = left[width:]
        width //= 2
    found = sides[0] + sides[1]
    while found.size > 1:
        found = found[: found.size // 2] + found[found.size // 2 :]
    return float(found[0])


@WIDE
@pytest.mark.parametrize("apart", [1, 3])
def test_a_number_is_added_to_its_lane(apart: int) -> None:
    """Of rows side by side, which are written as vectors, and of others, whose terms come from buffers."""
    compiled = compile(of_terms, grad=True, cache=False)
    for n in LENGTHS:
        x = np.random.default_rng(n).normal(size=n * apart)[::apart]
        assert compiled.value_and_grad(x)[0] == 2.0 * in_lanes(x)


@WIDE
@pytest.mark.parametrize("f", FUNCTIONS[:-1])
def test_where_numbers_lie_changes_no_bit(f: Callable[..., Any]) -> None:
    """(Of rows forwards: from which end others are walked depends on where they lie.)"""
    compiled = compile(f, grad=True, cache=False)
    for n in LENGTHS:
        given = arguments(f, n)
        spread = tuple(
            np.repeat(a, 2)[::2] if isinstance(a, np.ndarray) else a for a in arguments(f, n)
        )
        (value, gradient), (other, same) = (compiled.value_and_grad(*a) for a in (given, spread))
        assert value == other
        np.testing.assert_array_equal(gradient, same)


@WIDE
def test_gradients_alone_have_lanes() -> None:
    """The width of vectors of other modules is known only when all of it is written."""
    compiled = compile(of_terms, grad=True, cache=False)
    given = arguments(of_terms, 40)
    assert "llvm.vector.reduce.fadd.v8f64" in compiled.inspect("llvm", *given, wrt=0)
    assert "llvm.vector.reduce" not in compiled.inspect("llvm", *given)


@WIDE
def test_few_numbers_are_written_out() -> None:
    """Rows that are certainly short are left to LLVM."""

    def short(x: Array) -> Any:
        return np.array([x[0], x[1] * x[0], 2.0]).sum() * 2.0

    text = compile(short, grad=True, cache=False).inspect("llvm", np.ones(2), wrt=0)
    assert "llvm.vector.reduce" not in text
