"""What docs/coming-from/beside.md says of others: a program for each claim, run where the package is there.

A verdict is *yes* (the program as one writes it in NumPy, with the right gradient), *unrolled* (the same, but
its graph has each iteration), *rewritten* (only in a form of its own: the program is that form) or *no* (it
raises, or there is no such thing).
"""

from __future__ import annotations

import importlib
import math
import re
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mutad import CompileError, compile, cuda, device_array

PAGE = Path(__file__).parents[2] / "docs" / "coming-from" / "beside.md"
START = np.array([0.5, -0.25, 2.0, 1.0, 0.75, -1.5])

Program = Callable[[], Any]
CLAIMS: dict[tuple[str, str], tuple[str, Program, Any]] = {}
"""By row and package: the verdict, the program, and the gradient or the exception that it ends with."""


def claim(row: str, package: str, verdict: str, ends: Any) -> Callable[[Program], Program]:
    def noted(program: Program) -> Program:
        CLAIMS[row, package] = verdict, program, ends
        return program

    return noted


# --- a stencil in place -------------------------------------------------------------------

STENCIL = "`u[1:-1] += k * (...)` in a loop"


def diffuse(u, k):
    for _ in range(3):
        u[1:-1] += k * (u[:-2] - 2 * u[1:-1] + u[2:])
    return (u**2).sum()


SLOPE = (diffuse(START.copy(), 0.2 + 1e-6) - diffuse(START.copy(), 0.2 - 1e-6)) / 2e-6


@claim(STENCIL, "mutad", "yes", SLOPE)
def _() -> Any:
    return compile(diffuse, grad=True).grad(START.copy(), 0.2, wrt="k")


@claim(STENCIL, "numba", "no", AttributeError)
def _() -> Any:
    import numba

    compiled = numba.njit(diffuse)
    assert math.isclose(compiled(START.copy(), 0.2), diffuse(START.copy(), 0.2))
    return compiled.grad  # it computes values


@claim(STENCIL, "jax", "rewritten", SLOPE)
def _() -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    with pytest.raises(TypeError):
        jax.grad(diffuse, argnums=1)(jax.numpy.asarray(START), 0.2)

    def rewritten(u, k):
        for _ in range(3):
            u = u.at[1:-1].add(k * (u[:-2] - 2 * u[1:-1] + u[2:]))
        return (u**2).sum()

    return jax.grad(rewritten, argnums=1)(jax.numpy.asarray(START), 0.2)


@claim(STENCIL, "torch", "yes", SLOPE)
def _() -> Any:
    import torch

    k = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    diffuse(torch.tensor(START), k).backward()
    return k.grad


@claim(STENCIL, "casadi", "yes", SLOPE)
def _() -> Any:
    import casadi

    u, k = casadi.SX(START), casadi.SX.sym("k")
    for _ in range(3):  # the loop is unrolled into the graph
        u[1:-1] += k * (u[:-2] - 2 * u[1:-1] + u[2:])
    return float(casadi.Function("g", [k], [casadi.gradient(casadi.sumsqr(u), k)])(0.2))


# --- an element that is overwritten by its own square ---------------------------------------

SQUARES = "`x[i] = x[i]**2` for each `i`"


def squares(x):
    for i in range(len(x)):
        x[i] = x[i] ** 2
    return x.sum()


@claim(SQUARES, "mutad", "yes", 2 * START)
def _() -> Any:
    return compile(squares, grad=True).grad(START.copy())


@claim(SQUARES, "numba", "no", AttributeError)
def _() -> Any:
    import numba

    return numba.njit(squares).grad


@claim(SQUARES, "jax", "rewritten", 2 * START)
def _() -> Any:
    import jax

    with pytest.raises(TypeError):
        jax.grad(squares)(jax.numpy.asarray(START))

    def rewritten(x):
        return jax.lax.fori_loop(0, x.size, lambda i, x: x.at[i].set(x[i] ** 2), x).sum()

    return jax.grad(rewritten)(jax.numpy.asarray(START))


@claim(SQUARES, "torch", "no", RuntimeError)
def _() -> Any:
    import torch

    start = torch.tensor(START, requires_grad=True)
    squares(start.clone()).backward()  # a value that backward needs has been modified in place
    return start.grad


