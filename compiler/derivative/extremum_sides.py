"""Which side of a minimum or maximum is taken, as bools that a plan may save.

The adjoint of a minimum reads both operands, and both may be overwritten. It only needs to know which one is
less::

    %m = arith.minimumf %a, %b : f64        %below = arith.cmpf ole, %a, %b : f64
                                            %above = arith.cmpf oge, %a, %b : f64
                                            %m = ad.minimum %a, %b, %below, %above : f64

The bools are pure code on the operands: if the operands are available anyway, nothing is saved. This runs on
the function that is planned. In the gradient a minimum is an `arith` op again.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import ad
from ...dialects.within import every_op
from ..rules.table import is_bound, mark_edge

SIDES: dict[type[Operation], tuple[type[ad.ExtremeOp], bool]] = {
    arith.MinimumfOp: (ad.MinimumOp, False),
    arith.MinnumfOp: (ad.MinimumOp, True),
    arith.MaximumfOp: (ad.MaximumOp, False),
    arith.MaxnumfOp: (ad.MaximumOp, True),
}
PLAIN = {named: plain for plain, named in SIDES.items()}


def name_sides(top: Operation) -> None:
    """Let minima and maxima of two floats say which side they take."""
    for op in every_op(top):
        if type(op) not in SIDES or not isinstance(op.results[0].type, AnyFloat):
            continue
        kind, of_numbers = SIDES[type(op)]
        lhs, rhs = op.operands
        if lhs is rhs:
            continue
        below, above = (arith.CmpfOp(lhs, rhs, predicate) for predicate in ("ole", "oge"))
        for compared in (below, above):
            if is_bound(op):
                mark_edge(compared)
            compared.location = op.location
            compared.result.name_hint = op.results[0].name_hint
            Rewriter.insert_op(compared, InsertPoint.before(op))
        made = kind(lhs, rhs, below.result, above.result, of_numbers=of_numbers)
        replace(op, made)


def forget_sides(top: Operation) -> None:
    """Let minima and maxima be those of `arith` again."""
    for op in every_op(top):
        if isinstance(op, ad.ExtremeOp):
            plain = PLAIN[type(op), op.of_numbers is not None]
            replace(op, plain(op.lhs, op.rhs))  # pyright: ignore[reportCallIssue]


def replace(op: Operation, made: Operation) -> None:
    made.location = op.location
    made.attributes.update(op.attributes)
    made.results[0].name_hint = op.results[0].name_hint
    Rewriter.replace_op(op, made)
