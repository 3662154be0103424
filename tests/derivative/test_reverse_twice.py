"""The adjoint of an adjoint: every case of the lit tests, and numbers where rules of tangents have no part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from mutad import compile
from mutad.compiler.derivative.checkpoint_loops import CheckpointLoops
from mutad.compiler.derivative.passes import Reverse
from mutad.compiler.diagnostics import CompileError
from mutad.compiler.pass_order import BEFORE_ANOTHER
from mutad.opt import MutadOpt

REVERSE_OVER_REVERSE = "reverse-over-reverse"


def parsed(text: str) -> ModuleOp:
    return Parser(MutadOpt(args=["-"]).ctx, text).parse_module()


@pytest.mark.parametrize("optimized", [False, True])
def test_every_case_is_reversed_twice(root: Path, optimized: bool) -> None:
    for path in sorted((root / "lit-tests" / "derivative").glob("*.mlir")):
        text = path.read_text()
        module = parsed(text)
        Reverse(split=path.name == "split.mlir", adjoints=True).apply(Context(), module)
        if optimized:
            for one in BEFORE_ANOTHER:
                one.apply(Context(), module)
        Reverse().apply(Context(), module)
        module.verify()


@pytest.mark.parametrize("case", ["checkpoint-loops", "activations"])
def test_what_is_refused_says_where_and_what_to_do(root: Path, case: str) -> None:
    """Steps that are run again, where nobody said that their adjoint is asked for; a third derivative."""
    module = parsed((root / "lit-tests" / "derivative" / f"{case}.mlir").read_text())
    if case == "activations":
        Reverse().apply(Context(), module)
        way_out = "all but one of them in forward mode"
    else:
        CheckpointLoops(1000).apply(Context(), module)
        way_out = "keep what its steps need"
    Reverse().apply(Context(), module)
    with pytest.raises(CompileError, match=way_out):
        Reverse().apply(Context(), module)


def at_an_exact_fit(k: np.ndarray, x: np.ndarray, target: np.ndarray) -> float:
    r = k * np.sin(x**2) - target
    return (r * r).sum()


def at_an_exact_fit_in_a_loop(k: np.ndarray, x: np.ndarray, target: np.ndarray) -> float:
    s = 0.0
    for i in range(x.size):
        r = k[i] * np.sin(x[i] ** 2) - target[i]
        s += r * r
    return s


def at_an_exact_fit_of_what_was_overwritten(
    k: np.ndarray, x: np.ndarray, target: np.ndarray
) -> float:
    k *= np.sin(x**2)
    s = 0.0
    for i in range(x.size):
        k[i] -= target[i]
        k[i] *= k[i]
        s += k[i]
    return s


@pytest.mark.parametrize(
    "function",
    [at_an_exact_fit, at_an_exact_fit_in_a_loop, at_an_exact_fit_of_what_was_overwritten],
)
@pytest.mark.parametrize("mode", ["forward-over-reverse", REVERSE_OVER_REVERSE])
def test_hessians_where_all_cotangents_are_zero(function: Callable[..., Any], mode: str) -> None:
    k, x = np.array([0.3, -1.2, 2.0]), np.array([0.4, 1.1, 0.7])
    target, (dk, dx) = k * np.sin(x**2), (np.array([1.0, 0.5, -2.0]), np.array([0.3, -1.0, 1.0]))
    by_k, by_x = np.sin(x**2), 2 * k * x * np.cos(x**2)
    moved = 2 * (by_k * dk + by_x * dx)
    _, gradient, product = compile(function, grad=True).value_grad_hvp(
        k.copy(), x, target, wrt=("k", "x"), direction=(dk, dx), mode=mode
    )
    np.testing.assert_array_equal(gradient, np.zeros((2, 3)))
    np.testing.assert_allclose(product, [moved * by_k, moved * by_x], rtol=1e-14)


def softmax_in_place(x: np.ndarray) -> float:
    x -= x.max()
    np.exp(x, out=x)
    x /= x.sum()
    return (x**3).sum()


def products_of_overwritten(x: np.ndarray) -> float:
    p, low = np.prod(x), x.min()
    x *= x * p + low
    return (x * p).sum() + np.prod(x)


@pytest.mark.parametrize("function", [softmax_in_place, products_of_overwritten])
@pytest.mark.parametrize("mode", ["forward-over-reverse", REVERSE_OVER_REVERSE])
def test_extremes_and_products_of_what_is_overwritten(
    function: Callable[..., Any], mode: str
) -> None:
    """The map that takes them saves what it reads: a map with several outputs."""
    f, x, v = compile(function, grad=True), np.array([0.3, 0.9, 0.5]), np.array([1.0, -0.5, 2.0])
    h = 1e-5
    differences = (f.grad(x + h * v) - f.grad(x - h * v)) / (2 * h)
    product = f.hvp(x.copy(), direction=v, mode=mode)
    np.testing.assert_allclose(product, differences, rtol=1e-7, atol=1e-9)


def product(x: np.ndarray) -> float:
    return np.prod(x)


@pytest.mark.parametrize("zeros", [[], [1], [0, 2], [0, 1, 3]])
@pytest.mark.parametrize("mode", ["forward-over-reverse", REVERSE_OVER_REVERSE])
def test_hessians_of_products_with_zeros(zeros: list[int], mode: str) -> None:
    """A pair's entry is the product of the others, whichever factors are 0."""
    x, f = np.array([0.5, 1.2, -0.7, 0.4]), compile(product, grad=True, opt=3)
    x[zeros] = 0.0
    wanted = [[np.prod(np.delete(x, [i, j])) * (i != j) for j in range(4)] for i in range(4)]
    found = [f.hvp(x, direction=v, mode=mode) for v in np.eye(4)]
    np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-16)


