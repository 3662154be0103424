"""Loops that the device ends: a graph repeats while a kernel says so, with the bits of plain launches."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_checks import close, nothing_is_lost, ptxas
from device_programs import Arguments, waves
from on_device import on_device, on_host
from race_oracle import watched

import mutad
from mutad.runtime import drivers
from mutad.runtime.device_text import CONDITIONAL, SET_CONDITION, SETTER
from mutad.runtime.emulated_driver import EmulatedDriver, emulated
from mutad.runtime.emulated_functions import INVALID_PTX, INVALID_VALUE, OUT_OF_MEMORY


@pytest.fixture(autouse=True)
def emulation() -> Iterator[EmulatedDriver]:
    """Nothing of what is emulated may go wrong, and nothing is lost."""
    with emulated() as found:
        with nothing_is_lost(found):
            yield found
            drivers.begun["emulated"].release()
        found.failing.clear()


def damped(u, limit):
    while np.abs(u).max() > limit:
        u *= 0.9
    return u.sum()


def relaxed(u, f, limit):
    r = f.copy()
    while (r * r).sum() > limit:
        r[1:-1] = f[1:-1] + u[:-2] - 2 * u[1:-1] + u[2:]
        r[0] = 0.0
        r[-1] = 0.0
        u += 0.4 * r
    return u.sum()


def two_numbers(u, v, limit):
    while (u * u).sum() * 0.5 + np.abs(v).max() > limit:
        u *= 0.75
        v[1:] = 0.5 * v[:-1] + 0.25 * u[1:]
        v[0] = 0.0
    return (u + v).sum()


def steps_within(u, limit, n):
    while (u * u).sum() > limit:
        for _ in range(n):
            u[1:-1] += 0.2 * (u[:-2] - 2 * u[1:-1] + u[2:])
        u *= 0.9
    return u.sum()


def again_and_again(u, limit, n):
    total = 0.0
    for k in range(n):
        u += 0.3
        while np.abs(u).max() > limit:
            u *= 0.9
        total += u[k]
    return total


def of_an_element(u, limit):
    while u[1] > limit:
        u[1:] *= 0.5
    return u.sum()


def counted(u, limit, k):
    while np.abs(u).max() > limit:
        u *= 0.9
        k += 2
    return k


def at_most(u, limit, most):
    k = 0
    while np.abs(u).max() > limit and k < most:
        u *= 0.9
        k += 1
    return u.sum() + k


def chosen(u, limit, c):
    while np.abs(u).max() > limit:
        if c > 0:
            u *= 0.5
        else:
            u *= 0.25
    return u.sum()


def bold(u, limit):
    step, last = 1.0, 1e30
    while last > limit:
        now = (u * u).sum()
        if now > last:
            step *= 0.5
        else:
            step = step * 1.1
        u *= 1 - 0.3 * step
        last = now
    return step - last


def conjugate_gradients(x, b, limit, most):
    r = b.copy()
    p = r.copy()
    rs = r @ r
    ap = np.zeros_like(b)
    k = 0
    while rs > limit and k < most:
        ap[:] = 3 * p
        ap[1:] -= p[:-1]
        ap[:-1] -= p[1:]
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        p[:] = r + new / rs * p
        rs = new
        k += 1
    return rs + k


DECIDED: tuple[tuple[Callable[..., Any], Arguments, int], ...] = (
    (damped, lambda: (waves(300), 0.1), 1),
    (damped, lambda: (waves(300), 100.0), 1),
    (relaxed, lambda: (np.zeros(20), np.ones(20), 1.0), 1),
    (two_numbers, lambda: (waves(40), waves(40), 1.0), 1),
    (steps_within, lambda: (waves(40), 1.0, 3), 1),
    (again_and_again, lambda: (waves(40), 1.0, 3), 3),
    (of_an_element, lambda: (waves(40), 0.1), 1),
    (counted, lambda: (waves(30), 0.1, 7), 1),
    (counted, lambda: (waves(30), 100.0, -7), 1),
    (at_most, lambda: (waves(30), 0.1, 5), 1),
    (at_most, lambda: (waves(30), 0.1, 500), 1),
    (at_most, lambda: (waves(30), 0.1, 0), 1),
    (chosen, lambda: (waves(30), 0.1, 1), 1),
    (chosen, lambda: (waves(30), 0.1, -1), 1),
    (bold, lambda: (waves(20), 1e-3), 1),
    (bold, lambda: (waves(20), 1e31), 1),
    (conjugate_gradients, lambda: (np.zeros(20), waves(20), 1e-10, 100), 1),
    (conjugate_gradients, lambda: (np.zeros(20), waves(20), 1e-10, 3), 1),
)
"""With how many graphs there are."""


def outcome(compiled: Any, arguments: tuple[Any, ...]) -> list[Any]:
    there = on_device(arguments)
    return [compiled(*there), *map(on_host, there)]


def without(call: Callable[[], Any]) -> Any:
    """What a call returns where the driver has no conditional nodes."""
    state = drivers.begun["emulated"].state
    before, state[SETTER] = state[SETTER], 0
    try:
        return call()
    finally:
        state[SETTER] = before


@pytest.mark.parametrize(
    ("function", "arguments", "graphs"),
    DECIDED,
    ids=[f"{d[0].__name__}{k}" for k, d in enumerate(DECIDED)],
)
def test_a_loop_that_the_device_ends_is_the_same_to_the_bit(
    function: Callable[..., Any], arguments: Arguments, graphs: int
) -> None:
    compiled, driver = mutad.compile(function), drivers.begun["emulated"]
    outcome(compiled, arguments())
    before, downloads = driver.replays, driver.launches
    found = outcome(compiled, arguments())
    assert driver.replays - before == graphs
    captured, before = driver.launches - downloads, driver.replays
    downloads = driver.launches
    wanted = without(lambda: outcome(compiled, arguments()))
    assert driver.replays == before
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    plain = arguments()
    close(found[0], function(*plain))
    if function not in (again_and_again, chosen, counted, bold) and plain[-1] not in (100.0, 0, 3):
        assert captured < driver.launches - downloads + 4


def worn(u, limit):
    while np.abs(u).max() > limit:
        u -= 0.01 * u * u
    return u.sum()


def test_a_tape_grows_by_few_blocks(emulation: EmulatedDriver) -> None:
    """How many iterations there are nobody knows before: each block has twice the bytes of the last one."""
    compiled = mutad.compile(worn, grad=True)
    taken: list[int] = []
    for limit in (0.5, 0.25, 0.125):
        u, before = waves(30) + 2, emulation.counts.get("cuMemAllocAsync", 0)
        slopes = on_host(compiled.grad(*on_device((u.copy(),)), limit))
        taken.append(emulation.counts["cuMemAllocAsync"] - before)
        close(slopes, compiled.grad(u, limit))
        _, back = compiled.vjp(*on_device((waves(30) + 2,)), limit)
        close(on_host(back(1.0)), slopes)
        close(on_host(back(1.0)), slopes)
    assert taken[0] < 20
    assert taken[-1] <= taken[0] + 3


def both_ways(u, v, limit):
    """Two tapes, whose segments have different extents, in a loop that runs several times."""
    total = 0.0
    for _ in range(3):
        u += 1.0
        while np.abs(u).max() > limit:
            u -= 0.1 * u * u
            v *= v - 0.5
        total += (u[:3] * v[:3]).sum()
    return total


def test_segments_are_apart() -> None:
    compiled = mutad.compile(both_ways, grad=True)
    arguments = waves(300) + 2, 0.5 + 0.1 * waves(70), 0.4
    found = compiled.grad(*on_device(arguments), wrt=("u", "v"))
    wanted = compiled.grad(
        *(np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments), wrt=("u", "v")
    )
    for one, other in zip(found, wanted, strict=True):
        close(on_host(one), other)


def test_tangents_go_along(emulation: EmulatedDriver) -> None:
    compiled, u = mutad.compile(damped, grad=True), waves(30)
    before = emulation.graphs.repeated
    found = compiled.jvp(*on_device((u.copy(),)), 0.1, tangents={"u": on_device((waves(30),))[0]})
    assert emulation.graphs.repeated > before
    close(found, compiled.jvp(u.copy(), 0.1, tangents={"u": waves(30)}))


def swapped(u, v, limit):
    while np.abs(u).max() > limit:
        v[...] = 0.5 * u
        u, v = v, u
    return u.sum()


def told_by_a_number(u, limit):
    """The host would have to know which kernel it launches."""
    while np.abs(u).max() > limit:
        if u[0] > 0.2:
            u *= 0.5
        else:
            u[1:] *= 0.25
            u[0] *= 0.125
    return u.sum()


def counted_in_steps(u, limit, step):
    """The counter may come to its end."""
    k = 0
    while np.abs(u).max() > limit:
        u *= 0.5
        k += step
    return k


def rounded_otherwise(u, limit):
    """A device's `exp` is not the C library's."""
    while np.exp(u[0]) > limit:
        u *= 0.5
    return u.sum()


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (swapped, lambda: (waves(30), waves(30), 0.1)),
        (told_by_a_number, lambda: (waves(30), 0.1)),
        (counted_in_steps, lambda: (waves(30), 0.1, 3)),
        (rounded_otherwise, lambda: (waves(30) + 1, 1.1)),
    ],
)
def test_other_loops_are_the_hosts(
    function: Callable[..., Any], arguments: Arguments, emulation: EmulatedDriver
) -> None:
    before = emulation.graphs.repeated
    found = outcome(mutad.compile(function), arguments())
    assert emulation.graphs.repeated == before
    close(found[0], function(*arguments()))


def test_a_counter_that_does_not_fit_is_the_hosts(emulation: EmulatedDriver) -> None:
    compiled, before = mutad.compile(counted), emulation.graphs.repeated
    with pytest.raises(OverflowError):
        compiled(*on_device((waves(30),)), 0.1, 2**63 - 4)
    assert emulation.graphs.repeated == before


def test_threads_of_numbers_do_not_race() -> None:
    """Each launch of a graph's body is looked at, thread by thread."""
    compiled = mutad.compile(conjugate_gradients)
    given = np.zeros(5), waves(5), 1e-10, 3
    with watched():
        close(compiled(*on_device(given)), conjugate_gradients(np.zeros(5), *given[1:]))


