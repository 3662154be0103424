"""Functions of installed pure-Python packages, compiled along without decoration, have CPython's values."""

import copy
import pickle

import numba
import numpy as np
import pytest
from third_party_cases import CALLS

from mutad import CompileError, compile


@pytest.mark.parametrize("call", CALLS, ids=[f"{c.label}-{k}" for k, c in enumerate(CALLS)])
def test_value_is_cpythons(call):
    function, numbers = call.function(), call.numbers
    want = function(**copy.deepcopy(numbers))
    got = compile(function, cache=False)(**copy.deepcopy(numbers))
    assert type(got) is type(want)
    np.testing.assert_allclose(got, want, rtol=1e-12)


@numba.njit(fastmath=True, boundscheck=False, parallel=True)
def squares(x):
    s = 0.0
    for i in numba.prange(x.size):
        s += plus_one(x[i]) ** 2
    return s


@numba.njit(boundscheck=True)
def plus_one(v):
    return v + 1.0


@numba.vectorize(["float64(float64)"])
def clipped(v):
    return 0.0 if v < 0.0 else v


def test_functions_of_numba():
    """What is taken for granted of numba's objects holds of the numba that is installed."""
    x = np.array([1.0, -2.0, 3.0])
    f = compile(squares)
    assert (f.options["fastmath"], f.options["boundscheck"]) == (True, False)
    assert f(x) == squares.py_func(x) == 21.0
    assert compile(plus_one).options["boundscheck"] is True
    assert pickle.loads(pickle.dumps(f)).options == f.options

    def calls(x):
        return squares(x) + plus_one(x[0])

    assert compile(calls)(x) == 23.0
    with pytest.raises(CompileError, match=r"clipped is a DUFunc(.|\n)*__wrapped__"):
        compile(lambda x: clipped(x))(x)
    with pytest.raises(TypeError, match=r"not DUFunc: compile clipped\.__wrapped__"):
        compile(clipped)
    assert compile(clipped.__wrapped__)(-1.0) == 0.0
