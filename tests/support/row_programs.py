"""Random programs of whole-array statements that hand rows on: what `fuse-rows` makes one loop of.

Each is `program(u, v, k, steps)` over two vectors, or two matrices. Statements read and store windows that
are shifted by up to two rows either way, update in place, fill temporaries and read them shifted, reduce
rows and columns, and at times raise in between. Values stay bounded, and every function is smooth.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from generated import function_of

ARRAYS = ("u", "v")
FORMS = (
    "0.4 * {a} * {b} + 0.1",
    "0.5 * {a} + k * {b}",
    "0.6 * np.sin({a}) - 0.3 * {b}",
    "0.5 * {a} / (1.5 + {b} * {b})",
    "{a} - 0.5 * {b}",
)


@dataclass(frozen=True)
class RowProgram:
    """The source of one program, and the extents of its arrays."""

    source: str
    shape: tuple[int, ...]
    layout: str
    steps: int

    def function(self) -> Callable[..., Any]:
        return function_of(self.source, "program", {"np": np})

    def arguments(self) -> tuple[Any, ...]:
        rng = np.random.default_rng(sum(self.shape))
        return self.array(rng), self.array(rng), 0.3, self.steps

    def array(self, rng: np.random.Generator) -> np.ndarray:
        if self.layout == "strided":
            return rng.uniform(0.3, 1.0, [2 * n for n in self.shape])[(slice(None, None, 2),) * 2]
        values = rng.uniform(0.3, 1.0, self.shape)
        if self.layout == "reversed":
            return values[::-1]
        return np.asfortranarray(values) if self.layout == "columns" else values


@dataclass
class Writer:
    """Writes one program; a window leaves out four rows, and four columns, in all."""

    rng: random.Random
    rank: int
    lines: list[str] = field(default_factory=list[str])
    temporaries: int = 0

    def one(self, *options: str) -> str:
        return self.rng.choice(options)

    def window(self, name: str | None = None) -> str:
        starts = [self.rng.choice((0, 1, 2, 2, 2, 3, 4)) for _ in range(self.rank)]
        extents = [f"{s}:{s - 4 or ''}" for s in starts]
        return f"{name or self.one(*ARRAYS)}[{', '.join(extents)}]"

    def operand(self) -> str:
        kind = self.rng.random()
        if kind < 0.75:
            return self.window()
        if kind < 0.8:
            return self.window() + "[::-1]"
        if self.rank == 2 and kind < 0.9:
            return self.one(f"{self.one(*ARRAYS)}[1, 2:-2]", f"{self.one(*ARRAYS)}[2:-2, :1]")
        return self.one("k", "u.sum() * 0.01", "0.7")

    def value(self, first: str | None = None) -> str:
        form = self.rng.choice(FORMS).format(a=first or self.window(), b=self.operand())
        return f"({form}) + 0.1 * {self.operand()}" if self.rng.random() < 0.4 else form

    def statement(self) -> None:
        kind = self.rng.random()
        if kind < 0.35:
            name = self.one(*ARRAYS)
            near = f"0.3 * {self.window(name)} + 0.2 * {self.window(name)}"
            self.lines.append(f"{self.window(name)} = {near} * {self.window()}")
        elif kind < 0.5:
            self.lines.append(f"{self.window()} = {self.value()}")
        elif kind < 0.6:
            self.lines.append(f"{self.window()} {self.one('+=', '-=')} 0.2 * ({self.value()})")
        elif kind < 0.85:
            self.temporary()
        elif kind < 0.92:
            self.lines.append(f"total += ({self.value()}).sum()")
        elif kind < 0.97 and self.rank == 2:
            name, axis = self.one(*ARRAYS), self.one("0", "1")
            self.lines.append(f"{name}[...] -= 0.2 * {name}.mean(axis={axis}, keepdims=True)")
        else:
            self.lines.append("if n > 1000: raise ValueError")

    def temporary(self) -> None:
        w, self.temporaries = f"w{self.temporaries}", self.temporaries + 1
        self.lines.append(f"{w} = {self.value()}")
        kind = self.rng.random()
        if kind < 0.3:
            self.lines.append(f"{w} += 0.3 * {self.operand()}")
        elif kind < 0.5:
            self.lines.append(f"{w}[:-1] = 0.5 * {w}[1:] + 0.2 * {w}[:-1]")
        elif kind < 0.7 and self.rank == 2:
            self.lines.append(f"{w} /= 2 + {w}.sum(axis=1, keepdims=True) ** 2")
        elif kind < 0.9:
            self.lines.append(f"{self.window()}[1:] = 0.6 * {w}[:-1] + 0.2 * {w}[1:]")
        self.lines.append(f"{self.window()} = {w} * {self.one('k', '0.5', w)}")


def row_program(seed: int) -> RowProgram:
    rng = random.Random(seed)
    rank = rng.choice((1, 2, 2))
    writer = Writer(rng, rank)
    for _ in range(rng.randint(2, 5)):
        writer.statement()
    start, end = (
        ["n = u.shape[0]", "total = 0.0"],
        ["return total + (u * u).sum() + (0.5 * v).sum()"],
    )
    inner = ["for _ in range(steps):", *(f"    {line}" for line in writer.lines)]
    body = [*start, *(inner if rng.random() < 0.6 else writer.lines), *end]
    source = "\n    ".join(["def program(u, v, k, steps):", *body]) + "\n"
    shape = tuple(rng.choice((5, 6, 7, 9, 13)) for _ in range(rank))
    layout = rng.choice(("rows", "rows", "reversed", *(("strided", "columns") * (rank - 1))))
    return RowProgram(source, shape, layout, rng.choice((0, 1, 2, 2)))
