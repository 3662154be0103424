"""Functions of the standard library, in Python: what compiled code runs in their place.

They are compiled along, as any function is, so values, exceptions and gradients follow from their lines.
Nothing here is called otherwise. Names from outside are builtins, `math` and `operator` only.
"""

# pyright: basic, reportOperatorIssue=false

from __future__ import annotations

import math
import operator
from typing import Any

# functools


def reduce(function: Any, items: Any) -> Any:
    found = False
    total = 0
    for item in items:
        if found:
            total = function(total, item)
        else:
            total = item
            found = True
    if not found:
        raise TypeError("reduce() of empty iterable with no initial value")
    return total


def reduce_from(function: Any, items: Any, initial: Any) -> Any:
    total = initial
    for item in items:
        total = function(total, item)
    return total


# Builtins


def sum_from(items: Any, start: Any) -> Any:
    return sum(items, start)


def min_by(items: Any, key: Any) -> Any:
    found = False
    best = least = 0
    for item in items:
        here = key(item)
        if not found or here < least:
            best, least, found = item, here, True
    if not found:
        raise ValueError(EMPTY_MIN)
    return best


def max_by(items: Any, key: Any) -> Any:
    found = False
    best = most = 0
    for item in items:
        here = key(item)
        if not found or here > most:
            best, most, found = item, here, True
    if not found:
        raise ValueError(EMPTY_MAX)
    return best


def min_or(items: Any, key: Any, default: Any) -> Any:
    found = False
    best = least = 0
    for item in items:
        here = key(item)
        if not found or here < least:
            best, least, found = item, here, True
    return best if found else default


def max_or(items: Any, key: Any, default: Any) -> Any:
    found = False
    best = most = 0
    for item in items:
        here = key(item)
        if not found or here > most:
            best, most, found = item, here, True
    return best if found else default


def same(item: Any) -> Any:
    return item


def power(base: Any, exponent: Any, modulus: Any) -> Any:
    """`pow(base, exponent, modulus)` of ints, by squaring; the inverse by Euclid's algorithm."""
    if modulus == 0:
        raise ValueError("pow() 3rd argument cannot be 0")
    factor, rest = base % modulus, exponent
    if rest < 0:
        a, b, u, v = factor, abs(modulus), 1, 0
        while b != 0:
            q = a // b
            a, b = b, a - q * b
            u, v = v, u - q * v
        if abs(a) != 1:
            raise ValueError("base is not invertible for the given modulus")
        factor = (u * a) % modulus
        rest = -rest
    result = 1 % modulus
    while rest > 0:
        if rest % 2 == 1:
            result = result * factor % modulus
        rest = rest // 2
        if rest > 0:
            factor = factor * factor % modulus
    return result


SPLITTER = 134217729.0  # 2**27 + 1: halves the digits of a double


def rounded(x: Any, digits: Any, scale: Any) -> Any:
    """`round(x, digits)` of a float, 0 <= digits <= 22, with `scale` 10.0**digits: to the nearest multiple as
    the exact product x * scale says, half to even."""
    product = x * scale
    if not abs(product) < 9007199254740992.0:
        return x  # no digits are there to be lost; infinity and NaN
    whole = float(round(product))
    # what the product lost: exact halves of both factors
    t = SPLITTER * x
    high = t - (t - x)
    low = x - high
    t = SPLITTER * scale
    scale_high = t - (t - scale)
    scale_low = scale - scale_high
    lost = ((high * scale_high - product) + high * scale_low + low * scale_high) + low * scale_low
    rest = product - whole
    if rest == 0.5 and lost > 0.0:
        whole += 1.0
    elif rest == -0.5 and lost < 0.0:
        whole -= 1.0
    elif rest == 0.5 and lost < 0.0:
        whole = math.floor(product) + 0.0
    elif rest == -0.5 and lost > 0.0:
        whole = math.ceil(product) + 0.0
    return math.copysign(whole / scale, x)


# math


def prod(items: Any, *, start: Any = 1) -> Any:
    total = start
    for item in items:
        total = total * item
    return total


def fsum(items: Any) -> Any:
    """The sum, rounded once: Shewchuk's partial sums, which do not overlap, smallest first."""
    parts = [0.0]
    special = 0.0
    infinite = 0.0
    is_special = False
    for item in items:
        x = float(item)
        if not math.isfinite(x):
            is_special = True
            special += x
            if math.isinf(x):
                infinite += x
            continue
        kept = 0
        for j in range(len(parts)):
            y = parts[j]
            total = x + y
            lost = y - (total - x) if abs(x) >= abs(y) else x - (total - y)
            if lost != 0.0:
                parts[kept] = lost
                kept += 1
            x = total
        if not math.isfinite(x):
            raise OverflowError("intermediate overflow in fsum")
        while len(parts) > kept:
            parts.pop()
        parts.append(x)
    if is_special:
        if math.isnan(infinite):
            raise ValueError("-inf + inf in fsum")
        return special
    total = parts.pop()
    lost = 0.0
    while len(parts) > 0 and lost == 0.0:
        x = total
        y = parts.pop()
        total = x + y
        lost = y - (total - x)
    if len(parts) > 0:
        y = parts[-1]
        if (lost < 0.0 and y < 0.0) or (lost > 0.0 and y > 0.0):
            y = lost * 2.0
            x = total + y
            if y == x - total:
                total = x
    return total


