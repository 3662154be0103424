"""`python -m benchmarks gpu`: what a device does, against what its memory and its arithmetic allow.

- *Bandwidth*: the driver's copy of a grid, and a compiled copy.
- *Stencils*, linear and nonlinear, five sizes, float64 and float32: a step of the primal against the copy's
  bandwidth, the gradient over the primal against its bytes over the primal's (`explain` counts them; a step
  of the primal reads one grid and writes one).
- *n-body*: operations a second, and of the device's peak.
- *Launches*: microseconds a step of a loop over tiny grids, by graphs and without.
- JAX beside it, where it is installed for the device.

Five sizes each; `--plot` draws all of them.

`--emulated` runs all of it, tiny, by the emulated driver: that it works, not how fast it is.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.table import Table

import mutad
from mutad.runtime import cuda, device, driver_functions

from .timing import console

SIZES, STEPS = (256, 512, 1024, 2048, 4096), 20
TINY, FEW = (6, 8, 10, 12, 14), 3
SMALL = (16, 32, 64, 128, 256)
"""Grids on which launches cost more than arithmetic."""
FLOPS_A_PAIR = 10
"""Of `bodies`: two differences, two squares, two sums, a root, a product, a quotient, and what adds up."""
NEVER = 1 << 40


def linear(u, v, k, steps):
    """Diffusion, two grids that are swapped."""
    for _ in range(steps):
        v[1:-1, 1:-1] = u[1:-1, 1:-1] + k * (
            u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        )
        u, v = v, u
    return (u * u).sum()


def nonlinear(u, v, k, steps):
    """The same with a factor that depends on the grid: each step's is needed again."""
    for _ in range(steps):
        v[1:-1, 1:-1] = u[1:-1, 1:-1] + k * u[1:-1, 1:-1] * (
            u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        )
        u, v = v, u
    return (u * u).sum()


def bodies(x, y, f):
    """One component of the forces between all pairs."""
    for i in range(x.size):
        total = 0.0
        for j in range(x.size):
            dx = x[j] - x[i]
            dy = y[j] - y[i]
            r = dx * dx + dy * dy + 0.01
            total += dx / (r * np.sqrt(r))
        f[i] = total
    return f.sum()


def copied(a, b):
    b[...] = a


def compiled_for(program: Callable[..., Any]) -> Any:
    """The program compiled; quickly, where it does not matter how well."""
    return mutad.compile(program, grad=program is not copied, opt=1 if is_emulated() else 3)


def dtypes() -> tuple[Any, ...]:
    return (np.float64,) if is_emulated() else (np.float64, np.float32)


def is_emulated() -> bool:
    return cuda.driver().name == "emulated"


@dataclass
class Measured:
    """All figures of a run, for tables, and for the plot."""

    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def add(self, what: str, size: int, **figures: Any) -> None:
        self.rows.append({"what": what, "size": size, **figures})


def seconds(call: Callable[[], Any], rounds: int) -> float:
    """The least seconds of a call, with the device done before and after."""
    driver, taken = cuda.driver(), float("inf")
    call()
    for _ in range(rounds):
        driver.synchronize()
        started = time.perf_counter()
        call()
        driver.synchronize()
        taken = min(taken, time.perf_counter() - started)
    return taken


def grids(size: int, dtype: Any) -> tuple[Any, Any]:
    made = np.sin(np.arange(size * size, dtype=np.float64)).reshape(size, size).astype(dtype)
    return mutad.device_array(made), mutad.device_array(made)


def bandwidth(size: int, dtype: Any, rounds: int) -> tuple[float, float]:
    """Bytes a second that the driver's copy reads and writes, and a compiled one."""
    a, b = grids(size, dtype)
    driver, compiled = cuda.driver(), compiled_for(copied)
    compiled(a, b)
    source, target = a.taken.array, b.taken.array
    plain = seconds(lambda: driver.stores(target, source), rounds)
    ours = seconds(lambda: compiled(a, b), rounds)
    return 2 * a.nbytes / plain, 2 * a.nbytes / ours


