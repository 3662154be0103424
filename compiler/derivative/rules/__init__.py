"""Derivative rules: one row of a table for each scalar op (`arith`, `math`)."""

from __future__ import annotations

from xdsl.ir import Operation

from . import arith, math
from .table import Term

SCALAR_RULES: dict[type[Operation], tuple[Term | None, ...]] = {**arith.RULES, **math.RULES}
"""For each op type one entry per operand: how its cotangent is made, None where it is always zero."""

__all__ = ["SCALAR_RULES", "Term"]
