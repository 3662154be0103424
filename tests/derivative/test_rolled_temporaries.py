"""Temporaries of gradients, and of their tangents, are a few rows where `fuse-rows` may have them."""

from collections.abc import Callable

import numpy as np
import pytest

from mutad import compile
from mutad.compiler.pipeline import Request, run_stages


def in_place(u, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1] += 0.1 * u[1:-1] * (u[2:] - u[:-2])
    return (u * u).sum()


def argument_in_place(u, steps):
    for _ in range(steps):
        u[1:-1] += 0.1 * u[1:-1] * (u[2:] - u[:-2])
    return (u * u).sum()


@pytest.mark.parametrize("mode", ["gradient", "product"])
def test_of_an_update_in_place(mode: str, run_filecheck: Callable[[str, str], None]) -> None:
    """They are allocated where they are used until the last derivative is there."""
    request = Request(argument_in_place, ("f64[?]C", "py_int"), mode=mode, wrt=(0,))
    checks = """
    // CHECK:     %temporary = array.alloc(%[[HELD:[0-9]+]])
    // CHECK:     array.loop %{{.*}} to %count do
    // CHECK:       array.view %temporary[%rows]
    // CHECK:       array.loop %step to %steps_1 do
    """
    run_filecheck(run_stages(request, "optimize"), checks)


def in_order(a, x, y):
    z = y.copy()
    for i in range(x.size):
        z[i] += a * x[i]
    total = 0.0
    for i in range(x.size):
        total += z[i] * x[i]
    return total


def test_what_one_loop_alone_reads_takes_no_memory() -> None:
    f = compile(in_order, grad=True, opt=1)
    x, y = np.sin(np.arange(50.0)), np.cos(np.arange(50.0))
    assert f.explain(0.5, x, y, wrt=("x", "y"), mode="tangent").temporary_bytes == 0
    _, slope = f.jvp(0.5, x, y, tangents={"x": y.copy(), "y": x.copy()})
    np.testing.assert_allclose(slope, x @ x + y @ y + x @ y, rtol=1e-12)
    assert f(0.5, x, y) == in_order(0.5, x, y)
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        f(0.5, x, y[:3])


def test_of_several_steps_of_several_directions() -> None:
    """More rows than one step of a block has: 1024 with eight directions."""
    f = compile(in_place, grad=True, opt=1)
    u, along = np.sin(np.arange(2500.0)), np.random.default_rng(0).normal(size=(8, 2500))
    products = f.hvp(u, 3, direction=along, batch=8)
    _, slopes = f.jvp(u, 3, tangents={"u": along.copy()}, batch=8)
    for k in (0, 7):
        np.testing.assert_allclose(products[k], f.hvp(u, 3, direction=along[k]), rtol=1e-12)
        np.testing.assert_allclose(slopes[k], f.grad(u, 3) @ along[k], rtol=1e-10)


def normalized(x, gain, target):
    away = x - np.mean(x, axis=1, keepdims=True)
    variance = np.mean(away * away, axis=1, keepdims=True)
    y = gain * away / np.sqrt(variance + 1e-5)
    return ((y - target) * (y - target)).sum()


def entropy(x, target):
    shifted = x - np.max(x, axis=1, keepdims=True)
    total = np.sum(np.exp(shifted), axis=1, keepdims=True)
    return -(target * (shifted - np.log(total))).sum()


@pytest.mark.parametrize(("n", "m"), [(200, 300), (3, 7000), (9000, 2), (1, 1), (0, 5), (37, 1)])
@pytest.mark.parametrize("function", [normalized, entropy])
def test_rows_whose_sums_come_first_are_few(function, n: int, m: int) -> None:
    """How many is asked of the longest rows, not of those of one number."""
    f = compile(function, grad=True)
    r = np.random.default_rng(1)
    x = 0.5 * r.normal(size=(n, m)) + 4.0 * (np.arange(m) % 2)  # no rows of almost equal numbers
    gain, target = r.normal(size=m), r.normal(size=(n, m))
    given = (x, gain, target) if function is normalized else (x, target)
    value, gradient = f.value_and_grad(*given)
    np.testing.assert_allclose(value, function(*given), rtol=1e-12)
    move, step = r.normal(size=(n, m)), 1e-5
    ahead, behind = (function(x + s * move, *given[1:]) for s in (step, -step))
    slope = (ahead - behind) / (2 * step)
    np.testing.assert_allclose(np.vdot(gradient, move), slope, rtol=2e-6, atol=1e-6)
    if n == 200:
        assert f.explain(*given).temporary_bytes < 8 * 40 * m
