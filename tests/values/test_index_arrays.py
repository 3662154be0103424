"""Index arrays and masks as subscripts read and write what NumPy's do, and raise what it raises."""

import numpy as np
import pytest
from python_oracle import Case, Programs

programs = Programs()
on = programs.on


def numbers(dtype=float, layout=np.ascontiguousarray):
    return layout((np.arange(12.0).reshape(3, 4) - 5).astype(dtype))


def reversed_in_memory(a):
    return a[::-1, ::-1].copy()[::-1, ::-1]


def vector_and(*indices, dtype=np.int64):
    """Rows of a vector of five and index arrays."""
    return lambda: (np.arange(5.0) - 1.5, *(np.array(i, dtype) for i in indices))


def vector_indices_and_values(*index):
    return lambda: (np.arange(5.0), np.array(index, np.int64), np.arange(1.0, len(index) + 1))


def matrix_and(*indices, dtype=float, layout=np.ascontiguousarray, integers=np.int64):
    return lambda: (numbers(dtype, layout), *(np.array(i, integers) for i in indices))


# Reading


@on(vector_and([0, 2, -1, 2]), vector_and([]), vector_and([[0, 1], [4, -5]]))
@on(vector_and([0, 2, -1, 2], dtype=np.int32), vector_and([5]), vector_and([0, -6, 9]))
@on("f32[7]R i64[5]:pos", "i32[7]S i32[5]S:pos", "b1[7] i64[1]:pos", "f64[0] i64[0]")
def elements(x, i):
    return x[i], x[i] + x[i]


@on(matrix_and([2, 0, 2, -1]), matrix_and([2, 0], layout=np.asfortranarray), matrix_and([3]))
@on(matrix_and([0, -1], layout=reversed_in_memory), matrix_and([]), matrix_and([-4]))
@on(matrix_and([[0, 1], [2, 0]], dtype=np.int32))
def rows_and_columns(a, i):
    return a[i], a[:, i], a[i, 1:], a[1, i], a[i, 1], a[i, ::-2], a[None, i], a[..., i]


@on(matrix_and([2, 0, 2], [3, 0, -1]), matrix_and([2], [3, 0, -1]), matrix_and([0, 1], [0, 1, 2]))
@on(matrix_and([0, 7], [9, 0]), matrix_and([[0], [2]], [1, 3]), matrix_and([0], [4]))
def pairs(a, i, j):
    return a[i, j]


@on("f64[6,7,8] i64[3]:pos i64[3]:pos#1")
def index_arrays_apart_go_first(a, i, j):
    return a[i, :, j], a[i, None, j], a[:, i, j], a[1, :, j], a[1, 2:, j], a[i, j]


@on("f64[6,7,8] i64[3]:pos", "f32[6,7,8]F i64[2,2]:pos")
def of_a_view(a, i):
    return a[1:, ::-1, i], a.T[i, 1], a[2][i]


@on("f64[5,6]")
def written_out(a):
    return a[[0, -1]], a[[1, 2], [0, 3]], a[:, [2]], a[[]]


@on(matrix_and([2, 0], [0, 3]))
def of_an_expression(a, i, j):
    return (a * 2)[i], a[i + 0], a[np.arange(3), -1]


@on(matrix_and([2, 0]), matrix_and([7]))
def taken(a, i):
    return np.take(a, i, axis=0), np.take(a[0], i), a.take(i, axis=-1), np.take(a, 1, axis=1)


@on("D[7]", "D[3,4]", D="f64 f32 i64 i32 b1")
@on("f64[3,4]L", L="F R S")
@on("f64[0]", "f64[1]", "f64[0,3]")
def by_a_mask(x):
    return x[x > 0], x[x > 100], x[x == x]


@on("f64[3,4]", "f32[4,4]F", "f64[1,4]", "f64[0,4]")
def by_a_mask_of_rows(a):
    return a[a[:, 0] > 0], a[a[:, 0] > 0, 1], a[:, a[0] > 0]


@on("f64[7]", "i64[3,4]", "b1[5]", "f64[0]", "f64[2,3,4]")
def where_true(x):
    return np.nonzero(x), np.where(x > 0), x.nonzero()


@on("f64[7]", "f64[0]")
def flat_where_true(x):
    return np.flatnonzero(x > 0), x[np.flatnonzero(x > 0)]


@on("f64[5] b1[5]", "f64[5] b1[4]", "f64[5] b1[6]", "f64[0] b1[3]")
def mask_of_an_argument(x, m):
    return x[m]


# Writing


@on(vector_indices_and_values(0, 2, -1, 2), vector_indices_and_values())
@on(vector_indices_and_values(0, 0, 0), vector_indices_and_values(1, 7))
def stored(x, i, v):
    x[i] = v
    x[i] = x[i] * 2
    x[i] = 7


@on(vector_indices_and_values(0, 2, -1, 2), vector_indices_and_values(1, 1, 1))
def the_last_of_equal_subscripts_wins(x, i, v):
    x[i] += v
    x[i[::-1]] *= v
    x[i] -= 1


@on(vector_indices_and_values(0, 2, -1, 2), vector_indices_and_values(1, 7))
@on(vector_indices_and_values())
def ufunc_at_takes_all(x, i, v):
    np.add.at(x, i, v)
    np.subtract.at(x, i, v[0:1])
    np.multiply.at(x, i, 1.5)
    np.maximum.at(x, i, v)
    np.minimum.at(x, i, v * 2)


