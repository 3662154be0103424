"""Calls of `hessian` and `jacobian` that entries take: the same matrices as Python code makes, to the bit."""

from __future__ import annotations

import gc
import math
import resource
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import compile


def curved(x, k):
    return (np.sin(x) * x).sum() * k


def chained(x, k):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (k - x[:-1]) ** 2).sum()


def linear(x, k):
    return x.sum() * k


def ended_early(x, k):
    s = 0.0
    for v in x:
        if v > 5.0:
            break
        s = s * v + math.sqrt(v * v + k)
    return s


def of_another(x, y):
    return (x * x * y).sum()


def with_a_kink(x, k):
    return np.where(x > 0.6, np.sqrt(x - 0.6) ** 3, 0.0).sum() * k


def field(x, k):
    y = x * x * np.sin(x)
    y[1:] += k * x[:-1] * x[1:]
    return y


def table(x, k):
    return np.outer(x, x * k)


def in_single(x, k):
    return (x * k).astype(np.float32)


def sums(x, k):
    return x.sum(axis=0) * k


def layer(x, w):
    return np.tanh(w @ x) * x


def energy_of_a_layer(x, w):
    return (np.tanh(w @ x) ** 2).sum()


V = np.linspace(0.5, 1.5, 5)
W = np.cos(np.arange(70.0 * 70.0)).reshape(70, 70) / 70.0
HESSIANS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    *((curved, (np.linspace(0.2, 1.0, n), 0.5)) for n in (1, 7, 8, 9, 40)),
    (curved, (V[::-1], 0.5)),
    (curved, (V.astype(np.float32), np.float32(0.5))),
    (curved, (np.full((2, 3), 0.3), 0.5)),
    (chained, (V, 1)),
    (linear, (V, 0.5)),
    (ended_early, (np.array([0.5, 1.0, 7.0, 2.0]), 2.0)),
    (of_another, (V, V * 2)),
    (energy_of_a_layer, (W[0].copy(), W)),
    (with_a_kink, (np.array([0.1, 0.6, 0.9]), 2.0)),
]
JACOBIANS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    *((field, (np.linspace(0.2, 1.0, n), 0.5)) for n in (1, 7, 8, 9, 40)),
    (field, (V.astype(np.float32), np.float32(0.5))),
    (table, (V, 0.5)),
    (layer, (W[0].copy(), W)),
    (in_single, (V, 0.5)),
    (sums, (np.ones((1, 4)), 0.5)),
    (with_a_kink, (np.array([0.1, 0.6, 0.9]), np.arange(3.0))),
]


def by_entries(f: Any, call: str, *args: Any, **kwargs: Any) -> Any:
    """What a call returns that no Python code of ours takes part in."""
    dispatcher = f._dispatcher

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError(f"no entry took {call}")

    link = f.__dict__[call].__self__
    before, link.next = link.next, refused
    try:
        return f.__dict__[call](*args, **kwargs)
    finally:
        link.next = before
        assert dispatcher.heads[call] is f.__dict__[call]


@pytest.mark.parametrize(
    ("call", "function", "arguments"),
    [
        *(("hessian", *row) for row in HESSIANS),
        *(("jacobian", *row) for row in JACOBIANS if row[0] is not with_a_kink),
    ],
)
def test_matrices(call: str, function: Any, arguments: Any) -> None:
    f = compile(function, grad=True, opt=1, cache=False)
    mode = {"mode": "forward"} if call == "jacobian" else {}
    expected = getattr(f, call)(*arguments, **mode)
    apart = arguments[0].size == 1 or function is with_a_kink or not arguments[0].flags.c_contiguous
    if apart:  # one column needs no lanes; roots may need guards; the code is for copies
        found = getattr(f, call)(*arguments, **mode)
    else:
        found = by_entries(f, call, *arguments, **mode)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found, expected)
    x = arguments[0]
    units = np.eye(x.size, dtype=x.dtype).reshape(-1, *x.shape)
    columns = [
        f.jvp(*arguments, tangents={"x": e})[1] if mode else f.hvp(*arguments, direction=e)
        for e in units
    ]
    tolerance = 1e-5 if found.dtype == np.float32 else 1e-12
    whole = found.reshape(*np.shape(columns[0]), -1)
    np.testing.assert_allclose(np.moveaxis(whole, -1, 0), columns, rtol=tolerance, atol=tolerance)


def test_what_is_named() -> None:
    f, g = (compile(of_another, grad=True, opt=1, cache=False) for _ in range(2))
    expected = {name: f.hessian(V, V * 2, wrt=name) for name in ("x", "y")}
    f.hessian(V, V * 2, wrt="y")
    for wrt in ("y", 1):
        np.testing.assert_array_equal(by_entries(f, "hessian", V, V * 2, wrt=wrt), expected["y"])
    np.testing.assert_array_equal(f.hessian(V, V * 2), expected["x"])
    assert [type(part) for part in g.hessian(V, V * 2, wrt=("x", "y"))] == [tuple, tuple]


def test_rows_are_better_where_they_are_fewer() -> None:
    f = compile(sums, grad=True, opt=1, cache=False)
    x = np.arange(12.0).reshape(4, 3)
    expected = f.jacobian(x, 0.5, mode="forward")
    with pytest.raises(AssertionError, match="no entry"):
        by_entries(f, "jacobian", x, 0.5)
    np.testing.assert_array_equal(f.jacobian(x, 0.5), expected)
    np.testing.assert_array_equal(f.jacobian(x, 0.5, mode="reverse"), expected)


WRONG: dict[str, tuple[type[Exception], Callable[[Any], Any]]] = {
    "share memory: pass a copy": (TypeError, lambda f: f.hessian(V, V)),
    "unexpected keyword argument 'batch'": (TypeError, lambda f: f.hessian(V, V * 2, batch=8)),
    "unexpected keyword argument 'mode'": (
        TypeError,
        lambda f: f.hessian(V, V * 2, mode="forward"),
    ),
    "mode='sideways'": (ValueError, lambda f: f.jacobian(V, V * 2, mode="sideways")),
    "there is no parameter 7": (TypeError, lambda f: f.hessian(V, V * 2, wrt=7)),
    "missing 1 required positional": (TypeError, lambda f: f.hessian(V)),
    "broadcast": (ValueError, lambda f: f.hessian(V, np.ones(4))),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_calls_say_what_they_said(words: str) -> None:
    f = compile(of_another, grad=True, opt=1, cache=False)
    f.hessian(V, V * 2)
    f.jacobian(V, V * 2, mode="forward")
    kind, call = WRONG[words]
    with pytest.raises(kind, match=words):
        call(f)


def test_functions_that_store_are_for_python_code() -> None:
    @compile(grad=True, opt=1, cache=False)
    def stores(x):
        x *= 2.0
        return (x * x).sum()

    for _ in range(2):
        x = V.copy()
        np.testing.assert_allclose(stores.hessian(x), 8.0 * np.eye(5))
        np.testing.assert_array_equal(x, 2.0 * V)


def test_the_arrays_of_each_run_are_given_back() -> None:
    f = compile(field, grad=True, opt=1, cache=False)
    x = np.linspace(0.0, 1.0, 1000)
    f.jacobian(x, 0.5)
    by_entries(f, "jacobian", x, 0.5)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(40):  # 40 x 125 runs, each with 72 kB of results
        f.jacobian(x, 0.5)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
