"""Functions of one float and of a few: those of the C library, as compiled code calls them, and our own.

NumPy's own `exp` and friends round otherwise. `gamma` and `polygamma` are what `codegen.gamma` writes.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from collections.abc import Callable
from functools import cache
from math import factorial, pi
from typing import Any

import numpy as np

from ..codegen.gamma import BERNOULLI, EXACT, cotangent_derivative


@cache
def c_function(name: str, single: bool, count: int) -> Callable[..., float]:
    """A function of the C math library."""
    library = ctypes.CDLL(ctypes.util.find_library("m") or None)
    function = getattr(library, f"{name}f" if single else name)
    kind = ctypes.c_float if single else ctypes.c_double
    function.restype, function.argtypes = kind, [kind] * count
    return function


def elementwise(function: Callable[..., float], *values: Any) -> Any:
    """A function of numbers on numbers or arrays, in the dtype of the first."""
    dtype = values[0].dtype
    if not any(np.ndim(v) for v in values):
        return dtype.type(function(*map(float, values)))
    return np.asarray(np.frompyfunc(function, len(values), 1)(*values)).astype(dtype)


def libm(name: str) -> Callable[..., Any]:
    """A function of the C math library on numbers or arrays of floats."""

    def apply(*values: Any) -> Any:
        return elementwise(c_function(name, values[0].dtype == np.float32, len(values)), *values)

    return apply


def gamma(x: Any) -> Any:
    """The gamma function, exact where it is a factorial that a double holds."""

    def of(value: float) -> float:
        if 1.0 <= value <= EXACT and value.is_integer():
            return float(factorial(int(value) - 1))
        return c_function("tgamma", False, 1)(value)

    return in_double(of, x)


def polygamma(order: int) -> Callable[[Any], Any]:
    """The derivative of digamma of this order: see `codegen.gamma` for the formulas."""
    return lambda x: in_double(lambda value: polygamma_of(order, value), x)


def polygamma_of(n: int, x: float) -> float:
    sign = -1.0 if n % 2 else 1.0
    if math.isnan(x) or x == -math.inf:
        return math.nan
    at, total = (1.0 - x if x < 0.0 else x), 0.0
    while at < 10.0 + 2.0 * n:
        over = 1.0 / at if at else math.inf
        total += -sign * factorial(n) * over ** (n + 1)
        at += 1.0
    inverse = 1.0 / at
    power = inverse**n
    lead = math.log(at) if n == 0 else -sign * factorial(n - 1) * power
    series = [0.0] + [
        float(b * factorial(2 * k + n - 1) / factorial(2 * k)) for k, b in enumerate(BERNOULLI, 1)
    ]
    rest = 0.5 * factorial(n) * inverse + horner(series, inverse * inverse)
    right = lead + (total + -sign * power * rest)
    if not x < 0.0:
        return right
    part = x - round(x)
    if part == 0.0:
        return math.nan
    slope = horner([pi ** (n + 1) * a for a in cotangent_derivative(n)], 1.0 / math.tan(part * pi))
    return sign * right - slope


def horner(coefficients: list[float], x: float) -> float:
    """A polynomial, lowest coefficient first."""
    value = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


def in_double(function: Callable[[float], float], x: Any) -> Any:
    """A function of doubles; a float32 is widened first, and its result rounded."""
    return elementwise(function, x.astype(np.float64)).astype(x.dtype)
