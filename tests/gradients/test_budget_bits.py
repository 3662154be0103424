"""Gradients within the least budget have the bits of those without, for each level of x86-64.

What differs between a loop and one of its steps: which numbers are left behind vectors, what is saved and
what is computed again, and how many iterations go side by side.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budget_programs import (
    ROWS,
    compiled,
    copies,
    growing_steps,
    least_of,
    outcome,
    some_stages_in_each_step,
    stages,
    stages_in_each_step,
)
from turns import in_turn

from mutad.runtime.target import VARIABLE, runnable

Array = np.ndarray
CHANCE = np.random.default_rng(7)
RANDOM = np.random.default_rng(1)
LOST = CHANCE.choice([0.5, 1.0, 2.0, 1e-200, 1e-300], 300, p=[0.3, 0.3, 0.36, 0.02, 0.02])
HERE = ("", *in_turn(runnable()[1:]))
"""The CPU at hand, and of the levels that it has another one each day."""


def sine_chain(x: Array, a: float, b: float) -> float:
    """One number handed on, and two that are summed over all iterations."""
    state, total = 0.5, 0.0
    for i in range(x.size):
        state = a * math.sin(state) + b * math.cos(x[i] * state)
        total += state * x[i]
    return total


def gate(x: Array, k: float) -> float:
    """A chain of products and quotients, which is one of each where no partial is lost."""
    v, total = 0.3, 0.0
    for i in range(x.size):
        z = 1.0 / (1.0 + math.exp(-(x[i] + k * v)))
        v = (1.0 - z) * v + z * math.tanh(x[i] * v)
        total += v
    return total


def partials(x: Array, y: Array, k: float) -> float:
    """Some partials are products of numbers that are too small, or infinite."""
    v, total = k, 0.0
    for i in range(x.size):
        v = v * x[i] * y[i] * math.exp(-0.001 * i)
        total += v * math.sin(x[i])
    return total


def newton(x: Array, k: float) -> float:
    v, total = 1.3, 0.0
    for i in range(x.size):
        v = v - k * (v * v * v - 2.0 - 0.1 * x[i]) / (3.0 * v * v)
        total += v
    return total


def cells(inputs: Array, weights: Array) -> float:
    """Functions of as many numbers as are no multiple of a vector; scalar loops, with a sum in order."""
    h, total = np.zeros(inputs.shape[1]), 0.0
    for t in range(inputs.shape[0]):
        for i in range(h.size):
            h[i] = math.tanh(weights[0, i] * inputs[t, i] + weights[1, i] * h[i]) * math.exp(
                -h[i] * h[i]
            )
            total += h[i] * h[i]
    return total


def gates(inputs: Array, weights: Array) -> float:
    """The same in whole arrays."""
    h, total = np.zeros(inputs.shape[1]), 0.0
    for t in range(inputs.shape[0]):
        h = np.tanh(weights[0] * inputs[t] + weights[1] * h) * np.exp(-h * h)
        total += (h * h).sum()
    return total


def shares(x: Array, w: Array, steps: int) -> float:
    """A sum of rows beside an exponential, which a step has saved and the whole gradient computes again."""
    for _ in range(steps):
        score = x @ w
        e = np.exp(score - np.max(score, axis=1, keepdims=True))
        x = e / np.sum(e, axis=1, keepdims=True) @ w + 0.1 * x
    return (x * x).sum()


def sine_chain_until(x: Array, a: float, b: float) -> float:
    """Steps are single iterations: two calls of one function stand side by side in straight code."""
    state, total = 0.5, 0.0
    for i in range(x.size):
        state = a * math.sin(state) + b * math.cos(x[i] * state)
        total += state * x[i]
        if total > 1e9:
            break
    return total


def spread(x: Array, w: Array, steps: int) -> float:
    """Sums over arguments, where they lie and in the contiguous copies of steps."""
    for _ in range(steps):
        x[:] = np.sin(x) * (x * w).sum() * 0.01 + x * w
        w *= 0.99 + 0.001 * np.sqrt((x * x).sum())
    return (x * x).sum()


def rows_and_columns(m: Array, steps: int) -> float:
    """Rows are summed up beside what is saved, and alone; copies are one row."""
    for _ in range(steps):
        r, c = m.sum(axis=1), np.mean(m * m, axis=0)
        m *= 0.9 + 0.01 * np.sin(r)[:, None] * c[None, :]
    return (m * m).sum()


def orthogonal_columns(a: Array, steps: int) -> float:
    for _ in range(steps):
        for k in range(a.shape[1]):
            for j in range(k):
                a[:, k] -= 0.1 * a[:, j] * np.dot(a[:, j], a[:, k])
        a += 0.01 * a * a
    return (a * a).sum()


def small_products(a: Array, x: Array, steps: int) -> float:
    """Too small for BLAS: sums along rows that lie apart, and side by side in the copies of steps."""
    for _ in range(steps):
        x = np.sin(a @ x)
        a += 0.01 * a * a
    return (x * x).sum()


def beside_the_transpose(a: Array, y: Array, steps: int) -> float:
    """A sum of elements of which some lie apart: how far, a step knows less of."""
    s = 0.5
    for _ in range(steps):
        s += 0.1 * (a.T * a).sum()
        y *= 0.3 * s
        a[:] = np.tanh(a) * 0.9
    return s + (a * a).sum() + (y * y).sum()


def one_number_of_a_row(x: Array, a: Array, steps: int) -> float:
    """Sums into one element beside a chain: whether their loop is taken apart is decided once."""
    n, t = x.shape[0], 0.0
    for i in range(steps):
        for j in range(n):
            t = x[j]
            for k in range(1, n):
                a[i % n, k] = np.arctan(x[1])
                t = np.exp(a[i % n, k] / (1.5 + t))
    return t


def squared_before(x: Array, a: Array, index: Array, k: float, steps: int) -> float:
    """A number has cotangents of the loop, and two of one product before it, which are added one by one."""
    for i in range(steps):
        for j in range(i, x.size):
            x[index[j]] *= 0.3 * (k * k * (k / a[i, j]))
    return x.sum()


def from_the_end(x: Array, y: Array, a: Array, index: Array, steps: int) -> float:
    """Elements counted from the end, by the extent of one of two arrays of one length."""
    n, s = x.shape[0], 0.5
    for i in range(steps):
        for j in range(n):
            for k in range(i, n):
                for m in range(i % n, n):
                    s = np.sin(s) + 0.1 * x[m] + x[n - 1 - m]
                x[index[k]] *= s
            y[j] *= a[i, j]
    return (x * y).sum()


def sums_side_by_side(m: Array, y: Array, steps: int) -> float:
    """Two sums in one loop, which saves what it reads, and in a step that saves nothing."""
    s = 0.5
    for _ in range(steps):
        s += 0.01 * (m * m).sum() + 0.01 * (m * y).sum()
        m *= 0.9
        y *= 0.3 * s
    return s + (m * m).sum() + (y * y).sum()


def handed_numbers(u: Array, c: Array, steps: int) -> float:
    """A number that steps of steps read, and the function before and after them."""
    total = 0.0
    for i in range(steps):
        h = c[i] * c[i]
        total += h * u[0]
        for _ in range(steps):
            for k in range(u.size - 1):
                u[k] = 0.9 * u[k + 1] * h + 0.1
        total += h * u[1] * h
    return total + (u * u).sum()


def copied_between(u: Array, v: Array, n: int, turns: int) -> float:
    """Between loops of loops the step copies what the second reads, and the next turn overwrites."""
    for _ in range(turns):
        for _ in range(2):
            for k in range(0, n, 2):
                v[1 : 1 + n, 0] = np.tanh(v[k : k + n, 1 : n + 1] @ v[0:n, 0] / n)
        for i in range(1, n - 1, 2):
            for j in range(1, n):
                low, high = u[j - 1 : j - 1 + n], u[i + 1 : i + 1 + n]
                u[i + 1 : i + 1 + n] = 0.3 * (low + high) * v[j - 1 : j - 1 + n, 0] + 0.1
    return (u * u).sum() + (v * v).sum()


def rows_and_columns_times(a: Array, x: Array, steps: int) -> float:
    for _ in range(steps):
        x = np.tanh(2.0 * (x @ a) + 0.1 * (a @ x))
        a += 0.01 * a * a
    return (x * x).sum()


def times_the_transpose(a: Array, x: Array, steps: int) -> float:
    """Matrices of which BLAS has other orders by rows and by columns."""
    b = np.outer(x, x)
    for _ in range(steps):
        b = np.tanh(2.0 * (a @ b) + a.T @ b + 0.1 * (b @ a.T))
        a *= 0.99
    return (b * b).sum()


def weighed_rows(a: Array, x: Array, steps: int) -> float:
    """Sums along rows, of what lies side by side in the copies of steps alone."""
    s = 0.5
    for _ in range(steps):
        a[:] = 0.9 * np.tanh(a)
        s += 0.1 * np.tanh(np.mean(a * x[:, None], axis=1)).sum()
    return s


def rows_times_one(a: Array, x: Array, steps: int) -> float:
    """A sum of all elements of a matrix of which a check finds that it is square."""
    s = x[0]
    for i in range(steps):
        a *= 0.5 + np.sin(a[i][:, None])
        s += a.sum()
    return s


def a_number_twice(a: Array, k: float, steps: int) -> float:
    """One loop over elements multiplies by a number twice: its cotangent is one sum."""
    s = 0.5
    for _ in range(steps):
        b = a * a.T * k
        a[:] = 0.9 * np.tanh(a * k + b)
        s += 0.1 * a.sum()
    return s


def times_its_column(a: Array, x: Array, steps: int) -> float:
    """A sum along rows that lie backwards: what is saved beside it, lies forwards."""
    s = 0.5
    for i in range(steps):
        a *= 0.9 + a[:, i]
        s += (a[:, 1] * x[::-1]).sum()
    return s


def a_tenth_more(a: Array, x: Array, index: Array, steps: int) -> float:
    """A cotangent plus a part of itself is no sum over the loop."""
    s = 0.5
    for i in range(steps):
        s += 0.1 * s
        for j in range(x.size):
            s += a[i, j]
            x[index[j]] *= a[j, i]
    return s


def weighed_pairs(a: Array, x: Array, steps: int) -> float:
    """A nest whose adjoint is products: of one matrix, and of all steps of a block."""
    for _ in range(steps):
        s = 0.5
        for i in range(x.size):
            for j in range(x.size):
                s += a[i, j] * x[i] * x[j]
        x *= 0.1 * np.sin(s) + 0.5
    return x.sum()


def weighed_pairs_in_a_chain(a: Array, x: Array, steps: int) -> float:
    s = 0.5
    for _ in range(steps):
        for i in range(x.size):
            for j in range(x.size):
                s += a[i, j] * x[j] * x[i]
        x *= 0.1 * np.sin(s) + 0.5
    return s


def weights_decay(a: Array, x: Array, steps: int) -> float:
    """Products, and sums along rows, of a matrix that outer steps change: inner ones have copies of it."""
    h, s = x * 1.0, 0.0
    for _ in range(steps):
        for _ in range(5):
            h = np.tanh(a @ h + (a * x).sum(axis=1))
        s += (h * h).sum()
        a *= 0.99
    return s


def squares_decay(a: Array, x: Array, steps: int) -> float:
    """Sums along rows of what is computed of such a matrix."""
    h, s = x * 1.0, 0.0
    for _ in range(steps):
        for _ in range(5):
            h = np.tanh((np.sin(a) * a * h).sum(axis=1) + x * h * (a * a.T).sum(axis=0))
        s += (h * h).sum()
        a *= 0.99
    return s


def looked_up_again(x: Array, y: Array, w: Array, index: Array, steps: int) -> float:
    """Where the inner loop adds, a statement behind it looks up as well, and a step has saved that."""
    for _ in range(steps):
        for i in range(x.size):
            for j in range(x.size):
                y[index[i]] *= 0.9 * x[index[j]]
                y[index[i]] += 0.1 * x[j] * x[index[i]]
            y[i] += 0.1 * x[i] * w[index[i], i]
    return (x * x).sum() + y.sum()


def first_iteration_apart(x: Array, y: Array, w: Array, index: Array, steps: int) -> float:
    """The whole gradient computes `tanh` again, in the first iteration of another `s`; steps save it."""
    s = 0.3
    for _ in range(steps):
        for i in range(x.size):
            y[i] += 0.1 * np.tanh(x[index[i]] * w[index[i], i] + 0.5 * (w[0, i] - s))
            s = 0.1
        x *= 0.5
    return (x * x).sum() + y.sum() + s


def outer_products(a: Array, x: Array, y: Array, steps: int) -> float:
    """A sum along the rows of a matrix of two vectors, which a step goes through in blocks of rows."""
    h = x * 1.0
    for _ in range(steps):
        h = np.tanh(0.2 * (a * np.outer(y, x * y) * x * y).sum(axis=1) + 0.1 * x)
        a *= 0.99
        h = np.tanh(0.2 * ((np.outer(y, h * x) + a) * h).sum(axis=1) + 0.1 * x)
    return (h * h).sum() + (a * a).sum() + (x * y).sum()


def every_second(a: Array) -> Array:
    view = np.zeros([2 * n for n in a.shape])[tuple(slice(None, None, 2) for _ in a.shape)]
    view[...] = a
    return view


def transposed(a: Array) -> Array:
    return a.T.copy().T


def upside_down(a: Array) -> Array:
    return a[::-1, ::-1].copy()[::-1, ::-1]


def every_second_transposed(a: Array) -> Array:
    return every_second(a.T).T


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[str, ...]]] = [
    *[row for row in ROWS if row[0] in (stages, stages_in_each_step, some_stages_in_each_step)],
    (sine_chain, (CHANCE.uniform(0.5, 1.5, 300), 0.8, 0.3), ("x", "a", "b")),
    (gate, (CHANCE.uniform(0.5, 1.5, 300), 0.3), ("x", "k")),
    (newton, (CHANCE.uniform(0.5, 1.5, 300), 0.3), ("x", "k")),
    (partials, (LOST, 1.0 / LOST, 0.7), ("x", "y", "k")),
    (partials, (LOST, LOST, 1e300), ("x", "y", "k")),
    (cells, (CHANCE.normal(size=(12, 19)), CHANCE.normal(size=(2, 19))), ("weights",)),
    (gates, (CHANCE.normal(size=(12, 19)), CHANCE.normal(size=(2, 19))), ("weights",)),
    (shares, (CHANCE.normal(size=(9, 70)), CHANCE.normal(size=(70, 70)) / 9, 3), ("x", "w")),
    (sine_chain_until, (CHANCE.uniform(0.5, 1.5, 300), 0.8, 0.3), ("x", "a", "b")),
    (growing_steps, (CHANCE.uniform(0.2, 0.9, 30), 25), ("u",)),
    (spread, (CHANCE.uniform(0.2, 0.9, 77)[::-1], CHANCE.uniform(0.2, 0.9, 77), 9), ("x", "w")),
    (spread, (every_second(CHANCE.uniform(0.2, 0.9, 77)), CHANCE.uniform(0.2, 0.9, 77), 9), ("x",)),
    (orthogonal_columns, (transposed(CHANCE.normal(size=(45, 13)) / 3), 5), ("a",)),
    (
        beside_the_transpose,
        (CHANCE.normal(size=(41, 41)) / 4, CHANCE.normal(size=41), 6),
        ("a", "y"),
    ),
    (
        small_products,
        (every_second(CHANCE.normal(size=(20, 20)) / 3), CHANCE.normal(size=20), 5),
        ("a",),
    ),
    (
        one_number_of_a_row,
        (np.random.default_rng(3).uniform(-0.9, 0.9, 41), np.zeros((41, 41)), 6),
        ("x",),
    ),
    (
        squared_before,
        (
            CHANCE.uniform(-0.9, 0.9, 41),
            CHANCE.uniform(0.1, 0.9, (41, 41)),
            CHANCE.permutation(41),
            0.4,
            6,
        ),
        ("k",),
    ),
    (
        from_the_end,
        (
            *(CHANCE.uniform(-0.9, 0.9, 41) for _ in range(2)),
            CHANCE.uniform(-0.9, 0.9, (41, 41)),
            CHANCE.permutation(41),
            2,
        ),
        ("x",),
    ),
    *(
        (
            weighed_rows,
            (laid_out(RANDOM.normal(size=(41, 41)) / 5), RANDOM.normal(size=41), 6),
            ("x", "a"),
        )
        for laid_out in (every_second, transposed, upside_down)
    ),
    (rows_times_one, (RANDOM.uniform(-0.9, 0.9, (41, 41)), RANDOM.normal(size=41), 6), ("a",)),
    (
        times_its_column,
        (RANDOM.uniform(0.0, 0.2, (41, 41)), RANDOM.normal(size=41), 30),
        ("a", "x"),
    ),
    (
        a_tenth_more,
        (RANDOM.uniform(-0.9, 0.9, (41, 41)), RANDOM.normal(size=41), RANDOM.permutation(41), 6),
        ("a", "x"),
    ),
    *(
        (
            function,
            (RANDOM.uniform(0.1, 0.9, (31, 31)) / 9, RANDOM.uniform(0.1, 0.9, 31), steps),
            ("a", "x"),
        )
        for function, steps in (
            (weighed_pairs, 7),
            (weighed_pairs, 40),
            (weighed_pairs_in_a_chain, 7),
        )
    ),
    *(
        (
            function,
            (
                *(RANDOM.uniform(0.2, 0.9, 41) for _ in range(2)),
                RANDOM.uniform(-0.3, 0.3, (41, 41)),
                RANDOM.permutation(41),
                4,
            ),
            ("x", "w"),
        )
        for function in (looked_up_again, first_iteration_apart)
    ),
    (a_number_twice, (every_second(RANDOM.uniform(-0.9, 0.9, (41, 41))), 0.7, 6), ("k",)),
    *(
        (function, (laid_out(CHANCE.normal(size=(n, n)) / 5), CHANCE.normal(size=n), 5), ("a",))
        for function, n, laid_out in (
            (rows_and_columns_times, 10, every_second),
            (rows_and_columns_times, 41, upside_down),
            (rows_and_columns_times, 41, every_second_transposed),
            (times_the_transpose, 41, every_second),
            (times_the_transpose, 41, every_second_transposed),
        )
    ),
    *(
        (
            function,
            (laid_out(RANDOM.normal(size=(41, 41)) / 6), RANDOM.normal(size=41), 6),
            ("x",),
        )
        for function, laid_out in (
            (weighed_rows, every_second),
            (weighed_rows, transposed),
            (weights_decay, every_second),
            (weights_decay, upside_down),
            (weights_decay, transposed),
            (squares_decay, transposed),
        )
    ),
]


@pytest.mark.parametrize("cpu", HERE)
@pytest.mark.parametrize(
    ("function", "arguments", "wrt"),
    PROGRAMS,
    ids=[f"{k}-{row[0].__name__}" for k, row in enumerate(PROGRAMS)],
)
def test_vector_code_of_steps_has_the_bits_of_the_loop(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    wrt: tuple[str, ...],
    cpu: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, cpu)
    _, found = least_of(function, arguments, wrt, opt=3)
    assert found == outcome(compiled(function, None, 3), arguments, wrt)


@pytest.mark.parametrize("cpu", [cpu for cpu in HERE if cpu != "x86-64-v2"])
@pytest.mark.parametrize("laid_out", [np.array, every_second, transposed])
def test_so_have_rows_and_columns(
    laid_out: Callable[[Array], Array], cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(With vectors of two numbers LLVM may find that elements which lie apart are not worth them.)"""
    monkeypatch.setenv(VARIABLE, cpu)
    given = laid_out(CHANCE.uniform(0.2, 0.9, (35, 29))), 7
    _, found = least_of(rows_and_columns, given, ("m",), opt=3)
    assert found == outcome(compiled(rows_and_columns, None, 3), given, ("m",))


