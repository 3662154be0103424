"""Random functionals of what a function returns: weights for its floats, and their sums."""

from __future__ import annotations

from typing import Any

import numpy as np


def random_like(value: Any, rng: np.random.Generator) -> Any:
    """Random weights for the floats of a value; None for what has none."""
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value
        return tuple(random_like(item, rng) for item in items)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return rng.standard_normal(value.shape)
    if isinstance(value, list) and value and isinstance(value[0], float | np.floating):  # pyright: ignore
        return rng.standard_normal(len(value))  # pyright: ignore[reportUnknownArgumentType]
    return float(rng.standard_normal()) if isinstance(value, float | np.floating) else None


def has_floats(weights: Any) -> bool:
    if isinstance(weights, tuple):
        items: tuple[Any, ...] = weights
        return any(map(has_floats, items))
    return weights is not None


def dot(weights: Any, value: Any, *, absolute: bool = False) -> float:
    """The inner product, or the sum of its absolute terms."""
    if isinstance(weights, tuple):
        pairs = zip(weights, value, strict=True)  # pyright: ignore
        return sum(dot(w, v, absolute=absolute) for w, v in pairs)
    if weights is None:
        return 0.0
    terms = np.asarray(weights, np.float64) * np.asarray(value, np.float64)
    return float(np.sum(np.abs(terms) if absolute else terms))
