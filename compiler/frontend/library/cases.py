"""How a library entry is tested: an expression as a user writes it, and kinds of arguments for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Maker = Callable[["np.random.Generator", tuple[int, ...]], Any]


@dataclass(frozen=True)
class Case:
    """`expression` over parameters, each of a kind that `MAKERS` can make.

    A test wraps it in a function, compiles it and compares with CPython, for several shapes,
    layouts and dtypes.
    """

    expression: str
    arguments: dict[str, str] = field(default_factory=dict[str, str])


def _special(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.choice([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], size=shape)


MAKERS: dict[str, Maker] = {
    "real": lambda rng, shape: rng.normal(size=shape),
    "positive": lambda rng, shape: rng.uniform(0.1, 4.0, size=shape),
    "unit": lambda rng, shape: rng.uniform(-0.95, 0.95, size=shape),
    "above_one": lambda rng, shape: rng.uniform(1.05, 4.0, size=shape),
    "special": _special,
    "integer": lambda rng, shape: rng.integers(-9, 10, size=shape),
    "natural": lambda rng, shape: rng.integers(0, 6, size=shape),
    "bool": lambda rng, shape: rng.integers(0, 2, size=shape).astype(bool),
    "vector": lambda rng, shape: rng.normal(size=shape[-1:]),
    "matrix": lambda rng, shape: rng.normal(size=(shape[-1], shape[-1])),
    "scalar": lambda rng, _: float(rng.normal()),
    "count": lambda rng, shape: int(shape[-1]),
}
"""How each kind of argument is made, given a shape."""
