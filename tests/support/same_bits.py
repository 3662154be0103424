"""That two outcomes are the same bit for bit; if not, by how much they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def require_same_bits(found: Sequence[Any], wanted: Sequence[Any]) -> None:
    """The relative error is shown, so that a wrong number is not taken for a last bit."""
    assert len(found) == len(wanted)
    for k, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if isinstance(one, str) or isinstance(other, str):
            assert one == other
        elif not np.array_equal(one, other, equal_nan=True):
            raise AssertionError(
                f"number {k} differs: relative error {relative_error(one, other):.1e}"
            )


def relative_error(found: Any, wanted: Any) -> float:
    """Of the largest number that is wanted; infinity where what is finite or the shape differs."""
    one, other = np.asarray(found, float), np.asarray(wanted, float)
    if one.shape != other.shape or not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return np.inf
    finite = np.isfinite(other)
    largest = np.abs(other[finite]).max(initial=0.0)
    apart = np.abs(one[finite] - other[finite]).max(initial=0.0)
    return float(apart / largest) if largest else float(np.inf if apart else 0.0)
