"""Attributes of arrays and numbers that are assigned, and which there are: NumPy's classes say."""

from typing import NamedTuple

import numpy as np
import pytest
from python_oracle import Case, Programs

programs = Programs()
on = programs.on


class Pair(NamedTuple):
    left: float
    right: float


@on("f64[4]", "f64[6]", "i64[4]", "f64[5]", terms=lambda x: np.abs(x).max() * x)
def in_another_shape_or_not(x):
    y = x * 2
    try:
        y.shape = (2, 2)
    except AttributeError:
        return -1.0
    return (y @ y).sum()


@on("f64[6]", "f32[6]")
def under_all_names(x):
    y = np.array(x)
    other, whole, pair = y, y[:], (y, 1.0)
    y.shape = (2, -1)
    y[0, 1] = 7.0
    return other, other.shape, whole.shape, pair[0][1, 2], y.ndim, np.asarray(y).real.shape


@on("f64[6] 2 3", "f64[6] 3 2", "f64[6] 2 2", "f64[6] 6 1", "f64[0] 0 4")
def of_numbers(x, n, m):
    y = x + 1.0
    y.shape = n, m
    y.shape = (m, n)
    return y


@on("f64[7]", "f64[7]R")
def of_views(x):
    tail, some = x[1:], x[::2]
    tail.shape = (3, 2)
    some.shape = (2, 1, 2)
    tail[0, 1] = 5.0
    some[1, 0] *= 2.0
    return tail.sum(), some[0, 0, 1], x.shape


@on("f64[5]")
def in_each_iteration(x):
    s = 0.0
    for i in range(3):
        y = x * i
        y.shape = (1, 5)
        s += y[0, i] * y.shape[1]
    return s


def row_of(y):
    y.shape = (1, -1)
    return y.sum()


@on("f64[5]")
def by_a_function(x):
    y = x * 2
    s = row_of(y)
    setattr(y, "shape", (5, 1))
    return s, y


@on("f64[5]", "f32[5]", "i64[5]")
def stored_as_the_real_part(x):
    y = x + 1
    y.real = x * 2
    y.real[0] = 3
    y[1:].real = 4
    return y, y.real


@on("f64[3]")
def is_not_writable(x):
    x.T = x
    return x


@on("f64[3]")
def is_a_method(x):
    x.sum = 3
    return x


@on("f64[3]", "i64[3]")
def is_no_attribute(x):
    x.values = x
    return x


@on("f64[3]", "f32[3]", "i64[3]", "b1[3]")
def of_a_numpy_number(x):
    x[0].real = 3
    return x


@on("0.5", "3", "True")
def of_a_number(p):
    p.real = 3
    return p


@on("0.5", "3")
def new_of_a_number(p):
    p.foo = 3
    return p


@on("0.5")
def of_a_named_tuple(p):
    q = Pair(p, p)
    q.left = 3.0
    return q.left


@on("f64[3] 0.5 3")
def which_there_are(x, p, k):
    m = np.ones((2, 2))
    found = [hasattr(x, "T"), hasattr(x, "foo"), hasattr(x, "__call__"), hasattr(m, "mT")]
    found += [hasattr(x[0], "is_integer"), hasattr(x[0], "__name__"), hasattr(p, "hex")]
    found += [hasattr(k, "bit_length"), hasattr(k, "__name__"), hasattr(Pair(p, p), "__name__")]
    return found, np.isscalar(x[0]), np.isscalar("x"), np.isscalar(np), np.isscalar(float)


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()
