"""Arrays that loops and branches rebind: swaps in nests and on branches, views that move."""

from typing import Any

import numpy as np
import pytest
from python_oracle import Case, Programs, compiled

import mutad

programs = Programs()
on = programs.on


# Swaps in nests.


@on("f64[6] f64[6] M N", M="0 1 2 3", N="0 1 2 3")
@on("f64[6]S f64[6] 3 1", "f32[6] f32[6]R 1 3")
def swapped_in_the_inner_loop(x, y, m, n):
    for _ in range(m):
        for _ in range(n):
            y[1:-1] = 0.5 * (x[:-2] + x[2:])
            x, y = y, x
    return y, x


@on("f64[6] f64[6] M N", M="0 1 2 3", N="0 1 2")
def swapped_in_both_loops(x, y, m, n):
    for _ in range(m):
        for j in range(n):
            y[:] = 0.5 * x + j
            x, y = y, x
        x[0] += 1.0
        x, y = y, x
    return x, y


@on("f64[4] f64[4] f64[4] M N", M="0 1 2 3", N="0 1 2 3 4")
def three_change_places_in_a_nest(a, b, c, m, n):
    for i in range(m):
        for _ in range(n):
            a[:] = 0.5 * b - 0.25 * c
            a, b, c = b, c, a
        b[i] += 1.0
    return a, c, b


@on("f64[4] f64[4] f64[4] N", N="0 1 2 3 4 5")
def three_change_places_on_a_branch(a, b, c, n):
    for i in range(n):
        a[:] = 0.5 * b - 0.25 * c
        if i % 3 == 0:
            a, b, c = b, c, a
        elif i % 3 == 1:
            b, c = c, b
    return b, a, c


@on("f64[6] f64[6] 3 4")
def swapped_three_loops_deep(x, y, m, n):
    for i in range(m):
        for j in range(n):
            for _ in range(i + j):
                y[1:] = 0.5 * x[:-1]
                x, y = y, x
            x[0] += 1.0
    return x, y


@on("f64[6] f64[6] T", T="0.5 0.1 0.01")
def swapped_in_while_loops(x, y, tolerance):
    error, k = 1.0, 0
    while error > tolerance:
        step = 0
        while step < k:
            y[:] = 0.5 * x
            x, y = y, x
            step += 1
        k += 1
        error = np.max(np.abs(x))
    return k, x, y


@on("f64[6] 3 N", N="0 1 2 3")
def a_local_buffer(x, m, n):
    y = np.zeros(x.size)
    for _ in range(m):
        for _ in range(n):
            y[:] = 0.5 * x
            x, y = y, x
    return x * 2.0, y * 2.0


@on("f64[3,6] f64[3,6] 3 N", N="0 1 2 3")
def half_steps(u, w, steps, n):
    for _ in range(steps):
        for i in range(n):
            w[i] = 0.5 * u[i] + 1.0
        u, w = w, u
        for j in range(n):
            w[:, j] = 0.25 * u[:, j]
        u, w = w, u
    return u, w


@on("f64[4] f64[5] M N", M="1 2", N="0 1 2")
def arrays_of_different_length_change_places(x, y, m, n):
    for _ in range(m):
        for _ in range(n):
            y[0] += x[-1]
            x, y = y, x
    return x, y, x.size


@on("f64[5]& f64[5]& 2 N", "f64[5]&[:-1] f64[5]&[1:] 3 N", N="0 1 2 3")
def arguments_that_share_memory(x, y, m, n):
    for _ in range(m):
        for _ in range(n):
            y[:] = 0.5 * x
            x, y = y, x
    return x, y


# Branches in loops.


@on("f64[6] f64[6] N", N="0 1 2 3 6")
def swapped_on_a_branch(u, v, n):
    for i in range(n):
        v[1:-1] = 0.5 * (u[:-2] + u[2:])
        if i % 3 != 1:
            u, v = v, u
    return u, v


@on("f64[6] N", N="0 1 2 5")
def the_best_so_far(x, n):
    trial, best_x, best = x.copy(), x * 2.0, np.inf
    for i in range(n):
        trial[:] = best_x * (0.7 if i != 2 else 1.5)
        error = np.max(np.abs(trial))
        if error < best:
            best = error
            best_x, trial = trial, best_x
    return best_x * 1.0, trial * 1.0


@on("f64[4] f64[4] N", N="0 1 2 3 4")
def another_name_for_one_of_two(x, y, n):
    t = x
    for i in range(n):
        if i == 2:
            t = y
        t[0] += 1.0
    return t


