"""Does a slope agree with central differences, at the best of a grid of steps?

How far off a difference is, is not known but can be bounded. It has noise: what is subtracted has been
rounded, and the rounding is divided by the step. And it is cut off: it is the slope of a chord, not of a
tangent, which the next smaller step shows, with the noise of that step [1, 2]. At the step where both are
least, agreement within these bounds is all that can be asked; elsewhere it is asked relative to the slope,
and to the sizes of the terms that the slope is the sum of.

1. Gill, Murray, Saunders, Wright: Computing Forward-Difference Intervals for Numerical Optimization. SIAM
   Journal on Scientific and Statistical Computing 4 (1983).
2. Moré, Wild: Estimating Derivatives of Noisy Simulations. ACM Transactions on Mathematical Software 38
   (2012).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
LONG_STEPS = (1e-1, 1e-2, 1e-3, 1e-4)
"""The grids, and that where float32 is on the way."""

ROUNDED = 4.0
"""A value is taken to be off by so many units in the last place."""
DOUBT = 10.0
"""So much more than they seem to be off, differences may be off."""


@dataclass(frozen=True)
class GradientReport:
    """What `check_gradient` measured."""

    directional: float
    """The derivative in a random direction, from the gradient."""
    difference: float
    """The same from central differences, at the step that agrees best."""
    step: float
    error: float
    """Relative to the size of the gradient along the direction, or, where that is more, to what differences
    can tell apart: at most to 1 or to the derivative."""
    tolerance: float

    def __str__(self) -> str:
        told = (
            f"gradient {self.directional:.10g}, differences {self.difference:.10g} (step "
            f"{self.step:.0e}): relative error {self.error:.1e}, tolerance {self.tolerance:.0e}"
        )
        if math.isfinite(self.difference):
            return told
        return f"{told}; the function is not finite around this point: check it where it is"


@dataclass(frozen=True)
class Slope:
    """What is to be compared with differences."""

    value: float
    size: float
    """Of the terms that it is the sum of: their Euclidean norm."""
    values: float
    """The size of what is subtracted: the sum of the absolute terms of the function's value."""
    eps: float
    """The relative precision of that."""

    def compared(
        self, functional: Callable[[float], float], steps: Sequence[float], tolerance: float
    ) -> GradientReport:
        """The report of the step that agrees best; `functional(h)` is the value at a distance h."""
        found = [(functional(h) - functional(-h)) / (2 * h) for h in steps]
        told_apart = DOUBT * least(self.doubts(steps, found)) / tolerance
        best = GradientReport(self.value, math.nan, 0.0, math.inf, tolerance)
        for step, difference in zip(steps, found, strict=True):
            own = max(abs(self.value), abs(difference), self.size)
            scale = max(own, min(told_apart, 1.0))
            error = abs(difference - self.value) / scale if scale else 0.0
            if error < best.error:
                best = GradientReport(self.value, difference, step, error, tolerance)
        return best

    def doubts(self, steps: Sequence[float], found: Sequence[float]) -> Iterator[float]:
        """How far off the difference of each step but the last seems to be."""
        for (step, one), (_, other) in pairwise(zip(steps, found, strict=True)):
            yield abs(one - other) + ROUNDED * self.eps * max(1.0, self.values) / step


def least(numbers: Iterable[float]) -> float:
    """The least that is a number."""
    return min((n for n in numbers if not math.isnan(n)), default=math.inf)
