"""`jvp`, `hvp` and `value_grad_hvp` by entries: they compute and raise what the methods in Python do.

An entry takes a call that needs no more than it can do; everything else goes on to the method. Each call here
is made both ways.
"""

from __future__ import annotations

import copy
import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import CompiledFunction, compile
from mutad.runtime.dispatch import Dispatcher

scale = 1.5


def energy(x, k=2.0):
    return (k * x**3).sum()


def two(x, y, k):
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i] ** 2 * k
    return total


def with_outside(x):
    return (scale * x**2).sum()


def of_rows(m):
    return (np.sin(m) * m[:, :1]).sum()


def linear(x):
    return x.sum()


def with_guards(x):
    return np.where(x > 0, np.sqrt(x), 0.0).sum()


def raises(x):
    if x[0] > 5.0:
        raise ValueError("too large", x[0])
    return (x**2).sum()


def stores(x, y):
    y[:] = x**2
    x *= 2.0
    return (x * y).sum(), y


def returns_it(x, k):
    x += k
    return x


def of_single(x):
    return (x**3).sum()


def of_number(k):
    return k**3


def in_a_tuple(pair, x):
    return (pair[0] * x**2).sum() * pair[1]


FUNCTIONS: dict[Any, CompiledFunction] = {
    f: compile(f, grad=True, opt=1)
    for f in (
        *(energy, two, with_outside, of_rows, linear, with_guards, raises, stores, returns_it),
        *(of_single, of_number, in_a_tuple),
    )
}
X, V = np.array([1.0, 2.0, 0.5]), np.array([0.5, -1.0, 2.0])
M = np.arange(6.0).reshape(2, 3)
F32 = X.astype(np.float32)
WIDE = np.arange(12.0)

TAKEN: list[tuple[Any, str, tuple[Any, ...], dict[str, Any]]] = [
    (energy, "hvp", (X,), {"direction": V}),
    (energy, "hvp", (X, 3.0), {"direction": V, "wrt": 0}),
    (energy, "hvp", (X, 3.0), {"wrt": "x", "direction": V}),
    (energy, "hvp", (X,), {"wrt": ("x",), "direction": (V,)}),
    (energy, "hvp", (X, 3.0), {"wrt": "k", "direction": 1.5}),
    (energy, "hvp", (X, 3.0), {"wrt": ("x", "k"), "direction": (V, 1.5)}),
    (energy, "value_grad_hvp", (X,), {"direction": V}),
    (energy, "value_grad_hvp", (X, 3.0), {"wrt": ("x", "k"), "direction": (V, 1.5)}),
    (energy, "value_grad_hvp", (X, 3.0), {"wrt": ("k",), "direction": (1.5,)}),
    (energy, "hvp", (X,), {"direction": X}),
    (two, "hvp", (X, V, 2.0), {"wrt": ("x", "y"), "direction": (V, X)}),
    (two, "value_grad_hvp", (X, V, 2.0), {"wrt": ("x", "k"), "direction": (V, 1.0)}),
    (with_outside, "hvp", (X,), {"direction": V}),
    (of_rows, "hvp", (M,), {"direction": M + 1}),
    (of_rows, "hvp", (np.asfortranarray(M),), {"direction": np.asfortranarray(M + 1)}),
    (of_rows, "hvp", (np.arange(12.0).reshape(2, 6)[:, ::2],), {"direction": M}),
    (linear, "hvp", (X,), {"direction": V}),
    (linear, "value_grad_hvp", (np.zeros(0),), {"direction": np.zeros(0)}),
    (raises, "hvp", (X,), {"direction": V}),
    (of_single, "hvp", (F32,), {"direction": F32 + 1}),
    (of_number, "hvp", (2.0,), {"direction": 1.0}),
    (of_number, "value_grad_hvp", (np.float32(2.0),), {"direction": 1.0}),
    (in_a_tuple, "hvp", ((V, 2.0), X), {"wrt": "x", "direction": V}),
    (energy, "jvp", (X,), {"tangents": {"x": V}}),
    (energy, "jvp", (X, 3.0), {"tangents": {"k": 1.5, "x": V}}),
    (energy, "jvp", (X, 3.0), {"tangents": {"k": 1.5}}),
    (two, "jvp", (X, V, 2.0), {"tangents": {"x": V + 1}}),
    (with_outside, "jvp", (X,), {"tangents": {"x": V}}),
    (of_rows, "jvp", (np.asfortranarray(M),), {"tangents": {"m": np.asfortranarray(M + 1)}}),
    (stores, "jvp", (X, V), {"tangents": {"x": V + 1, "y": V + 2}}),
    (stores, "jvp", (X, V), {"tangents": {"x": V + 1}}),
    (returns_it, "jvp", (X, 2.0), {"tangents": {"x": V, "k": 1.0}}),
    (of_number, "jvp", (2.0,), {"tangents": {"k": 1.0}}),
    (in_a_tuple, "jvp", ((V, 2.0), X), {"tangents": {"x": V + 1}}),
]
"""Calls that an entry takes, once the code is there."""