def hypot(*coordinates: Any) -> Any:
    return norm(coordinates)


def norm(coordinates: Any) -> Any:
    largest = 0.0
    has_nan = False
    for v in coordinates:
        size = abs(float(v))
        if size > largest:
            largest = size
        if math.isnan(size):
            has_nan = True
    if math.isinf(largest):
        return largest
    if has_nan:
        return math.nan
    if largest == 0.0:
        return 0.0
    total = 0.0
    for v in coordinates:
        part = float(v) / largest
        total += part * part
    return largest * math.sqrt(total)


def dist(p: Any, q: Any) -> Any:
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    return norm([float(a) - float(b) for a, b in zip(p, q, strict=False)])


def isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    x, y, relative, absolute = float(a), float(b), float(rel_tol), float(abs_tol)
    if relative < 0.0 or absolute < 0.0:
        raise ValueError("tolerances must be non-negative")
    if x == y:
        return True
    if math.isinf(x) or math.isinf(y):
        return False
    apart = abs(y - x)
    return apart <= abs(relative * y) or apart <= abs(relative * x) or apart <= absolute


def gcd(*integers: Any) -> Any:
    result = 0
    for n in map(operator.index, integers):
        while n != 0:
            result, n = n, result % n
    return abs(result)


def lcm(*integers: Any) -> Any:
    if 0 in integers:
        return 0
    result = 1
    for n in map(operator.index, integers):
        result = result // gcd(result, n) * abs(n)
    return result


def factorial(n: Any) -> Any:
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    result = 1
    for k in range(2, n + 1):
        result *= k
    return result


def comb(n: Any, k: Any) -> Any:
    if n < 0:
        raise ValueError("n must be a non-negative integer")
    if k < 0:
        raise ValueError("k must be a non-negative integer")
    if k > n:
        return 0
    result = 1
    for i in range(min(k, n - k)):
        a, b = n - i, i + 1
        common = gcd(a, b)
        result = result // (b // common) * (a // common)
    return result


def perm(n: Any, k: Any) -> Any:
    ways = comb(operator.index(n), k)
    return ways * factorial(k) if ways > 0 else 0


def isqrt(n: Any) -> Any:
    if operator.index(n) < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    if n == 0:
        return 0
    root = int(math.sqrt(n))
    while root > n // root:
        root -= 1
    while root + 1 <= n // (root + 1):
        root += 1
    return root


def modf(value: Any) -> Any:
    x = float(value)
    if math.isnan(x):
        return x, x
    if math.isinf(x):
        return math.copysign(0.0, x), x
    size = abs(x)
    whole = size if size >= 4503599627370496.0 else float(int(size))
    return math.copysign(size - whole, x), math.copysign(whole, x)


def remainder(numerator: Any, divisor: Any) -> Any:
    x, y = float(numerator), float(divisor)
    if math.isnan(x) or math.isnan(y):
        return x + y
    if math.isinf(x) or y == 0.0:
        raise ValueError("math domain error")
    if math.isinf(y):
        return x
    size, step = abs(x), abs(y)
    rest = math.fmod(size, step)
    other = step - rest
    if rest < other:
        least = rest
    elif rest > other:
        least = -other
    else:
        least = rest - 2.0 * math.fmod(0.5 * (size - rest), step)
    return math.copysign(1.0, x) * least


# operator


def getitem(a: Any, b: Any) -> Any:
    return a[b]


def setitem(a: Any, b: Any, c: Any) -> None:
    a[b] = c


OPERATORS: tuple[tuple[Any, Any], ...] = (
    (operator.neg, lambda a: -a),
    (operator.pos, lambda a: +a),
    (operator.invert, lambda a: ~a),
    (operator.abs, lambda a: abs(a)),
    (operator.not_, lambda a: not a),
    (operator.truth, lambda a: bool(a)),
    (operator.lt, lambda a, b: a < b),
    (operator.le, lambda a, b: a <= b),
    (operator.eq, lambda a, b: a == b),
    (operator.ne, lambda a, b: a != b),
    (operator.gt, lambda a, b: a > b),
    (operator.ge, lambda a, b: a >= b),
    (operator.contains, lambda a, b: b in a),
    (operator.getitem, getitem),
    (operator.setitem, setitem),
)


EMPTY_MIN = ""
EMPTY_MAX = ""
