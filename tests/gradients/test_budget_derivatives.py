"""Other derivatives within a budget: the same, bit for bit, as those without."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from budget_programs import ROWS, compiled, copies, stencil, two_axes, until_small

import mutad
from mutad import CompileError
from mutad.runtime.vjp import Back, BackAgain

CHANCE = np.random.default_rng(11)
U = np.linspace(0.2, 0.9, 40)


def tightest(function: Callable[..., Any], call: Callable[[Any], Any]) -> Any:
    """What a call leads to with the least budget that does, by what errors say."""
    memory = 1
    for _ in range(6):
        try:
            return call(compiled(function, memory))
        except MemoryError as error:
            found = re.search(r"at least (\d+)", str(error))
            assert found is not None
            assert int(found[1]) > memory
            memory = int(found[1])
    raise AssertionError(f"no budget is enough, not even {memory}")


def in_bits(values: Any) -> list[bytes]:
    return [np.asarray(v).tobytes() for v in values]


def directions(arguments: tuple[Any, ...], wrt: tuple[str, ...], function: Any) -> tuple[Any, ...]:
    names = function.__code__.co_varnames
    chance = np.random.default_rng(4)
    moving = [arguments[names.index(name)] for name in wrt]
    return tuple(
        chance.uniform(-1, 1, a.shape).astype(a.dtype) if isinstance(a, np.ndarray) else 0.3
        for a in moving
    )


@pytest.mark.parametrize("row", [4, 6, 12, 21, 24, 34, 38, 49, 51])
def test_hessian_vector_products_are_the_same(row: int) -> None:
    function, arguments, wrt = ROWS[row]
    direction = directions(arguments, wrt, function)

    def call(gradient: Any) -> list[bytes]:
        given = copies(arguments)
        value, first, second = gradient.value_grad_hvp(*given, wrt=wrt, direction=direction)
        return in_bits((value, *first, *second, *given))

    wanted = call(compiled(function, None))
    assert tightest(function, call) == wanted
    if row == 24:
        assert (
            tightest(function, lambda g: call(compiled(function, (g.options["memory"], "disk"))))
            == wanted
        )


def test_so_are_several_at_once() -> None:
    arguments = ROWS[12][1]
    several = CHANCE.uniform(-1, 1, (3, *arguments[0].shape))

    def call(gradient: Any) -> list[bytes]:
        return in_bits(gradient.value_grad_hvp(*copies(arguments), direction=several, batch=3))

    assert tightest(two_axes, call) == call(compiled(two_axes, None))
    tight, free = (compiled(stencil, memory) for memory in (9000, None))
    assert np.array_equal(tight.hessian(U[:9].copy(), 0.1, 30), free.hessian(U[:9].copy(), 0.1, 30))


def test_the_receipt_tells_of_products() -> None:
    tight = compiled(stencil, "60kB")
    u = np.linspace(0.2, 0.9, 200)
    budget = tight.explain(u, 0.1, 60, mode="hvp").budget
    joint = tight.explain(u, 0.1, 60).budget
    assert 60 < joint.executed < budget.executed < 150
    assert joint.least < budget.least <= 60_000


def test_reverse_over_reverse_runs_no_step_again() -> None:
    def product(memory: Any, function: Any = stencil) -> Any:
        given = {"direction": U, "mode": "reverse-over-reverse"}
        return compiled(function, memory).hvp(U.copy(), 0.1, 3, **given)

    wanted = compiled(stencil, None).hvp(U.copy(), 0.1, 3, direction=U)
    np.testing.assert_allclose(product("1MB"), wanted, rtol=1e-12)
    with pytest.raises(MemoryError, match="at least") as found:
        product(900)
    least = int(str(found.value).rpartition(" ")[2])
    np.testing.assert_array_equal(product(least), product("1MB"))
    with pytest.raises(CompileError, match="how often a loop runs that may end early") as refused:
        product("1MB", as_often_as_it_takes)
    assert 'mode="forward-over-reverse"`, which runs steps again' in str(refused.value)


def as_often_as_it_takes(u: np.ndarray, k: float, steps: int) -> float:
    while u[0] > 0.1:
        u *= 1.0 - k * u
    return (u**3).sum() + steps


# vjp


def pulled_back(row: int, gradient: Any) -> tuple[list[bytes], Any]:
    """The gradients, for cotangents of the result and of final contents, when the arguments are long gone."""
    function, arguments, wrt = ROWS[row]
    given, names = copies(arguments), function.__code__.co_varnames
    value, back = gradient.vjp(*given, wrt=wrt)
    after = [np.asarray(a).tobytes() for a in given]
    finals: dict[str, Any] = {}
    for name, one in zip(names, given, strict=False):
        if isinstance(one, np.ndarray) and one.dtype.kind == "f":
            finals[name] = np.ones_like(one)
            one[...] = np.nan
    found = [*back(0.7), *back(0.7, **finals), *back(0.7)]
    return [np.float32(value).tobytes(), *in_bits(found), *after], back


@pytest.mark.parametrize("row", [1, 11, 18, 23, 27, 33, 37, 49])
def test_pulling_back_within_a_budget(row: int) -> None:
    function = ROWS[row][0]
    wanted, free = pulled_back(row, compiled(function, None))
    assert type(free) is Back
    found, tight = tightest(function, lambda gradient: pulled_back(row, gradient))
    assert found == wanted
    assert type(tight) is BackAgain
    found, plenty = pulled_back(row, compiled(function, "1GB"))
    assert found == wanted
    assert (type(plenty) is Back) == (function is not until_small)


def test_so_are_several_cotangents() -> None:
    function, arguments, wrt = ROWS[21]
    bars = np.array([0.3, 0.7, 1.0])

    def call(gradient: Any) -> list[bytes]:
        return in_bits(gradient.vjp(*copies(arguments), wrt=wrt, batch=3)[1](bars))

    assert tightest(function, call) == call(compiled(function, None))


def test_the_receipt_tells_what_vjp_copies() -> None:
    u = np.linspace(0.2, 0.9, 1000)
    budget = compiled(stencil, "100kB").explain(u, 0.1, 60, plan="split").budget
    assert (budget.copied_bytes, budget.steps) == (u.nbytes, 60)
    assert budget.executed > 60
    assert "beside 8,000 bytes of arguments from which `back` runs all again" in str(budget)
    plenty = compiled(stencil, "1MB").explain(u, 0.1, 60, plan="split").budget
    assert (plenty.copied_bytes, plenty.loops, plenty.is_met) == (0, (), True)


def test_threads_pull_back_at_once() -> None:
    _, back = compiled(stencil, 1500).vjp(U.copy(), 0.1, 60)
    wanted = [back(float(k)).tobytes() for k in range(4)]
    assert type(back) is BackAgain
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            assert [g.tobytes() for g in pool.map(back, map(float, range(4)))] == wanted


FACTOR = 0.3


def scaled(u, steps):
    for _ in range(steps):
        u *= 1.0 - FACTOR * u
    return u.sum()


def test_what_is_read_from_outside_is_that_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    _, back = compiled(scaled, 1500).vjp(U.copy(), 60)
    wanted = back(1.0)
    monkeypatch.setitem(globals(), "FACTOR", 0.5)
    assert np.array_equal(back(1.0), wanted)
    assert type(back) is BackAgain


def masked(u, k, steps):
    for _ in range(steps):
        u[1:] = np.where(u[1:] > 0, np.sqrt(u[1:]) * u[:-1] + k / u[1:], 0.0) * 0.5
    return (u * u).sum()


def test_guards_come_back_where_they_are_needed() -> None:
    u = np.linspace(0.0, 2.0, 30)
    u[7:9] = 0.0
    wanted = compiled(masked, None).vjp(u.copy(), 0.3, 25)[1](1.0)
    assert np.isfinite(wanted).all()
    found = tightest(masked, lambda gradient: gradient.vjp(u.copy(), 0.3, 25)[1](1.0))
    assert np.array_equal(found, wanted)
    several = CHANCE.uniform(-1, 1, (3, *u.shape))
    for given in ({"direction": several[0]}, {"direction": several, "batch": 3}):

        def product(gradient: Any, given: Any = given) -> Any:
            return gradient.hvp(u.copy(), 0.3, 25, **given)

        again = product(compiled(masked, None))
        assert np.isfinite(again).all()
        assert np.array_equal(tightest(masked, product), again)


def shown(u, steps):
    print("once")
    for _ in range(steps):
        u *= 1.0 - 0.1 * u
    return u.sum()


def drawn(u, rng, steps):
    for _ in range(steps):
        u *= 1.0 - 0.1 * u * rng.random()
    return u.sum()


def test_what_cannot_be_done_twice_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MemoryError, match="within 1500 bytes: it takes at least"):
        compiled(shown, 1500).vjp(U.copy(), 60)
    assert not capsys.readouterr().out
    rng = np.random.default_rng(1)
    with pytest.raises(MemoryError, match="within 1500 bytes: it takes at least"):
        compiled(drawn, 1500).vjp(U.copy(), rng, 60)
    assert rng.random() == np.random.default_rng(1).random()
    compiled(shown, "1MB").vjp(U.copy(), 60)
    assert capsys.readouterr().out == "once\n"


# What is made of these.


def first_ones(u, k, steps):
    for _ in range(steps):
        u[1:-1] -= k * u[1:-1] * (u[2:] - u[:-2])
    return u[:3] * 2.0


def test_jacobians() -> None:
    tight, free = compiled(first_ones, 1500), compiled(first_ones, None)
    for mode in ("forward", "reverse"):
        found = tight.jacobian(U.copy(), 0.1, 40, mode=mode)
        assert np.array_equal(found, free.jacobian(U.copy(), 0.1, 40, mode=mode))


def test_batches() -> None:
    """A row's loop has the row as its state, not all of them."""
    rows = CHANCE.uniform(0.2, 0.9, (5, 40))
    tight, free = (mutad.batch(compiled(stencil, m), in_axes=(0, None, None)) for m in (6000, None))
    assert np.array_equal(tight.grad(rows.copy(), 0.1, 60), free.grad(rows.copy(), 0.1, 60))
    bars = [f.vjp(rows.copy(), 0.1, 60)[1](np.ones(5)) for f in (tight, free)]
    assert np.array_equal(*bars)


@dataclass
class State:
    u: np.ndarray
    k: float


def of_objects(state, steps):
    for _ in range(steps):
        state.u[1:-1] -= state.k * state.u[1:-1] * (state.u[2:] - state.u[:-2])
    return (state.u * state.u).sum()


def test_objects() -> None:
    direction = State(np.ones(40), 0.5)
    for call in (
        lambda f: f.vjp(State(U.copy(), 0.1), 60)[1](1.0),
        lambda f: f.hvp(State(U.copy(), 0.1), 60, direction=direction),
    ):
        wanted, found = (call(compiled(of_objects, memory)) for memory in (None, 4000))
        assert np.array_equal(found.u, wanted.u)
        assert found.k == wanted.k
