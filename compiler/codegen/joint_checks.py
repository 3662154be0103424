"""Test the checks of one number together: `int(x)` may raise three exceptions, and hardly ever raises one.

Of checks in a row, with nothing between them but arithmetic, none holds where the number is small enough.
That is one comparison. The checks themselves, in their order, are behind a branch that is not taken::

    %nan = arith.cmpf uno, %t, %t                        %size = fabs %t
    array.raise_if %nan, "ValueError"                    br (%size >= 2^63 or NaN), %checks, %checked
    %size = math.absf %t                               checks:
    %infinite = arith.cmpf oeq, %size, %inf              raise if %nan
    array.raise_if %infinite, "OverflowError"            raise if %infinite
    %large = arith.cmpf oge, %t, %2^63                   raise if %large
    array.raise_if %large, "OverflowError"             checked:
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float64Type
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ..rules.table import constant_float
from .kernel_state import KernelState
from .scalar_text import float_text

BETWEEN = (arith.CmpfOp, arith.OrIOp, math.AbsFOp, arith.ConstantOp)
"""What may stand between checks: it is computed before the first of them."""


@dataclass(frozen=True)
class Bounded:
    """What does not hold where |value| < bound."""

    value: SSAValue
    bound: float


@dataclass(frozen=True)
class JointChecks:
    """Checks in a row, in their order."""

    checks: tuple[array.RaiseIfOp, ...]
    bounded: Bounded

    def emit(self, state: KernelState, emit_one: Callable[[array.RaiseIfOp], None]) -> None:
        """At the place of the last one: all conditions are computed."""
        text, value = state.text, state.scalars[self.bounded.value]
        fabs = state.intrinsic("llvm.fabs.f64", "double", "double")
        size = text.value(f"call double @{fabs}(double {value})")
        large = text.value(f"fcmp uge double {size}, {float_text(self.bounded.bound, 'double')}")
        asked, on = text.label("checks"), text.label("checked")
        weights = text.metadata.node('!"branch_weights", i32 1, i32 1048575')
        text.do(f"br i1 {large}, label %{asked}, label %{on}, !prof {weights}")
        text.start(asked)
        for check in self.checks:
            emit_one(check)
        text.branch(on)
        text.start(on)


def joint_checks(op: array.RaiseIfOp) -> JointChecks | None:
    """The checks that this one is asked with, or None where it is alone."""
    own = bounded_by(op)
    if own is None:
        return None
    before, after = (list(neighbours(op, own.value, step)) for step in (previous, following))
    checks = (*reversed(before), op, *after)
    if len(checks) == 1:
        return None
    bounds = [found.bound for check in checks if (found := bounded_by(check)) is not None]
    return JointChecks(checks, Bounded(own.value, min(bounds)))


def previous(op: Operation) -> Operation | None:
    return op.prev_op


def following(op: Operation) -> Operation | None:
    return op.next_op


def neighbours(
    op: Operation, value: SSAValue, step: Callable[[Operation], Operation | None]
) -> Iterator[array.RaiseIfOp]:
    """Checks of the same number in one direction, up to what is neither one nor arithmetic for one."""
    at = step(op)
    while at is not None:
        if isinstance(at, array.RaiseIfOp):
            found = bounded_by(at)
            if found is None or found.value is not value:
                return
            yield at
        elif not isinstance(at, BETWEEN):
            return
        at = step(at)


def bounded_by(check: array.RaiseIfOp) -> Bounded | None:
    """The number that a check without a payload is about."""
    return None if check.operands_shown else bounded(check.condition)


def bounded(condition: SSAValue) -> Bounded | None:
    """The number of which a condition says that it is none, infinite, or large."""
    owner = condition.owner
    if isinstance(owner, arith.OrIOp):
        a, b = bounded(owner.lhs), bounded(owner.rhs)
        if a is None or b is None or a.value is not b.value:
            return None
        return Bounded(a.value, min(a.bound, b.bound))
    if not isinstance(owner, arith.CmpfOp) or not isinstance(owner.lhs.type, Float64Type):
        return None
    number, limit = owner.lhs, constant_float(owner.rhs)
    match arith.CMPF_COMPARISON_OPERATIONS[owner.predicate.value.data]:
        case "uno" if owner.rhs is number:
            return Bounded(number, float("inf"))
        case "oeq" if limit is not None and limit > 0 and isinstance(number.owner, math.AbsFOp):
            return Bounded(number.owner.operand, limit)
        case "oge" | "ogt" if limit is not None and limit > 0:
            return Bounded(number, limit)
        case "olt" | "ole" if limit is not None and limit < 0:
            return Bounded(number, -limit)
        case _:
            return None
