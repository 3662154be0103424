"""Element access, slices and views read and write what NumPy's do."""

import pytest
from python_oracle import Case, Programs

programs = Programs()
on = programs.on

EVERY_DTYPE = "f64 f32 i64 i32 b1"
EVERY_LAYOUT = "C F R S O"


@on("D[7]", D=EVERY_DTYPE)
@on("f64[7]L", L="R S O")
def element(x):
    return x[2]


@on("f64[7]", "f64[7]R", "i32[3]")
def negative_elements(x):
    return x[-1], x[-3]


@on("D[3,4]", D=EVERY_DTYPE)
@on("f64[3,4]L", L="F R S O")
@on("f64[1,4]")
def element_of_matrix(a):
    return a[0, -1], a[0][2]


@on("f64[2,3,4]L", L=EVERY_LAYOUT)
@on("i64[2,3,4]")
def element_of_cube(a):
    return a[1, 2, 3], a[-1, 0, -2]


@on("f64[3,4]", "f64[3,4]F", "f64[3,4]R")
def store_into_matrix(a):
    a[1, 2] = a[0, 3]
    a[-1, -1] = 5
    a[2][0] = -0.5


@on("D[5]", D=EVERY_DTYPE)
@on("f64[5]L", L="R S O")
def store_python_scalars(x):
    x[0] = 3
    x[1] = True
    x[-1] = 0


@on("D[5] 2.75", D=EVERY_DTYPE)
@on("D[5] -2.75", D="i64 i32")
@on("D[5] f32(0.1)", D="f64 f32")
@on("D[5] f64(0.1)", D="f64 f32")
@on("D[5] i64(7)", D=EVERY_DTYPE)
@on("D[5] b1(True)", D=EVERY_DTYPE)
@on("D[5] 7", D=EVERY_DTYPE)
def store_converts(x, v):
    x[3] = v


@on("D[7] D[7]", D="f64 f32 i64 i32")
def store_between_arrays(x, y):
    x[0] = y[1]
    y[-1] = x[2] + y[3]


@on("D[8]", D="f64 f32")
def augmented_elements_of_floats(x):
    x[0] += 2
    x[1] -= 0.5
    x[2] *= x[3]
    x[4] /= 3
    x[5] //= 0.3
    x[6] %= 0.3
    x[7] **= 2
    x[-1] += x[0]


@on("D[7]", D="i64 i32")
def augmented_elements_of_integers(x):
    x[0] += 2
    x[1] -= 5
    x[2] *= x[3]
    x[4] //= 3
    x[5] %= 3
    x[6] **= 2


@on("D[7]", D=EVERY_DTYPE)
@on("f64[7]L", L="R S O")
@on("D[1]", D="f64")
@on("f64[0]")
def slices_of_a_vector(x):
    return x[2:], x[:-1], x[::2], x[::-1], x[5:1:-2], x[-3:], x[:], x[10:], x[-100:3], x[4:2]


@on("f64[3,4]L", L=EVERY_LAYOUT)
@on("i32[3,4]")
@on("f64[1,4]")
@on("f64[0,4]", "f64[3,0]")
def slices_of_a_matrix(a):
    return a[1:], a[:, 1:3], a[::-1, ::2], a[:, -1], a[:2, :2], a[..., 0], a[..., 1:], a[:, None, 0]


@on("f64[2,3,4]L", L=EVERY_LAYOUT)
def slices_of_a_cube(a):
    return (
        a[1],
        a[:, 1],
        a[..., 2],
        a[1, :, ::-1],
        a[None, 0, ..., 1:2],
        a[:, :, 3],
        a[0, 1],
        a[...],
    )


@on("f64[4]", "f64[4]R", "i64[0]")
def new_axes(x):
    return x[None], x[:, None], x[None, :, None], x[None, ::2]


@on(
    "f64[7] 1 6 2",
    "f64[7] -1 -7 -3",
    "f64[7] 0 100 1",
    "f64[7]R 5 2 1",
    "i32[7] 3 3 1",
    "f64[0] 0 1 1",
)
def slices_known_at_run_time(x, i, j, k):
    return x[i:j:k], x[i:], x[:j], x[::k]


@on("f64[7]", "f64[7]R", "f32[7]")
def slice_of_a_slice(x):
    return x[1:][::2], x[::-1][1:4], x[1:-1][-1], x[::2][::-1][:2]


@on("D[7]", D=EVERY_DTYPE)
@on("f64[7]L", L="R S O")
@on("f64[2]")
def fill_a_slice(x):
    x[1:4] = 2
    x[::-3] = 1


