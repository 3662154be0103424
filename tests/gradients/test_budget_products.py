"""Products in steps that run again have the bits of the gradient without a budget.

There 32 products of a loop are one of BLAS: within a budget the steps of a block keep their vectors, and the
last one adds the product of all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from budget_programs import compiled, copies, least_of, outcome
from turns import in_turn

import mutad
from mutad.runtime.target import VARIABLE, runnable

Array = np.ndarray
CHANCE = np.random.default_rng(7)
HERE = ("", *in_turn(runnable()[1:]))
"""The CPU at hand, and of the levels that it has another one each day."""


def steps_of_products(x: Array, v: Array, steps: int) -> float:
    for _ in range(steps):
        v[:] = np.tanh(x @ v) + 0.1 * v
    return (v * v).sum() + x.sum()


def there_and_back(x: Array, v: Array, steps: int) -> float:
    """A step adds two products to the gradient of one matrix, one of them to its transpose."""
    for _ in range(steps):
        v[:] = np.tanh(2.0 * (x @ v)) + 0.1 * np.sin(x.T @ v)
    return (v * v).sum() + x.sum()


def three_products(x: Array, v: Array, steps: int) -> float:
    w = 0.5 * v
    for _ in range(steps):
        v[:] = np.tanh(x @ v + 0.1 * w)
        w = np.sin(v @ x) + 0.1 * (x @ w)
    return (v * w).sum() + x.sum()


@pytest.mark.parametrize("opt", [1, 3])
@pytest.mark.parametrize("function", [steps_of_products, there_and_back, three_products])
@pytest.mark.parametrize("cpu", HERE)
def test_products_of_many_iterations_have_the_bits_of_one_each(
    function: Callable[..., Any], opt: int, cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is fused with its sum where the CPU does that, at each level of optimization."""
    monkeypatch.setenv(VARIABLE, cpu)
    given = CHANCE.normal(size=(20, 20)) / 5, CHANCE.uniform(0.2, 0.9, 20), 37
    least, found = least_of(function, given, ("x", "v"), opt=opt)
    free = outcome(compiled(function, None, opt), given, ("x", "v"))
    assert found == free
    assert outcome(compiled(function, 3 * least, opt), given, ("x", "v")) == free


def recurrent(x: Array, w: Array, u: Array, steps: int) -> float:
    """Each step adds to a row of the gradient of `x`."""
    h = np.zeros(w.shape[0])
    for i in range(steps):
        h = np.tanh(w @ x[i] + u @ h)
    return (h * h).sum()


def recurrent_rows(x: Array, w: Array, u: Array, steps: int) -> float:
    h = np.zeros(w.shape[1])
    for i in range(steps):
        h = np.tanh(x[i] @ w + h @ u)
    return (h * h).sum()


def until_large(x: Array, w: Array, u: Array, steps: int) -> float:
    """How many steps there are, is known at the end."""
    h, i = np.zeros(w.shape[0]), 0
    while i < steps and (h * h).sum() < 1e9:
        h = np.tanh(w @ x[i] + u @ h)
        i += 1
    return (h * h).sum()


def in_a_branch(x: Array, w: Array, u: Array, steps: int) -> float:
    h = np.zeros(w.shape[0])
    if steps > 3:
        for i in range(steps):
            h = np.tanh(w @ x[i] + u @ h)
    return (h * h).sum()


