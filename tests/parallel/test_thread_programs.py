"""`parallel=True`: values are Python's, gradients those of one thread, and the bits of any number of threads.

Chunks are made tiny, so that small arrays have many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sweep_programs import sweep_program

import mutad
from mutad import Const, Duplicated, prange
from mutad.compiler.codegen import parallel_regions
from mutad.runtime import thread_pool

PROGRAMS: list[Any] = []
SIZE = 60
RUN = "call i32 @mutad_threads_run"


def regions(*, primal: int, gradient: int) -> Callable[[Any], Any]:
    """At least so many parallel regions are in the code of the program, and of its gradient."""

    def record(function: Any) -> Any:
        PROGRAMS.append(pytest.param(function, primal, gradient, id=function.__name__))
        return function

    return record


@pytest.fixture(autouse=True)
def tiny_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(parallel_regions, "GRAIN", 5.0)
    thread_pool.address()
    yield
    thread_pool.limit(thread_pool.get_num_threads())


@regions(primal=1, gradient=2)
def gathered(x, k, y):
    for i in prange(k.shape[0]):
        y[i] = np.sin(x[k[i]]) * x[i]


@regions(primal=1, gradient=2)
def scattered(x, k, y):
    for i in prange(k.shape[0]):
        y[k[i]] = np.exp(x[i]) * y[k[i]]


@regions(primal=1, gradient=1)
def histogram(x, k, y):
    for i in prange(k.shape[0]):
        y[k[i] % 7] += x[i] * x[i]


@regions(primal=1, gradient=3)
def temporaries(x, k, y):
    t = 0.0
    for i in prange(x.shape[0]):
        z = np.sin(x * x[i])
        z[0] = y[i]
        y[i] = z.sum()
        t += z[1] * y[i]
    return t


@regions(primal=1, gradient=2)
def triangle(x, k, y):
    s = 0.0
    for i in prange(x.shape[0]):
        for j in prange(i, x.shape[0]):
            s += x[i] * x[j] ** 2
        y[i] += x[i]
    return s


@regions(primal=1, gradient=2)
def counted(x, k, y):
    n = 0
    last = 0.0
    for i in prange(x.shape[0]):
        if x[i] > 0.5:
            n += 1
        last = x[i] * 2.0
        y[i] = last
    return n + last


@regions(primal=1, gradient=0)
def product(x, k, y):
    p = 1.0
    q = 0.0
    for i in prange(x.shape[0]):
        p *= 1.0 + 0.01 * x[i]
        q -= x[i]
        y[i] = x[i] / (1.0 + x[i])
    return p + q


@regions(primal=1, gradient=1)
def rows_for_all(x, k, y):
    """All iterations add to the same rows, a vector at a time."""
    s = np.zeros((3, 16))
    for b in prange(x.shape[0]):
        for i in range(3):
            for f in range(16):
                s[i, f] += x[b] * x[f]
    y[:48] += s.reshape(48)


@regions(primal=1, gradient=1)
def tiles_for_all(x, k, y):
    """The same with rows that could be in registers, if no other thread added to them."""
    s = np.zeros((6, 16))
    z = x[:32].reshape(2, 16)
    for b in prange(x.shape[0]):
        for i in range(6):
            for j in range(2):
                for f in range(16):
                    s[i, f] += x[b] * y[i] * z[j, f]
    y[:48] += s.reshape(96)[:48]


@regions(primal=1, gradient=2)
def proved(x, k, y):
    n = x.shape[0]
    for i in range(n):
        a = 0.0
        for j in range(n):
            d = x[i] - x[j]
            a += d / (1.0 + d * d)
        y[i] = a
    return y[0] * y[n - 1]


@regions(primal=3, gradient=4)
def softmax(x, k, y):
    m = x.reshape(-1, 5)
    e = np.exp(m - m.max(axis=1)[:, None])
    p = e / e.sum(axis=1)[:, None]
    y[:] = p.reshape(-1)
    return (p * m).sum()


@regions(primal=1, gradient=1)
def steps(x, k, y):
    for _ in range(4):
        for i in prange(1, x.shape[0] - 1):
            y[i] = x[i - 1] * x[i + 1] + y[i]
        x[:] = 0.9 * y
    return x.sum()


@regions(primal=1, gradient=1)
def swapped(x, k, y):
    for _ in range(3):
        for i in prange(1, x.shape[0] - 1):
            y[i] = x[i - 1] * x[i + 1] + x[i]
        x, y = y, x
    return (x * y).sum()


@regions(primal=1, gradient=1)
def matrices(x, k, y):
    a = x[:25].reshape(5, 5)
    for i in prange(5):
        y[5 * i : 5 * i + 5] = a @ (x[i] * a[i])
    return y.sum()


@regions(primal=1, gradient=1)
def inner_sums(x, k, y):
    """A variable that only the inner loop sets is each iteration's own, though it may have none."""
    a = x[:25].reshape(5, 5)
    for i in prange(5):
        for j in range(5):
            t = 0.0
            for m in range(5):
                t += a[i, m] * a[m, j]
            y[5 * i + j] = t + np.dot(a[i], a[j])
    return y.sum()