@on("D[0]", D="f64")
@on("f64[1]")
def fill_everything(x):
    x[:] = 4
    x[...] = 2


@on("D[6] E[3]", D=EVERY_DTYPE, E=EVERY_DTYPE)
@on("f64[6]R f64[3]S")
def assign_slices_of_another_array(x, y):
    x[::2] = y
    x[1:3] = y[1:]
    x[-1:] = y[:1]


@on("f64[3,4] f64[4]", "f64[3,4]F f64[4]R", "f32[3,4] f64[4]", "f64[3,4]S f64[1]")
def assignment_broadcasts(a, x):
    a[:] = x
    a[0] = 3
    a[:, 1] = x[0]
    a[1:, :2] = x[:1]


@on("D[7]", D="f64 f32")
@on("f64[7]R", "f64[2]", "f64[0]")
def augmented_slices_of_floats(x):
    x += 1
    x[1:] *= 2
    x[::2] -= 0.5
    x[:3] /= 4
    x[2:4] **= 2
    x[:2] //= 0.25
    x[-2:] %= 0.3


@on("D[7]", D="i64 i32")
@on("i64[7]S", "i32[0]")
def augmented_slices_of_integers(x):
    x += 1
    x[1:] *= 2
    x[::2] -= 3
    x[2:4] **= 2
    x[:2] //= 2
    x[-2:] %= 3


@on("D[6] D[6]", D="f64 f32 i64 i32")
@on("f64[6]R f64[6]S", "f64[6] f32[6]", "f64[6] i64[6]", "f32[6] i32[6]O")
def augmented_by_an_array(x, y):
    x += y
    x[1:] -= y[:-1]
    x[::2] *= y[3:]


@on("f64[6]", "f64[6]R", "i64[6]")
def write_through_a_named_view(x):
    v = x[1:5]
    v[0] = 10
    v[1:] += 1
    w = v[::-1]
    w[0] = -1
    w[1:] *= x[:3]
    return v[0] + x[4]


@on("f64[3,4]L", L=EVERY_LAYOUT)
def write_through_a_transposed_view(a):
    t = a.T
    t[0, 1] = 5
    t[1] = 2
    t[2:, ::2] *= 3
    r = t[::-1]
    r[0, 0] = 8
    return t.shape, a.shape


@on("f64[3,4]", "f64[3,4]F", "i32[3,4]S", "f64[1,1]")
def rows_and_columns_are_views(a):
    row = a[0]
    column = a[:, -1]
    row[0] = 7
    column += 1
    column[0] = row[0]


@on("f64[4,4] f64[2,2]", "f64[4,4]F f64[2,2]R", "f32[4,4] f64[2,2]T")
def assign_a_block(b, a):
    b[:2, :2] = a
    b[2:, 2:] += a.T
    b[::3, ::3] = a[::-1]


@on("f64[3,4]L", L=EVERY_LAYOUT)
@on("i32[3,4]", "b1[3,4]F", "f64[0,4]", "f64[1,4]", "f64[5]", "f64[2,3,4]")
def attributes(a):
    return a.shape, a.size, a.ndim, len(a), a.T


@on("D[3,4]", D=EVERY_DTYPE)
@on("f64[3,4]L", L="F R S")
@on("f64[0]", "f64[1]")
def copies_are_fresh(a):
    b = a.copy()
    b[0:1] = 1
    a[0:1] = 0
    return b


@on("D[5]", D=EVERY_DTYPE)
@on("f64[3,4]L", L="F R S")
@on("f64[0]")
def fill(x):
    x.fill(2)
    x[:2].fill(0)


@on("D[5] 2.5", D=EVERY_DTYPE)
def fill_converts(x, v):
    x.fill(v)


@on("f64[5]", "i32[3,4]")
def the_argument_itself_is_returned(x):
    x[0] = 1
    return x


@on("f64[5] f64[5]")
def arguments_and_views_are_returned(x, y):
    return y, x[1:], x, y[::-1], x[2]


@on("f64[3,4] i64(1) i32(-2)", "f64[3,4] 1 True")
def numpy_integers_index(a, i, j):
    return a[i], a[i:], a[0, j:]


@on("f64[9] i64[4]:pos", "f64[9]R i32[4]:pos")
def loaded_integers_index(x, index):
    s = 0.0
    for k in index:
        s += x[k]
        x[k] = s
    return s


@on("f64[]")
def rank_zero(x):
    x[()] = x[()] + 1
    x[...] = x * 2
    x += 1
    return x[()]


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()
