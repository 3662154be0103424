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
