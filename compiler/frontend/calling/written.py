"""Which functions of the standard library are compiled along from lines of our own (`standard`).

functools.reduce(f, x)          standard.reduce(f, x)
min(x, key=f, default=0.0)      standard.min_or(x, f, 0.0)
operator.itemgetter(1)(t)       t[1]
"""

from __future__ import annotations

import ast
import bisect
import functools
import heapq
import math
import operator
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import library
from ..syntax import comprehensions
from ..values import Record, Scalar, Static, Struct, Tuple, Value
from . import standard, standard_collections

if TYPE_CHECKING:
    from .calls import Calls

standard.EMPTY_MIN = comprehensions.EMPTY.format("min")
standard.EMPTY_MAX = comprehensions.EMPTY.format("max")

FUNCTIONS: tuple[tuple[Any, FunctionType], ...] = (
    (math.prod, standard.prod),
    (math.fsum, standard.fsum),
    (math.dist, standard.dist),
    (math.isclose, standard.isclose),
    (math.gcd, standard.gcd),
    (math.lcm, standard.lcm),
    (math.factorial, standard.factorial),
    (math.comb, standard.comb),
    (math.perm, standard.perm),
    (math.isqrt, standard.isqrt),
    (math.modf, standard.modf),
    (math.remainder, standard.remainder),
    *standard.OPERATORS,
    (bisect.bisect_left, standard_collections.bisect_left),
    (bisect.bisect_right, standard_collections.bisect_right),
    (bisect.insort_left, standard_collections.insort_left),
    (bisect.insort_right, standard_collections.insort_right),
    (heapq.heappush, standard_collections.heappush),
    (heapq.heappop, standard_collections.heappop),
    (heapq.heapreplace, standard_collections.heapreplace),
    (heapq.heappushpop, standard_collections.heappushpop),
    (heapq.heapify, standard_collections.heapify),
    (heapq.nsmallest, standard_collections.nsmallest),
    (heapq.nlargest, standard_collections.nlargest),
    (statistics.fmean, standard_collections.fmean),
    (statistics.mean, standard_collections.mean),
    (statistics.median, standard_collections.median),
    (statistics.variance, standard_collections.variance),
    (statistics.pvariance, standard_collections.pvariance),
    (statistics.stdev, standard_collections.stdev),
    (statistics.pstdev, standard_collections.pstdev),
)
"""What is called, and what runs."""

MOST_DIGITS = 22
"""Powers of ten up to this one are doubles."""


@dataclass(frozen=True, eq=False)
class Getter:
    """`operator.itemgetter(...)` or `attrgetter(...)` made in compiled code."""

    is_item: bool
    names: tuple[Value, ...]


def call(
    lowering: Calls, callee: Any, args: list[Value], kwargs: dict[str, Value], node: ast.Call
) -> Value | None:
    """Lower the call of such a function; None for any other."""
    if isinstance(callee, Getter) and len(args) == 1 and not kwargs:
        return got(lowering, callee, args[0], node)
    if callee in (operator.itemgetter, operator.attrgetter) and args and not kwargs:
        return Static(Getter(callee is operator.itemgetter, tuple(args)))
    if isinstance(callee, operator.itemgetter | operator.attrgetter):
        names = callee.__reduce__()[1]
        known = tuple(lowering.constant(name, "a name") for name in names)
        is_item = isinstance(callee, operator.itemgetter)
        return got(lowering, Getter(is_item, known), args[0], node) if len(args) == 1 else None
    if callee in (np.round, np.around) and args and is_float_like(args[0]):
        digits = args[1] if len(args) == 2 else kwargs.get("decimals")
        if digits is not None and len(args) + len(kwargs) == 2:
            return round_decimals(lowering, args[0], digits, node)
    if callee is functools.wraps and args:
        return Static(standard.same)
    found = instead(callee, args, kwargs)
    if found is None:
        return None
    function, given, named = found
    return lowering.inline(function, given, named, node)


