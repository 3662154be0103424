"""Gradients of loops that save as many values as each iteration needs: counted first, then saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_checks import close
from device_programs import Arguments, waves
from on_device import on_device, on_host
from race_oracle import watched

import mutad
from mutad import CompileError


def newton(x, out):
    for i in range(x.size):
        y, n = x[i], 0
        while abs(y * y - x[i]) > 1e-12 and n < 50:
            y = 0.5 * (y + x[i] / y)
            n += 1
        out[i] = y
    return out.sum()


def newton_with_break(x, out):
    for i in range(x.size):
        y = x[i]
        for _ in range(20):
            if abs(y * y - x[i]) < 1e-12:
                break
            y = 0.5 * (y + x[i] / y)
        out[i] = y
    return out.sum()


def while_else(x, out):
    for i in range(x.size):
        y, n = x[i], 0
        while n < i:
            y = 0.5 * (y + x[i] / y)
            if abs(y * y - x[i]) < 1e-3:
                break
            n += 1
        else:
            y = y * x[i]
        out[i] = y
    return out.sum()


def interpolated(x, out):
    out[:] = np.interp(x, np.arange(3.0), np.array([1.0, 4.0, 2.0]))
    return (out * x).sum()


def between_edges(x, out):
    for i in range(x.size):
        j = 0
        while j < out.size - 2 and out[j + 1] < x[i]:
            j += 1
        t = (x[i] - out[j]) / (out[j + 1] - out[j])
        x[i] = t * t * out[j]
    return x.sum()


def in_place(x, out):
    for i in range(x.size):
        y = x[i]
        while y < 3.0:
            y = y * y + 0.5
        x[i] = y * out[0]
    return x.sum()


def in_steps(x, out):
    for t in range(3):
        for i in range(x.size):
            y = x[i] * (1 + t)
            while y < 3.0:
                y = y * y + 0.5
            x[i] = 0.2 * y
        x *= 0.9 + out
    return (x * x).sum()


def in_order(x, out):
    for i in range(1, x.size):
        y, k = x[i] * x[i - 1], i % 3
        while k < 5:
            y = y * y * 0.2 + 0.5
            k += 1
        x[i] = y
    return x.sum()


def two_tapes(x, out):
    for i in range(x.size):
        y, s = x[i], 0.0
        while y < 3.0:
            if y > 1.5:
                s = s * y + y * y
            y = y * y + 0.5
        out[i] = y * s
    return (out * out).sum()


def left_early(x, out):
    total = 1.0
    for y in x:
        if y > 0.6:
            break
        while y < 1.0:
            y = y * y + 0.3
            total += total * y
    return total


def some() -> tuple[np.ndarray, np.ndarray]:
    return np.linspace(0.1, 1.0, 9), np.linspace(0.0, 1.2, 9)


def many() -> tuple[np.ndarray, np.ndarray]:
    return np.abs(waves(600)) + 0.1, np.zeros(600)


PROGRAMS: tuple[tuple[Callable[..., Any], Arguments], ...] = (
    (newton, some),
    (newton, many),
    (newton, lambda: (np.zeros(0), np.zeros(2))),
    (newton, lambda: (np.ones(5), np.ones(5))),
    (newton_with_break, some),
    (while_else, some),
    (interpolated, some),
    (between_edges, some),
    (in_place, some),
    (in_steps, some),
    (in_order, some),
    (two_tapes, many),
    (left_early, some),
)


@pytest.mark.parametrize(
    ("function", "arguments"),
    PROGRAMS,
    ids=[f"{p[0].__name__}{k}" for k, p in enumerate(PROGRAMS)],
)
def test_gradients_are_the_hosts(function: Callable[..., Any], arguments: Arguments) -> None:
    compiled, plain = mutad.compile(function, grad=True, opt=1), arguments()
    wanted, slopes = compiled.value_and_grad(*plain, wrt=("x", "out"))
    with watched():
        there = on_device(arguments())
        value, found = compiled.value_and_grad(*there, wrt=("x", "out"))
        close(value, wanted)
        for a, b in zip((*found, *there), (*slopes, *plain), strict=True):
            close(on_host(a), b)


def looked_up(x, k):
    total = 0.0
    for i in range(k.size):
        y = x[k[i]]
        while y < 3.0:
            y = y * y + 0.5
        total += y
    return total


def test_checks_raise_as_without_a_count() -> None:
    compiled = mutad.compile(looked_up, grad=True, opt=1)
    x, k = np.linspace(0.1, 1.0, 9), np.array([1, 3, 3, 0, -1])
    with watched():
        there = on_device((x, k))
        close(on_host(compiled.grad(*there, wrt="x")), compiled.grad(x, k, wrt="x"))
        there = on_device((x, k * 11))
        with pytest.raises(IndexError, match="index 11 is out of bounds for axis 0 with size 9"):
            compiled.grad(*there, wrt="x")


def of_what_is_stored(x, out):
    for i in range(1, x.size):  # here
        y = x[i] * x[i - 1]
        while y < 3.0:
            y = y * y + 0.5
        x[i] = y * 0.1
    return x.sum()


def of_what_is_read(x, out):
    for i in range(1, x.size):
        y = x[i] * x[i - 1]
        while y < 3.0:
            y = y * y + 0.5
        out[i] = y * 0.1
    return out.sum()


def test_what_cannot_be_counted_is_refused_and_the_way_out_runs() -> None:
    def refused(ask: Callable[[], Any]) -> None:
        with pytest.raises(CompileError, match="known only when it has run") as raised:
            ask()
        assert "without fastmath" in (raised.value.way_out or "")
        assert "o[i] = y" in (raised.value.way_out or "")

    options: dict[str, Any] = {"grad": True, "target": "cuda:host", "opt": 1}
    refused(lambda: mutad.compile(of_what_is_stored, **options).grad(*some()))
    fast = mutad.compile(of_what_is_read, fastmath=True, **options)
    refused(lambda: fast.grad(*some()))
    compiled = mutad.compile(of_what_is_read, **options)
    refused(lambda: compiled.vjp(*some()))
    here = mutad.compile(of_what_is_read, grad=True, opt=1)
    close(compiled.grad(*some()), here.grad(*some()))
