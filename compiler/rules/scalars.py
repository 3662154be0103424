"""The rule of scalar ops: a row of terms, one for each operand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from .access import Access, Activity, Need
from .rule import Rule, Rules, is_float_scalar
from .sweeps import ReverseSweep, TangentSweep
from .table import Scalars, Term, is_bound

Row = tuple[Term | None, ...]
Kink = Literal["", "tie", "step"]


@dataclass(frozen=True)
class ScalarRule(Rule[Operation]):
    """A scalar op's `terms`: of each operand how its cotangent is made, None where it is always zero.

    A term is linear in the cotangent, so the same terms, added up over the operands, make the tangent.
    """

    terms: Row
    keeps_nan: Sequence[int] = ()
    kink: Kink = ""
    """Where the op, or its adjoint, jumps: where its two sides are equal, unless one is a bound; or at steps.
    An operand with a cotangent of zero says the latter by itself."""

    @property
    def reads_primal(self) -> bool:
        """Whether the adjoint reads any value."""
        return any(term is not None and term.needs for term in self.terms)

    def effects(self, op: Operation) -> list[Access]:
        return []

    def compared(self, op: Operation) -> Iterator[SSAValue]:
        pairs = zip(self.terms, op.operands, strict=True)
        flat = any(term is None and is_float_scalar(operand) for term, operand in pairs)
        if flat or self.kink == "step" or (self.kink == "tie" and not is_bound(op)):
            yield from op.operands

    def has_derivative(self, op: Operation, activity: Activity) -> bool:
        return activity.active(op.results[0])

    def needs(self, op: Operation, activity: Activity) -> Iterator[Need]:
        for term, operand in zip(self.terms, op.operands, strict=True):
            if term is not None and activity.active(operand):
                for name in term.needs:
                    yield getattr(op, name)

    def adjoint(self, op: Operation, sweep: ReverseSweep) -> None:
        bar = sweep.take_bar(op.results[0])
        if bar is not None:
            active = sweep.activity.active
            self.propagate(op, bar, sweep.scalars, active, sweep.primal.get, sweep.add_bar)

    def propagate(
        self,
        op: Operation,
        bar: SSAValue,
        scalars: Scalars,
        active: Callable[[SSAValue], bool],
        get: Callable[[SSAValue], SSAValue],
        add: Callable[[SSAValue, SSAValue], None],
    ) -> None:
        """Hand `bar` on to the operands: `get` finds primal values, `add` takes contributions."""
        for operand, term in zip(op.operands, self.terms, strict=True):
            if term is not None and active(operand):
                add(operand, self._part(term, op, scalars, cast_for(op, bar, scalars), get))

    def tangent(self, op: Operation, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if not self.has_derivative(op, sweep.activity):
            return
        scalars, total = sweep.scalars, None
        for operand, term in zip(op.operands, self.terms, strict=True):
            dot = None if term is None else sweep.dot(operand)
            if term is None or dot is None:
                continue
            part = self._part(term, op, scalars, dot, sweep.value)
            part = scalars.cast(part, op.results[0].type)
            total = part if total is None else scalars.add(total, part)
        sweep.set_dot(op.results[0], total)

    @staticmethod
    def _part(
        term: Term,
        op: Operation,
        scalars: Scalars,
        derivative: SSAValue,
        get: Callable[[SSAValue], SSAValue],
    ) -> SSAValue:
        return term.cotangent(scalars, derivative, [get(getattr(op, name)) for name in term.needs])


def cast_for(op: Operation, bar: SSAValue, scalars: Scalars) -> SSAValue:
    """A conversion's cotangent has the operand's type already in the rule."""
    if isinstance(op, array.CastOp | arith.ExtFOp | arith.TruncFOp):
        return scalars.cast(bar, op.operands[0].type)
    return bar


def scalar_rules(
    rows: Mapping[type[Operation], Row],
    keeping: Mapping[type[Operation], Sequence[int]] | None = None,
    kinks: Mapping[type[Operation], Kink] | None = None,
) -> Rules:
    """The rules of rows; of some ops, the operands that keep NaN, and the kinks."""
    keeping, kinks = keeping or {}, kinks or {}
    return {
        kind: ScalarRule(terms, keeping.get(kind, ()), kinks.get(kind, ""))
        for kind, terms in rows.items()
    }
