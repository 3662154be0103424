"""Quotients by what stands still in a loop are products, with the bits of divisions."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mutad
from mutad.compiler.codegen import invariant_divisors, llvm_module
from mutad.runtime import target

HAS = "avx512f" in (target.chosen() or llvm_module.host()).features
needs_registers = pytest.mark.skipif(not HAS, reason="divides, on this CPU")


def by_a_number(x, s):
    return x / s


def by_rows(x, s):
    return x / (s * np.abs(x[:, :1]))


def by_two(x, s):
    return (x / s - 1.0) / (x[0, 0] + 3.0)


def in_place(x, s):
    x /= s
    return x


def summed(x, s):
    return (x / s).sum()


def with_functions(x, s):
    return np.exp(x) / s


def by_elements(x, s):
    return x / (s + x)


def by_a_constant(x, s):
    return s * (x / 3.0)


QUICK = [by_a_number, by_rows, by_two]
KEPT = [in_place, summed, with_functions, by_elements, by_a_constant]

DIVISORS = [
    *(1.0, 0.7, 2.0 - 2.0**-52, 1.0 + 2.0**-52, 1e10, 1e-10, 2.0**-450, 2.0**450),
    *(np.nextafter(2.0**-450, 0.0), np.nextafter(2.0**450, np.inf), 1e300, 1e-300, 5e-324),
    *(0.0, -0.0, -1.0, -0.3, np.inf, -np.inf, np.nan),
]
SPECIAL = [np.nan, np.inf, -np.inf, 5e-324, 2.0**-460, -(2.0**460), 1.7976931348623157e308]


def matrices() -> Iterator[np.ndarray]:
    """Tame ones with zeros; those with one number that is not; of any bits; and of rows too short."""
    r = np.random.default_rng(0)
    x = r.normal(size=(7, 133))
    x[r.random(x.shape) < 0.1] = 0.0
    x[r.random(x.shape) < 0.1] = -0.0
    yield x
    for number in SPECIAL:
        y = x.copy()
        y[3, 40] = number
        yield y
    yield r.integers(0, 1 << 64, (7, 133), dtype=np.uint64).view(np.float64)
    yield from (x[:, :n].copy() for n in (2, 31, 32, 33))
    yield x[::2, ::3]


def same_bits(program: Callable[..., Any], found: Callable[..., Any], x: np.ndarray, s: float):
    with np.errstate(all="ignore"):
        expected = program(x.copy("K"), s)
    mine = np.asarray(found(x.copy("K"), s))
    np.testing.assert_array_equal(mine, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(mine[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("program", [*QUICK, in_place, by_elements], ids=lambda p: p.__name__)
def test_all_numbers_by_all_divisors(program: Callable[..., Any]) -> None:
    found = mutad.compile(program)
    for x in matrices():
        for s in DIVISORS:
            same_bits(program, found, x, s)


@pytest.mark.parametrize("count", range(1, 12))
def test_mantissas_near_two(count: int) -> None:
    """Where the first product is off by most, and everywhere."""
    found = mutad.compile(by_a_number)
    r, last = np.random.default_rng(count), 2.0**53
    near, any_ = last - np.arange(1.0, 30_001.0), r.integers(2**52, 2**53, 30_000).astype(float)
    for x in (near, any_):
        for s in (last - count, float(r.integers(2**52, 2**53)), 2.0**52 + count):
            same_bits(by_a_number, found, x, s)


@needs_registers
def test_results_in_the_middle_of_two_numbers_but_for_little() -> None:
    """x is what is nearest to the middle of two results times s."""
    found = mutad.compile(by_a_number)
    r = np.random.default_rng(5)
    for _ in range(40):
        s = r.integers(2**52, 2**53).item()
        middles = [int(m) * 2 + 1 for m in r.integers(2**52, 2**53, 500)]
        x = np.array([float(m * s // 2**54) for m in middles])
        for y in (x, np.nextafter(x, np.inf), np.nextafter(x, 0.0)):
            same_bits(by_a_number, found, y, float(s))


@needs_registers
@pytest.mark.parametrize("program", QUICK, ids=lambda p: p.__name__)
def test_rows_are_multiplied(program: Callable[..., Any]) -> None:
    text = mutad.compile(program).inspect("llvm", np.ones((4, 4)), 2.0)
    assert "@llvm.umin.i64" in text


@pytest.mark.parametrize("program", KEPT, ids=lambda p: p.__name__)
def test_these_are_divided(program: Callable[..., Any]) -> None:
    """The loop may not run again, or would not gain."""
    text = mutad.compile(program).inspect("llvm", np.ones((4, 4)), 2.0)
    assert "@llvm.umin.i64" not in text


def test_with_fastmath_llvm_multiplies() -> None:
    text = mutad.compile(by_a_number, fastmath=True).inspect("llvm", np.ones((4, 4)), 2.0)
    assert "@llvm.umin.i64" not in text


@needs_registers
def test_a_loop_with_a_wild_number_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is looked at, such numbers have other quotients."""
    x = np.full(100, np.inf)
    np.testing.assert_array_equal(mutad.compile(by_a_number)(x, 7.5), x)
    monkeypatch.setattr(invariant_divisors, "LEAST", 5e-324)
    monkeypatch.setattr(invariant_divisors, "LARGEST", np.inf)
    assert np.isnan(mutad.compile(by_a_number, cache=False)(x, 7.5)).all()
