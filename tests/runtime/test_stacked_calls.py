"""`jvp`, `hvp` and `value_grad_hvp` with `batch=`: entries take such calls as Python code does."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import BatchDuplicated, Const, Duplicated, compile

LANES = 3


def of_numbers(a, b):
    return a * b + math.sin(a)


def of_an_array(x, k):
    return (np.sin(x) * x).sum() * k


def in_place(x, k):
    x[1:] *= k * x[:-1]
    return (x * x).sum()


def two_results(x, k):
    y = np.exp(x) * k
    return y, y.sum(), k * k


def argument_itself(x, k):
    x *= k
    return x, x.sum()


def view_of_it(x, k):
    x += k
    return x[1:]


def matrix(x, k):
    return x @ x.T * k


def other_array(x, y):
    y[:] = x * x
    return y.sum() * x[0]


def constant_beside(x, k, n):
    for _ in range(n):
        x = x * k
    return x.sum()


def linear(x, k):
    return x.sum() + 2.0 * k


def needs_guards(x, k):
    return np.where(x > 0.5, np.sqrt(x - 0.5), 0.0).sum() * k


def of_a_global(x, k):
    return (x * WEIGHTS).sum() * k * k


WEIGHTS = np.arange(5.0)
V, M = np.linspace(0.5, 1.5, 5), np.linspace(-1.0, 1.0, 6).reshape(2, 3)
PUSHED: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[str, ...]]] = [
    (of_numbers, (0.7, 1.3), ("a",)),
    (of_numbers, (np.float64(0.7), 1.3), ("a", "b")),
    (of_an_array, (V, 0.5), ("x",)),
    (of_an_array, (V, 0.5), ("x", "k")),
    (of_an_array, (V[::2], 0.5), ("x",)),
    (of_an_array, (V.astype(np.float32), 0.5), ("x",)),
    (of_an_array, (np.zeros(0), 0.5), ("x", "k")),
    (of_an_array, (np.ones(1), 0.5), ("x",)),
    (of_an_array, (np.full((2, 1, 3), 0.3), 0.5), ("x",)),
    (in_place, (V, 0.5), ("x",)),
    (in_place, (V, 0.5), ("k",)),
    (in_place, (V, 0.5), ("k", "x")),
    (two_results, (V, 0.5), ("x", "k")),
    (argument_itself, (M, 0.5), ("x", "k")),
    (view_of_it, (M, 0.5), ("x", "k")),
    (matrix, (M, 0.5), ("x", "k")),
    (other_array, (V, V * 2), ("x",)),
    (other_array, (V, V * 2), ("x", "y")),
    (constant_beside, (V, 0.5, 3), ("x", "k")),
    (linear, (V, 0.5), ("x", "k")),
    (needs_guards, (V, 0.5), ("x", "k")),
    (of_a_global, (V, 0.5), ("x", "k")),
]
CURVED = [row for row in PUSHED if row[0] not in (two_results, argument_itself, view_of_it, matrix)]


def stacks_of(arguments: tuple[Any, ...], function: Any, names: tuple[str, ...]) -> dict[str, Any]:
    rng, parameters = np.random.default_rng(0), function.__code__.co_varnames
    values = {name: arguments[parameters.index(name)] for name in names}
    return {
        n: rng.normal(size=(LANES, *np.shape(v))).astype(getattr(v, "dtype", np.float64))
        for n, v in values.items()
    }


def called_twice(
    f: Any, monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any], *, taken: bool
) -> tuple[Any, Any]:
    """What Python code makes of a call, and what an entry makes of it."""
    first, calls = run(), list[str]()
    dispatcher = f._dispatcher
    method = type(dispatcher).method

    def counting(self: Any, kind: str, *args: Any, **kwargs: Any) -> Any:
        calls.append(kind)
        return method(self, kind, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(type(dispatcher), "method", counting)
        dispatcher.begin()
        for kind, head in dispatcher.heads.items():
            dispatcher.installed(kind, head)
        run()
        calls.clear()
        second = run()
    assert bool(calls) is not taken
    return first, second


def assert_alike(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, tuple):
        for a, b in zip(one, other, strict=True):
            assert_alike(a, b)
    elif isinstance(one, np.ndarray):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_array_equal(one, other)
    else:
        np.testing.assert_equal(one, other)


@pytest.mark.parametrize(("function", "arguments", "names"), PUSHED)
def test_tangents(function, arguments, names, monkeypatch) -> None:
    f = compile(function, grad=True, opt=1, cache=False)
    stacks = stacks_of(arguments, function, names)

    def run() -> Any:
        own, moves = copy.deepcopy((arguments, stacks))
        value, dot = f.jvp(*own, tangents=moves, batch=LANES)
        parts = zip(as_tuple(value), as_tuple(dot), strict=True)
        shared = [[d is moves.get("x")] for v, d in parts if v is own[0]]
        return value, dot, own, tuple(moves.values()), tuple(map(tuple, shared))

    assert_alike(*called_twice(f, monkeypatch, run, taken=True))
    _, dots, _, after, _ = run()
    for lane in range(LANES):
        own, moves = copy.deepcopy((arguments, {n: s[lane] for n, s in stacks.items()}))
        moves = {n: m if isinstance(m, np.ndarray) else float(m) for n, m in moves.items()}
        _, dot = f.jvp(*own, tangents=moves)
        for several, one in zip(as_tuple(dots), as_tuple(dot), strict=True):
            np.testing.assert_allclose(several[lane], one, rtol=1e-6 if "32" in str(one) else 1e-12)
        for several, one in zip(after, moves.values(), strict=True):
            np.testing.assert_allclose(several[lane], one, rtol=1e-6)


@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize(("function", "arguments", "names"), PUSHED)
def test_tangents_in_wrappers(function, arguments, names, lanes, monkeypatch) -> None:
    """`pushforward` is `jvp` of what lies side by side, and in the caller's arrays."""
    f = compile(function, grad=True, opt=1, cache=False)
    parameters = function.__code__.co_varnames[: len(arguments)]
    stacks = stacks_of(arguments, function, names)

    def beside(stack: np.ndarray) -> Any:
        if lanes > 1:
            return np.moveaxis(stack, 0, -1).copy()
        return stack[0].copy() if stack.ndim > 1 else float(stack[0])

    def run() -> Any:
        own = copy.deepcopy(arguments)
        moves = {n: beside(s) for n, s in stacks.items()}
        kind = Duplicated if lanes == 1 else BatchDuplicated
        pairs = zip(parameters, own, strict=True)
        wrapped = [kind(a, moves[n]) if n in names else Const(a) for n, a in pairs]
        return f.pushforward(*wrapped), own, tuple(moves.values())

    assert_alike(*called_twice(f, monkeypatch, run, taken=True))
    (value, dot), own, moved = run()
    again, given = copy.deepcopy((arguments, stacks))
    if lanes > 1:
        expected = f.jvp(*again, tangents=given, batch=lanes)
        assert_alike(value, expected[0])
        for mine, theirs in zip(as_tuple(dot), as_tuple(expected[1]), strict=True):
            np.testing.assert_array_equal(np.moveaxis(mine, -1, 0), theirs)
        for mine, theirs in zip(moved, given.values(), strict=True):
            np.testing.assert_array_equal(np.moveaxis(mine, -1, 0), theirs)
    else:
        single = {n: beside(s) for n, s in given.items()}
        assert_alike((value, dot), f.jvp(*again, tangents=single))
        assert_alike(moved, tuple(single.values()))
    assert_alike(own, again)


