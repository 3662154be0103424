"""What annotations tell of arguments before any call: our notation, types, jaxtyping's."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from jaxtyping import Bool, Complex64, Float, Float64, Int, Int32

from mutad import compile
from mutad.runtime.annotations import Kind, kind_of

Array = np.ndarray
TOLD: list[tuple[Any, str, tuple[Any, ...]]] = [
    (float, "py_float", ()),
    (bool, "py_bool", ()),
    (None, "None", ()),
    (np.int32, "i32", ()),
    ("f32", "f32", ()),
    ("float64", "f64", ()),
    (tuple[int, float], "(py_int,py_float)", ()),
    ("f64[:]", "f64[?]C", ()),
    ("f64[::1]", "f64[?]C", ()),
    ("np.float32[:, :]", "f32[?,?]C", ()),
    ("f64[:, ::1]", "f64[?,?]C", ()),
    ("f64[::1, :]", "f64[?,?]F", ()),
    ("i64[::, ::]", "i64[?,?]S", ()),
    ("f64[::, :]", "f64[?,?]S", ()),
    (Float64[Array, "n m"], "f64[?,?]C", ("n", "m")),
    (Float64[Array, "n rows=3 1 _ _m"], "f64[?,?,1,?,?]C", ("n", 3, 1, None, None)),
    (Int32[Array, "n"], "i32[?]C", ("n",)),
    (Bool[Array, "n"], "b1[?]C", ("n",)),
    (Float64[Array, ""], "f64[]C", ()),
]
UNTOLD: list[tuple[Any, str]] = [
    (np.ndarray, r'an array as "f64\[:, :\]"'),
    (list[float], "write float, int, bool"),
    ("f65[:]", "write float, int, bool"),
    ("f64[:, ::1, :]", "write float, int, bool"),
    ("f64[::1, ::1]", "write float, int, bool"),
    ("f64[::1, ::]", "write float, int, bool"),
    (Float[Array, "n"], "one of float32, float64"),
    (Int[Array, "n"], "one of int16, int32, int64, int8"),
    (Complex64[Array, "n"], "a dtype that is compiled"),
    (Float64[list, "n"], "NumPy's arrays"),
    (Float64[Array, "..."], r"not '\.\.\.'"),
    (Float64[Array, "n n+1"], r"not 'n\+1'"),
    (Float64[Array, "*n"], r"not '\*n'"),
    (Float64[Array, "#n"], "not '#n'"),
]


@pytest.mark.parametrize(("annotation", "key", "extents"), TOLD, ids=[str(r[0]) for r in TOLD])
def test_annotations_tell_the_kind(annotation: Any, key: str, extents: tuple[Any, ...]) -> None:
    assert kind_of(annotation) == Kind(key, extents)


@pytest.mark.parametrize(("annotation", "told"), UNTOLD, ids=[str(r[0]) for r in UNTOLD])
def test_others_say_what_to_write(annotation: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        kind_of(annotation)


def soften(u: Float64[np.ndarray, "n 3"], k: "f64", steps: int):  # noqa: F722, F821, UP037
    for _ in range(steps):
        u[1:, :] *= 1.0 - k * u[:-1, :]
    return u.sum()


def test_explain_reads_them() -> None:
    plan = compile(soften, grad=True).explain()
    assert plan.formula == "8*steps*u.shape[0]*u.shape[1]"


def unclear(u: Float[np.ndarray, "n"]):  # noqa: F821, UP037
    return u.sum()


def test_explain_says_why_not() -> None:
    with pytest.raises(ValueError, match=r"'n'.* of parameter 'u' .*float32, float64"):
        compile(unclear, grad=True).explain()


def test_jaxtyping_is_not_imported() -> None:
    code = "import sys, mutad.runtime.annotations; print('jaxtyping' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
