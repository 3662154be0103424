"""Do integers exist that satisfy a set of linear equations and inequalities?

Fourier-Motzkin elimination with integer tightening, as dependence analysis needs it: `feasible`
says False only where no integers satisfy the system, True where some do or where it gave up.

The system `i' >= i + 1, i' = i` (does a later iteration touch the same element?)::

    zero    -i' + i                 substitute i' by i
    atleast  i' - i - 1   becomes  -1 >= 0: infeasible, so no

Not handled: systems that have rational but no integer solutions and survive gcd tests.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from operator import add, neg

LIMIT = 160
"""Elimination gives up (feasible) above this many inequalities."""

Row = tuple[dict[int, int], int]
"""Coefficients of the variables, and the constant. Variables are numbers here: they are hashed once."""

Fixed = tuple[tuple[tuple[int, int], ...], int]
"""A row that has a hash: its items."""

Bounds = dict[tuple[int, ...], int]
"""Inequalities: the tightest constant for each tuple of coefficients, one for every variable that is left."""


@dataclass
class System:
    """Linear forms that are zero, and linear forms that are at least zero."""

    zeros: list[Fixed] = field(default_factory=list[Fixed])
    at_least_zeros: list[Fixed] = field(default_factory=list[Fixed])
    numbers: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    """Of the variables, those of copies included."""

    def zero(self, terms: Mapping[Hashable, int], constant: int) -> None:
        self.zeros.append((self._numbered(terms), constant))

    def at_least_zero(self, terms: Mapping[Hashable, int], constant: int) -> None:
        self.at_least_zeros.append((self._numbered(terms), constant))

    def _numbered(self, terms: Mapping[Hashable, int]) -> tuple[tuple[int, int], ...]:
        numbers = self.numbers
        return tuple([(numbers.setdefault(v, len(numbers)), c) for v, c in terms.items() if c])

    def states(self, terms: Mapping[Hashable, int], constant: int) -> bool:
        """Whether one of the inequalities says at once that this form is at least zero."""
        wanted = {*self._numbered(terms)}
        return any(
            least <= constant and len(given) == len(wanted) and wanted.issuperset(given)
            for given, least in self.at_least_zeros
        )

    def copy(self) -> System:
        return System(list(self.zeros), list(self.at_least_zeros), self.numbers)


class Infeasible(Exception):
    """Raised inside this module where a contradiction shows."""


def feasible(system: System) -> bool:
    """False when no integers satisfy `system`; True when some may."""
    return may_be_solved(tuple(system.zeros), tuple(system.at_least_zeros))


@lru_cache(maxsize=4096)
def may_be_solved(zeros: tuple[Fixed, ...], at_least_zeros: tuple[Fixed, ...]) -> bool:
    """Variables are numbered as they are met, so two questions about accesses of one form are the same."""
    try:
        bounds: Bounds = {}
        rows = ([(dict(terms), c) for terms, c in given] for given in (zeros, at_least_zeros))
        tighten(bounds, in_columns(solve_equations(*rows)))
        while bounds:
            bounds = eliminate(bounds, cheapest(bounds))
            if len(bounds) > LIMIT:
                return True
    except Infeasible:
        return False
    return True


def in_columns(rows: Sequence[Row]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Rows as tuples of coefficients: a column for each variable that the equations have left."""
    columns = sorted(set[int]().union(*(terms for terms, _ in rows)))
    for terms, constant in rows:
        yield tuple([terms.get(v, 0) for v in columns]), constant


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


def substitute(row: Row, variable: int, value: Row) -> Row:
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


def tighten(bounds: Bounds, rows: Iterable[tuple[tuple[int, ...], int]]) -> None:
    """Add inequalities, each divided by its common factor, with the constant rounded down."""
    for terms, constant in rows:
        common = gcd(*terms)
        if common != 1:
            if not common:
                if constant < 0:
                    raise Infeasible
                continue
            terms, constant = tuple([c // common for c in terms]), constant // common
        known = bounds.get(terms)
        if known is not None and known <= constant:
            continue
        bounds[terms] = constant
        opposite = bounds.get(tuple(map(neg, terms)))
        if opposite is not None and opposite + constant < 0:
            raise Infeasible


def cheapest(bounds: Bounds) -> int:
    """The variable whose elimination adds the fewest inequalities; the first of several."""
    best, least = 0, None
    for k, column in enumerate(zip(*bounds, strict=True)):
        lower = upper = 0
        for c in column:
            if c > 0:
                lower += 1
            elif c:
                upper += 1
        added = lower * upper - lower - upper
        if (lower or upper) and (least is None or added < least):
            best, least = k, added
    return best


def eliminate(bounds: Bounds, k: int) -> Bounds:
    """What the inequalities say about the other variables than the k-th."""
    left: Bounds = {}
    lower: list[tuple[int, tuple[int, ...], int]] = []
    upper: list[tuple[int, tuple[int, ...], int]] = []
    for terms, constant in bounds.items():
        factor, others = terms[k], terms[:k] + terms[k + 1 :]
        if factor == 0:
            left[others] = constant  # which is as tight as it was
        elif factor > 0:
            lower.append((factor, others, constant))
        else:
            upper.append((-factor, others, constant))
    if len(lower) * len(upper) + len(left) <= 4 * LIMIT:
        tighten(left, combined(lower, upper))
    return left  # (What is not combined only enlarges the set of solutions.)


def combined(
    lower: Sequence[tuple[int, tuple[int, ...], int]],
    upper: Sequence[tuple[int, tuple[int, ...], int]],
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Each bound from below with each from above, each times the other's factor."""
    for a, low, low_constant in lower:
        for b, high, high_constant in upper:
            if a == b == 1:
                yield tuple(map(add, low, high)), low_constant + high_constant
            else:
                terms = [b * x + a * y for x, y in zip(low, high, strict=True)]
                yield tuple(terms), b * low_constant + a * high_constant