@claim(SQUARES, "casadi", "yes", 2 * START)
def _() -> Any:
    import casadi

    start = casadi.SX.sym("x", START.size)
    x = casadi.SX(start)
    for i in range(START.size):
        x[i] = x[i] ** 2
    return np.array(
        casadi.Function("g", [start], [casadi.gradient(casadi.sum1(x), start)])(START)
    ).ravel()


# --- a loop that ends when something has converged ---------------------------------------------

WHILE = "`while` until it has converged"


def root(a):
    x = 1.0 + 0.0 * a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


HALF = 0.5 / math.sqrt(3.0)


@claim(WHILE, "mutad", "yes", HALF)
def _() -> Any:
    return compile(root, grad=True).grad(3.0)


@claim(WHILE, "numba", "no", AttributeError)
def _() -> Any:
    import numba

    return numba.njit(root).grad


@claim(WHILE, "jax", "no", ValueError)
def _() -> Any:
    import jax

    def rewritten(a):
        return jax.lax.while_loop(
            lambda x: abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), 1.0 + 0.0 * a
        )

    return jax.grad(rewritten)(3.0)  # forward mode only


@claim(WHILE, "torch", "yes", HALF)
def _() -> Any:
    import torch

    a = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    root(a).backward()
    return a.grad


@claim(WHILE, "casadi", "no", Exception)
def _() -> Any:
    import casadi

    return root(casadi.SX.sym("a"))  # a symbol is neither true nor false


# --- an exception that is caught -----------------------------------------------------------------

CAUGHT = "`try: math.sqrt(x)`, `except ValueError`"


def safe(x):
    try:
        return math.sqrt(x)
    except ValueError:
        return 2.0 * x


@claim(CAUGHT, "mutad", "yes", 2.0)
def _() -> Any:
    return compile(safe, grad=True).grad(-1.0)


@claim(CAUGHT, "numba", "no", Exception)
def _() -> Any:
    import numba

    return numba.njit(safe)(-1.0)


@claim(CAUGHT, "jax", "no", TypeError)
def _() -> Any:
    import jax

    return jax.grad(safe)(-1.0)


@claim(CAUGHT, "torch", "no", Exception)
def _() -> Any:
    import torch

    x = torch.tensor(-1.0, requires_grad=True)
    return safe(
        x
    ).grad_fn.next_functions  # math.sqrt leaves the graph: there is nothing to differentiate


@claim(CAUGHT, "casadi", "no", AssertionError)
def _() -> Any:
    import casadi

    x = casadi.SX.sym("x")  # no number: the handler is taken, whatever x will be
    assert float(casadi.Function("f", [x], [safe(x)])(4.0)) == 2.0


# --- a sparse Jacobian ---------------------------------------------------------------------------

SPARSE = "a Jacobian's pattern, found and coloured"


def residual(u):
    r = u.copy()
    r[1:-1] += 0.1 * u[1:-1] * (u[:-2] - 2 * u[1:-1] + u[2:])
    return r


def dense() -> np.ndarray:
    steps = 1e-6 * np.eye(START.size)
    return np.stack([(residual(START + d) - residual(START - d)) / 2e-6 for d in steps], -1)


@claim(SPARSE, "mutad", "yes", dense())
def _() -> Any:
    found = compile(residual, grad=True).jacobian(START.copy(), sparsity="auto")
    assert found.nnz <= 3 * START.size
    return found.toarray()


@claim(SPARSE, "casadi", "yes", dense())
def _() -> Any:
    import casadi

    u = casadi.SX.sym("u", START.size)
    r = casadi.SX(u)
    r[1:-1] += 0.1 * u[1:-1] * (u[:-2] - 2 * u[1:-1] + u[2:])
    found = casadi.Function("j", [u], [casadi.jacobian(r, u)])(START)
    assert found.nnz() < START.size**2
    return np.array(found)


# --- second derivatives -----------------------------------------------------------------------------

HESSIANS = "Hessians"
CUBED = np.diag(6.0 * START)


def cubes(x):
    return (x * x * x).sum()


@claim(HESSIANS, "mutad", "yes", CUBED)
def _() -> Any:
    return compile(cubes, grad=True).hessian(START.copy())