@regions(primal=1, gradient=2)
def in_a_branch(x, k, y):
    """What an iteration sets in a branch alone is its own, too, and what it does in an inner loop alone."""
    s = 0.0
    for _ in range(2):
        for i in prange(k.shape[0]):
            if x[i] > 0.4:
                t = 1.0
                for j in range(k[i] % 5):
                    t = t * x[j] + y[i]
                s += t
            for j in range(k[i] % 3):
                u = x[i] + 0.1
                while u < 2.0:
                    u = u * 1.5 + 0.1 * x[j]
                s += u * u
    return s


@regions(primal=1, gradient=1)
def sums_across_branches(x, k, y):
    """A sum goes from the iteration to a branch, from there to a loop, and back."""
    s, p = 0.0, 1.0
    for i in prange(k.shape[0]):
        s += x[i]
        if k[i] % 3 == 0:
            for j in range(k[i] % 4):
                s -= x[j] * y[i]
                p *= 1.0 + 0.01 * x[j]
        else:
            s += 0.5
        p *= 1.0 + 0.01 * y[i]
    return s * p


@regions(primal=2, gradient=1)
def sorted_rows(x, k, y):
    for i in prange(20):
        row = np.sort(x[i : i + 9] * y[i])
        y[i] = row[0] * row[-1] + np.median(x[i : i + 5])
    return (y * y).sum()


@regions(primal=1, gradient=4)
def stencil(x, k, y):
    for _ in range(3):
        x[1:-1] += 0.1 * x[1:-1] * (x[:-2] - 2.0 * x[1:-1] + x[2:]) + 0.1 * y[2:]


@regions(primal=1, gradient=4)
def stencil_of_a_grid(x, k, y):
    u, v = x.reshape(6, 10), y.reshape(6, 10)
    for _ in range(3):
        v[1:-1, 1:-1] = np.sin(u[:-2, 1:-1] + u[2:, 1:-1]) * u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = 0.5 * v[1:-1, 1:-1]
    return (u * v).sum()


@regions(primal=0, gradient=0)
def a_recurrence(x, k, y):
    for i in range(1, x.shape[0]):
        y[i] = 0.3 * y[i - 1] * y[i - 1] / (1.0 + y[i - 1]) + x[i]
    return y[-1]


def start() -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    return rng.random(SIZE), rng.permutation(SIZE), rng.random(SIZE)


def primal(function: Any) -> list[Any]:
    arguments = start()
    return [function(*arguments), *arguments]


def pulled_back(function: Any) -> list[Any]:
    x, k, y = start()
    dx, dy = np.cos(np.arange(SIZE)), np.sin(np.arange(SIZE) + 1.0)
    wanted = {} if function.__wrapped__(*start()) is None else {"cotangent": 0.7}
    result, _ = function.pullback(Duplicated(x, dx), Const(k), Duplicated(y, dy), **wanted)
    return [result, x, y, dx, dy]


def assert_all(same: Callable[..., Any], a: list[Any], b: list[Any], **how: Any) -> None:
    for left, right in zip(a, b, strict=True):
        if left is None:
            assert right is None
        else:
            same(left, right, **how)


@pytest.mark.parametrize(("function", "of_primal", "of_gradient"), PROGRAMS)
def test_any_number_of_threads(function: Any, of_primal: int, of_gradient: int) -> None:
    threads = mutad.compile(function, grad=True, parallel=True, cache=False, opt=1)
    alone = mutad.compile(function, grad=True, cache=False, opt=1)
    for run, want, least in (
        (primal, primal(function), of_primal),
        (pulled_back, pulled_back(alone), of_gradient),
    ):
        bits: list[Any] = []
        for n in (1, 2, 3, 4, 5, 5):
            thread_pool.limit(n)
            got = run(threads)
            bits = bits or got
            assert_all(np.testing.assert_allclose, got, want, rtol=1e-11, atol=1e-13)
            assert_all(np.testing.assert_array_equal, got, bits)
        assert threads.inspect("llvm").count(RUN) >= least
        if function is a_recurrence and run is primal:
            assert RUN not in threads.inspect("llvm")


def view_of_outside(u, k, y):
    older = u[1:, ::2].T
    for i in prange(k.shape[0]):
        y[i] = np.sin(older[k[i] % 5, k[i] % 3]) * older[0, 1]
    return y.sum()


