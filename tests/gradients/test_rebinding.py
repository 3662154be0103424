"""Gradients through arrays that loops and branches rebind: shadows change places as the primals do."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[6] f64[6] M N", M="0 1 2 3", N="0 1 2 3")
def swapped_in_the_inner_loop(x, y, m, n):
    for _ in range(m):
        for _ in range(n):
            y[1:-1] = 0.5 * (x[:-2] + x[2:]) * x[1:-1]
            x, y = y, x
    return x.sum() + 2.0 * (y * y).sum()


@on("f64[6] f64[6] 3 N", N="0 1 2 3", saved=lambda x, y, m, n: (m + 7) // 8)
def a_linear_nest_saves_one_bit_for_each_outer_iteration(x, y, m, n):
    for _ in range(m):
        for _ in range(n):
            y[1:-1] = 0.5 * (x[:-2] + x[2:])
            x, y = y, x
    return x.sum()


@on("f64[6] f64[6] M N", M="1 2 3", N="0 1 2")
def swapped_in_both_loops(x, y, m, n):
    for _ in range(m):
        for j in range(n):
            y[:] = np.sin(x) * y + j
            x, y = y, x
        x[0] *= x[1]
        x, y = y, x
    return x * y, y


@on("f64[4] f64[4] f64[4] 2 N", N="0 1 2 3 4")
def three_change_places_in_a_nest(a, b, c, m, n):
    for _ in range(m):
        for _ in range(n):
            a[:] = 0.5 * b * c + np.sin(a)
            a, b, c = b, c, a
    return a.sum() + 2.0 * (b * b).sum() - 3.0 * (c * a).sum()


@on("f64[5] f64[5] 2 3")
def swapped_three_loops_deep(x, y, m, n):
    for i in range(m):
        for j in range(n):
            for _ in range(i + j):
                y[1:] = 0.5 * x[:-1] * y[1:]
                x, y = y, x
            x[0] *= 0.5
    return (x * x * y).sum()


@on("f64[5] f64[5] T", T="0.9 0.4 0.1")
def swapped_in_while_loops(x, y, tolerance):
    size, k = 1.0, 0
    while size > tolerance:
        for _ in range(k):
            y[:] = np.sin(x) + 0.1 * y
            x, y = y, x
        k += 1
        size *= 0.5
    return x * y


@on("f64[6] f64[6] N", N="0 1 2 3 6")
def swapped_on_a_branch(u, v, n):
    for i in range(n):
        v[1:-1] = 0.5 * (u[:-2] + u[2:]) * v[1:-1]
        if i % 3 != 1:
            u, v = v, u
    return u.sum() + 2.0 * (v * v).sum()


@on("f64[6] N", N="0 1 2 5")
def the_best_so_far(x, n):
    trial, best_x, best = x.copy(), x * 2.0, 50.0
    for i in range(n):
        trial[:] = np.sin(best_x) * (0.7 if i != 2 else 1.5) + 0.1 * trial * trial
        error = (trial * trial).sum()
        if error < best:
            best = error
            best_x, trial = trial, best_x
    return best_x.sum() * best + (trial * best_x).sum()


@on("f64[4] f64[4] N", N="0 1 2 3 4")
def another_name_for_one_of_two(x, y, n):
    t = x
    for i in range(n):
        if i == 2:
            t = y
        t[0] += t[1] * t[1] * t[0]
    return (t * t).sum()


@on("f64[4] f64[4] N", N="0 1 2 3 4")
def another_name_for_what_is_swapped(u, v, n):
    t = u
    for i in range(n):
        u[:] = v * v
        if i == 1:
            t = u
        t[0] *= t[1]
        u, v = v, u
    return (t * u).sum()


@on("f64[9] N", N="0 1 4")
def a_view_that_shrinks(x, n):
    v = x[1:]
    s = 0.0
    for i in range(n):
        s += (v * v).sum() * i
        v[0] *= v[1]
        v = v[1:]
    return s + v[0]


@on("f64[6,3]L N", L="C F", N="0 1 5")
def the_row_before(a, n):
    current = a[0]
    for t in range(n):
        a[t + 1] = np.sin(current) * current
        current = a[t + 1]
    return current.sum()


@on("f64[6,3] N", N="2 3 6")
def the_two_rows_before(a, n):
    before, current = a[0], a[1]
    s = 0.0
    for t in range(2, n):
        s += (before * current).sum()
        before, current = current, a[t]
        current[0] = before[1] ** 2
    return s + before.sum()


@on("f64[3,3] f64[3,3] N", N="0 1 2 3 4")
def rows_of_what_is_swapped(a, b, n):
    row = a[0]
    for i in range(n):
        row *= row
        row = b[i % 3]
        a, b = b, a
    return (row * row).sum()


@on("f64[5]& f64[5]& 2 N", "f64[5]&[:-1] f64[5]&[1:] 3 N", N="0 1 2")
def arguments_that_share_memory(x, y, m, n):
    for _ in range(m):
        for _ in range(n):
            y[:] = 0.5 * x * x
            x, y = y, x
    return (x * y).sum()


@on("f64[5] f64[5] N", N="1 2 5")
def a_residual_read_after_the_loop(x, y, n):
    for i in range(n):
        r = x * x - y * i
        x[:] = x - 0.1 * r
    return (r * r).sum()


@on("f64[5] f64[5] N", N="1 2 5")
def a_residual_of_what_is_swapped(x, y, n):
    for _ in range(n):
        y[:] = np.sin(x)
        r = x - y
        x, y = y, x
    return (r * r * x).sum()


@on("f64[5] N", N="2 3 5")
def bound_in_some_iterations(x, n):
    for i in range(n):
        if i % 2 == 1:
            r = x * x * i
        x[0] *= x[1]
    return (r * r).sum()


@on("f64[5] N", N="2 3 5")
def bound_to_what_every_iteration_makes(x, n):
    for i in range(n):
        t = x * x * i
        if i % 2 == 1:
            r = t
        x[0] += t[1] * x[0]
    return (r * r).sum()


@on("f64[5] N", N="1 2 5")
def a_sum_that_the_first_iteration_begins(x, n):
    for i in range(n):
        if i == 0:
            s = x * 2.0
        else:
            s = s + x * x * i
    return (s * s).sum()


@on("f64[5] N", N="1 2 5")
def read_one_iteration_later(x, n):
    e = 0.0 * x[0]
    for i in range(n):
        if i > 0:
            e += last[1] * last[2]  # noqa: F821 - bound later, or never
            last[2] = e  # noqa: F821 - bound later, or never
        last = x * x
        x[0] *= 0.5
    return e * last[2]


@on("f64[5] M N", M="1 2 3", N="1 3")
def bound_and_read_between_the_loops(x, m, n):
    total = 0.0 * x[0]
    for i in range(m):
        for j in range(n):
            r = x * x * j + i
        total += r[0] * r[1]
        x[0] *= x[1]
    return (r * r).sum() * total


@on("f64[4,3] N", N="1 4")
def a_row_read_after_the_loop(a, n):
    for i in range(n):
        row = a[i]
        row[0] *= row[1]
    return (row * row).sum()


@on("f64[5] f64[5] N", N="1 2 5")
def a_name_for_what_was_written_last(u, v, n):
    for _ in range(n):
        u[:] = np.sin(v)
        last = u
        u, v = v, u
    last[0] = 3.0 * last[1]
    return (last * u * v).sum()


@on("f64[3] 0.5 M", M="1 3")
def changed_in_an_inner_loop_then_kept(k, h, m):
    y = np.array([1.0, 0.2, 0.1])
    for _ in range(m):
        z = y.copy()
        for it in range(6):
            f = z - y - h * k * z * z
            if np.max(np.abs(f)) < 1e-3 or it > 3:
                break
            z -= 0.8 * f
        y = z
    return (y * y).sum() + y[0]


@on("f64[2] f64[3] f64[3] M", M="1 3")
def tried_until_better(p, t, y, m):
    r = p[0] * t - y
    cost, step = r @ r, 1.0
    for _ in range(m):
        g = np.array([r @ t, r.sum()])
        while True:
            q = p - step * g
            s = q[0] * t - y + q[1]
            new = s @ s
            if new < cost or step < 1e-3:
                break
            step *= 0.25
        for _ in range(2):
            last = s * step
        p, r, cost = q, s, new
        step *= 2.0
    return cost * p[0] + (r * last).sum()


# Arrays that change places in a `while` whose condition reads one: which one is chosen there, too.


def _growing():
    return np.array([0.5, 0.23, 0.7, 0.9]), np.array([0.4, 0.31, 0.23, 0.13])


@on(_growing)
def the_condition_reads_what_a_branch_swaps(a, b):
    while a[0] < 10.0:
        if a[1] > b[1]:
            a, b = b, a
        a *= 1.5
        b *= 1.6
    return (a * b).sum()


@on(_growing)
def the_condition_reads_what_an_inner_loop_swaps(a, b):
    c = a.copy()
    while a[0] * b[0] * c[0] < 3.0:
        for i in range(3):
            a, b, c = b, c, a
            if a[i] > b[i]:
                a, b = b, a
            a *= 1.5
        b *= 1.6
    return (a * b * c).sum()


@on(_growing)
def the_condition_sums_what_is_rebound(a, b):
    k = 0
    while (a * b).sum() < 3.0 and k < 5:
        if a[0] > b[0]:
            a, b = b, a
        elif a[1] > 1:
            b = b * a
        a[:] = a * b + 1.1
        k += 1
    return (a * b).sum()


@on(_growing)
def the_condition_reads_views_that_swap(a, b):
    m = a.reshape(2, 2)
    u, v = m, m.T
    while u[0, 1] < 5.0:
        if u[0, 0] > v[1, 0]:
            u, v = v, u
        u *= 1.3
        v[0] *= 1.1
    return (u * v).sum() + b[0]


# Views of arrays of different rank: those of lower rank are seen with one more axis.


@on("f64[3,3] f64[3] N", N="0 1 3")
def a_vector_or_a_row(a, x, n):
    row, s = x, 0.0
    for i in range(n):
        s += (row * row).sum()
        row[0] += 0.25 * row[1]
        row = a[i % 2]
    row *= row
    return s + row.sum()


@on("f64[3,3] f64[3] N", N="1 4")
def a_vector_a_row_or_a_column(a, x, n):
    v, s = x, 0.5 * x[0]
    for i in range(n):
        if i % 3 == 0:
            v = a[:, i % 2]
        elif i % 3 == 1:
            v = x[::-1]
        else:
            v = a[-1]
        v[1] += 0.5 * s * v[2]
        s += v[0] * v[0]
    return s + v.sum()


@on("f64[3,3] f64[3] 2")
def the_best_row_so_far(a, x, n):
    best = x
    for row in a:
        if row[0] > best[0]:
            best = row
        best[1] *= n * best[0]
    return (best * best).sum() + x.sum()


# In nests: an array from before the outer loop that an inner one rebinds.


@on("f64[3,3] f64[3] 2 N", N="0 1 3")
def a_row_or_a_column_in_the_inner_loop(a, x, m, n):
    v = x
    for i in range(m):
        for j in range(n):
            if (i + j) % 2:
                v = a[:, j % 3]
            else:
                v = a[j % 3]
            v[0] *= v[1]
        v[1] += v[0] * v[2]
    return (v * v).sum() + x.sum()


@on("f64[3,3] f64[3] 2 N", N="0 3")
def a_row_of_what_is_transposed(a, x, m, n):
    v, b = x, a
    for _ in range(m):
        b = b.T
        for j in range(n):
            v = b[j]
            a = a.T
            v[0] += v[1] * v[2] * a[0, 1]
        b = b[::-1]
    return (v * v).sum() + b[0, 1]


@on("f64[3,3] f64[3] 3")
def columns_in_a_while_in_a_while(a, x, n):
    v, k = x, 0
    while k < n:
        j = 0
        while j < k:
            v = a[:, j]
            v *= 1.1
            j += 1
        v[0] += v[1] * v[2]
        k += 1
    return (v * v).sum()


@on("f64[3,3] f64[3] 2 N", N="0 1 3")
def a_vector_as_a_row_and_as_a_column(a, x, m, n):
    u = a
    for _ in range(m):
        for j in range(n):
            if j % 2:
                u = x[:, None]
            else:
                u = x[None, :]
            u[0, 0] += u[-1, -1] * u[0, 0]
    return (u * u).sum() + a.sum()


@on("f64[3,3] f64[9] 2 N", N="0 3")
def a_vector_as_a_matrix(a, x, m, n):
    u = a
    for _ in range(m):
        for j in range(n):
            u = x.reshape(3, 3)
            if j == 1:
                u = u.T
            u[0, 1] += u[0, 1] * u[2, 0]
        u[1] *= 2.0
    return (u * u).sum()


@on("f64[3,3] f64[9] N", N="0 1 3")
def a_matrix_as_a_vector_from_before_the_loop(a, x, n):
    v, flat = x, a.reshape(-1)
    for i in range(n):
        v[0] += v[8] * v[1]
        v = flat if i % 2 == 0 else x[::-1]
    return (v * v).sum() + a.sum()


@on("f64[2,3,3] f64[3,3] 2 N", N="0 1 3")
def planes_along_every_axis(c, a, m, n):
    v = a
    for i in range(m):
        for j in range(n):
            v = c[:, j % 3]
            v[0, 1] += v[1, 0] * v[0, 2]
        if i == 0:
            v = c[:, :, 0]
        v[1] *= v[0]
    return (v * v).sum()


@on("f64[3,3] f64[3] 2 2")
def three_loops_deep(a, x, m, n):
    v = x
    for i in range(m):
        for j in range(n):
            for k in range(2):
                v = a[:, (i + j + k) % 3]
                v[k] *= v[2]
            v[0] += v[1]
        v = a[i]
    return (v * v).sum()


@on("f64[3,3] f64[3] 2 N", N="1 2")
def two_names_of_rows_and_columns(a, x, m, n):
    u, v = x, a[0]
    for _ in range(m):
        for j in range(n):
            u, v = v, a[:, j]
            v[0] += u[1] * v[2]
        u[2] *= v[1]
    return (v * v).sum() + (u * u).sum()


@on("f64[3,3] f64[3] 2 N", N="0 2")
def an_array_of_the_function_and_columns(a, x, m, n):
    v = np.zeros(3)
    for i in range(m):
        v[i] += x[0]
        for j in range(n):
            v = a[:, j]
            v[0] += v[1] * v[2]
        v[1] *= 1.5
    return (v * v).sum()


@on("f64[3,3] f64[3,3]#2 2 2")
def a_row_of_arrays_that_change_places(a, b, m, n):
    for i in range(m):
        r = a[i]
        for j in range(n):
            r[j] += b[i, j] * r[2]
            a, b = b, a.T
            r = a[j]
    return (a * b).sum() + (r * r).sum()


@on("f64[3,3] f64[3] 3")
def another_axis_after_an_exception(a, x, n):
    v = x
    for i in range(n):
        try:
            v = a[i]
            v[0] += v[1]
            if v[0] > 1.0:
                raise ValueError("x")
            v = a[:, i]
        except ValueError:
            v = x[::-1]
        v[2] *= v[1]
    return (v * v).sum()


# New arrays of branches that choose among arrays first, and hand the new one out.


@on("f64[3,3] f64[3] f64[3]#2 N", N="0 1 3")
def new_behind_a_choice_of_views(a, x, y, n):
    for i in range(n):
        if a[0, 0] > 0.2:
            if y[0] > x[0]:
                v = a[i]
            elif y[1] > 0.1:
                v = a[:, i]
            else:
                v = y
            v[1] *= 1.5
            w = v * v
        else:
            v = x
            w = y
        w[0] *= v[1]
        a[0] += w
    return (a * a).sum() + w[0] if n else x.sum()


@on("f64[3] f64[3]#2 N", N="0 1")
def new_behind_a_choice(x, y, n):
    if n == 1:
        v = x if y[0] > 0 else y
        v = v * 2.0
    else:
        v = y
    v[0] += v[1] * v[2]
    return (v * v).sum() + x.sum()


TestGradients = gradient_tests(programs, tangents=True)
