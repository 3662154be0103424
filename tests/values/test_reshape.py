"""`reshape`, `ravel` and `flatten` view and copy where NumPy's do."""

import numpy as np
import pytest
from python_oracle import Case, Programs

programs = Programs()
on = programs.on


@on("D[6]", D="f64 f32 i64 i32 b1")
@on("f64[6]L", L="R S O")
@on("f64[0]", "f64[1]", "f64[5]", "f64[12]")
def vector_in_another_shape(x):
    return x.reshape(2, -1), x.reshape((-1, 2)), np.reshape(x, (1, -1, 1)), x.reshape(-1)


@on("f64[6] 2 3", "f64[6]R 3 2", "f64[6] 2 2", "f64[6] 6 1", "f64[0] 0 4", "f64[0] 3 3")
@on("f64[0] 0 0")
def numbers_of_rows_and_columns(x, n, m):
    y = x.reshape(n, m)
    return y, y.T, y[-1]


@on("f64[6] 2", "f64[6] 4", "f64[6] 0", "f64[0] 3")
def one_extent_left_out(x, n):
    return x.reshape(-1, n)


@on("f64[6] 2", "f64[6] 4")
def one_extent_in_the_middle_left_out(x, n):
    return x.reshape(n, -1, 1)


@on("f64[6]", "f64[6]R", "f32[8]S", "i64[2]")
def stored_through_a_reshape(x):
    y = x.reshape(2, -1)
    y[0] = 7
    y[:, -1] *= 2
    y.T[0, 1] = x[0] + 1
    return x.sum()


@on("f64[6]", "f64[6]R", "f64[12]S")
def overlap_within_a_reshape(x):
    y = x.reshape(2, -1)
    y[:, 1:] = y[:, :-1]
    y[1] += x[: y.shape[1]]
    x[:] = y.T.flatten()
    x[1:] = x[:-1]


@on("f64[3,4]L", L="C F R S T O")
@on("f64[1,4]", "f64[0,4]", "i32[2,3,2]", "f64[5]", "f64[5]R")
def flattened(a):
    return a.flatten(), (a * 2).reshape(-1), (a + 1).ravel(), (a > 0).reshape(1, -1)


@on("f64[5]", "f64[1]", "f64[0]", "f64[4,1]", "f64[1,4]", "f64[4,1]F")
@on("f64[3,4]F", "f32[2,3,2]F")
def ravelled(a):
    b = a.ravel()
    b[:1] = 5
    return b, a


@on("f64[4,1]", "f64[1,4]", "f64[1,1]", "f32[1,6,1]")
def units_dropped(a):
    b = a.reshape(-1)
    b[0] = 3
    return b, a.reshape(1, 1, -1)


@on("f64[10]")
def parameters_unpacked(theta):
    w = theta[:6].reshape(2, 3)
    b = theta[6:8]
    return w @ theta[7:] + b


@on("f64[6] 3", "f64[6]S 2")
def views_of_a_reshape_that_move(x, n):
    v = x.reshape(2, 3)
    for k in range(n):
        v[0, 0] += k
        v = v[:, ::-1]
    w = x.reshape(3, 2)
    for k in range(n):
        w[-1, -1] *= 2
        w = w[: 3 - k]
    return v


@on("f64[3,4]C", "f64[2,3,4]C", "f64[1,4]C", "f64[4,1]C", "f64[0,4]C", "i32[2,1,3]C")
@on("f64[2,3]F", "f64[2,3]T", "f64[3,1]F", "f32[2,3,2]F")
def rows_put_together(a):
    b = a.reshape(-1)
    b[:1] = 5
    return b, a


@on("f64[2,3,4]L", L="C F")
@on("f64[2,1,4]", "f64[0,3,4]")
def some_dimensions_put_together(a):
    b = a.reshape(a.shape[0] * a.shape[1], -1)
    b[-1:] += 1
    c = a.reshape(a.shape[0], -1)
    c[:, 0] *= 2
    d = a.reshape((-1, a.shape[2]))
    d[:1] -= 1
    return b, c, d


