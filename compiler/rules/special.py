"""Derivatives of the `special` ops.

erfc: Abramowitz and Stegun 7.1.19; gamma and its logarithm: DLMF 5.2.2, https://dlmf.nist.gov/5.2. At their
poles the partial is infinite or NaN, as the functions are.
"""

from __future__ import annotations

from math import pi, sqrt

from xdsl.dialects import math
from xdsl.ir import Operation, SSAValue

from ...dialects import special
from .scalars import Row, scalar_rules
from .table import Scalars, Term


def erfc(s: Scalars, bar: SSAValue, x: SSAValue) -> SSAValue:
    bell = s.emit(math.ExpOp(s.neg(s.square(x))))
    return s.times(bar, s.scaled(bell, -2.0 / sqrt(pi)))


def gamma(s: Scalars, bar: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
    return s.times(bar, s.mul(y, s.emit(special.DigammaOp(x))))


def followed_by(kind: type[special.UnaryOp]) -> Term:
    """The partial is another op of the same operand."""
    return Term(("operand",), lambda s, bar, x: s.times(bar, s.emit(kind(x))))


TERMS: dict[type[Operation], Row] = {
    special.ErfcOp: (Term(("operand",), erfc),),
    special.GammaOp: (Term(("operand", "result"), gamma),),
    special.LogGammaOp: (followed_by(special.DigammaOp),),
    special.DigammaOp: (followed_by(special.TrigammaOp),),
    special.TrigammaOp: (followed_by(special.TetragammaOp),),
}

RULES = scalar_rules(TERMS)
