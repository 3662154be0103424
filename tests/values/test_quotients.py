"""Quotients by constants are NumPy's, to the last bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad
from mutad.compiler.codegen import llvm_module
from mutad.runtime import target

Programs = dict[float, Callable[[Any], Any]]


def by_3(x):
    return x / 3.0


def by_minus_7(x):
    return x / -7.0


def by_1001(x):
    return x / 1001.0


def by_6(x):
    return x / 6.0


def by_a_large_one(x):
    return x / 2097149.0


def by_the_largest(x):
    return x / 1125899906842623.0


def by_a_half(x):
    return x / 1.5


PROGRAMS = [by_3, by_minus_7, by_1001, by_6, by_a_large_one, by_the_largest, by_a_half]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-323, 1.5e-323, 2.5e-323]


def same_bits(program: Callable[[Any], Any], x: np.ndarray) -> None:
    unsigned = np.dtype(f"u{x.itemsize}")
    with np.errstate(all="ignore"):
        expected = program(x)
    found = mutad.compile(program)(x)
    differs = (found.view(unsigned) != expected.view(unsigned)) & ~(
        np.isnan(found) & np.isnan(expected)
    )
    assert not differs.any(), x[differs][:5]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("exponent", [0, 1, 2, 127, 253, 254])
def test_numbers_of_float32(program: Callable[[Any], Any], exponent: int) -> None:
    """Of each exponent every seventh number: those too small to be normal, and the largest, too."""
    mantissas = np.arange(0, 1 << 23, 7, dtype=np.uint32)
    same_bits(program, ((exponent << 23) | mantissas).astype(np.uint32).view(np.float32))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_numbers_of_float64(program: Callable[[Any], Any]) -> None:
    r = np.random.default_rng(0)
    any_ = r.integers(0, 1 << 64, 200_000, dtype=np.uint64).view(np.float64)
    small = r.integers(0, 1 << 54, 100_000, dtype=np.uint64).view(np.float64)
    few = np.arange(20_000, dtype=np.uint64).view(np.float64)
    same_bits(program, np.concatenate([any_, small, -few, few, SPECIAL]))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_quotients_near_the_middle_of_two_numbers(program: Callable[[Any], Any]) -> None:
    r = np.random.default_rng(1)
    results = r.integers(1, 2040, 100_000).astype(np.uint64) << np.uint64(52)
    results |= r.integers(0, 1 << 52, 100_000, dtype=np.uint64)
    y = results.view(np.float64)
    with np.errstate(all="ignore"):
        d = 1.0 / program(np.ones(1))[0]
        x = y * d
    same_bits(program, np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)]))


def test_scalars_and_loops() -> None:
    def run(x):
        total = 0.0
        for i in range(x.size):
            total = (total + x[i]) / 9.0
        return total

    x = np.random.default_rng(2).normal(size=1000)
    assert mutad.compile(run)(x) == run(x)


def in_a_chain(program: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The quotients in a loop whose iterations wait for each other."""

    def run(x):
        out = np.empty_like(x)
        last = 0.0
        for i in range(x.size):
            last = program(x[i] if last != 0.1234567 else 0.0)
            out[i] = last
        return out

    return run


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_in_loops_that_wait_for_each_other(program: Callable[[Any], Any]) -> None:
    r = np.random.default_rng(3)
    any_ = r.integers(0, 1 << 64, 200_000, dtype=np.uint64).view(np.float64)
    edges = np.array([2.0**-800, 2.0**-1022, 1.7976931348623157e308, *SPECIAL])
    y = r.integers(200 << 52, 2040 << 52, 200_000, dtype=np.uint64).view(np.float64)
    with np.errstate(all="ignore"):
        divisor = 1.0 / program(np.ones(1))[0]
        edges = np.concatenate([edges, np.nextafter(edges, 0.0), np.nextafter(edges, np.inf)])
        x = y * divisor  # the middle of two quotients is near
        halves = (y + np.nextafter(y, np.inf)) * (divisor / 2)
        found = [x, halves, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)]
        x = np.concatenate([any_, edges, -edges, *found])
        expected = program(x)
    run = mutad.compile(in_a_chain(program), cache=False)
    mine, numbers = run(x), ~np.isnan(expected)
    np.testing.assert_array_equal(mine, expected)
    np.testing.assert_array_equal(np.signbit(mine[numbers]), np.signbit(expected[numbers]))
    has = "fma" in (target.chosen() or llvm_module.host()).features
    kept = program in (by_6, by_a_half)
    assert ("label %divided" in run.inspect("llvm", x)) == (has and not kept)


def test_no_division_is_left_where_products_can_be_contracted() -> None:
    text = mutad.compile(by_3).inspect("llvm", np.ones(3))
    has = "fma" in (target.chosen() or llvm_module.host()).features
    assert ("fdiv" in text) != has
    assert "fdiv" in mutad.compile(by_6).inspect("llvm", np.ones(3))
    assert "fdiv" in mutad.compile(by_a_half).inspect("llvm", np.ones(3))
