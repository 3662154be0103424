"""Gradients within a budget of bytes: the same, bit for bit, of steps that are run again."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from budget_programs import (
    ROWS,
    VECTOR_ROWS,
    after_each_other,
    compiled,
    copies,
    least_of,
    outcome,
    point_by_point,
    stages,
    sweeps,
    three_in_turn,
    with_scratch,
)

import mutad
from mutad.runtime.measure import measure_gradient


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


@pytest.mark.parametrize(
    ("function", "arguments", "wrt"), VECTOR_ROWS, ids=[row[0].__name__ for row in VECTOR_ROWS]
)
def test_sums_of_steps_add_up_in_the_order_of_their_loop(
    function: Callable[..., Any], arguments: tuple[Any, ...], wrt: tuple[str, ...]
) -> None:
    """What passes reorder in the loop they reorder in its steps, and nothing else."""
    _, found = least_of(function, arguments, wrt, opt=3)
    assert found == outcome(compiled(function, None, 3), arguments, wrt)


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


@pytest.mark.parametrize("row", [4, 10, 13, 21, 31, 49, 51])
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
    assert (small.executed, small.is_met, small.least) == (None, False, 24_280)
    assert "too few: at least 24,280" in str(small)


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


def selecting(u, steps):
    for _ in range(steps):
        u *= np.sin(u)
        large = u[u > 0.1]
        u[: large.size] += large * large
    return u.sum()


def test_steps_that_save_as_many_elements_as_a_mask_has_have_no_budget() -> None:
    with pytest.raises(
        mutad.CompileError, match="how much the gradient saves is known only at run time"
    ):
        compiled(selecting, "1MB").grad(np.full(3, 0.9), 4)


def solved_in_a_part(k, b, free, steps):
    """The number of elements is counted before the loop over the steps."""
    dof = np.flatnonzero(free)
    x = np.zeros(b.size)
    for _ in range(steps):
        r = b[dof] * (1.0 + x[dof])
        part = k[np.ix_(dof, dof)]
        for _ in range(8):
            r *= np.sin(part @ r)
        x[dof] += r
    return (x * x).sum()


def test_inner_loops_work_on_as_many_elements_as_a_mask_has() -> None:
    k, free = np.linspace(0.2, 0.9, 25).reshape(5, 5), np.array([True, True, False, True, True])
    arguments, wrt = (k, np.linspace(0.3, 0.8, 5), free, 5), ("k", "b")
    least, found = least_of(solved_in_a_part, arguments, wrt)
    without = compiled(solved_in_a_part, None)
    assert found == outcome(without, arguments, wrt)
    assert least < without.explain(*arguments, wrt=wrt, run=True).saved_bytes


def swapped_in_a_branch(a, b):
    """The loop carries arrays that the branch has made."""
    if a[0] > 0.1:
        c = a[a > 0.3]
        d = np.sqrt(c)
        for _ in range(5):
            c, d = d, c
            b[: c.size] *= np.sin(d) * c
    return (a * b).sum()


def test_loops_that_carry_arrays_of_a_branch_are_not_checkpointed() -> None:
    """Their number of elements is not known before the branch, and so neither is a budget."""
    arguments = np.linspace(0.2, 0.9, 9), np.linspace(0.3, 0.8, 9)
    with pytest.raises(
        mutad.CompileError, match="how much the gradient saves is known only at run time"
    ):
        compiled(swapped_in_a_branch, "1MB").value_and_grad(*arguments)


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


def test_steps_that_may_come_in_any_order_run_twice_whatever_the_budget() -> None:
    """From the first to the last, as the loop goes that saves all."""
    function, arguments, wrt = ROWS[49]
    assert function is stages
    least = compiled(function, 1).explain(*copies(arguments), wrt=wrt).budget.least
    executed = set[tuple[int, ...]]()
    for memory in (least, 2 * least):
        tight = compiled(function, memory)
        first, second, last = tight.explain(*copies(arguments), wrt=wrt).budget.loops
        executed.add((first.executed, second.executed))
        assert last.executed >= last.steps == 30
        found = tight.grad(*copies(arguments), wrt=wrt)
        wanted = mutad.compile(function, grad=True, saves="all").grad(*copies(arguments), wrt=wrt)
        assert all(map(functools.partial(np.allclose, rtol=1e-13), found, wanted))
    assert executed == {(60, 60)}


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


def test_tangents_save_nothing() -> None:
    function, u = compiled(large, 1), np.ones(20)
    value, _ = function.jvp(u, 0.1, 3, tangents={"u": u.copy()})
    assert value == function(u.copy(), 0.1, 3)


def test_numbers_that_only_decide_are_arguments_of_steps() -> None:
    """Of a number that is compared alone there is no derivative, in steps of steps either."""
    arguments = ROWS[34][1]
    tight = compiled(ROWS[34][0], 10_000)
    assert tight.grad(*copies(arguments), wrt=("u", "least"))[1] == 0.0
    assert tight(*copies(arguments)) == compiled(ROWS[34][0], None)(*copies(arguments))


def test_a_step_saves_no_more_than_an_iteration() -> None:
    """What `left` held is the neighbour of what is saved: a restart state, a step and a copy, of u each."""
    u = np.linspace(0.2, 0.9, 1000)
    plan = compiled(point_by_point, "60kB").explain(u, 0.1, 50)
    assert plan.saved_bytes == 50 * 8 * (1000 - 2)
    assert plan.budget.least < 3 * u.nbytes + 1000
    free, tight = (compiled(point_by_point, m).grad(u.copy(), 0.1, 50) for m in (None, "60kB"))
    np.testing.assert_allclose(tight, free, rtol=1e-13)


def scaled_beside(x, y):
    for _ in range(9):
        y *= 0.5
        x[:-1] = np.sin(x[1:]) + 0.5 * y[1:]
        x[:] = np.logaddexp(x, y)
    return (x * x).sum()


def test_arrays_that_steps_change_need_not_be_asked_for() -> None:
    """A step that changes `y` has a shadow of it, the gradient in `x` has none: a call is for either."""
    arguments = np.linspace(0.1, 0.5, 50), np.linspace(0.3, 0.6, 50)
    least, found = least_of(scaled_beside, arguments, ("x",))
    assert found == outcome(compiled(scaled_beside, None), arguments, ("x",))
    direction = np.cos(arguments[0])
    products = [
        compiled(scaled_beside, memory).hvp(*copies(arguments), direction=direction)
        for memory in (None, 3 * least)
    ]
    np.testing.assert_allclose(*products, rtol=1e-12)


def recursion(r):
    """Step k reads and writes the first k + 1 numbers of y."""
    y = np.zeros(r.size)
    for k in range(r.size):
        y[: k + 1] += r[k] * y[k::-1]
        y[k] += r[k]
    return (y * y).sum()


def columns_taken(matrix):
    a = matrix.copy()
    for k in range(a.shape[1]):
        for j in range(k + 1, a.shape[1]):
            a[:, j] -= a[:, k] * np.dot(a[:, k], a[:, j])
    return (a * a).sum()


def step_forward(function: Any, *arguments: Any) -> str:
    """The code of a step that saves."""
    text = compiled(function, 1).inspect("optimize", *arguments, wrt=0)
    return text.split("_step_forward(")[1].split("func.func")[0]


def test_a_step_saves_the_part_that_it_writes() -> None:
    """Half of the square, as an iteration does: a step's counter is the middle of its range, too."""
    code = step_forward(recursion, np.linspace(0.1, 0.2, 9))
    (pushed,) = re.findall(r"ad.push %\d+\((%\w+)\)", code)
    assert f"{pushed} = arith.addi" in code
    assert outcome(compiled(recursion, "1kB"), (np.linspace(0.1, 0.2, 30),), ("r",)) == outcome(
        compiled(recursion, None), (np.linspace(0.1, 0.2, 30),), ("r",)
    )


def test_a_step_goes_along_the_columns_of_a_matrix_that_lies_by_columns() -> None:
    given = np.random.default_rng(0).normal(size=(20, 9)) / 5
    code = step_forward(columns_taken, given)
    assert "strided<[1]>" in code
    assert "strided<[?]>" not in code
    _, found = least_of(columns_taken, (given,), ("matrix",))
    assert found == outcome(compiled(columns_taken, None), (given,), ("matrix",))


def test_a_line_search_may_compute_sums_in_the_condition_of_its_while() -> None:
    """Each evaluation has a sum of its own, which no step hands on."""

    def descent(x: np.ndarray, a: float, steps: int) -> float:
        for _ in range(steps):
            slope, t = 2 * a * x, 1.0
            before = np.sum(a * x * x)
            while np.sum(a * (x - t * slope) ** 2) > 0.9 * before:
                t *= 0.5
                if t < 1e-6:
                    break
            x = x - t * slope * np.cos(x)
        return np.sum(x * x)

    arguments = np.linspace(0.1, 1.0, 20), 3.0, 10
    wanted = outcome(compiled(descent, None), arguments, ("x", "a"))
    _, found = least_of(descent, arguments, ("x", "a"))
    assert found == wanted
