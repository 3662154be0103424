"""Mutation as users write it: whole-array updates, fills, helpers, shared arguments, rebinding."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("D[n]L", D="f64 f32", n="5", L="C R S", exact=lambda x: 2.0)
@on("f64[n]", n="0 1 2", exact=lambda x: 2.0)
@on("f64[3,4]L", L="C F", exact=lambda x: 2.0, saved=0)
def doubled_in_place(x):
    x[:] = 2 * x
    return x.sum()


@on("D[n]L", D="f64 f32", n="5", L="C R S", exact=lambda x: 2 * x)
@on("f64[n]", n="0 1 2", exact=lambda x: 2 * x, saved=lambda x: x.nbytes)
def squared_in_place(x):
    for i in range(x.size):
        x[i] = x[i] ** 2
    return x.sum()


@on("f64[3,4]L", L="C F R S", exact=lambda x: 2 * x, saved=lambda x: x.nbytes)
def squared_in_place_in_two_dimensions(x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = x[i, j] ** 2
    return x.sum()


@on("D[n]", D="f64 f32", n="5 0", exact=lambda x: 2 * x)
@on("f64[3,4]F", "f64[5]R", exact=lambda x: 2 * x, saved=lambda x: x.nbytes)
def square_then_fill(x):
    y = x * x
    x.fill(0)
    return y.sum()


@on("f64[5]L", L="C R S", exact=lambda x: 3.0, saved=0)
def triple_then_fill(x):
    y = 3 * x
    x.fill(0)
    return y.sum()


@on("f64[5]", exact=lambda x: -np.sin(x), saved=lambda x: x.nbytes)
def cosine_then_assign(x):
    y = np.cos(x)
    x[:] = 1
    x[2:] = 7
    return np.sum(y)


def inner(z, y):
    for i in range(y.size):
        z[i] = 2 * y[i]


def outer(y):
    z = np.empty_like(y)
    inner(z, y)
    return z


@on("f64[n]L", n="5", L="C R", exact=lambda y: 2.0)
@on("f32[5]", "f64[0]", "f64[1]", exact=lambda y: 2.0, saved=0)
def sum_of_allocating_helper(y):
    return outer(y).sum()


@on("f64[5]", "f32[5]R", "f64[0]", saved=0)
def result_of_allocating_helper(y):
    return outer(outer(y))


def axpy(a, x, y):
    y[:] = a * x + y


@on(
    "1.5 D[n] D[n]#1",
    D="f64 f32",
    n="5 0",
    exact=lambda a, x, y: (x @ (a * x + y) * 2, 2 * a * (a * x + y), 2 * (a * x + y)),
)
@on("f64(1.5) f64[5]R f64[5]S#1", "f32(0.5) f32[5] f32[5]", saved=0)
def loss_of_axpy(a, x, y):
    axpy(a, x, y)
    return (y * y).sum()


@on("1.5 f64[5] f64[5]#1", "f64(1.5) f64[5]R f64[5]S#1", "0.5 f32[5] f32[5]")
def axpy_with_a_product(a, x, y):
    y[:] = a * x * y
    y[1:] = a * y[1:] * y[:-1]


@on("1.5 f64[5] f64[5]#1", "1.5 f64[1] f64[1]", saved=lambda a, x, y: x.nbytes)
def axpy_returns_nothing(a, x, y):
    axpy(a, x, y)
    axpy(0.5, y, x)


@on("f64[n] f64[n]#1", n="5 0")
@on("f64[3,4] f64[3,4]F#1", "f32[5] f32[5]#1", saved=0)
def two_results(x, y):
    return (x + y, x - y)


@on("f64[5] f64[5]#1")
def two_results_that_share_a_factor(x, y):
    p = x * y
    return p, p, p.sum()


@on("f64[5]", "f64[5]R")
def a_view_and_what_it_views(x):
    x *= x
    return x[1:], x


@on("f64[5] 3", "f64[5] 0", exact=lambda x, n: n * n * x ** (n - 1) if n else 0.0)
def rebinding_to_an_array(x, n):
    total = np.zeros(x.size)
    for _ in range(n):
        total += x**n
    return total.sum()


@on("1.5 3", "f64(-0.5) 4", "2.0 0")
def an_integer_that_becomes_a_float(v, n):
    total = 0
    for _ in range(n):
        total += v**n
    return total * v


@on("f64[5]")
def a_name_rebound(x):
    y = x * x
    y = y * x
    x = y + x
    y = x * 2
    return (x * y).sum()


@on("f64[5] 0.5")
def shadowed_by_a_closure(x, k):
    def f(x):
        k2 = k * x
        return k2 * k2

    x[0] = f(x[1])
    return x.sum() * f(k)


@on("f64[3] f64[2,3]")
def lists_and_tuples_in_rows(x, a):
    a[0] = [x[0] * x[1], 2.0, x[2]]
    a[1, :2] = (x[1], x[0] * x[0])
    a[1] += [x[2], 1.0, x[0]]
    a[:, 1] = [a[0, 0], a[1, 1] * x[1]]
    return (a * a).sum()


@on("f64[4]:pos 1", "f64[4]:pos 0")
def running_sums_where_they_are_read(x, i):
    y = 2 * x
    np.cumprod(y[::-1][i:], out=x[: x.size - i])
    y.cumsum(0, out=y)
    np.cumsum(x[:-1] * y[1:], out=x[1:])
    return (x * y).sum()


TestGradients = gradient_tests(programs, tangents=True)