@on("f64[4] f64[4] N", N="0 1 2 3 4")
def another_name_for_what_is_swapped(u, v, n):
    t = u
    for i in range(n):
        u[:] = 0.5 * v
        if i == 1:
            t = u
        t[0] += 1.0
        u, v = v, u
    return t, u, v


# Views.


@on("f64[9] N", N="0 1 4")
def a_view_that_shrinks(x, n):
    v = x[1:]
    s = 0.0 * x[0]
    for i in range(n):
        s += v[1] * i
        v[0] *= 2.0
        v = v[1:]
    return s, v


@on("f64[9] N", N="0 1 3")
def a_view_of_every_second(x, n):
    v = x
    for _ in range(n):
        v[1:] += v[:-1]
        v = v[::2]
    return v[::-1]


@on("f64[9,3]L N", L="C F", N="0 1 8")
def the_row_before(a, n):
    current = a[0]
    for t in range(n):
        a[t + 1] = 0.5 * current
        current = a[t + 1]
    return current


@on("f64[9,3] N", N="2 3 8 9")
def the_two_rows_before(a, n):
    before, current = a[0], a[1]
    s = 0.0 * a[0, 0]
    for t in range(2, n):
        s += before[0] * current[1]
        before, current = current, a[t]
        current[0] = before[1]
    return s, before, current


@on("f64[3,4] f64[3,4] N", N="0 1 2 3 4 5")
def rows_of_what_is_swapped(a, b, n):
    row = a[0]
    for i in range(n):
        row += 1.0
        row = b[i % 3]
        a, b = b, a
    return row * 1.0, a, b


# Names that a loop binds first.


@on("f64[5] f64[5] N", N="0 1 2 5")
def a_residual_read_after_the_loop(x, y, n):
    for i in range(n):
        r = x - y * i
        x[:] = x - 0.5 * r
    return r, x


@on("f64[5] f64[5] N", N="0 1 2 5")
def a_residual_of_what_is_swapped(x, y, n):
    for _ in range(n):
        y[:] = 0.5 * x
        r = x - y
        x, y = y, x
    return r, x, y


@on("f64[5] N", N="0 1 2 5")
def bound_in_some_iterations(x, n):
    for i in range(n):
        if i % 2 == 1:
            r = x * i
        x[0] += 1.0
    return r


@on("f64[5] N", N="0 1 2 5")
def bound_to_what_every_iteration_makes(x, n):
    for i in range(n):
        t = x * i
        if i % 2 == 1:
            r = t
        x[0] += t[1]
        t[2] = 7.0
    return r


@on("f64[5] N", N="0 1 2 5")
def a_sum_that_the_first_iteration_begins(x, n):
    for i in range(n):
        if i == 0:
            s = x * 2.0
        else:
            s = s + x * i
    return s


@on("f64[5] N", N="0 1 2 5")
def a_number_that_the_first_iteration_begins(x, n):
    for i in range(n):
        if i == 0:
            s = x[0] * x[0]
        else:
            s = s + x[i]
    return s


@on("f64[5] N", N="0 1 2 5")
def read_one_iteration_later(x, n):
    e = 0.0 * x[0]
    for i in range(n):
        if i > 0:
            e += last[1]  # noqa: F821 - bound later, or never
            last[2] = e  # noqa: F821 - bound later, or never
        last = x * i
        x[0] *= 0.5
    return e, last


@on("f64[5] 2", "f64[5] 0")
def read_too_early(x, n):
    for i in range(n):
        x[i] += 1.0
        if i == 0:
            x[0] = last[0]  # noqa: F821 - bound later, or never
        last = x * 2.0
    return x


@on("f64[5] M N", M="0 1 2 3", N="0 1 2 3")
def bound_first_in_an_inner_loop(x, m, n):
    for i in range(m):
        for j in range(n - i):
            r = x * j + i
        x[0] *= x[1]
    return r


@on("f64[5] M N", M="0 1 3", N="0 1 3")
def bound_and_read_between_the_loops(x, m, n):
    total = 0.0 * x[0]
    for i in range(m):
        for j in range(n):
            r = x * j + i
        total += r[1]
        x[0] *= x[1]
    return r, total


@on("f64[4,3] N", N="0 1 4")
def a_row_read_after_the_loop(a, n):
    for i in range(n):
        row = a[i]
        row[0] *= row[1]
    return row


@on("f64[N,3]", N="0 1 4")
def the_row_that_a_loop_ended_with(a):
    for row in a:
        row[0] *= 2.0
    return row * 1.0


@on("f64[5] f64[5] N", N="0 1 2 5")
def a_name_for_what_was_written_last(u, v, n):
    for _ in range(n):
        u[:] = 0.5 * v
        last = u
        u, v = v, u
    last[0] = 3.0
    return u, v, last


