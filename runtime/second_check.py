"""The part of `check_gradient` about second derivatives: are Hessian-vector products what they should be?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import memory
from .agreement import EXACT, GradientError
from .gradients import run, seeds
from .hessian_products import value_grad_hvp

if TYPE_CHECKING:
    from .checked_gradient import GradientCheck
    from .dispatch import Dispatcher, Specialization

STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
SMALL, SMALL_SINGLE = 1e-4, 1e-1
"""Derivatives below these are rounding, beside values of 1."""
SECOND = 1e-5
"""And second derivatives below this part of the gradient, in differences of it."""
Gradient = Sequence[Any]


def check_second(check: GradientCheck, active: tuple[int, ...], tolerance: float) -> None:
    """Second derivatives of a function of one float; nothing where it is another, or has none here."""
    own = check.function._dispatcher  # pyright: ignore[reportPrivateUsage]
    if not is_one_float(own, own.specialize(check.fresh(), active)):
        return
    rng = np.random.default_rng(check.seed + 1)
    one, other = check.direction(active, rng), check.direction(active, rng)
    try:
        gradient, along_one = product(check, active, one)
        _, along_other = product(check, active, other)
    except Exception as error:
        if getattr(error, "without_tangent", False):
            return
        raise
    here, weights = slopes(check, active, check.fresh()), check.direction(active, rng)
    if not all(map(finite, (*here, *along_one, *along_other))):
        return
    name = check.function.__qualname__
    exact, floor = (EXACT, SMALL) if tolerance < 1e-3 else (tolerance, SMALL_SINGLE)
    exact = min(tolerance, exact)
    for position, found, expected in zip(active, gradient, here, strict=True):
        scale = max(floor, size(expected))
        if not size(np.subtract(found, expected)) <= exact * scale:
            raise GradientError(
                f"{name}: hvp gives another gradient for {check.names[position]!r} than grad does"
            )
    first, second = check.along(active, along_one, other), check.along(active, along_other, one)
    terms = check.along(active, absolute(along_one), absolute(other))
    if not abs(first - second) <= exact * max(floor, terms):
        raise GradientError(
            f"{name}: the Hessian is not symmetric: u @ H @ v = {first:.15g}, v @ H @ u = {second:.15g}"
        )
    differences(check, active, (one, weights), (here, along_one), tolerance)


def is_one_float(own: Dispatcher, found: Specialization) -> bool:
    try:
        seeds(own, found)
    except TypeError:
        return False
    return True


def product(
    check: GradientCheck, active: tuple[int, ...], direction: Gradient
) -> tuple[Gradient, Gradient]:
    """Gradient and Hessian-vector product; the result and the effects are CPython's."""
    expected_args, values = check.fresh(), check.fresh()
    own = check.function._dispatcher  # pyright: ignore[reportPrivateUsage]
    value, gradient, found = value_grad_hvp(own, values, check.wrt(active), tuple(direction))
    check.same(check.python(*expected_args), value, "the value of hvp", types=True)
    for name, theirs, ours in zip(check.names, expected_args, values, strict=True):
        check.same(theirs, ours, f"argument {name!r} after hvp", types=True)
    return gradient, found


def slopes(check: GradientCheck, active: tuple[int, ...], values: tuple[Any, ...]) -> Gradient:
    """The gradient of the result."""
    own = check.function._dispatcher  # pyright: ignore[reportPrivateUsage]
    found = own.specialize(values, active)
    shadows = memory.zero_shadows(values, active, check.overlaps)
    _, bars = run(own, values, active, shadows, seeds(own, found), found)
    return tuple(shadows[p] if p in shadows else bars[p] for p in active)


def differences(
    check: GradientCheck,
    active: tuple[int, ...],
    directions: tuple[Gradient, Gradient],
    found: tuple[Gradient, Gradient],
    tolerance: float,
) -> None:
    """The product is how the gradient changes: on both sides, or, at a kink of it, on one."""
    direction, weights = directions
    here, claimed = (check.along(active, one, weights) for one in found)
    first, second = (check.along(active, absolute(one), absolute(weights)) for one in found)
    scale = max(min(1.0, SECOND * (1.0 + first)), abs(claimed), second)
    sides: list[tuple[float, float]] = []
    for step in STEPS:
        ahead, behind = (
            check.along(active, slopes(check, active, check.moved(active, direction, s)), weights)
            for s in (step, -step)
        )
        measured = (ahead - here) / step, (here - behind) / step
        sides.append(measured)
        for one in (*measured, sum(measured) / 2):
            if not np.isfinite(one) or abs(one - claimed) <= 10 * tolerance * max(scale, abs(one)):
                return
    gaps = [abs(a - b) for a, b in sides]
    ahead, behind = sides[gaps.index(min(gaps))]
    if min(gaps) > 10 * tolerance * max(scale, abs(ahead), abs(behind)):
        return  # a kink: the gradient jumps, or bends; or rounding
    raise GradientError(
        f"{check.function.__qualname__}: the Hessian-vector product gives {claimed:.10g}, differences of "
        f"gradients {(ahead + behind) / 2:.10g}"
    )


def absolute(parts: Gradient) -> Gradient:
    return [np.abs(part) for part in parts]


def size(part: Any) -> float:
    return float(np.max(np.abs(part), initial=0.0))


def finite(part: Any) -> bool:
    return bool(np.all(np.isfinite(part)))
