"""Recover how fast a hillslope creeps from what it looks like today.

A real elevation grid (the Jacksboro fault, Tennessee, 344 x 403 cells, shipped with matplotlib) is
worn down by nonlinear hillslope diffusion: soil creeps downhill with the flux
kappa * grad z * (1 + (|grad z| / critical)^2), rivers carry away what reaches them. The model
is ordinary NumPy: it updates the grid in place, with slices and one explicit loop, over hundreds
of steps. mutad writes its gradient, and L-BFGS-B recovers the diffusivity of all 138,632 cells.

    python examples/hillslope.py        writes examples/out/hillslope.png
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hillslope_figure import Caching, draw
from matplotlib import cbook
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from scipy.ndimage import gaussian_filter, minimum_filter
from scipy.optimize import minimize

from mutad import compile

Grid = np.ndarray[Any, np.dtype[np.float64]]
Cells = np.ndarray[Any, np.dtype[np.int64]]

YEARS, STEPS = 400_000.0, 200
CRITICAL = 0.6  # the slope at which creep has doubled
NOISE = 0.5  # metres, standard deviation of the observation
TYPICAL = 0.02  # m^2 a year: the first guess of kappa, everywhere
SPREAD, RANGE = 2.0, 6.0  # the prior: log kappa wanders by so much, over so many cells
ITERATIONS = 30
OUT = Path(__file__).parent / "out" / "hillslope.png"


# --- the model: plain NumPy, nothing in it knows of mutad ---------------------------------


def erode(z, kappa, row, column, bed, dx, dy, dt, steps):
    """Wear down `z` in place. The outermost two cells are held; rivers are kept at their bed."""
    for _ in range(steps):
        slope_x = (z[1:-1, 2:] - z[1:-1, :-2]) / (2 * dx)
        slope_y = (z[2:, 1:-1] - z[:-2, 1:-1]) / (2 * dy)
        k = kappa[1:-1, 1:-1] * (1 + (slope_x**2 + slope_y**2) / CRITICAL**2)
        flux_x = 0.5 * (k[1:-1, 1:] + k[1:-1, :-1]) * (z[2:-2, 2:-1] - z[2:-2, 1:-2]) / dx
        flux_y = 0.5 * (k[1:, 1:-1] + k[:-1, 1:-1]) * (z[2:-1, 2:-2] - z[1:-2, 2:-2]) / dy
        gain = (flux_x[:, 1:] - flux_x[:, :-1]) / dx + (flux_y[1:] - flux_y[:-1]) / dy
        z[2:-2, 2:-2] += dt * gain
        for r in range(row.size):
            if z[row[r], column[r]] > bed[r]:
                z[row[r], column[r]] = bed[r]


def misfit(log_kappa, start, observed, row, column, bed, dx, dy, dt, steps):
    """Half the squared difference between the modelled and the observed terrain, in units of the noise."""
    z = start.copy()
    erode(z, np.exp(log_kappa), row, column, bed, dx, dy, dt, steps)
    return 0.5 * ((z - observed) ** 2).sum() / NOISE**2


# --- the experiment -----------------------------------------------------------------------


@dataclass(frozen=True)
class Terrain:
    """The grid before erosion, its cell size in metres, the cells of its rivers and their beds."""

    start: Grid
    dx: float
    dy: float
    row: Cells
    column: Cells
    bed: Grid

    @property
    def physics(self) -> tuple[Any, ...]:
        """What `erode` takes after `kappa`."""
        return (self.row, self.column, self.bed, self.dx, self.dy, YEARS / STEPS, STEPS)


def read_terrain() -> Terrain:
    """The elevation grid that matplotlib ships, with metres for degrees."""
    dem = cbook.get_sample_data("jacksboro_fault_dem.npz")
    z = dem["elevation"].astype(np.float64)
    latitude = math.radians(float(dem["ymin"] + dem["ymax"]) / 2)
    metres = 111_320.0  # in one degree of latitude
    valley = z <= minimum_filter(z, size=15) + 1
    row, column = (i.astype(np.int64) for i in np.nonzero(valley))
    return Terrain(
        z,
        float(dem["dx"]) * metres * math.cos(latitude),
        float(dem["dy"]) * metres,
        row,
        column,
        z[row, column],
    )


def true_kappa(shape: tuple[int, ...]) -> Grid:
    """The field to recover: harder rock beyond a fault, one soft and one hard lens."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    fault = 0.75 * np.tanh((0.5 * x + 0.87 * y - 260) / 12)
    soft = np.exp(-(((x - 290) / 55) ** 2) - ((y - 110) / 40) ** 2)
    hard = np.exp(-((x - 110) ** 2 + (y - 90) ** 2) / 45**2)
    return TYPICAL * np.exp(fault + soft - hard)


def smooth(field: Grid) -> Grid:
    """The square root of the prior's covariance: symmetric, so that it is its own adjoint."""
    return SPREAD * RANGE * gaussian_filter(field, RANGE)


