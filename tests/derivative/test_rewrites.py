"""Ways out of saves: each edit computes the same, and is proposed only where its plan is smaller."""

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import compile
from mutad.compiler.request import Request
from mutad.compiler.rewrites import rewrites

N, STEPS = 40, 5
FACTOR = 0.5


def several_updates(u, steps):
    for _ in range(steps):
        u[1:] *= u[:-1] * FACTOR
        u *= u
        u[:-1] -= 0.1 * u[1:] * u[1:]
    return u.sum()


def overwritten_once(x, steps):
    h = np.outer(x, x) @ x
    s = (h**3).sum()
    h[:] = h[::-1] * x * steps
    return s + (h**3).sum()


def one_update(u, steps):
    for _ in range(steps):
        u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
    return u.sum()


def of_the_caller(h, steps):
    s = (h**3).sum()
    h[:] = h[::-1] * steps
    return s + (h**3).sum()


def left_early(x, steps):
    h = np.outer(x, x) @ x
    s = (h**3).sum()
    h[:] = h[::-1] * x * steps
    if s < 0.0:
        return s
    return s + (h**3).sum()


def seen_through_a_view(x, steps):
    h = np.outer(x, x) @ x
    inner = h[1:]
    s = (h**3).sum()
    h[:] = h[::-1] * x * steps
    return s + (inner**3).sum()


def bound_anew(x, steps):
    h = np.outer(x, x) @ x
    s = (h**3).sum()
    h[:] = h[::-1] * x * steps
    h = h * 0.5
    return s + (h**3).sum()


def explained(function: Callable[..., Any], *args: Any) -> Any:
    return compile(function, grad=True, cache=False, opt=1).explain(*args)


def edited(function: Callable[..., Any], name: str) -> list[Callable[..., Any]]:
    """The edits of a function that are worth a try."""
    first = function.__code__.co_firstlineno
    request = Request(function, ("f64[?]C", "py_int"))
    return [r.function for r in rewrites(request, name, range(first, first + 12))]


START = np.linspace(0.4, 1.1, N)


def test_of_several_versions_of_an_array_one_is_saved() -> None:
    plan = explained(several_updates, START.copy(), STEPS)
    assert plan.saved_bytes == 8 * N * STEPS


def test_an_array_that_is_overwritten_once_may_stay() -> None:
    (save,) = explained(overwritten_once, START.copy(), STEPS).saves
    line = overwritten_once.__code__.co_firstlineno + 3
    assert save.way_out == (
        f"line {line}: write to `h_new = h.copy()`, and use it from there on: "
        f"saves 0 bytes instead of {8 * N}"
    )


def test_edits_compute_the_same() -> None:
    (other,) = edited(overwritten_once, "h")
    mine, theirs = START.copy(), START.copy()
    assert overwritten_once(mine, STEPS) == other(theirs, STEPS)
    np.testing.assert_array_equal(mine, theirs)
    source = "".join(linecache.getlines(other.__code__.co_filename))
    assert "h_new[:] = h[::-1]" in source


def test_what_would_not_be_smaller_is_not_proposed() -> None:
    plan = explained(one_update, START.copy(), STEPS)
    assert plan.saves
    assert {s.way_out for s in plan.saves} == {None}


@pytest.mark.parametrize("function", [of_the_caller, left_early, seen_through_a_view, bound_anew])
def test_what_might_compute_something_else_is_not_tried(function) -> None:
    assert edited(function, "h") == []