NOT_TAKEN: list[tuple[Any, str, tuple[Any, ...], dict[str, Any]]] = [
    (energy, "hvp", (X,), {"direction": [1.0, 2.0, 3.0]}),
    (energy, "hvp", (X,), {"direction": np.arange(3)}),
    (energy, "hvp", (X,), {"direction": F32}),
    (energy, "hvp", (X,), {"direction": WIDE[::4]}),
    (energy, "hvp", (X,), {"direction": WIDE}),
    (energy, "hvp", (X,), {"direction": V[None]}),
    (energy, "hvp", (X,), {"direction": (V,)}),
    (energy, "hvp", (X,), {"wrt": ("x",), "direction": V}),
    (energy, "hvp", (X,), {"wrt": ("x",), "direction": (V, V)}),
    (energy, "hvp", (X,), {"wrt": "z", "direction": V}),
    (energy, "hvp", (X, 3.0), {"wrt": ("k", "x"), "direction": (1.5, V)}),
    (energy, "hvp", (X, 3.0), {"wrt": "k", "direction": 1}),
    (energy, "hvp", (X, 3.0), {"wrt": "k", "direction": V}),
    (energy, "hvp", (X,), {"k": 3.0, "direction": V}),
    (energy, "hvp", (X,), {}),
    (energy, "hvp", (), {"direction": V}),
    (energy, "hvp", (X,), {"direction": V, "mode": "reverse-over-reverse"}),
    (energy, "hvp", (X,), {"direction": V[None], "batch": 1}),
    (energy, "value_grad_hvp", (X,), {"direction": None}),
    (of_rows, "hvp", (M,), {"direction": np.asfortranarray(M + 1)}),
    (of_rows, "hvp", (np.asfortranarray(M),), {"direction": M}),
    (two, "hvp", (X, X, 2.0), {"direction": V}),
    (two, "hvp", (WIDE[:3], WIDE[1:4], 2.0), {"wrt": ("x", "y"), "direction": (V, V)}),
    (stores, "hvp", (X, V), {"direction": V}),
    (raises, "hvp", (X + 9,), {"direction": V}),
    (energy, "jvp", (X,), {"tangents": [V]}),
    (energy, "jvp", (X,), {"tangents": {}}),
    (energy, "jvp", (X,), {"tangents": {"x": X}}),
    (energy, "jvp", (X,), {"tangents": {"x": V, "z": V}}),
    (energy, "jvp", (X,), {"tangents": {"x": WIDE[::4]}}),
    (energy, "jvp", (X, 3.0), {"tangents": {"k": 1}}),
    (two, "jvp", (X, V, 2.0), {"tangents": {"x": WIDE[:3], "y": WIDE[1:4]}}),
    (raises, "jvp", (X + 9,), {"tangents": {"x": V}}),
    (returns_it, "jvp", (X, 2.0), {"tangents": {"x": V, "k": 1.0}, "batch": 2}),
    (energy, "jvp", (X,), {"tangents": {"x": V}, "wrt": 0}),
]
"""Calls that go on to the method, which copies what it is given, or refuses it."""


def outcome(call: Callable[..., Any], case: Any) -> Any:
    """What a call returns or raises, and what it leaves in its arguments."""
    _, _, args, kwargs = copy.deepcopy(case)
    try:
        found = call(*args, **kwargs)
    except Exception as error:
        return type(error), str(error), args, kwargs
    return found, args, kwargs


