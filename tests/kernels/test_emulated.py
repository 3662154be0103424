"""Kernels run on the CPU, threads shuffled: values, effects and gradients are those of the CPU's own code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_checks import close
from device_programs import PROGRAMS, Arguments, named, waves

import mutad


@pytest.mark.parametrize(("function", "arguments", "wrt"), PROGRAMS, ids=map(named, PROGRAMS))
def test_values_and_gradients_are_the_hosts(
    function: Callable[..., Any], arguments: Arguments, wrt: tuple[str, ...]
) -> None:
    outcomes: list[list[Any]] = []
    for target in ("cpu", "cuda:host"):
        compiled = mutad.compile(function, grad=True, target=target, opt=1)
        given, again = arguments(), arguments()
        outcomes.append([compiled(*again)])
        if wrt:
            value, gradients = compiled.value_and_grad(*given, wrt=wrt)
            outcomes[-1] += [value, *gradients, *given]
        outcomes[-1] += again
    plain = arguments()
    close(outcomes[1][0], function(*plain))
    for found, wanted in zip(outcomes[1][-len(plain) :], plain, strict=True):
        close(found, wanted)
    for found, wanted in zip(outcomes[1], outcomes[0], strict=True):
        close(found, wanted)


def best_so_far(u, v, n):
    b = u.copy()
    for _ in range(n):
        u = np.sin(u) * 1.5 * v
        if u.sum() > b.sum():
            b = u
    return (b * b).sum()


def squared_at_times(u, v, n):
    for i in range(n):
        if i % 3 == 1:
            u = u * v
        u *= 1.5
        u[1:] *= v[:-1]
    return (u * u).sum()


def of_two_or_its_own(u, v, n):
    w = u
    for i in range(n):
        if i % 2 == 1:
            w = u * w
        elif i % 4 == 2:
            w = v
        w[1:] += u[:-1] * v[1:]
        u *= w
    return (u * u * v * w).sum()


def a_row_or_another(u, v, n):
    b = u[0]
    for i in range(1, n):
        if u[i].sum() > b.sum():
            b = u[i]
        b *= 1.2 * v[0]
        u[i] *= b
    return (b * b).sum() + u.sum()


BOUND_UNDER_IF: tuple[tuple[Callable[..., Any], Arguments], ...] = (
    (best_so_far, lambda: (np.abs(waves(30)), 1 + waves(30) / 9, 5)),
    (squared_at_times, lambda: (waves(30), 1 + waves(30) / 9, 5)),
    (of_two_or_its_own, lambda: (waves(12), waves(12) / 2, 6)),
    (a_row_or_another, lambda: (waves(5, 4), 1 + waves(5, 4) / 9, 5)),
)


@pytest.mark.parametrize(
    ("function", "arguments"), BOUND_UNDER_IF, ids=[p[0].__name__ for p in BOUND_UNDER_IF]
)
def test_arrays_bound_under_a_condition(function: Callable[..., Any], arguments: Arguments) -> None:
    here = mutad.compile(function, grad=True, opt=1)
    there = mutad.compile(function, grad=True, target="cuda:host", opt=1)
    given, plain = arguments(), arguments()
    value, gradients = there.value_and_grad(*given, wrt=("u", "v"))
    close(value, function(*arguments()))
    _, wanted = here.value_and_grad(*plain, wrt=("u", "v"))
    for found, other in zip((*gradients, *given), (*wanted, *plain), strict=True):
        close(found, other)


def overwritten_by_a_later_kernel(a, b):
    b[:] = a * a
    a[:] = -a
    return b.sum()


def overwritten_by_the_kernel_that_reads(a, b):
    for i in range(a.size):
        b[i] = a[i] * a[i]
        a[i] = 1.0
    return b.sum()


def product_in_a_loop(a, b):
    for r in range(a.shape[0]):
        p = 1.0
        for j in range(a.shape[1]):
            p *= a[r, j]
        b[r] = p
    return b.sum()


def quotient_at_the_end(a, b):
    for r in range(a.shape[0]):
        p = 1.0
        for j in range(a.shape[1]):
            p *= a[r, j]
        b[r] = p / (1.0 + p)
    return b.sum()


def multiplied_and_divided_in_place(a, b):
    a *= b
    a /= b + 1.0
    return (a * a).sum()


def component_assigned_twice(a, b):
    for i in range(a.size):
        v = np.zeros(2)
        v[0] = a[i]
        v[0] = v[0] * a[i]
        v[1] = v[0]
        b[i] = v[0] + v[1]
    return b.sum()


THREE, TWOS = np.array([1.0, 2.0, 3.0]), np.full((1, 3), 2.0)
OVERWRITTEN = (
    (overwritten_by_a_later_kernel, THREE, 3, [2.0, 4.0, 6.0]),
    (overwritten_by_the_kernel_that_reads, THREE, 3, [2.0, 4.0, 6.0]),
    (product_in_a_loop, TWOS, 1, [[4.0, 4.0, 4.0]]),
    (quotient_at_the_end, TWOS, 1, [[4 / 81, 4 / 81, 4 / 81]]),
    (multiplied_and_divided_in_place, THREE, 3, [0.5, 1.0, 1.5]),
    (component_assigned_twice, THREE, 3, [4.0, 8.0, 12.0]),
)


@pytest.mark.parametrize(
    ("function", "a", "n", "exact"), OVERWRITTEN, ids=lambda x: getattr(x, "__name__", "")
)
def test_gradients_of_what_is_overwritten_are_exact(
    function: Callable[..., Any], a: np.ndarray, n: int, exact: list[Any]
) -> None:
    compiled = mutad.compile(function, grad=True, target="cuda:host", opt=1)
    assert np.allclose(compiled.grad(a.copy(), np.ones(n), wrt="a"), exact, rtol=1e-14)


def test_the_order_of_a_sum_is_always_the_same() -> None:
    def total(u):
        return u.sum()

    compiled = mutad.compile(total, target="cuda:host", opt=1)
    u = np.random.default_rng(0).standard_normal(300_000)
    assert len({compiled(u) for _ in range(3)}) == 1


def beyond(u, n):
    for i in range(n):
        u[i] = 2 * u[i]
    return u.sum()


def read_at(u, x, k):
    for i in range(k.size):
        u[i] = x[k[i]] ** 2 + u[i]


def read_at_all(u, x, k):
    u[...] = 2 * x[k]


def read_at_twice(u, x, k, m):
    for i in range(m.size):
        if m[i] != 0:
            u[i] = x[k[m[i]]]


def roots(u):
    for i in range(u.size):
        if u[i] < 0:
            raise ValueError(f"{u[i]} is negative")
        u[i] = math.sqrt(u[i])


KS = np.array([3, -1, 6, 0])
RAISING = (
    (beyond, (np.ones(5), 7)),
    (beyond, (np.ones(5), 5)),
    (read_at, (np.ones(4), waves(7), KS)),
    (read_at, (np.ones(4), waves(6), KS)),
    (read_at, (np.ones(4), waves(0), KS)),
    (read_at, (np.ones(0), waves(7), KS[:0])),
    (read_at_all, (np.ones(4), waves(6), KS)),
    (read_at_twice, (np.ones(4), waves(7), KS, np.array([1, 0, 3, -2]))),
    (read_at_twice, (np.ones(4), waves(7), KS, np.array([1, 0, 4, -2]))),
    (read_at_twice, (np.ones(4), waves(6), KS, np.array([1, 0, 2, -2]))),
    (roots, (waves(5),)),
    (roots, (np.array([1.0, 4.0, -1.0, 9.0]),)),
)


@pytest.mark.parametrize(
    ("function", "arguments"), RAISING, ids=lambda x: getattr(x, "__name__", "")
)
def test_exceptions_leave_arrays_as_python_does(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    outcomes: list[list[Any]] = []
    for one in (function, mutad.compile(function, target="cuda:host", opt=1)):
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        try:
            raised = str(one(*given))
        except (IndexError, ValueError) as error:
            raised = f"{type(error).__name__}: {error}"
        outcomes.append([raised, *given])
    assert outcomes[0][0] == outcomes[1][0]
    for plain, found in zip(*outcomes, strict=True):
        assert np.array_equal(plain, found)


def test_split_gradients_and_tangents_run_as_kernels() -> None:
    def cubes(u):
        u[...] = u**3
        return (u * u).sum()

    compiled = mutad.compile(cubes, grad=True, target="cuda:host", opt=1)
    u = np.array([1.0, 2.0, 0.5])
    _, back = compiled.vjp(u.copy(), wrt="u")
    assert np.allclose(back(1.0), 6 * u**5)
    assert np.allclose(compiled.hessian(u.copy(), wrt="u"), np.diag(30 * u**4))
    _, slope = compiled.jvp(u.copy(), tangents={"u": np.ones(3)})
    assert np.isclose(slope, (6 * u**5).sum())
