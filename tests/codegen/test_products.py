"""Products agree with NumPy's for every layout."""

from __future__ import annotations

import numpy as np
import pytest

LAYOUTS = {
    "C": lambda x: np.ascontiguousarray(x),
    "F": lambda x: np.asfortranarray(x),
    "rows backwards": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "columns backwards": lambda x: np.ascontiguousarray(x[:, ::-1])[:, ::-1],
    "gaps": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "part": lambda x: np.pad(x, 2)[2:-2, 2:-2],
}


def product(type_: str, accumulate: bool) -> str:
    s = f"memref<?x?x{type_}, strided<[?, ?]>>"
    extra = "accumulate " if accumulate else ""
    return f"""
func.func @f(%a : {s}, %b : {s}, %c : {s}) {{
  array.matmul %a, %b into %c {extra}: {s}, {s}, {s}
  func.return
}}
"""


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("sizes", [(3, 4, 5), (20, 30, 10), (1, 30, 20), (20, 30, 1), (1, 30, 1),
                                   (20, 1, 30), (0, 3, 4), (3, 0, 4), (12, 12, 0), (30, 1, 256),
                                   (30, 1, 257), (257, 1, 256)])  # fmt: skip
@pytest.mark.parametrize("la", LAYOUTS)
@pytest.mark.parametrize("lb", ["C", "F", "gaps", "rows backwards"])
def test_doubles(compile_kernel, la, lb, sizes, accumulate):
    n, k, m = sizes
    rng = np.random.default_rng(0)
    a, b = LAYOUTS[la](rng.normal(size=(n, k))), LAYOUTS[lb](rng.normal(size=(k, m)))
    for lc in ("C", "F", "gaps"):
        c = LAYOUTS[lc](rng.normal(size=(n, m)))
        expected = a @ b + (c if accumulate else 0)
        if not accumulate:
            c[:] = np.nan
        assert compile_kernel(product("f64", accumulate))(a, b, c).status == 0
        np.testing.assert_allclose(c, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sizes", [(3, 1), (1, 3), (1, 1), (20, 1), (1, 20), (20, 30)])
def test_sums_of_no_products(compile_kernel, layout, sizes):
    """Factors that are parts of others: what lies behind their last element is not theirs."""
    n, m = sizes
    a, b = LAYOUTS[layout](np.full((n, 4), 7.0))[:, :0], LAYOUTS[layout](np.full((4, m), 5.0))[:0]
    for accumulate in (False, True):
        c = np.ones((n, m))
        assert compile_kernel(product("f64", accumulate))(a, b, c).status == 0
        np.testing.assert_array_equal(c, np.full((n, m), float(accumulate)))


@pytest.mark.parametrize("type_", ["f32", "i32", "i64", "i1"])
@pytest.mark.parametrize("sizes", [(3, 4, 5), (20, 30, 10), (1, 30, 20), (20, 30, 1)])
def test_other_dtypes(compile_kernel, type_, sizes):
    n, k, m = sizes
    dtype = {"f32": np.float32, "i32": np.int32, "i64": np.int64, "i1": np.bool_}[type_]
    rng = np.random.default_rng(0)
    a, b = (
        (10 * rng.normal(size=(n, k))).astype(dtype),
        (10 * rng.normal(size=(k, m))).astype(dtype),
    )
    c = np.zeros((n, m), dtype)
    assert compile_kernel(product(type_, False))(a, b, c).status == 0
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("layout", ["C", "F", "gaps"])
def test_sums_of_outer_products_keep_what_is_not_a_number(compile_kernel, layout):
    """A derivative that is NaN shows a pattern, whatever it is multiplied with."""
    a, b = np.zeros((20, 1)), np.ones((1, 30))
    b[0, 3], a[4] = np.nan, np.inf
    c = LAYOUTS[layout](np.ones((20, 30)))
    expected = c + a @ b
    kernel = compile_kernel(product("f64", True))
    assert kernel(a, b, c).status == 0
    np.testing.assert_array_equal(c, expected)
    assert "mutad_dger" in kernel.text
