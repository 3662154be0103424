"""The matrix product of our own: what it computes, and what it leaves to BLAS."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mutad import compile
from mutad.runtime import blas, entry_code, gemm, native_code
from mutad.runtime.gemm_text import INNER, Range

CALLED = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)
COUNTS = ctypes.CFUNCTYPE(ctypes.c_int)


class Gemm:
    """The code for one type, with a BLAS that computes nothing and a number of threads to say."""

    def __init__(self, letter: str) -> None:
        self.dtype, self.number = {
            "d": (np.float64, ctypes.c_double),
            "s": (np.float32, ctypes.c_float),
        }[letter]
        self.left, self.threads = 0, 1
        self.kept = CALLED(self.leave), COUNTS(lambda: self.threads)
        theirs, threads = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in self.kept)
        self.code = CALLED(gemm.made(letter, theirs, threads, Range(0, {1: 1 << 40, 2: 20**3})))

    def leave(self, *_: Any) -> None:
        self.left += 1

    def __call__(
        self, a: Any, b: Any, c: Any, transposed: str = "NN", alpha: float = 1.0, beta: float = 0.0
    ) -> bool:
        """Compute into `c`; whether BLAS was called instead. Matrices lie by columns."""
        m, n = c.shape
        k = a.shape[1] if transposed[0] == "N" else a.shape[0]
        leading = [x.strides[1] // x.itemsize for x in (a, b, c)]
        ints = [ctypes.c_int(x) for x in (m, n, k, *leading)]
        letters = [ctypes.c_char(t.encode()) for t in transposed]
        factors = [self.number(alpha), self.number(beta)]
        at = [ctypes.addressof(x) for x in (*letters, *ints[:3], factors[0])]
        at += [a.ctypes.data, ctypes.addressof(ints[3]), b.ctypes.data, ctypes.addressof(ints[4])]
        at += [ctypes.addressof(factors[1]), c.ctypes.data, ctypes.addressof(ints[5])]
        before = self.left
        self.code(*at)
        return self.left > before


@pytest.fixture(scope="module", params=["d", "s"])
def product(request: pytest.FixtureRequest) -> Gemm:
    return Gemm(request.param)


SIZES = (
    *(
        (6, 4, 4),
        (7, 5, 9),
        (24, 8, 16),
        (25, 9, 17),
        (23, 7, 15),
        (48, 16, 33),
        (50, 3 * 8 + 1, 11),
    ),
    *((30, 12, INNER), (30, 12, INNER + 1), (31, 13, 2 * INNER + 5)),
)


def matrix(rng: np.random.Generator, rows: int, columns: int, dtype: Any) -> Any:
    """By columns, which lie further apart than they are long."""
    return np.asfortranarray(rng.normal(size=(rows + 3, columns)).astype(dtype))[1 : 1 + rows]


@pytest.mark.parametrize("transposed", ["NN", "NT", "TN", "TT"])
def test_it_is_the_product(product: Gemm, transposed: str) -> None:
    rng = np.random.default_rng(0)
    for m, n, k in SIZES:
        a = matrix(rng, *((m, k) if transposed[0] == "N" else (k, m)), product.dtype)
        b = matrix(rng, *((k, n) if transposed[1] == "N" else (n, k)), product.dtype)
        whole = np.asfortranarray(rng.normal(size=(m + 3, n)).astype(product.dtype))
        expected = (a if transposed[0] == "N" else a.T) @ (b if transposed[1] == "N" else b.T)
        for beta in (0.0, 1.0):
            given = whole.copy(order="F")
            c = given[1 : 1 + m]
            if not beta:
                c[...] = np.nan  # nobody reads it
            total = expected + beta * whole[1 : 1 + m]
            assert not product(a, b, c, transposed, beta=beta)
            tolerance = 1e-12 if product.dtype is np.float64 else 2e-4
            np.testing.assert_allclose(c, total, rtol=tolerance, atol=tolerance * k)
            np.testing.assert_array_equal(given[[0, m + 1, m + 2]], whole[[0, m + 1, m + 2]])


def test_what_is_not_finite_stays_in_its_row_and_column(product: Gemm) -> None:
    rng = np.random.default_rng(1)
    a, b = matrix(rng, 30, 20, product.dtype), matrix(rng, 20, 11, product.dtype)
    a[29, 3], b[5, 10] = np.nan, np.inf
    c = np.zeros((30, 11), product.dtype, order="F")
    assert not product(a, b, c)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.isfinite(c), np.isfinite(a @ b))


@pytest.mark.parametrize(
    ("size", "more"),
    [
        ((5, 8, 8), {}),
        ((8, 3, 8), {}),
        ((8, 8, 3), {}),
        ((8, 8, 8), {"alpha": 2.0}),
        ((8, 8, 8), {"beta": 0.5}),
        ((8, 8, 8), {"beta": np.nan}),
    ],
)
def test_blas_does_what_it_is_not_made_for(product: Gemm, size: Any, more: Any) -> None:
    m, n, k = size
    rng = np.random.default_rng(2)
    a, b = matrix(rng, m, k, product.dtype), matrix(rng, k, n, product.dtype)
    assert product(a, b, np.zeros((m, n), product.dtype, order="F"), **more)


def test_blas_s_threads_do_large_products(product: Gemm) -> None:
    rng = np.random.default_rng(3)
    a, b = matrix(rng, 21, 20, product.dtype), matrix(rng, 20, 20, product.dtype)
    c = np.zeros((21, 20), product.dtype, order="F")
    try:
        for product.threads, theirs in ((1, False), (2, True), (8, True)):
            assert product(a, b, c) is theirs
            assert product(a[:, :19], b[:19], c) is False
    finally:
        product.threads = 1


def test_compiled_products_take_it_where_it_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the CPU and BLAS, the numbers are NumPy's."""
    known: dict[str, int] = {}
    made = blas.address_of

    def watched(symbol: str) -> int:
        return known.setdefault(symbol, made(symbol))

    monkeypatch.setattr(blas, "address_of", watched)
    monkeypatch.setattr(entry_code, "_shared", {})  # others may have loaded them

    def layers(x, w):
        return np.tanh(x @ w) @ w.T

    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(130, 120)), rng.normal(size=(120, 110))
    f = compile(layers, cache=False)
    np.testing.assert_allclose(f(x, w), layers(x, w), rtol=1e-12, atol=1e-12)
    assert "mutad_dgemm" in known


def test_another_blas_keeps_its_products() -> None:
    assert gemm.openblas("no such library") is None
    assert gemm.address("mutad_dgemv", 1, "no such library") is None
    assert gemm.address("mutad_dgemm", 1, "no such library") is None


def test_blas_comes_without_the_rest_of_scipy_linalg():
    code = (
        "import sys; from mutad.runtime import blas; a = blas.address_of('mutad_ddot');"
        "light = 'scipy.linalg' not in sys.modules; import scipy.linalg.cython_blas;"
        "same = blas.bindings() is scipy.linalg.cython_blas;"
        "print(light, same, blas.address_of('mutad_ddot') == a, scipy.linalg.det([[2.0]]))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "True True True 2.0"


def test_its_machine_code_comes_from_the_disk_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MUTAD_CACHE_DIR", str(tmp_path))
    asked = "define i32 @answer() {\n  ret i32 42\n}\n"
    once = native_code.object_code(asked, for_host=True)

    def emitted(*_: str) -> bytes:
        raise AssertionError("it is made again")

    monkeypatch.setattr(native_code, "emitted", emitted)
    assert native_code.object_code(asked, for_host=True) == once
    with pytest.raises(AssertionError, match="made again"):
        native_code.object_code(asked + "\n", for_host=True)
