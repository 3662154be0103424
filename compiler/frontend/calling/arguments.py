"""Which argument of a call becomes which parameter: as CPython binds them, while compiling.

`f(a, *rest, k=b, **{"m": c})` of `def f(x, y=d, *more, k, m)`: items of tuples take their places one by
one, keys are constants. What is left over makes the tuple that `*more` is.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..values import Tuple, Value


@dataclass(frozen=True, eq=False)
class Partial:
    """`functools.partial(function, *args, **kwargs)` made in compiled code."""

    function: Value
    args: tuple[Value, ...]
    kwargs: dict[str, Value]


class Unbindable(Exception):
    """The call does not fit the function's parameters. The text is CPython's, nearly."""

    unknown: str | None = None  # the keyword that is no parameter


def bound(
    a: ast.arguments,
    name: str,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    defaults: Sequence[Value],
    keyword_defaults: Sequence[Value | None],
) -> dict[str, Value]:
    """The value of each parameter but `**kwargs`; Unbindable where CPython raises TypeError."""
    positional = [p.arg for p in (*a.posonlyargs, *a.args)]
    if len(args) > len(positional) and a.vararg is None:
        raise Unbindable(
            f"{name}() takes {len(positional)} positional arguments but {len(args)} were given"
        )
    given = dict(zip(positional, args, strict=False))
    allowed = {p.arg for p in (*a.args, *a.kwonlyargs)}
    for key, value in kwargs.items():
        if key not in allowed and a.kwarg is not None:
            continue
        if key not in allowed:
            error = Unbindable(f"{name}() got an unexpected keyword argument '{key}'")
            error.unknown = key
            raise error
        if key in given:
            raise Unbindable(f"{name}() got multiple values for argument '{key}'")
        given[key] = value
    fallback = dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))
    for parameter, default in zip(a.kwonlyargs, keyword_defaults, strict=True):
        if default is not None:
            fallback[parameter.arg] = default
    values: dict[str, Value] = {}
    for parameter in (*positional, *(p.arg for p in a.kwonlyargs)):
        if parameter not in given and parameter not in fallback:
            raise Unbindable(f"{name}() missing a required argument: '{parameter}'")
        values[parameter] = given[parameter] if parameter in given else fallback[parameter]
    if a.vararg is not None:
        values[a.vararg.arg] = Tuple(tuple(args[len(positional) :]))
    return values


def left_over(a: ast.arguments, kwargs: Mapping[str, Value]) -> dict[str, Value]:
    """The keywords that are no parameters: the items of the dict that `**kwargs` is."""
    named = {p.arg for p in (*a.args, *a.kwonlyargs)}
    return {key: value for key, value in kwargs.items() if key not in named}


OPERATORS: dict[Any, str] = {
    operator.add: "Add", operator.sub: "Sub", operator.mul: "Mult", operator.truediv: "Div",
    operator.floordiv: "FloorDiv", operator.mod: "Mod", operator.pow: "Pow",
    operator.matmul: "MatMult", operator.and_: "BitAnd", operator.or_: "BitOr",
    operator.xor: "BitXor",
}  # fmt: skip
"""Functions of `operator` that are an operator each."""


def operator_of(callee: object) -> str | None:
    """The operator that a function of `operator` is; None for anything else."""
    return next((op for function, op in OPERATORS.items() if function is callee), None)
