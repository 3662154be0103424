"""Gradients within a budget of bytes: the same, bit for bit, of steps that are run again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad
from mutad.runtime.measure import measure_gradient


def stencil(u, k, steps):
    for _ in range(steps):
        u[1:-1] -= k * u[1:-1] * (u[2:] - u[:-2])
    return (u * u).sum()


def swapped(u, k, steps):
    v = u.copy()
    for _ in range(steps):
        v[1:-1] = u[1:-1] - k * u[1:-1] * (u[2:] - u[:-2])
        u, v = v, u
    return (u * u).sum()


def three_in_turn(u, v, w, steps):
    for _ in range(steps):
        w[:] = u * v + 0.1 * w
        u, v, w = v, w, u
    return (u + v * 2.0 + w * 3.0).sum()


def numbers_and_branches(u, k, steps):
    s, t, n = 0.0, 1.0, 0
    for i in range(steps):
        t = t * np.sin(u[i % u.size] * k) + s
        if t > 0.3:
            s += t * t
            n += 1
        u[i % u.size] = t * u[(i + 1) % u.size]
    return s + t * n


def overwritten_later(u, w, steps):
    for _ in range(steps):
        u[1:] = u[1:] * w[:-1] + np.cos(u[:-1])
    w *= 2.0
    return (u * w).sum()


def several_local_arrays(u, steps):
    a, b = np.zeros_like(u), np.ones(u.shape)
    for _ in range(steps):
        a[:] = u * b
        b[:] = np.tanh(a) + 0.5 * b
        u += a * b
    return (u * b + a).sum()


def with_scratch(u, k, steps):
    first, second = np.empty_like(u), np.empty_like(u)
    for _ in range(steps):
        first[:] = u * u * k
        second[1:-1] = u[1:-1] * first[2:] + first[:-2]
        u[1:-1] = second[1:-1]
    return u.sum() + first.sum()


def two_axes(u, k, steps):
    for _ in range(steps):
        north = u[1:, :] - u[:-1, :]
        u[1:, :] -= k * north * north
        u[:, 1:] += 0.01 * u[:, :-1] * u[:, 1:]
    return (u**2).sum()


def nested(u, steps, inner):
    for _ in range(steps):
        for _ in range(inner):
            u[1:-1] += 0.01 * u[1:-1] * (u[2:] - u[:-2])
        u *= 1.0 - 0.001 * u
    return u.sum()


def growing_steps(u, steps):
    for i in range(steps):
        for j in range(i):
            u[j] = np.sin(u[j] * u[i])
    return u.sum()


def integers(u, index, steps):
    for t in range(steps):
        for i in range(u.size):
            u[i] = u[i] * u[index[i]] * 0.9
            index[i] = (index[i] + t) % u.size
    return u.sum()


def before_and_after(u, k, steps):
    s = k * 2.0
    for _ in range(steps):
        u *= s * u * 0.5
        s = s * 0.99 + u[0] * k
    for i in range(u.size):
        u[i] = u[i] * k
    return u.sum() * s


def two_loops(u, steps):
    for _ in range(steps):
        u[1:] *= np.cos(u[:-1])
    s = u.sum()
    for _ in range(steps):
        u *= u * 0.5 + 0.5
    return s * u.sum()


def after_each_other(u, w, steps, more):
    for _ in range(steps):
        u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
    s = (u * u).sum()
    for _ in range(more):
        w[1:-1] += 0.05 * w[1:-1] * u[2:] * w[:-2]
        u *= 1.0 - 0.01 * w
    for _ in range(steps):
        w[:-1] = w[1:] * w[:-1] + 0.1
    return s + (u * w).sum()


def in_branches(u, k, steps, which):
    if which > 0:
        c = k * 2.0
        for i in range(steps + which):
            u[1:-1] -= c * u[1:-1] * (u[2:] - u[:-2]) * (i % which)
    else:
        for _ in range(steps):
            u *= 1.0 - k * u
    for _ in range(steps):
        u *= np.sin(u + k)
    return (u * u).sum()


def left_early(u, steps, least):
    for _ in range(steps):
        u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
        u *= 0.97
        if u[0] < least:
            break
        u += 0.01 * u * u
    return (u * u).sum()


def returned_early(u, steps, least):
    for _ in range(steps):
        u *= 1.0 - 0.02 * u
        if u[0] < least:
            return (u * u).sum()
    return u.sum()


def until_small(u, least):
    count = 0
    while (u * u).sum() > least:
        u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
        u *= 0.99
        count += 1
    return (u * u).sum() * count


def until_small_in_turn(u, least):
    v = u.copy()
    while u[0] > least:
        v[:] = u * (1.0 - 0.02 * u)
        u, v = v, u
    return (u * v).sum()


def downwards(u, steps):
    for i in range(steps, 0, -2):
        u *= u * 0.9 + 0.1
        u[i] *= u[i - 1]
    return u.sum()


def sweeps(u, w, steps, inner):
    for _ in range(steps):
        t = u * w
        for _ in range(inner):
            t[1:-1] += 0.1 * t[1:-1] * w[2:] * (t[2:] - t[:-2])
        u[:] = 0.5 * u * t + 0.1 * np.sin(t)
        w *= 0.9 + 0.1 * u
    return (u * w).sum()


def two_in_each(u, w, steps, inner):
    for _ in range(steps):
        q = u * u
        for _ in range(inner):
            u[1:-1] += 0.1 * u[1:-1] * w[2:] * (u[2:] - u[:-2])
        u *= q
        for _ in range(inner):
            w[1:-1] += 0.1 * w[1:-1] * u[2:] * (w[2:] - w[:-2])
        w += 0.01 * q * w
    return (u * w).sum()


def sweeps_until_small(u, inner, least):
    while u[0] > least:
        for _ in range(inner):
            u[1:-1] += 0.1 * u[1:-1] * (u[2:] - u[:-2])
            if u[1] < least:
                break
        u *= 0.98
    return (u * u).sum()


def raising_within(u, steps, bad):
    for t in range(steps):
        u *= 1.0 + 0.01 * u
        for k in range(steps):
            u[1:] *= 1.0 - 0.001 * u[:-1]
            if t == bad and k == 3:
                raise ValueError(f"step {t}")
    return u.sum()


def recorded(u, h, steps):
    for t in range(steps):
        u *= u
        u += 0.1
        h[t] = u
    return (h**3).sum() + u.sum()


def raising(u, steps, bad):
    for t in range(steps):
        u *= 1.0 + 0.01 * u
        if t == bad:
            raise ValueError(f"step {t}")
    return u.sum()


CHANCE = np.random.default_rng(3)


def some(*shape: int) -> np.ndarray:
    return CHANCE.uniform(0.2, 0.9, shape)


ROWS: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[str, ...]]] = [
    (stencil, (some(40), 0.1, 60), ("u", "k")),
    (stencil, (some(21).astype(np.float32), np.float32(0.1), 25), ("u", "k")),
    (stencil, (some(40)[::-2], 0.1, 25), ("u",)),
    (stencil, (some(40), 0.1, 2), ("k",)),
    (swapped, (some(40), 0.1, 31), ("u", "k")),
    (three_in_turn, (some(20), some(20), some(20), 25), ("u", "w")),
    (numbers_and_branches, (some(7), 0.7, 60), ("u", "k")),
    (overwritten_later, (some(50), some(50), 40), ("u", "w")),
    (several_local_arrays, (some(50), 40), ("u",)),
    (with_scratch, (some(50), 0.3, 40), ("u", "k")),
    (two_axes, (some(12, 9), 0.01, 30), ("u", "k")),
    (two_axes, (np.asfortranarray(some(12, 9)), 0.01, 30), ("u", "k")),
    (two_axes, (some(24, 18)[::2, ::-2], 0.01, 30), ("u", "k")),
    (nested, (some(40), 20, 5), ("u",)),
    (growing_steps, (some(30), 25), ("u",)),
    (integers, (some(20), np.arange(20)[::-1].copy(), 25), ("u",)),
    (before_and_after, (some(20), 0.9, 25), ("u", "k")),
    (two_loops, (some(20), 25), ("u",)),
    (recorded, (some(20), np.zeros((30, 20)), 25), ("u", "h")),
    (raising, (some(20), 25, 11), ("u",)),
    (raising, (some(20), 25, 99), ("u",)),
    (after_each_other, (some(30), some(30), 15, 20), ("u", "w")),
    (after_each_other, (some(30), some(30), 9, 0), ("u", "w")),
    (in_branches, (some(20), 0.1, 15, 3), ("u", "k")),
    (left_early, (some(30), 60, 0.1), ("u",)),
    (left_early, (some(30), 7, 0.0), ("u",)),
    (returned_early, (some(30), 60, 0.15), ("u",)),
    (until_small, (some(30), 0.5), ("u",)),
    (until_small, (some(30), 500.0), ("u",)),
    (until_small_in_turn, (some(30), 0.1), ("u",)),
    (downwards, (some(30), 29), ("u",)),
    (sweeps, (some(30), some(30), 12, 9), ("u", "w")),
    (sweeps, (some(30), some(30), 4, 0), ("u", "w")),
    (two_in_each, (some(30), some(30), 9, 7), ("u", "w")),
    (sweeps_until_small, (some(30), 6, 0.1), ("u",)),
    (raising_within, (some(12), 9, 5), ("u",)),
]


def compiled(function: Callable[..., Any], memory: Any, opt: int = 1) -> mutad.CompiledFunction:
    return mutad.compile(function, grad=True, opt=opt, memory=memory)


def copies(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """With the strides of the arrays."""
    found: list[Any] = []
    for one in arguments:
        if isinstance(one, np.ndarray) and one.base is not None:
            whole = one.base.copy(order="K")
            offset = one.__array_interface__["data"][0] - one.base.__array_interface__["data"][0]
            found.append(np.ndarray(one.shape, one.dtype, whole, offset, one.strides))
        else:
            found.append(one.copy(order="K") if isinstance(one, np.ndarray) else one)
    return tuple(found)


def outcome(
    function: mutad.CompiledFunction, arguments: tuple[Any, ...], wrt: tuple[str, ...]
) -> list[bytes]:
    """The value, the gradients and what the arrays hold afterwards, bit for bit; or the exception."""
    given = copies(arguments)
    try:
        value, gradients = function.value_and_grad(*given, wrt=wrt)
    except ValueError as error:
        value, gradients = 0.0, (np.frombuffer(str(error).encode(), np.uint8),)
    return [np.asarray(x).tobytes() for x in (value, *gradients, *given)]


@pytest.mark.parametrize(
    ("function", "arguments", "wrt"),
    ROWS,
    ids=[f"{k}-{row[0].__name__}" for k, row in enumerate(ROWS)],
)
def test_gradients_are_the_same_bit_for_bit(
    function: Callable[..., Any], arguments: tuple[Any, ...], wrt: tuple[str, ...]
) -> None:
    wanted = outcome(compiled(function, None), arguments, wrt)
    with pytest.raises(MemoryError, match="within 1 bytes: it takes at least"):
        compiled(function, 1).value_and_grad(*copies(arguments), wrt=wrt)
    least, found = least_of(function, arguments, wrt)
    assert found == wanted
    budget = compiled(function, least).explain(*copies(arguments), wrt=wrt).budget
    assert budget.least in (least, None)
    assert outcome(compiled(function, least + least // 2), arguments, wrt) == wanted


@pytest.mark.parametrize("row", [5, 6, 8])
def test_so_are_those_of_vector_code(row: int) -> None:
    """Sums in a free order, contractions, and functions that differ in vectors from those of numbers."""
    function, arguments, wrt = ROWS[row]
    least = compiled(function, 1).explain(*copies(arguments), wrt=wrt).budget.least
    tight = compiled(function, least, opt=3)
    assert outcome(tight, arguments, wrt) == outcome(compiled(function, None, 3), arguments, wrt)


def masked(u, k, steps):
    for _ in range(steps):
        u[1:] = np.where(u[1:] > 0, np.sqrt(u[1:]) * u[:-1] + k / u[1:], 0.0) * 0.5
    return (u * u).sum()


def test_what_needs_guards_has_them_with_and_without_a_budget() -> None:
    u = np.linspace(0.0, 2.0, 30)
    u[7:9] = 0.0
    for function, given in (
        (masked, (u, 0.3, 25)),
        (three_in_turn, (u, np.full(30, np.inf), u, 25)),
    ):
        least = compiled(function, 1).explain(*copies(given)).budget.least
        free, tight = compiled(function, None), compiled(function, least)
        expected = outcome(free, given, ("u",))
        assert outcome(tight, given, ("u",)) == expected
        assert outcome(tight, given, ("u",)) == expected
        for f in (free, tight):
            (code,) = (one for key, one in f._dispatcher.table.items() if not key.guards)
            assert code.metadata["retries"]


def least_of(
    function: Callable[..., Any], arguments: tuple[Any, ...], wrt: tuple[str, ...]
) -> tuple[int, list[bytes]]:
    """The least budget, by what errors say: those of loops that come later know of those before."""
    least = 1
    for _ in range(4):
        try:
            return least, outcome(compiled(function, least), arguments, wrt)
        except MemoryError as error:
            found = re.search(r"at least (\d+)", str(error))
            assert found is not None
            assert int(found[1]) > least
            least = int(found[1])
    raise AssertionError(f"no budget is enough, not even {least}")


@pytest.mark.parametrize("row", [4, 10, 13, 21, 31])
def test_the_least_budget_is_the_least(row: int) -> None:
    function, arguments, wrt = ROWS[row]
    least = compiled(function, 1).explain(*copies(arguments), wrt=wrt).budget.least
    with pytest.raises(MemoryError, match="at least"):
        compiled(function, least - 1).value_and_grad(*copies(arguments), wrt=wrt)
    wanted = outcome(compiled(function, None), arguments, wrt)
    assert outcome(compiled(function, 2 * least), arguments, wrt) == wanted


def large(u, k, steps):
    for _ in range(steps):
        u[1:-1] -= k * u[1:-1] * (u[2:] - u[:-2])
    return (u * u).sum()


@pytest.mark.parametrize("memory", ["40MB", "4MB", "1MiB", "600kB"])
def test_a_call_takes_no_more_than_the_budget(memory: str) -> None:
    arguments = np.linspace(0.0, 1.0, 10_000), 0.01, 200
    function = compiled(large, memory)
    bytes_ = function.options["memory"]
    receipt = function.explain(*arguments)
    kernel = measure_gradient(function, *arguments).kernel
    beside = receipt.temporary_bytes + receipt.shadow_bytes - arguments[0].nbytes
    assert kernel <= bytes_ + beside + (1 << 18)  # what a call keeps for the next one is rounded up
    assert receipt.budget.is_met
    assert receipt.budget.steps == 200
    assert (receipt.budget.executed == 200) == (bytes_ > receipt.saved_bytes)


def test_the_receipt_tells_the_steps() -> None:
    arguments = np.ones(1000), 0.1, 300
    assert compiled(large, "10MB").explain(*arguments).budget.executed == 300
    receipt = compiled(large, "100kB").explain(*arguments)
    assert receipt.budget.executed == 904
    assert str(receipt).endswith("runs 904 steps for its 300, 3.01 for each")
    assert receipt.to_dict()["budget"]["executed"] == 904
    small = compiled(large, 20_000).explain(*arguments).budget
    assert (small.executed, small.is_met, small.least) == (None, False, 24_256)
    assert "too few: at least 24,256" in str(small)


def test_scratch_is_no_part_of_a_state() -> None:
    steps, bytes_ = 100, 8 * 1000
    least = compiled(with_scratch, 1).explain(np.ones(1000), 0.3, steps).budget.least
    copies, state, saved = 3 * bytes_, bytes_, least - 4 * bytes_ - 8 * steps
    assert saved < 2.1 * bytes_, (copies, state, saved)


def no_loop(u):
    u *= u
    u *= u
    return u.sum()


def test_what_cannot_be_run_again_is_saved_or_refused() -> None:
    u = np.linspace(0.5, 1.0, 9)
    saved = compiled(no_loop, None).explain(u).saved_bytes
    wanted = compiled(no_loop, None).grad(u.copy())
    assert np.array_equal(compiled(no_loop, saved).grad(u.copy()), wanted)
    kept = u.copy()
    with pytest.raises(MemoryError, match=f"within {saved - 1} bytes: it takes at least {saved}"):
        compiled(no_loop, saved - 1).grad(kept)
    assert np.array_equal(kept, u)


def growing(u):
    n = 1
    while u[0] < 1.0:
        for i in range(n):
            u *= u + 0.5 / (i + 1)
        n += 1
    return u.sum()


def test_steps_that_save_more_and_more_have_no_budget() -> None:
    with pytest.raises(mutad.CompileError, match="only a run can tell how much the gradient saves"):
        compiled(growing, "1MB").grad(np.full(3, 0.9))


def test_a_while_of_many_steps_runs_few_again() -> None:
    """Of 2,000 steps whose number nobody knows, in room for 20 states."""
    u = np.linspace(0.2, 0.9, 400)
    function = compiled(counted_while, 30 * u.nbytes)
    wanted = compiled(counted_while, None).grad(u.copy(), 2000)
    assert np.array_equal(function.grad(u.copy(), 2000), wanted)


def counted_while(u, steps):
    k = 0
    while k < steps:
        u[1:-1] -= 0.001 * u[1:-1] * (u[2:] - u[:-2])
        k += 1
    return (u * u).sum()


def test_the_receipt_tells_of_each_loop() -> None:
    u = np.ones(1000)
    budget = compiled(after_each_other, "100kB").explain(u, u, 300, 200).budget
    assert [one.steps for one in budget.loops] == [300, 200, 300]
    assert all(one.steps < one.executed < 7 * one.steps for one in budget.loops)
    assert str(budget).count("the loop on line") == 3
    budget = compiled(sweeps, "400kB").explain(u, u, 30, 100).budget
    (loop,) = budget.loops
    assert (loop.steps, loop.inner_steps) == (30, 3000)
    assert 3000 < loop.inner_executed < 4 * 3000
    assert "that within it" in str(budget)


def power(x, n):
    return x if n == 1 else x * power(x, n - 1)


def of_powers(x, n):
    s = 0.0
    for k in range(1, n):
        s = s * x + power(x, k)
    return s


def test_records_of_recursive_functions_have_no_budget() -> None:
    with pytest.raises(mutad.CompileError, match="how deep a recursive function goes"):
        compiled(of_powers, "1MB").grad(0.9, 6)


@pytest.mark.parametrize(
    ("memory", "size"),
    [
        ("256MiB", 256 << 20),
        ("1.5 GB", 1_500_000_000),
        (4096, 4096),
        ("800kB", 800_000),
        (None, None),
    ],
)
def test_budgets_are_read(memory: Any, size: int | None) -> None:
    assert mutad.compile(no_loop, memory=memory).options["memory"] == size


@pytest.mark.parametrize(
    "memory", ["", "12", "3 parsec", "-1 MB", 0, -5, 1.5, True, "9999999 TiB", b"1MB"]
)
def test_other_budgets_are_refused(memory: Any) -> None:
    with pytest.raises(ValueError, match="memory="):
        mutad.compile(no_loop, memory=memory)


def test_a_gradient_within_a_budget_is_checked() -> None:
    arguments = np.linspace(0.2, 0.9, 20), 0.1, 12
    report = mutad.check_gradient(compiled(large, 1500), *arguments)
    assert report.error < 1e-7
    assert compiled(large, 1500).explain(*arguments).budget.executed > 12


def test_calls_that_keep_to_no_budget_say_so() -> None:
    function = compiled(large, "1MB")
    u = np.ones(20)
    with pytest.raises(ValueError, match="has no vjp"):
        function.vjp(u, 0.1, 3)
    with pytest.raises(ValueError, match="has no hvp"):
        function.hvp(u, 0.1, 3, direction=u)
    value, _ = function.jvp(u, 0.1, 3, tangents={"u": u.copy()})
    assert value == function(u.copy(), 0.1, 3)
