"""Gradients through arrays that one branch allocates, as long as it finds out there.

The reverse sweep of the branch has none of them: what it needs is saved in the branch, extents are those
of the shadows, or of stand-ins that nobody reads.
"""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[6]:pos", "f64[6]:pos#2")
def a_store_through_a_mask(a):
    m = a > 0.3
    if a[0] > 0.1:
        a[m] = np.sin(a[m])
    return (a * a).sum()


@on("f64[6] f64[6]#1", "f64[6]#2 f64[6]#3", "f64[6]#4 f64[6]#5")
def masks_in_both_branches(a, b):
    if a[0] > 0.1:
        m = a > 0.3
        b[m] = a[m] * b[m]
        if b[1] > 0.1:
            both = (b > 0.1) & m
            a[both] = np.exp(a[both]) * b[both]
    else:
        a[a > 0.2] *= 2
        b[~(a > 0)] = a[~(a > 0)] ** 2
    return (a * b).sum()


@on("f64[6]:pos 3")
def in_a_loop(a, n):
    m = a > 0.3
    for i in range(n):
        if a[i] > 0.1:
            a[m] = np.sin(a[m])
    return (a * a).sum()


@on("f64[6]:pos f64[6]:pos#1")
def found_subscripts_and_a_part(a, b):
    s = 0.5
    if a[0] > 0.0:
        i = np.nonzero(a > 0.3)[0]
        w = a[i] ** 2
        b[: i.size] += w * w
        s = w.sum()
    return (a * b).sum() * s


@on("f64[6]:pos f64[6]:pos#1")
def as_long_as_a_count(a, b):
    if a[0] > 0.0:
        k = int((a > 0.3).sum())
        y = np.zeros((k, k))
        y[:, 0] = a[:k]
        y[0] = b[:k]
        y = y @ y
        a[0] = y.sum()
    return (a * b).sum()


@on("f64[6]:pos f64[6]:pos#1")
def returned_from_the_branch(a, b):
    if a[0] > 0.0:
        kept = []
        for i in range(a.size):
            if a[i] > 0.3:
                kept.append(a[i] * b[i])
        w = np.array(kept)
        w *= w
        return (w**2).sum()
    return (a * b).sum()


def _apart():
    return np.array([0.5, 0.23, 0.7, 0.9]), np.array([0.4, 0.48, 0.2, 0.63])


@on(_apart)
def arrays_of_the_branch_that_swap(a, b):
    if a[0] > 0.1:
        c = a[a > 0.3]
        d = b[b > 0.3]
        c *= 1.5
        for _ in range(3):
            c, d = d, c
            c *= d
        a[: c.size] = d * d * c
    return (a * b).sum()


@on(_apart)
def subscripts_of_the_branch_that_swap(a, b):
    if a[0] > 0.1:
        c = np.nonzero(a > 0.3)[0]
        d = np.nonzero(b > 0.35)[0]
        for _ in range(3):
            c, d = d, c
            b[: c.size] *= np.sin(a[c])
    return (a * b).sum()


@on(_apart)
def subscripts_of_an_iteration_that_swap(a, b):
    for k in range(2):
        c = np.nonzero(a > 0.3 * k)[0]
        d = np.nonzero(b > 0.35)[0]
        for _ in range(3):
            c, d = d, c
            b[: c.size] *= np.sin(a[c])
    return (a * b).sum()


TestGradients = gradient_tests(programs, tangents=True)
