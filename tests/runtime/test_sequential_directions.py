"""Directions of large arrays go one after the other where code only streams: with the same outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import BatchDuplicated, Const, compile
from mutad.runtime import sequential_directions

LANES = 3


def stencil(start, k, steps):
    u = start.copy()
    v = start.copy()
    for _ in range(steps):
        v[1:-1] = k * (u[:-2] + u[2:]) - u[1:-1] * u[1:-1]
        u, v = v, u
    return (u * u * u).sum()


def dot(a, x, y):
    z = y.copy()
    for i in range(x.size):
        z[i] += a * x[i] * x[i]
    total = 0.0
    for i in range(x.size):
        total += z[i] * x[i]
    return total, 2.0 * a


def powers(x):
    return (np.sqrt(x) * x).sum()


def recurrence(x):
    u = x.copy()
    for i in range(1, u.size):
        u[i] = u[i] * u[i - 1]
    return u.sum()


def transcendental(x):
    return np.exp(x).sum()


def in_place(x):
    x *= x
    return x.sum()


def fresh(x):
    return x * x


def product(x):
    return (x.reshape(2, -1) @ x.reshape(-1, 2)).sum()


RNG = np.random.default_rng(0)
X, GRID = RNG.uniform(0.5, 1.5, 6), RNG.normal(size=(4, 5))
STREAMING: tuple[tuple[Callable[..., Any], tuple[Any, ...], tuple[str, ...]], ...] = (
    (stencil, (X, 0.3, 4), ("start", "k")),
    (stencil, (GRID, 0.3, 3), ("start",)),
    (stencil, (GRID[::2, ::-1], 0.3, 3), ("start", "k")),
    (stencil, (GRID.astype(np.float32), 0.3, 2), ("start",)),
    (dot, (0.5, X, X[::-1].copy()), ("x", "a", "y")),
    (powers, (np.array([0.0, 1.0, 4.0]),), ("x",)),
)
"""Programs that stream: function, arguments, what moves. The last needs guards: directions are 0 at its 0."""
KEPT: tuple[tuple[Callable[..., Any], Any], ...] = (
    (recurrence, X),
    (transcendental, X),
    (in_place, X),
    (fresh, X),
    (product, X),
    (stencil, np.asfortranarray(GRID)),
)
"""Programs, or arrays, whose directions stay side by side."""


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """All arrays are large; what was decided of each call."""
    decided: list[bool] = []

    def are_better(*asked: Any, **more: Any) -> bool:
        decided.append(before(*asked, **more))
        return decided[-1]

    before = sequential_directions.are_better
    monkeypatch.setattr(sequential_directions, "LARGE", 0)
    monkeypatch.setattr(sequential_directions, "are_better", are_better)
    return decided


def directions(arguments: tuple[Any, ...], function: Any, names: tuple[str, ...]) -> dict[str, Any]:
    parameters = function.__code__.co_varnames
    found: dict[str, Any] = {}
    for name in names:
        own = np.asarray(arguments[parameters.index(name)])
        found[name] = RNG.normal(size=(LANES, *own.shape)).astype(own.dtype)
        found[name].reshape(LANES, -1)[0, 0] = 0.0
    return found


def same(together: Any, alone: list[Any]) -> None:
    """What all directions gave is what each gave, along a first axis; numbers have no other."""
    if isinstance(together, tuple):
        for part, parts in zip(together, zip(*alone, strict=True), strict=True):
            same(part, list(parts))
        return
    assert together.shape == (LANES, *np.shape(alone[0]))
    rtol = 1e-4 if together.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(together, np.stack(alone), rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("function", "arguments", "names"), STREAMING)
def test_tangents(function: Any, arguments: Any, names: Any, turns: list[bool]) -> None:
    f, moving = compile(function, grad=True, opt=1), directions(arguments, function, names)
    value, dots = f.jvp(*arguments, tangents=moving, batch=LANES)
    assert turns == [True]
    assert value == f(*arguments)
    ones = [{n: d[k] for n, d in moving.items()} for k in range(LANES)]
    same(dots, [f.jvp(*arguments, tangents=one)[1] for one in ones])


@pytest.mark.parametrize(("function", "arguments", "names"), STREAMING)
def test_tangents_side_by_side(
    function: Any, arguments: Any, names: Any, turns: list[bool]
) -> None:
    """They are taken apart where the function goes over the same elements several times."""
    f, moving = compile(function, grad=True, opt=1), directions(arguments, function, names)
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
    wrapped = [
        BatchDuplicated(a, np.moveaxis(moving[n], 0, -1).copy(order="C"))
        if n in names
        else Const(a)
        for n, a in zip(parameters, arguments, strict=True)
    ]
    kept = [w.tangents.copy() for w in wrapped if isinstance(w, BatchDuplicated)]
    value, dots = f.pushforward(*wrapped)
    assert turns == [function is stencil]
    assert value == f(*arguments)
    ones = [{n: d[k] for n, d in moving.items()} for k in range(LANES)]
    same(dots, [f.jvp(*arguments, tangents=one)[1] for one in ones])
    for w, before in zip((w for w in wrapped if isinstance(w, BatchDuplicated)), kept, strict=True):
        np.testing.assert_array_equal(w.tangents, before)


def test_errors_come_of_the_first_direction(turns: list[bool]) -> None:
    f, along = compile(checked, grad=True, opt=1), np.ones((LANES, 6))
    with pytest.raises(ValueError, match="k is 0"):
        f.jvp(X, 0.0, tangents={"x": along}, batch=LANES)
    assert turns == [True]
    assert f.jvp(X, 2.0, tangents={"x": along}, batch=LANES)[1].tolist() == [3.0] * LANES


def checked(x, k):
    if k == 0.0:
        raise ValueError("k is 0")
    return (x / k).sum()


@pytest.mark.parametrize(("function", "arguments", "names"), STREAMING)
def test_cotangents(function: Any, arguments: Any, names: Any, turns: list[bool]) -> None:
    f = compile(function, grad=True, opt=1)
    value, back = f.vjp(*arguments, wrt=names, batch=LANES)
    assert turns == [True]
    _, alone = f.vjp(*arguments, wrt=names)
    bars = RNG.normal(size=LANES)
    pair = isinstance(value, tuple)
    finals = {
        n: RNG.normal(size=(LANES, *np.shape(a))).astype(a.dtype)
        for n, a in zip(function.__code__.co_varnames, arguments, strict=False)
        if isinstance(a, np.ndarray) and n in names
    }
    for _ in range(2):
        found = back((bars, bars) if pair else bars, **finals)
        each = [
            alone((b, b) if pair else b, **{n: d[k] for n, d in finals.items()})
            for k, b in enumerate(bars)
        ]
        same(found, each)


@pytest.mark.parametrize(("function", "arguments", "names"), [s for s in STREAMING if s[0] != dot])
def test_hessian_products(function: Any, arguments: Any, names: Any, turns: list[bool]) -> None:
    f, moving = compile(function, grad=True, opt=1), directions(arguments, function, names)
    along = tuple(moving.values())
    value, gradient, products = f.value_grad_hvp(
        *arguments, wrt=names, direction=along, batch=LANES
    )
    assert turns[0]
    assert value == f(*arguments)
    for a, b in zip(gradient, f.grad(*arguments, wrt=names), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    ones = [tuple(d[k] for d in along) for k in range(LANES)]
    each = [f.hvp(*arguments, wrt=names, direction=one) for one in ones]
    same(products, each)
    same(f.hvp(*arguments, wrt=names, direction=along, batch=LANES), each)


@pytest.mark.parametrize(("function", "array"), KEPT)
def test_others_go_side_by_side(function: Any, array: np.ndarray, turns: list[bool]) -> None:
    f, rest = compile(function, grad=True, opt=1), (0.3, 2) if function is stencil else ()
    moving = RNG.normal(size=(LANES, *array.shape))
    before = moving.copy()
    own = array.copy(order="K")
    _, dots = f.jvp(own, *rest, tangents={own_name(function): moving}, batch=LANES)
    assert not any(turns)
    for k in range(LANES):
        one = before[k].copy()
        _, dot = f.jvp(array.copy(order="K"), *rest, tangents={own_name(function): one})
        np.testing.assert_allclose(dots[k], dot, rtol=1e-12)
        np.testing.assert_allclose(moving[k], one, rtol=1e-12)


def own_name(function: Any) -> str:
    return function.__code__.co_varnames[0]
