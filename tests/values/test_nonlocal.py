"""Names of functions around that nested functions rebind: as in CPython, with gradients."""

import math

import pytest
from whole_programs import WholePrograms, agrees

programs = WholePrograms()
on = programs.on


@on()
def counts_calls(x):
    n = 0

    def count(v):
        nonlocal n
        n += 1
        return v * v

    s = 0.0
    for v in x:
        s += count(v)
    return s + n


@on()
def accumulates_under_a_condition(x):
    s = 0.0

    def add(v):
        nonlocal s
        s += v * v

    for v in x:
        if v > 0.5:
            add(v)
    return s


@on()
def counts_the_calls_of_a_callback(x):
    calls = 0

    def f(t):
        nonlocal calls
        calls += 1
        return t * t * x[0]

    def simpson(g, a, b):
        return (b - a) / 6 * (g(a) + 4 * g((a + b) / 2) + g(b))

    return simpson(f, x[1], x[2]) * calls


@on()
def rebinds_an_array(x):
    y = x

    def step():
        nonlocal y
        y = y * 2.0

    step()
    step()
    return (y * y).sum()


@on()
def rebinds_from_two_functions_down(x):
    s = 0.0

    def a(v):
        def b(w):
            nonlocal s
            s += w

        b(v)
        b(v * v)

    for v in x:
        a(v)
    return s


@on()
def each_call_makes_its_own_cell(x):
    def make():
        n = 0.0

        def inc(v):
            nonlocal n
            n += v * v
            return n

        return inc

    a, b = make(), make()
    s = 0.0
    for v in x:
        s += a(v) * 2.0
        if v > 0.5:
            s += b(v)
    return s + a(0.0) * b(1.0)


@on()
def keeps_the_best_array_so_far(x):
    best = x
    err = 1e9

    def offer(y, e):
        nonlocal best, err
        if e < err:
            best = y
            err = e

    for k in range(4):
        y = x * (k + 1.0)
        offer(y, abs(y.sum() - 4.0))
    return (best * best).sum() + err


@on()
def a_loop_test_that_counts(x):
    calls = 0
    v = x[0]

    def f(t):
        nonlocal calls
        calls += 1
        return t * t

    while f(v) < 20.0:
        v = v * 1.5
    return v + calls


@on()
def an_operand_of_and_that_counts(x):
    calls = 0

    def f(t):
        nonlocal calls
        calls += 1
        return t > 0.5

    s = 0.0
    for v in x:
        if v > 0.6 and f(v):
            s += v
    return s * calls


@on()
def counts_exceptions(x):
    fails = 0

    def root(v):
        nonlocal fails
        try:
            return math.sqrt(v - 1.0)
        except ValueError:
            fails += 1
            return v

    s = 0.0
    for v in x:
        s += root(v)
    return s + fails


@on()
def returns_early(x):
    best = 0.0

    def visit(v):
        nonlocal best
        if v < 0.5:
            return
        if v > best:
            best = v

    for v in x:
        visit(v)
    return best * best


@on()
def an_int_becomes_a_float(x):
    t = 0

    def add(v):
        nonlocal t
        t = t + v

    for v in x:
        add(v)
    return t * 2


@on()
def is_bound_by_the_inner_function(x):
    def setit():
        nonlocal s
        s = x[0] * 2.0

    if x.size < 0:
        s = 0.0
    setit()
    s += 1.0
    return s


@on()
def rebinds_a_parameter(x):
    def scale(y):
        def step():
            nonlocal y
            y = y * 2.0

        step()
        step()
        return y

    return scale(x).sum()


@on()
def is_called_by_comprehensions(x):
    n = 0

    def f(v):
        nonlocal n
        n += 1
        return v * n

    items = [f(v) for v in x]
    return items[0] * items[1] + items[2] + n + sum(f(v) for v in x)


@on()
def rebinds_a_list(x):
    found = []

    def reset():
        nonlocal found
        found = []

    def add(v):
        found.append(v)

    add(x[0])
    reset()
    add(x[1])
    add(x[2])
    return found[0] * len(found)


@on()
def remembers_the_item_before(x):
    prev = x[0]

    def diff(v):
        nonlocal prev
        d = v - prev
        prev = v
        return d * d

    return sum(diff(v) for v in x)


@on()
def counts_evaluations_of_an_integrator(x):
    evals = 0

    def f(t, y):
        nonlocal evals
        evals += 1
        return -y * t

    def rk4(f, y, t, h, n):
        for _ in range(n):
            k1 = f(t, y)
            k2 = f(t + h / 2, y + h / 2 * k1)
            k3 = f(t + h / 2, y + h / 2 * k2)
            k4 = f(t + h, y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            t += h
        return y

    y = rk4(f, x * x, 0.1, 0.01, 5)
    return y.sum() + evals


@on()
def swaps_two_arrays(x):
    u, v = x * 1.0, x * 2.0

    def sw():
        nonlocal u, v
        u, v = v, u

    for k in range(3):
        u[0] += v[1]
        sw()
    return (u * v).sum() + u[0]


@on()
def an_operand_of_or_that_counts(x):
    n = 0

    def f(v):
        nonlocal n
        n += 1
        return v > 0.5

    k = 0.0
    for v in x:
        if f(v) or f(v * 2.0):
            k += v
    return k + n


@on()
def is_bound_anew_in_each_iteration(x):
    s = 0.0
    for v in x:
        c = 0.0

        def add(w):
            nonlocal c
            c += w * v

        add(v)
        add(2.0)
        s += c
    return s


@on()
def is_called_by_one_arm(x):
    n = 0

    def f(v):
        nonlocal n
        n += 1
        return v

    s = f(x[0]) if x[1] > 1 else x[2]
    return s * n


@pytest.mark.parametrize(("function", "point"), programs.cases, ids=programs.names)
def test_as_in_cpython_and_differences(function, point):
    agrees(function, point)
