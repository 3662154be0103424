"""Sums in arrays that iterations of `prange` share: no thread loses what another one has added.

Each run is repeated: threads that take turns at an element by chance have the right sum most of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mutad
from mutad import prange
from mutad.compiler.codegen import parallel_regions
from mutad.runtime import thread_pool

SIZE, TIMES = 203, 40


@pytest.fixture(autouse=True)
def tiny_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(parallel_regions, "GRAIN", 1.0)
    thread_pool.address()
    thread_pool.limit(3)
    yield
    thread_pool.limit(thread_pool.get_num_threads())


def two_places(x, k, y):
    h = np.zeros(4)
    for i in prange(x.shape[0]):
        h[k[i] % 4] = x[i] * y[i] + h[k[i] % 4]
        h[(k[i] + 1) % 4] = h[(k[i] + 1) % 4] - (x[i] - y[i])
    return (h * h).sum()


def two_arrays_at_once(x, k, y):
    h, g = np.zeros(4), np.zeros(4)
    for i in prange(x.shape[0]):
        h[k[i] % 4], g[k[i] % 4] = h[k[i] % 4] + x[i] * y[i], g[k[i] % 4] + x[i]
    return (h * g).sum()


def nests(x, k, y):
    h, g = np.zeros((4, 3)), np.zeros((3, 4))
    for i in prange(x.shape[0]):
        for j in range(3):
            h[k[i] % 4, j] += x[i] * y[j]
            g[j, k[i] % 4] += x[i] * x[j]
    return (h * g.T).sum()


def once_more_under_a_condition(x, k, y):
    h = np.zeros(4)
    for i in prange(x.shape[0]):
        h[k[i] % 4] += x[i] * y[i]
        if x[i] > 0.5:
            h[k[i] % 4] -= np.sin(x[i])
    return (h * h).sum()


def one_of_two_terms(x, k, y):
    h = np.zeros(4)
    for i in prange(x.shape[0]):
        h[k[i] % 4] = h[k[i] % 4] + x[i] * y[i] if x[i] > 0.5 else h[k[i] % 4] - y[i]
    return (h * h).sum()


def rows_by_way_of_temporaries(x, k, y):
    h = np.zeros((2, 3))
    for i in prange(x.shape[0]):
        h[k[i] % 2] += x[i] * y[i] * np.arange(1.0, h.shape[1] + 1)
    return (h * h).sum()


def read_by_many(x, k, y):
    """What an iteration stores to, no other one touches; but all read the first elements."""
    n = x.shape[0]
    u = np.concatenate((x, y))
    for i in prange(n):
        u[n + k[i]] = u[i % 3] * y[i]
    return (u * u).sum()


def pulled(function: Any, x: Any, k: Any, y: Any) -> list[Any]:
    value, bars = function.value_and_grad(x, k, y, wrt=("x", "y"))
    return [value, *bars]


def pushed(function: Any, x: Any, k: Any, y: Any) -> list[Any]:
    return list(function.jvp(x, k, y, tangents={"x": np.cos(x), "y": np.sin(y)}))


def twice(function: Any, x: Any, k: Any, y: Any) -> list[Any]:
    return list(function.hvp(x, k, y, wrt=("x", "y"), direction=(np.cos(x), np.sin(y))))


@pytest.mark.parametrize("run", [pulled, pushed, twice])
@pytest.mark.parametrize(
    "program",
    [
        two_places,
        two_arrays_at_once,
        nests,
        once_more_under_a_condition,
        one_of_two_terms,
        rows_by_way_of_temporaries,
        read_by_many,
    ],
)
def test_sums_are_the_same_each_time(program: Any, run: Any) -> None:
    rng = np.random.default_rng(1)
    x, k, y = rng.random(SIZE) + 0.1, rng.permutation(SIZE), rng.random(SIZE)
    want = run(mutad.compile(program, grad=True, cache=False, opt=0), x, k, y)
    threads = mutad.compile(program, grad=True, parallel=True, cache=False, opt=0)
    first = run(threads, x, k, y)
    for found, wanted in zip(first, want, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    for _ in range(TIMES):
        for again, found in zip(run(threads, x, k, y), first, strict=True):
            np.testing.assert_array_equal(again, found)
