"""Gradients with very long tapes run whole steps again, from states: bit for bit as those that keep them.

Here even small tapes are long ones, and what is run again costs nothing, as in `test_replays`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import mutad.compiler.request as request
from mutad import Active, Const, Duplicated, check_gradient, compile
from mutad.compiler.derivative import replays
from mutad.runtime.measure import measure_gradient

rng = np.random.default_rng(12)


def burgers(start, nu, steps):
    u = start.copy()
    for _ in range(steps):
        u[1:-1] += nu * (u[2:] - 2.0 * u[1:-1] + u[:-2]) - 0.05 * u[1:-1] * (u[2:] - u[:-2])
    return (u * u).sum()


def burgers_loops(start, nu, steps):
    """The inner loop carries a number, not an array."""
    u = start.copy()
    n = u.size
    for _ in range(steps):
        left = u[0]
        for i in range(1, n - 1):
            mid = u[i]
            u[i] = mid + (nu * (u[i + 1] - 2.0 * mid + left) - 0.05 * mid * (u[i + 1] - left))
            left = mid
    total = 0.0
    for i in range(n):
        total += u[i] * u[i]
    return total


def logistic_heat(start, nu, steps):
    """Only what is stored to is needed; the edges stay."""
    u = start.copy()
    for _ in range(steps):
        mid = u[1:-1]
        u[1:-1] = mid + nu * (u[2:] - 2.0 * mid + u[:-2]) + 0.1 * mid * (1.0 - mid)
    return (u * u).sum()


def of_points(start, nu, steps):
    """Every element for itself."""
    u = start.copy()
    for _ in range(steps):
        u *= 1.0 + nu * (1.0 - u)
    return (u * u).sum()


def in_place(start, nu, steps):
    """An argument, which keeps what the last step leaves."""
    for _ in range(steps):
        start[1:-1] -= nu * start[1:-1] * (start[2:] - start[:-2])
    return (start * start).sum()


def edges(start, nu, steps):
    """Stores to the edges, before and after."""
    u = start.copy()
    for t in range(steps):
        u[0] = 0.1 * t
        u[1:-1] += nu * u[1:-1] * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u[-1] = u[-2] * u[-2]
    return (u * u).sum()


def masked_in_place(start, nu, steps):
    u = start.copy()
    for _ in range(steps):
        wet = u > 0.4
        u[wet] *= 1.0 - nu * u[wet]
        u[1:] += nu * u[1:] * u[:-1]
    return (u * u).sum()


def predator_prey(start, nu, steps):
    """Two arrays, each of which needs the other."""
    a, b = start.copy(), 0.5 * start
    for _ in range(steps):
        reaction = a * b * b
        a[1:-1] += nu * (a[2:] - 2.0 * a[1:-1] + a[:-2]) - 0.1 * reaction[1:-1]
        b[1:-1] += 0.5 * nu * (b[2:] - 2.0 * b[1:-1] + b[:-2]) + 0.1 * reaction[1:-1]
    return (a * b).sum()


def leapfrog(start, nu, steps):
    """Three arrays, in place."""
    p, u = np.zeros(start.size), start.copy()
    work = np.zeros(start.size)
    for _ in range(steps):
        work[1:-1] = u[2:] - 2.0 * u[1:-1] + u[:-2]
        p += nu * (work - 0.1 * u * u * u)
        u += nu * p
    return (u * u).sum() + (p * p).sum()


def from_a_copy(start, nu, steps):
    u = start.copy()
    for _ in range(steps):
        un = u.copy()
        u[1:-1] = un[1:-1] - nu * un[1:-1] * (un[1:-1] - un[:-2])
    return (u * u).sum()


def with_source(start, nu, steps):
    """What all steps read, whose shadow all steps add to."""
    u, f = start.copy(), start * start
    for _ in range(steps):
        u[1:-1] += nu * u[1:-1] * f[1:-1] - nu * u[:-2] * u[2:]
    return (u * u).sum()


def with_branches(start, nu, steps):
    u = start.copy()
    for t in range(steps):
        if t % 3 == 1:
            u[1:] -= nu * u[1:] * u[:-1]
        else:
            u[:-1] += nu * u[:-1] * u[1:]
    return (u * u).sum()


def recorded(start, nu, steps):
    """Sums that are smaller than the step are run again with it, or not needed."""
    u, mass = start.copy(), np.zeros(steps)
    for t in range(steps):
        mass[t] = u[0] * u[-1]
        u[1:-1] -= nu * u[1:-1] * (u[2:] - u[:-2])
    return (u * u).sum() + (mass * mass).sum()


def hands_back(start, nu, steps):
    """The first update of the next step overwrites what the last one of this step left, and read."""
    a, b = start.copy(), start * start
    for _ in range(steps):
        b[1:] += nu * a[1:] * a[:-1]
        a[1:-1] += nu * b[1:-1] * b[:-2]
        b[0] = a[0] * b[0]
    return (a * a).sum() + (b * b).sum()


def adds_up_in_loops(start, nu, steps):
    """A sum in a variable, which nothing has afterwards, is not added up again."""
    u = start.copy()
    for _ in range(steps):
        t = 0.0
        for i in range(u.size):
            t += u[i] * u[i]
        for i in range(u.size):
            u[i] -= 0.001 * t
    return nu * (u * u).sum()


def twice(start, nu, steps):
    u = start.copy()
    for _ in range(steps):
        u[1:-1] -= nu * u[1:-1] * (u[2:] - u[:-2])
    for _ in range(2 * steps):
        u[1:-1] += nu * u[1:-1] * (u[2:] - u[:-2])
    return (u * u).sum()


LINES = (
    burgers, burgers_loops, logistic_heat, of_points, in_place, edges, predator_prey, leapfrog, from_a_copy,
    with_source, with_branches, recorded, twice, hands_back,
)  # fmt: skip


def waves(start, nu, steps):
    """A plane, and two arrays of it."""
    a, b = start.copy(), start * start
    for _ in range(steps):
        lap = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4.0 * a[1:-1, 1:-1]
        b[1:-1, 1:-1] += nu * (lap - a[1:-1, 1:-1] * b[1:-1, 1:-1])
        a[1:-1, 1:-1] += nu * b[1:-1, 1:-1] * a[1:-1, 1:-1]
    return (a * a).sum() + b.sum()


def upwind(start, nu, steps):
    c, v = start.copy(), start - 0.5
    for _ in range(steps):
        mid, w = c[1:-1, 1:-1], v[1:-1, 1:-1]
        x = np.where(w > 0.0, w * (mid - c[:-2, 1:-1]), w * (c[2:, 1:-1] - mid))
        c[1:-1, 1:-1] = mid - nu * x
    return (c * c).sum()


def sideways(start, nu, steps):
    """Scalar loops over a plane."""
    u = start.copy()
    n, m = u.shape
    for _ in range(steps):
        for i in range(1, n):
            for j in range(m):
                u[i, j] += nu * u[i - 1, j] * u[i, j]
    return (u * u).sum()


PLANES = waves, upwind, sideways


def divides(start, nu, steps):
    u = start.copy()
    for _ in range(steps):
        u[1:-1] += nu * u[2:] / (1.0 + u[1:-1] * u[1:-1])
    return (u * u).sum()


def calls(start, nu, steps):
    u = start.copy()
    for _ in range(steps):
        u[1:-1] += nu * np.sin(u[2:]) * u[1:-1]
    return (u * u).sum()


def exchanges(start, nu, steps):
    u, v = start.copy(), start.copy()
    for _ in range(steps):
        v[1:-1] = u[1:-1] + nu * u[1:-1] * (u[2:] - u[:-2])
        u, v = v, u
    return (u * u).sum()


def ends_early(start, nu, steps):
    u = start.copy()
    for _ in range(steps):
        u[1:-1] -= nu * u[1:-1] * (u[2:] - u[:-2])
        if u[1] > 1e9:
            break
    return (u * u).sum()


def linear(start, nu, steps):
    """Nothing is needed."""
    u = start.copy()
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[2:] - u[:-2])
    return (u * u).sum() * nu


REFUSED = masked_in_place, adds_up_in_loops, divides, calls, exchanges, ends_early, linear


@pytest.fixture(autouse=True)
def all_pay(monkeypatch):
    monkeypatch.setattr(replays, "AGAIN", 0)
    monkeypatch.setattr(replays, "MOST_WORK", math.inf)


@pytest.fixture
def found(monkeypatch):
    """The loops that are replayed."""
    loops = []
    adopt = replays.adopt

    def noting(plan, made):
        loops.append(made[0])
        adopt(plan, made)

    monkeypatch.setattr(replays, "adopt", noting)
    return loops


def compiled_for(monkeypatch, function, longest):
    monkeypatch.setattr(request, "LONGEST_TAPE", longest)
    return compile(function, grad=True, cache=False)


def both(monkeypatch, function, cases):
    """The values, gradients and arguments afterwards of each case: with long tapes, and with whole ones."""
    results = []
    for longest in (0, 1 << 60):
        compiled = compiled_for(monkeypatch, function, longest)
        results.append([])
        for start, nu, steps in cases:
            copy = start.copy()
            value, gradients = compiled.value_and_grad(copy, nu, steps, wrt=("start", "nu"))
            results[-1] += [value, *gradients, copy]
    return results


def is_same(one, other):
    return all(np.array_equal(a, b) and type(a) is type(b) for a, b in zip(one, other, strict=True))


STEPS = 0, 1, 2, 3, 4, 5, 8, 17


@pytest.mark.parametrize("function", LINES, ids=lambda f: f.__name__)
def test_lines(function, found, monkeypatch):
    cases = [(rng.random(40), 0.07, steps) for steps in STEPS]
    cases += [(rng.random(length), 0.07, 9) for length in (3, 4, 21)]
    replayed, kept = both(monkeypatch, function, cases)
    assert found
    assert all(state.segment.every == 4 for one in found for state in one.states.values())
    assert is_same(replayed, kept)
    everything = compile(function, grad=True, saves="all", cache=False)
    for k, (start, nu, steps) in enumerate(cases):
        gradients = everything.grad(start.copy(), nu, steps, wrt=("start", "nu"))
        for one, other in zip(replayed[4 * k + 1 : 4 * k + 3], gradients, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("function", PLANES, ids=lambda f: f.__name__)
def test_planes(function, found, monkeypatch):
    cases = [(rng.random((9, 14)), 0.07, steps) for steps in STEPS]
    replayed, kept = both(monkeypatch, function, cases)
    assert found
    assert is_same(replayed, kept)


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_others_are_not(function, found, monkeypatch):
    assert is_same(*both(monkeypatch, function, [(rng.random(20), 0.07, 17)]))
    assert not found


@pytest.mark.parametrize(
    "function", [burgers, burgers_loops, leapfrog, edges], ids=lambda f: f.__name__
)
def test_gradients_are_checked(function, monkeypatch):
    check_gradient(compiled_for(monkeypatch, function, 0), rng.random(7), 0.07, 11)


@pytest.mark.parametrize("option", ["parallel", "fastmath"])
def test_options(option, found, monkeypatch):
    start = rng.random(300)
    results = []
    for longest in (0, 1 << 60):
        monkeypatch.setattr(request, "LONGEST_TAPE", longest)
        compiled = compile(burgers, grad=True, cache=False, **{option: True})
        results.append(compiled.grad(start, 0.07, 11))
    assert found
    np.testing.assert_allclose(*results, rtol=1e-12)


def test_single_precision(found, monkeypatch):
    start = rng.random(40).astype(np.float32)
    replayed, kept = both(monkeypatch, logistic_heat, [(start, 0.07, 11)])
    assert found
    assert is_same(replayed, kept)


def test_shadows_of_the_caller(found, monkeypatch):
    results = []
    start = rng.random(40)
    for longest in (0, 1 << 60):
        shadow = start.copy()
        arguments = Duplicated(start.copy(), shadow), Active(0.07), Const(11)
        results += [
            *compiled_for(monkeypatch, in_place, longest).pullback(*arguments, cotangent=2.0),
            shadow,
        ]
    assert found
    assert str(results[: len(results) // 2]) == str(results[len(results) // 2 :])


def raises(start, nu, steps):
    for t in range(steps):
        start[1:-1] -= nu * start[1:-1] * (start[2:] - start[:-2])
        start[t] += 0.0
    return (start * start).sum()


def test_exceptions_leave_arrays_as_python_does(monkeypatch):
    start = rng.random(6)
    mine, theirs = start.copy(), start.copy()
    with pytest.raises(IndexError):
        raises(theirs, 0.07, 9)
    with pytest.raises(IndexError):
        compiled_for(monkeypatch, raises, 0).grad(mine, 0.07, 9)
    assert np.array_equal(mine, theirs)


def test_short_tapes_are_kept(monkeypatch):
    """Steps are chosen for tapes that are long, of rows that are short."""
    monkeypatch.undo()
    monkeypatch.setattr(request, "LONGEST_TAPE", 20_000)
    compiled = compile(burgers, grad=True, cache=False)
    assert not compiled.explain(np.ones(100), 0.1, 400).replayed
    receipt = compiled.explain(np.ones(100), 0.1, 500)
    (one,) = receipt.replayed
    assert (one.name, one.every, one.bytes) == ("u", 4, 4 * 800)
    assert receipt.saved_bytes == 125 * 800
    assert compiled.explain(np.ones(100_000), 0.1, 500).replayed
    assert not compiled.explain(np.ones(200_000), 0.1, 500).replayed


def test_dear_steps_are_not_run_again(found, monkeypatch):
    monkeypatch.setattr(replays, "MOST_WORK", 1 / 12)
    both(monkeypatch, predator_prey, [(rng.random(20), 0.07, 17)])
    assert not found


def test_the_call_takes_what_the_receipt_says(monkeypatch):
    """And then it needs a quarter of the memory."""
    monkeypatch.undo()
    monkeypatch.setattr(request, "LONGEST_TAPE", 20_000)
    compiled = compile(burgers, grad=True, cache=False)
    for length, steps, replayed in (
        (100, 400, False),
        (100, 500, True),
        (1000, 40, False),
        (1000, 100, True),
    ):
        start = rng.random(length)
        receipt = compiled.explain(start, 0.07, steps)
        assert bool(receipt.replayed) is replayed
        held = measure_gradient(compiled, start, 0.07, steps, wrt="start").kernel
        saved = receipt.saved_bytes + sum(one.bytes for one in receipt.replayed)
        assert saved <= held <= saved + 8 * 10 * length


def test_sums_of_one_term(found, monkeypatch):
    """A row of one element: its dot product is a product, and is computed again."""

    def products(x):
        a, n = x.copy(), x.shape[0]
        q, r = np.zeros_like(x), np.zeros((n, n))
        for k in range(1, n):
            q[k] = np.tanh(a[k])
            for j in range(k + 1, n):
                r[k, j] = np.dot(q[k], a[j])
                a[j] -= q[k] * r[k, j]
            r[k, k] = np.dot(a[k], a[max(k - 1, 0)])
            a[k] += 0.1 * r[k, k]
        return (r * r).sum() + np.sin(a).sum() + (q * q * q).sum()

    monkeypatch.setattr(request, "LONGEST_TAPE", 0)
    x = 0.4 * rng.normal(size=(7, 1))
    check_gradient(compile(products, grad=True, cache=False), x)
    assert found
