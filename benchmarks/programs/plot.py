"""The gradients as a picture: others' times over ours, and ours over the primal."""

from __future__ import annotations

from typing import Any

from ..timing import peer
from .measure import BY_HAND, ENZYME, EXPERT, JAX, OURS, Row

MARKS = {JAX: "o", EXPERT: "s", ENZYME: "^", BY_HAND: "D"}
TITLES = {JAX: "JAX, as written", EXPERT: "JAX, by an expert", BY_HAND: "by hand, in C"}


def draw(rows: list[Row], path: str) -> None:
    if peer("matplotlib") is None:
        return
    from matplotlib.figure import Figure

    rows = [row for row in rows if OURS in row.gradient][::-1]
    figure = Figure(figsize=(9.0, 1.2 + 0.22 * len(rows)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
    places = range(len(rows))
    for name, mark in MARKS.items():
        at = [(row.gradient_over(name), y) for y, row in zip(places, rows, strict=True)]
        found = [(x, y) for x, y in at if x is not None]
        if found:
            title = TITLES.get(name, name)
            left.plot([x for x, _ in found], [y for _, y in found], mark, label=title, markersize=5)
    marked(left, 1.0)
    left.set_xscale("log")
    left.set_ylim(-1, len(rows))
    left.set_title("times of gradients over ours")
    left.set_yticks(places, labels(rows))
    left.legend(fontsize="small")
    right.barh(places, [row.gradient[OURS] / row.primal[OURS] for row in rows], color="0.6")
    marked(right, 1.0)
    right.set_title("ours over our primal")
    figure.savefig(path)


def labels(rows: list[Row]) -> list[str]:
    """Names, with sizes where one has several."""
    names = [row.program.name for row in rows]
    return [
        name if names.count(name) == 1 else f"{name} {row.size}"
        for name, row in zip(names, rows, strict=True)
    ]


def marked(axes: Any, at: float) -> None:
    axes.axvline(at, color="0.3", linewidth=0.8)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
