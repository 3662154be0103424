"""Scalars of loops that kernels compute: the host waits for none of them, and graphs replay the loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_checks import assemble, close, nothing_is_lost
from device_programs import Arguments, waves
from lit_programs import context
from on_device import on_device, on_host
from race_oracle import watched
from xdsl.parser import Parser

import mutad
from mutad.compiler.codegen.ptx import ptx_of
from mutad.compiler.kernels.count_on_device import CountOnDevice
from mutad.compiler.kernels.scalars_on_device import ScalarsOnDevice
from mutad.dialects.device import is_kernel
from mutad.runtime import device, drivers
from mutad.runtime.emulated_driver import EmulatedDriver, emulated


@pytest.fixture(autouse=True)
def emulation() -> Iterator[EmulatedDriver]:
    """Nothing of what is emulated may go wrong, and nothing is lost; short loops are replayed as well."""
    with emulated() as found:
        state = drivers.begun["emulated"].state
        words = state[device.UNIT], state[device.LEAST]
        state[device.UNIT], state[device.LEAST] = 1, 2
        with nothing_is_lost(found):
            yield found
            state[device.UNIT], state[device.LEAST] = words
        found.failing.clear()


def walls(u, k, n):
    for _ in range(n):
        u[1:-1] += k * (u[:-2] - 2 * u[1:-1] + u[2:])
        u[0] = u[1]
        u[-1] = 2 * u[-2] - u[-3]
    return (u * u).sum()


def rolled(u, k, n):
    for _ in range(n):
        u += k * (np.roll(u, 1) - u * u)
    return (u * u).sum()


def fastest(u, n):
    t = 0.0
    for _ in range(n):
        dt = 0.5 / np.abs(u).max()
        u -= dt * 0.1 * u * u
        t += dt
    return u.sum() * t


def power(x, a, n):
    for _ in range(n):
        x = a @ x
        x /= np.sqrt((x * x).sum())
    return x @ (a @ x)


def clipped(u, n):
    last = 1.0
    for _ in range(n):
        size = (u * u).sum()
        if size > last:
            size = 0.5 * (size + last)
        u *= 1.01 / (1.0 + size)
        last = size
    return last


def swapped(u, v, n):
    for _ in range(n):
        v[1:-1] = 0.5 * (u[:-2] + u[2:])
        v[0] = u[0] * u[-1]
        v[-1] = 0.0
        u, v = v, u
    return (u * v).sum()


def logged(u, w, n):
    for i in range(n):
        u *= 0.9
        w[i] = (u * u).sum() * u[i]
    return (w * w).sum()


def within(u, n, m):
    total = 0.0
    for _ in range(n):
        u[0] = u[1]
        for _ in range(m):
            top = u.max()
            u *= 1.0 / (1.0 + top)
            total += top
        u += 0.5
    return total


def stepped(u, dt, n):
    t = 0.0
    for _ in range(n):
        u += dt * t * u
        u[0] = u[-1]
        t += dt
    return u.sum() + t


N = 12
PERIODS = {swapped: 2, logged: 0}
"""Of those loops that are not the same in each iteration; 0: the host checks a subscript in each."""
PROGRAMS: tuple[tuple[Callable[..., Any], Arguments, int, int], ...] = (
    (walls, lambda: (waves(40), 0.1, N), 1, 1),
    (walls, lambda: (waves(40).astype(np.float32), np.float32(0.1), N), 1, 1),
    (walls, lambda: (waves(40), 0.1, 0), 1, 1),
    (rolled, lambda: (waves(40), 0.01, N), 1, 1),
    (fastest, lambda: (waves(40) + 2, N), 2, 3),
    (power, lambda: (waves(8), np.outer(waves(8), waves(8)) + 2 * np.eye(8), N), 1, 1),
    (clipped, lambda: (waves(40), N), 1, 3),
    (swapped, lambda: (waves(40), waves(40) + 1, N), 1, 1),
    (logged, lambda: (waves(40), np.zeros(N), N), 1, 1),
    (stepped, lambda: (waves(40), 0.01, N), 2, 3),
)
"""With how often the host waits for the value, and with the gradient, however many iterations there are."""
NAMES = [f"{p[0].__name__}{k}" for k, p in enumerate(PROGRAMS)]


def same(found: Any, wanted: Any) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(on_host(a)), np.asarray(b))


def replays_of(function: Callable[..., Any], n: int) -> int:
    """How often graphs of one period run in place of a loop's iterations."""
    period = PERIODS.get(function, 1)
    return (n - period) // period if n and period else 0


def waited(driver: EmulatedDriver, call: Callable[[], Any]) -> tuple[Any, int]:
    """What a call returns, and how many numbers the host has fetched."""
    before = driver.counts.get("cuMemcpyDtoHAsync", 0)
    found = call()
    return found, driver.counts.get("cuMemcpyDtoHAsync", 0) - before


