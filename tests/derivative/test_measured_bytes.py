"""What `explain` promises is what a gradient call allocates, byte for byte but for the blocks' headers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import compile
from mutad.runtime.measure import measure_back, measure_gradient, measure_hvp, measure_tangent

N = 1 << 17


def steepen(u, steps):
    for _ in range(steps):
        u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
    return u.sum()


def steepen_a_copy(u, steps):
    v = u.copy()
    for _ in range(steps):
        v[1:-1] -= 0.1 * v[1:-1] * (v[2:] - v[:-2])
    return v.sum()


def smooth(u, steps):
    for _ in range(steps):
        u[1:-1] = 0.5 * u[1:-1] + 0.25 * (u[:-2] + u[2:])
    return u.sum()


def squares_in_place(x):
    for i in range(x.size):
        x[i] = x[i] ** 2
    return x.sum()


def reading_ahead(u):
    for i in range(u.size - 1):
        u[i] = u[i + 1] * u[i + 1]
    return u.sum()


def filled_after_a_product(x):
    y = x * x
    x.fill(0)
    return y.sum()


def own_arrays(x):
    y = np.empty_like(x)
    for i in range(x.size):
        y[i] = np.sin(x[i])
    for i in range(1, x.size):
        y[i] *= y[i - 1]
    return y[-1]


def two_layers(x, w):
    h = np.tanh(x @ w)
    return (h * h).sum()


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (steepen, (np.linspace(0, 1, N), 4)),
    (steepen_a_copy, (np.linspace(0, 1, N), 4)),
    (smooth, (np.ones(N), 9)),
    (squares_in_place, (np.ones(N),)),
    (squares_in_place, (np.ones(N, np.float32),)),
    (reading_ahead, (np.full(N, 0.5),)),
    (filled_after_a_product, (np.ones(N),)),
    (own_arrays, (np.ones(N),)),
    (two_layers, (np.ones((400, 300)), np.full((300, 500), 0.01))),
]


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_saved_shadows_and_temporaries_are_the_measured_bytes(function, arguments) -> None:
    made = compile(function, grad=True, cache=False)
    plan = made.explain(*arguments)
    promised = plan.saved_bytes + plan.shadow_bytes + plan.temporary_bytes
    measured = measure_gradient(made, *arguments).total
    assert promised <= measured <= promised + 30_000, (plan.to_dict(), measured)


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_so_are_those_of_products_and_tangents(function, arguments) -> None:
    made = compile(function, grad=True, cache=False)
    gradient = made.explain(*arguments)
    for mode, measure in (("hvp", measure_hvp), ("tangent", measure_tangent)):
        plan = made.explain(*arguments, mode=mode)
        promised = plan.saved_bytes + plan.shadow_bytes + plan.temporary_bytes
        measured = measure(made, *arguments).total
        assert promised <= measured <= promised + 60_000, (mode, plan.to_dict(), measured)
        assert plan.saved_bytes <= (2 if mode == "hvp" else 0) * gradient.saved_bytes


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_so_are_those_of_a_batch(function, arguments) -> None:
    if function is two_layers:
        return  # products of vectors are computed in blocks that no receipt counts
    made, lanes = compile(function, grad=True, cache=False, opt=1), 3
    arguments = tuple(a[: N // 4] if isinstance(a, np.ndarray) else a for a in arguments)
    calls: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "pullback": (measure_gradient, {}),
        "vjp": (measure_back, {"plan": "split"}),
        "hvp": (measure_hvp, {"mode": "hvp"}),
        "tangent": (measure_tangent, {"mode": "tangent"}),
    }
    for call, (measure, options) in calls.items():
        alone = made.explain(*arguments, **options)
        plan = made.explain(*arguments, batch=lanes, **options)
        promised = plan.saved_bytes + plan.shadow_bytes + plan.temporary_bytes
        measured = measure(made, *arguments, batch=lanes).total
        # Further blocks of scratch memory are 256 KiB; `back` has given back what the primal alone needs.
        assert 0.9 * promised <= measured <= promised + 4 * 2**18, (call, plan.to_dict(), measured)
        most = (1 + lanes) if call == "hvp" else 1
        gradient = made.explain(*arguments, **({} if call == "hvp" else options))
        assert alone.saved_bytes <= plan.saved_bytes <= most * gradient.saved_bytes


def test_a_batch_in_a_receipt() -> None:
    made = compile(steepen, grad=True, cache=False, opt=1)
    plan = made.explain(np.ones(100), 7, mode="hvp", batch=8)
    assert [s.name for s in plan.saves] == ["u", "the tangents of u"]
    assert plan.formula == "72*steps*u.shape[0]"
    assert plan.saved_bytes == 9 * made.explain(np.ones(100), 7).saved_bytes
    assert (
        made.explain(np.ones(100), 7, plan="split", batch=8).saves
        == made.explain(np.ones(100), 7, plan="split").saves
    )
    for wrong, kind in ((0, ValueError), (65, ValueError), (True, TypeError)):
        with pytest.raises(kind, match="batch"):
            made.explain(np.ones(100), 7, batch=wrong)


def test_the_direction_of_a_number_has_no_memory() -> None:
    def scaled(a, x):
        x *= a
        return x.sum()

    made = compile(scaled, grad=True, cache=False, opt=1)
    arguments = np.float64(1.5), np.ones(5)
    assert made.explain(*arguments, wrt=(0, 1), mode="hvp").shadow_bytes == 3 * 40


def test_a_growing_tape_takes_at_most_twice_what_it_holds() -> None:
    def until_large(x):
        y = 1.0
        while y < 2.0:
            y = y + x[0] * y * y
        return y

    made = compile(until_large, grad=True, cache=False)
    x = np.array([1e-6])
    assert made.explain(x).saved_bytes is None
    trips = 500_000
    assert 8 * trips <= measure_gradient(made, x).kernel <= 2.1 * 8 * trips


def test_all_memory_is_given_back_when_a_call_raises() -> None:
    def fails_late(u):
        for i in range(u.size + 1):
            u[i] = u[i] * u[i]
        return u.sum()

    made = compile(fails_late, grad=True, cache=False)
    with pytest.raises(IndexError):
        measure_gradient(made, np.ones(1000))


def triangular(a):
    for j in range(a.shape[0]):
        for k in range(j):
            for i in range(j, a.shape[0]):
                a[i, j] -= a[i, k] * a[j, k]
        a[j, j] = np.sqrt(a[j, j])
    return a.trace()


def rows_with_reflections(a):
    for k in range(a.shape[1]):
        x = a[k:, k].copy()
        x[0] += 2.0
        a[k:, k:] -= np.outer(x, x @ a[k:, k:]) * (2.0 / (x @ x))
    return (a * a).sum()


def longer_and_longer(x, count):
    for i in range(count):
        for k in range(7 * i):
            x[k] = np.sin(x[k] * x[k + 1])
    return x.sum()


ROWS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (triangular, (np.eye(90) * 100.0 + 0.1,)),
    (rows_with_reflections, (np.eye(80) + 0.01,)),
    (longer_and_longer, (np.linspace(0.1, 0.9, 700), 100)),
]
"""Tapes that take another number of bytes in each iteration."""


@pytest.mark.parametrize("mode", ["gradient", "vjp", "hvp"])
@pytest.mark.parametrize(("function", "arguments"), ROWS, ids=lambda c: getattr(c, "__name__", ""))
def test_a_tape_of_many_segments_has_their_bytes(function, arguments, mode) -> None:
    options: dict[str, Any] = {"vjp": {"plan": "split"}, "hvp": {"mode": "hvp"}}.get(mode, {})
    measure = {"gradient": measure_gradient, "vjp": measure_back, "hvp": measure_hvp}[mode]
    made = compile(function, grad=True, cache=False)
    plan = made.explain(*arguments, **options)
    promised = plan.saved_bytes + plan.shadow_bytes + plan.temporary_bytes
    measured = measure(made, *arguments).total
    assert mode != "vjp" or plan.saved_bytes > 400_000
    assert promised <= measured <= promised + 20_000, (plan.to_dict(), measured)


def test_what_a_tape_expects_and_does_not_get_it_takes_in_parts() -> None:
    """All of a loop's segments may be more than there is, and it may raise before it needs them."""

    def overflowing(x, count):
        k = 1
        for i in range(count):
            k = 3 * k
            for j in range(7 * i):
                x[j % 10] = np.sin(x[j % 10] * x[j % 10 + 1])
        return x.sum() * k

    made = compile(overflowing, grad=True, cache=False, opt=1)
    with pytest.raises(OverflowError):
        made.grad(np.full(11, 0.9), 2_000_000)
    made.grad(np.full(11, 0.9), 9)


