"""Gradients through index arrays and masks: the last of equal subscripts wins, `ufunc.at` takes all."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


def repeated():
    return np.linspace(0.5, 2, 5), np.array([0, 2, -1, 2]), np.linspace(1, 2, 4)


def empty():
    return np.linspace(0.5, 2, 5), np.array([], np.int32), np.zeros(0)


def single():
    return np.array([1.5]), np.array([-1]), np.array([0.5])


def strided():
    return np.linspace(0.5, 2, 10)[::-2], np.array([3, 1, 1, 0])[::-1], np.linspace(1, 2, 7)[::2]


def int_bytes(x, i, v):
    return i.nbytes


VECTORS = (repeated, empty, single, strided, "f32[7]R i32[5] f32[5]")

# A read is linear: the subscripts are read again where they are, and saved only where they change.


@on(*VECTORS, saved=0)
def read(x, i, v):
    return x[i]


@on(*VECTORS, saved=0)
def squares_of_what_is_read(x, i, v):
    return (x[i] ** 2 * v).sum()


def element_matrices():
    return np.linspace(0.5, 2, 16).reshape(4, 4), np.array([[0, 1], [1, 3]]), np.linspace(1, 2, 2)


@on(element_matrices)
def assembled(k, elements, v):
    for e in elements:
        k[np.ix_(e, e)] += k[np.ix_(e, e[::-1])] * v
    return (k * k).sum()


@on(*VECTORS, saved=int_bytes)
def index_array_changes_afterwards(x, i, v):
    y = x[i] * v
    i[:] = 0
    return (y * y).sum()


@on("f64[7] f64[6,7]", "f32[3] f64[4,3]F", "f64[1] f64[4,1]")
def index_array_is_computed_from_what_changes(x, a):
    i = (x > 0).astype(np.int64)
    i += 2
    total = (a[i] * a[i]).sum()
    i[:] = 0
    a[i] = 0.0
    x[:] = 1.0
    return total


# v's cotangent goes to the last of equal subscripts alone; `ufunc.at` accumulates.


def last_of_equal(x, i, v):
    return np.ones(5), np.array([1.0, 0.0, 1.0, 1.0])


@on(repeated, saved=0, exact=last_of_equal)
@on(*VECTORS[1:], saved=0)
def last_wins(x, i, v):
    x[i] += v
    return x.sum()


@on(*VECTORS, saved=0, exact=lambda x, i, v: (1.0, 1.0))
def at_takes_all(x, i, v):
    np.add.at(x, i, v)
    return x.sum()


@on(*VECTORS)
def products(x, i, v):
    x[i] *= v
    np.multiply.at(x, i, v)


@on(*VECTORS)
def extremes_at(x, i, v):
    np.maximum.at(x, i, v)
    np.minimum.at(x, i, v * 1.1)
    np.subtract.at(x, i, v * v)


@on(*VECTORS)
def stored_and_squared(x, i, v):
    x[i] = v * v
    return (x * x).sum()


@on("f64[3,4]", "f64[3,4]F", "f64[3,4]S", "f32[3,4]R")
def rows_and_columns(a):
    i = np.array((0, 2, 2))
    a[:, i] *= a[:, np.array((1, 2, 3))]
    a[i, 1:] = np.sin(a[i, :3])
    a[i, i] += a[0, i] ** 2
    return (a[np.array((0, -1))] ** 2).sum()


@on("f64[3,4]", "f64[3,4]F")
def at_rows(a):
    np.add.at(a, np.array((0, 2, 2)), a[1] * a[0])
    np.multiply.at(a, (np.array((0, 0)), np.array((1, 1))), a[2, 2])


# Masks


@on("f64[7]", "f64[0]", "f64[1]", "f32[7]S", "f64[3,4]F")
def numbers_through_a_mask(x):
    x[x < 0] *= 0.1
    x[x > 1] = 2.0
    return (x * x).sum()


@on("f64[7] 1.5", "f64[0] 1.5", "f32[3,4]R 0.5")
def active_number_through_a_mask(x, s):
    x[x < 0] = s * s
    x[x > 0] *= s


@on("f64[7]", "f64[0]", "f64[1]", "f32[7]", "f64[3,4]F")
def what_a_mask_names(x):
    y = x[x > 0]
    return (y * y * y).sum()


@on("f64[7]", "f64[0]", "f64[3,4]")
def changed_where_a_mask_says(x):
    m = x > 0
    x[m] = np.sin(x[m])
    x[~m] *= x[~m]


@on("f64[3,4]", "f64[1,4]", "f64[0,4]")
def rows_by_a_mask(a):
    m = a[:, 0] > 0
    a[m] = a[m] * a[m]
    return a[m].sum()


# In loops the index arrays of every iteration are needed in reverse


@on("f64[7] 3", "f64[0] 3", "f64[7] 0")
def masks_in_a_loop(x, n):
    for t in range(n):
        m = x > 0.1 * t
        x[m] = np.sin(x[m]) * x[m]
    return (x * x).sum()


@on("f64[7] i64[4]:pos 3", "f64[7] i32[0]:pos 3")
def moving_index_array(x, i, n):
    for _ in range(n):
        x[i] = np.sin(x[i]) * x[i]
        i[:] = i - 1
    return (x * x).sum()


@on("f64[7,3] i64[6,2]")
def forces_on_the_ends_of_edges(x, edges):
    d = x[edges[:, 1]] - x[edges[:, 0]]
    f = d * (d * d).sum(axis=1)[:, None]
    g = np.zeros_like(x)
    np.add.at(g, edges[:, 0], f)
    np.subtract.at(g, edges[:, 1], f)
    x += 0.1 * g
    return (g * g).sum()


TestGradients = gradient_tests(programs, tangents=True)