@claim(HESSIANS, "numba", "no", AttributeError)
def _() -> Any:
    import numba

    return numba.njit(cubes).hessian


@claim(HESSIANS, "jax", "yes", CUBED)
def _() -> Any:
    import jax

    return jax.hessian(cubes)(jax.numpy.asarray(START))


@claim(HESSIANS, "torch", "yes", CUBED)
def _() -> Any:
    import torch

    return torch.autograd.functional.hessian(cubes, torch.tensor(START))


@claim(HESSIANS, "casadi", "yes", CUBED)
def _() -> Any:
    import casadi

    x = casadi.SX.sym("x", START.size)
    hessian, _ = casadi.hessian(casadi.sum1(x * x * x), x)
    return np.array(casadi.Function("h", [x], [hessian])(START))


# --- what is saved, and how much that may be ------------------------------------------------------

SAVED = "bytes that are saved, by line, before the run"
BUDGET = "a budget for these bytes"


@claim(SAVED, "mutad", "yes", [3 * 8 * (START.size - 2)])
def _() -> Any:
    plan = compile(diffuse, grad=True).explain(START, 0.2, wrt="k")
    return [save.bytes for save in plan.saves]


@claim(BUDGET, "mutad", "yes", SLOPE)
def _() -> Any:
    bounded = compile(diffuse, grad=True, memory=2 * 8 * START.size)
    assert bounded.explain(START, 0.2, wrt="k").saved_bytes <= 2 * 8 * START.size
    return bounded.grad(START.copy(), 0.2, wrt="k")


@claim(BUDGET, "jax", "by hand", SLOPE)
def _() -> Any:
    import jax

    def step(u, k):
        return u.at[1:-1].add(k * (u[:-2] - 2 * u[1:-1] + u[2:]))

    def rewritten(u, k):
        for _ in range(3):
            u = jax.checkpoint(step)(u, k)
        return (u**2).sum()

    return jax.grad(rewritten, argnums=1)(jax.numpy.asarray(START), 0.2)


@claim(BUDGET, "torch", "by hand", SLOPE)
def _() -> Any:
    import torch
    from torch.utils.checkpoint import checkpoint

    def step(u, k):
        v = u.clone()
        v[1:-1] += k * (u[:-2] - 2 * u[1:-1] + u[2:])
        return v

    u, k = torch.tensor(START), torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        u = checkpoint(step, u, k, use_reentrant=False)
    (u**2).sum().backward()
    return k.grad


# --- numbers that mutad does not have ---------------------------------------------------------------

COMPLEX = "complex numbers"


def modulus(x):
    z = x * (1.0 + 2.0j)
    return abs(z * z).sum()


@claim(COMPLEX, "mutad", "no", CompileError)
def _() -> Any:
    return compile(modulus, grad=True).grad(START.copy())


@claim(COMPLEX, "jax", "yes", 10.0 * START)
def _() -> Any:
    import jax

    return jax.grad(modulus)(jax.numpy.asarray(START))


@claim(COMPLEX, "torch", "yes", 10.0 * START)
def _() -> Any:
    import torch

    x = torch.tensor(START, requires_grad=True)
    modulus(x).backward()
    return x.grad


@claim(COMPLEX, "casadi", "no", Exception)
def _() -> Any:
    import casadi

    return casadi.SX.sym("x") * (1.0 + 2.0j)


# --- scalar loops that stay loops -----------------------------------------------------------------

SCALARS = "a recurrence over 1,000 elements, as a loop"
LONG = np.linspace(0.1, 0.9, 1000)


def recurrence(x):
    for i in range(1, len(x)):
        x[i] = x[i] - 0.3 * x[i - 1] * x[i]
    return x.sum()


OURS = compile(recurrence, grad=True)
PERTURBED = recurrence(LONG + 1e-7) - recurrence(LONG - 1e-7)


@claim(SCALARS, "mutad", "yes", PERTURBED / 2e-7)
def _() -> Any:
    return OURS.grad(LONG.copy()).sum()


@claim(SCALARS, "numba", "no", AttributeError)
def _() -> Any:
    import numba

    compiled = numba.njit(recurrence)
    assert math.isclose(compiled(LONG.copy()), recurrence(LONG.copy()))
    return compiled.grad


