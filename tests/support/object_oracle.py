"""Objects in and out of compiled functions, compared with what CPython leaves."""

from __future__ import annotations

import copy
import enum
from collections.abc import Callable
from typing import Any

import numpy as np

import mutad


def parts_of(value: Any, path: str, seen: dict[int, str]) -> dict[str, Any]:
    """Every number, array and class in a value by its path; an object met again is its first path."""
    if isinstance(value, enum.Enum | str | np.generic | int | float) or value is None:
        return {path: (type(value), value)}
    if id(value) in seen and not isinstance(value, tuple):
        return {path: seen[id(value)]}
    seen[id(value)] = path
    if isinstance(value, np.ndarray):
        return {path: (value.dtype, value.shape, value.tolist())}
    if isinstance(value, dict):
        items = [(f"{path}[{k!r}]", v) for k, v in value.items()]
    elif isinstance(value, tuple | list):
        items = [(f"{path}[{k}]", v) for k, v in enumerate(value)]
    else:
        names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
        items = [(f"{path}.{n}", getattr(value, n)) for n in names]
    found: dict[str, Any] = {path: type(value)}
    for name, item in items:
        found |= parts_of(item, name, seen)
    return found


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """What a call returns or raises, and what it leaves of its arguments."""
    seen: dict[int, str] = {}
    try:
        found = {"result": function(*args)}
    except mutad.CompileError:
        raise
    except Exception as error:
        found = {"raised": (type(error), str(error))}
        return {**parts_of(args, "args", seen), **found}
    return {**parts_of(args, "args", seen), **parts_of(found["result"], "result", seen)}


def agrees(function: Callable[..., Any], *args: Any, calls: int = 1) -> None:
    """The compiled function does what CPython does, a second time, too."""
    compiled = mutad.compile(function)
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    for _ in range(calls):
        expected, actual = outcome(function, theirs), outcome(compiled, mine)
        np.testing.assert_equal(actual, expected)


def gradient_agrees(function: Callable[..., Any], *args: Any, wrt: Any = 0) -> None:
    """`check_gradient`, and side effects of `value_and_grad`, and a gradient of the argument's class."""
    compiled = mutad.compile(function, grad=True)
    mutad.check_gradient(compiled, *copy.deepcopy(args), wrt=wrt)
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    compiled.value_and_grad(*mine, wrt=wrt)
    function(*theirs)
    expected, actual = parts_of(theirs, "args", {}), parts_of(mine, "args", {})
    assert expected.keys() == actual.keys()
    for path, value in expected.items():
        np.testing.assert_allclose(numbers(actual[path]), numbers(value), rtol=1e-12, err_msg=path)


def numbers(part: Any) -> Any:
    found = part[-1] if isinstance(part, tuple) else 0.0
    return 0.0 if isinstance(found, str | enum.Enum) or found is None else found
