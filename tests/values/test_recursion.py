"""Functions that are recursive, alone or together: values, mutation, exceptions, depth."""

import contextlib
import math
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from python_oracle import Case, Programs

from mutad import compile

programs = Programs()
on = programs.on

OFFSET = 0.25


@on("n", n="0 1 20")
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@on("n m", n="0 1 2", m="0 1 3 7")
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@on("n", n="0 1 10 11")
def is_even(n):
    return n == 0 or is_odd(n - 1)


def is_odd(n):
    return n != 0 and is_even(n - 1)


@on("v n", v="1.5", n="0 1 13")
def power_by_squaring(x, n):
    return 1.0 if n == 0 else power_by_squaring(x * x, n // 2) * (x if n % 2 else 1.0)


@on("n m", n="12 17 1", m="18 5 0")
def greatest_common_divisor(a, b):
    return a if b == 0 else greatest_common_divisor(b, a % b)


@on("i64[9]:int")
def sorts_in_place(x):
    def sort(low, high):
        if low < high:
            pivot, at = x[high], low
            for j in range(low, high):
                if x[j] < pivot:
                    x[at], x[j] = x[j], x[at]
                    at += 1
            x[at], x[high] = x[high], x[at]
            sort(low, at - 1)
            sort(at + 1, high)

    sort(0, x.size - 1)


@on("f64[n]", n="0 1 5")
def returns_its_argument(x):
    return doubled(x, 0)


def doubled(x, i):
    if i == x.size:
        return x
    x[i] *= 2.0
    return doubled(x, i + 1)


@on("f64[5] n", n="0 3")
def returns_a_tuple(x, i):
    if i == 0:
        return x[0], 0
    s, n = returns_a_tuple(x, i - 1)
    return s + x[i], n + 1


@on("f64[4] n", n="0 2")
def python_or_numpy_scalars(x, i):
    return 0.0 if i == x.size else x[i] + python_or_numpy_scalars(x, i + 1)


@on("n", n="1 4")
def ints_or_floats(n):
    return 1 if n == 0 else 0.5 + ints_or_floats(n - 1)


@on("n", n="0 2 5")
def returns_nothing(n):
    if n > 0:
        returns_nothing(n - 1)


@on("f64[6] n", n="0 6")
def reads_what_is_around(x, n):
    k = x[0] + OFFSET
    scale = (2.0, k)

    def go(i):
        return 0.0 if i == n else x[i] * k + scale[1] * OFFSET + go(i + 1)

    k = k + 1.0
    first = go(0)
    k = 3.0
    return first, go(0)


@on("f64[4] n", n="3")
def in_loops_of_the_caller(x, n):
    s = 0.0
    for i in range(n):
        t = s * 0.5

        def go(j):
            return t if j == 0 else go(j - 1) + x[i]

        s += go(i)
    return s


@on("f64[3,4] f64[n]", n="5")
def arrays_of_other_ranks_and_layouts(a, x):
    return total(x), total(x[::2]), total(a[1]), total(a[:, 1])


def total(v):
    if v.size == 0:
        return 0.0
    return v[0] + total(v[1:])


@on("f64[5]")
def functions_are_handed_down(x):
    def twice(y):
        return 2 * y + x[1]

    return folded(twice, x[0], 3), folded(math.sin, 1.0, 4), folded(lambda y: y * y, 1.1, 2)


def folded(f, y, n):
    return y if n == 0 else folded(f, f(y), n - 1)


@on("n", n="3 -1 12")
def raises_from_within(n):
    if n < 0:
        raise ValueError(f"below {n}")
    if n == 3:
        return 0
    return raises_from_within(n - 2) + 1


@on("f64[4] n", n="0 -9 9")
def bad_subscripts_leave_arrays_as_python_does(x, i):
    x[i] += 1.0
    bad_subscripts_leave_arrays_as_python_does(x, i + 1)


@on("n", n="0 30")
def ints_stay_exact(n):
    return 1 if n == 0 else 3 * ints_stay_exact(n - 1)


@on("f64[8] n", n="0 3", terms=lambda x, n: x * 9.0**n)
def memory_of_each_activation(x, n):
    y = x * 2.0
    if n > 0:
        y += memory_of_each_activation(x, n - 1)
    return y.sum()


@on("n", n="0 1 7")
def mutual_recursion_of_local_functions(n):
    def up(k):
        return 0 if k == 0 else 1 + down(k - 1)

    def down(k):
        return 0 if k == 0 else 10 + up(k - 1)

    return up(n), down(n)


@on("n", n="0 3")
def recursion_within_recursion(n):
    def outer(k):
        def inner(j):
            return k if j == 0 else inner(j - 1) + 1

        return inner(k) if k == 0 else inner(k) + outer(k - 1)

    return outer(n)


@on("b1[4,5]")
def fills_a_region(mask):
    area = np.zeros((1,))

    def fill(i, j):
        if i < 0 or j < 0 or i >= 4 or j >= 5 or not mask[i, j]:
            return
        mask[i, j] = False
        area[0] += 1
        fill(i + 1, j)
        fill(i - 1, j)
        fill(i, j + 1)
        fill(i, j - 1)

    fill(1, 2)
    return area[0]


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()


@compile
def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)


def test_recursion_is_as_deep_as_python_allows() -> None:
    limit = sys.getrecursionlimit()
    assert depth(limit - 100) == limit - 100
    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        depth(limit)
    assert depth(5) == 5
    try:
        sys.setrecursionlimit(limit + 5000)
        assert depth(limit + 1000) == limit + 1000
    finally:
        sys.setrecursionlimit(limit)


def stores_around_a_call(x, n):
    for i in range(x.size):
        x[i] = 1.0 + i
        s = depth(n)
        if s > 0:
            x[i] = -x[i]


def test_a_store_before_a_call_that_raises_is_seen() -> None:
    for n, expected in ((5, [-1.0, -2.0]), (10**5, [1.0, 0.0])):
        x = np.zeros(2)
        with contextlib.suppress(RecursionError):
            compile(stores_around_a_call)(x, n)
        np.testing.assert_array_equal(x, expected)


def test_inlined_calls_count() -> None:
    assert compile(is_even.__wrapped__ if hasattr(is_even, "__wrapped__") else is_even)(200)
    with pytest.raises(RecursionError):
        compile(is_even)(sys.getrecursionlimit())


def test_recursion_that_the_native_stack_cannot_hold_raises() -> None:
    program = """
        import sys, threading
        from mutad import CompileError, compile

        @compile
        def depth(n, x):
            return 0 if n == 0 else 1 + depth(n - 1, x * 2.0) + int(x > 1e308)

        def refused(n):
            try:
                depth(n, 1.0)
            except RecursionError:
                return True
            return False

        sys.setrecursionlimit(10**9)
        assert refused(10**8)
        found = []
        for size in (1 << 16, 1 << 20, 0):
            threading.stack_size(size)
            thread = threading.Thread(target=lambda: found.append(refused(10**7)))
            thread.start()
            thread.join()
        assert found == [True] * 3, found
        assert not refused(10_000)
        print("survived")
    """
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "deep.py"
        path.write_text(textwrap.dedent(program))
        found = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert found.stdout == "survived\n", (found.returncode, found.stderr)


def test_threads_recurse_at_once() -> None:
    results = list[int]()
    threads = [threading.Thread(target=lambda: results.append(depth(800))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [800] * 8