def bytes_of_gradient(compiled: Any, given: tuple[Any, ...]) -> int:
    """Bytes a point that the kernels of a step must move, forward and back."""
    kernels = compiled.explain(*given, wrt="u").kernels
    return sum(k.least * sum(1 for line in k.launches if line) for k in kernels)


def stencils(found: Measured, sizes: tuple[int, ...], steps: int, rounds: int) -> None:
    made = {program: compiled_for(program) for program in (linear, nonlinear)}
    for dtype in dtypes():
        name = np.dtype(dtype).name
        for size in sizes:
            driver_copy, compiled_copy = bandwidth(size, dtype, rounds)
            found.add(f"copy {name}", size, driver=driver_copy / 1e9, compiled=compiled_copy / 1e9)
            for program, compiled in made.items():
                given = (*grids(size, dtype), dtype(0.05), steps)
                primal = seconds(lambda: compiled(*given), rounds) / steps
                gradient = seconds(lambda: compiled.grad(*given, wrt="u"), rounds) / steps
                least = 2 * np.dtype(dtype).itemsize
                moved = least * size * size / primal
                found.add(
                    f"{program.__name__} {name}",
                    size,
                    primal=1e6 * primal,
                    gradient=1e6 * gradient,
                    of_copy=moved / driver_copy,
                    ratio=gradient / primal,
                    bound=bytes_of_gradient(compiled, given) / least,
                )


def forces(found: Measured, counts: tuple[int, ...], rounds: int) -> None:
    compiled = compiled_for(bodies)
    for dtype in dtypes():
        for count in counts:
            host = np.sin(np.arange(3.0 * count)).reshape(3, count).astype(dtype)
            x, y, f = map(mutad.device_array, host)
            taken = seconds(lambda: compiled(x, y, f), rounds)
            gradient = seconds(lambda: compiled.grad(x, y, f, wrt="x"), rounds)
            done = FLOPS_A_PAIR * count * count / taken
            found.add(
                f"n-body {np.dtype(dtype).name}",
                count,
                gflops=done / 1e9,
                of_peak=done / peak(dtype),
                ratio=gradient / taken,
            )


UNITS = {
    "float64": {70: 32, 80: 32, 90: 64, 100: 64},
    "float32": {70: 64, 75: 64, 80: 64, 86: 128, 89: 128, 90: 128, 100: 128, 120: 128},
}
"""Multiply-adds a clock of a multiprocessor, by kind of device; 2 for float64 where it is not said."""


def peak(dtype: Any) -> float:
    """Operations a second that the device's arithmetic allows."""
    driver = cuda.driver()
    major, minor = driver.capability
    units = UNITS[np.dtype(dtype).name].get(10 * major + minor, 2)
    clock = max(driver.attribute(driver_functions.CLOCK), 1) * 1e3
    return 2.0 * units * max(driver.attribute(driver_functions.MULTIPROCESSORS), 1) * clock


def launches(found: Measured, sizes: tuple[int, ...], steps: int, rounds: int) -> None:
    """Microseconds a step where the arithmetic is nothing."""
    state = cuda.driver().state
    before = state[device.LEAST]
    compiled = compiled_for(linear)
    for size in sizes:
        taken: dict[str, float] = {}
        for name, least in (("graphs", before), ("plain", NEVER)):
            state[device.LEAST] = least
            given = (*grids(size, np.float64), 0.05, steps)
            taken[name] = 1e6 * seconds(lambda: compiled(*given), rounds) / steps
        found.add("launches", size, **taken)
    state[device.LEAST] = before


