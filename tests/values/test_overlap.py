"""Assignments whose source and destination overlap: as if the source were copied first."""

import numpy as np
import pytest
from argument_rows import elements
from python_oracle import Case, Programs, compiled

from mutad import compile

programs = Programs()
on = programs.on


@on("D[n]L", D="f64", n="7 2 1 0", L="C")
@on("D[7]L", D="f64 f32 i64 b1", L="C R S")
def shift_up(x):
    x[1:] = x[:-1]


@on("f64[n]", n="7 2 1 0")
@on("D[7]L", D="f64 i32", L="R S")
def shift_down(x):
    x[:-1] = x[1:]


@on("f64[n]", "f64[n]R", n="7 6 2 0")
@on("i64[7]S")
def reverse_in_place(x):
    x[:] = x[::-1]


@on("f64[7]", "f64[7]R")
def reverse_onto_itself_by_its_view(x):
    v = x[::-1]
    v[1:4] = x[2:5]


@on("f64[n]", "f64[n]R", n="7 2 0")
@on("D[7]", D="f32 i64")
def accumulate_shifted(x):
    x[1:] += x[:-1]


@on("f64[7]", "f64[7]S", "i32[7]")
def subtract_reversed(x):
    x -= x[::-1]


@on("f64[n]", n="8 3 2")
@on("f64[8]L", L="R S")
def stencil_in_one_statement(u):
    u[1:-1] = u[:-2] - 2 * u[1:-1] + u[2:]


@on("f64[5,6]L", L="C F R S")
@on("f32[5,6]", "f64[3,3]", "f64[2,2]")
def stencil_in_two_dimensions(u):
    u[1:-1, 1:-1] += 0.1 * (
        u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    )


@on("f64[4,4]L", L="C F R S")
@on("i64[4,4]", "f64[1,1]", "f64[0,0]")
def transpose_in_place(a):
    a[:] = a.T


@on("f64[4,4]", "f64[4,4]F")
def add_the_transpose(a):
    a += a.T


@on("f64[4,5]", "f64[4,5]F", "f64[4,5]R")
def shift_rows_and_columns(a):
    a[1:, 1:] = a[:-1, :-1]
    a[:, :-2] = a[:, 2:]
    a[0] = a[-1]
    a[:, 0] = a[:, 1] * a[:, 2]


@on("f64[4,4]")
def broadcast_a_row_of_itself(a):
    a[:] = a[0]
    a[1:] += a[1]


@on("f64[4,4]")
def broadcast_a_column_of_itself(a):
    a *= a[:, 1:2]
    a[:] = a[:, :1] + a[0]


@on("f64[9] 1", "f64[9] 0", "f64[9] -2", "f64[9]R 3", "f64[9] 8")
def shift_by_an_amount_known_at_run_time(x, k):
    if k >= 0:
        x[k:] = x[: x.size - k]
    else:
        x[:k] = x[-k:]


@on("f64[8]", "f64[8]S")
def even_from_odd(x):
    x[::2] = x[1::2]
    x[1::2] *= x[::2]


@on("f64[8]")
def through_two_named_views(x):
    a = x[:5]
    b = x[2:7]
    a[:] = b
    b += a
    a[1:3] = b[:2] * a[2:4]


@on("f64[6]", "f64[6]R")
def elements_then_slices(x):
    for i in range(1, x.size):
        x[i] += x[i - 1]
    x[:3] = x[3:]
    x[2:] -= x[:-2]


@on("f64[7]")
def scalar_of_itself(x):
    x[:] = x[3]
    x += x[0]
    x *= x[-1]


@on("f64[7]")
def reduction_of_itself(x):
    x -= x.sum()
    x[1:] = x[:-1].max()


def one_array_twice():
    x = elements(np.float64, (6,))
    return x, x


def reversed_pair():
    x = elements(np.float64, (6,))
    return x, x[::-1]


def shifted_pair():
    x = elements(np.float64, (7,))
    return x[:-1], x[1:]


def shifted_back_pair():
    x = elements(np.float64, (7,))
    return x[1:], x[:-1]


def interleaved_pair():
    x = elements(np.float64, (12,))
    return x[::2], x[1::2]


def disjoint_pair():
    x = elements(np.float64, (12,))
    return x[:6], x[6:]


def strides_that_meet_once():
    x = elements(np.float64, (16,))
    return x[:6], x[5:16:2]


PAIRS = (
    one_array_twice,
    reversed_pair,
    shifted_pair,
    shifted_back_pair,
    interleaved_pair,
    disjoint_pair,
    strides_that_meet_once,
)


@on(*PAIRS)
def assign_between_arguments(x, y):
    x[:] = y


@on(*PAIRS)
def update_between_arguments(x, y):
    y += 2 * x
    x[1:] = y[:-1]


@on(*PAIRS)
def element_loop_between_arguments(x, y):
    for i in range(x.size):
        x[i] = 0.5 * y[i] + 1
        y[i] -= x[-1 - i]
    return y[0]


def matrix_and_its_transpose():
    a = elements(np.float64, (4, 4))
    return a, a.T


def matrix_and_its_rows_reversed():
    a = elements(np.float64, (4, 4))
    return a, a[::-1]


@on(matrix_and_its_transpose, matrix_and_its_rows_reversed)
def matrices_that_share_memory(a, b):
    a[:] = a + 2 * b
    b[1:] -= a[:-1]
    return (a * b).shape


def row_and_matrix():
    a = elements(np.float64, (4, 5))
    return a[2], a


@on(row_and_matrix)
def matrix_minus_its_row(row, a):
    a -= row
    row += a[0]


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("offset", range(9))
def test_every_offset_of_overlap(offset: int) -> None:
    def overlapping():
        x = elements(np.float64, (16,))
        return x[:8], x[offset : offset + 8]

    Case(update_between_arguments, overlapping).check()


def interleave(x, k):
    x[::k] = x[: x[::k].size]


@pytest.mark.parametrize("k", [2, 3])
def test_strides_that_differ(k: int) -> None:
    """As if copied first; NumPy itself reads what it has written where only the strides differ."""
    x = elements(np.float64, (9,))
    want = x.copy()
    want[::k] = x[: x[::k].size]
    compiled(interleave)(x, k)
    assert np.array_equal(x, want)


def column_from_row(m):
    m[:, 2] = m[1]


def row_from_column(m):
    m[1] = m[:, 2]


def copied_from_row(m):
    np.copyto(m[:, 2], m[1])


@pytest.mark.parametrize("function", [column_from_row, row_from_column, copied_from_row])
def test_rows_and_columns(function) -> None:
    m = elements(np.float64, (3, 3))
    want = m.copy()
    if function is row_from_column:
        want[1] = m[:, 2]
    else:
        want[:, 2] = m[1]
    compiled(function)(m)
    assert np.array_equal(m, want)


def weighted(m, w):
    m[:, 2] = m[1]
    return (w * m).sum()


def test_the_gradient_is_of_the_copied_row() -> None:
    m, w = elements(np.float64, (3, 3)), np.arange(1.0, 10.0).reshape(3, 3)
    want = w.copy()
    want[:, 2] = 0.0
    want[1] += w[:, 2]
    assert np.array_equal(compile(weighted, grad=True).grad(m, w), want)
