"""What the threads of a block load in common goes through shared memory, in the program's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from device_checks import assemble, close
from device_oracle import strict
from device_programs import bodies, waves
from on_device import on_device, on_host
from race_oracle import watched

import mutad
from benchmarks import device_figures, gpu

SIZES = (0, 1, 5, 255, 256, 257, 515)


def against(x, y, u):
    """Two loops, backwards and forwards, each with what the other one has left."""
    for i in range(u.size):
        s = u[i]
        for j in range(x.size):
            s = 0.5 * s + x[x.size - 1 - j] * u[i]
        for j in range(y.size):
            if j != i:
                s -= y[j] * s
        u[i] = s
    return (u * u).sum()


def in_rows(a, w, u):
    """Threads share the rows of a matrix that they go through one after the other."""
    for i in range(u.size):
        s = 0.0
        for k in range(a.shape[0]):
            t = 0.0
            for j in range(a.shape[1]):
                t += a[k, j] * w[j] * u[i]
            s += t * t
        u[i] = s
    return (u * u).sum()


def placed(k, x, u):
    """In order: all threads read all subscripts."""
    for i in range(k.size):
        u[k[i]] = u[k[i]] * 0.5 + x[i]
    return (u * u).sum()


def of_fewer(x, u):
    """The branch keeps subscripts in range, which `x` has not elements for otherwise."""
    for i in range(u.size):
        s = u[i]
        for j in range(u.size):
            if j < x.size:
                s += x[j] * s
        u[i] = s
    return (u * u).sum()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("m", [3, 257])
def test_values_have_the_bits_of_loops(n: int, m: int) -> None:
    compiled = mutad.compile(against, opt=1)
    given = waves(n), 0.1 * waves(n), waves(m)
    wanted = tuple(a.copy() for a in given)
    mutad.compile(against, opt=1)(*wanted)
    with strict():
        there = on_device(given)
        compiled(*there)
        np.testing.assert_array_equal(on_host(there[2]), wanted[2])


@pytest.mark.parametrize(
    ("function", "arguments", "wrt"),
    [
        (against, lambda: (waves(3), 0.1 * waves(5), waves(4)), ("x", "y", "u")),
        (in_rows, lambda: (waves(3, 4), waves(4), waves(5)), ("a", "w", "u")),
        (gpu.bodies, lambda: (waves(6), waves(6) ** 2, np.zeros(6)), ("x", "y")),
        (of_fewer, lambda: (waves(3), waves(5)), ("x", "u")),
        (of_fewer, lambda: (waves(300), waves(5)), ("x", "u")),
        (placed, lambda: (np.array([1, 0, 1, 3]), waves(4), waves(4)), ("x", "u")),
    ],
)
def test_threads_do_not_race(
    function: Callable[..., Any], arguments: Callable[[], Any], wrt: tuple[str, ...]
) -> None:
    compiled, given = mutad.compile(function, grad=True, opt=1), arguments()
    wanted = compiled.value_and_grad(*arguments(), wrt=wrt)
    with watched():
        value, gradients = on_host(compiled.value_and_grad(*on_device(given), wrt=wrt))
    close(value, wanted[0])
    for found, own in zip(gradients, wanted[1], strict=True):
        close(found, own)


def test_an_interaction_reads_shared_memory() -> None:
    """A block reads 16 bytes for all its threads, 256 interactions a thread; each is 11 operations."""
    given = waves(64), waves(64) ** 2, np.zeros(64)
    compiled = mutad.compile(gpu.bodies, grad=True, target="cuda:sm_90")
    first, *_ = (k for k in compiled.explain(*given, wrt="x").kernels if k.intensity > 8)
    assert first.shared == 2 * 2048
    assert first.intensity == 256 * 9 / 16
    for kind in ("sm_80", "sm_90", "sm_100"):
        target = mutad.compile(gpu.bodies, grad=True, target=f"cuda:{kind}")
        own = device_figures.resources(target.inspect("ptx", *given, wrt="x"), kind)[first.name]
        assert not own.spilled
        assert own.registers <= 64


def test_branches_do_not_keep_loads_from_tiles(tmp_path: Any) -> None:
    compiled = mutad.compile(bodies, target="cuda:sm_90")
    text = compiled.inspect("ptx", waves(64), np.zeros(64))
    assert "ld.shared" in text
    assert "bar.sync" in text or "barrier.cta.sync" in text
    assemble(text, "sm_90", tmp_path)
