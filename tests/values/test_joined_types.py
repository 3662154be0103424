"""A function that returns Python's scalars on one path and NumPy's on another returns what ran."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from python_oracle import compiled

import mutad


def summed(x, c):
    s = 0.0
    for v in x:
        s += v
    return s


def summed_from_an_int(x, c):
    s = 0
    for v in x:
        s += v
    return s, 1.0, None, (s, c)


def chosen(x, c):
    r = 0.0
    if c:
        r = x.sum()
    return r


def returned_early(x, c):
    if c:
        return 0.5
    return x.sum()


def returned_early_otherwise(x, c):
    if not c:
        return x.sum() * 2.0
    return 3


def counted(x, c):
    k, s = 0, 0.25
    while k < c * x.size:
        s = s + x[k]
        k += 1
    return s


def in_a_tuple(x, c):
    pair = (0.5, (1, 2.0))
    if c and x.size:
        pair = (x[0], (1, pair[0]))
    return pair


def in_a_tuple_of_a_loop(x, c):
    pair = (0.5, 1.0)
    for v in x:
        pair = (v, pair[1])
    return pair, c


def flag_or_bool(x, c):
    found = False
    for v in x:
        found = v > 2.0
    return found


def joined_twice(x, c):
    s = 1.0
    if c:
        for v in x:
            s = s * v
    return s


def empty_first(x, c):
    if x.size == 0:
        return 0.5
    s = 0.0
    for v in x[1:]:
        s += v * v
    return s


FUNCTIONS = [
    summed,
    summed_from_an_int,
    chosen,
    returned_early,
    returned_early_otherwise,
    counted,
    in_a_tuple,
    in_a_tuple_of_a_loop,
    flag_or_bool,
    joined_twice,
    empty_first,
]


def flat(value: Any) -> list[Any]:
    return [v for item in value for v in flat(item)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("size", [0, 1, 4])
@pytest.mark.parametrize("c", [True, False])
def test_the_type_is_that_of_the_path_that_ran(
    function: Any, dtype: Any, size: int, c: bool
) -> None:
    if dtype is np.int64 and function not in (summed_from_an_int, counted, flag_or_bool):
        dtype = np.float64  # an int and a float join as a float
    x = np.arange(1, size + 1).astype(dtype)
    got, want = flat(compiled(function)(x, c)), flat(function(x, c))
    assert [(type(v), v) for v in got] == [(type(v), v) for v in want]


@pytest.mark.parametrize(
    "function",
    [summed, chosen, returned_early, returned_early_otherwise, counted, joined_twice, empty_first],
)
@pytest.mark.parametrize("size", [0, 1, 4])
@pytest.mark.parametrize("c", [True, False])
def test_gradients_do_not_mind_whose_scalar_it_is(function: Any, size: int, c: bool) -> None:
    if function is returned_early_otherwise and c:
        c = False  # an int has no cotangent
    mutad.check_gradient(compiled(function, grad=True), np.arange(1.0, size + 1), c)


def test_scalars_of_either_type_are_given_away_once() -> None:
    f = compiled(summed)
    for x in (np.zeros(0), np.ones(3)):
        f(x, True)
        assert sys.getrefcount(f(x, True)) == sys.getrefcount(float(str(x.size)))


def mean(x, n):
    s = 0.0
    for v in x:
        s += v
    return s / n


def mean_of_ints(x, n):
    s = 0
    for v in x:
        s += v
    return s / n, s


def inverse(x, n):
    s = 0.0
    for v in x:
        s += v * n
    return 1.0 / (2.0 * s - s)


def rest(x, n):
    s = 1.0
    if n < 0:
        s = x.sum()
    return float(s % n)


def quotient(x, n):
    s = 7
    if n < 0:
        s = x.size * x[0]
    return float(s // n)


def by_an_array(x, n):
    s = 0.0
    for v in x:
        s += v
    return s / x, x[:n].sum() / s


@pytest.mark.parametrize("function", [mean, mean_of_ints, inverse, rest, quotient, by_an_array])
@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize("n", [0, 2, -1])
def test_python_scalars_raise_where_numpys_do_not(function: Any, size: int, n: int) -> None:
    def run(f: Any) -> Any:
        x = np.arange(size) * 1.0
        try:
            with np.errstate(all="ignore"):
                return [(type(v), str(v)) for v in flat(f(x, n))]
        except (ZeroDivisionError, IndexError) as error:
            return type(error), str(error)

    assert run(compiled(function)) == run(function)


def kept_exactly(x, tenth):
    s = tenth
    for v in x:
        s = v
    return s


def test_a_scalar_that_the_other_type_cannot_hold_is_of_that_type() -> None:
    result = compiled(kept_exactly)(np.zeros(0, np.float32), 0.1)
    assert (type(result), result) == (np.float32, np.float32(0.1))
