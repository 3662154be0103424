"""What a benchmark program is: plain NumPy, the arguments at several sizes, what is differentiated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Arguments = Callable[[np.random.Generator, int], tuple[Any, ...]]

DEFAULT = 1
"""Which of the four sizes is measured, where none is named."""


@dataclass(frozen=True)
class Program:
    """A program returns one float and leaves its arguments as they are."""

    function: Callable[..., Any]
    arguments: Arguments
    sizes: tuple[int, int, int, int]
    tiny: int
    """A size at which the Python code itself takes milliseconds."""
    wrt: tuple[str, ...]
    loops: bool = False
    """Scalar loops: too slow for the interpreter at a benchmark's size."""
    by_hand: str = ""
    """The C file with its primal and its adjoint."""

    @property
    def name(self) -> str:
        return self.function.__name__

    def make(self, size: int | None = None) -> tuple[Any, ...]:
        """Arguments of a size, the same ones at every call."""
        n = self.sizes[DEFAULT] if size is None else size
        return self.arguments(np.random.default_rng(0), n)
