"""Launches through a driver, which is emulated: values, effects and derivatives, arrays, errors, graphs."""

from __future__ import annotations

import ctypes
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from device_checks import nothing_is_lost
from device_programs import PROGRAMS, Arguments, heat, named, waves
from meeting_programs import MEETING

import mutad
from mutad import Active, Const, DeviceArray, Duplicated
from mutad.cuda import CudaError
from mutad.runtime import cuda, device, drivers
from mutad.runtime.device import Driver
from mutad.runtime.emulated_driver import BYTES, EmulatedDriver, emulated
from mutad.runtime.emulated_functions import ILLEGAL_ADDRESS, INVALID_VALUE, OUT_OF_MEMORY, Function


@pytest.fixture(autouse=True)
def emulation() -> Iterator[EmulatedDriver]:
    """Nothing of what is emulated may go wrong, and no memory is lost."""
    with emulated() as found:
        state = driver().state
        unit, least = state[device.UNIT], state[device.LEAST]
        state[device.UNIT], state[device.LEAST] = 1, 2
        with nothing_is_lost(found):
            yield found
            state[device.UNIT], state[device.LEAST] = (
                unit,
                least,
            )  # other tests have the same driver
        found.failing.clear()


def driver() -> Driver:
    return drivers.begun["emulated"]


def there(value: Any) -> Any:
    return mutad.device_array(value) if isinstance(value, np.ndarray) else value


def here(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(here, value))
    return value.copy_to_host() if isinstance(value, DeviceArray) else value


def compiled(function: Callable[..., Any], **options: Any) -> tuple[Any, Any]:
    """The function for devices, and the same kernels run in place."""
    return (
        mutad.compile(function, grad=True, opt=1, **options),
        mutad.compile(function, grad=True, opt=1, target="cuda:host", **options),
    )


def same(found: Any, wanted: Any) -> None:
    """To the bit."""
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            same(one, other)
        return
    assert not isinstance(wanted, np.ndarray) or isinstance(found, DeviceArray)
    a, b = np.asarray(here(found)), np.asarray(wanted)
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)


MET = [(m.function, m.arguments, m.wrt) for m in MEETING]


@pytest.mark.parametrize(
    ("function", "arguments", "wrt"), [*PROGRAMS, *MET], ids=map(named, (*PROGRAMS, *MET))
)
def test_values_and_gradients_are_those_of_the_kernels(
    function: Callable[..., Any], arguments: Arguments, wrt: tuple[str, ...]
) -> None:
    f, g = compiled(function)
    given, plain = tuple(map(there, arguments())), arguments()
    same(f(*given), g(*plain))
    same(given, plain)
    if wrt:
        given, plain = tuple(map(there, arguments())), arguments()
        same(f.value_and_grad(*given, wrt=wrt), g.value_and_grad(*plain, wrt=wrt))
        same(given, plain)


def test_every_derivative() -> None:
    f, g = compiled(heat)
    u = waves(300)
    d, du, e, de = there(u), there(np.ones(300)), u.copy(), np.ones(300)
    same(
        f.pullback(Duplicated(d, du), Active(0.1), Const(3), cotangent=2.0),
        g.pullback(Duplicated(e, de), Active(0.1), Const(3), cotangent=2.0),
    )
    same((d, du), (e, de))
    value, back = f.vjp(there(u), 0.1, 3, wrt=("u", "k"))
    wanted, back_here = g.vjp(u.copy(), 0.1, 3, wrt=("u", "k"))
    same(value, wanted)
    for bar in (1.0, -3.0):
        same(back(bar), back_here(bar))
    du, de = there(np.ones(300)), np.ones(300)
    same(
        f.jvp(there(u), 0.1, 3, tangents={"u": du, "k": 0.5}),
        g.jvp(u.copy(), 0.1, 3, tangents={"u": de, "k": 0.5}),
    )
    same(du, de)
    same(
        f.pushforward(Duplicated(there(u), du), Const(0.1), Const(3)),
        g.pushforward(Duplicated(u.copy(), de), Const(0.1), Const(3)),
    )


def decays(u, limit):
    steps = 0
    while (u * u).sum() > limit:
        v = u * u
        u[:] = u - 0.1 * v * u
        steps += 1
    return (u**3).sum()


def returned(u, k):
    v = k * u * u
    return v, v[1:], u, v.sum()


def new_in_each_step(u, steps):
    total = 0.0
    for t in range(steps):
        w = np.sqrt(u + t)
        if t % 2:
            w = w[::-1] * u
        total += (w * w).max()
    return total


