"""Compiled code from many threads, interrupted, forked, failing, again and again."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from python_oracle import compiled

from mutad import Const, Duplicated

THREADS = 8


def sweep(u, steps):
    for _ in range(steps):
        for i in range(1, u.size - 1):
            u[i] = 0.5 * u[i] * u[i + 1] + 0.5 * u[i - 1]
        u[1:-1] += 0.1 * u[:-2] * u[2:]
    return (u * u).sum()


def start(k):
    return np.sin(np.arange(20.0) * (k + 1))


def test_threads_do_not_disturb_each_other() -> None:
    """Scratch, tapes and shadows belong to a call."""
    f = compiled(sweep, grad=True)
    want = [f.value_and_grad(start(k), 7 + k % 3) for k in range(THREADS)]

    def work(k: int) -> None:
        for _ in range(200):
            value, gradient = f.value_and_grad(start(k), 7 + k % 3)
            assert value == want[k][0]
            assert np.array_equal(gradient, want[k][1])

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


def out_of_range(x, i):
    x[0] = i
    return x[i]


def test_exceptions_of_threads_are_their_own() -> None:
    f = compiled(out_of_range)

    def work(k: int) -> None:
        for _ in range(200):
            x = np.zeros(3)
            with pytest.raises(IndexError, match=f"index {k + 3} is out of bounds"):
                f(x, k + 3)
            assert f(x, 2) == 0.0

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


def long_loop(x, n):
    for i in range(n):
        for j in range(x.size):
            x[j] = 0.5 * x[j] + i % 3
    return x[0]


def endless(x):
    while x[0] < 1e300:
        x[1] = np.sin(x[1])
    return x[1]


def plain_call(x):
    compiled(long_loop)(x, 2**40)


def gradient_call(x):
    f = compiled(long_loop, grad=True)
    f.pullback(Duplicated(x, np.zeros(4)), Const(2**40), cotangent=1.0)


def call_of_while(x):
    compiled(endless)(x)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("call", [plain_call, gradient_call, call_of_while])
def test_an_interrupt_ends_a_long_call(call) -> None:
    """And the function can be called again."""
    compiled(endless)(np.full(4, 1e301))
    compiled(long_loop, grad=True).grad(np.zeros(4), 1)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    began = time.monotonic()
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call(np.zeros(4))
    finally:
        timer.cancel()
        timer.join()
    assert time.monotonic() - began < 20
    assert compiled(long_loop)(np.zeros(4), 2) == long_loop(np.zeros(4), 2)


def in_child(queue: multiprocessing.SimpleQueue) -> None:
    f = compiled(sweep, grad=True)
    with ThreadPoolExecutor(2) as pool:
        values = list(pool.map(lambda k: float(f.value_and_grad(start(k), 5)[0]), range(4)))
    queue.put(values)


def test_children_go_on_with_what_is_compiled() -> None:
    f = compiled(sweep, grad=True)
    want = [float(f.value_and_grad(start(k), 5)[0]) for k in range(4)]
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert queue.get() == want


def fresh(x, n):
    y = np.zeros(n)
    y[: x.size] = x
    return y, x[1:], y.sum()


def parts(x, n):
    y = np.full(n, x[0])
    return y[1:], y[2:], y[::-1]


def fails_late(x, n):
    y = np.ones(n)
    for i in range(n + 1):
        y[i] = x[0]
    return y


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_no_memory_is_lost() -> None:
    """In a process of its own: what others leave in the heap decides how it grows."""
    path = [os.path.dirname(__file__), *sys.path]
    code = f"import sys; sys.path[:0] = {path!r}; import test_under_load as t; t.lose_nothing()"
    subprocess.run([sys.executable, "-c", code], check=True)


def lose_nothing() -> None:
    """Results, scratch, tapes, raised exceptions: nothing is left when the call is over."""
    make, late, grad = compiled(fresh), compiled(fails_late), compiled(sweep, grad=True)
    views = compiled(parts, grad=True)
    x = np.ones(8)

    def calls() -> None:
        for _ in range(50):
            make(x, 100_000)
            views(x, 100_000)
            views.vjp(x, 100_000)[1]((np.ones(99_999), np.ones(99_998), None))
            with pytest.raises(IndexError):
                late(x, 100_000)
            grad.value_and_grad(np.ones(1000), 20)
            _, back = grad.vjp(np.ones(1000), 20)
            back(1.0)

    calls()
    gc.collect()
    tracemalloc.start()
    traced, before = tracemalloc.get_traced_memory()[0], resident()
    for _ in range(3):
        calls()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - traced
    tracemalloc.stop()
    assert grown < 100_000
    assert resident() - before < 30_000_000


def sums(x, y):
    a, b, c, d = x.copy(), y.copy(), x.copy(), y.copy()
    for i in range(1, x.size):
        a[i] += a[i - 1]
        c[i] *= c[i - 1]
    for i in range(1, y.size):
        b[i] += b[i - 1]
        d[i] *= d[i - 1]
    return a[-1] + b[-1] + c[-1] + d[-1]


def test_large_blocks_wait_for_the_next_call() -> None:
    """Smaller ones neither take their place nor are served with them."""
    f, small, large = compiled(sums), np.ones(1 << 16), np.ones(1 << 19)
    for _ in range(2):
        f(small, small)
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        f(small, large)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert faults < large.nbytes // resource.getpagesize() // 4
