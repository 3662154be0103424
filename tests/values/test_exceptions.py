"""What raises in Python raises the same here, leaves arrays as Python leaves them, and names the line."""

import numpy as np
import pytest
from argument_rows import make_arguments
from python_oracle import Case, Programs, compiled

programs = Programs()
on = programs.on


@on("f64[7] I", I="7 -8 100 -100 9223372036854775807 -9223372036854775808")
@on("i32[0] 0", "f64[0] -1", "f64[1] 1", "f64[7]R 7", "f64[7] i64(7)", "f64[7] i32(-9)")
def load(x, i):
    return x[i]


@on("f64[7] I", I="7 -8")
@on("f64[0] 0")
def store(x, i):
    x[0 if x.size > 0 else i] = 5
    x[i] = 1


@on(
    "f64[3,4] 3 0",
    "f64[3,4] 0 4",
    "f64[3,4] -4 0",
    "f64[3,4] 0 -5",
    "f64[3,4]F 9 9",
    "f64[3,4]R 2 4",
)
def load_from_a_matrix(a, i, j):
    return a[i, j]


@on("f64[3,4] 3", "f64[3,4] -4", "f64[0,4] 0")
def row(a, i):
    return a[i]


@on("f64[3,4] 4", "f64[3,4] -5")
def column(a, j):
    return a[:, j]


@on("f64[5] 7", "f64[5] 5", "f64[5] 6")
def loop_that_runs_out(x, n):
    for i in range(n):
        x[i] = 2 * i
    return x[0]


@on("f64[5] 3", "f64[5] 0", "f64[5] -7")
def loop_that_runs_out_below(x, k):
    for i in range(4, k - 9, -1):
        x[i] += 1
    return x[0]


@on("f64[5] f64[3]", "f64[3] f64[5]")
def second_array_runs_out(x, y):
    for i in range(x.size):
        x[i] = i
        x[i] += y[i]


@on("f64[6] i64[4]", "f64[6] i32[4]#3", "f64[2] i64[4]:pos")
def indices_from_an_array(x, index):
    for k in range(index.size):
        x[index[k]] += 1.0


@on(
    "f64[4] f64[3]",
    "f64[2] f64[0]",
    "f64[4] f64[2]",
    "f64[3,4] f64[3]",
    "f64[3,4] f64[4,3]",
    "f64[2,3] f64[2,2,3]",
)
def shapes_that_do_not_broadcast(x, y):
    x[0] = 1
    return x + y


@on("f64[4] f64[3]", "f64[3,4] f64[3]", "f64[4] f64[2,4]", "f64[0] f64[2]")
def shapes_that_cannot_be_assigned(x, y):
    y[0] = 1
    x[:] = y


@on("f64[4] f64[3]", "f64[4] f64[3,4]", "f64[1] f64[3]", "f64[3,4] f64[3]")
def shapes_that_cannot_be_added_in_place(x, y):
    y[0] = 1
    x += y


@on("f64[6] 2 5", "f64[6] 0 2", "f64[6] 4 6")
def slices_of_other_lengths(x, i, j):
    x[0] = 1
    x[:3] = x[i:j]


@on("f64[3] f64[4]", "f64[0] f64[1]")
def inner_product(x, y):
    return x @ y


@on("f64[3,4] f64[3]", "f64[3,4] f64[5]")
def matrix_times_vector(a, x):
    return a @ x


@on("f64[3] f64[4,2]")
def vector_times_matrix(x, a):
    return x @ a


@on("f64[3,4] f64[3,4]", "f64[3,4] f64[5,2]")
def matrix_product(a, b):
    return a @ b


@on("f64[0]", "f64[0,3]", "i64[0]")
def maximum_of_nothing(x):
    return x.max()


@on("f32[0]")
def minimum_of_nothing(x):
    return np.min(x)


@on("f64[3,0]")
def maximum_along_an_empty_axis(a):
    return a.max(axis=1)


@on("f64[0]")
def mean_of_nothing_is_nan(x):
    return x.mean()


@on("-1", "-5")
def negative_dimension(n):
    return np.zeros(n)


@on("3 -1")
def negative_dimension_of_a_matrix(n, m):
    return np.ones((n, m))


@on("f64[5] 0")
def slice_step_zero(x, k):
    return x[::k]


@on("f64[3] 2", "f64[3] 5")
def order_of_effects(x, i):
    x[0] = 10
    x[1] = 1 / (i - 2)
    x[2] = x[i]


@on("f64[4]", "f64[2]", "f64[3]")
def unpack_a_row(x):
    a, b, c = x
    return a + b * c


@on("i64[3] -1")
def integers_to_negative_powers(x, n):
    return x**n


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()


@pytest.mark.parametrize(
    ("function", "row"),
    [
        (load, "f64[7] 7"),
        (loop_that_runs_out, "f64[5] 7"),
        (shapes_that_do_not_broadcast, "f64[4] f64[3]"),
    ],
)
def test_an_exception_names_the_line(function, row) -> None:
    """Whoever reads the traceback finds file and line of the Python statement."""
    with pytest.raises((IndexError, ValueError)) as caught:
        compiled(function)(*make_arguments(row))
    code = function.__code__
    lines = {line for _, _, line in code.co_lines() if line is not None}
    told = "\n".join([*getattr(caught.value, "__notes__", []), *map(str, caught.traceback)])
    assert __file__ in told, told
    assert any(f"{__file__}:{line}:" in told for line in lines), told


def test_an_exception_leaves_what_was_stored() -> None:
    x = np.zeros(5)
    with pytest.raises(IndexError):
        compiled(loop_that_runs_out)(x, 7)
    assert (x == [0, 2, 4, 6, 8]).all()


def test_the_function_works_after_an_exception() -> None:
    for _ in range(3):
        with pytest.raises(IndexError):
            compiled(load)(np.zeros(3), 3)
        assert compiled(load)(np.arange(3.0), 2) == 2.0
