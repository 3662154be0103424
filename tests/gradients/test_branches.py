"""Gradients through arrays that one branch allocates, as long as it finds out."""

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


TestGradients = gradient_tests(programs)
