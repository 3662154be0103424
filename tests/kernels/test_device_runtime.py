"""What is around the launches of a device, which is emulated: errors, threads, processes, memory, signals."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from device_checks import blocks_in_use
from device_programs import heat, waves

import mutad
from mutad.cuda import CudaError
from mutad.runtime import cuda
from mutad.runtime.emulated_driver import DEVICES, EmulatedDriver, emulated
from mutad.runtime.emulated_functions import ILLEGAL_ADDRESS, INVALID_VALUE

f = mutad.compile(heat, grad=True, opt=1)


@pytest.fixture(autouse=True)
def emulation() -> Iterator[EmulatedDriver]:
    with emulated() as found:
        yield found
        blocks_in_use(found)
        assert not found.unexpected
        found.failing.clear()


def there() -> Any:
    return mutad.device_array(waves(100))


@pytest.mark.parametrize(
    ("function", "code", "said"),
    [
        ("cuLaunchKernel", INVALID_VALUE, r"cuLaunchKernel: CUDA_\w+ \(1\), kernel heat_\d+$"),
        (
            "cuLaunchKernel",
            ILLEGAL_ADDRESS,
            r"kernel heat_\d+: nothing runs on this device any more",
        ),
        ("cuMemcpyDtoHAsync", ILLEGAL_ADDRESS, r"; the last kernel was heat_\d+: nothing runs"),
    ],
)
def test_errors_name_the_kernel(
    function: str, code: int, said: str, emulation: EmulatedDriver
) -> None:
    u = there()
    wanted = f(there(), 0.1, 2)
    emulation.fail(function, code, 1 if function == "cuLaunchKernel" else 0)
    with pytest.raises(CudaError, match=said):
        f(u, 0.1, 2)
    assert f(there(), 0.1, 2) == wanted


def test_threads_call_one_after_the_other() -> None:
    expected = f.grad(there(), 0.1, 3).copy_to_host()
    found: list[np.ndarray] = []

    def work() -> None:
        for _ in range(4):
            u = there()
            gradient = f.hvp(u, 0.1, 1, direction=there())
            found.append(f.grad(there(), 0.1, 3).copy_to_host())
            del u, gradient

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    for one in found:
        np.testing.assert_array_equal(one, expected)


def test_memory_is_given_back(emulation: EmulatedDriver) -> None:
    """By each device that was used: both, whatever ran before."""
    assert [cuda.driver(number).number for number in range(DEVICES)] == [*range(DEVICES)]
    trims = emulation.counts.get("cuMemPoolTrimTo", 0)
    mutad.release_memory()
    assert emulation.counts["cuMemPoolTrimTo"] == trims + DEVICES


def test_results_outlive_the_arguments_and_the_function(emulation: EmulatedDriver) -> None:
    g = mutad.compile(lambda u: u * u, opt=1, cache=False)
    wanted = waves(100) ** 2
    results = [g(there()) for _ in range(3)]
    del g
    gc.collect()
    for result in results:
        np.testing.assert_array_equal(result.copy_to_host(), wanted)


def forever(u):
    k = 0
    while u[0] > -1.0:
        u[1:-1] += 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:])
        k += 1
    return k


def stepping(u, n):
    for _ in range(n):
        u[1:-1] += 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:])


@pytest.mark.parametrize(("function", "others"), [(forever, ()), (stepping, (3,))])
def test_loops_of_launches_ask_for_signals(function: Any, others: tuple[Any, ...]) -> None:
    """(The emulated driver is Python: signals reach that before.)"""
    g = mutad.compile(function, opt=1)
    g(mutad.device_array(np.full(10, -2.0)), *others)
    host = g.dispatcher.twins["emulated"].inspect("llvm")
    assert "call i32 @mutad_poll" in host


PROCESS = """
import os, sys
import numpy as np
import mutad
from device_programs import heat, waves

f = mutad.compile(heat, grad=True, opt=1)
context = mutad.cuda.emulated()
context.__enter__()
u = mutad.device_array(waves(50))
f(u, 0.1, 1)
if os.fork() == 0:
    code = 1
    try:
        f(u, 0.1, 1)
    except RuntimeError as error:
        code = 0 if "forked" in str(error) and "spawn" in str(error) else 2
    mutad.release_memory()
    del u
    sys.exit(code)
_, status = os.wait()
print(os.waitstatus_to_exitcode(status), f(u, 0.1, 1) > 0)
kept = [u, f.vjp(u, 0.1, 1)[1], mutad.device_array(waves(3))]  # which are there when the interpreter ends
"""


def test_a_forked_process_says_that_it_has_no_device_and_processes_end() -> None:
    path = os.pathsep.join(p for p in sys.path if p)
    run = subprocess.run(
        [sys.executable, "-c", PROCESS],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.stdout, run.stderr, run.returncode) == ("0 True\n", "", 0)


def test_nobody_waits_for_a_device_without_need(emulation: EmulatedDriver) -> None:
    u = there()
    g = mutad.compile(lambda u: u * u + 1.0, grad=True, opt=1)
    g(u)
    calls: list[str] = []
    emulation.log = lambda name, _: calls.append(name)
    try:
        g(u)
    finally:
        emulation.log = None
    assert "cuLaunchKernel" in calls
    assert "cuStreamSynchronize" not in calls
    assert cuda.chosen is not None


def test_availability_is_said_quickly_and_plainly() -> None:
    started = time.perf_counter()
    assert mutad.cuda.is_available()
    assert time.perf_counter() - started < 1
    assert cuda.missing() == "" or "driver" in cuda.missing() or "pip install" in cuda.missing()
