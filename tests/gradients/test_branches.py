"""Gradients through arrays as long as a branch finds out, and conditions that change arrays."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[3] 3", "f64[3] 0", "f64[3] 1")
def as_long_as_the_branch_counts(x, k):
    if k > 0:
        m = 0
        for _ in range(k):
            m += 2
        t = np.zeros(m)
        for i in range(m):
            t[i] = x[i % 3] * (i + 1)
    else:
        t = x * x
    return (t * t).sum()


@on("f64[5] 1", "f64[5] 0")
def as_long_as_a_mask_is_true(x, k):
    if k > 0:
        t = x[x > 0] * 2
        x[x > 0] *= x[0]
    else:
        t = x[1:] * x[:-1]
    return (t * t).sum() + x.sum()


@on("f64[4] 4", "f64[4] 1")
def in_every_second_iteration(x, k):
    s = 0.0
    for i in range(k):
        if i % 2:
            m = 0
            for _ in range(i):
                m += 1
            t = np.ones(m) * x[i]
            t *= t
        else:
            t = x * x
        s += t.sum() * x[0]
    return s


@on("f64[5] 1 1", "f64[5] 1 0", "f64[5] 0 1")
def one_branch_in_another(x, k, m):
    t = x
    if k > 0:
        n = int(x.size) - k
        if m > 0:
            y = x[x > x[n]]
            t = y * y
    return (t * t).sum()


def halved(x):
    x *= 0.5
    return x.sum()


@on("f64[3]", "f64[1]", "f64[0]")
def a_condition_that_changes_the_array(x):
    x += 3.0
    while halved(x) > 1.0:
        x += 0.01 * x * x
    return (x * x).sum()


@on("f64[3] 5", "f64[3] 1", "f64[3] 0")
def a_condition_within_a_count(x, n):
    k = 0
    while k < n and halved(x) > 0.1:
        x[k % 3] *= 3.0
        k += 1
    else:
        x *= 1.5
    return (x * x).sum() * (k + 1)


@on("f64[3] 4")
def a_condition_in_a_loop_that_is_left(x, n):
    s = 0.0
    for i in range(n):
        while halved(x) > 0.2:
            s += x[0] * x[1]
            if s > 1.0:
                break
        x += 0.3 * i
    return s + (x * x).sum()


TestGradients = gradient_tests(programs, tangents=True)


@on("f64[4] 6")
def the_best_so_far(x, n):
    best, least = x.copy(), np.sum(x**2)
    here, value = x.copy(), least
    for k in range(n):
        step = np.array([0.4, -0.3, 0.2, -0.1]) * (1 - k % 3)
        other = here + step * x[k % 4]
        v = np.sum(other**2)
        if v < value or k % 2:
            here, value = other, v
            if v < least:
                best, least = other.copy(), v
    return least + best[0] * here[1]


@on("f64[6] 3", "f64[6] 0")
def views_that_begin_where_a_branch_finds(x, k):
    m = np.arange(6)
    if k > 0:
        a = m[k] - 1
        if x[a] > x[0]:
            y = x[a : a + 3]
        else:
            y = x[:3]
    else:
        y = x[3:]
    y[0] *= x[1]
    return (y * y).sum() * x[2]