def test_what_the_entry_of_pushforward_does_not_take_python_code_does() -> None:
    f = compile(in_place, grad=True, opt=1, cache=False)
    expected = f.pushforward(Duplicated(V.copy(), np.ones(5)), Const(0.5))
    wide = np.ones(10)[::2]
    for wrapped, named in (
        ((Duplicated(V.copy(), wide), Const(0.5)), {}),
        ((Duplicated(V.copy(), np.ones(5)),), {"k": Const(0.5)}),
    ):
        assert_alike(f.pushforward(*wrapped, **named), expected)
    for wrong, error in (
        ((Duplicated(V.copy(), np.ones(4)), Const(0.5)), ValueError),
        ((Duplicated(V.copy(), np.ones(5)), 0.5), TypeError),
        ((Duplicated(V.copy(), np.ones(5, np.float32)), Const(0.5)), ValueError),
    ):
        with pytest.raises(error, match="pushforward"):
            f.pushforward(*wrong)
    shared = V.copy()
    with pytest.raises(ValueError, match="share"):
        f.pushforward(Duplicated(shared, shared), Const(0.5))


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("call", ["hvp", "value_grad_hvp"])
@pytest.mark.parametrize(("function", "arguments", "names"), CURVED)
def test_products(call, function, arguments, names, monkeypatch) -> None:
    f = compile(function, grad=True, opt=1, cache=False)
    stacks = stacks_of(arguments, function, names)
    single = len(names) == 1
    wrt = names[0] if single else names

    def run() -> Any:
        own = copy.deepcopy(arguments)
        direction = tuple(stacks.values())
        given = direction[0] if single else direction
        return getattr(f, call)(*own, wrt=wrt, direction=given, batch=LANES), own

    stores = function in (in_place, other_array)
    assert_alike(*called_twice(f, monkeypatch, run, taken=not stores))
    found = run()[0] if call == "hvp" else run()[0][2]
    for lane in range(LANES):
        direction = tuple(s[lane] for s in stacks.values())
        one = f.hvp(*copy.deepcopy(arguments), wrt=names, direction=direction)
        for several, alone in zip((found,) if single else found, one, strict=True):
            np.testing.assert_allclose(several[lane], alone, rtol=1e-5, atol=1e-12)