@on(matrix_and([0, 0, 2, 0], [1, 1, 3, 1]))
def ufunc_at_pairs_rows_and_elements(a, i, j):
    np.add.at(a, (i, j), a[0])
    np.add.at(a, i, a[1])
    np.subtract.at(a, (0, i), 1.0)
    np.add.at(a, (1, 2), 5.0)
    np.add.at(a, a > 3, 0.5)


@on(vector_indices_and_values(0, 2))
def values_of_more_axes_than_ufunc_at_selects(x, i, v):
    x[0] = 1.0
    try:
        np.add.at(x, i, v[None, :])
    except ValueError as error:
        print(error)
    try:
        np.add.at(x, slice(0, 2), v[None, :])
    except ValueError as error:
        print(error)
    np.add.at(x, 1, v[:1])


@on(matrix_and([0, 2]), matrix_and([0, 2], layout=np.asfortranarray), matrix_and([1, 1]))
@on(matrix_and([0, 2], dtype=np.int32), matrix_and([0, 3]))
def rows_stored(a, i):
    a[i] = a[0] * 2
    a[i, 1:] = a[1, :3]
    a[:, i] = a[:, 1:3]
    a[i, 0] = 2.5
    a[i] = a[i[::-1]]


@on(matrix_and([0, 2]), matrix_and([1, 1], layout=np.asfortranarray))
def rows_updated(a, i):
    a[i, 1:] *= 2
    a[:, i] += a[:, 2:]
    a[i] -= a[0]


@on(matrix_and([[0, 1], [0, 2]]), matrix_and([[0, 1], [3, 2]]))
def stored_by_two_dimensions(a, i):
    a[0, i] = a[1, :2]
    a[i] = 1
    a[1, i] += a[:2, :2]


@on(matrix_and([2, 0, 2], [3, 0, 3]))
def stored_by_index_arrays_of_two_axes(a, i, j):
    a[i[:, None], j] = a[:, :3]
    np.add.at(a, (i[:, None], j), 1.0)


@on(lambda: (np.array([1, 2, 0, 3]),))
def indexed_by_itself(i):
    i[i] = i[::-1]
    i[i] += i


@on(vector_indices_and_values(0, 1, 2), vector_indices_and_values(0, 1))
@on(vector_indices_and_values(0))
def values_that_do_not_fit(x, i, v):
    x[i] = x[:3]


@on(vector_indices_and_values(0, 1, 2), vector_indices_and_values(0, 1))
def values_that_do_not_fit_at(x, i, v):
    np.add.at(x, i, x[:3])


@on(vector_indices_and_values(0, 7))
def nothing_is_stored_where_a_subscript_is_out_of_range(x, i, v):
    x[i] = v


@on(lambda: (np.arange(4), np.array([0, 1, 1]), np.array([0.5, 1.5, -2.5])))
def converted(x, i, v):
    x[i] = v
    x[i[1:]] = 3.75 * v[1:]


@on("D[7]", "D[3,4]", D="f64 f32 i64 i32")
@on("f64[3,4]L", L="F R S")
@on("f64[0]", "f64[1]")
def number_through_a_mask(x):
    x[x > 1] = 1
    x[x < 0] *= 2
    x[x == 0] += 3


@on("f64[7]", "f64[3,4]F", "f32[5]S", "f64[0]")
def array_through_a_mask(x):
    x[x > 0] = x[x > 0] ** 2
    x[x < 0] += x[x < 0]


@on("f64[7] f64[7]#1", "f64[7] f64[2]", "f64[7] f64[1]", "f64[7] f64[0]", "f64[0] f64[0]")
def as_many_values_as_the_mask_names(x, y):
    x[x > 0] = y


@on("f64[3,4]", "f64[4,4]F", "f64[0,3]")
def rows_through_a_mask(a):
    rows = a[:, 0] > 0
    a[rows] = a[0]
    a[rows] *= 2
    a[rows, 1] = -1
    a[~rows] = 0


@on("f64[5] b1[4]", "f64[5] b1[5]")
def number_through_a_mask_of_an_argument(x, m):
    x[m] = 0
    x[m] += 1


@on(
    "f64[4,4] i64[3]:pos",
    "f32[9,9]F i32[4]:pos",
    "f64[4,4] u8[3]",
    "f64[7,7] i64[0]",
    "f64[3,3] i64[2]#1",
)
def open_mesh(a, i):
    a[np.ix_(i, i)] += 1.5
    np.add.at(a, np.ix_(i, [0, -1, 0]), 0.5)
    a[np.ix_(a[0] > 0, i)] = 2.0
    rows, columns = np.ix_(i, i[::-1])
    return a[np.ix_(i[::-1], [True] * a.shape[1])], rows + columns


@on("f64[4,4] i64[3]:pos", "f64[4,4] i64[3,1]")
def open_mesh_of_vectors(a, i):
    return a.reshape(2, 2, -1)[np.ix_([0, 1], [1], i)]


@on("f64[6] 4", "f64[0] 2")
def masks_in_a_loop(x, n):
    total = 0.0
    for k in range(n):
        chosen = x[x > 0.2 * k]
        total += chosen.sum()
        x[x > 0.2 * k] = chosen * 0.5
    return total


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()