def in_jax(found: Measured, sizes: tuple[int, ...], steps: int, rounds: int) -> str:
    """The same stencils in JAX; why not, where it is not there."""
    if find_spec("jax") is None:
        return "JAX is not installed: pip install 'jax[cuda13]'"
    import jax
    import jax.numpy as jnp

    if jax.default_backend() != "gpu":
        return f"JAX runs on {jax.default_backend()} here: pip install 'jax[cuda13]'"
    jax.config.update("jax_enable_x64", True)

    def run(u: Any, is_linear: bool) -> Any:
        def step(_: Any, u: Any) -> Any:
            inner = u[1:-1, 1:-1]
            flow = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner
            return u.at[1:-1, 1:-1].add(0.05 * (flow if is_linear else inner * flow))

        return (jax.lax.fori_loop(0, steps, step, u) ** 2).sum()

    for dtype in (np.float64, np.float32):
        for size in sizes:
            u = jnp.sin(jnp.arange(size * size, dtype=dtype)).reshape(size, size)
            for is_linear in (True, False):
                primal = jax.jit(run, static_argnums=1)
                gradient = jax.jit(jax.grad(run), static_argnums=1)
                plain, both = (
                    seconds(lambda: call(u, is_linear).block_until_ready(), rounds) / steps
                    for call in (primal, gradient)
                )
                name = f"{'linear' if is_linear else 'nonlinear'} {np.dtype(dtype).name}, JAX"
                found.add(name, size, primal=1e6 * plain, gradient=1e6 * both, ratio=both / plain)
    return ""


TITLES = {
    "driver": "driver, GB/s", "compiled": "compiled, GB/s", "primal": "primal, us a step",
    "gradient": "gradient, us a step", "of_copy": "of the copy's bandwidth", "bound": "bound of the ratio",
    "ratio": "gradient over primal", "gflops": "GFLOP/s", "of_peak": "of the peak",
    "graphs": "graphs, us a step", "plain": "plain launches, us a step",
}  # fmt: skip


def show(found: Measured) -> None:
    kinds: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in found.rows:
        kinds.setdefault(tuple(k for k in row if k not in ("what", "size")), []).append(row)
    for columns, rows in kinds.items():
        table = Table()
        for title in ("", "size", *(TITLES[c] for c in columns)):
            table.add_column(title, justify="left" if not title else "right")
        for row in rows:
            figures = [f"{row[c]:.3g}" for c in columns]
            table.add_row(row["what"], str(row["size"]), *figures)
        console.print(table)


def plot(found: Measured, file: str) -> None:
    """All figures by size."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = (
        ("driver", "the driver's copy, GB/s"),
        ("of_copy", "of the copy's bandwidth"),
        ("ratio", "gradient over primal"),
        ("gflops", "n-body, GFLOP/s"),
        ("graphs", "graphs, us a step"),
        ("plain", "plain launches, us a step"),
    )
    figure, every = pyplot.subplots(2, 3, figsize=(15, 8))
    for axes, (figure_of, title) in zip(every.flat, panels, strict=True):
        for name in dict.fromkeys(r["what"] for r in found.rows if figure_of in r):
            rows = [r for r in found.rows if r["what"] == name and figure_of in r]
            axes.plot([r["size"] for r in rows], [r[figure_of] for r in rows], "o-", label=name)
        axes.set_xscale("log", base=2)
        axes.set_xlabel("cells along an axis, or bodies")
        axes.set_title(title)
        axes.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(file)
    pyplot.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks gpu")
    parser.add_argument("--emulated", action="store_true", help="tiny, by the emulated driver")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--plot", metavar="FILE", help="draw all of it by size (.svg, .png; matplotlib)"
    )
    given = parser.parse_args(arguments or [])
    available = mutad.cuda.is_available()
    if not given.emulated and not available:
        console.print(f"There is no device to measure: {available.reason}.")
        console.print("That it works, without one: python -m benchmarks gpu --emulated")
        return
    found = Measured()
    sizes, steps = (TINY, FEW) if given.emulated else (SIZES, STEPS)
    rounds = 1 if given.emulated else given.rounds
    with mutad.cuda.emulated() if given.emulated else nullcontext():
        stencils(found, sizes, steps, rounds)
        forces(found, sizes if given.emulated else tuple(8 * s for s in sizes), rounds)
        launches(
            found, sizes if given.emulated else SMALL, 400 if given.emulated else 20_000, rounds
        )
        lacking = "" if given.emulated else in_jax(found, sizes, steps, rounds)
    show(found)
    if given.emulated:
        console.print("emulated: times mean nothing")
    elif lacking:
        console.print(lacking)
    if given.plot:
        plot(found, given.plot)
        console.print(f"drawn: {given.plot}")
