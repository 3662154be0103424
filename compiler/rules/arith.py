"""Derivatives of the `arith` ops and of our scalar ops."""

from __future__ import annotations

from xdsl.dialects import arith, math, vector
from xdsl.ir import Operation, SSAValue

from ...dialects import ad, array
from .rule import Rules, WithoutDerivative
from .scalars import Kink, Row, scalar_rules
from .table import LINEAR, Scalars, Term, is_bound, mark_edge


def half_at_ties(s: Scalars, bar: SSAValue, wins: SSAValue, ties: SSAValue) -> SSAValue:
    """The cotangent of one side of min or max: all where it wins, half where both are equal."""
    half = s.scaled(bar, 0.5)
    zero = s.constant(0.0, bar)
    return s.select(wins, bar, s.select(ties, half, zero))


def side(predicate: str, mine: str, other: str) -> Term:
    """One side of min or max, winning where `mine predicate other`."""

    def cotangent(s: Scalars, bar: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        wins, ties = s.compare(predicate, a, b), s.compare("oeq", a, b)
        for compared in (wins.owner, ties.owner):
            if isinstance(compared, Operation) and is_bound(compared):
                mark_edge(compared)
        return half_at_ties(s, bar, wins, ties)

    return Term((mine, other), cotangent)


MAXIMUM = (side("ogt", "lhs", "rhs"), side("ogt", "rhs", "lhs"))
MINIMUM = (side("olt", "lhs", "rhs"), side("olt", "rhs", "lhs"))


def known_side(wins: str, loses: str) -> Term:
    """One side of min or max: whether it `wins` or ties, and whether it `loses` or ties, is known."""

    def cotangent(s: Scalars, bar: SSAValue, wins: SSAValue, loses: SSAValue) -> SSAValue:
        part = s.select(loses, s.scaled(bar, 0.5), bar)
        return s.select(wins, part, s.constant(0.0, bar))

    return Term((wins, loses), cotangent)


BELOW, ABOVE = known_side("below", "above"), known_side("above", "below")


def quotient_divisor(s: Scalars, bar: SSAValue, quotient: SSAValue, divisor: SSAValue) -> SSAValue:
    """`-bar / b * q`: by its result, so that an overwritten dividend costs nothing.

    The division is that of the dividend's cotangent. A quotient of 0 is a strong zero.
    """
    return s.neg(s.times_both(s.over(bar, divisor), quotient))


def modulus_divisor(s: Scalars, bar: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
    """a % b = a - floor(a / b) * b."""
    return s.neg(s.times(bar, s.emit(array.FloorDivOp(a, b))))


TERMS: dict[type[Operation], Row] = {
    arith.AddfOp: (LINEAR, LINEAR),
    arith.SubfOp: (LINEAR, Term((), lambda s, bar: s.neg(bar))),
    arith.NegfOp: (Term((), lambda s, bar: s.neg(bar)),),
    arith.MulfOp: (
        Term(("rhs",), lambda s, bar, rhs: s.times(bar, rhs)),
        Term(("lhs",), lambda s, bar, lhs: s.times(bar, lhs)),
    ),
    arith.DivfOp: (
        Term(("rhs",), lambda s, bar, rhs: s.over(bar, rhs)),
        Term(("result", "rhs"), quotient_divisor),
    ),
    ad.MulOp: (
        Term(("rhs",), lambda s, bar, rhs: s.times(bar, rhs)),
        Term(("lhs",), lambda s, bar, lhs: s.times_both(bar, lhs)),
    ),
    ad.DivOp: (
        Term(("rhs",), lambda s, bar, rhs: s.over(bar, rhs)),
        Term(("result", "rhs"), quotient_divisor),
    ),
    arith.MaximumfOp: MAXIMUM,
    arith.MaxnumfOp: MAXIMUM,
    arith.MinimumfOp: MINIMUM,
    arith.MinnumfOp: MINIMUM,
    ad.MinimumOp: (BELOW, ABOVE, None, None),
    ad.MaximumOp: (ABOVE, BELOW, None, None),
    arith.SelectOp: (
        None,
        Term(("cond",), lambda s, bar, c: s.select(c, bar, s.constant(0.0, bar))),
        Term(("cond",), lambda s, bar, c: s.select(c, s.constant(0.0, bar), bar)),
    ),
    arith.ExtFOp: (LINEAR,),
    arith.TruncFOp: (LINEAR,),
    array.CastOp: (LINEAR,),
    array.FloorModOp: (LINEAR, Term(("lhs", "rhs"), modulus_divisor)),
    array.FloorDivOp: (None, None),
}
"""Where a rule passes a cotangent of another float type on, the sweep casts it to the operand's."""

NOT_FINITE: dict[type[Operation], tuple[int, ...]] = {
    arith.AddfOp: (0, 1),
    arith.SubfOp: (0, 1),
    arith.NegfOp: (0,),
    arith.MulfOp: (0, 1),
    arith.DivfOp: (0,),
    arith.ExtFOp: (0,),
    arith.TruncFOp: (0,),
    math.FmaOp: (0, 1, 2),
    ad.MulOp: (0, 1),
    ad.DivOp: (0,),
}
"""The operands of which an op keeps that they are not finite; a quotient with an infinite divisor is."""

KEEPING: dict[type[Operation], tuple[int, ...]] = {
    **NOT_FINITE,
    arith.SelectOp: (1, 2),
    array.CastOp: (0,),
}
"""The operands of an op that are NaN only if its result is, or is not chosen. No divisor is among them:
without a guard the sign of a zero may differ, and so would that of the infinity that it makes."""

KINKS: dict[type[Operation], Kink] = {
    arith.MaximumfOp: "tie",
    arith.MaxnumfOp: "tie",
    arith.MinimumfOp: "tie",
    arith.MinnumfOp: "tie",
    ad.MinimumOp: "tie",
    ad.MaximumOp: "tie",
    array.FloorModOp: "step",
}


class Broadcast(WithoutDerivative):
    """`vector.broadcast`: the number among as many derivatives."""

    keeps_nan = (0,)


RULES: Rules = {**scalar_rules(TERMS, KEEPING, KINKS), vector.BroadcastOp: Broadcast()}
