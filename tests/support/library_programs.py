"""Programs from the cases beside the library's entries, a few expressions in one function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from generated import function_of
from scipy import linalg, special

from mutad.compiler.frontend.library import CASES, MAKERS

EXPRESSIONS = 10
"""How many expressions one program computes: a compilation each would take minutes."""


@dataclass(frozen=True)
class LibraryProgram:
    """`def program(x, y): return expression, expression, ...`"""

    expressions: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...]
    """Parameter names with the kinds of arguments they take."""

    def __str__(self) -> str:
        kinds = " ".join(f"{name}:{kind}" for name, kind in self.arguments)
        return f"{kinds} {self.expressions[0]} ... {self.expressions[-1]}"

    def function(self) -> Callable[..., Any]:
        lines = [
            f"def program({', '.join(name for name, _ in self.arguments)}):",
            "    return (",
            *(f"        {e}," for e in self.expressions),
            "    )",
        ]
        source = "\n".join(lines) + "\n"
        return function_of(source, "program", {"np": np, "linalg": linalg, "special": special})

    def row(self, shape: tuple[int, ...], dtype: Any = None) -> Callable[[], tuple[Any, ...]]:
        """A maker of its arguments, the float arrays in `dtype`."""

        def made() -> tuple[Any, ...]:
            rng = np.random.default_rng(5)
            values = [MAKERS[kind](rng, shape) for _, kind in self.arguments]
            return tuple(
                v.astype(dtype) if isinstance(v, np.ndarray) and v.dtype == float and dtype else v
                for v in values
            )

        return made


def library_programs() -> Iterator[LibraryProgram]:
    """Every case, with others that take the same kinds of arguments."""
    by_arguments: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for case in CASES:
        expressions = by_arguments.setdefault(tuple(case.arguments.items()), [])
        if case.expression not in expressions:
            expressions.append(case.expression)
    for arguments, expressions in by_arguments.items():
        for k in range(0, len(expressions), EXPRESSIONS):
            yield LibraryProgram(tuple(expressions[k : k + EXPRESSIONS]), arguments)