@on("f64[4,6] 3 8", "f64[4,6] 5 5", "f64[4,6] -1 8", "f64[4,6] 2 -1", "f64[4,6] -1 -1")
@on("f64[4,6]F 3 8", "f64[4,6] -3 5", "f64[4,6] 0 -1", "f64[0,6] 0 -1", "f64[0,6] -1 2")
def numbers_that_may_be_minus_one(a, p, q):
    b = a.reshape(p, q)
    b[:1] = 3
    return b


@on("f64[4,6] 3", "f64[4,6] -1", "f64[4,6] 5")
def minus_one_in_one_iteration(a, p):
    s = 0.0
    for k in range(2):
        b = a.reshape(p - 4 * k, 8)
        b[0] *= 2
        s += b[-1, -1]
    return s


@on("f64[4,6]C", "f64[4,3]C", "f64[2,6]C", "f64[1,6]C", "f64[4,1]C")
def slices_put_together(a):
    b = a[1:].reshape(-1)
    c = a[:, 1:].reshape(-1)
    d = a[::-1, ::-1].reshape(-1)
    e = a[:, ::-1].reshape(-1)
    b[:1] += 1
    c[:1] += 2
    d[:1] += 3
    e[:1] += 4
    return b, c, d, e


@on(
    "f64[4,6] 3",
    "f64[4,6] 6",
    "f64[4,6] 1",
    "f64[4,1] 1",
    "f64[1,6] 2",
    "f64[4,6]F 1",
    "f64[4,6]F 6",
)
@on("f64[4,2] 2", "f64[2,2]F 1")
def chosen_at_run_time(a, k):
    b = a[:, :k].reshape(-1)
    b[:1] += 7
    c = a.T[1:].ravel()
    c[:1] += 1
    d = a[:, 1:].reshape(-1)
    d[:1] += 3
    return b * 1, c * 1, d * 1


@on("f64[4,6]L", "f64[5]L", "f64[5,2]L", "f64[1,5]L", "f64[5,1]L", "f64[2,2,3]L", L="C F S R O")
def elements_in_a_row(a):
    b = a.ravel()
    c = a.T.ravel()
    d = a.ravel(order="F")
    e = np.ravel(a[::-1])
    b[:1] += 1
    c[:1] += 2
    d[:1] += 4
    e[:1] += 8
    return b * 1, c * 1, d * 1, a.flatten("F"), a.flatten(order="C")


@on("f64[4,6]L", "f64[2,3,4]L", "f64[2,2]L", L="S R O F")
def arrays_with_gaps(a):
    b = a.reshape(-1)
    c = a.reshape(2, -1)
    b[:1] += 1
    c[1] *= 2
    return b * 1, c * 1


def every_second() -> tuple[np.ndarray]:
    return (np.arange(24.0).reshape(3, 8)[:, ::2],)


def last_of_three() -> tuple[np.ndarray]:
    return (np.arange(24.0).reshape(3, 4, 2)[:, :, 1],)


@on(every_second, last_of_three)
def steps_that_go_on(a):
    b = a.reshape(-1)
    c = a.reshape(6, 2)
    b[3] = 50
    c[2] += 2
    return c * 1


@on("f64[4,6]C", "f64[4,6]F", "f64[6,4]C")
def columns_first(a):
    b = a.reshape(3, -1, order="F")
    b[0, 0] += 5
    c = np.reshape(a, (-1, 8), order="F")
    c[1] *= 2
    return b * 1, c * 1


@on("f64[4,6]")
def one_reshape_of_another(a):
    b = a.reshape(2, 2, 6).reshape(-1, 3).reshape(4, 6)
    b[1] = 0
    c = a[1:3].reshape(3, 4)
    c[:, 1:] = c[:, :-1]
    a.reshape(-1)[1:] = a.reshape(-1)[:-1]
    return b, c


@on("f64[4,6]")
def moved_along_rows(a):
    flat = a.reshape(-1)
    a[1] = flat[:6] + flat[18:]
    flat[4:8] = a[2, 1:5]
    for row in a.reshape(8, 3):
        row[1:] += row[:-1]
    return flat


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()
