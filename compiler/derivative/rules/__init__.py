"""Derivative rules: one row of a table for each scalar op (`arith`, `math`, `special`)."""

from __future__ import annotations

from xdsl.ir import Operation

from . import arith, math, special
from .table import Term

SCALAR_RULES: dict[type[Operation], tuple[Term | None, ...]] = {
    **arith.RULES,
    **math.RULES,
    **special.RULES,
}
"""For each op type one entry per operand: how its cotangent is made, None where it is always zero."""

__all__ = ["SCALAR_RULES", "Term"]
