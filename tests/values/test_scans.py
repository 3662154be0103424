"""Running sums and products: `axis=`, `dtype=` and `out=` as NumPy has them, of arrays of any layout."""

import numpy as np
import pytest
from python_oracle import Case, Programs

programs = Programs()
on = programs.on


@on("D[6]", D="f64 f32 i64 i32 b1")
def with_dtypes(x):
    small, whole = np.empty(6, np.float32), np.empty(6, int)
    found = (
        np.cumsum(x),
        np.cumsum(x, 0, np.float32),
        np.cumprod(x, dtype=float),
        np.cumsum(x, out=small),
        np.cumsum(x, dtype=np.float64, out=np.empty(6, np.float32)),
        np.cumprod(x > 0, out=np.empty(6, bool)),
        np.cumsum(x > 0, dtype=float),
        np.cumsum(np.rint(1.0 * x), out=whole),
        x.cumsum(out=np.empty(6)),
        np.nancumsum(x, out=np.empty(6)),
    )
    return (*found, small, whole)


@on("f64[3,4]L", L="C F R S T O")
@on("f64[1,4]", "f64[0,4]")
def along_axes(a):
    out = np.empty(a.shape)
    rows = np.cumsum(a, axis=1, out=out)
    rows += 1
    return out, a.cumprod(0, None, np.empty(a.shape)), np.cumsum(a.T, out=np.empty(a.size))


@on("f64[6] 2", "f64[6]R 0", "f64[8]S 3")
def into_what_is_read(x, i):
    y = x.copy()
    np.cumsum(y, out=y)
    np.cumprod(y[::-1][i:], out=y[: y.size - i])
    np.cumsum(x[:-1], out=x[1:])
    return y, x.cumsum(0, out=x[::-1])


@on("f64[6] 2", "f64[6]S 0", "f64[1] 1")
def of_slices_whose_strides_nobody_knows(x, i):
    y = x[::-1][i:]
    m = np.outer(x, x)[:, ::-1][i:]
    copies = np.cumsum(y), np.sort(y), np.repeat(y, 2), np.roll(y, 1), np.append(y, 2.0), np.diff(y)
    return copies, np.cumsum(m), np.roll(m, 1), np.sort(m.T, axis=None), np.unique(y)


@on("f64[6] 5", "f64[6] 6", "f64[6] 0", "f64[0] 2")
def of_the_wrong_size(x, n):
    return np.cumsum(x, out=np.ones(n))


@on("f64[6]")
def into_no_array(x):
    return np.cumprod(x, out=2.0)


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()
