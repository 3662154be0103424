"""Leaving loops: `break`, `continue`, early `return`, the `else` of a loop."""

import pytest
from python_oracle import Case, Programs

programs = Programs()
on = programs.on


@on("f64[n]", n="7 1 0")
def searches(x):
    for i in range(x.size):
        if x[i] < 0:
            return i
    return -1


@on("f64[7] v", v="0.5 -9.0 9.0")
def stops_at_a_value(x, limit):
    for i in range(x.size):
        if x[i] > limit:
            break
        x[i] = -1.0


@on("f64[7] v", v="0.5 -9.0 9.0")
def skips_values(x, limit):
    for i in range(x.size):
        if x[i] > limit:
            continue
        x[i] = -1.0


@on("n", n="0 1 5 10 11")
def the_else_of_a_for_runs_unless_left(n):
    last = -1
    for i in range(n):
        if i == 10:
            last = i
            break
    else:
        last = 2 * n
    return last, n


@on("n", n="0 1 5 12")
def the_else_of_a_while_runs_unless_left(n):
    i = 0
    while i < n:
        i += 1
        if i > 7:
            break
    else:
        i = -i
    return i


@on("n", n="0 1 5")
def the_else_of_a_loop_that_nothing_leaves_runs(n):
    s = 0
    for i in range(n):
        s += i
    else:
        s -= 100
    return s


@on("n m", n="0 3 7", m="0 3 7")
def a_break_leaves_the_inner_loop_only(n, m):
    s = 0
    for i in range(n):
        for j in range(m):
            if j > i:
                break
            s += 10 * i + j
        s *= 2
    return s


@on("n", n="0 3 20")
def the_else_of_the_inner_loop_continues_the_outer(n):
    found = -1
    for i in range(2, n):
        for j in range(2, i):
            if i % j == 0:
                break
        else:
            continue
        found = i
        break
    return found


@on("n m", n="0 3 7", m="0 3 7")
def returns_from_two_loops(n, m):
    for i in range(n):
        for j in range(m):
            if i * j == 6:
                return i, j
    return -1, -1


@on("n", n="1 2 3 27")
def loops_for_ever_until_a_break(n):
    steps = 0
    while True:
        if n == 1:
            break
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@on("n", n="0 1 2 5 9")
def both_branches_may_leave(n):
    s = 0
    for i in range(n):
        if i % 2 == 0:
            if i == 4:
                break
            s += 1
        else:
            if i == 3:
                continue
            s += 10
        s *= 2
    return s


@on("v", v="1.0 2.0 3.0 9.0")
def leaves_a_loop_over_a_tuple(v):
    s = 0.0
    for k in (1.0, 2.0, 3.0):
        if k > v:
            break
        if k == 2.0:
            continue
        s += k * v
    else:
        s += 100.0
    return s


@on("v", v="1.0 2.0 3.0 9.0")
def returns_from_a_loop_over_a_tuple(v):
    for k in (1.0, 2.0, 3.0):
        if k == v:
            return k * 10.0
    return v


@on("f64[5] n", n="-1 2 9")
def a_name_bound_before_the_break_is_there_after_it(x, n):
    for i in range(x.size):
        value = x[i] * 2.0
        if i > n:
            break
    return value, i


@on("f64[n] v", n="0 3 7", v="9.0 0.5")
def a_name_bound_on_one_path_may_be_unbound(x, limit):
    for v in x:
        if v > limit:
            found = v
    return found


@on("f64[7] v", v="9.0 0.5")
def a_name_keeps_what_an_earlier_iteration_gave_it(x, limit):
    total = x[0]
    for i in range(x.size):
        if x[i] > limit:
            latest = x[i]
        if i > 5 and limit < 1.0:
            total += latest
    return total


@on("f64[5] n", n="3 0")
def a_name_keeps_what_an_earlier_iteration_gave_it_through_inner_loops(x, n):
    total = x[0]
    for i in range(3):
        for j in range(n - i):
            latest = x[j] + i
        for j in range(4):
            if j == 1 + i:
                other = x[j]
        total += latest * other
    return total


@on("f64[7] n", n="0 3")
def a_raise_after_a_continue(x, n):
    for i in range(x.size):
        if i <= n:
            continue
        x[i] = -1.0
        if i > n + 1:
            raise ValueError("enough")


@on("f64[6]")
def inlined_functions_return_from_their_loops(x):
    s = 0
    for v in (0.1, 0.5, 9.0):
        s = 10 * s + first_above(x, v)
    return s


def first_above(x, limit):
    for i in range(x.size):
        if x[i] > limit:
            return i
    return -1


@on("f64[7]")
def statements_after_an_exit_are_dead(x):
    for i in range(x.size):
        if x[i] > 0:
            x[i] = 0.0
            continue
            x[i] = 5.0
        break
        x[i] = 7.0
    return x.sum()


@on("f64[n]", n="0 1 6")
def insertion_sort(x):
    for i in range(1, x.size):
        v = x[i]
        j = i - 1
        while True:
            if j < 0 or x[j] <= v:
                break
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = v


@on("f64[8] v", v="0.3 -9.0 9.0")
def bisection(x, v):
    low, high = 0, x.size
    while low < high:
        middle = (low + high) // 2
        if x[middle] == v:
            return middle
        if x[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low


# Code that constants leave out: it binds names all the same.

VERSION = 1


@on("f64[n]", n="0 1 4")
def a_return_that_is_left_out(x):
    for i in range(x.size):
        if VERSION == 0:
            return x[0] * 2.0
        x[i] = 0.0
    return 1.0 * x.size


@on("f64[n]", n="1 2 3 4")
def a_loop_that_has_no_iterations_where_the_extent_is_one(x):
    for _ in range(3):
        for i in range(1, x.size - 1):
            if x[i] > 0.0:
                return x[0]
            x[i] = 2.0
    return x[-1]


@on("f64[n]", n="0 1 4")
def an_array_that_no_iteration_comes_to_bind(x):
    for i in range(x.size):
        if i > 0:
            x[:] = 0.5 * y  # noqa: F821
        if VERSION == 1:
            return x.size
        y = 2.0 * x
    return -1


@on("f64[n]", n="0 1 4")
def a_scalar_that_no_iteration_comes_to_bind(x):
    total = 0.0
    for i in range(x.size):
        if i > 0:
            total += last  # noqa: F821
        if VERSION == 1:
            continue
        last = x[i]
    return total


@on("n", n="0 1")
def a_name_that_a_constant_branch_would_bind(n):
    if VERSION == 0:
        scale = 2
    if n > 0:
        n += scale
    return n


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()
