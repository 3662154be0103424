"""Random programs of steps over grids that read one grid and store to another, as `skew-steps` has them.

Each is `program(start, c, steps)` over grids of one shape. Statements store windows of one grid from
shifted windows of others, some set rows or columns at the border, and the grids change places at the end of
a step, or do not. Values stay bounded, and every function is smooth.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from generated import function_of

FORMS = (
    "0.5 * {a} + 0.3 * {b} * c{w}",
    "0.4 * {a} * {b} + 0.2 * {d}",
    "0.6 * np.sin({a}) - 0.3 * {b}",
    "0.3 * ({a} + {b} + {d})",
)
EDGES = ("u[:1] = 0.9 * u[:1]", "u[:1] = 0.9 * u[2:3]", "u[-1:] = 0.8 * u[-3:-2]")
SWAPS = ("u, v = v, u", "u, v, w = v, w, u", "v, w = w, v", "")


@dataclass(frozen=True)
class SkewedProgram:
    """The source of one program, and the extents of its grids."""

    source: str
    shape: tuple[int, ...]
    layout: str
    steps: int

    def function(self) -> Callable[..., Any]:
        return function_of(self.source, "program", {"np": np})

    def arguments(self) -> tuple[Any, ...]:
        rng = np.random.default_rng(sum(self.shape))
        return self.grid(rng), self.grid(rng), self.steps

    def grid(self, rng: np.random.Generator) -> np.ndarray:
        values = rng.uniform(0.3, 1.0, self.shape)
        if self.layout == "reversed":
            return values[::-1]
        return np.asfortranarray(values) if self.layout == "columns" else values


def window(rng: random.Random, name: str, rank: int, reach: int) -> str:
    starts = [rng.randint(2 - reach, 2 + reach) for _ in range(rank)]
    slices = [f"{s}:{s - 4 or ''}" for s in starts]
    return f"{name}[{', '.join(slices)}]"


def statement(rng: random.Random, rank: int, reach: int) -> str:
    target, *others = rng.sample("uvw", 3)
    if rng.random() < 0.2:
        edge = rng.choice((":1", "-1:", ":2", "-2:"))
        return f"{target}[{edge}] = 0.5 * {others[0]}[{edge}]"
    if rng.random() < 0.15 and rank == 2:
        edge = rng.choice((":, :1", ":, -1:", "1:-1, :1"))
        return f"{target}[{edge}] = 0.7 * {others[0]}[{edge}]"
    here = window(rng, "", rank, 0)
    names = dict(zip("abd", (rng.choice(others) for _ in range(3)), strict=True))
    read = {k: window(rng, n, rank, reach) for k, n in names.items()}
    value = rng.choice(FORMS).format(**read, w=here)
    return f"{target}{here} {rng.choice(('=', '=', '+='))} {value}"


def taped_program(seed: int) -> SkewedProgram:
    """Steps that update the middle of one grid by what the adjoint needs: they go along a tape."""
    rng = random.Random(seed)
    rank, reach = rng.choice(((2, 1), (2, 1), (2, 2), (3, 1)))
    names = {k: window(rng, "u", rank, reach) for k in "abd"}
    value = rng.choice(FORMS[:3]).format(**names, w=window(rng, "", rank, 0))
    lines = [f"u{window(rng, '', rank, 0)} = {value}", rng.choice(("", "", "", *EDGES))]
    source = "\n    ".join(
        [
            "def program(start, c, steps):",
            "u = 1.0 * start",
            "for _ in range(steps):",
            *(f"    {line}" for line in lines if line),
            "return (u * u).sum()",
        ]
    )
    shape = tuple(rng.choice((5, 6, 7, 9, 13)) for _ in range(rank))
    layout = rng.choice(("rows", "rows", "reversed", "columns"))
    return SkewedProgram(source + "\n", shape, layout, rng.choice((0, 1, 3, 4, 5, 8, 9)))


def vector_program(seed: int) -> SkewedProgram:
    """Steps over vectors, as `skew-vectors` has them: some blocks of 64 elements."""
    made = skewed_program(seed, ranks=((1, 1), (1, 1), (1, 2)))
    rng = random.Random(seed)
    size = rng.choice((40, 64, 71, 100, 131, 200))
    layout = "reversed" if made.layout == "reversed" else "rows"
    return SkewedProgram(made.source, (size,), layout, made.steps)


def skewed_program(
    seed: int,
    ranks: tuple[tuple[int, int], ...] = ((2, 1), (2, 1), (2, 2), (3, 1)),
) -> SkewedProgram:
    """Of grids of one of these ranks, each with how far a statement reaches."""
    rng = random.Random(seed)
    rank, reach = rng.choice(ranks)
    lines = [statement(rng, rank, reach) for _ in range(rng.choice((1, 1, 2)))]
    source = "\n    ".join(
        [
            "def program(start, c, steps):",
            *("u = 1.0 * start", "v = 0.7 * start", "w = 0.5 * start + 0.2"),
            "for _ in range(steps):",
            *(f"    {line}" for line in (*lines, rng.choice(SWAPS)) if line),
            "return (u * u).sum() + (0.5 * v).sum() + (w * v).sum()",
        ]
    )
    shape = tuple(rng.choice((5, 6, 7, 9, 13)) for _ in range(rank))
    layout = rng.choice(("rows", "rows", "reversed", "columns"))
    return SkewedProgram(source + "\n", shape, layout, rng.choice((0, 1, 3, 4, 5, 8, 9)))
