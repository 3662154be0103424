"""Gradients through diagonals, which are views: the shadow of one is the diagonal of the shadow."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[3,3]L", L="C F", saved=0)
@on("f64[1,1]", "f32[2,2]")
def store_seen_in_a_diagonal(a):
    d = np.diagonal(a)
    a[0, 0] = 5.0 * a[-1, 0]
    return d[0] * d[-1]


@on("f64[3,4] f64[4]", "f64[4,4]F f64[4]", "f64[2,4] f64[4]")
def elements_stored_in_loops(a, b):
    d = np.diagonal(a, -1)
    for i in range(a.shape[0] - 1):
        a[i + 1, i] *= d[-1] * b[i]
        b[i] = d.sum()
    return (a[:, ::-1] * b).sum()


@on("f64[3,3] f64[3,3]", "f64[3,3]F f64[3,3]")
def stored_through_a_diagonal(a, b):
    d = np.einsum("ii->i", a)
    d[...] = np.sin(d) * b[0]
    a[0, 0] = a[1, 1] ** 2
    d[1:] *= d[:-1]
    b[1] = d * a[2, 2]
    return (a * b).sum()


@on("f64[4,4]", "f64[4,4]F")
def overlap_with_rows_and_parts(a):
    a[1] = np.diagonal(a)
    a[:2, :2] -= np.diagonal(a)[1:3]
    np.einsum("ii->i", a[1:3, 2:0:-1])[...] = a[0, :2] ** 3
    a /= np.diagonal(a)[:, None] ** 2 + 1.0
    return (a * a).sum()


@on("f64[3,3] 2", "f64[3,3]F 3")
def contiguous_parts(a, n):
    b = np.ascontiguousarray(a[1:])
    c = np.ascontiguousarray(a[:, :n])
    b[0] *= a[0]
    c[0] *= b[1, :n]
    return (a * a).sum() + (c * c).sum()


@on("f64[3]")
def vectors_on_diagonals(x):
    a = np.diag(x, 1) + np.diag(x[:2], -2) + np.diag(x[1:] * x[0], k=2)
    return np.trace(a @ a) + np.trace(a @ a @ a, 1) + (np.diag(a, 1) ** 2).sum()


@on("f64[3]")
def numbers_in_place(x):
    y = x * x
    z = np.nan_to_num(y, copy=False)
    z[0] *= y[1]
    np.float64(y)[1] *= z[2]
    return (y * x).sum()


TestGradients = gradient_tests(programs, tangents=True)
