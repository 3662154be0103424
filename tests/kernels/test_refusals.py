"""What a device does not run is refused, by line, with a way out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_programs import bodies

import mutad
from mutad import CompileError


def recurrence(u):
    for i in range(1, u.size):
        u[i] += u[i - 1]  # here


def subscripts_from_data(u, k):
    for i in range(k.size):
        u[k[i]] = 1.0  # here


def summed_in_order(u):
    total = 0.0
    for i in range(u.size):
        total += u[i]  # here
    return total


def recursive(u, n):
    if n > 0:
        recursive(u[1:], n - 1)
    u *= 2.0


def printed(u):
    u *= 2.0
    print(u)  # here


ROWS: tuple[tuple[Callable[..., Any], tuple[Any, ...], str, str], ...] = (
    (recurrence, (np.ones(4),), "need what others have stored", "let an outer loop go over"),
    (subscripts_from_data, (np.ones(4), np.arange(3)), "may raise", "boundscheck=False"),
    (
        summed_in_order,
        (np.ones(4),),
        "need what others|one by one",
        "slices|reduction of the whole",
    ),
    (recursive, (np.ones(4), 2), "recursive", "write it as a loop"),
    (printed, (np.ones(4),), "the array is on the device", "outside of the compiled function"),
)


@pytest.mark.parametrize(
    ("function", "args", "why", "way_out"), ROWS, ids=[r[0].__name__ for r in ROWS]
)
def test_what_is_refused(
    function: Callable[..., Any], args: tuple[Any, ...], why: str, way_out: str
) -> None:
    with pytest.raises(CompileError) as raised:
        mutad.compile(function, target="cuda:host", opt=1)(*args)

    assert re.search(why, raised.value.message)
    assert re.search(way_out, raised.value.way_out or "")
    assert raised.value.span is not None


def test_gradients_that_would_need_atomic_additions_are_refused() -> None:
    compiled = mutad.compile(bodies, grad=True, target="cuda:host", opt=1)
    with pytest.raises(CompileError, match="atomic additions") as raised:
        compiled.value_and_grad(np.ones(4), np.zeros(4), wrt="x")
    assert raised.value.span is not None


def test_ways_out_can_be_followed() -> None:
    def unchecked(u, k):
        for i in range(k.size):
            u[i] = u[k[i]] ** 2 + 1.0

    u = np.ones(4)
    with pytest.raises(CompileError):
        mutad.compile(unchecked, target="cuda:host", boundscheck=False, opt=1)(u, np.arange(3))

    def from_another(u, v, k):
        for i in range(k.size):
            u[i] = v[k[i]] ** 2 + 1.0

    mutad.compile(from_another, target="cuda:host", boundscheck=False, opt=1)(
        u, 2 * u, np.arange(3)
    )
    assert u.tolist() == [5.0, 5.0, 5.0, 1.0]


def test_options_of_the_cpu_are_none_of_devices() -> None:
    for options in ({"parallel": True}, {"memory": "1MiB"}):
        with pytest.raises(ValueError, match="is of the CPU"):
            mutad.compile(recurrence, target="cuda:host", **options)
    with pytest.raises(ValueError, match="use 'cpu', 'cuda:sm_90'"):
        mutad.compile(recurrence, target="cuda")
