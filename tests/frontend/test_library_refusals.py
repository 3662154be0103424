"""What the library does not compile is refused with its line and the words that matter."""

from __future__ import annotations

import numpy as np
import pytest
from generated import function_of

from mutad.compiler.diagnostics import CompileError
from mutad.compiler.frontend.build import build_function

REFUSED = [
    ("np.max(x, where=x > 0)", "does not have an identity"),
    ("np.add(x, x, casting='unsafe')", "the argument 'casting' is not supported"),
    ("np.zeros(3, dtype=np.complex128)", "this dtype is not supported"),
    ("np.zeros(3, dtype='f2')", "this dtype is not supported"),
    ("A.ravel(order='K')", 'order= is "C" or "F" here'),
    ("x.reshape(-1, -1)", "can only specify one unknown dimension"),
    ("x.reshape(2, 2, copy=True)", "reshape takes a shape, and no keyword but order="),
    ("x[x]", "arrays used as indices must be of integer (or boolean) type"),
    ("A[b, b, b]", "too many indices for array"),
    ("x[n:]", "slice indices must be integers or None"),
    ("np.divide.at(x, n, 1.0)", "np.divide.at is not compiled"),
    ("np.add.at(m, m, 0.5)", "Cannot cast ufunc 'add' output"),
    ("np.add.at(x, A.astype(np.int64).T, 1.0)", "not in C order"),
    ("x[1.5]", "only integers, slices"),
    ("x[0, 0]", "too many indices for array"),
    ("x[..., ...]", "single ellipsis"),
    ("x[::0]", "slice step cannot be zero"),
    ("np.sum(x, axis=1)", "axis 1 is out of bounds for array of dimension 1"),
    ("np.sum(A, axis=(0, 0))", "duplicate value in 'axis'"),
    ("x @ 2.0", "does not have enough dimensions"),
    ("b - b", "numpy boolean subtract"),
    ("-b", "boolean negative"),
    ("x & x", "not supported for the input types"),
    ("n ** -1", "Integers to negative integer powers"),
    ("np.where(x > 0, x)", "give all three arguments"),
    ("np.fft.fft(x)", "fft is not compiled"),
    ("np.add(x, x, out=n)", "Cannot cast ufunc 'add' output"),
    ("np.full(3)", "the argument 'fill_value' is missing"),
    ("np.arange(1, 2, 0)", "Maximum allowed size exceeded"),
    ("m + 2**31", "out of bounds for int32"),
    ("np.int32(2**40)", "out of bounds for int32"),
    ("np.transpose(A, (0, 0))", "axes don't match array"),
]

KEYS = ("f64[?]C", "f64[?,?]C", "i64[?]C", "i32[?]C", "b1[?]C")


@pytest.mark.parametrize(("expression", "words"), REFUSED, ids=[e for e, _ in REFUSED])
def test_refused_with_its_line(expression: str, words: str) -> None:
    source = f"def f(x, A, n, m, b):\n    return {expression}\n"
    function = function_of(source, "f", {"np": np})
    with pytest.raises(CompileError) as caught:
        build_function(function, KEYS)
    assert words in str(caught.value)
    assert caught.value.span is not None
    assert caught.value.span.line == 2
    assert "^" in str(caught.value)
