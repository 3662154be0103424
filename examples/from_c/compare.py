"""Calibrate with `calibrate`, the C program, and with the demo in Python; print both misfits and times.

python compare.py OUT [--small]        `calibrate` is in OUT, where the problem and the result go as well
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import hillslope as demo

from mutad import compile


def small(terrain: demo.Terrain) -> tuple[Any, ...]:
    """A corner of the terrain, and 20 steps."""
    rows, columns = slice(100, 160), slice(200, 250)
    row, column = terrain.row - rows.start, terrain.column - columns.start
    inside = (row > 1) & (row < 58) & (column > 1) & (column < 48)
    row, column = row[inside], column[inside]
    start = terrain.start[rows, columns].copy()
    return start, row, column, start[row, column], terrain.dx, terrain.dy, 40_000.0 / 20, 20


def write_problem(
    path: Path, start: Any, observed: Any, physics: tuple[Any, ...], iterations: int
) -> None:
    """The file that `calibrate` reads: its struct `parameters`, and the arrays."""
    row, column, bed, dx, dy, dt, steps = physics
    with path.open("wb") as file:
        np.array([*start.shape, row.size, steps, iterations], np.int64).tofile(file)
        np.array([dx, dy, dt, demo.TYPICAL, demo.SPREAD, demo.RANGE], np.float64).tofile(file)
        for array in (start, observed, bed, row, column):
            np.ascontiguousarray(array).tofile(file)


def in_c(folder: Path, shape: tuple[int, ...]) -> tuple[Any, dict[str, float]]:
    """What the C program finds, and what it says."""
    command = [
        str(folder / "calibrate"),
        str(folder / "problem.bin"),
        str(folder / "recovered.bin"),
    ]
    shown = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    told = {}
    for line in shown.splitlines():
        if line.startswith(" "):
            print(line)
        else:
            name, value = line.split()
            told[name] = float(value)
    return np.fromfile(folder / "recovered.bin").reshape(shape), told


def in_python(
    start: Any, observed: Any, physics: tuple[Any, ...], iterations: int, console: Console
) -> tuple[Any, dict[str, float]]:
    """The same of the demo."""
    model = compile(demo.misfit, grad=True)
    seconds = []

    def value_and_grad(at: Any) -> tuple[float, Any]:
        began = time.process_time()
        found = model.value_and_grad(at, start, observed, *physics)
        seconds.append(time.process_time() - began)
        return found

    value_and_grad(np.full(start.shape, math.log(demo.TYPICAL)))  # compiled now
    seconds.clear()
    demo.ITERATIONS = iterations
    recovered, history = demo.recover(value_and_grad, start.shape, console)
    told = {"misfit": history[-1], "gradients": len(seconds), "seconds": float(np.median(seconds))}
    return np.log(recovered / demo.TYPICAL), told


def main() -> None:
    chosen = argparse.ArgumentParser(description=__doc__)
    chosen.add_argument("folder", type=Path)
    chosen.add_argument(
        "--small", action="store_true", help="a corner of the terrain, few iterations"
    )
    arguments = chosen.parse_args()
    console = Console()
    if arguments.small:
        iterations = 5
        start, *physics = small(demo.read_terrain())
        observed = start.copy()
        compile(demo.erode)(observed, demo.true_kappa(start.shape), *physics)
    else:
        iterations = demo.ITERATIONS
        terrain, _, observed = demo.read_problem()
        start, physics = terrain.start, terrain.physics
    write_problem(arguments.folder / "problem.bin", start, observed, tuple(physics), iterations)
    print("in C", flush=True)
    by_c, c = in_c(arguments.folder, start.shape)
    print("in Python", flush=True)
    by_python, python = in_python(start, observed, tuple(physics), iterations, console)
    report = Table(title="one calibration", title_justify="left")
    for column in ("", "C", "Python"):
        report.add_column(column)
    report.add_row("misfit", f"{c['misfit']:.8f}", f"{python['misfit']:.8f}")
    report.add_row("gradients", f"{c['gradients']:.0f}", f"{python['gradients']:.0f}")
    report.add_row("a gradient", f"{c['seconds']:.4f} s", f"{python['seconds']:.4f} s")
    console.print(report)
    console.print("(times: medians of processor time)")
    away = abs(c["misfit"] / python["misfit"] - 1)
    apart = float(np.max(np.abs(by_c - by_python)))
    console.print(f"the misfits differ by {away:.1e}, relative; log kappa by {apart:.1e} at most")
    console.print(f"work area of a gradient in C: {c['work']:,.0f} bytes")


if __name__ == "__main__":
    main()