@pytest.mark.parametrize(("function", "arguments", "waits", "both"), PROGRAMS, ids=NAMES)
def test_the_host_waits_for_no_scalar(
    function: Callable[..., Any],
    arguments: Arguments,
    waits: int,
    both: int,
    emulation: EmulatedDriver,
) -> None:
    f = mutad.compile(function, grad=True, opt=1)
    g = mutad.compile(function, grad=True, opt=1, target="cuda:host")
    given, plain = on_device(arguments()), arguments()
    replays = drivers.begun["emulated"].replays
    value, count = waited(emulation, lambda: f(*given))
    same((value, *given), (g(*plain), *plain))
    assert count <= waits
    graphs = replays_of(function, plain[-1])
    assert drivers.begun["emulated"].replays - replays == graphs
    given, replays = on_device(arguments()), drivers.begun["emulated"].replays
    (value, slope), count = waited(emulation, lambda: f.value_and_grad(*given))
    wanted, expected = mutad.compile(function, grad=True).value_and_grad(*arguments())
    close(on_host(slope), expected)
    close(value, wanted)
    assert count <= both
    assert drivers.begun["emulated"].replays - replays == 2 * graphs  # both sweeps


@pytest.mark.parametrize(("function", "arguments", "waits", "both"), PROGRAMS, ids=NAMES)
def test_halves_of_a_gradient_agree_on_what_is_saved(
    function: Callable[..., Any], arguments: Arguments, waits: int, both: int
) -> None:
    f = mutad.compile(function, grad=True, opt=1)
    _, back = f.vjp(*on_device(arguments()))
    _, expected = mutad.compile(function, grad=True).vjp(*arguments())
    for _ in range(2):
        close(on_host(back(1.0)), expected(1.0))


def test_no_two_threads_meet() -> None:
    for function, arguments, *_ in PROGRAMS[:6]:
        with watched():
            mutad.compile(function, grad=True, opt=1).grad(*on_device(arguments()))


@pytest.mark.parametrize("function", [walls, fastest, power, logged])
def test_nvidias_assembler_takes_the_kernels(function: Callable[..., Any], tmp_path: Path) -> None:
    (arguments,) = {p[0].__name__: p[1] for p in reversed(PROGRAMS) if p[0] is function}.values()
    compiled = mutad.compile(function, grad=True, target="cuda:sm_90")
    module = Parser(context(), compiled.inspect("kernels", *arguments(), wrt=0)).parse_module()
    before = sum(map(is_kernel, module.ops))
    for one in (ScalarsOnDevice(), CountOnDevice()):
        one.apply(context(), module)
    module.verify()
    assert sum(map(is_kernel, module.ops)) > before
    assemble(ptx_of(module, "sm_90"), "sm_90", tmp_path)


def test_inner_loops_do_not_wait(emulation: EmulatedDriver) -> None:
    f = mutad.compile(within, opt=1)
    value, count = waited(emulation, lambda: f(*on_device((waves(30), 3, 9))))
    close(value, within(waves(30), 3, 9))
    assert count <= 2


def out_of_range(u, k, n):
    for _ in range(n):
        u[0] = u[1] + 1.0
        u[k] = u[2]
    return u.sum()


def test_what_raises_leaves_what_came_before() -> None:
    f = mutad.compile(out_of_range, opt=1)
    u = on_device((waves(10),))[0]
    with pytest.raises(IndexError):
        f(u, 10, 5)
    wanted = waves(10)
    with pytest.raises(IndexError):
        out_of_range(wanted, 10, 5)
    np.testing.assert_array_equal(on_host(u), wanted)
    close(f(*on_device((waves(10), 9, 5))), out_of_range(waves(10), 9, 5))


def decides(u, n):
    for _ in range(n):
        if (u * u).sum() > 4.0:
            u *= 0.5
        else:
            u += 0.1
    return u.sum()


def rounded(u, n):
    for _ in range(n):
        u *= np.exp(-u.max())
    return u.sum()


@pytest.mark.parametrize("function", [decides, rounded])
def test_the_host_waits_for_what_it_has_to_know(
    function: Callable[..., Any], emulation: EmulatedDriver
) -> None:
    """A branch that launches; a function that a device may round otherwise."""
    f = mutad.compile(function, opt=1)
    value, count = waited(emulation, lambda: f(*on_device((waves(30), N))))
    close(value, function(waves(30), N))
    assert count >= N


def settled(u, n):
    """One number decides; the others need not be known."""
    t = 0.0
    for _ in range(n):
        u[0] = u[1]
        u[-1] = u[-2] * u[0]
        dt = 0.5 / u.max()
        t += dt
        u *= dt
        if u.sum() > 9.0:
            u *= u
    return u.sum() + t


