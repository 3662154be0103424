"""Loops, branches, names, tuples, calls, printing.

PYTEST_DONT_REWRITE: an `assert` of a program under test says what Python says.
"""

import math

import numpy as np
import pytest
from python_oracle import Case, Programs, compiled

programs = Programs()
on = programs.on


# Loops over ranges.


@on("D[n]", D="f64 f32", n="7 2 0")
@on("f64[7]L", L="R S O")
@on("f64[1]")
def scan(x):
    for i in range(1, x.size):
        x[i] += 0.5 * x[i - 1]


@on("f64[7]", "f64[2]", "f64[7]R")
def backwards(x):
    for i in range(x.size - 2, -1, -1):
        x[i] -= 0.5 * x[i + 1]


@on("A B S", A="0 3 -4", B="9 -7 0", S="1 2 5 -1 -3")
def every_range(a, b, s):
    total = 0
    trips = 0
    for i in range(a, b, s):
        total += i * i - 3 * i
        trips += 1
    return total, trips


@on("0", "5", "1")
def the_loop_variable_stays(n):
    i = -1
    for i in range(n):
        pass
    return i


@on("6", "0")
def the_loop_variable_may_be_changed(n):
    s = 0
    for i in range(n):
        s += i
        i = 2 * i
        s += i
    return s


@on("7", "1", "0")
def the_range_is_fixed_at_the_start(n):
    trips = 0
    for i in range(n):
        n = n - 1 + 0 * i
        trips += 1
    return trips, n


@on("0 0 0", "1 5 0")
def step_zero_raises(a, b, s):
    k = 0
    for i in range(a, b, s):
        k += i
    return k


@on("f64[4,5]L", L="C F R S")
@on("f32[4,5]", "i64[4,5]", "f64[1,5]", "f64[0,5]", "f64[4,0]")
def nest(a):
    s = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] += i - 2 * j
            s += i * j
    return s


@on("f64[5,5]", "f64[5,5]F", "f64[1,1]")
def triangles(a):
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[j, i]
        for j in range(i + 1, n):
            a[i, j] *= 0.5 * a[j, i]


@on("f64[3,4] f64[4,2]", "f32[3,4]F f32[4,2]R", "i64[3,4] i64[4,2]")
def matrix_product_by_loops(a, b):
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


@on("f64[4,4]:pos")
def gaussian_elimination(a):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]


@on("f64[8] 3", "f64[8] 0", "f64[8]R 4")
def sweeps(u, steps):
    for _ in range(steps):
        for i in range(1, u.size - 1):
            u[i] = 0.5 * u[i] + 0.25 * (u[i - 1] + u[i + 1])


@on("f64[8] 3", "f64[2] 3", "f64[8] 0")
def sweeps_of_slices(u, steps):
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])


@on("f64[8] f64[8]#1 N", N="0 1 4 5")
def ping_pong(u, v, steps):
    for _ in range(steps):
        for i in range(1, u.size - 1):
            v[i] = u[i - 1] - u[i + 1]
        u, v = v, u
    return u[1], v[2]


@on("f64[6] f64[6]#1 f64[6]#2 N", N="0 1 2 3 4")
def rotation_of_three(a, b, c, steps):
    for k in range(steps):
        a[k] += b[0]
        a, b, c = b, c, a
    return a[0] - b[0], c[0]


@on("f64[5] 4", "f64[5] 1", "f64[0] 2")
def rebinding_in_a_loop(x, n):
    y = x
    for k in range(n):
        y = y * 0.5 + k
    return y


@on("f64[8] f64[8]#1 3")
def scratch_in_a_loop(x, w, n):
    total = 0.0
    for k in range(n):
        tmp = x * w[k]
        tmp[0] = 1
        total += tmp.max()
    return total


# Loops over arrays.


@on("D[n]", D="f64 f32 i64", n="7 0")
@on("f64[7]L", L="R S")
def over_an_array(x):
    biggest = x[:1].sum() * 0
    for v in x:
        if v > biggest:
            biggest = v
    return biggest


@on("f64[3,4]L", L="C F R")
@on("f64[0,4]")
def rows_of_an_array_are_views(a):
    for row in a:
        row[0] = row[-1]
        row *= 2