def assert_same(mine: Any, theirs: Any) -> None:
    """Values, types, dtypes and orders agree."""
    assert type(mine) is type(theirs)
    if isinstance(mine, tuple | list):
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            assert_same(one, other)
    elif isinstance(mine, dict):
        assert_same(list(mine.items()), list(theirs.items()))
    elif isinstance(mine, np.ndarray):
        assert mine.dtype == theirs.dtype
        assert mine.strides == theirs.strides
        np.testing.assert_array_equal(mine, theirs)
    else:
        assert mine == theirs


@pytest.mark.parametrize("case", TAKEN, ids=lambda c: f"{c[0].__name__}-{c[1]}")
def test_entries_do_what_methods_do(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f, kind = FUNCTIONS[case[0]], case[1]
    expected = outcome(lambda *a, **k: getattr(type(f), kind)(f, *a, **k), case)

    def refused(self: Dispatcher, kind: str, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"no entry took {kind}")

    monkeypatch.setattr(Dispatcher, "method", refused)
    found = outcome(getattr(f, kind), case)
    assert_same(found, expected)


@pytest.mark.parametrize("case", NOT_TAKEN, ids=lambda c: f"{c[0].__name__}-{c[1]}")
def test_what_no_entry_takes_goes_on_to_the_method(case: Any) -> None:
    f, kind = FUNCTIONS[case[0]], case[1]
    for known in TAKEN:
        if known[0] is case[0]:
            outcome(getattr(f, known[1]), known)  # its entries stand before the method
    expected = outcome(lambda *a, **k: getattr(type(f), kind)(f, *a, **k), case)
    assert_same(outcome(getattr(f, kind), case), expected)


def test_calls_are_made_anew_with_guards() -> None:
    f = compile(with_guards, grad=True)
    at, direction = np.array([4.0, 0.0, 1.0]), np.ones(3)
    for x in (at[::2].copy(), at, at[::2].copy(), at):
        v = np.ones(x.size)
        expected = np.where(x > 0, -0.25 * np.maximum(x, 0.5) ** -1.5, 0.0)
        np.testing.assert_allclose(f.hvp(x, direction=v), expected)
        value, slope, product = f.value_grad_hvp(x, direction=v)
        np.testing.assert_allclose(product, expected)
        np.testing.assert_allclose(slope, np.where(x > 0, 0.5 * np.maximum(x, 0.5) ** -0.5, 0.0))
        assert value == with_guards(x)
        assert f.jvp(x, tangents={"x": v})[1] == pytest.approx(slope.sum())
    assert direction.sum() == 3


def test_constants_from_outside_are_looked_at() -> None:
    f = compile(with_outside, grad=True, opt=1)
    global scale
    before = scale
    try:
        for now in (1.5, 2.5, 2):
            scale = now
            np.testing.assert_array_equal(f.hvp(X, direction=V), 2 * now * V)
            assert f.jvp(X, tangents={"x": V.copy()})[1] == (2 * now * X * V).sum()
    finally:
        scale = before


def test_calls_leave_no_references() -> None:
    cases = [c for c in TAKEN if c[0] in (energy, two, stores)]
    for case in cases:
        f, (_, kind, args, kwargs) = FUNCTIONS[case[0]], copy.deepcopy(case)
        given = [*args, *kwargs.values(), *dict(kwargs.get("tangents", {})).values()]
        watched = [one for one in given if isinstance(one, np.ndarray | dict | tuple)]
        getattr(f, kind)(*args, **kwargs)
        gc.collect()
        counts = [sys.getrefcount(one) for one in watched]
        for _ in range(20):
            getattr(f, kind)(*args, **kwargs)
        assert [sys.getrefcount(one) for one in watched] == counts


def test_tangents_are_held_while_code_runs() -> None:
    """Another thread empties the dict that they come from."""
    f, x = compile(energy, grad=True, opt=1), np.ones(300_000)
    f.jvp(x, tangents={"x": np.ones(300_000)})
    moving = {"x": np.ones(300_000)}
    done = threading.Event()

    def empty() -> None:
        while not done.is_set():
            moving["x"] = np.ones(300_000)

    other = threading.Thread(target=empty)
    other.start()
    try:
        for _ in range(50):
            assert f.jvp(x, tangents=moving)[1] == 6.0 * x.size
    finally:
        done.set()
        other.join()
