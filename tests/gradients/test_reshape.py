"""Gradients through vectors seen in other shapes: the shadow of a reshape is the reshape of the shadow."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[6]L", L="C R S")
@on("f64[2]", "f64[0]", "f32[6]")
def stored_through_a_reshape(x):
    y = x.reshape(2, -1)
    y[0] *= y[1]
    y.T[:, 1] = np.sin(y[0])
    x *= 2
    return (y * y).sum()


@on("f64[6]", "f64[12]S")
def overlap_within_a_reshape(x):
    y = x.reshape(2, -1)
    y[:, 1:] = y[:, :-1] * y[:, 1:]
    return (x * x).sum()


@on("f64[6] 3", "f64[6]R 2")
def elements_of_a_reshape_in_loops(x, n):
    y = x.reshape(n, -1)
    for i in range(1, n):
        for j in range(y.shape[1]):
            y[i, j] += x[j] * y[i - 1, j]
            x[j] = x[j] * 0.5
    return x.sum()


@on("f64[3,4]L", L="C F S")
@on("f64[0,4]", "f32[1,4]")
def flattened(a):
    b = a.flatten()
    a[:] = 0.0
    return (b * b).sum() + ((a * 2).reshape(-1) * b).sum()


@on("f64[10]", saved=0)
def parameters_unpacked(theta):
    w = theta[:6].reshape(2, 3)
    r = w @ theta[7:] + theta[6:8]
    return (r * r).sum()


@on("f64[6] 3", "f64[6]S 2")
def returned_in_another_shape(x, n):
    y = x.reshape(n, -1)
    y[0] = y[0] ** 2
    return y


@on("f64[12] 3")
def in_a_loop(x, n):
    for k in range(n):
        y = x.reshape(3, 4)
        y[:, k] = y[:, k + 1] * y[:, k]
    return (x * x).sum()


@on("f64[3,4]L", L="C F S R")
@on("f64[2,3,2]", "f64[0,4]", "f32[1,4]", "f64[2,3,2]F")
def written_through_rows_put_together(a):
    b = a.reshape(-1)
    b[1:] *= b[:-1] + 2.0
    a *= a
    b[:1] = np.sin(b[:1])
    return (a * a).sum() + b.sum()


@on("f64[3,4]L 5", L="C F S")
@on("f64[2,3]T 4")
def elements_put_together_in_loops(a, n):
    v = a.T.reshape(-1)
    s = 0.0
    for k in range(1, n):
        v[k] += v[k - 1] * a[0, 0]
        a[0] = a[0] * 0.5
        s += v[k] ** 2
    return s + (a * a).sum()


@on("f64[2,3,4]L", L="C F")
@on("f64[2,1,4]", "f64[1,1,4]")
def some_dimensions_put_together(a):
    b = a.reshape(a.shape[0] * a.shape[1], -1)
    c = a.reshape(a.shape[0], -1)
    for k in range(b.shape[0]):
        b[k] = np.sin(b[k]) * c[0, :1]
        c[:, k % 4] *= 2
    return (b * b).sum() + c[-1, -1]


@on("f64[4,6] 2", "f64[4,6] 6", "f64[4,6]F 1", "f64[4,1] 1", "f64[1,6] 3")
def chosen_at_run_time(a, k):
    b = a[:, :k].reshape(-1)
    b *= b
    a += 1.0
    b[:1] = a[0, :1] * b[:1]
    return (a * a).sum() + (b * b).sum()


@on("f64[4,6] 3 8", "f64[4,6] -1 4", "f64[4,6]F 2 -1", "f64[4,6]S 2 -1")
def numbers_that_may_be_minus_one(a, p, q):
    b = a.reshape(p, q)
    b[:, 0] *= b[:, 1]
    a *= 0.5
    return (b * b * b).sum() + (a * a).sum()


@on("f64[4,6]L", L="C F")
def columns_first(a):
    b = a.reshape(3, -1, order="F")
    b[0] *= b[1]
    c = np.ravel(a, order="F")
    c[2:] = c[:-2] * c[2:]
    return (a * a).sum() + (b * c[0]).sum()


@on("f64[3,4]", saved=12 * 8)
def all_of_it_overwritten_through_a_vector(a):
    v = a.reshape(-1)
    y = np.sin(a)
    v[:] = np.exp(v)
    return (y * y).sum() + a.sum()


@on("f64[3,4] 3", saved=0)
def rows_of_weights(a, n):
    w = a.reshape(-1)[:9].reshape(3, n)
    r = w @ a[0, :3]
    return (r * r).sum()


@on("f64[6]", saved=0)
def in_place_under_two_names(x):
    y = x * x
    z = y
    y.shape = (2, 3)
    z[0] *= y[1]
    y.real = np.sin(y)
    return (z * y).sum() * z.shape[0]


TestGradients = gradient_tests(programs, tangents=True)
