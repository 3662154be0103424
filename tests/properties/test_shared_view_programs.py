"""Generated loops in threads whose iterations read the same elements: gradients are those of one thread.

`MUTAD_SHARED_VIEWS=500` looks at as many programs, `MUTAD_SHARED_VIEWS=500:600` at those of these seeds.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from generated import seeds_of
from shared_view_programs import shared_view_program

import mutad
from mutad import Const, Duplicated
from mutad.compiler.codegen import parallel_regions
from mutad.runtime import thread_pool

IN_CI = "0:6"


@pytest.fixture(autouse=True)
def tiny_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(parallel_regions, "GRAIN", 5.0)
    thread_pool.address()
    yield
    thread_pool.limit(thread_pool.get_num_threads())


@pytest.mark.parametrize("seed", seeds_of("MUTAD_SHARED_VIEWS", IN_CI))
def test_threads_add_up_what_they_share(seed: int) -> None:
    program = shared_view_program(seed)
    alone, in_threads = (
        mutad.compile(program.function(), grad=True, parallel=threads, cache=False, opt=1)
        for threads in (False, True)
    )

    def gradients(function: Any, n: int) -> list[Any]:
        thread_pool.limit(n)
        u, x, k, y = program.arguments(2000)
        shadows = [np.full_like(a, 0.3) for a in (u, x, y)]
        first, second, third = (Duplicated(a, s) for a, s in zip((u, x, y), shadows, strict=True))
        value, _ = function.pullback(first, second, Const(k), third, cotangent=0.7)
        return [value, u, x, y, *shadows]

    want, bits = gradients(alone, 1), gradients(in_threads, 1)
    for found in (bits, *(gradients(in_threads, n) for n in (4, 4, 4))):
        for one, right, same in zip(found, want, bits, strict=True):
            np.testing.assert_allclose(one, right, rtol=1e-10, atol=1e-12)
            np.testing.assert_array_equal(one, same)
