"""Fewer divisions among the products and quotients that lose their guards.

The adjoint of `w = m / t` divides by `t` again, beside the `w` that it computes again; that of
`t = x * sqrt(x)` divides by the root. A division, or a root, takes as long as eight products or more. Where
several quotients of a block have one divisor, each is a product with its reciprocal, corrected by what is
left::

    %w = arith.divf %m, %t                  %r = arith.select finite(1.0 / %t), 1.0 / %t, NaN
    %p = ad.mul %a, %w                      %q = arith.mulf %m, %r
    %s = ad.div %b, %t                      %left = math.fma -%q, %t, %m
                                            %w = math.fma %left, %r, %q
                                            %p = ad.mul %a, %w
                                            %s = ... of %b

So they are rounded as divisions are (Markstein), but for results that are nearly subnormal, and a gradient
that has saved `w`, and divides once, has the same bits. That needs a fused multiply-add. And
`v * x / (2 * sqrt(x))` is half of the root, times v::

    %d = ad.mul %v, %x                      %k = arith.select finite(%s), %s, NaN
    %q = ad.div %d, 2.0 * %s                %q = arith.mulf %v, 0.5 * %k

Where a reciprocal is infinite (of a subnormal number, or of 0), or the root, the quotient need not be: then
it is NaN here, as is all that a guard would have met, and the call is made anew, with guards (`drop_guards`).

Kept: quotients of vectors; those whose divisor another block, or no other quotient, divides by: the same
quotient, written twice, is no other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, Float64Type, UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects import ad
from ..rules.table import ADJOINT, constant_float, float_constant, mark_edge

Guard = ad.MulOp | ad.DivOp


def share_reciprocals(guards: Sequence[Guard], *, fused: bool) -> list[Guard]:
    """Replace quotients among guards by products; the guards that are left.

    `fused`: a product and a sum are rounded once by one instruction.
    """
    gone: set[Operation] = set()
    groups: dict[tuple[Block, SSAValue], list[Operation]] = {}
    for guard in guards:
        if not isinstance(guard, ad.DivOp) or not isinstance(
            guard.result.type, Float32Type | Float64Type
        ):
            continue
        factor = times_root(guard)
        if factor is not None:
            half_of_root(guard, *factor)
            gone.add(guard)
        elif fused and guard.parent is not None:
            groups.setdefault((guard.parent, guard.rhs), []).append(guard)
    known = set[Operation](guards)
    for (block, _), quotients in groups.items():
        divisor = quotients[0].operands[1]  # now: it may have been a quotient itself
        again = computed_again(block, divisor, known)
        if len({q.operands[0] for q in (*again, *quotients)}) > 1:
            Reciprocal(divisor, [*again, *quotients]).emit()
            gone.update(quotients)
    for op in gone:
        Rewriter.erase_op(op)
    return [g for g in guards if g not in gone]


def times_root(quotient: ad.DivOp) -> tuple[SSAValue, SSAValue] | None:
    """v and the root, where the quotient is `v * x / (2 * sqrt(x))`."""
    twice, product = quotient.rhs.owner, quotient.lhs.owner
    if not isinstance(twice, arith.MulfOp) or not isinstance(product, ad.MulOp):
        return None
    root = twice.lhs.owner
    if constant_float(twice.rhs) != 2.0 or not isinstance(root, math.SqrtOp):
        return None
    if product.rhs is root.operand:
        return product.lhs, root.result
    return (product.rhs, root.result) if product.lhs is root.operand else None


def half_of_root(quotient: ad.DivOp, factor: SSAValue, root: SSAValue) -> None:
    """Put half of the root, times the factor, in the place of a quotient."""
    at = Place(quotient)
    half = float_constant(0.5, root.type)
    at.put(half)
    product = at.put(arith.MulfOp(at.finite(root), half.result))
    made = at.put(arith.MulfOp(factor, product))
    made.name_hint = quotient.result.name_hint
    quotient.result.replace_all_uses_with(made)


def computed_again(block: Block, divisor: SSAValue, guards: set[Operation]) -> list[Operation]:
    """The quotients by the divisor, in this block, that are computed for guards alone."""
    return [
        use.operation
        for use in divisor.uses
        if isinstance(use.operation, arith.DivfOp)
        and use.index == 1
        and use.operation.parent is block
        and ADJOINT not in use.operation.attributes
        and is_for_guards(use.operation.result, guards)
    ]


def is_for_guards(value: SSAValue, guards: set[Operation]) -> bool:
    """Only guards read the value, and what is computed of it; a NaN there makes each of them a NaN."""
    seen, pending = set[SSAValue](), [value]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        readers = [use.operation for use in value.uses]
        inner = [op for op in readers if op not in guards]
        if not readers or not all(isinstance(op, KEEPING) for op in inner):
            return False
        pending += (op.results[0] for op in inner)
    return True


KEEPING = (arith.MulfOp, arith.DivfOp, arith.AddfOp, arith.SubfOp, arith.NegfOp, math.FmaOp)
"""Ops that make a NaN of a NaN."""


@dataclass
class Place:
    """Puts ops before an op."""

    before: Operation

    def put(self, op: Operation) -> SSAValue:
        op.attributes[ADJOINT] = UnitAttr()
        op.location = self.before.location
        assert self.before.parent is not None
        self.before.parent.insert_op_before(op, self.before)
        return op.results[0]

    def finite(self, value: SSAValue) -> SSAValue:
        """The value; NaN where it is infinite."""
        infinite = self.put(float_constant(inf, value.type))
        no_number = self.put(float_constant(nan, value.type))
        compared = arith.CmpfOp(self.put(math.AbsFOp(value)), infinite, "olt")
        self.put(compared)
        mark_edge(compared)
        return self.put(arith.SelectOp(compared.result, value, no_number))


@dataclass
class Reciprocal:
    """The quotients of a block that are products with one reciprocal."""

    divisor: SSAValue
    quotients: list[Operation]

    def emit(self) -> None:
        first = self.quotients[0]
        for other in self.quotients[1:]:
            first = other if other.is_before_in_block(first) else first
        at = Place(first)
        one = at.put(float_constant(1.0, self.divisor.type))
        over = at.finite(at.put(arith.DivfOp(one, self.divisor)))
        over.name_hint = "over"
        for op in self.quotients:
            place, (above, below) = Place(op), op.operands
            product = place.put(arith.MulfOp(above, over))
            left = place.put(math.FmaOp(place.put(arith.NegfOp(product)), below, above))
            made = place.put(math.FmaOp(left, over, product))
            made.name_hint = op.results[0].name_hint
            op.results[0].replace_all_uses_with(made)
            if not isinstance(op, ad.DivOp):
                Rewriter.erase_op(op)
