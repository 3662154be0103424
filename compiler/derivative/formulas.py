"""Formulas as users read them: a text that knows what may stand beside it without parentheses.

A quotient rounds, so it stands in parentheses in every product: `8*(a//b)*n`, and `a//(b*c)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

SUM, QUOTIENT, PRODUCT, ATOM = range(4)
"""How tightly the operator binds that was written last."""


@dataclass(frozen=True)
class Formula:
    """`factor` times the `rest`, whose outermost operator binds as tightly as that says; no rest is 1."""

    rest: str
    tight: int = ATOM
    factor: int = 1

    def __str__(self) -> str:
        if not self.rest:
            return str(self.factor)
        if self.factor == 1:
            return self.rest
        return f"{self.factor}*{self.rest if self.tight >= PRODUCT else f'({self.rest})'}"

    @property
    def binds(self) -> int:
        if not self.rest:
            return ATOM if self.factor >= 0 else SUM
        return self.tight if self.factor == 1 else PRODUCT

    def at(self, least: int) -> str:
        """The text, in parentheses where it binds less tightly than its place asks."""
        return str(self) if self.binds >= least else f"({self})"


def constant(number: int) -> Formula:
    return Formula("", ATOM, number)


def product(factors: Sequence[Formula]) -> Formula:
    """The product: its numbers in front, as one."""
    number = prod(f.factor for f in factors)
    written = [f for f in factors if f.rest]
    if number == 0 or not written:
        return constant(number)
    if len(written) == 1:
        return replace(written[0], factor=number)
    texts = [replace(f, factor=1).at(PRODUCT) for f in written]
    return Formula("*".join(texts), PRODUCT, number)


def quotient(top: Formula, bottom: Formula) -> Formula:
    """The quotient, rounded down."""
    return Formula(f"{top.at(PRODUCT)}//{bottom.at(ATOM)}", QUOTIENT)


def ceiling(top: Formula, bottom: Formula) -> Formula:
    """The quotient, rounded up."""
    return call("ceil", Formula(f"{top.at(PRODUCT)}/{bottom.at(ATOM)}"))


def call(name: str, *arguments: Formula) -> Formula:
    return Formula(f"{name}({', '.join(map(str, arguments))})")


def linear(terms: Sequence[tuple[int, Formula]], rest: int = 0) -> Formula:
    """The sum of multiples and a constant: what is added comes first."""
    parts = [(factor, product([constant(abs(factor)), term])) for factor, term in terms if factor]
    if rest or not parts:
        parts.append((rest, constant(abs(rest))))
    parts.sort(key=lambda part: part[0] < 0)
    sign, first = parts[0]
    if len(parts) == 1 and sign >= 0:
        return first
    text = str(first) if sign >= 0 else f"-{first.at(PRODUCT)}"
    for sign, part in parts[1:]:
        text += f"+{part.at(QUOTIENT)}" if sign >= 0 else f"-{part.at(QUOTIENT)}"
    return Formula(text, SUM)


def in_order(formulas: Sequence[Formula]) -> list[Formula]:
    """The operands of an operation that takes them in any order: always in this one."""
    return sorted(formulas, key=lambda f: (not f.rest, str(f)))


def relation(left: Formula, symbol: str, right: Formula) -> Formula:
    """1 where it holds, else 0."""
    return Formula(f"({left}{symbol}{right})")


def total(term: Formula, name: Formula, count: Formula) -> Formula:
    """The sum of a term over an index."""
    return Formula(f"sum({term} for {name} in range({count}))")
