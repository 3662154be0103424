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