@claim(SCALARS, "jax", "rewritten", PERTURBED / 2e-7)
def _() -> Any:
    import jax

    def rewritten(x):
        def step(before, here):
            after = here - 0.3 * before * here
            return after, after

        _, rest = jax.lax.scan(step, x[0], x[1:])
        return x[0] + rest.sum()

    return jax.jit(jax.grad(rewritten))(jax.numpy.asarray(LONG)).sum()


@claim(SCALARS, "torch", "unrolled", PERTURBED / 2e-7)
def _() -> Any:
    import torch

    x = torch.tensor(LONG, requires_grad=True)
    parts = [x[0]]
    for i in range(1, len(x)):
        parts.append(x[i] - 0.3 * parts[-1] * x[i])
    result = torch.stack(parts).sum()
    pending, nodes = [result.grad_fn], set[Any]()
    while pending:
        node = pending.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            pending += [before for before, _ in node.next_functions]
    assert len(nodes) > LONG.size  # each step is in the graph
    return torch.autograd.grad(result, x)[0].sum()


@claim(SCALARS, "casadi", "unrolled", PERTURBED / 2e-7)
def _() -> Any:
    import casadi

    start = casadi.SX.sym("x", LONG.size)
    x = casadi.SX(start)
    for i in range(1, LONG.size):
        x[i] = x[i] - 0.3 * x[i - 1] * x[i]
    graph = casadi.Function("g", [start], [casadi.gradient(casadi.sum1(x), start)])
    assert graph.n_instructions() > LONG.size
    return np.array(graph(LONG)).sum()


# --- what needs no Python afterwards ---------------------------------------------------------------

LIBRARY = "a C library with the gradient"


@claim(LIBRARY, "mutad", "yes", 1.0)
def _() -> Any:
    from mutad import aot

    with tempfile.TemporaryDirectory() as folder:
        model, header = Path(folder) / "model.py", Path(folder) / "model.h"
        model.write_text(
            "import mutad\n\n\n@mutad.compile(grad=True)\n"
            'def energy(u: "f64[:]", k: float) -> float:\n    return k * (u**2).sum()\n'
        )
        made = str(Path(folder) / "model.o")
        assert (
            aot.main(
                [str(model), "--grad=energy:u", "-o", made, "--emit=object", f"--header={header}"]
            )
            == 0
        )
        return float("energy_grad" in header.read_text())


@claim(LIBRARY, "casadi", "yes", 1.0)
def _() -> Any:
    import casadi

    u = casadi.SX.sym("u", 3)
    graph = casadi.Function("slope", [u], [casadi.gradient(casadi.sumsqr(u), u)])
    made = casadi.CodeGenerator("model")
    made.add(graph)
    return float("int slope(const casadi_real** arg" in made.dump())


# --- GPUs --------------------------------------------------------------------------------------------

DEVICES = "NVIDIA GPUs"


@claim(DEVICES, "mutad", "yes", SLOPE)
def _() -> Any:
    with cuda.emulated():  # a driver without a device
        on_device = compile(diffuse, grad=True)
        return on_device.grad(device_array(START.copy()), 0.2, wrt="k")


INSTALLED = [key for key in CLAIMS if find_spec(key[1])]


@pytest.mark.parametrize(("row", "package"), INSTALLED)
def test_a_claim_holds(row: str, package: str) -> None:
    _, program, ends = CLAIMS[row, package]
    if isinstance(ends, type):
        importlib.import_module(package)
        with pytest.raises(ends):
            program()
    else:
        np.testing.assert_allclose(np.asarray(program(), dtype=float), ends, rtol=1e-6, atol=1e-7)


def test_the_page_says_what_is_tested() -> None:
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in PAGE.read_text().splitlines()
        if "|" in line
    ]
    header = [name.lower().replace("pytorch", "torch") for name in rows[0]]
    shown = {(row[0], header[k]): row[k] for row in rows[2:] for k in range(1, len(row))}
    for (row, package), (verdict, _, _) in CLAIMS.items():
        assert re.match(rf"{verdict}\b", shown[row, package]), (row, package)
