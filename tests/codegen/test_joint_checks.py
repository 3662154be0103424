"""Checks of one number are asked at once, and raise as each of them does, in order."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import mutad
from mutad.compiler.codegen.joint_checks import joint_checks
from mutad.dialects import array
from mutad.dialects.array import Array

EDGES = [
    np.nan, np.inf, -np.inf, 2.0**63, -(2.0**63), np.nextafter(2.0**63, 0), np.nextafter(-(2.0**63), -np.inf),
    -np.nan, 1e300, -1e300, 0.0, -0.5, 2.0**53 + 2,
]  # fmt: skip


def filled(x, k):
    for i in range(x.size):
        k[i] = int(x[i]) >> 1


@pytest.mark.parametrize("edge", EDGES)
def test_int_raises_what_python_raises_and_stores_what_python_stores(edge: float) -> None:
    x = np.array([1.5, -7.0, edge, np.nan, 9.0])
    found, expected = np.full(5, -1), np.full(5, -1)
    compiled = mutad.compile(filled, opt=1)
    with pytest.raises((ValueError, OverflowError)) as raised:
        compiled(x, found)
    with pytest.raises((ValueError, OverflowError)) as python:
        filled(x, expected)
    if -(2.0**63) <= edge < 2.0**63 or not np.isfinite(edge):  # an int of ours has 64 bits
        assert type(raised.value) is type(python.value)
        assert str(raised.value) == str(python.value)
        np.testing.assert_array_equal(found, expected)
    else:
        assert type(raised.value) is OverflowError
        np.testing.assert_array_equal(found, [0, -4, -1, -1, -1])


@pytest.mark.parametrize("cells", [1, 3, -3])
def test_rests_are_in_range(cells: int) -> None:
    def counted(x, count, cells):
        for i in range(x.size):
            count[int(x[i]) % cells] += 1

    x = np.random.default_rng(1).normal(size=200) * 10
    found, expected = np.zeros(abs(cells)), np.zeros(abs(cells))
    counted(x, expected, cells)
    mutad.compile(counted, opt=1)(x, found, cells)
    np.testing.assert_array_equal(found, expected)


def test_a_rest_of_no_element_raises() -> None:
    def first(x, k):
        return x[k[0] % np.int64(x.size)]

    for compiled in (mutad.compile(first, opt=1), first):
        with pytest.raises(IndexError), np.errstate(all="ignore"):
            compiled(np.zeros(0), np.array([3]))


CHECKS = """
func.func @f(%x : f64, %y : f64, %a : memref<?xf64>, %i : index) {
  %large = arith.constant 1.0e18 : f64
  %least = arith.constant -2.0e18 : f64
  %infinity = arith.constant 0x7ff0000000000000 : f64
  %nan = arith.cmpf uno, %x, %x : f64
  array.raise_if %nan, "ValueError", "first"
  LINES
  func.return
}
"""

TOGETHER = {
    "%size = math.absf %x : f64\n %b = arith.cmpf oeq, %size, %infinity : f64": float("inf"),
    "%b = arith.cmpf oge, %x, %large : f64": 1e18,
    "%b = arith.cmpf olt, %x, %least : f64": 2e18,
    "%l = arith.cmpf ogt, %x, %large : f64\n %r = arith.cmpf ole, %x, %least : f64\n"
    "%b = arith.ori %l, %r : i1": 1e18,
}

ALONE = (
    "%b = arith.cmpf oge, %y, %large : f64",  # of another number
    "%b = arith.cmpf oge, %x, %least : f64",  # holds for small numbers
    "%b = arith.cmpf ult, %x, %least : f64",
    "%b = arith.cmpf olt, %x, %y : f64",
    "%l = arith.cmpf oge, %x, %large : f64\n %r = arith.cmpf oge, %y, %large : f64\n"
    "%b = arith.ori %l, %r : i1",
    "memref.store %x, %a[%i] : memref<?xf64>\n%b = arith.cmpf oge, %x, %large : f64",
    '%k = array.index %i, %i axis 0 : i64 sign "any"\n%b = arith.cmpf oge, %x, %large : f64',
)


def parse(text: str) -> ModuleOp:
    context = Context()
    for name, dialect in get_all_dialects().items():
        context.register_dialect(name, dialect)
    context.load_dialect(Array)
    return Parser(context, text).parse_module()


def first_check(lines: str) -> array.RaiseIfOp:
    lines += '\n  array.raise_if %b, "OverflowError", "second"'
    module = parse(CHECKS.replace("LINES", lines))
    return next(op for op in module.walk() if isinstance(op, array.RaiseIfOp))


@pytest.mark.parametrize("lines", TOGETHER)
def test_asked_together(lines: str) -> None:
    found = joint_checks(first_check(lines))
    assert found is not None
    assert len(found.checks) == 2
    assert found.bounded.bound == TOGETHER[lines]


@pytest.mark.parametrize("lines", ALONE)
def test_asked_alone(lines: str) -> None:
    assert joint_checks(first_check(lines)) is None
