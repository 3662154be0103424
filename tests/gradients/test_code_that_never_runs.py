"""Gradients where the compiler can prove that a loop makes no trip or a branch is never taken.

Nothing overwrites what such code reads, so it would survive; but in the reverse sweep less is known of the
counters, and `vjp` may read nothing there that the caller could have changed.
"""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[4] 2")
def an_empty_range(a, n):
    s = a[0] ** 2
    for i in range(n, n):
        s += a[i] * a[i]
    return s


@on("f64[4]")
def an_empty_range_in_one_iteration(a):
    s = a[0] ** 2
    for j in range(1):
        for i in range(j):
            s += a[i] * a[i]
            a[i] = s
    return s * a[2]


@on("f64[4]")
def maps_and_temporaries(a):
    for i in range(1):
        for _ in range(i):
            b = np.sin(a)
            b *= b
            a *= b
    return a


@on("f64[4] 2")
def a_product(a, n):
    s = a[0] * a[1]
    m = a.reshape(2, 2)
    for _ in range(n, n):
        s += ((m @ m) ** 2).sum()
    return s


@on("f64[4] f64[4]")
def arrays_that_would_swap(a, b):
    s = a[0] * b[1]
    for j in range(1):
        for i in range(j):
            a, b = b, a
            s += a[i] ** 2 * b[i]
            a *= b
    return s * a[2] + b[1]


@on("f64[4] 2")
def a_branch_that_contradicts_another(a, n):
    s = a[0] * a[1]
    for i in range(n):
        k = int(3 * a[i])
        if k < 1:
            if k > 2:
                s += a[i] ** 3
                a[i] = s * a[i + 1]
    return s


def _folded(a, n):
    s = a[0] ** 2
    for i in range(n, n):
        s += a[i] ** 2
        a[i] = s
    if n > 0:
        a[1] *= s
        return s + _folded(a, n - 1) * a[1]
    return s


@on("f64[4] 2")
def in_a_recursion(a, n):
    return _folded(a, n)


TestGradients = gradient_tests(programs, tangents=True)