@pytest.mark.parametrize("cpu", [cpu for cpu in HERE if cpu != "x86-64-v2"])
def test_so_have_sums_along_rows_that_go_in_blocks(
    cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(With vectors of two numbers LLVM makes some of a sum along a row in one of two places.)"""
    monkeypatch.setenv(VARIABLE, cpu)
    chance = np.random.default_rng(5)
    matrix, x, y = chance.normal(size=(41, 41)) / 6, *chance.normal(size=(2, 41))
    given, wrt = (matrix, x, y, 9), ("a", "x", "y")
    _, found = least_of(outer_products, given, wrt, opt=3)
    assert found == outcome(compiled(outer_products, None, 3), given, wrt)


@pytest.mark.parametrize("cpu", ["", *runnable()[1:]])
@pytest.mark.parametrize("laid_out", [np.array, every_second, transposed])
def test_so_have_sums_side_by_side(
    laid_out: Callable[[Array], Array], cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else is in the loop, and whether elements lie apart, the end of a sum has one order."""
    monkeypatch.setenv(VARIABLE, cpu)
    given = *(laid_out(CHANCE.uniform(0.2, 0.9, (35, 29))) for _ in range(2)), 7
    _, found = least_of(sums_side_by_side, given, ("m", "y"), opt=3)
    assert found == outcome(compiled(sums_side_by_side, None, 3), given, ("m", "y"))


sys.path.append(str(Path(__file__).parents[2]))
CATALOGUE = importlib.import_module("benchmarks.programs.catalogue").PROGRAMS
SIZES = {
    **{"lstm": 67, "lstm_loops": 67, "attention": 64, "hdiff": 32},
    **{"gramschmidt": 21, "correlation": 21, "durbin": 77},
}
"""Programs that are timed, at sizes at which a last bit, or the sign of a zero, would tell."""


@pytest.mark.parametrize("name", SIZES)
def test_so_has_that_of_programs_that_are_timed(name: str) -> None:
    (program,) = (one for one in CATALOGUE if one.name == name)
    given = program.make(SIZES[name])
    _, found = least_of(program.function, given, program.wrt, opt=3)
    assert found == outcome(compiled(program.function, None, 3), given, program.wrt)


def test_steps_of_steps_have_the_numbers_of_the_loop() -> None:
    """What the stack held of a step that has returned, its inner steps do not read."""
    given = CHANCE.uniform(0.2, 0.9, 17), CHANCE.uniform(0.5, 1.1, 9), 9
    _, found = least_of(handed_numbers, given, ("u", "c"), opt=1)
    assert found == outcome(compiled(handed_numbers, None, 1), given, ("u", "c"))


def test_a_loop_that_takes_from_the_one_before_leaves_what_lies_between() -> None:
    given = CHANCE.uniform(0.2, 0.9, 22), CHANCE.uniform(0.2, 0.9, (22, 22)), 9, 1
    _, found = least_of(copied_between, given, ("u", "v"), opt=1)
    assert found == outcome(compiled(copied_between, None, 1), given, ("u", "v"))


def test_a_cotangent_of_minus_zero_keeps_its_sign() -> None:
    """It is stored where nothing was before, and not added to a zero."""
    x = CHANCE.uniform(0.2, 0.9, 40)
    x[::3] = -0.0
    given = x, CHANCE.uniform(0.2, 0.9, 40), 12
    least, found = least_of(decay, given, ("x", "y"))
    assert found == outcome(compiled(decay, None), given, ("x", "y"))
    y_bar = compiled(decay, least).grad(*copies(given), wrt="y")
    assert np.signbit(y_bar[::3]).all()


def decay(x: Array, y: Array, steps: int) -> float:
    for _ in range(steps):
        x *= 0.9 - 0.1 * x * x
    return (x * y).sum()


def test_a_step_of_a_loop_of_numbers_is_a_block() -> None:
    given = CHANCE.uniform(0.5, 1.5, 1000), 0.8, 0.3
    function = compiled(sine_chain, 1)
    least = function.explain(*given).budget.least
    (loop,) = compiled(sine_chain, least).explain(*given).budget.loops
    assert (loop.steps, loop.executed) == (8, 36)
