"""Ways out of saves: each edit computes the same, and is proposed only where its plan is smaller."""

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import compile
from mutad.compiler.pipeline import Request
from mutad.compiler.rewrites import rewrites

N, STEPS = 40, 5
FACTOR = 0.5


def several_updates(u, steps):
    for _ in range(steps):
        u[1:] *= u[:-1] * FACTOR
        u *= u
        u[:-1] -= 0.1 * u[1:] * u[1:]
    return u.sum()


def squared_in_place(v):
    v *= v


def with_a_helper(u, steps):
    t = 0
    while t < steps:
        squared_in_place(u[1:])
        u[1:] += u[:-1] * u[:-1]
        t += 1
    return u.sum()


def of_an_own_array(x, steps):
    u = x.copy()
    for _ in range(steps):
        u[1:] *= u[:-1]
        u *= np.cos(u)
    return u.sum()


def overwritten_once(x, steps):
    h = np.outer(x, x) @ x
    s = (h**3).sum()
    h[:] = h[::-1] * x * steps
    return s + (h**3).sum()


def element_by_element(u, steps):
    for _ in range(steps):
        for i in range(1, u.size - 1):
            u[i] = u[i] * u[i - 1]
        for i in range(1, u.size - 1):
            u[i] = u[i] * u[i + 1]
    return u.sum()


def one_update(u, steps):
    for _ in range(steps):
        u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
    return u.sum()


def left_early(u, steps):
    for k in range(steps):
        u[1:] *= u[:-1]
        if k == steps - 2:
            break
        u *= u
    return u.sum()


def seen_through_a_view(u, steps):
    inner = u[1:]
    for _ in range(steps):
        u *= u
        u[1:] += u[:-1] * inner
    return u.sum()


def bound_anew(u, steps):
    for _ in range(steps):
        u[1:] *= u[:-1]
        u *= u
        u = u * 0.5
    return u.sum()


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


@pytest.mark.parametrize(
    "function",
    [several_updates, with_a_helper, of_an_own_array, element_by_element, overwritten_once],
)
def test_edits_compute_the_same(function) -> None:
    found = edited(function, "h" if function is overwritten_once else "u")
    assert found
    for other in found:
        mine, theirs = START.copy(), START.copy()
        assert function(mine, STEPS) == other(theirs, STEPS)
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("function", [element_by_element, one_update])
def test_what_would_not_be_smaller_is_not_proposed(function) -> None:
    plan = explained(function, START.copy(), STEPS)
    assert plan.saves
    assert {s.way_out for s in plan.saves} == {None}


@pytest.mark.parametrize("function", [left_early, seen_through_a_view, bound_anew])
def test_what_might_compute_something_else_is_not_tried(function) -> None:
    assert edited(function, "u") == []


def test_arguments_that_share_memory_are_left_alone() -> None:
    first = several_updates.__code__.co_firstlineno
    shared = Request(several_updates, ("f64[?]C", "py_int"), overlaps=((0, 1, "overlap"),))
    assert not list(rewrites(shared, "u", [first + 2]))
