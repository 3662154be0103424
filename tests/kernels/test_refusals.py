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
from mutad.compiler.kernels import kernel


def recurrence(u):
    for i in range(1, u.size):
        u[i] += u[i - 1]  # here


def bound_to_a_row_or_its_square(u):
    b = u[0]
    for i in range(1, u.shape[0]):  # here
        if u[i].sum() > b.sum():
            b = u[i] * u[i]
        u[:, 0] *= b
        b *= 1.2
    return (b * b).sum() + u.sum()


def bound_to_a_copy_or_its_square(u):
    b = u[0].copy()
    for i in range(1, u.shape[0]):
        if u[i].sum() > b.sum():
            b = u[i] * u[i]
        u[:, 0] *= b
        b *= 1.2
    return (b * b).sum() + u.sum()


def recursive(u, n):
    if n > 0:
        recursive(u[1:], n - 1)
    u *= 2.0


def in_a_set(u):
    seen = set()  # here
    for i in range(u.size):
        seen.add(int(10 * u[i]))
    return len(seen)


def printed(u):
    u *= 2.0
    print(u)  # here


ROWS: tuple[tuple[Callable[..., Any], tuple[Any, ...], str, str], ...] = (
    (recursive, (np.ones(4), 2), "this function is recursive", "write it as a loop"),
    (in_a_set, (np.ones(4),), "this list, dict or set grows", "an array of the size"),
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


def test_arrays_that_may_be_views_of_each_other_are_refused_and_copies_are_not() -> None:
    u = np.linspace(0.1, 1, 25).reshape(5, 5)
    compiled = mutad.compile(bound_to_a_row_or_its_square, grad=True, target="cuda:host", opt=1)
    compiled(u.copy())
    with pytest.raises(CompileError, match="one may be a view of another") as raised:
        compiled.grad(u.copy())
    assert "bind a copy" in (raised.value.way_out or "")
    copied = mutad.compile(bound_to_a_copy_or_its_square, grad=True, target="cuda:host", opt=1)
    here = mutad.compile(bound_to_a_copy_or_its_square, grad=True, opt=1)
    assert copied.grad(u.copy()).tobytes() == here.grad(u.copy()).tobytes()


def test_several_tangents_at_once_are_refused() -> None:
    compiled = mutad.compile(bodies, grad=True, target="cuda:host", opt=1)
    with pytest.raises(CompileError, match="one tangent, or cotangent, at a time"):
        compiled.jvp(np.ones(4), np.zeros(4), tangents={"x": np.eye(4)}, batch=4)
    with pytest.raises(CompileError, match="one tangent, or cotangent, at a time"):
        compiled.vjp(np.ones(4), np.zeros(4), wrt="x", batch=4)

    def read_at(x, k):
        return (x[k] ** 2).sum()

    gathered = mutad.compile(read_at, grad=True, target="cuda:host", opt=1)
    with pytest.raises(CompileError, match="one tangent, or cotangent, at a time"):
        gathered.jvp(np.ones(4), np.array([1, 1]), tangents={"x": np.eye(4)}, batch=4)


def test_kernels_are_given_no_more_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def total(a, b, c, d):
        return a * b + c * d

    arrays = [np.ones(3) for _ in range(4)]
    monkeypatch.setattr(kernel, "MOST_PARAMETERS", 100)
    with pytest.raises(CompileError, match="more arrays and numbers than a kernel") as raised:
        mutad.compile(total, target="cuda:host", opt=1, cache=False)(*arrays)
    assert raised.value.span is not None
    assert "several statements" in (raised.value.way_out or "")


def test_ways_out_can_be_followed() -> None:
    def by_rows(u):
        for i in range(u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] += u[i, j - 1]

    def by_slices(u, v):
        for _ in range(3):
            v[1:] = u[1:] + u[:-1]
            u[...] = v

    u = np.ones((2, 4))
    mutad.compile(by_rows, target="cuda:host", opt=1)(u)
    assert u[1].tolist() == [1.0, 2.0, 3.0, 4.0]
    mutad.compile(by_slices, target="cuda:host", opt=1)(u[0].copy(), np.zeros(4))


def test_options_of_the_cpu_are_none_of_devices() -> None:
    for options in ({"parallel": True}, {"memory": "1MiB"}):
        with pytest.raises(ValueError, match="is of the CPU"):
            mutad.compile(recurrence, target="cuda:host", **options)
    for target in ("cuda", "cuda:sm_12", "gpu", 90):
        with pytest.raises(ValueError, match="use 'cpu', 'cuda:host', 'cuda:sm_70'"):
            mutad.compile(recurrence, target=target)
