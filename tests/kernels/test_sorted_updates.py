"""Iterations that meet in elements, sorted by these: each element sees the program's order, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_checks import close
from device_client import DeviceCase
from device_oracle import strict
from meeting_programs import MEETING, Meeting
from on_device import on_device, on_host
from race_oracle import watched

import mutad
from mutad.compiler.kernels import sorted_kernels
from mutad.runtime import drivers


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_kernels, "FEWEST", 0)


@pytest.mark.parametrize("program", MEETING, ids=lambda m: m.function.__name__)
@pytest.mark.usefixtures("few_are_many")
def test_values_and_gradients_are_the_hosts(program: Meeting) -> None:
    options = {"deterministic": True, "opt": 1, "cache": False}
    made = mutad.compile(program.function, grad=True, **options)
    given, plain = program.arguments(), program.arguments()
    with watched():
        there = on_device(given)
        close(on_host(made(*there)), program.function(*plain))
        for one, other in zip(there, plain, strict=True):
            np.testing.assert_array_equal(on_host(one), other)
        if program.wrt and program.deterministic:
            found = made.grad(*on_device(program.arguments()), wrt=program.wrt)
            wanted = made.grad(*program.arguments(), wrt=program.wrt)
            for one, other in zip(found, wanted, strict=True):
                close(on_host(one), other)


def gathered(x, k):
    return (x[k] ** 2 * np.arange(k.size)).sum()


def pairs(x, k, m):
    return (x[k, m] ** 3).sum()


def last_stays(x, k):
    for i in range(k.size):
        x[k[i]] = 0.5 * x[k[i]] + i
    return x.sum()


COUNTS = (0, 1, 2, 3, 5, 16, 17, 64, 65, 300)


@pytest.mark.parametrize("function", [gathered, pairs, last_stays])
def test_bits_are_those_of_the_order(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"deterministic": True, "opt": 1, "cache": False}
    in_order = mutad.compile(function, grad=True, target="cuda:host", **options)
    wanted = [in_order.grad(*given(function, m)) for m in COUNTS]
    monkeypatch.setattr(sorted_kernels, "FEWEST", 0)
    made = mutad.compile(function, grad=True, **options)
    with strict():
        for m, exact in zip(COUNTS, wanted, strict=True):
            there = on_device(given(function, m))
            found = on_host(made.grad(*there))
            np.testing.assert_array_equal(found, exact)
            plain = given(function, m)
            close(found, made.grad(*plain))
            np.testing.assert_array_equal(on_host(there[0]), plain[0])


def given(function: Callable[..., Any], m: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(m)
    shape = (4, 5) if function is pairs else (7,)
    return rng.standard_normal(shape), *(rng.integers(-n, n, m) for n in shape)


def test_many_are_sorted_and_few_are_not() -> None:
    """Launches tell: those of merging grow as the logarithm."""
    made = mutad.compile(gathered, grad=True, deterministic=True, opt=1, cache=False)
    taken = list[int]()
    with strict():
        for m in (sorted_kernels.FEWEST - 1, sorted_kernels.FEWEST, 4 * sorted_kernels.FEWEST):
            given = on_device((np.ones(50), np.arange(m) % 50))
            before = drivers.begun["emulated"].launches
            close(on_host(made.grad(*given)), 2.0 * np.bincount(np.arange(m) % 50, np.arange(m)))
            taken.append(drivers.begun["emulated"].launches - before)
    assert taken[0] < taken[1]
    assert taken[2] - taken[1] == 2


def lowered(z, row, bed, n):
    for _ in range(n):
        z *= 0.9
        for r in range(row.size):
            if z[row[r]] > bed[r]:
                z[row[r]] = bed[r]
    return (z * z).sum()


@pytest.mark.parametrize("m", [100, sorted_kernels.FEWEST])
def test_the_receipt_tells_branches_and_passes_of_sorts_from_what_each_step_launches(
    m: int,
) -> None:
    """Few are looked at in order, many are sorted: a step launches one of both, the passes of a sort each."""
    made = mutad.compile(lowered, grad=True, opt=1, cache=False)
    rows = np.arange(m)[::-1].copy()
    taken = list[int]()
    with strict():
        for n in (1, 3):
            there = on_device((np.linspace(1, 2, m), rows, np.ones(m)))
            before = drivers.begun["emulated"].launches
            made.value_and_grad(*there, n, wrt="z")
            taken.append(drivers.begun["emulated"].launches - before)
        told = made.explain(*there, 3, wrt="z")
    step = [
        (in_branch, in_sort)
        for k in told.kernels
        for line, in_branch, in_sort in zip(k.launches, k.in_branch, k.in_sort, strict=True)
        if line == lowered.__code__.co_firstlineno + 1
    ]
    fewest, passes = step.count((False, False)), np.ceil(np.log2(m) / 2)
    most = fewest + step.count((True, False)) + passes * step.count((True, True))
    assert fewest <= (taken[1] - taken[0]) / 2 <= most <= 4 * passes + 12
    assert "up to 4 a pass of a sort " in str(told)


@pytest.mark.usefixtures("few_are_many")
def test_libraries_sort_in_their_work_area() -> None:
    case = DeviceCase(last_stays, lambda: given(last_stays, 40), ("primal",))
    assert case.check() == []
    assert case.calls