def until(u, limit, n):
    for _ in range(n):
        u[0] = u[1]
        u -= 0.1 / np.abs(u).max() * u * u
        if u.sum() < limit:
            break
    return u.sum()


def lowered(u, limit):
    while u[2:].sum() > limit:
        u[0] = u[1] * u[2]
        u -= 0.1 / np.abs(u).max() * u * u
    return (u * u).sum()


@pytest.mark.parametrize(
    ("function", "arguments", "primal"),
    [
        (settled, (waves(30) + 2, N), N + 2),
        (until, (waves(30) + 2, 40.0, 50), 50),
        (until, (waves(30) + 2, 59.0, 50), 50),
        (lowered, (waves(30) + 2, 40.0), None),
    ],
)
def test_the_host_waits_for_nothing_else(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    primal: int | None,
    emulation: EmulatedDriver,
) -> None:
    f = mutad.compile(function, grad=True, opt=1)
    g = mutad.compile(function, grad=True, opt=1, target="cuda:host")
    here, there = on_device((0, *arguments))[1:], (arguments[0].copy(), *arguments[1:])
    value, count = waited(emulation, lambda: f(*here))
    same((value, *here), (g(*there), *there))
    assert primal is None or count <= primal
    given = (arguments[0].copy(), *arguments[1:])
    slope = on_host(f.grad(*on_device(given)))
    close(slope, mutad.compile(function, grad=True).grad(*given))


def rivers(z, row, column, bed, k, n):
    for _ in range(n):
        z[1:-1, 1:-1] += k * (z[2:, 1:-1] - 2 * z[1:-1, 1:-1] + z[:-2, 1:-1])
        for r in range(row.size):
            if z[row[r], column[r]] > bed[r]:
                z[row[r], column[r]] = bed[r]
    return (z * z).sum()


def held(count: int) -> tuple[Any, ...]:
    """Cells that are held down, some of them twice."""
    z = 2 + np.outer(waves(70), waves(60))
    row, column = (np.arange(count) * 7) % 68 + 1, (np.arange(count) * 11) % 58 + 1
    return z, row, column, z[row, column] - 0.01 * waves(count), 0.1, N


@pytest.mark.parametrize("count", [300, 9000], ids=["looked at by all", "sorted"])
def test_what_no_loop_around_changes_is_found_once(count: int, emulation: EmulatedDriver) -> None:
    """Subscripts are looked at, and iterations sorted, before the steps, which are replayed."""
    f = mutad.compile(rivers, grad=True, opt=1)
    replays = drivers.begun["emulated"].replays
    (value, slope), count_ = waited(
        emulation, lambda: f.value_and_grad(*on_device(held(count)), wrt="z")
    )
    assert count_ <= 3
    assert drivers.begun["emulated"].replays - replays == 2 * (N - 1)
    wanted, expected = mutad.compile(rivers, grad=True).value_and_grad(*held(count), wrt="z")
    close(value, wanted)
    close(on_host(slope), expected)


@pytest.mark.parametrize("steps", [0, N])
@pytest.mark.parametrize("wrong", ["row", "column", "short"])
def test_subscripts_raise_where_the_program_comes_to_them(wrong: str, steps: int) -> None:
    z, row, column, bed, k, _ = held(300)
    if wrong == "short":
        column = column[:200]
    else:
        (row if wrong == "row" else column)[250] = 70
    f = mutad.compile(rivers, grad=True, opt=1)
    given = z.copy()
    there = on_device((z, row, column, bed, k, steps))
    if steps == 0:
        close(f(*there), rivers(given, row, column, bed, k, steps))
    else:
        with pytest.raises(IndexError):
            f(*there)
        with pytest.raises(IndexError):
            rivers(given, row, column, bed, k, steps)
    close(on_host(there[0]), given)


def moved(z, row, n):
    """The subscripts change: they are looked at, and sorted, in each step."""
    for _ in range(n):
        z *= 0.5
        for r in range(row.size):
            z[row[r]] = z[row[r]] * 0.5 + r
        row += 1
    return z.sum()


@pytest.mark.parametrize(("size", "fits"), [(90, True), (90, False), (9000, True)])
def test_subscripts_that_change_are_looked_at_again(size: int, fits: bool) -> None:
    f = mutad.compile(moved, opt=1)
    row = np.arange(size) % 50
    z, there = waves(53 if fits else 52), on_device((waves(53 if fits else 52), row.copy(), 4))
    if fits:
        close(f(*there), moved(z, row, 4))
    else:
        with pytest.raises(IndexError):
            f(*there)
        with pytest.raises(IndexError):
            moved(z, row, 4)
    close(on_host(there[0]), z)