def halves(u, n):
    a, b = u[:n], u[n:]
    a += 2 * b
    b *= a
    return (a * b).sum()


def typed(x, k, b):
    y = np.where(b, x, -x).astype(np.float32)
    y[0] = 7.0
    k[1] = k[0] + 3
    b[2] = not b[2]
    return y, k.sum(), b.any()


def empty_views(u):
    a = u * u
    a[-3:1:-1] += a[-4:0:-1] + u[-1:3:-1]
    return a.sum()


def sums(u):
    return (u * u).sum() + u.sum()


OTHERS: tuple[tuple[Callable[..., Any], tuple[Any, ...], tuple[str, ...]], ...] = (
    (decays, (waves(50), 3.0), ("u",)),
    (new_in_each_step, (waves(40), 5), ("u",)),
    (halves, (waves(20), 10), ("u",)),
    (returned, (waves(30), 0.5), ()),
    (typed, (waves(9), np.arange(5), np.arange(9) % 2 == 0), ()),
    (typed, (waves(3), np.arange(2, dtype=np.int8), np.arange(3) % 2 == 0), ()),
    (sums, (waves(0),), ("u",)),
    (empty_views, (waves(2),), ("u",)),
)


@pytest.mark.parametrize(
    ("function", "arguments", "wrt"), OTHERS, ids=lambda x: getattr(x, "__name__", "")
)
def test_tapes_results_and_views(
    function: Callable[..., Any], arguments: tuple[Any, ...], wrt: tuple[str, ...]
) -> None:
    f, g = compiled(function)

    def plain() -> tuple[Any, ...]:
        return tuple(x.copy() if isinstance(x, np.ndarray) else x for x in arguments)

    def outcome(call: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        try:
            return call(*values)
        except IndexError as error:
            return str(error)

    ours, theirs = tuple(map(there, plain())), plain()
    same(outcome(f, ours), outcome(g, theirs))
    same(ours, theirs)
    if wrt:
        ours, theirs = tuple(map(there, plain())), plain()
        same(f.value_and_grad(*ours, wrt=wrt), g.value_and_grad(*theirs, wrt=wrt))
        (value, back), (wanted, back_here) = f.vjp(*map(there, plain())), g.vjp(*plain())
        same((value, back(2.0), back(1.0)), (wanted, back_here(2.0), back_here(1.0)))


def test_views_share_and_results_are_arguments() -> None:
    f, _ = compiled(returned)
    u = there(waves(30))
    v, tail, again, _ = f(u, 0.5)
    assert again is u
    same(tail, here(v)[1:])
    f, g = compiled(lambda a, b: np.add(a, 3 * b, out=a).sum())
    u, w = there(waves(20)), waves(20)
    gradients = f.grad(u[1:], u[:-1], wrt=(0, 1))
    wanted = g.grad(w[1:], w[:-1], wrt=(0, 1))
    same(gradients, wanted)
    same(u, w)


# Loops that are replayed.


def steps_of_two(u, v, steps):
    for _ in range(steps):
        v[1:-1] = u[1:-1] + 0.1 * (u[2:] - u[:-2])
        v[0] = 3.0
        for i in range(1, v.size):
            v[i] = 0.5 * v[i]
        u, v = v, u
    return u.sum()


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 7, 8, 33])
@pytest.mark.parametrize("unit", [1, 3])
def test_a_replayed_loop_is_the_same_to_the_bit(
    steps: int, unit: int, emulation: EmulatedDriver
) -> None:
    f, g = compiled(steps_of_two)
    outcomes: list[tuple[Any, ...]] = []
    for least in (2, 1 << 40):
        driver().state[device.UNIT], driver().state[device.LEAST] = unit, least
        before = driver().replays
        u, v = there(waves(40)), there(np.zeros(40))
        outcomes.append((f(u, v, steps), here(u), here(v)))
        replayed = driver().replays - before
        worth = steps >= 4 * unit + 2 and least == 2
        assert replayed == ((steps - 2) // (2 * unit) if worth else 0)
    u, v = waves(40), np.zeros(40)
    wanted = (g(u, v, steps), u, v)
    for outcome in outcomes:
        for found, exact in zip(outcome, wanted, strict=True):
            np.testing.assert_array_equal(found, exact)


def shocks(u, k, steps):
    """Saves a grid a step: its sweeps store and read at another place in each iteration."""
    for _ in range(steps):
        u[1:-1] += k * (u[:-2] - 2 * u[1:-1] + u[2:]) ** 2
    return (u**2).sum()


def driven(u, k, steps):
    for t in range(steps):
        u[1:-1] = u[1:-1] * (u[2:] - k * u[:-2]) + 0.01 * t
    return (u**3).sum()


def all_times(u, k, steps):
    a = np.zeros((steps + 1, u.size))
    a[0] = u
    for t in range(steps):
        a[t + 1, 1:-1] = a[t, 1:-1] + k * a[t, 2:] * a[t, :-2]
    return (a[steps] ** 2).sum() + a[:, 3].sum()


@pytest.mark.parametrize("program", [shocks, driven, all_times])
@pytest.mark.parametrize("steps", [0, 2, 17])
@pytest.mark.parametrize("wrt", [(0,), (0, 1)], ids=len)
def test_loops_that_save_are_replayed(
    program: Callable[..., Any], steps: int, wrt: tuple[int, ...], emulation: EmulatedDriver
) -> None:
    """Kernels read the counter on the device, so both sweeps launch the same in each iteration.

    What is added up in each iteration (the cotangent of `k`) stays on the device, too.
    """
    f, g = compiled(program)
    outcomes: list[Any] = []
    for least in (2, 1 << 40):
        driver().state[device.UNIT], driver().state[device.LEAST] = 1, least
        before = driver().replays
        found = f.value_and_grad(there(0.1 * waves(20)), 0.01, steps, wrt=wrt)
        both_sweeps = driver().replays - before > steps
        assert both_sweeps == (least == 2 and steps == 17)
        outcomes.append(flat(here(found)))
    np.testing.assert_array_equal(*outcomes)
    wanted = flat(g.value_and_grad(0.1 * waves(20), 0.01, steps, wrt=wrt))
    np.testing.assert_allclose(outcomes[0], wanted, rtol=1e-13)


def taking_turns(u, k, steps):
    v = np.zeros_like(u)
    for _ in range(steps):
        v[1:-1] = u[1:-1] + k * u[2:] * u[:-2]
        u, v = v, u
    return (u**2).sum()


def arguments_take_turns(u, v, k, steps):
    for _ in range(steps):
        v[1:-1] = u[1:-1] + k * u[2:] * u[:-2]
        u, v = v, u
    return (u**2).sum() + v[0]


def grids_take_turns(u, v, k, steps):
    for _ in range(steps):
        v[1:-1, 1:-1] = u[1:-1, 1:-1] + k * u[2:, 1:-1] * u[1:-1, :-2]
        u, v = v, u
    return (u**2).sum() + v[0, 1]


@pytest.mark.parametrize("steps", [1, 17, 18])
@pytest.mark.parametrize(
    ("program", "arrays"),
    [
        (taking_turns, (0.1 * waves(20),)),
        (arguments_take_turns, (0.1 * waves(20), 0.2 * waves(20))),
        (grids_take_turns, (0.1 * waves(6, 5), 0.2 * waves(6, 5))),
    ],
)
def test_arrays_that_take_turns_are_saved_in_one_segment(
    program: Callable[..., Any], arrays: tuple[Any, ...], steps: int, emulation: EmulatedDriver
) -> None:
    """All have the same extents, so both sweeps are replayed."""
    f, g = compiled(program)
    driver().state[device.UNIT], driver().state[device.LEAST] = 1, 2
    before, wrt = driver().replays, (*range(len(arrays)), "k")
    found = f.value_and_grad(*(there(a.copy()) for a in arrays), 0.01, steps, wrt=wrt)
    assert driver().replays - before == (0 if steps == 1 else 2 * ((steps - 2) // 2))
    wanted = flat(g.value_and_grad(*(a.copy() for a in arrays), 0.01, steps, wrt=wrt))
    np.testing.assert_allclose(flat(here(found)), wanted, rtol=1e-13)


def added_each_time(u, k, steps):
    total, other = 0.0, 1.0
    for _ in range(steps):
        u[1:-1] += k * (u[:-2] - 2 * u[1:-1] + u[2:])
        total -= 0.5 * (u * u).sum()
        other += u.sum() * u[1:].mean()
    return total * other


def asked_each_time(u, k, steps):
    total = 0.0
    for _ in range(steps):
        u[1:-1] += k * (u[:-2] - 2 * u[1:-1] + u[2:])
        s = (u * u).sum()
        if s < 0.001:
            s = 2.0
        total += s
    return total


@pytest.mark.parametrize("program", [added_each_time, asked_each_time])
def test_what_a_loop_adds_of_its_sums_stays_on_the_device(
    program: Callable[..., Any], emulation: EmulatedDriver
) -> None:
    f, g = compiled(program)
    driver().state[device.UNIT] = 1
    outcomes: list[Any] = []
    for least in (2, 1 << 40):
        driver().state[device.LEAST] = least
        before = driver().replays
        outcomes.append(f(there(waves(300)), 0.01, 17))
        assert (driver().replays > before) == (least == 2)
    assert outcomes[0] == outcomes[1]
    assert outcomes[0] == pytest.approx(program(waves(300), 0.01, 17), rel=1e-13)
    found = f.grad(there(waves(300)), 0.01, 17, wrt=("u", "k"))
    for one, wanted in zip(found, g.grad(waves(300), 0.01, 17, wrt=("u", "k")), strict=True):
        np.testing.assert_allclose(here(one), wanted, rtol=1e-12)


def flat(found: Any) -> Any:
    value, parts = found
    return np.concatenate([np.ravel(part) for part in (value, *parts)])


def test_graphs_are_given_back(emulation: EmulatedDriver) -> None:
    f, _ = compiled(steps_of_two)
    names = "cuGraphInstantiateWithFlags", "cuGraphExecDestroy", "cuGraphDestroy"
    before = [emulation.counts.get(name, 0) for name in names]
    f(there(waves(40)), there(np.zeros(40)), 33)
    driver().synchronize()
    made, *gone = (emulation.counts[name] - n for name, n in zip(names, before, strict=True))
    assert gone == [made, made]


def test_what_goes_while_a_loop_is_captured_is_given_back_later(emulation: EmulatedDriver) -> None:
    f, _ = compiled(steps_of_two)
    wanted = f(there(waves(40)), there(np.zeros(40)), 33)
    arrays = [there(waves(10)) for _ in range(5)]
    places = [a.taken.array.__array_interface__["data"][0] for a in arrays]
    held: list[bool] = []

    def look(name: str, _: Any) -> None:
        if emulation.captured is not None and name == "cuLaunchKernel":
            arrays.clear()
            held.append(emulation.given_count.value == 0)

    emulation.log = look
    try:
        assert f(there(waves(40)), there(np.zeros(40)), 33) == wanted
    finally:
        emulation.log = None
    assert held
    assert all(held)
    emulation.take_back()
    assert not emulation.blocks.keys() & {*places}


# What goes wrong.


def outcome_of(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (MemoryError, CudaError) as error:
        return error


CALLS = (
    "cuLaunchKernel",
    "cuMemAllocAsync",
    "cuMemcpyDtoHAsync",
    "cuMemsetD32Async",
    "cuGraphLaunch",
)


@pytest.mark.parametrize(
    ("program", "given"),
    [(decays, (waves(30), 2.0)), (steps_of_two, (waves(30), waves(30), 9))],
    ids=("tape", "graph"),
)
def test_errors_of_the_driver_are_exceptions(
    program: Callable[..., Any], given: tuple[Any, ...], emulation: EmulatedDriver
) -> None:
    f, _ = compiled(program)
    wanted = here(f.grad(*map(there, given)))
    raised = 0
    for function in CALLS:
        code = OUT_OF_MEMORY if function == "cuMemAllocAsync" else ILLEGAL_ADDRESS
        for after in range(0, 40, 3):
            arrays = tuple(map(there, given))
            emulation.fail(function, code, after)
            error = outcome_of(lambda: f.grad(*arrays))
            if isinstance(error, MemoryError):
                assert function == "cuMemAllocAsync"
                assert "the device has no memory" in str(error)
            elif isinstance(error, CudaError):
                assert function != "cuMemAllocAsync"
                assert f"{function}: CUDA_ERROR_ILLEGAL_ADDRESS (700)" in str(error)
                assert error.code == ILLEGAL_ADDRESS
            else:
                assert function in emulation.failing
            raised += isinstance(error, Exception)
            emulation.failing.clear()
    assert raised > 20
    np.testing.assert_array_equal(here(f.grad(*map(there, given))), wanted)


def test_too_many_blocks_are_refused_by_the_driver(emulation: EmulatedDriver) -> None:
    f, _ = compiled(heat)
    emulation.fail("cuLaunchKernel", INVALID_VALUE)
    with pytest.raises(CudaError, match="cuLaunchKernel: CUDA_ERROR_INVALID_VALUE"):
        f(there(waves(10)), 0.1, 2)


def test_subscripts_are_checked_and_memory_is_as_python_leaves_it() -> None:
    f = mutad.compile(lambda u, x, k: write_at(u, x, k), opt=1)
    k, x = np.array([3, 1, 9, 0]), waves(5)
    u, plain = there(np.zeros(4)), np.zeros(4)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        f(u, there(x), there(k))
    with pytest.raises(IndexError):
        write_at(plain, x, k)
    same(u, plain)


def write_at(u, x, k):
    for i in range(k.size):
        u[i] = x[k[i]] ** 2
    return u.sum()


def test_host_and_device_are_not_mixed() -> None:
    f, _ = compiled(halves)
    mixed = mutad.compile(lambda u, v, w, k: (u * v * w).sum() * k, grad=True)
    u = waves(4)
    with pytest.raises(
        TypeError, match=r"u and w are on the device, v is on the host: pass .*device_array\(v\)"
    ):
        mixed(there(u), u, there(u), 2.0)
    with pytest.raises(TypeError, match="shadow of u"):
        f.pullback(Duplicated(there(u), u), Const(2), cotangent=1.0)
    with pytest.raises(TypeError, match="pass arrays of the host"):
        mutad.check_gradient(f, there(u), 2)
    with pytest.raises(TypeError, match=r"copy_to_host"):
        np.asarray(there(u))
    assert mutad.cuda.is_available()
    outside = waves(4)
    g = mutad.compile(lambda u: (u * outside).sum())
    with pytest.raises(TypeError, match="outside is an array of the host"):
        g(there(u))


def test_calls_from_several_threads() -> None:
    f, g = compiled(heat)
    wanted = g(waves(100), 0.1, 4)
    found: list[Any] = []
    threads = [
        threading.Thread(
            target=lambda: found.extend(f(there(waves(100)), 0.1, 4) for _ in range(5))
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 15


def test_a_freed_block_is_found_in_a_launch(emulation: EmulatedDriver) -> None:
    f, _ = compiled(heat)
    u = there(waves(10))
    f(u, 0.1, 1)
    block = u.taken.array.__array_interface__["data"][0]
    emulation.free[512].append(block)
    with pytest.raises(CudaError, match="cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS"):
        f(u, 0.1, 1)
    emulation.free[512].remove(block)


def test_arrays_go_where_no_context_is_current(emulation: EmulatedDriver) -> None:
    arrays = [there(waves(10)) for _ in range(3)]
    assert emulation.context_word.value == 0
    emulation.take_back()
    before = len(emulation.blocks)
    arrays.clear()
    emulation.take_back()
    assert len(emulation.blocks) == before - 3
    assert emulation.context_word.value == 0


# Arrays of other libraries.


class Provider:
    """An array of another library on the same device, by one of the protocols."""

    def __init__(self, array: np.ndarray, stream: int | None = None) -> None:
        self.memory = mutad.device_array(array)
        self.stream = stream

    @staticmethod
    def from_dlpack(x: Any) -> Any:
        return Owned(x)


class ByInterface(Provider):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.memory.__cuda_array_interface__, "stream": self.stream, "strides": None}

    def __array_namespace__(self) -> Any:
        return Provider


class ByDLPack(Provider):
    streams: list[Any] = []

    def __dlpack__(self, *, stream: int | None = None) -> Any:
        self.streams.append(stream)
        return self.memory.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.memory.__dlpack_device__()

    def __array_namespace__(self) -> Any:
        return Provider


class Owned:
    """What a library makes of an array that is handed over."""

    def __init__(self, x: Any) -> None:
        from mutad.runtime.device_arrays import by_dlpack

        self.taken = by_dlpack(x, "x", driver())


@pytest.mark.parametrize("kind", [ByInterface, ByDLPack])
def test_arrays_of_other_libraries_are_taken_without_copying(
    kind: type[Provider], emulation: EmulatedDriver
) -> None:
    f, g = compiled(heat)
    u, plain = kind(waves(6, 5)[:, 1], 1), waves(6, 5)[:, 1].copy()
    copies = emulation.counts.get("cuMemcpyHtoDAsync", 0)
    value, gradient = f.value_and_grad(u, 0.1, 3)
    wanted, exact = g.value_and_grad(plain, 0.1, 3)
    assert value == wanted
    assert type(gradient) is Owned
    found = driver().download(gradient.taken.array)
    np.testing.assert_allclose(
        found, exact, rtol=1e-14
    )  # other vectors, and adjoints may be contracted
    same(u.memory, plain)
    assert emulation.counts["cuMemcpyHtoDAsync"] == copies
    if kind is ByDLPack:
        assert ByDLPack.streams[-1] == driver().stream


class ReadsPTX(EmulatedDriver):
    """Takes NVIDIA's assembler as the real driver does, and runs nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self.read: dict[str, list[int]] = {}
        """By kernel the bytes of each parameter."""

    def cuModuleLoadDataEx(self, place: int, data: int, *options: Any) -> None:
        text = ctypes.string_at(data).decode()
        found: dict[str, Function] = {}
        for name, listed in re.findall(r"\.entry (\w+)\(([^)]*)\)", text):
            kinds = re.findall(r"\.param \.\w(\d+)(?: \.ptr[^,]*?)? ", listed)
            self.read[name] = [int(bits) // 8 for bits in kinds]
            run = KINDS[name] if name in KINDS else []
            found[name] = Function(name, lambda *_: None, run)  # pyright: ignore
        self.handle(found, place)


KINDS: dict[str, list[str]] = {}


def test_the_real_driver_is_given_what_its_kernels_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the launch: addresses from `cuda.bindings`, PTX, parameters as it declares them."""
    made = ReadsPTX()
    bindings = types.ModuleType("cuda.bindings.driver")
    bindings.cuGetProcAddress = lambda name, version, flags: (0, made.addresses[name.decode()], 0)  # pyright: ignore
    package = types.ModuleType("cuda.bindings")
    package.driver = bindings  # pyright: ignore
    monkeypatch.setitem(sys.modules, "cuda", types.ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", package)
    emulated_images: list[dict[str, Any]] = []
    load = Driver.load

    def loaded(self: Driver, image: dict[str, Any]) -> Any:
        emulated_images.append(image)
        return load(self, image)

    monkeypatch.setattr(Driver, "load", loaded)
    f = mutad.compile(heat, grad=True, opt=1, cache=False)
    f.grad(there(waves(40)), 0.1, 3)
    for image in emulated_images:
        KINDS.update(zip(image["kernels"], image["parameters"], strict=True))
    real = drivers.real.__wrapped__()
    with monkeypatch.context() as patched:  # `monkeypatch` undoes when `emulation` has ended
        patched.setattr(cuda, "chosen", real)
        assert cuda.target_of(real, "cpu") == "cuda:sm_90"
        assert cuda.target_of(real, "cuda:sm_80") == "cuda:sm_80"
        with pytest.raises(ValueError, match="the device here is sm_90"):
            cuda.target_of(real, "cuda:sm_100")
        given = there(waves(40))
        same(given, waves(40))
        made.fail("cuMemcpyDtoHAsync", ILLEGAL_ADDRESS, 10)
        f.grad(given, 0.1, 3)
        assert made.counts["cuLaunchKernel"] > 8
        assert made.read == {n: [BYTES[k] for k in kinds] for n, kinds in KINDS.items()}
        assert not made.unexpected
    drivers.begun.pop("cuda")


def test_streams_wait_for_each_other(emulation: EmulatedDriver) -> None:
    f, _ = compiled(heat)
    order: list[tuple[str, Any]] = []
    names = ("cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernel", "cuStreamSynchronize")
    emulation.log = lambda name, arguments: (
        order.append((name, arguments[0])) if name in names else None
    )
    try:
        f(ByInterface(waves(10), 2), 0.1, 1)
        order[:] = order[1:] if order[0][0] == "cuStreamSynchronize" else order  # of the upload
        first, last = order[:2], order[-2:]
        order.clear()
        f(ByInterface(waves(10)), 0.1, 1)
    finally:
        emulation.log = None
    assert [name for name, _ in first] == ["cuEventRecord", "cuStreamWaitEvent"]
    assert (first[0][1] is None, first[1][1]) == (False, driver().stream)
    assert [name for name, _ in last] == ["cuEventRecord", "cuStreamWaitEvent"]
    assert last[1][1] == 2
    assert order[-1][0] == "cuStreamSynchronize"


def test_views_of_nothing_may_begin_anywhere() -> None:
    """Where an array was that is gone."""

    def of_nothing(a, b, step):
        return a @ b[:, ::step]

    f, g = compiled(of_nothing)
    others = [mutad.device_array(np.ones((1, 8))) for _ in range(64)]
    while others:
        others.pop()  # the last that goes is the first that is taken again
    given = np.ones((3, 0)), np.ones((0, 140))
    same(f(*map(there, given), -1), g(*given, -1))