def test_what_raises_is_raised() -> None:
    compiled = mutad.compile(damped)
    with pytest.raises(ValueError, match="zero-size array"):
        compiled(*on_device((np.zeros(0),)), 0.1)

    def at(u, limit, k):
        while np.abs(u).max() > limit:
            u[k] = 0.0
            u *= 0.5
        return u.sum()

    compiled, u = mutad.compile(at), waves(5)
    close(compiled(*on_device((u,)), 0.1, -2), at(u.copy(), 0.1, -2))
    assert compiled(*on_device((u,)), 100.0, 7) == pytest.approx(u.sum())
    for k in (5, -6):
        with pytest.raises(IndexError, match=f"index {k} is out of bounds"):
            compiled(*on_device((u,)), 0.1, k)


@pytest.mark.parametrize(
    ("function", "after"),
    [
        *((name, 0) for name in CONDITIONAL),
        ("cuStreamBeginCaptureToGraph", 1),
        *(("cuLaunchKernel", k) for k in range(8)),
        *(("cuGraphInstantiateWithFlags", 0), ("cuGraphLaunch", 0), ("cuMemAllocAsync", 1)),
    ],
)
def test_errors_of_the_driver_are_exceptions(
    function: str, after: int, emulation: EmulatedDriver
) -> None:
    compiled, wanted = mutad.compile(damped), damped(waves(300), 0.1)
    u, again, first = on_device((waves(300), waves(300), waves(300)))
    compiled(first, 0.1)
    drivers.begun["emulated"].release()
    handles = len(emulation.handles)
    code = OUT_OF_MEMORY if function == "cuMemAllocAsync" else INVALID_VALUE
    emulation.fail(function, code, after)
    with pytest.raises((mutad.cuda.CudaError, MemoryError), match=function):
        compiled(u, 0.1)
    assert emulation.captured is None
    drivers.begun["emulated"].release()
    assert len(emulation.handles) <= handles
    close(compiled(again, 0.1), wanted)


def test_drivers_without_conditional_nodes_launch_one_by_one(emulation: EmulatedDriver) -> None:
    driver = drivers.begun["emulated"]
    before, driver.state[SETTER] = driver.state[SETTER], 0
    try:
        emulation.fail("cuModuleLoadDataEx", INVALID_PTX)
        driver.begin_conditions()
        assert not driver.state[SETTER]
        assert not emulation.failing
        addresses, driver.addresses = driver.addresses, {}
        driver.begin_conditions()
        driver.addresses = addresses
        assert not driver.state[SETTER]
        driver.begin_conditions()
        assert driver.state[SETTER]
    finally:
        driver.state[SETTER] = before or driver.state[SETTER]


@pytest.mark.parametrize("kind", ["sm_80", "sm_90", "sm_100"])
def test_nvidias_assembler_takes_the_kernel_that_sets_a_condition(
    kind: str, tmp_path: Path
) -> None:
    source = tmp_path / "set.ptx"
    source.write_text(SET_CONDITION)
    asked = [ptxas(), "-c", f"-arch={kind}", str(source), "-o", str(tmp_path / "set.o")]
    made = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
