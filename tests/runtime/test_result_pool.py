"""Memory of large arrays that calls return: it waits for the next call, and the arrays never notice."""

from __future__ import annotations

import ctypes
import os
import pickle
import resource
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name  # pyright: ignore[reportPrivateUsage]

import mutad
from mutad.runtime import memory, result_pool
from mutad.runtime.result_pool_text import POOLED_TO, SECONDS, SLOTS

N = 1 << 16
"""Half a megabyte of float64."""


def squares(x):
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
    return total


square = mutad.compile(squares, grad=True, cache=False, opt=1)


@pytest.fixture(scope="module", autouse=True)
def compiled_before() -> None:
    square.grad(np.ones(3))
    square.hvp(np.ones(3), direction=np.ones(3))


@pytest.fixture(autouse=True)
def pool() -> Iterator[result_pool.Pool]:
    found = result_pool.pool()
    assert found is not None
    mutad.release_memory()
    assert found.waiting() == 0
    yield found
    mutad.release_memory()


def address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


def gradient(n: int = N) -> np.ndarray:
    return square.grad(np.ones(n))


def product(n: int = N) -> np.ndarray:
    return square.hvp(np.ones(n), direction=np.ones(n))


@pytest.mark.parametrize("call", [gradient, product])
def test_the_memory_of_an_array_that_went_is_the_next_one_s(pool, call) -> None:
    first = call()
    assert first.flags.owndata
    assert first.base is None
    assert get_handler_name(first) == "mutad"
    assert address(first) % 64 == 0
    np.testing.assert_array_equal(first, np.full(N, 2.0))
    where = address(first)
    first[:] = np.nan
    del first
    assert pool.waiting() >= N * 8
    second = call()
    assert address(second) == where
    np.testing.assert_array_equal(second, np.full(N, 2.0))
    assert call().sum() == 2.0 * N
    assert second.sum() == 2.0 * N


def test_zeros_are_zeros_in_memory_that_had_numbers(pool) -> None:
    for make in (memory.zero_shadows, memory.zero_shadows):
        made = make([np.ones((300, 400))], [0], ())[0]
        assert not made.any()
        made[:] = 7.0
    assert pool.waiting() > 0


def test_small_arrays_and_those_that_numpy_makes_are_numpy_s(pool) -> None:
    assert get_handler_name(gradient(100)) == "default_allocator"
    gradient()
    assert get_handler_name(np.ones(N)) == "default_allocator"
    assert pool.get_handler() is pool.default


def test_a_block_has_at_most_twice_what_is_asked_for(pool) -> None:
    gradient(4 * N)
    kept = pool.waiting()
    small = gradient(N)
    assert pool.waiting() == kept
    half = gradient(2 * N)
    assert pool.waiting() == 0
    assert small.sum() + half.sum() == 6.0 * N


def test_sizes_that_grow_and_shrink_do_not_add_up(pool) -> None:
    sizes = [N + 4096 * (k % 50) for k in range(500)] + [
        3 * N - 1024 * (k % 90) for k in range(500)
    ]
    rng = np.random.default_rng(0)
    alive: list[np.ndarray] = []
    ones = np.ones(3 * N)
    for n in sizes:
        alive.append(square.grad(ones[:n]))
        if len(alive) > 4:
            alive.pop(int(rng.integers(len(alive))))
        assert pool.waiting() <= SLOTS * 2 * 3 * N * 8
    assert all((a == 2.0).all() for a in alive)
    assert len({address(a) for a in alive}) == len(alive)
    alive.clear()
    mutad.release_memory()
    assert pool.waiting() == 0


def test_what_waits_is_bounded(pool) -> None:
    n = POOLED_TO // 8
    arrays = [gradient(n) for _ in range(3)]
    bound = min(result_pool.limit(), SLOTS * POOLED_TO)
    arrays.clear()
    assert 0 < pool.waiting() <= bound
    mutad.release_memory()
    gradient(2 * n)
    assert pool.waiting() == 0, "huge ones go back at once"
    arrays = [gradient() for _ in range(2 * SLOTS)]
    arrays.clear()
    assert pool.waiting() == SLOTS * N * 8


def test_a_block_that_waited_for_seconds_goes_at_the_next_array(pool) -> None:
    gradient(4 * N)
    time.sleep(SECONDS + 0.1)
    gradient()
    assert pool.waiting() == N * 8


def test_arrays_outlive_the_release(pool) -> None:
    first, second = gradient(), gradient()
    del second
    mutad.release_memory()
    assert pool.waiting() == 0
    np.testing.assert_array_equal(first, np.full(N, 2.0))
    view = first[10:20]
    del first
    mutad.release_memory()
    np.testing.assert_array_equal(view, np.full(10, 2.0))


def test_arrays_are_resized_in_place_and_pickled(pool) -> None:
    for n in (N - 100, N // 2, 3 * N, 10):
        a = gradient()
        a.resize(n, refcheck=False)
        expected = np.where(np.arange(n) < N, 2.0, 0.0)
        np.testing.assert_array_equal(a, expected)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(a, protocol=5)), expected)
        np.testing.assert_array_equal(a.copy(), expected)