def grows(x: np.ndarray) -> float:
    made = [v * v for v in x]
    while len(made) < 9:
        made.append(made[-1] * made[-2] + 0.5)
    made.sort()
    s = 0.0
    for k, v in enumerate(made):
        s += (k + 1) * v * v
    return s


def test_memory_of_lists_is_left_as_it_was_found() -> None:
    """Shadows of lists are full of zeros between calls; their own shadows are not."""
    f, x, v = compile(grows, grad=True), np.array([0.3, 0.7, 0.5]), np.array([1.0, -0.5, 2.0])
    gradient, product = f.grad(x), f.hvp(x, direction=v)
    for _ in range(3):
        np.testing.assert_allclose(
            f.hvp(x, direction=v, mode=REVERSE_OVER_REVERSE), product, rtol=1e-12
        )
        np.testing.assert_array_equal(f.grad(x), gradient)
        np.testing.assert_array_equal(f.hvp(x, direction=v), product)


def test_directions_are_only_read() -> None:
    f, x, v = compile(grows, grad=True), np.array([0.3, 0.7, 0.5]), np.array([1.0, -0.5, 2.0])
    v.flags.writeable = False
    f.hvp(x, direction=v, mode=REVERSE_OVER_REVERSE)
    np.testing.assert_array_equal(v, [1.0, -0.5, 2.0])


def test_another_mode_is_refused() -> None:
    f, x = compile(grows, grad=True), np.ones(3)
    with pytest.raises(ValueError, match="use 'forward-over-reverse' or 'reverse-over-reverse'"):
        f.hvp(x, direction=x, mode="reverse")


class Particles:
    def __init__(self, v: Any) -> None:
        self.v = v


def bound_once(p: Particles, k: float) -> float:
    p.v = p.v - k * p.v**2
    return (p.v**3).sum()


def bound_in_a_loop(p: Particles, k: float) -> float:
    m = Particles(p.v)
    for _ in range(2):
        m.v = m.v @ p.v
    p.v = m.v[m.v > k]  # as many as there are
    return (m.v**2).sum() + (p.v**3).sum()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("function", "shape"), [(bound_once, (4,)), (bound_in_a_loop, (3, 3))])
def test_new_arrays_beside_the_value_have_no_cotangents(
    function: Callable[..., Any], shape: tuple[int, ...], dtype: type
) -> None:
    """Nobody knows their extents on entry."""
    rng = np.random.default_rng(3)
    x, v = (rng.normal(size=shape).astype(dtype) for _ in range(2))
    f = compile(function, grad=True, opt=1)

    def product(**mode: Any) -> Any:
        return f.hvp(Particles(x.copy()), 0.1, direction=Particles(v), **mode).v

    rtol = 1e-12 if dtype is np.float64 else 1e-4
    found = product(mode=REVERSE_OVER_REVERSE)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, product(), rtol=rtol, atol=rtol)
