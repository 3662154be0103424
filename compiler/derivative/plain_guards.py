"""Plain products and quotients in the place of guarded ones.

A vector over a number, the same one for all lanes, is a product with the number's reciprocal: one quotient
for all lanes, and for all vectors that it divides. That of a subnormal number may be infinite where the
quotient is not: then it is NaN here, which the check of the result sees. (That of the largest numbers is
subnormal, and has two bits fewer of 53.)

::

    %d = vector.broadcast %y : f64 to vector<8xf64>        %r = arith.divf 1.0, %y : f64
    %p = ad.div %a, %d                                     %s = arith.select finite(%r), %r, NaN : f64
    %q = ad.div %b, %d                                     %d = vector.broadcast %s
                                                           %p = arith.mulf %a, %d
                                                           %q = arith.mulf %b, %d
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, nan

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from ...dialects import ad
from ..rules.table import ADJOINT, float_constant, mark_edge


def make_plain(guards: Iterable[ad.MulOp | ad.DivOp], *, unchecked: bool = False) -> None:
    """Put a plain product or quotient in the place of each; `unchecked`: all is taken to be finite."""
    reciprocals: dict[vector.BroadcastOp, SSAValue] = {}
    for op in guards:
        divisor = op.rhs.owner
        if isinstance(op, ad.MulOp):
            made = arith.MulfOp(op.lhs, op.rhs)
        elif isinstance(divisor, vector.BroadcastOp):
            if divisor not in reciprocals:
                reciprocals[divisor] = reciprocal(divisor, unchecked)
            made = arith.MulfOp(op.lhs, reciprocals[divisor])
        else:
            made = arith.DivfOp(op.lhs, op.rhs)
        made.attributes, made.location = dict(op.attributes), op.location
        made.result.name_hint = op.result.name_hint
        before(op, made)
        op.result.replace_all_uses_with(made.result)
        op.detach()
        op.erase()


def reciprocal(divisor: vector.BroadcastOp, unchecked: bool) -> SSAValue:
    """The reciprocal of a number, in all lanes: NaN where it is not finite."""
    number = divisor.source
    one = float_constant(1.0, number.type)
    quotient = arith.DivfOp(one.result, number)
    made: list[Operation] = [one, quotient]
    if not unchecked:
        infinite, no_number = (float_constant(x, number.type) for x in (inf, nan))
        size = math.AbsFOp(quotient.result)
        finite = arith.CmpfOp(size.result, infinite.result, "olt")
        mark_edge(finite)
        kept = arith.SelectOp(finite.result, quotient.result, no_number.result)
        made += [infinite, no_number, size, finite, kept]
    made.append(vector.BroadcastOp(made[-1].results[0], divisor.vector.type))
    for op in made:
        op.attributes[ADJOINT] = UnitAttr()
        op.location = divisor.location
        before(divisor, op)
    made[-1].results[0].name_hint = "over"
    return made[-1].results[0]


def before(op: Operation, made: Operation) -> None:
    assert op.parent is not None
    op.parent.insert_op_before(made, op)
