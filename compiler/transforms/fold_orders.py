"""Fold comparisons of floats that never hold: checks of `math.sqrt` and `math.exp`, above all.

Each value has bounds, from the ops that make it: a square is at least 0, and so are sums of squares,
exponentials and magnitudes; `max(x, 0.0)` is what it chooses. `least - a` is at most 0 where `least` is a
minimum that `a` takes part in. A comparison that no number within the bounds satisfies is `false`, for NaN
satisfies none.

Before::

    func.func @f(%a : memref<?xf64>, %i : index) -> f64 {
      %zero = arith.constant 0.0 : f64
      %x = memref.load %a[%i] : memref<?xf64>
      %square = arith.mulf %x, %x : f64
      %bad = arith.cmpf olt, %square, %zero : f64
      array.raise_if %bad, "ValueError", "math domain error"
      %root = math.sqrt %square : f64
      func.return %root : f64
    }

After::

    func.func @f(%a: memref<?xf64>, %i: index) -> f64 {
      %zero = arith.constant 0.000000e+00 : f64
      %x = memref.load %a[%i] : memref<?xf64>
      %square = arith.mulf %x, %x : f64
      %bad = arith.constant false
      array.raise_if %bad, "ValueError", "math domain error"
      %root = math.sqrt %square : f64
      func.return %root : f64
    }

Legal because rounding keeps order: what holds for real numbers holds for the rounded ones. Runs behind
`forward-stores`, when a value that is loaded twice is one.

Kept: comparisons that NaN satisfies; bounds of what comes from memory, and of functions whose last bit may be
off (`tanh` may exceed 1).
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float64Type, FloatAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from .memory_effects import functions

INF = numbers.inf
OGT, OGE, OLT, OLE = 2, 3, 4, 5
"""Predicates of `arith.cmpf`."""
DEEP = 6
"""Of so many nested minima and maxima the operands are looked at."""

Bounds = tuple[float, float]
"""A value is NaN, or at least the one and at most the other."""
ANY: Bounds = (-INF, INF)


@dataclass(frozen=True)
class FoldOrders(ModulePass):
    """Fold comparisons of floats that never hold."""

    name = "fold-orders"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            compared = [o for o in function.walk() if isinstance(o, arith.CmpfOp)]
            if not compared or not any(isinstance(o, array.RaiseIfOp) for o in function.walk()):
                continue
            known = KnownOrders()
            for inner in tuple(function.walk()):
                if isinstance(inner, arith.CmpfOp) and known.never(inner):
                    Rewriter.replace_op(inner, arith.ConstantOp.from_int_and_width(0, 1))
                else:
                    known.learn(inner)


@dataclass
class KnownOrders:
    """What is known of the values of one function, op by op."""

    bounds: dict[SSAValue, Bounds] = field(default_factory=dict[SSAValue, Bounds])

    def of(self, value: SSAValue) -> Bounds:
        return self.bounds.get(value, ANY)

    def never(self, compared: arith.CmpfOp) -> bool:
        (left_least, left_most), (right_least, right_most) = map(self.of, compared.operands)
        match compared.predicate.value.data:
            case 2:
                return left_most <= right_least
            case 3:
                return left_most < right_least
            case 4:
                return left_least >= right_most
            case 5:
                return left_least > right_most
            case _:
                return False

    def learn(self, op: Operation) -> None:
        if len(op.results) != 1 or (rule := RULES.get(type(op))) is None:
            return
        least, most = rule(self, op)
        if not isinstance(op.results[0].type, Float64Type):  # Bounds would have to be rounded.
            least, most = (0.0 if least >= 0 else -INF), (0.0 if most <= 0 else INF)
        if (least, most) != ANY:
            self.bounds[op.results[0]] = least, most

    def chosen(self, op: arith.SelectOp) -> Bounds:
        """`x if x > c else c`: a value is within the bounds of what it was compared with."""
        found: list[Bounds] = []
        for value, taken in ((op.lhs, True), (op.rhs, False)):
            least, most = self.of(value)
            for other, is_below in compared_with(value, op.cond, taken):
                if taken or isinstance(other.owner, arith.ConstantOp):  # else it may be NaN
                    low, high = self.of(other)
                    least, most = (least, min(most, high)) if is_below else (max(least, low), most)
            found.append((least, most))
        return min(a for a, _ in found), max(b for _, b in found)

    def difference(self, op: arith.SubfOp) -> Bounds:
        (left_least, left_most), (right_least, right_most) = map(self.of, op.operands)
        least, most = plus(left_least, -right_most, -INF), plus(left_most, -right_least, INF)
        a, b = op.operands
        if is_within(a, b, below=True) or is_within(b, a, below=False):
            most = min(most, 0.0)
        if is_within(a, b, below=False) or is_within(b, a, below=True):
            least = max(least, 0.0)
        return least, most


def is_within(value: SSAValue, bound: SSAValue, *, below: bool, depth: int = 0) -> bool:
    """Whether `value` is at most (`below`), or at least, `bound`, where neither is NaN."""
    op = value.owner
    if value is bound:
        return True
    if depth == DEEP:
        return False
    if isinstance(op, arith.MinimumfOp if below else arith.MaximumfOp):
        return any(is_within(o, bound, below=below, depth=depth + 1) for o in op.operands)
    if isinstance(op, arith.MinnumfOp if below else arith.MaxnumfOp):
        return bound in op.operands
    if not isinstance(op, arith.SelectOp):
        return False
    return all(
        is_within(chosen, bound, below=below, depth=depth + 1)
        or any(
            is_below is below
            and (
                other is bound or (taken and is_within(other, bound, below=below, depth=depth + 1))
            )
            for other, is_below in compared_with(chosen, op.cond, taken)
        )
        for chosen, taken in ((op.lhs, True), (op.rhs, False))
    )


def compared_with(value: SSAValue, condition: SSAValue, holds: bool) -> list[tuple[SSAValue, bool]]:
    """What `value` is at most (True) or at least (False), by a comparison that holds, or does not.

    One that holds is of two numbers; where it does not hold, either may be NaN.
    """
    asked = condition.owner
    if not isinstance(asked, arith.CmpfOp) or not OGT <= asked.predicate.value.data <= OLE:
        return []
    is_less = (asked.predicate.value.data in (OLT, OLE)) is holds
    found: list[tuple[SSAValue, bool]] = []
    if asked.lhs is value:
        found.append((asked.rhs, is_less))
    if asked.rhs is value:
        found.append((asked.lhs, not is_less))
    return found


def plus(a: float, b: float, unknown: float) -> float:
    total = a + b
    return unknown if numbers.isnan(total) else total


def product(known: KnownOrders, op: Operation) -> Bounds:
    a, b = op.operands
    if a is b:
        return 0.0, INF
    (a_least, a_most), (b_least, b_most) = known.of(a), known.of(b)
    if (a_least >= 0 and b_least >= 0) or (a_most <= 0 and b_most <= 0):
        return 0.0, INF
    if (a_least >= 0 and b_most <= 0) or (a_most <= 0 and b_least >= 0):
        return -INF, 0.0
    return ANY


def quotient(known: KnownOrders, op: Operation) -> Bounds:
    """Not by what may be 0: -0.0 is no less than 0, and `1 / -0.0` is."""
    (a_least, a_most), (b_least, b_most) = map(known.of, op.operands)
    if (a_least >= 0 and b_least > 0) or (a_most <= 0 and b_most < 0):
        return 0.0, INF
    return ANY


def constant(known: KnownOrders, op: Operation) -> Bounds:
    assert isinstance(op, arith.ConstantOp)
    if not isinstance(op.value, FloatAttr) or numbers.isnan(op.value.value.data):
        return ANY
    return op.value.value.data, op.value.value.data


def extreme(choose: Callable[[float, float], float]) -> Rule:
    """A minimum or maximum of which NaN is NaN."""

    def rule(known: KnownOrders, op: Operation) -> Bounds:
        (a_least, a_most), (b_least, b_most) = map(known.of, op.operands)
        return choose(a_least, b_least), choose(a_most, b_most)

    return rule


def negated(known: KnownOrders, op: Operation) -> Bounds:
    least, most = known.of(op.operands[0])
    return -most, -least


def total(known: KnownOrders, op: Operation) -> Bounds:
    (a_least, a_most), (b_least, b_most) = map(known.of, op.operands)
    return plus(a_least, b_least, -INF), plus(a_most, b_most, INF)


def not_negative(known: KnownOrders, op: Operation) -> Bounds:
    return 0.0, INF


Rule = Callable[[KnownOrders, Operation], Bounds]
RULES: dict[type[Operation], Rule] = {
    arith.ConstantOp: constant,
    arith.AddfOp: total,
    arith.SubfOp: lambda known, op: known.difference(op),  # pyright: ignore
    arith.MulfOp: product,
    arith.DivfOp: quotient,
    arith.NegfOp: negated,
    arith.SelectOp: lambda known, op: known.chosen(op),  # pyright: ignore
    arith.MinimumfOp: extreme(min),
    arith.MaximumfOp: extreme(max),
    math.AbsFOp: not_negative,
    math.ExpOp: not_negative,
    math.Exp2Op: not_negative,
    math.SqrtOp: not_negative,
}