def test_a_list_that_grows_is_promised_by_its_length() -> None:
    def history(x, steps):
        seen = []
        for _ in range(steps):
            x *= 1.01
            seen.append(x.sum())
        return sum(seen[-3:])

    def some(x, steps):
        kept = []
        for k in range(steps):
            x *= 1.01
            if x[0] < 1.1:
                kept.append(x.copy())
            if len(kept) > 4:
                kept.pop(0)
        return kept[-1].sum()

    x = np.ones(6)
    for function, item in ((history, 8), (some, 48)):
        made = compile(function, grad=True, cache=False, opt=1)
        for steps in (3, 20):
            plan = made.explain(x, steps)
            lists = (
                plan.shadow_bytes + plan.temporary_bytes - x.nbytes
            )  # contents, and their shadows
            assert item * min(steps, 4) <= lists <= 2 * item * steps + 4 * x.nbytes
        assert plan.allocated_is_bound == (function is history)
        assert ("temporaries: at most" in str(plan)) == plan.allocated_is_bound
    assert not compile(own_arrays, grad=True, cache=False, opt=1).explain(x).allocated_is_bound


def test_a_list_without_a_bound_has_none() -> None:
    def until(x):
        seen = []
        while x[0] < 2.0:
            x *= 1.01
            seen.append(x.sum())
        return seen[-1]

    assert compile(until, grad=True, cache=False, opt=1).explain(np.ones(6)).temporary_bytes is None
