"""Calls that would take years, and end soon after a signal: whatever the work in their loops is made of."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad

FOREVER = 2**40


def short_maps(x, n):
    for _ in range(n):
        x[:3] *= 0.5
    return x[0]


def maps_of_nothing(x, n):
    for _ in range(n):
        x[3 : x.size - 2] *= 0.5
    return x[0]


def loops_of_few_trips(x, n):
    for _ in range(n):
        for j in range(2):
            for k in range(2):
                x[k] = 0.5 * x[j]
    return x[0]


def loops_that_run_backwards_or_not_at_all(x, n):
    for i in range(n):
        for j in range(5, x.size - 99 + i % 2):
            x[j] *= 0.5
    return x[0]


def a_while_of_maps(x, n):
    while n > 0:
        x *= 0.5
        x += 1.0
    return x[0]


def products(x, n):
    a = x.reshape(2, 2)
    for _ in range(n):
        a[:] = 0.1 * (a @ a)
    return a[0, 0]


def numbers_alone(x, n):
    total = x[0]
    for _ in range(n):
        total = np.sin(total) * 0.5 + 1e-9
    return total


def one_element(x, n):
    for i in range(n):
        x[1] += 0.5 * i
    return x[1]


def halves(x, depth):
    total = 0.0
    for k in range(2):
        for j in range(2):
            total += 0.5 * x[j + k]
    return total if depth == 0 else 0.1 * halves(x, depth - 1)


def recursion(x, n):
    total = 0.0
    for _ in range(n):
        total += halves(x, 2)
    return total


@pytest.mark.parametrize(
    "function",
    [
        short_maps,
        maps_of_nothing,
        loops_of_few_trips,
        loops_that_run_backwards_or_not_at_all,
        a_while_of_maps,
        products,
        numbers_alone,
        one_element,
        recursion,
    ],
)
def test_a_signal_ends_the_call(function: Callable[..., Any]) -> None:
    compiled = mutad.compile(function, opt=1)
    if function is not a_while_of_maps:
        np.testing.assert_array_equal(compiled(np.ones(4), 3), function(np.ones(4), 3))
    else:
        compiled(np.ones(4), 0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            compiled(np.ones(4), FOREVER)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
