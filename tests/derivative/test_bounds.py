"""Saved bytes that are known only at run time: a bound where one is known, which a run keeps."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import compile
from mutad.runtime.measure import measure_gradient

X = np.linspace(0.1, 0.9, 1000)


def in_a_branch(x, c):
    if x[0] > c:
        x[:] = x * x
    return x.sum()


def left_early(x, c):
    s = 0.0
    for i in range(x.size):
        s = s * math.sin(s) + x[i]
        if s > c:
            break
    return s


def as_long_as_the_first_element_says(x, c):
    n = int(x[0] * 1000)
    x[:n] = np.exp(x[:n])
    x[:n] *= np.tanh(x[:n])
    return x.sum()


def of_the_chosen_elements(x, c):
    found = np.nonzero(x > c)[0]
    for _ in range(3):
        x[found] = np.sin(x[found])
    return x.sum()


def of_a_list_that_grows_under_a_condition(x, c):
    found = []
    for v in x:
        if v > c:
            found.append(v)
    s = 0.0
    for i in range(len(found)):
        s = s * math.sin(s) + found[i]
    return s


def in_a_few_slices(x, c):
    for k in range(x.size % 7):
        x[k : k + 400] = np.sin(x[k : k + 400])
    return x.sum()


def until_large(x, c):
    y = 1.0
    while y < 2.0:
        y = y + x[0] * y * y
    return y


def two_loops_deep(x, c):
    s = 1.0
    for i in range(x.size):
        for j in range(i):
            s = s * math.sin(s) + x[j]
            if s > c:
                break
    return s


SIZE = "x.shape[0]"
BOUNDS: list[tuple[Callable[..., Any], int | None, bool, str | None]] = [
    (in_a_branch, 8000, True, f"8*{SIZE}"),
    (left_early, 8000, True, f"8*{SIZE}"),
    (as_long_as_the_first_element_says, 8000, True, f"8*{SIZE}"),
    (of_the_chosen_elements, 24000, True, f"24*{SIZE}"),
    (of_a_list_that_grows_under_a_condition, 8000, True, f"8*{SIZE}"),
    (in_a_few_slices, 6 * 400 * 8, False, None),
    (two_loops_deep, 8000 + 8000 * 999, True, f"8*{SIZE} + 8*sum(i for i in range({SIZE}))"),
    (until_large, None, False, None),
]


@pytest.mark.parametrize(
    ("function", "most", "is_bound", "bound"), BOUNDS, ids=lambda c: getattr(c, "__name__", "")
)
def test_what_is_known_of_saved_bytes_is_said(
    function: Callable[..., Any], most: int | None, is_bound: bool, bound: str | None
) -> None:
    made = compile(function, grad=True, cache=False, opt=1)
    plan = made.explain(X.copy(), 0.05)
    assert (plan.saved_bytes, plan.is_bound, plan.bound) == (most, is_bound, bound)
    assert ("at most" in str(plan)) == is_bound
    assert (f" <= {bound} = " in str(plan)) == (bound is not None)
    if bound is not None:
        assert eval(bound, {"x": X}) <= most
    if most is not None:
        measured = measure_gradient(made, X.copy(), 0.05).kernel
        assert measured <= 2.1 * most + (plan.shadow_bytes or 10**6) + (
            plan.temporary_bytes or 10**6
        )


def test_without_a_bound_it_says_what_decides() -> None:
    plan = compile(until_large, grad=True, cache=False, opt=1).explain(X.copy(), 0.05)
    (save,) = plan.saves
    first = until_large.__code__.co_firstlineno
    told = f"how often `while y < 2.0` on line {first + 2} repeats"
    assert save.depends_on == told
    assert f"depends on {told}" in str(plan)


def by_hand(function: Callable[..., Any], c: float) -> int:
    """How often the last loop of the function runs its body."""
    if function is until_large:
        y, trips = 1.0, 0
        while y < 2.0:
            y, trips = y + X[0] * y * y, trips + 1
        return trips
    return int((X > c).sum())


COUNTED: list[tuple[Callable[..., Any], float, int]] = [
    (in_a_branch, 0.05, 8000),
    (in_a_branch, 0.5, 0),
    (as_long_as_the_first_element_says, 0.05, 8 * 100),
    (of_the_chosen_elements, 0.5, 3 * 8 * by_hand(of_the_chosen_elements, 0.5)),
    (until_large, 0.05, 8 * by_hand(until_large, 0.05)),
]


@pytest.mark.parametrize(
    ("function", "c", "bytes"), COUNTED, ids=lambda c: getattr(c, "__name__", "")
)
def test_a_run_counts_and_leaves_the_arrays(
    function: Callable[..., Any], c: float, bytes: int
) -> None:
    made, x = compile(function, grad=True, cache=False, opt=1), X.copy()
    plan = made.explain(x, c, run=True)
    np.testing.assert_array_equal(x, X)
    assert (plan.saved_bytes, plan.is_bound) == (bytes, False)
    split = made.explain(x, c, run=True, plan="split").saved_bytes
    assert bytes <= split <= bytes + x.nbytes


def test_products_save_what_moves_twice() -> None:
    plan = compile(until_large, grad=True, cache=False, opt=1).explain(
        X, 0.05, mode="hvp", run=True
    )
    trips = by_hand(until_large, 0.05)
    assert [s.bytes for s in plan.saves] == [8 * trips, 8 * trips]


def test_a_run_needs_the_arguments_of_a_call() -> None:
    made = compile(until_large, grad=True, cache=False, opt=1)
    made.grad(X, 0.05)
    with pytest.raises(ValueError, match="pass the arguments of one"):
        made.explain(run=True)
    with pytest.raises(ValueError, match="leave out run=True"):
        made.explain(X, 0.05, mode="tangent", run=True)


def whole_product(a):
    return product_from(a, 0)


def product_from(a, i):
    if i == a.size:
        return 1.0
    return np.sin(a[i] * product_from(a, i + 1))


def test_what_calls_leave_depends_on_how_often_it_is_called() -> None:
    plan = compile(whole_product, grad=True, cache=False, opt=1).explain(X[:3].copy(), run=True)
    assert [s.depends_on for s in plan.saves] == ["how often `product_from` is called"]