def recover(
    value_and_grad: Callable[[Grid], tuple[float, Grid]], shape: tuple[int, ...], console: Console
) -> tuple[Grid, list[float]]:
    """Minimize misfit + prior over `white`, where log kappa = log TYPICAL + smooth(white)."""
    history: list[float] = []
    bar = Progress(
        TextColumn("[bold]L-BFGS-B"), BarColumn(), TextColumn("{task.completed}/{task.total} iterations"),
        TextColumn("misfit {task.fields[misfit]}"), TimeElapsedColumn(), console=console,
    )  # fmt: skip

    with bar:
        task = bar.add_task("", total=ITERATIONS, misfit="")
        last = math.nan

        def objective(white: Grid) -> tuple[float, Grid]:
            nonlocal last
            white = white.reshape(shape)
            last, slope = value_and_grad(math.log(TYPICAL) + smooth(white))
            if not history:
                report()
            return last + 0.5 * float((white**2).sum()), (smooth(slope) + white).ravel()

        def report() -> None:
            done = len(history)
            history.append(last)
            bar.update(task, completed=done, misfit=f"{last:,.0f}")
            if done % 5 == 0:
                bar.console.print(f"  iteration {done:2d}   misfit {last:12,.0f}")

        found = minimize(
            objective,
            np.zeros(shape).ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=lambda _: report(),
            options={"maxiter": ITERATIONS},
        )
        bar.update(task, completed=ITERATIONS)
    return TYPICAL * np.exp(smooth(found.x.reshape(shape))), history


def directional_error(f: Callable[[Grid], float], gradient: Grid, at: Grid) -> float:
    """How far the gradient is from central differences along one random direction (best step of three)."""
    direction = smooth(np.random.default_rng(1).normal(size=at.shape))
    exact = float((gradient * direction).sum())
    steps = (1e-4, 1e-5, 1e-6)
    measured = [(f(at + h * direction) - f(at - h * direction)) / (2 * h) for h in steps]
    return min(abs(m - exact) / abs(exact) for m in measured)


def median_seconds(call: Callable[[], object], repeat: int = 5) -> float:
    times: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def read_problem() -> tuple[Terrain, Grid, Grid]:
    """The terrain, the field to recover, and the noisy observation after 400,000 years."""
    terrain = read_terrain()
    true = true_kappa(terrain.start.shape)
    observed = terrain.start.copy()
    compile(erode)(observed, true, *terrain.physics)  # in place, as the plain function
    observed += np.random.default_rng(0).normal(0.0, NOISE, observed.shape)
    return terrain, true, observed


def main() -> None:
    console = Console()
    terrain, true, observed = read_problem()
    model = compile(misfit, grad=True)
    fixed = (terrain.start, observed, *terrain.physics)
    first = np.full(true.shape, math.log(TYPICAL))

    began = time.perf_counter()
    _, gradient = model.value_and_grad(first, *fixed)
    compiled = time.perf_counter() - began
    error = directional_error(lambda at: model(at, *fixed), gradient, first)

    recovered, history = recover(lambda at: model.value_and_grad(at, *fixed), true.shape, console)

    primal = median_seconds(lambda: model(first, *fixed))
    both = median_seconds(lambda: model.value_and_grad(first, *fixed))
    plan = model.explain(first, *fixed)
    everything = compile(misfit, grad=True, saves="all").explain(first, *fixed)
    report = Table(show_header=False, title="recovered", title_justify="left")
    for name, figure in (
        ("unknowns", f"{true.size:,}"),
        (
            "misfit",
            f"{history[0]:,.0f} -> {history[-1]:,.0f} (the noise alone: {observed.size / 2:,.0f})",
        ),
        ("median error of kappa", f"{100 * np.median(np.abs(np.log(recovered / true))):.1f} %"),
        ("gradient check", f"{error:.1e} relative, against central differences"),
        ("first gradient, compiled", f"{compiled:.2f} s"),
        ("model run, compiled", f"{primal:.3f} s"),
        ("value and gradient", f"{both:.3f} s = {both / primal:.2f} x the model"),
        ("saved for the gradient", f"{plan.saved_bytes:,} bytes"),
        ("saving everything", f"{everything.saved_bytes:,} bytes"),
    ):
        report.add_row(name, figure)
    console.print(report)
    for save in plan.saves:
        console.print(f"saved: line {save.line}, {save.bytes:,} bytes: {save.why}", highlight=False)

    draw(
        OUT,
        before=terrain.start,
        after=observed,
        rivers=(terrain.row, terrain.column),
        cell=(terrain.dx, terrain.dy),
        true=true,
        recovered=recovered,
        history=history,
        expected=observed.size / 2,
        caching=Caching(
            (erode, misfit),
            bytes_by_line(plan),
            bytes_by_line(everything),
            {save.killed_by: save.name for save in plan.saves},
            STEPS,
        ),
    )
    console.print(f"figure: {OUT}")


def bytes_by_line(plan: Any) -> dict[int, int]:
    """Saved bytes for each line of this file."""
    lines: dict[int, int] = {}
    for save in plan.saves:
        lines[save.line] = lines.get(save.line, 0) + save.bytes
    return lines


def smallest_call() -> Callable[[], object]:
    """A gradient of the same program on a few cells: what `benchmarks/compile_time.py` times."""
    ones = np.ones((6, 7))
    cells = np.array([2, 3], dtype=np.int64)
    fixed = (ones, ones, cells, cells, np.ones(2), 1.0, 1.0, 0.1, 2)
    model = compile(misfit, grad=True)
    return lambda: model.value_and_grad(np.zeros((6, 7)), *fixed)


if __name__ == "__main__":
    main()