def flattened_by_columns(u, k, y):
    flat = u.T.reshape(-1)
    for i in prange(k.shape[0]):
        y[i] = np.sin(flat[k[i]]) * u.T.reshape(-1)[0] * u[k[i] % 6, k[i] % 10]
    return y.sum()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("program", [view_of_outside, flattened_by_columns])
def test_sums_that_chunks_have_of_their_own(program: Any, order: Any) -> None:
    """They are seen through views that are older than the loop, and lie as the array does."""
    rng = np.random.default_rng(2)
    u, k = np.array(rng.random((6, 10)), order=order), rng.integers(0, 60, 4000)
    results: list[Any] = []
    for threads in (False, True):
        function = mutad.compile(program, grad=True, parallel=threads, cache=False, opt=1)
        for n in (1, 4, 4) if threads else (1,):
            thread_pool.limit(n)
            results += [function.grad(u, k, np.zeros(len(k)), wrt="u") for _ in range(9)]
    for found in results[1:]:
        np.testing.assert_allclose(found, results[0], rtol=1e-11)


@pytest.mark.parametrize("batch", [3, 8])
def test_variables_of_several_tangents(batch: int) -> None:
    """What the last iteration leaves, and sums: each number is a vector."""
    x, k, y = start()
    dx = np.cos(np.arange(batch * SIZE)).reshape(batch, SIZE)
    found: list[Any] = []
    for threads in (False, True):
        function = mutad.compile(counted, grad=True, parallel=threads, cache=False, opt=0)
        tangents = {"x": dx.copy(), "y": np.zeros((batch, SIZE))}
        found.append(function.jvp(x.copy(), k, y.copy(), tangents=tangents, batch=batch))
        found[-1] = [*found[-1], *tangents.values()]
        assert (RUN in function.inspect("llvm")) == threads
    assert_all(np.testing.assert_allclose, found[1], found[0], rtol=1e-13)


@pytest.mark.parametrize("seed", [1, 25, 40, 303])
def test_generated_sweeps(seed: int) -> None:
    """Loop nests that overwrite what they read; of 25 an operand is broadcast at run time."""
    program = sweep_program(seed)
    both = [
        mutad.compile(program.function(), grad=True, parallel=threads, cache=False, opt=1)
        for threads in (True, False)
    ]

    def gradients(function: Any, n: int) -> list[Any]:
        thread_pool.limit(n)
        arguments = program.arguments()
        shadows = [np.zeros_like(a) for a in arguments[:3]]
        pairs = [Duplicated(a, s) for a, s in zip(arguments, shadows, strict=False)]
        result, _ = function.pullback(*pairs, *map(Const, arguments[3:]), cotangent=1.0)
        return [result, *arguments[:3], *shadows]

    bits, want = gradients(both[0], 1), gradients(both[1], 1)
    assert_all(np.testing.assert_allclose, bits, want, rtol=1e-9, atol=1e-11)
    assert_all(np.testing.assert_array_equal, gradients(both[0], 3), bits)
    assert RUN in both[0].inspect("llvm")


def test_prange_is_range_in_python_and_without_the_option() -> None:
    assert list(prange(1, 7, 2)) == [1, 3, 5]
    assert prange.__module__ == "mutad"

    def carried(x):
        for i in prange(1, x.shape[0]):
            x[i] += x[i - 1]
        return x[-1]

    want = carried(np.ones(5))
    assert mutad.compile(carried, cache=False)(np.ones(5)) == want


def test_one_dimension_is_cut_where_the_first_is_short() -> None:
    def three_rows(a, b):
        b[:] = np.sqrt(a) + a[0]
        return a.max()

    f = mutad.compile(three_rows, parallel=True, cache=False, opt=1)
    a = np.random.default_rng(0).random((3, 2000))
    b, want = np.zeros_like(a), np.zeros_like(a)
    assert f(a, b) == three_rows(a, want)
    np.testing.assert_array_equal(b, want)
    for shape in ((0, 5), (5, 0), (1, 1), (1, 4097), (4097, 1)):
        a = np.ones(shape)
        b, want = np.zeros_like(a), np.zeros_like(a)
        if a.size:
            assert f(a, b) == three_rows(a, want)
            np.testing.assert_array_equal(b, want)


def test_strides_and_types() -> None:
    def scaled(a, b):
        b[::-1] = a * 2 + 1
        return a.sum(), a.min(), (a > 3).sum(), np.any(a > 6), np.all(a < 9)

    f = mutad.compile(scaled, parallel=True, cache=False, opt=1)
    for dtype in (np.int64, np.float32, np.uint8):
        whole = (np.arange(1200) % 8).astype(dtype).reshape(30, 40)
        for a in (whole, whole[::-2, ::3], whole.T) if dtype is np.int64 else (whole[:, 5],):
            b, want = np.zeros_like(a), np.zeros_like(a)
            assert f(a, b) == scaled(a, want)
            np.testing.assert_array_equal(b, want)