def test_arrays_go_in_other_threads(pool) -> None:
    def work() -> None:
        for k in range(50):
            mine = square.grad(np.full(N + k, 3.0))
            others.append(mine)
            if len(others) > 5:
                others.pop(0)
            good.append(bool((mine == 6.0).all()))

    others: list[np.ndarray] = []
    good: list[bool] = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(good) == 200
    assert all(good)
    others.clear()
    mutad.release_memory()
    assert pool.waiting() == 0


def test_tracemalloc_sees_the_arrays(pool) -> None:
    gradient()
    tracemalloc.start()
    try:
        x = np.ones(N)
        before = tracemalloc.get_traced_memory()[0]
        a = square.grad(x)
        assert N * 8 <= tracemalloc.get_traced_memory()[0] - before < N * 8 + 10_000
        del a
        assert tracemalloc.get_traced_memory()[0] - before < 10_000
    finally:
        tracemalloc.stop()


def test_a_program_s_own_handler_stays_in_charge(pool) -> None:
    before = pool.set_handler(pool.handler)  # any but NumPy's
    try:
        assert pool.get_handler() is pool.handler
        gradient()
        assert pool.get_handler() is pool.handler
    finally:
        pool.set_handler(before)
    assert pool.get_handler() is pool.default


def test_exhausted_memory_is_a_memory_error(pool) -> None:
    with pytest.raises(MemoryError):
        result_pool.zeros(1 << 58, np.uint8)
    assert pool.get_handler() is pool.default
    x = np.ones(1 << 24)
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_DATA, (1, 1))
        resource.setrlimit(resource.RLIMIT_AS, (1, 1))
        try:
            square.grad(x)
        except MemoryError:
            os._exit(0 if pool.get_handler() is pool.default else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_children_have_pools_of_their_own(pool) -> None:
    kept = gradient()
    gradient()
    child = os.fork()
    if child == 0:
        fine = (square.grad(np.full(N, 4.0)) == 8.0).all() and (kept == 2.0).all()
        mutad.release_memory()
        os._exit(0 if fine and pool.waiting() == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (kept == 2.0).all()
    assert pool.waiting() == N * 8


EXIT = """
import sys, threading
import numpy as np
import mutad

@mutad.compile(grad=True, opt=1)
def f(x):
    return (x * x).sum()

class Late:
    def __init__(self, a): self.a = a
    def __del__(self): assert self.a[7] == 2.0; self.a = None

kept = f.grad(np.ones(100_000))
late = Late(f.grad(np.ones(100_000)))
cycle = [late, f.grad(np.ones(100_000))]; cycle.append(cycle)
sys.kept = f.grad(np.ones(100_000))
threading.local().a = kept
sys.modules["late"] = Late(f.grad(np.ones(200_000)))
del f
print("end")
"""


def test_arrays_outlive_the_interpreter(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(EXIT)
    environment = os.environ | {"MUTAD_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):  # the second time with the pool's code from the disk
        done = subprocess.run(
            [sys.executable, str(script)],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def through_copies(x):
    a = x.copy()
    for i in range(a.size):
        a[i] = a[i] / 0.5  # what multiplies is computed in the loop that reads it
    total = 0.0
    for i in range(a.size):
        total += a[i] * x[i]
    return total


copies = mutad.compile(through_copies, cache=False, opt=1)


def blocks() -> tuple[list[int], int]:
    """The sizes of the blocks of scratch memory that wait, and how many bytes the pool says they are."""
    slots = result_pool.scratch_pool[: result_pool.SCRATCH_BLOCKS]
    sizes = [ctypes.c_int64.from_address(slot).value for slot in slots if slot]
    return sizes, result_pool.scratch_pool[result_pool.SCRATCH_SLOTS] or 0


def test_products_that_are_zero_take_no_memory_that_must_be_filled(pool) -> None:
    @mutad.compile(grad=True, cache=False, opt=1)
    def total(x):
        return x.sum()

    x, directions = np.ones(N), np.ones((8, N))
    kept = result_pool.empty((N, 8))
    del kept
    waiting = pool.waiting()
    assert waiting > 0
    product = total.hvp(x, direction=directions, batch=8)
    assert pool.waiting() == waiting
    assert product.shape == (8, N)
    assert not product.any()
    product += 1.0
    assert not total.hvp(x, direction=directions, batch=8).any()


def test_scratch_waits_for_the_next_call_and_is_counted(pool) -> None:
    for n in (N, 16 * N, N, 3 * N):
        assert copies(np.ones(n)) == 2.0 * n
    sizes, counted = blocks()
    assert sum(sizes) == counted > 17 * N * 8
    assert len(sizes) == 2, "three times N had what sixteen times had"
    mutad.release_memory()
    assert blocks() == ([], 0)


def test_no_more_scratch_waits_than_may(pool) -> None:
    limit = result_pool.SCRATCH_SLOTS + 1
    before, result_pool.scratch_pool[limit] = result_pool.scratch_pool[limit], 6 * N * 8
    try:
        for n in (N, 8 * N, 3 * N, N):
            assert copies(np.ones(n)) == 2.0 * n
            sizes, counted = blocks()
            assert sum(sizes) == counted <= 6 * N * 8
    finally:
        result_pool.scratch_pool[limit] = before
    assert len(blocks()[0]) == 2
    for n in range(2 * result_pool.SCRATCH_BLOCKS):
        copies(np.ones((n + 1) * N))
    sizes, counted = blocks()
    assert sum(sizes) == counted
    assert len(sizes) <= result_pool.SCRATCH_BLOCKS
