"""Do integers exist that satisfy a set of linear equations and inequalities?

Fourier-Motzkin elimination with integer tightening, as dependence analysis needs it: `feasible`
says False only where no integers satisfy the system, True where some do or where it gave up.

The system `i' >= i + 1, i' = i` (does a later iteration touch the same element?)::

    zero    -i' + i                 substitute i' by i
    atleast  i' - i - 1   becomes  -1 >= 0: infeasible, so no

Not handled: systems that have rational but no integer solutions and survive gcd tests.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from math import gcd

LIMIT = 160
"""Elimination gives up (feasible) above this many inequalities."""

Row = tuple[dict[Hashable, int], int]
"""Coefficients of the variables, and the constant."""


@dataclass
class System:
    """Linear forms that are zero, and linear forms that are at least zero."""

    zeros: list[Row] = field(default_factory=list[Row])
    at_least_zeros: list[Row] = field(default_factory=list[Row])

    def zero(self, terms: Mapping[Hashable, int], constant: int) -> None:
        self.zeros.append(({v: c for v, c in terms.items() if c}, constant))

    def at_least_zero(self, terms: Mapping[Hashable, int], constant: int) -> None:
        self.at_least_zeros.append(({v: c for v, c in terms.items() if c}, constant))

    def copy(self) -> System:
        return System(list(self.zeros), list(self.at_least_zeros))


class Infeasible(Exception):
    """Raised inside this module where a contradiction shows."""


def feasible(system: System) -> bool:
    """False when no integers satisfy `system`; True when some may."""
    try:
        rows = solve_equations(system.zeros, system.at_least_zeros)
        bounds = tighten(rows)
        while bounds:
            variable = cheapest(bounds)
            bounds = eliminate(bounds, variable)
            if len(bounds) > LIMIT:
                return True
    except Infeasible:
        return False
    return True


def solve_equations(zeros: Iterable[Row], at_least_zeros: Iterable[Row]) -> list[Row]:
    """Use every equation with a unit coefficient to get rid of a variable; the rest become pairs."""
    equations = list(zeros)
    inequalities = list(at_least_zeros)
    kept: list[Row] = []
    while equations:
        terms, constant = equations.pop()
        if not terms:
            if constant != 0:
                raise Infeasible
            continue
        common = gcd(*terms.values())
        if constant % common:
            raise Infeasible
        if common > 1:
            terms, constant = {v: c // common for v, c in terms.items()}, constant // common
        unit = next((v for v, c in terms.items() if c in (1, -1)), None)
        if unit is None:
            kept.append((terms, constant))
            continue
        sign = terms[unit]
        # unit = -sign * (the other terms)
        others = {v: -sign * c for v, c in terms.items() if v != unit}
        value = (others, -sign * constant)
        equations = [substitute(r, unit, value) for r in equations + kept]
        kept = []
        inequalities = [substitute(r, unit, value) for r in inequalities]
    for terms, constant in kept:
        inequalities.append((terms, constant))
        inequalities.append(({v: -c for v, c in terms.items()}, -constant))
    return inequalities


def substitute(row: Row, variable: Hashable, value: Row) -> Row:
    terms, constant = row
    factor = terms.get(variable)
    if factor is None:
        return row
    result = {v: c for v, c in terms.items() if v != variable}
    for v, c in value[0].items():
        total = result.get(v, 0) + factor * c
        if total:
            result[v] = total
        else:
            result.pop(v, None)
    return result, constant + factor * value[1]


Bounds = dict[frozenset[tuple[Hashable, int]], int]
"""Inequalities, the tightest constant for each set of coefficients."""


def tighten(rows: Iterable[Row]) -> Bounds:
    """Divide each inequality by its common factor, rounding the constant down, and keep the tightest."""
    bounds: Bounds = {}
    for terms, constant in rows:
        if not terms:
            if constant < 0:
                raise Infeasible
            continue
        common = gcd(*terms.values())
        if common > 1:
            terms, constant = {v: c // common for v, c in terms.items()}, constant // common
        key = frozenset(terms.items())
        bounds[key] = min(constant, bounds.get(key, constant))
        opposite = bounds.get(frozenset((v, -c) for v, c in terms.items()))
        if opposite is not None and opposite + constant < 0:
            raise Infeasible
    return bounds


def cheapest(bounds: Bounds) -> Hashable:
    """The variable whose elimination adds the fewest inequalities."""
    lower: dict[Hashable, int] = {}
    upper: dict[Hashable, int] = {}
    for key in bounds:
        for v, c in key:
            side = lower if c > 0 else upper
            side[v] = side.get(v, 0) + 1
    return min(
        lower.keys() | upper.keys(),
        key=lambda v: lower.get(v, 0) * upper.get(v, 0) - lower.get(v, 0) - upper.get(v, 0),
    )


def eliminate(bounds: Bounds, variable: Hashable) -> Bounds:
    """What the inequalities say about the other variables."""
    rows: list[Row] = []
    lower: list[tuple[int, dict[Hashable, int], int]] = []
    upper: list[tuple[int, dict[Hashable, int], int]] = []
    for key, constant in bounds.items():
        terms = dict(key)
        factor = terms.pop(variable, 0)
        if factor == 0:
            rows.append((terms, constant))
        elif factor > 0:
            lower.append((factor, terms, constant))
        else:
            upper.append((-factor, terms, constant))
    if len(lower) * len(upper) + len(rows) > 4 * LIMIT:
        # Dropping what bounds the variable only enlarges the set of solutions.
        return tighten(rows)
    for a, low, low_constant in lower:
        for b, high, high_constant in upper:
            terms = {v: b * c for v, c in low.items()}
            for v, c in high.items():
                total = terms.get(v, 0) + a * c
                if total:
                    terms[v] = total
                else:
                    terms.pop(v, None)
            rows.append((terms, b * low_constant + a * high_constant))
    return tighten(rows)
