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


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()
