"""Items of dicts by keys known at run time only: one branch for each key that it may be.

    counts = {"up": 0, "down": 0}
    counts["up" if v > 0 else "down"] += 1        if the first is meant: counts["up"] += 1
                                                  else: counts["down"] += 1
    rates = {1: 0.5, 5: 0.25}
    s += rates[k]                                 if k == 1 ... elif k == 5 ... else KeyError

Which keys a dict has stays known while compiling: an item that is not there yet is never assigned under such
a key.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from xdsl.dialects import arith

from ....dialects import array
from .. import choices, exceptions, scalars
from ..values import Choice, NoneValue, Scalar, Value

if TYPE_CHECKING:
    from .constructing import Constructing


def is_open(key: Value) -> bool:
    """True for a key known at run time."""
    return isinstance(key, Choice) or (isinstance(key, Scalar) and key.constant is None)


def which(lowering: Constructing, key: Value, known: Iterable[Any], node: ast.AST) -> Choice:
    """The key as one of those that the dict has; KeyError where it is another."""
    if isinstance(key, Choice):
        return key
    assert isinstance(key, Scalar)
    numbers = [k for k in known if isinstance(k, int | float)]
    if not 0 < len(numbers) <= choices.MOST_OPTIONS:
        raise lowering.refusal(
            node,
            "a dict's key is known only at run time, and is none of a few numbers",
            "index an array or a list instead",
        )
    e, found = lowering.e, lowering.e.index(len(numbers))
    options = tuple(lowering.constant(k, "a key") for k in numbers)
    for k in reversed(range(len(numbers))):
        same = equal(lowering, key, options[k])
        found = e.emit(arith.SelectOp(same.ssa, e.index(k), found))
    missing = choices.is_number(e, found, len(numbers))
    e.insert(array.RaiseIfOp(missing, "KeyError", exceptions.of_number(key), [key.ssa]))
    return Choice(found, options)


def contains(lowering: Constructing, key: Value, known: Iterable[Any]) -> Scalar:
    """`key in d`."""
    if isinstance(key, Choice):
        inside = [lowering.constant_key(one, None) in set(known) for one in key.options]
        return choices.is_any_of(lowering.e, key, inside)
    found = lowering.e.constant(False, "py_bool")
    for one in known:
        if isinstance(one, int | float):
            same = equal(lowering, key, lowering.constant(one, "a key"))
            found = lowering.conjunction("or", found, same)
    return found


def equal(lowering: Constructing, a: Value, b: Value) -> Scalar:
    return scalars.truth(lowering.e, lowering.compare_values(ast.Eq(), a, b))


def do(lowering: Constructing, key: Choice, assign: Callable[[Value], None]) -> None:
    """Assign to the item that the key is of."""

    def then(one: Value) -> Value:
        assign(one)
        return NoneValue()

    choices.each(lowering, key, then)
