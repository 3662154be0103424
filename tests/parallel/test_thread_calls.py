"""Threads: exceptions, callers at once, forks, interrupts, the end of the process, settings, errors."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mutad
from mutad import CompileError, prange
from mutad.compiler.codegen import parallel_regions
from mutad.runtime import thread_pool


@pytest.fixture(autouse=True)
def tiny_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(parallel_regions, "GRAIN", 5.0)
    thread_pool.address()
    thread_pool.limit(4)
    yield
    thread_pool.limit(thread_pool.get_num_threads())


def looked_up(x, k, y):
    for i in prange(k.shape[0]):
        if x[i] > 2.0:
            raise ValueError("too large")
        y[i] = np.sin(x[k[i]])


def large_sum(x, y):
    y[:] = np.exp(np.sin(x)) + y
    return np.sum(x * y)


def test_the_exception_is_that_of_the_least_iteration() -> None:
    f = mutad.compile(looked_up, parallel=True, cache=False, opt=1)
    n = 400
    x = np.random.default_rng(0).random(n)
    for bad in ([37, 300], [300, 301], [0, 399], [399]):
        k = np.arange(n)
        k[bad] = 1000 + np.array(bad)
        for _ in range(5):
            with pytest.raises(
                IndexError, match=f"index {1000 + bad[0]} is out of bounds"
            ) as raised:
                f(x, k, np.zeros(n))
            last = raised.traceback[-1]
            assert last.lineno == looked_up.__code__.co_firstlineno + 3
    x[100] = 3.0
    for _ in range(5):
        with pytest.raises(ValueError, match="too large"):
            f(x, np.where(np.arange(n) > 100, 5000, np.arange(n)), np.zeros(n))
    np.testing.assert_allclose(mutad.compile(large_sum)(x, np.ones(n)), large_sum(x, np.ones(n)))


def test_eight_callers_at_once_and_forks_meanwhile() -> None:
    f = mutad.compile(large_sum, parallel=True, cache=False, opt=1)
    x = np.random.default_rng(0).random(5000)
    want, wrong = f(x, np.zeros(5000)), []

    def caller() -> None:
        for _ in range(50):
            if f(x, np.zeros(5000)) != want:
                wrong.append(1)

    callers = [threading.Thread(target=caller) for _ in range(8)]
    for one in callers:
        one.start()
    children = [child_of(f, x, want) for _ in range(3)]
    for one in callers:
        one.join()
    assert not wrong
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]


def child_of(f: Any, x: Any, want: float) -> int:
    """A child process, which has no threads and makes its own."""
    child = os.fork()
    if child == 0:
        good = f(x, np.zeros(5000)) == want
        os._exit(0 if good and len(os.listdir("/proc/self/task")) > 1 else 3)
    return child


PROGRAM = """
import os, signal, threading
import numpy as np
from mutad import compile, prange, set_num_threads
from mutad.compiler.codegen import parallel_regions
parallel_regions.GRAIN = 5.0

@compile(parallel=True, cache=False, opt=1)
def slow(x, n):
    s = 0.0
    for r in prange(n):
        for i in range(x.shape[0]):
            s += np.sin(x[i] + r)
    return s

x = np.ones(1000)
slow(x, 10)
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    slow(x, 10**9)
except KeyboardInterrupt:
    print("interrupted")
threading.Thread(target=slow, args=(x, 10**9), daemon=True).start()
print("left")
"""


def test_interrupts_and_the_end_of_the_process(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "interrupted\nleft\n"), done.stderr


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    most = thread_pool.available()
    assert mutad.get_num_threads() == most
    monkeypatch.setenv("MUTAD_NUM_THREADS", "1")
    assert mutad.get_num_threads() == 1
    monkeypatch.setenv("MUTAD_NUM_THREADS", "none")
    with pytest.raises(ValueError, match="MUTAD_NUM_THREADS='none': use a number"):
        mutad.get_num_threads()
    monkeypatch.setattr(thread_pool, "_asked", None)
    for wrong, exception in ((0, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(exception, match="set_num_threads"):
            mutad.set_num_threads(wrong)  # pyright: ignore[reportArgumentType]
    mutad.set_num_threads(10**6)
    assert mutad.get_num_threads() == most
    with pytest.raises(TypeError, match="parallel="):
        mutad.compile(parallel=1)


def running_total(x, y):
    s = 0.0
    for i in prange(x.shape[0]):
        s += x[i]
        y[i] = s


def in_a_branch_and_after(x, y):
    t = 0.5
    for i in prange(x.shape[0]):
        if x[i] > 2.0:
            t = x[i]
        y[i] = 1.0
    y[0] = t


def scaled_in_a_branch(x, y):
    s = 0.0
    for i in prange(x.shape[0]):
        if x[i] > 0.5:
            for _ in range(2):
                s = s * 0.5
        s += x[i]
    y[0] = s


def prefix(x, y):
    for i in prange(1, x.shape[0]):
        y[i] = y[i - 1] + x[i]


def one_place(x, y):
    for i in prange(x.shape[0]):
        y[0] = x[i]


def left_early(x, y):
    for i in prange(x.shape[0]):
        if x[i] > 0.5:
            break
        y[i] = x[i]


def overwritten_ahead(x, y):
    for i in prange(x.shape[0] - 2):
        y[i] = y[i + 2] * 2.0


@pytest.mark.parametrize(
    ("function", "says", "line"),
    [
        (running_total, "`s` goes from one iteration of `prange` to the next", 2),
        (in_a_branch_and_after, "`t` goes from one iteration of `prange` to the next", 3),
        (scaled_in_a_branch, "`s` goes from one iteration of `prange` to the next", 5),
        (prefix, "another iteration of `prange` (stores|reads)", 2),
        (one_place, "another iteration of `prange` stores", 2),
        (left_early, "none of them can end the loop", 1),
        (overwritten_ahead, "another iteration of `prange` reads", 2),
    ],
)
def test_claims_that_do_not_hold_are_refused(function: Any, says: str, line: int) -> None:
    mutad.compile(function, cache=False, opt=1)(
        np.ones(9), np.ones(9)
    )  # what it made serves not here
    with pytest.raises(CompileError, match=says) as raised:
        mutad.compile(function, parallel=True, cache=False)(np.ones(9), np.ones(9))
    assert raised.value.span is not None
    first = function.__code__.co_firstlineno
    assert first < raised.value.span.line <= first + line + 1
    assert "use range" in str(raised.value)
    alone = mutad.compile(function, cache=False, opt=1)
    x, got, want = np.linspace(0.0, 1.0, 9), np.ones(9), np.ones(9)
    alone(x, got)
    function(x, want)
    np.testing.assert_array_equal(got, want)
