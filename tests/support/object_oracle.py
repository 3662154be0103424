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
    """`check_gradient`; side effects of `value_and_grad`, a gradient of the argument's class; tangents."""
    compiled = mutad.compile(function, grad=True)
    mutad.check_gradient(compiled, *copy.deepcopy(args), wrt=wrt)
    tangents_agree(compiled, *copy.deepcopy(args), wrt=wrt)
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


# Tangents.


def mapped(change: Callable[[Any, Any], Any], value: Any, other: Any, seen: dict[int, Any]) -> Any:
    """A deep copy of a value whose floats and arrays of floats are `change(of it, of the other)`."""
    if id(value) in seen:
        return seen[id(value)]
    if isinstance(value, float | np.floating):
        return change(value, other)
    if isinstance(value, np.ndarray):
        seen[id(value)] = change(value, other) if value.dtype.kind == "f" else value.copy()
        return seen[id(value)]
    if isinstance(value, tuple):
        pairs = zip(value, other, strict=True)
        items = [mapped(change, a, b, seen) for a, b in pairs]
        return tuple(items) if type(value) is tuple else type(value)(*items)
    if isinstance(value, enum.Enum | type) or not isinstance(value, dict | list | object):
        return value
    made = seen[id(value)] = copy.copy(value)
    if isinstance(value, dict):
        made.update({k: mapped(change, v, other[k], seen) for k, v in value.items()})
    elif isinstance(value, list):
        pairs = zip(value, other, strict=True)
        made[:] = [mapped(change, a, b, seen) for a, b in pairs]
    else:
        names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
        for name in names:
            item = mapped(change, getattr(value, name), getattr(other, name), seen)
            object.__setattr__(made, name, item)
    return made


def tangents_agree(compiled: Any, *args: Any, wrt: Any = 0, step: float = 1e-5) -> None:
    """`jvp`: result and effects are CPython's, the tangents of both those that differences give."""
    names, rng = compiled.parameters, np.random.default_rng(7)
    wanted = wrt if isinstance(wrt, tuple) else (wrt,)
    moving = {
        names[w] if isinstance(w, int) else w.partition(".")[0].partition("[")[0] for w in wanted
    }
    moving &= set(names)

    def drawn(value: Any, _: Any) -> Any:
        found = rng.uniform(0.5, 1.5, np.shape(value))
        return found if isinstance(value, np.ndarray) else float(found)

    seen: dict[int, Any] = {}
    still = mapped(lambda v, _: v * 0.0, args, args, {})
    named = list(zip(names, mapped(drawn, args, args, {}), still, strict=False))
    along = tuple(dot if n in moving else zero for n, dot, zero in named)
    dots = {n: dot for n, dot, _ in named if n in moving}

    def outcome_at(distance: float) -> dict[str, Any]:
        moved = mapped(lambda v, d: v + distance * d, args, along, {})
        seen: dict[int, str] = {}
        result = compiled.__wrapped__(*moved)
        return {**parts_of(moved, "args", seen), **parts_of(result, "result", {})}

    mine, directions = copy.deepcopy(args), copy.deepcopy(dots)
    value, dot = compiled.jvp(*mine, tangents=directions)
    ahead, behind, here = outcome_at(step), outcome_at(-step), outcome_at(0.0)
    actual = {**parts_of(mine, "args", {}), **parts_of(value, "result", {})}
    found = parts_of(dot, "result", {})
    for k, name in enumerate(names[: len(args)]):
        if name in directions:
            found |= parts_of(directions[name], f"args[{k}]", seen)
    for path, part in here.items():
        np.testing.assert_allclose(numbers(actual[path]), numbers(part), rtol=1e-12, err_msg=path)
        if path in found and is_float_part(part) and found[path][-1] is not None:
            slope = np.subtract(numbers(ahead[path]), numbers(behind[path])) / (2 * step)
            scale = 1e-5 * max(1.0, float(np.max(np.abs(slope), initial=0.0)))
            np.testing.assert_allclose(
                numbers(found[path]), slope, rtol=1e-5, atol=scale, err_msg=path
            )


def is_float_part(part: Any) -> bool:
    return isinstance(part, tuple) and (
        part[0] in (float, np.float64) or part[0] == np.dtype(float)
    )


def products_agree(compiled: Any, *args: Any, wrt: Any = 0, step: float = 1e-5) -> None:
    """`value_grad_hvp` along a random direction: value, effects, gradient, differences of gradients."""
    rng, names = np.random.default_rng(3), compiled.parameters
    wanted = wrt if isinstance(wrt, tuple) else (wrt,)
    along = mapped(
        lambda v, _: rng.uniform(0.5, 1.5, np.shape(v)) if np.ndim(v) else float(rng.uniform()),
        args,
        args,
        {},
    )
    still = mapped(lambda v, _: v * 0.0, args, args, {})
    moving = {names[w] if isinstance(w, int) else w for w in wanted}
    along = tuple(a if n in moving else s for n, a, s in zip(names, along, still, strict=False))
    direction = tuple(along[names.index(n) if isinstance(n, str) else n] for n in wanted)

    def gradient_at(distance: float) -> Any:
        moved = mapped(lambda v, d: v + distance * d, args, along, {})
        return parts_of(compiled.grad(*moved, wrt=wanted), "gradient", {})

    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    value, gradient, product = compiled.value_grad_hvp(*mine, wrt=wanted, direction=direction)
    assert value == compiled(*theirs)
    left, expected = parts_of(mine, "args", {}), parts_of(theirs, "args", {})
    np.testing.assert_equal(left, expected)
    found, here = parts_of(product, "gradient", {}), gradient_at(0.0)
    ahead, behind = gradient_at(step), gradient_at(-step)
    for path, part in parts_of(gradient, "gradient", {}).items():
        np.testing.assert_allclose(numbers(part), numbers(here[path]), rtol=1e-11, atol=1e-11)
        if is_float_part(part):
            slope = np.subtract(numbers(ahead[path]), numbers(behind[path])) / (2 * step)
            scale = 1e-5 * max(1.0, float(np.max(np.abs(slope), initial=0.0)))
            np.testing.assert_allclose(
                numbers(found[path]), slope, rtol=1e-5, atol=scale, err_msg=path
            )
