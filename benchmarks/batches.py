"""Eight derivatives of one call over one: tangents, products with Jacobians, Hessian-vector products.

`pushforward` has tangents side by side in the caller's arrays, `jvp` takes them along a first axis. `back` is
the reverse sweep of `vjp` alone, whose primal ran before; of a function of one float the cotangents are eight
numbers. Times of this thread alone, the least of many calls in turn: give BLAS one thread.

A table for each mode has what eight derivatives need, over what one needs (`lane_bounds`), beside what they
take.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mutad import BatchDuplicated, Const, Duplicated

from .derivatives import Case
from .kernels import KERNELS
from .lane_bounds import LANES, Bound, bounds_of
from .timing import console, geometric_mean, interleaved, ratio, seconds, table

Times = Mapping[str, float]
MODES = ("pushforward", "jvp", "back", "hvp")


@dataclass(frozen=True)
class Several:
    """The calls of one kernel with one derivative, and with eight."""

    case: Case

    def contestants(self) -> dict[str, Callable[[], Any]]:
        case, rng = self.case, np.random.default_rng(2)
        f, arguments, names = case.ours, case.arguments, case.names
        along = [rng.normal(size=(LANES, *d.shape)) for d in case.directions]
        one = dict(zip(names, case.directions, strict=True))
        eight = dict(zip(names, along, strict=True))
        beside = {k: np.ascontiguousarray(np.moveaxis(d, 0, -1)) for k, d in eight.items()}
        _, back = f.vjp(*arguments, wrt=names)
        _, backs = f.vjp(*arguments, wrt=names, batch=LANES)
        bars = rng.normal(size=LANES)
        pushed, pushed_8 = self.wrapped(Duplicated, one), self.wrapped(BatchDuplicated, beside)
        hvp = {"wrt": names, "direction": case.directions}
        hvps = {"wrt": names, "direction": tuple(along), "batch": LANES}
        return {
            "pushforward": lambda: f.pushforward(*pushed),
            "pushforward 8": lambda: f.pushforward(*pushed_8),
            "jvp": lambda: f.jvp(*arguments, tangents=one),
            "jvp 8": lambda: f.jvp(*arguments, tangents=eight, batch=LANES),
            "back": lambda: back(1.0),
            "back 8": lambda: backs(bars),
            "hvp": lambda: f.hvp(*arguments, **hvp),
            "hvp 8": lambda: f.hvp(*arguments, **hvps),
        }

    def wrapped(self, kind: Any, moving: dict[str, Any]) -> list[Any]:
        parameters = inspect.signature(self.case.kernel.function).parameters
        pairs = zip(parameters, self.case.arguments, strict=True)
        return [kind(a, moving[name]) if name in moving else Const(a) for name, a in pairs]


def main() -> None:
    heads = [head for mode in MODES for head in (mode, "")]
    found = table("eight derivatives in one call: its time, and that over one", "kernel", *heads)
    times: dict[str, dict[str, float]] = {}
    for kernel in KERNELS:
        contestants = Several(Case.of(kernel)).contestants()
        t = times[kernel.name] = interleaved(
            contestants, rounds=21, seconds=0.01, pick=min, clock=time.thread_time, patience=3.0
        )
        row: list[str] = []
        for mode in MODES:
            row += [seconds(t[f"{mode} 8"]), ratio(t[f"{mode} 8"] / t[mode])]
        found.add_row(kernel.name, *row)
    console.print(found)
    for mode in MODES:
        over = geometric_mean([t[f"{mode} 8"] / t[mode] for t in times.values()])
        console.print(f"{mode}: geometric mean {over:.2f}x")
    console.print()
    bounds = {kernel.name: bounds_of(kernel) for kernel in KERNELS}
    for mode in MODES:
        show_bounds(mode, {name: of[mode] for name, of in bounds.items()}, times)


def show_bounds(mode: str, bounds: Mapping[str, Bound], times: Mapping[str, Times]) -> None:
    """Arithmetic and bytes of one and of eight, their ratio, the least that can be, and what is."""
    heads = ("M additions: 1", "8", "MB: 1", "8", "need", "least", "is")
    found = table(f"{mode}: what eight need, and take, over one", "kernel", *heads)
    columns: dict[str, list[float]] = {"need": [], "least": [], "is": []}
    for name, bound in bounds.items():
        t, one, eight = times[name], bound.one, bound.eight
        figures = {"need": bound.need, "least": eight.least_seconds / t[mode]}
        figures["is"] = t[f"{mode} 8"] / t[mode]
        if bound.need:
            for head, figure in figures.items():
                columns[head].append(figure)
        work = (one.operations, eight.operations, one.traffic, eight.traffic)
        shown = (f"{figure:.1f}x" if bound.need else "-" for figure in figures.values())
        found.add_row(name, *(f"{w / 1e6:.3g}" for w in work), *shown)
    console.print(found)
    means = (f"{head} {geometric_mean(column):.2f}x" for head, column in columns.items())
    console.print(f"geometric means: {', '.join(means)}\n")


if __name__ == "__main__":
    main()