def in_steps_of_steps(x: Array, w: Array, u: Array, steps: int) -> float:
    h, s = x[0] * 1.0, 0.0
    for i in range(steps // 9):
        for k in range(9):
            h = np.tanh(w @ h + u @ x[i * 9 + k])
        s += (h * h).sum()
        w *= 0.99
    return s


def with_its_transpose(x: Array, w: Array, u: Array, steps: int) -> float:
    """Two products that add to one matrix and are two in the gradient, too."""
    h = np.zeros(w.shape[0])
    for i in range(steps):
        h = np.tanh(w @ x[i] + u @ h)
        h = np.sin(h) * (w.T @ x[i])
    return (h * h).sum()


def beside_a_loop(x: Array, w: Array, u: Array, steps: int) -> float:
    """A loop over elements adds to the matrix that the product adds to."""
    h = x[0] * 1.0
    for i in range(steps):
        h = np.tanh(w @ h)
        for j in range(h.size):
            h[j] = h[j] * w[i % h.size, j] + u[0, j]
    return (h * h).sum()


def of_changing_matrices(x: Array, w: Array, u: Array, steps: int) -> float:
    """Here no product can wait for another."""
    h = np.zeros(w.shape[0])
    for i in range(steps):
        h = np.tanh(w @ x[i] + u @ h)
        w *= 0.99
    return (h * h).sum()


PRODUCTS = [
    *(recurrent, recurrent_rows, until_large, in_a_branch, in_steps_of_steps),
    *(with_its_transpose, beside_a_loop, of_changing_matrices),
]
WRT = ("x", "w", "u")


def given_for(n: int, steps: int) -> tuple[Any, ...]:
    x, w, u = (CHANCE.normal(size=shape) for shape in ((steps, n), (n, n), (n, n)))
    return x, w / np.sqrt(n), u / np.sqrt(n), steps


@pytest.mark.parametrize("cpu", HERE)
@pytest.mark.parametrize("function", PRODUCTS)
def test_steps_collect_products_as_the_gradient_does(
    function: Callable[..., Any], cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, cpu)
    given = given_for(41, 70)
    least, found = least_of(function, given, WRT, opt=3)
    free = outcome(compiled(function, None, 3), given, WRT)
    assert found == free
    assert outcome(compiled(function, 3 * least, 3), given, WRT) == free


@pytest.mark.parametrize("steps", [1, 31, 32, 33, 64])
def test_so_do_blocks_of_any_length(steps: int) -> None:
    given = given_for(9, steps)
    _, found = least_of(recurrent, given, WRT)
    assert found == outcome(compiled(recurrent, None), given, WRT)


def in_float32(a: Array) -> Array:
    return a.astype(np.float32)


@pytest.mark.parametrize("laid_out", [np.asfortranarray, in_float32])
def test_so_do_matrices_by_columns_and_float32(laid_out: Callable[[Array], Array]) -> None:
    *arrays, steps = given_for(41, 45)
    given = *(laid_out(a) for a in arrays), steps
    _, found = least_of(recurrent, given, WRT)
    assert found == outcome(compiled(recurrent, None), given, WRT)


def test_so_do_states_on_disk() -> None:
    given = given_for(41, 70)
    free = outcome(compiled(recurrent, None), given, WRT)
    with tempfile.TemporaryDirectory() as folder:
        spilling = mutad.compile(recurrent, grad=True, opt=1, memory=("4kB", f"disk:{folder}"))
        assert outcome(spilling, given, WRT) == free


@pytest.mark.parametrize(("function", "name"), [(recurrent, "x"), (beside_a_loop, "w")])
def test_so_do_hessian_vector_products(function: Callable[..., Any], name: str) -> None:
    """Also of an array that a step has not kept (`x`)."""
    given = given_for(41, 70)
    direction = CHANCE.normal(size=given[WRT.index(name)].shape)
    found = [
        compiled(function, memory).value_grad_hvp(*copies(given), wrt=name, direction=direction)
        for memory in (None, 12_000)
    ]
    free, tight = ([np.asarray(a).tobytes() for a in one] for one in found)
    assert free == tight


def test_so_do_those_of_which_the_gradient_is_not_asked_for() -> None:
    given, direction = given_for(41, 70), CHANCE.normal(size=(70, 41))
    free, tight = (
        compiled(recurrent, memory).hvp(*copies(given), wrt="x", direction=direction)
        for memory in (None, 12_000)
    )
    assert free.tobytes() == tight.tobytes()


def test_so_do_those_beside_a_loop_over_elements() -> None:
    """The forward sweep of tangents adds one product to another, which no block of steps collects."""
    given = CHANCE.normal(size=(41, 41)) / 6, CHANCE.normal(size=41), 9
    direction = CHANCE.normal(size=(41, 41))
    free, tight = (
        compiled(diagonal_beside, memory).hvp(*copies(given), wrt="a", direction=direction)
        for memory in (None, 4_000)
    )
    assert free.tobytes() == tight.tobytes()


def diagonal_beside(a: Array, x: Array, steps: int) -> float:
    h, s = x * 1.0, 0.0
    for _ in range(steps):
        for i in range(x.size):
            s += a[i, i] * h[i]
        h = np.tanh(a @ h) + 0.1 * s
    return (h * h).sum() + (a * a).sum() + s
