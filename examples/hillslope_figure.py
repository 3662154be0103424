"""The figure of `hillslope.py`: terrain, true and recovered field, convergence, and what is saved where."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LightSource, LogNorm
from matplotlib.figure import Figure

Grid = np.ndarray[Any, np.dtype[np.float64]]

INK, FAINT, KEPT = "#222222", "#d9d9d9", "#d1495b"


@dataclass(frozen=True)
class Caching:
    """What the gradient saves: the bytes of each line of `functions`, and the lines that kill."""

    functions: tuple[Callable[..., Any], ...]
    saved: Mapping[int, int]
    everything: Mapping[int, int]
    """The bytes of each line if every value that the gradient needs is saved."""
    kills: Mapping[int, str]
    """What each line overwrites that has to be saved."""
    steps: int


def draw(
    path: Path,
    *,
    before: Grid,
    after: Grid,
    rivers: tuple[Any, Any],
    cell: tuple[float, float],
    true: Grid,
    recovered: Grid,
    history: list[float],
    expected: float,
    caching: Caching,
) -> None:
    """Write the figure to `path`."""
    figure = plt.figure(figsize=(15, 9.6), constrained_layout=True)
    rows = figure.add_gridspec(2, 1, height_ratios=(1, 1.05))
    maps = rows[0].subgridspec(1, 3)
    below = rows[1].subgridspec(1, 3, width_ratios=(1, 1.75, 0.6), wspace=0.0)
    dx, dy = cell
    extent = (0.0, before.shape[1] * dx / 1e3, before.shape[0] * dy / 1e3, 0.0)
    terrain(figure, figure.add_subplot(maps[0]), before, after, rivers, cell, extent)
    norm = LogNorm(float(true.min()), float(true.max()))
    for position, field, title in (
        (1, true, "true diffusivity"),
        (2, recovered, "recovered diffusivity"),
    ):
        axes = figure.add_subplot(maps[position])
        image = axes.imshow(field, norm=norm, cmap="viridis", extent=extent)
        error = np.abs(np.log(recovered / true))
        note = "" if position == 1 else f"  (median error {100 * float(np.median(error)):.1f} %)"
        axes.set_title(title + note)
        axes.set_xlabel("km")
        if position == 2:
            figure.colorbar(image, ax=axes, label="m² a year", shrink=0.85)
    convergence(figure.add_subplot(below[0]), history, expected)
    lanes(figure.add_subplot(below[1]), figure.add_subplot(below[2]), caching)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def terrain(
    figure: Figure,
    axes: Axes,
    before: Grid,
    after: Grid,
    rivers: tuple[Any, Any],
    cell: tuple[float, float],
    extent: tuple[float, float, float, float],
) -> None:
    """The terrain in relief, coloured by what 400,000 years took away or put down."""
    change = after - before
    bound = float(np.percentile(np.abs(change), 99))
    relief = LightSource(azdeg=315, altdeg=40).hillshade(
        before, vert_exag=2.0, dx=cell[0], dy=cell[1]
    )
    axes.imshow(relief, cmap="gray", extent=extent, vmin=-0.2, vmax=1.0)
    image = axes.imshow(change, cmap="RdBu", vmin=-bound, vmax=bound, alpha=0.55, extent=extent)
    row, column = rivers
    axes.plot((column + 0.5) * cell[0] / 1e3, (row + 0.5) * cell[1] / 1e3, ",", color="#0b5394")
    axes.set_title("terrain, and the change in height (rivers blue)")
    axes.set_xlabel("km")
    axes.set_ylabel("km")
    figure.colorbar(image, ax=axes, label="m", shrink=0.85)


def convergence(axes: Axes, history: list[float], expected: float) -> None:
    axes.semilogy(history, "o-", color=INK, markersize=4)
    axes.axhline(expected, color=KEPT, linestyle="--", linewidth=1)
    axes.text(
        len(history) - 1, expected * 0.92, "the noise alone", color=KEPT, ha="right", va="top"
    )
    axes.set_ylim(bottom=expected * 0.6)
    axes.set_title("misfit")
    axes.set_xlabel("iteration of L-BFGS-B")
    axes.spines[["top", "right"]].set_visible(False)


def lanes(code: Axes, axes: Axes, caching: Caching) -> None:
    """Source lines against steps: grey where saving everything would save, red where the plan does."""
    y = 0
    for function in caching.functions:
        source, first = inspect.getsourcelines(function)
        for number, line in enumerate(source, first):
            text = line.rstrip()
            if not text or '"""' in text:
                continue
            kept, taped = caching.saved.get(number, 0), caching.everything.get(number, 0)
            code.text(
                0.0, y, text, va="center", family="monospace", fontsize=7.5,
                color=KEPT if kept else INK, weight="bold" if kept else "normal",
            )  # fmt: skip
            both = bool(kept and taped)
            lane(axes, y + 0.22 * both, taped, caching.steps, FAINT, "#777777", both)
            lane(axes, y - 0.22 * both, kept, caching.steps, KEPT, "white", both)
            if number in caching.kills:
                axes.text(
                    caching.steps / 2, y, "kills " + shorten(caching.kills[number], 40),
                    ha="center", va="center", fontsize=7.5, style="italic", color=KEPT,
                )  # fmt: skip
            y += 1
        y += 1
    total, everything = sum(caching.saved.values()), sum(caching.everything.values())
    for each in (code, axes):
        each.set_ylim(y - 1.5, -0.8)
        each.set_yticks([])
        each.spines[["top", "right", "left"]].set_visible(False)
    code.spines["bottom"].set_visible(False)
    code.set_xticks([])
    axes.set_xlim(0, caching.steps)
    axes.set_xlabel("step")
    code.set_title(
        f"what the gradient saves: {megabytes(total)} (red), where keeping everything"
        f" takes {megabytes(everything)} (grey)",
        loc="left",
    )


def lane(axes: Axes, y: float, size: int, steps: int, color: str, ink: str, half: bool) -> None:
    """A bar over all steps, half as high where two share a line."""
    if size:
        axes.barh(y, steps, height=0.42 if half else 0.84, color=color)
        axes.text(
            steps / 2, y, megabytes(size), ha="center", va="center", fontsize=6 if half else 7,
            color=ink,
        )  # fmt: skip


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 1e7 else f"{size / 1e6:.2g} MB"
