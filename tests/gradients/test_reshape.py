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


TestGradients = gradient_tests(programs)
