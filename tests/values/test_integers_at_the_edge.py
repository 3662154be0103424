"""Integers of Python at the ends of 64 bits: what fits is CPython's, what does not is an OverflowError."""

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from mutad import compile

LEAST, GREATEST = -(2**63), 2**63 - 1
EDGES = (LEAST, LEAST + 1, -(2**62), -2, -1, 0, 1, 2, 62, 63, 64, 2**62, GREATEST)
COUNTS = (LEAST, -1, 0, 1, 61, 62, 63, 64, GREATEST)
FLOATS = (
    -(2.0**63),
    math.nextafter(-(2.0**63), -1e30),
    2.0**63,
    math.nextafter(2.0**63, 0.0),
    -0.5,
    1.5,
    1e300,
)
NO_NUMBERS = (math.inf, -math.inf, math.nan)


def shifted_left(a, b):
    return a << b


def shifted_left_by_the_most(a):
    return a << 63


def minus_one_shifted(a):
    return -1 << a


def shifted_right(a, b):
    return a >> b


def quotient(a, b):
    return a // b


def remainder(a, b):
    return a % b


def both(a, b):
    return divmod(a, b)


def product(a, b):
    return a * b


def difference(a, b):
    return a - b


def common(a, b):
    return math.gcd(a, b), math.gcd(b, a)


def multiple(a, b):
    return math.lcm(a, b)


def by_minus_one(a):
    return a // -1


def of_two(a):
    return (-2) ** a


def negative(a):
    return -a


def size(a):
    return abs(a)


def bits(a):
    return ~a, a & LEAST, a | LEAST, a ^ LEAST, a >> 63, a >> 64, a % -1


def known(a):
    least = -1 << 63
    return (
        least,
        -(2**63),
        -2 << 62,
        least + a,
        least // 1,
        least % -1,
        ~least,
        ~GREATEST,
        -GREATEST - 1,
    )


def whole(x):
    return int(x)


def rounded(x):
    return round(x)


def down_and_up(x):
    return math.floor(x), math.ceil(x), math.trunc(x)


def of_numpy(k):
    a, one = np.int64(k), np.int64(-1)
    both_ways = a << np.int64(63), a << np.int64(64), a >> np.int64(64), a << one, a >> one
    return *both_ways, a // one, a % one, abs(a), -a, ~a, a * one


def of_arrays(a):
    return a // -1, a % -1, a << 63, a << 64, a >> 64, np.abs(a), -a, np.fmod(a, -1)


def fits(value: Any) -> bool:
    values = value if isinstance(value, tuple) else (value,)
    return all(LEAST <= v <= GREATEST for v in values)


def outcome(function: Callable[..., Any], *args: Any) -> str:
    try:
        return repr(function(*args))
    except (ArithmeticError, ValueError) as error:
        return repr(error)


def same_as_python(function: Callable[..., Any], cases: Iterable[tuple[Any, ...]]) -> None:
    compiled = compile(function, opt=1)
    for case in cases:
        wanted = outcome(function, *case)
        if "Error" in wanted or fits(function(*case)):
            assert outcome(compiled, *case) == wanted, case
        else:
            with pytest.raises(OverflowError):
                compiled(*case)


@pytest.mark.parametrize("function", [shifted_left, shifted_right])
def test_shifts(function):
    huge = function is shifted_left
    pairs = itertools.product(EDGES, COUNTS)
    same_as_python(function, [(a, b) for a, b in pairs if not (huge and b > 100)])
    if huge:
        compiled = compile(function, opt=1)
        assert compiled(0, GREATEST) == 0
        for a in (-1, 1):
            with pytest.raises(OverflowError):
                compiled(a, GREATEST)


TWO = [quotient, remainder, both, product, difference, common, multiple]


@pytest.mark.parametrize("function", TWO)
def test_of_two(function):
    same_as_python(function, itertools.product(EDGES, EDGES))


@pytest.mark.parametrize("function", [shifted_left_by_the_most, by_minus_one, negative, size, bits])
def test_of_one(function):
    same_as_python(function, ((a,) for a in EDGES))


@pytest.mark.parametrize("function", [minus_one_shifted, of_two])
def test_by_a_count(function):
    same_as_python(function, ((n,) for n in range(66)))


def test_constants():
    assert compile(known, opt=1)(0) == known(0)


@pytest.mark.parametrize("function", [whole, rounded, down_and_up])
def test_of_floats(function):
    same_as_python(function, ((x,) for x in (*FLOATS, *NO_NUMBERS)))


def test_numpy_wraps():
    scalars, arrays = compile(of_numpy, opt=1), compile(of_arrays, opt=1)
    with np.errstate(all="ignore"):
        for a in EDGES:
            assert repr(scalars(a)) == repr(of_numpy(a)), a
        for dtype in (np.int64, np.int32):
            x = np.array([np.iinfo(dtype).min, -1, 0, 1, np.iinfo(dtype).max], dtype)
            np.testing.assert_equal(arrays(x), of_arrays(x))


def wrapped_subscript(x, at, n):
    return x[at % n]


def test_subscripts_that_wrap() -> None:
    """Those in range are taken as they are, the others divided."""
    made, x = compile(wrapped_subscript, cache=False, opt=1), np.arange(7.0)
    for at, n in itertools.product(EDGES, (1, 2, 7, 62, 0, -1, -7)):
        try:
            wanted = wrapped_subscript(x, at, n)
        except (ArithmeticError, IndexError) as error:
            with pytest.raises(type(error)):
                made(x, at, n)
        else:
            assert made(x, at, n) == wanted, (at, n)


def last_integer(x):
    last = 0
    for i in range(x.size):
        last = int(x[i])
    return last


def test_floats_that_a_loop_makes_integers() -> None:
    same_as_python(last_integer, ((np.array([x]),) for x in (*FLOATS, *NO_NUMBERS)))