def instead(
    callee: Any, args: Sequence[Value], kwargs: dict[str, Value]
) -> tuple[FunctionType, list[Value], dict[str, Value]] | None:
    """What runs in the place of a function, with which arguments."""
    given, named = list(args), dict(kwargs)
    for original, function in FUNCTIONS:
        if callee is original:
            if callee is math.perm and len(given) == 1:
                return standard.factorial, given, named
            return function, given, named
    if callee is math.hypot and len(given) != 2 and not named:
        return standard.hypot, given, named
    if callee is functools.reduce and not named and len(given) in (2, 3):
        return (standard.reduce if len(given) == 2 else standard.reduce_from), given, named
    if callee is sum and named.keys() == {"start"} and len(given) == 1:
        return standard.sum_from, [given[0], named["start"]], {}
    if callee in (min, max) and named and named.keys() <= {"key", "default"} and given:
        return extreme(callee is min, given, named)
    if callee is pow and (len(given) == 3 or "mod" in named):
        return standard.power, [*given, *named.values()], {}
    return None


def extreme(
    least: bool, given: list[Value], named: dict[str, Value]
) -> tuple[FunctionType, list[Value], dict[str, Value]]:
    """`min` or `max` with `key` or `default`."""
    items = given[0] if len(given) == 1 else Tuple(tuple(given))
    key = named.get("key", Static(standard.same))
    if "default" in named:
        return (standard.min_or if least else standard.max_or), [items, key, named["default"]], {}
    return (standard.min_by if least else standard.max_by), [items, key], {}


def got(lowering: Calls, getter: Getter, of: Value, node: ast.Call) -> Value:
    """What an `itemgetter` or `attrgetter` gets."""
    found = list[Value]()
    for name in getter.names:
        if getter.is_item:
            found.append(lowering.inline(standard.getitem, [of, name], {}, node))
            continue
        part = of
        text = name.object if isinstance(name, Static) else ""
        for attribute in str(text).split("."):
            wanted = ast.Attribute(ast.Constant(None), attribute, ast.Load())
            part = lowering.attribute_of(part, ast.copy_location(wanted, node))
        found.append(part)
    return found[0] if len(found) == 1 else Tuple(tuple(found))


def round_to_digits(lowering: Calls, x: Scalar, digits: Value, node: ast.Call) -> Value:
    """`round(x, digits)` of a Python float."""
    known = digits.constant if isinstance(digits, Scalar) else None
    if not isinstance(known, int) or not 0 <= known <= MOST_DIGITS:
        raise lowering.refusal(
            node,
            f"`round` is compiled to a constant number of digits, from 0 to {MOST_DIGITS}",
            "round(x * 10.0**k) / 10.0**k comes close",
        )
    scale = lowering.e.constant(float(10**known), "py_float")
    return lowering.inline(standard.rounded, [x, digits, scale], {}, node)


def round_decimals(lowering: Calls, x: Value, digits: Value, node: ast.Call) -> Value:
    """NumPy's `round` to decimals: scaled, rounded, scaled back."""
    known = digits.constant if isinstance(digits, Scalar) else None
    if not isinstance(known, int) or abs(known) > MOST_DIGITS:
        raise lowering.refusal(
            node, "NumPy's `round` is compiled to a constant number of decimals", "round in a loop"
        )
    scale = lowering.e.constant(float(10 ** abs(known)), "py_float")
    there, back = ("Mult", "Div") if known >= 0 else ("Div", "Mult")
    whole = library.call(lowering.e, np.rint, [lowering.binary_values(there, x, scale)], {})
    return lowering.binary_values(back, whole, scale)


def is_float_like(value: Value) -> bool:
    dtype = value.type if isinstance(value, Scalar) else getattr(value, "dtype", "")
    return dtype in ("f32", "f64")


def is_callable(value: Value) -> bool:
    """`callable(value)`."""
    if isinstance(value, Static):
        from ..frames import LocalFunction

        found = value.object
        return isinstance(found, LocalFunction) or hasattr(found, "function") or callable(found)
    return isinstance(value, Record | Struct) and "__call__" in dir(value.cls)
