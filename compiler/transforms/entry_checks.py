"""Write the conditions of `analysis/nest_proofs` as IR, before a nest.

Their arithmetic is that of the integers, where that of IR has 64 bits: each number that enters must be
smaller than any extent can be, and is multiplied by small factors only.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ..analysis.affine import Affine, Symbol, Term
from ..analysis.nest_proofs import All, AtMostZero, Condition, Some
from .hoist_checks import BEYOND, SMALL, Before


def decided_before(nest: array.LoopOp, condition: Condition) -> EntryCheck | None:
    """The condition as a value before the nest; None where it has more than sums in it."""
    forms = list(forms_of(condition))
    if not all(map(is_simple, forms)):
        return None
    check = EntryCheck(nest)
    if any(check.inside(s) for form in forms for s in numbers_in(form)):
        return None
    check.decide(condition, forms)
    return check


class EntryCheck(Before):
    """Emits a condition before the nest."""

    holds: SSAValue

    def __init__(self, nest: array.LoopOp) -> None:
        super().__init__(nest)
        self._nest = nest

    def inside(self, symbol: Symbol) -> bool:
        """True where the number is not there before the nest."""
        return (
            isinstance(symbol, SSAValue)
            and isinstance(symbol.owner, Operation)
            and self._nest.is_ancestor(symbol.owner)
        )

    def decide(self, condition: Condition, forms: list[Affine]) -> None:
        parts = [self._value(condition)]
        for symbol in dict.fromkeys(s for form in forms for s in numbers_in(form)):
            number = self.number(Affine.of(symbol))
            parts.append(self.compare("slt", number, self.constant(BEYOND)))
            parts.append(self.compare("sgt", number, self.constant(-BEYOND)))
        self.holds = self._joined(parts, arith.AndIOp)

    def _value(self, condition: Condition) -> SSAValue:
        match condition:
            case AtMostZero(form):
                return self.compare("sle", self.number(form), self.constant(0))
            case All(parts):
                return self._joined([self._value(p) for p in parts], arith.AndIOp)
            case Some(parts):
                return self._joined([self._value(p) for p in parts], arith.OrIOp)
            case _:
                zero = self.constant(0)
                return self.compare("eq" if condition else "ne", zero, zero)

    def _joined(
        self, parts: list[SSAValue], by: type[arith.AndIOp] | type[arith.OrIOp]
    ) -> SSAValue:
        whole = parts[0]
        for part in parts[1:]:
            whole = self.emit(by(whole, part))
        return whole


def forms_of(condition: Condition) -> Iterator[Affine]:
    match condition:
        case AtMostZero(form):
            yield form
        case All(parts) | Some(parts):
            for part in parts:
                yield from forms_of(part)
        case _:
            pass


def is_simple(form: Affine) -> bool:
    """Sums of numbers by small factors, and the greater or smaller of two such."""
    return abs(form.constant) < BEYOND and all(
        abs(factor) <= SMALL
        and (
            not isinstance(symbol, Term)
            or (symbol.kind in ("max", "min") and all(map(is_simple, symbol.args)))
        )
        for symbol, factor in form.terms.items()
    )


def numbers_in(form: Affine) -> Iterator[Symbol]:
    for symbol in form.terms:
        if isinstance(symbol, Term):
            for arg in symbol.args:
                yield from numbers_in(arg)
        else:
            yield symbol
