"""Random loops whose iterations read the same elements, through views made before the loop or in it.

Each is `program(u, x, k, y)` over a matrix, a vector, an index array with repeats, and a vector to which they
store. In the adjoint the iterations add to what they have read, so threads need sums of their own.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from generated import function_of

import mutad

MATRICES = (
    *("u", "u.T", "u[1:, ::2]", "u[::-1].T", "u[:, 2:7]", "u[::2].T"),
    *("x.reshape(6, 10)", "x.reshape(6, 10).T", "x.reshape(6, 10)[1:]", "x.reshape(6, 10)[:, ::3]"),
)
VECTORS = (
    *("u.reshape(-1)", "u.T.reshape(-1)", "u.ravel()", "u.T.ravel()"),
    *("x[3:]", "x[::2]", "x[::-1]", "x[5:40]", "x.reshape(6, 10).T.ravel()"),
)
PLACES = ("k[i] % {n}", "0", "2", "i % {n}", "(i // 3) % {n}")
BETWEEN = ("u *= 1.1", "x[:] = np.sin(x)", "u[1] += u[0]", "y *= 0.5")


@dataclass(frozen=True)
class SharedViewProgram:
    """The source of one program, and how the matrix lies: by rows, by columns, or with gaps."""

    source: str
    layout: str

    def function(self) -> Callable[..., Any]:
        return function_of(self.source, "program", {"np": np, "prange": mutad.prange})

    def arguments(self, n: int) -> tuple[Any, ...]:
        rng = np.random.default_rng(3)
        wide = rng.random((12, 20))
        matrices = {"rows": wide[:6, :10].copy(), "columns": np.array(wide[:6, :10], order="F")}
        u = matrices.get(self.layout, wide[::2, ::2])
        return u, rng.random(60), rng.integers(0, 60, n), rng.random(n)


def shared_view_program(seed: int) -> SharedViewProgram:
    r = random.Random(seed)
    lines = ["def program(u, x, k, y):", "    n, s = k.shape[0], 0.0"]
    seen = [("u", 2), ("x", 1)]

    def look(indent: str) -> None:
        rank = r.choice((1, 2))
        seen.append((f"v{len(lines)}", rank))
        lines.append(f"{indent}{seen[-1][0]} = {r.choice(MATRICES if rank == 2 else VECTORS)}")

    def read() -> str:
        name, rank = r.choice(seen)
        places = [r.choice(PLACES).format(n=f"{name}.shape[{d}]") for d in range(rank)]
        return f"{name}[{', '.join(places)}]"

    def term() -> str:
        return f"np.sin({read()}) * {read()} + {read()}"

    def body(last: bool) -> list[str]:
        match r.randrange(5):
            case 0:
                return [f"y[i] {r.choice(('=', '+='))} {term()}"]
            case 1:
                return [
                    "t = 0.0",
                    "for j in range(4):",
                    f"    t += {term()} * (j + 1)",
                    "y[i] *= t",
                ]
            case 2:
                rows = r.choice(MATRICES[:6])
                return [f"row = {rows}[k[i] % 3]", f"y[i] = np.sum(row * row) + {read()}"]
            case 3:
                return [
                    f"if {read()} > 0.4:",
                    f"    y[i] = {term()}",
                    "else:",
                    f"    y[i] *= {read()}",
                ]
            case _:
                return [f"y[i] = {term()}" if last else f"s += {term()}"]

    for _ in range(r.randrange(4)):
        look("    ")
    header, loops = r.choice(("prange(n)", "prange(n)", "range(n)")), r.choice((1, 2))
    for k in range(loops):
        lines.append(f"    for i in {header}:")
        known = len(seen)
        for _ in range(r.randrange(3)):
            look("        ")
        lines += [f"        {line}" for line in body(k + 1 == loops)]
        del seen[known:]
        if k + 1 < loops and r.random() < 0.6:
            lines.append(f"    {r.choice(BETWEEN)}")
    lines.append("    return s + np.sum(y * y)")
    return SharedViewProgram("\n".join(lines), r.choice(("rows", "columns", "gaps")))