@on("f64[5] f64[5] N", N="1 2 5")
def bound_first_in_a_while_loop(x, y, n):
    k = 0
    while k < n:
        d = x * k
        x[:] = y + d
        k += 1
    return d, x


@on("f64[4] f64[4] f64[4] M N", M="0 1 2 3", N="0 1 2")
def a_view_of_whichever_array_it_was_last(a, b, c, m, n):
    for i in range(m):
        for _ in range(i):
            v = b[i % 3 :]
            b[:] = 0.5 * c
            v = c[1:3]
        a, c, b = c, b, a
        for _ in range(n + 1):
            v = a[i % 3 :]
            v[0] += 1.0
    return a, b, c, v[0]


@on("f64[3,4] 2", "f64[3,4] 0", "f64[3,4]F 1")
def row_bound_in_an_inner_loop_and_read_after_both(z, n):
    s = 0.0
    for _ in range(n):
        for i in range(z.shape[0]):
            c = z[i]
            c[0] += s
            s += c[1]
    c[-1] = 5
    return s


@on("f64[3,4] 2", "f64[3,4] 1", "f64[3,4] 0")
def row_bound_two_loops_down_or_not_at_all(z, n):
    c = z[:, 0]
    for j in range(n):
        for i in range(z.shape[0]):
            for k in range(i):
                r = z[k + j]
                c = z[:, k]
        r[0] += 1
    c[-1] = 5
    return c


# The caller's array, changed in a loop of loops before its name is bound to another.


@on("f64[5] f64[5] M N", M="0 1 2 3", N="0 1 2")
def a_slice_changed_in_an_inner_loop_and_rebound(x, y, m, n):
    for _ in range(m):
        for _ in range(n):
            x[:] += 1.0
        x = 0.5 * x + y
    return x


@on("f64[5] f64[5] M N", M="0 1 2 3", N="0 1 2")
def a_slice_doubled_two_loops_down_and_rebound(x, y, m, n):
    for _ in range(m):
        for i in range(n):
            for _ in range(i + 1):
                x[1:] = 2.0 * x[1:]
        x = x - y
    return x


@on("f64[5] f64[5] M N", M="0 1 2 3", N="0 1 2")
def a_slice_changed_in_an_inner_while_and_rebound(x, y, m, n):
    for _ in range(m):
        k = 0
        while k < n:
            x[::2] -= y[::2]
            k += 1
        x = x.copy()
    return x


@on("f64[3,4] f64[3,4] M", M="0 1 2 3")
def rows_changed_in_an_inner_loop_and_rebound(a, b, m):
    for _ in range(m):
        for i in range(a.shape[0]):
            a[i, 1:] *= 0.5
            a[:, 0] += b[i, 0]
        a = a + b
    return a


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()


# Whose array it is when the loop does not run.


def rebound(x, n):
    t = x
    for _ in range(n):
        t = t * 2.0
    return t


def rebound_with_views(x, n):
    t = x
    for _ in range(n):
        t = t * 2.0
    return t[1:], t, x, t[::-1]


def rebound_twice(x, n):
    t, k = x, 1
    for _ in range(n):
        t = t * 2.0
    while k < n:
        t = np.sqrt(t)
        k += 1
    return t


def rebound_until(x, n):
    t = x
    for _ in range(n):
        t = t * 2.0
        if t[0] > 5.0:
            break
    return t


def rebound_from_a_returned_one(x, n):
    y = x * 3.0
    t = y
    for _ in range(n):
        t = t * 2.0
    return t, y, t[1:]


ZERO_TRIPS = [
    rebound,
    rebound_with_views,
    rebound_twice,
    rebound_until,
    rebound_from_a_returned_one,
]


@pytest.mark.parametrize("function", ZERO_TRIPS)
@pytest.mark.parametrize("n", [0, 1, 2, 4])
@pytest.mark.parametrize("step", [1, -2])
def test_an_array_that_no_iteration_rebound_is_what_it_was(
    function: Any, n: int, step: int
) -> None:
    def run(f: Any) -> tuple[list[Any], list[Any]]:
        x = np.arange(1.0, 9.0)[::step]
        found = f(x, n)
        found = [*(found if isinstance(found, tuple) else (found,)), x]
        pairs = [(a, b) for a in found for b in found]
        sharing = [(a is b, a.base is b, np.shares_memory(a, b)) for a, b in pairs]
        return [a.tolist() for a in found], sharing

    assert run(compiled(function)) == run(function)


@pytest.mark.parametrize("function", ZERO_TRIPS)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_gradients_of_arrays_that_some_iterations_rebind(function: Any, n: int) -> None:
    mutad.check_gradient(compiled(function, grad=True), np.arange(1.0, 6.0), n)
