"""Recursive functions and return arrays: new ones, their arguments, one or the other."""

import numpy as np
import pytest
from python_oracle import Case, Programs
from recursive_algorithms import fourier_transform, merge_sort

from mutad import compile

programs = Programs()
on = programs.on


on("f64[n] f64[n]", n="1 2 8 16", ulp=64, terms=lambda re, im: np.abs(re) + np.abs(im))(
    fourier_transform
)
on("f64[n]", n="0 1 2 13 32")(merge_sort)


@on("f64[n]", n="1 4 16")
def haar_wavelets(x):
    if x.size < 2:
        return x.copy()
    low = haar_wavelets((x[::2] + x[1::2]) * 0.5)
    return np.concatenate([low, (x[::2] - x[1::2]) * 0.5])


@on(
    "f64[n,n] f64[n,n]",
    n="1 4 8",
    terms=lambda a, b: np.full(400, np.abs(a).sum() * np.abs(b).max()),
)
def product_of_quarters(a, b):
    n = a.shape[0]
    if n <= 2:
        return a @ b
    h = n // 2
    c = np.empty((n, n))
    for i in range(0, n, h):
        for j in range(0, n, h):
            one = product_of_quarters(a[i : i + h, :h], b[:h, j : j + h])
            c[i : i + h, j : j + h] = one + product_of_quarters(a[i : i + h, h:], b[h:, j : j + h])
    return c


def relax(u, f, h):
    for i in range(1, u.size - 1):
        u[i] = 0.5 * (u[i - 1] + u[i + 1] + h * h * f[i])


def v_cycle(f, h):
    u = np.zeros(f.size)
    relax(u, f, h)
    if f.size <= 3:
        return u
    r = np.zeros(f.size)
    r[1:-1] = f[1:-1] + (u[:-2] - 2 * u[1:-1] + u[2:]) / (h * h)
    e = v_cycle(r[::2].copy(), 2 * h)
    for i in range(1, e.size):
        u[2 * i] += e[i]
        u[2 * i - 1] += 0.5 * (e[i - 1] + e[i])
    relax(u, f, h)
    return u


@on("f64[17]")
def multigrid(f):
    return v_cycle(f, 1.0 / 16.0)


@on("f64[4] n b", n="0 2", b="True False")
def the_argument_or_a_new_array(x, i, new):
    if i == 0:
        return x * 2.0 if new else x
    return the_argument_or_a_new_array(x, i - 1, new)


@on("f64[3] f64[3] n", n="0 1")
def one_of_two_arguments(x, y, i):
    def either(a, b, i):
        if i == 0:
            return a if a[0] > b[0] else b
        return either(b, a, i - 1)

    z = either(x, y, i)
    z[0] = 7.0
    return z


@on("f64[3] n b", n="2", b="True False")
def what_is_stored_to_a_result(x, i, new):
    y = the_argument_or_a_new_array(x, i, new)
    y[0] = 100.0
    return x.sum() + y.sum()


@on("f64[3] n", n="0 1 3")
def rebound_in_a_loop_or_not(x, n):
    def go(u, i):
        if i > 0:
            return go(u, i - 1)
        for _ in range(n):
            u = u * 2.0
        return u

    u = go(x, 2)
    u[0] = 9.0
    return x.sum() + 2.0 * u.sum()


@on("f64[1] n", n="0 1 5")
def stores_to_what_it_receives(x, n):
    if n == 0:
        return np.zeros(3)
    y = stores_to_what_it_receives(x, n - 1)
    y[n % 3] += x[0] * n
    y *= 2
    return y


@on("f64[2,3] n", n="0 3")
def rank_two(a, i):
    return a.T.copy() if i == 0 else rank_two(a, i - 1) + 1.0


@on("f64[5] n", n="0 3")
def of_other_dtypes(x, i):
    if i == 0:
        return np.arange(3), x > 0.2, x.astype(np.float32)
    n, b, f = of_other_dtypes(x, i - 1)
    return n + 1, b ^ (x > 0.5), f * np.float32(0.5)


@on("f64[6] n", n="4")
def in_loops_and_branches(x, n):
    def scaled(v, i):
        return v * 0.5 if i == 0 else scaled(v + 1.0, i - 1)

    total = np.zeros(6)
    for i in range(n):
        if i % 2:
            total += scaled(x, i)
        else:
            total[:3] -= scaled(total[3:], i)
    return total


@on("f64[4]", terms=lambda x: 1e3 * x)
def captured_arrays_and_returned_ones(x):
    seen = np.zeros(4)

    def go(v, i):
        seen[i] += v.sum()
        return v if i == 3 else go(np.concatenate([v[1:] * 2.0, seen[:1]]), i + 1)

    last = go(x, 0)
    return last, seen


@on("f64[n]", n="5 1")
def mutual(x):
    def evens(v):
        return v * 2.0 if v.size <= 1 else np.concatenate([v[:1], odds(v[1:])])

    def odds(v):
        return v * 3.0 if v.size <= 1 else np.concatenate([v[:1] + 1.0, evens(v[1:])])

    return evens(x)


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()


def test_an_argument_that_is_returned_is_the_very_array() -> None:
    returned = compile(the_argument_or_a_new_array)
    x = np.ones(3)
    assert returned(x, 2, False) is x
    assert not np.shares_memory(returned(x, 2, True), x)


def test_arrays_of_many_levels_are_freed() -> None:
    """Memory for the arrays of all activations would be gigabytes."""
    resource = pytest.importorskip("resource")

    @compile
    def total(x, n):
        def spread(v, k):
            return v * 0.5 if k == 0 else spread(v + 1.0, k - 1) + spread(v, k - 1)

        return spread(x, n).sum()

    x = np.ones(10_000)
    total(x, 3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    total(x, 12)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_arrays_are_freed_where_a_call_deep_down_raises() -> None:
    resource = pytest.importorskip("resource")

    @compile
    def falls(x, n):
        y = x * 2.0
        if n == 0:
            raise ValueError("at the end")
        return falls(y, n - 1) + y

    x = np.ones(20_000)
    for k in range(60):
        with pytest.raises(ValueError, match="at the end"):
            falls(x, 50)
        if k == 5:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_too_deep_recursion_with_arrays_raises() -> None:
    @compile
    def deeper(x, n):
        return x * 1.0 if n == 0 else deeper(x + 1.0, n - 1)

    assert deeper(np.ones(1000), 50)[0] == 51.0
    with pytest.raises(RecursionError):
        deeper(np.ones(1000), 10**6)
    assert deeper(np.ones(1000), 50)[0] == 51.0
