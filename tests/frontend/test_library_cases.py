"""Every case of the library lowers to IR that verifies, and gives NumPy's result type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from generated import function_of
from scipy import linalg, special

from mutad.compiler.frontend import library
from mutad.compiler.frontend.build import build_function
from mutad.compiler.frontend.values import DTYPE_NAME

SHAPE = (4, 3)


def function_of_case(case: library.Case) -> Callable[..., Any]:
    """The case as a Python function whose source can be read."""
    source = f"def case({', '.join(case.arguments)}):\n    return {case.expression}\n"
    return function_of(source, "case", {"np": np, "linalg": linalg, "special": special})


def arguments_of(case: library.Case, shape: tuple[int, ...] = SHAPE) -> list[Any]:
    rng = np.random.default_rng(7)
    return [library.MAKERS[kind](rng, shape) for kind in case.arguments.values()]


def key_of(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return {bool: "py_bool", int: "py_int", float: "py_float"}[type(value)]
    extents = ",".join("1" if n == 1 else "?" for n in value.shape)
    return f"{DTYPE_NAME[value.dtype]}[{extents}]C"


@pytest.mark.parametrize("case", library.CASES, ids=lambda c: c.expression)
def test_a_case_lowers_and_has_numpys_type(case: library.Case) -> None:
    arguments = arguments_of(case)
    built = build_function(function_of_case(case), [key_of(a) for a in arguments])
    built.module.verify()
    with np.errstate(all="ignore"):
        want = function_of_case(case)(*arguments)
    if any(want is a for a in arguments):
        assert built.results["kind"] == "argument"
    else:
        assert_result(want, built.results)


def assert_result(want: Any, result: Any) -> None:
    if isinstance(want, tuple):
        for one, item in zip(want, result["items"], strict=True):
            assert_result(one, item)
    elif type(want) in (bool, int, float):
        assert result["type"] == f"py_{type(want).__name__}"
    elif isinstance(want, np.ndarray):
        assert result["dtype"] == DTYPE_NAME[want.dtype]
        assert result["rank"] == want.ndim
    else:
        assert result["type"] == DTYPE_NAME[want.dtype]
