"""Random stencils: slices at shifts, strided and reversed, in place and between grids that swap, 1-D to 3-D.

Each is `program(x, k, nu, steps)` over a field and coefficients of one shape, and returns a scalar. Extents
go from fewer elements than a stencil has to more than a strip of the code generator. Values stay bounded and
every function is smooth.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from generated import function_of

FORMS = (
    "0.25 * {a}",
    "-0.2 * {a}",
    "nu * {a}",
    "0.3 * {a} * {b}",
    "0.4 * {k} * {a}",
    "0.2 * np.sin({a})",
    "{a} / (3.0 + {b} * {b})",
    "0.3 * np.where({k} > 0.9, {a}, {b})",
    "{a} / 5.0",
)


@dataclass(frozen=True)
class StencilProgram:
    """The source of one program, and what it is run with."""

    source: str
    shape: tuple[int, ...]
    steps: int

    def function(self) -> Callable[..., Any]:
        return function_of(self.source, "program", {"np": np})

    def arguments(self) -> tuple[Any, ...]:
        rng = np.random.default_rng(len(self.source))
        x, k = (rng.uniform(0.6, 1.3, self.shape) for _ in range(2))
        return x, k, 0.3, self.steps


def part(margin: int, shift: int, step: int) -> str:
    """What lies within a margin of one axis, moved by a shift, as a slice."""
    first, behind = margin + shift, margin - shift
    if step > 0:
        return f"{first or ''}:{-behind or ''}" + (":2" if step == 2 else "")
    return f"{-behind - 1}:{first - 1 if first else ''}:-1"


def element(name: str, shifts: Sequence[int]) -> str:
    return f"{name}[" + ", ".join(f"{i} + {s}" for i, s in zip("ijl", shifts, strict=False)) + "]"


class Writer:
    """Writes one program."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rank = rng.choice((1, 1, 2, 2, 3))
        self.grids = ("a", "b", "c")[: rng.choice((1, 2, 2, 3))]

    def statement(self, indent: str) -> list[str]:
        rng, axes = self.rng, range(self.rank)
        margins = [rng.choice((1, 1, 1, 2, 0)) for _ in axes]
        steps = [rng.choice((1, 1, 1, 2, -1)) for _ in axes]

        def view(name: str) -> str:
            shifts = [rng.randint(-m, m) if rng.random() < 0.8 else 0 for m in margins]
            return f"{name}[{', '.join(map(part, margins, shifts, steps))}]"

        def term() -> str:
            a, b = (view(rng.choice(self.grids)) for _ in range(2))
            return rng.choice(FORMS).format(a=a, b=b, k=view("k"))

        terms = " + ".join(term() for _ in range(rng.randint(2, 5)))
        target = (
            f"{rng.choice(self.grids)}[{', '.join(map(part, margins, [0] * self.rank, steps))}]"
        )
        return [f"{indent}{target} {rng.choice(('=', '=', '+=', '-='))} 0.4 * ({terms})"]

    def nest(self, indent: str) -> list[str]:
        """The same in scalar loops."""
        rng, axes = self.rng, range(self.rank)
        target, source = rng.choice(self.grids), rng.choice(self.grids)
        lines = [
            f"{indent}{4 * d * ' '}for {'ijl'[d]} in range(1, x.shape[{d}] - 1):" for d in axes
        ]

        def value(name: str) -> str:
            return element(name, [rng.randint(-1, 1) for _ in axes])

        terms = " + ".join(f"0.2 * {value(source)} * {value('k')}" for _ in range(3))
        at = element(target, [0] * self.rank)
        return [*lines, f"{indent}{4 * self.rank * ' '}{at} {rng.choice(('=', '+='))} {terms}"]

    def program(self) -> str:
        rng = self.rng
        lines = [f"    {g} = {rng.choice(('x.copy()', '0.7 * x', 'x * k'))}" for g in self.grids]
        lines.append("    for _ in range(steps):")
        for _ in range(rng.randint(1, 3)):
            lines += (self.statement if rng.random() < 0.8 else self.nest)(8 * " ")
        if len(self.grids) > 1 and rng.random() < 0.6:
            one, other = rng.sample(self.grids, 2)
            lines.append(f"        {one}, {other} = {other}, {one}")
        if rng.random() < 0.3:
            lines += self.statement("    ")
        total = " + ".join(f"({g} * {g}).sum()" for g in self.grids)
        return "\n".join(("def program(x, k, nu, steps):", *lines, f"    return {total}", ""))


def stencil_program(seed: int) -> StencilProgram:
    rng = random.Random(seed)
    writer = Writer(rng)
    sizes = {1: (0, 2, 3, 4, 9, 300), 2: (1, 2, 3, 5, 7), 3: (1, 2, 4, 5)}[writer.rank]
    shape = [rng.choice(sizes) for _ in range(writer.rank)]
    if writer.rank == 2 and rng.random() < 0.3:
        shape[1] = 270
    return StencilProgram(writer.program(), tuple(shape), rng.randint(1, 3))
