"""Do two values agree, up to rounding?

Values of float64 that were made of float32 (`precision`) agree no better than values of float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import keys

Floats = type[np.float32] | type[np.float64]
EXACT = 1e-8
"""How closely two derivatives that code computes agree, relative to the size of their terms."""


class GradientError(AssertionError):
    """A compiled function or its gradient is wrong; the message says where and by how much."""

    __module__ = "mutad"


def are_no_arrays(expected: Any, actual: Any) -> bool:
    """True for the arrays of an empty list, of which Python's does not say what shape they have."""
    return expected is None and isinstance(actual, np.ndarray) and not len(actual)


def same(
    expected: Any,
    actual: Any,
    what: str,
    *,
    types: bool = False,
    precision: Floats = np.float64,
) -> None:
    """GradientError where two values differ by more than rounding."""
    if isinstance(expected, tuple):
        if not isinstance(actual, tuple) or len(expected) != len(actual):  # pyright: ignore
            raise GradientError(f"{what}: expected a tuple of {len(expected)}, got {actual!r}")  # pyright: ignore
        for i, (one, other) in enumerate(zip(expected, actual, strict=True)):  # pyright: ignore
            same(one, other, f"{what}, item {i}", types=types, precision=precision)
        return
    if are_no_arrays(expected, actual):
        return
    kinds = type(expected), type(actual)
    # Where a loop may make a NumPy float of Python's, that is what comes back: see the contract.
    if types and kinds[0] is not kinds[1] and kinds != (float, np.float64):
        raise GradientError(
            f"{what}: CPython gives {type(expected).__name__}, compiled code {type(actual).__name__}"
        )
    if keys.is_generator(expected):
        expected, actual = (repr(rng.bit_generator.state) for rng in (expected, actual))
    if expected is None or isinstance(expected, bool | int | str):
        if expected != actual:
            raise GradientError(f"{what}: expected {expected!r}, got {actual!r}")
        return
    a, b = np.asarray(expected), np.asarray(actual)
    if a.shape != b.shape or a.dtype != b.dtype:
        raise GradientError(
            f"{what}: expected {a.dtype}{list(a.shape)}, got {b.dtype}{list(b.shape)}"
        )
    if a.dtype.kind != "f":
        if not np.array_equal(a, b):
            raise GradientError(f"{what}: expected {expected!r}, got {actual!r}")
        return
    finite = np.abs(a[np.isfinite(a)])
    scale = float(finite.max()) if finite.size else 0.0
    loose = 1e5 * max(float(np.finfo(one).eps) for one in (a.dtype, precision))
    if not np.allclose(a, b, rtol=loose, atol=loose * scale, equal_nan=True):
        with np.errstate(invalid="ignore"):
            worst = float(np.nanmax(np.abs(a - b))) if a.size else 0.0
        raise GradientError(f"{what}: differs by up to {worst:.3g} (largest value {scale:.3g})")
