"""A name may be a number on one path and an array on the other where a constant decides for one of them."""

import math
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pytest

import mutad

X = np.array([0.7, 1.3, 0.4])


class Kind(Enum):
    SUM = 1
    ALL = 2


class Options(NamedTuple):
    flag: bool
    n: int


FLAG, MODE, N, NOTHING, KIND, OPTIONS = True, "sum", 3, None, Kind.SUM, Options(True, 2)


def is_vector(x: Any) -> bool:
    for n in (1, 2):
        if x.ndim == n:
            return True
    return False


def defaulted(x: Any, axis: Any = None, keep: bool = False) -> bool:
    return axis is None and not keep


CONDITIONS: list[tuple[str, Callable[[Any], Any]]] = [
    ("flag", lambda x: FLAG),
    ("text", lambda x: MODE == "sum" and MODE in ("sum", "all") and MODE.startswith("s")),
    ("int", lambda x: 1 < N < 5 and N % 2 == 1 and -N // 2 < 0),
    ("none", lambda x: NOTHING is None or x.sum() > 100.0),
    ("enum", lambda x: KIND is Kind.SUM and KIND != Kind.ALL),
    ("fields", lambda x: OPTIONS.flag and OPTIONS.n == 2),
    ("rank", lambda x: x.ndim == 1 and len(x.shape) == 1 and np.ndim(x) < 2),
    ("dtype", lambda x: x.dtype == np.float64 and x.dtype.kind == "f"),
    ("class", lambda x: isinstance(x, np.ndarray) and not np.isscalar(x)),
    ("numbers", lambda x: np.isinf(np.inf) and not np.isnan(2.5) and math.isfinite(1.0)),
    ("NumPy numbers", lambda x: np.float64(3.0) > 2 and np.int64(4) == 4 and np.uint8(250) > -1),
    ("machine", lambda x: np.finfo(x.dtype).eps < 1e-3),
    ("logic", lambda x: np.logical_and(FLAG, x.ndim == 1)),
    ("call", is_vector),
    ("defaults", lambda x: defaulted(x) and not defaulted(x, 0) and not defaulted(x, keep=True)),
    ("part of a condition", lambda x: not (x[0] > 9.0 and x.ndim == 2)),
    ("any", lambda x: any(isinstance(v, np.ndarray) for v in (1.0, x))),
]


@pytest.mark.parametrize("test", [c for _, c in CONDITIONS], ids=[n for n, _ in CONDITIONS])
def test_one_path_is_lowered(test: Callable[[Any], Any]) -> None:
    def number(x):
        if test(x):
            y = x.sum()
        else:
            y = x * x
        return y

    def array(x):
        y = x[0] if not test(x) else x * x
        return y.sum()

    for function in (number, array):
        got, want = mutad.compile(function, cache=False)(X), function(X)
        assert type(got) is type(want)
        np.testing.assert_allclose(got, want, rtol=1e-14)
        mutad.check_gradient(mutad.compile(grad=True, cache=False)(function), X.copy(), wrt=0)


@pytest.mark.parametrize("flag", [True, 1])
def test_an_argument_is_no_constant(flag: Any) -> None:
    def program(x, flag):
        return (1.0 if flag else x) * 2.0

    with pytest.raises(mutad.CompileError, match="on one path"):
        mutad.compile(program, cache=False)(X, flag)
