"""Loops whose iterations need each other are kernels of one thread: values, effects, gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_checks import close
from device_programs import Arguments, waves
from on_device import on_device, on_host
from race_oracle import watched

import mutad


def recurrence(u):
    for i in range(1, u.size):
        u[i] += u[i - 1] * u[i]
    return (u * u).sum()


def summed_in_order(u):
    total = 0.0
    for i in range(u.size):
        total += u[i] * u[i] * u[i]
    return total * u[0]


def steps_of_a_walk(u, steps):
    for _ in range(steps):
        for i in range(1, u.size - 1):
            u[i] = 0.5 * u[i - 1] + 0.25 * u[i + 1] * u[i]
    return u.sum()


def beside_whole_arrays(u, v, steps):
    carried = 0.5
    for _ in range(steps):
        u[1:] = 0.5 * v[:-1] + u[1:]
        for i in range(1, v.size):
            v[i] = carried * v[i - 1] + u[i]
            carried = 0.5 * carried + 0.01 * v[i]
    return (u * v).sum() * carried


def until_it_is_small(u):
    for i in range(u.size):
        x = 2.0
        while x * x > u[i] + 1.0:
            x = 0.5 * (x + (u[i] + 1.0) / x) - 0.001
        u[i] = x
    return (u * u).sum()


def found(u, x):
    i = 0
    while u[i] < x:
        i += 1
    return u[i] * i


def chained(u, k):
    for i in range(1, u.size):
        u[k[i]] = u[k[i - 1]] * u[i]
    return (u * u).sum()


def ends_early(u, most):
    n, total = 0, 1.0
    for x in u:
        if x > most:
            break
        n += 1
        total += total * x
    return total * n


PROGRAMS: tuple[tuple[Callable[..., Any], Arguments], ...] = (
    (recurrence, lambda: (waves(30),)),
    (recurrence, lambda: (waves(30, dtype="f4"),)),
    (recurrence, lambda: (waves(0),)),
    (summed_in_order, lambda: (waves(300),)),
    (steps_of_a_walk, lambda: (waves(12), 3)),
    (beside_whole_arrays, lambda: (waves(12) / 4, waves(12) / 4, 3)),
    (until_it_is_small, lambda: (np.abs(waves(12)),)),
    (found, lambda: (np.linspace(0.0, 1.0, 11), 0.42)),
    (chained, lambda: (1.0 + waves(9), np.array([3, 1, 4, 1, 5, 8, 2, 6, -1]))),
    (ends_early, lambda: (np.linspace(0.0, 1.0, 11), 0.42)),
)


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_values_and_gradients_are_the_hosts(
    function: Callable[..., Any], arguments: Arguments
) -> None:
    compiled, plain = mutad.compile(function, grad=True, opt=1), arguments()
    wanted = function(*plain)
    with watched():
        there = on_device(arguments())
        close(compiled(*there), wanted)
        for a, b in zip(there, plain, strict=True):
            close(on_host(a), b)
        value, gradient = compiled.value_and_grad(*on_device(arguments()), wrt="u")
        close(value, wanted)
        close(on_host(gradient), compiled.grad(*arguments(), wrt="u"))


def test_elements_have_the_hosts_bits() -> None:
    u, v = waves(100), waves(100)
    mutad.compile(recurrence, target="cuda:host")(u)
    recurrence(v)
    assert u.tobytes() == v.tobytes()
    assert mutad.compile(summed_in_order, target="cuda:host")(u) == summed_in_order(u)


def stores_where_it_looks(u, k):
    for i in range(k.size):
        k[k[i]] = i + 3
        u[k[i]] = 1.0


def raises_for_what_it_stores(u):
    for i in range(u.size):
        for j in range(3):
            u[i] = 2 * u[i]
            if u[i] > 5 + j:
                raise ValueError(f"{u[i]} at {i} after {j} steps")


def divided_by_what_is_stored(u):
    for i in range(1, u.size):
        u[i] = float(u[i]) / (float(u[i - 1]) - 1.5)


def rooted(u):
    for i in range(1, u.size):
        u[i] = u[i] - 1.5 * math.sqrt(u[i - 1])


def tripled(u):
    i, s = 0, 1
    while True:
        s *= 3
        u[i] = s
        i += 1


def looks_twice(u, k):
    for i in range(u.size):
        u[k[int(k[i]) // (int(u[0]) + 3 - i)]] = u[i] + i


ENDING: tuple[tuple[Callable[..., Any], Arguments], ...] = (
    (found, lambda: (np.linspace(0.0, 1.0, 11), 1.5)),
    (chained, lambda: (1.0 + waves(5), np.array([0, 1, 2, 5, 1]))),
    (chained, lambda: (1.0 + waves(5), np.array([0, 1, -6, 2, 1]))),
    (stores_where_it_looks, lambda: (np.ones(5), np.array([3, 1, 2, 0]))),
    (raises_for_what_it_stores, lambda: (np.arange(4) / 2,)),
    (raises_for_what_it_stores, lambda: (np.arange(4, dtype=np.float32) / 2,)),
    (divided_by_what_is_stored, lambda: (np.array([2.5, 1.5, 3.0, 4.0]),)),
    (rooted, lambda: (np.linspace(1.0, 2.0, 6),)),
    (tripled, lambda: (np.zeros(9),)),
    (looks_twice, lambda: (np.ones(6), np.array([4, 1, 16, 0, 0, 0]))),
    (looks_twice, lambda: (np.ones(6), np.array([4, 1, 1, 3, 0, 0]))),
)


@pytest.mark.parametrize(("function", "arguments"), ENDING, ids=[p[0].__name__ for p in ENDING])
def test_exceptions_and_what_they_leave_are_pythons(
    function: Callable[..., Any], arguments: Arguments
) -> None:
    compiled = mutad.compile(function, grad=True, opt=1)
    plain = arguments()
    with pytest.raises((IndexError, ValueError, ZeroDivisionError)) as wanted:
        function(*plain)
    with watched():
        there = on_device(arguments())
        with pytest.raises(wanted.type) as raised:
            compiled(*there)
        assert str(raised.value) == str(wanted.value)
        for a, b in zip(there, plain, strict=True):
            assert np.asarray(on_host(a)).tobytes() == np.asarray(b).tobytes()


def test_gradients_raise_before_they_touch_shadows() -> None:
    compiled = mutad.compile(divided_by_what_is_stored, grad=True, opt=1)
    u = np.array([2.5, 1.5, 3.0, 4.0])
    with watched():
        there, shadow = on_device((u, np.ones(4)))
        with pytest.raises(ZeroDivisionError):
            compiled.pullback(mutad.Duplicated(there, shadow))
        assert on_host(shadow).tolist() == [1.0] * 4
        there, shadow = on_device((u + 0.25, np.ones(4)))
        compiled.pullback(mutad.Duplicated(there, shadow))
    wanted = np.ones(4)
    compiled.pullback(mutad.Duplicated(u + 0.25, wanted))
    close(on_host(shadow), wanted)


def cubed(u, k):
    for i in range(u.size):
        u[i] = int(k[i]) * int(k[i]) * i


def factorials(u, k):
    for i in range(u.size):
        n = 1
        for j in range(1, int(k[i]) + 1):
            n *= j
        u[i] = n


def powers(u, k):
    for i in range(u.size):
        u[i] = 2 ** int(k[i]) - 3 ** (i % 3)


def congruential(u, k):
    s = int(k[0])
    for i in range(u.size):
        s = (s * 1103515245 + 12345) % 2147483648
        u[i] = s / 2147483648


def tripling(u, k):
    for i in range(u.size):
        n, steps = int(k[i]), 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        u[i] = steps


def squares_added_up(u, k):
    s = 0
    for i in range(u.size):
        s += int(k[i]) * int(k[i])
    u[0] = s


PRODUCTS = cubed, factorials, powers, congruential, tripling, squares_added_up


@pytest.mark.parametrize("function", PRODUCTS, ids=[f.__name__ for f in PRODUCTS])
def test_products_of_integers(function: Callable[..., Any]) -> None:
    compiled = mutad.compile(function, opt=1)
    u, v, k = np.zeros(5), np.zeros(5), np.array([7, 3, 9, 0, 20])
    with watched():
        there, _ = arguments = on_device((u, k))
        compiled(*arguments)
        function(v, k)
        assert on_host(there).tobytes() == v.tobytes()
        if function in (congruential, tripling):
            return
        large = (u, k + 2**40) if function in (cubed, squares_added_up) else (u, k + 50)
        there, _ = arguments = on_device(large)
        with pytest.raises(OverflowError) as wanted:
            compiled(*large)
        with pytest.raises(OverflowError) as raised:
            compiled(*arguments)
        assert str(raised.value) == str(wanted.value)
        assert on_host(there).tobytes() == u.tobytes()


def multiplied(u, a, b):
    for i in range(u.size):
        u[i] = int(a[i]) * int(b[i])


def test_products_overflow_where_they_do() -> None:
    compiled = mutad.compile(multiplied, opt=1)
    ends = [
        sign * n + d
        for n in (0, 2**31, 2**32, 2**62, 3037000500)
        for sign in (1, -1)
        for d in (-1, 0, 1)
    ]
    ends += [-(2**63), 2**63 - 1, -(2**63) + 1]
    a, b = (np.ravel(m) for m in np.meshgrid(np.array(ends), np.array(ends)))
    fits = np.array([-(2**63) <= int(x) * int(y) < 2**63 for x, y in zip(a, b, strict=True)])
    u, v = np.zeros(fits.sum()), np.zeros(fits.sum())
    with watched():
        there, *factors = on_device((u, a[fits], b[fits]))
        compiled(there, *factors)
        multiplied(v, a[fits], b[fits])
        assert on_host(there).tobytes() == v.tobytes()
        for x, y in list(zip(a[~fits], b[~fits], strict=True))[::7]:
            with pytest.raises(OverflowError):
                compiled(*on_device((np.zeros(1), np.array([x]), np.array([y]))))


def far_below(u, n):
    k = n
    for i in range(u.size):
        u[i] = u[i - 1] + k
        k -= 1
    return k


def far_above(u, n):
    k = n
    for i in range(u.size):
        u[i] = u[i - 1] + k
        k += 1
    return k


def test_integers_that_do_not_fit_raise() -> None:
    low, high = -(2**63), 2**63 - 1
    for function, end in ((far_below, low), (far_above, high)):
        compiled, inward = mutad.compile(function, target="cuda:host"), 1 if end < 0 else -1
        for start in (end + 4 * inward, 0, -3, 3):
            u, v = waves(4), waves(4)
            assert compiled(u, start) == function(v, start)
            assert u.tobytes() == v.tobytes()
        with pytest.raises(OverflowError):
            compiled(waves(4), end + 3 * inward)


def test_explain_says_where_one_thread_runs_a_loop() -> None:
    compiled = mutad.compile(beside_whole_arrays, target="cuda:sm_90", grad=True)
    told = compiled.explain(waves(9), waves(9), 2, wrt="u")
    line = beside_whole_arrays.__code__.co_firstlineno + 4
    assert {k.line for k in told.kernels if k.serial} == {line}
    assert str(told).count("one thread") == 2  # of the primal and of the adjoint


def test_loops_that_many_threads_run_stay_theirs() -> None:
    def rows(u):
        for t in range(1, 3):
            for i in range(u.shape[0]):
                for j in range(1, u.shape[1]):
                    u[i, j] += t * u[i, j - 1]
        return u.sum()

    told = mutad.compile(rows, target="cuda:sm_90", grad=True).explain(np.ones((3, 4)))
    assert not any(k.serial for k in told.kernels)