@on("f64[7]", "f64[7]R", "i32[7]", "f64[0]")
def enumerated(x):
    for i, v in enumerate(x):
        x[-1 - i] = v + i


@on("f64[3,4]")
def enumerated_rows(a):
    for i, row in enumerate(a):
        row += i
        a[0] += row


@on("f64[6]")
def an_array_is_read_as_the_loop_goes(x):
    for i, v in enumerate(x):
        if i + 1 < x.size:
            x[i + 1] = v * 0.5


@on("f64[5] f64[5]#1", "f64[5] i32[5]", "f64[5] f64[3]")
def zipped(x, y):
    s = 0.0
    for v, w in zip(x, y):
        s = s + v * w
    return s


# While.


@on("V", V="1 6 27 0")
def collatz(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps, n


@on("2.0", "f64(2.0)", "100.0")
def newton(a):
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


@on("f64[9] 1.0", "f64[9] 100.0", "f64[0] 1.0")
def while_guarded(x, limit):
    i = 0
    s = 0.0
    while i < x.size and s < limit:
        s += abs(x[i])
        x[i] = s
        i += 1
    return i


@on("0.0 1.0 0.3", "0.0 0.0 0.3", "0.0 1.0 2.0")
def adaptive_steps(t, end, dt):
    u = 1.0
    trips = 0
    while t < end:
        dt = min(dt, end - t)
        u += dt * -u
        t += dt
        trips += 1
    return u, t, trips


@on("5", "0")
def while_changes_its_own_bound(n):
    i = 0
    while i < n:
        n -= 1
        i += 1
    return i, n


@on("f64[5] 3")
def while_inside_for(x, n):
    for i in range(n):
        k = 0
        while x[k] < 1.0 and k < 3:
            x[k] += 0.75
            k += 1
        x[4] += k * i


# Branches.


@on("V", V="-1 0 1 7 2.5 f64(-2)")
def ladder(v):
    if v < 0:
        r = -1
    elif v == 0:
        r = 0
    elif v < 5:
        r = 1
    else:
        r = 2
    return r


@on("f64[7]L", L="C R S")
@on("f32[7]", "i64[7]", "f64[0]")
def branches_in_a_loop(x):
    positive = 0
    for i in range(x.size):
        if x[i] > 0:
            positive += 1
            x[i] = x[i] * 2
        elif x[i] > -1:
            x[i] = 0
        else:
            x[i] -= 1
    return positive


@on("f64[4] f64[4]#1 V", V="True False 0 1")
def branch_chooses_an_array(x, y, flag):
    z = x if flag else y
    z[0] = 5
    return z[1]


@on("f64[4] f64[4]#1 V", V="True False")
def branch_rebinds_an_array(x, y, flag):
    z = x
    if flag:
        z = y
    z += 1
    z[:2] *= x[:2]


@on("f64[4] V", V="True False")
def branch_swaps(x, flag):
    y = x * 2
    if flag:
        x, y = y, x
    return x[0], y[0]


@on("V", V="True False")
def a_name_bound_on_both_branches(flag):
    if flag:
        a, b = 1, 2.5
    else:
        a, b = 3, 4.5
    return a + b


@on("f64[3] V", V="1 -1")
def returns_in_both_branches(x, k):
    if k > 0:
        return x[0]
    else:
        return x[1]


@on("f64[3] 1")
def an_empty_body(x, k):
    if k:
        pass
    for _ in range(3):
        ...


# Names, tuples, calls.


@on("f64[4]", "i64[4]")
def tuples(x):
    t = (x[0], 2, x)
    a, b, c = t
    (d, e), f = (a, b), t[0]
    return t[1], c[1], d + f, e, len(t), (a, (b, c))


@on("1 2", "1.5 f64(2)")
def swaps(a, b):
    a, b = b, a
    a, b = b + 1, a - 1
    c = d = a
    return a, b, c + d


@on("f64[3]")
def swaps_of_elements(x):
    x[0], x[1] = x[1], x[0]
    x[1], x[2] = x[2], 5


@on("f64[3,4]")
def shapes_are_tuples(a):
    n, m = a.shape
    return n * m, a.shape[0], a.shape[-1], a.shape == (3, 4), a.shape


def square(v):
    return v * v


def scale(x, by=2.0):
    x *= by


def two(v, *, extra=1):
    return v + extra, v - extra


SIDE = 3
TABLE = (1.0, 2.0, 4.0)


@on("2", "1.5", "f64(3)", "f64[3]", "i32[3]")
def calls(v):
    a, b = two(square(v))
    c, d = two(v, extra=2)
    return a, b, c, d


@on("f64[4]", "f32[4]")
def calls_that_mutate(x):
    scale(x)
    scale(x[1:], 0.5)
    scale(by=3.0, x=x[::2])


@on("f64[4]")
def calls_nest(x):
    return nested(nested(x)) + nested(x[:2])[0]


def nested(y):
    z = np.empty_like(y)
    inner(z, y)
    return z


def inner(z, y):
    for i in range(y.size):
        z[i] = 2 * y[i]


@on("f64[4]")
def module_names_are_constants(x):
    return x[SIDE] * TABLE[1] + math.pi + np.pi + len(TABLE)


def with_closure(k):
    @on("f64[4]")
    def captures(x):
        def add(v):
            return v + k

        return add(x)

    return captures


captures_a_number = with_closure(2.5)


@on("f64[4]")
def a_lambda(x):
    twice = lambda v: 2 * v  # noqa: E731
    return twice(x) - twice(1)


@on("f64[3] 2 3", "f64[3] 2")
def defaults(x, a, b=5):
    """A docstring is no statement."""
    y: float = x[0] * a
    assert b > 0
    return y + b


@on("f64[3]")
def returns_nothing(x):
    x[0] = 1
    return


@on("f64[3] V", V="2 -1")
def assertions(x, k):
    x[0] = 9
    assert k > 0, "k must be positive"
    x[1] = 9


@on("V", V="2 -1")
def raises(k):
    if k < 0:
        raise ValueError("k must not be negative")
    return k


# Printing.


@on("3 2.5", "-1 1e-20", "0 f64(0.1)", "True f32(0.1)", "i32(3) nan")
def prints(a, b):
    print("a is", a, "and b", b)
    print()
    print(a)
    print("done")


@on("f64[3]", "i64[3]", "f32[3]", "b1[3]")
def prints_in_a_loop(x):
    for i in range(x.size):
        print(i, x[i])


@on("2 0.5")
def prints_formatted(a, b):
    print(f"a={a} b={b}")


@on("f64[3] 5")
def prints_before_it_raises(x, i):
    print("before")
    x[0] = 1
    x[i] = 2
    print("after")


# A name that is not bound; a result of mixed types.


@on("f64[3] 2", "f64[3] 0")
def element_of_the_last_iteration(x, n):
    last = 0.0
    for i in range(n):
        last = float(x[i])
    return last


# Conditions of loops that raise wherever they run.


@on("f64[3]")
def condition_that_calls_none(x):
    k = 0
    while print(x[k])() and k < 3:
        k += 1
    return x[k]


@on("f64[3] 2", "f64[3] 0")
def condition_of_an_inner_loop(x, n):
    for i in range(n):
        x[i] += 1.0
        while None + x[0]:
            x[i] += 2.0
    return x.sum()


@on("f64[3]")
def condition_that_raises_in_a_try(x):
    best = None
    try:
        while best.value > 0.0:
            x[0] += 1.0
    except AttributeError:
        x[1] = 7.0
    return x.sum()


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()


def sum_into_python_float(x):
    s = 0.0
    for v in x:
        s += v
    return s


def int_that_becomes_float(x, n):
    s = 0
    for i in range(n):
        s += x[i]
    return s


@pytest.mark.parametrize("n", [0, 1, 5])
def test_an_accumulator_joins_at_the_loop(n: int) -> None:
    """With no iteration CPython returns the initial Python scalar; here the type is one, the value agrees."""

    x = np.linspace(-1, 1, 5)
    assert compiled(sum_into_python_float)(x[:n]) == sum_into_python_float(x[:n])
    assert compiled(int_that_becomes_float)(x, n) == int_that_becomes_float(x, n)