def raising(x, k):
    x[0] *= k
    x[1] = 1.0 / (k - 2.0)
    return x.sum()


def test_where_the_function_raises_tangents_are_those_of_what_was_stored(monkeypatch) -> None:
    f = compile(raising, grad=True, opt=1, cache=False)

    def run(k: float = 2.0) -> Any:
        x, dots = np.array([1.0, 2.0, 3.0]), np.arange(9.0).reshape(LANES, 3)
        try:
            f.jvp(x, k, tangents={"x": dots, "k": np.ones(LANES)}, batch=LANES)
        except ZeroDivisionError:
            pass
        return x, dots

    run(1.0)
    first, second = called_twice(f, monkeypatch, run, taken=True)
    assert_alike(first, second)
    np.testing.assert_array_equal(second[1], [[1.0, 1.0, 2.0], [7.0, 4.0, 5.0], [13.0, 7.0, 8.0]])


def test_what_an_entry_does_not_take_python_code_does() -> None:
    f = compile(of_an_array, grad=True, opt=1, cache=False)
    stack = np.arange(15.0).reshape(LANES, 5)
    expected = f.hvp(V, 0.5, direction=stack, batch=LANES)
    for other in (stack.tolist(), np.asfortranarray(stack), stack.astype(np.float32)):
        np.testing.assert_array_equal(f.hvp(V, 0.5, direction=other, batch=LANES), expected)
    np.testing.assert_array_equal(f.hvp(V, 0.5, direction=stack[0]), expected[0])
    for wrong in (stack[:2], stack[:, :4], stack.T):
        with pytest.raises(ValueError, match="with batch=3 use"):
            f.hvp(V, 0.5, direction=wrong, batch=LANES)
    with pytest.raises(ValueError, match="shape"):
        f.hvp(V, 0.5, direction=stack)
    with pytest.raises(ValueError, match="shape"):
        f.hvp(V, 0.5, direction=stack, batch=2)


def test_many_numbers_are_for_python_code(monkeypatch) -> None:
    f = compile(of_an_array, grad=True, opt=1, cache=False)
    large = np.ones(20_000)
    many = np.stack([large, 2 * large, 3 * large])

    def run() -> Any:
        return f.hvp(large, 0.5, direction=many, batch=LANES)

    _, found = called_twice(f, monkeypatch, run, taken=False)
    np.testing.assert_allclose(found[2], 3 * f.hvp(large, 0.5, direction=large))


def test_the_memory_of_products_lives_as_long_as_they_do() -> None:
    f = compile(of_an_array, grad=True, opt=1, cache=False)
    stack = np.ones((LANES, 5))
    for _ in range(3):
        kept = [f.hvp(V, 0.5 + k, direction=stack, batch=LANES) for k in range(20)]
    expected = 2 * np.cos(V) - V * np.sin(V)
    for k, one in enumerate(kept):
        np.testing.assert_allclose(one, np.tile((0.5 + k) * expected, (LANES, 1)))
