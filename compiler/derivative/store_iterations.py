"""Which iteration of a store touches the element that a read reads.

It solves "the store's subscripts equal the read's" for the iteration q, with what else must hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...dialects import array
from ..analysis.affine import Affine

Conditions = tuple[Affine, ...]
"""Numbers, in terms of the counters around a read, that are all to be at least 0."""

Equation = tuple[dict[int, int], Affine]
"""Factors of the unknown counters, by position, and the rest: their sum is 0."""


@dataclass(frozen=True)
class Iterations:
    """The iterations of a store, and "it touches the read's location".

    Its counters are those of `loops` and then those of its own index space; `counts` are their ends.
    """

    loops: tuple[array.LoopOp, ...]
    counts: list[Affine]
    equations: list[Equation]


def solve(
    store: Iterations, common: Sequence[array.LoopOp], level: array.LoopOp | None
) -> tuple[tuple[Affine, ...], Conditions] | None:
    """The counters at which the store touches the read's location, and what must hold besides.

    A counter that the location does not determine is that of the read in the loops outside `level`
    that are common to both, one more in `level`, and 0 within.
    """
    known: dict[int, Affine] = {}
    depth = len(common) if level is None else common.index(level)
    for position, loop in enumerate(store.loops):
        if not determine(store.equations, known):
            return None
        if position not in known:
            inside = common.index(loop) if loop in common else len(common) + 1
            own = Affine.of(loop.induction)
            known[position] = own if inside < depth else own + 1 if inside == depth else Affine()
    if not determine(store.equations, known) or len(known) < len(store.counts):
        # A point of the store's own index space: all are one moment, so none is the first.
        return None
    conditions: list[Affine] = []
    for factors, rest in store.equations:
        total = sum((known[k] * f for k, f in factors.items()), rest)
        if total.is_constant and total.constant != 0:
            return None
        if not total.is_constant:
            conditions += [total, -total]
    return tuple(known[k] for k in range(len(store.counts))), tuple(conditions)


def determine(equations: Sequence[Equation], known: dict[int, Affine]) -> bool:
    """Add the counters that follow from those known; False where none is an integer."""
    pending = True
    while pending:
        pending = False
        for factors, rest in equations:
            unknown = [k for k in factors if k not in known]
            if len(unknown) != 1:
                continue
            total = sum((known[k] * f for k, f in factors.items() if k in known), rest)
            value = quotient(-total, factors[unknown[0]])
            if value is None:
                return False
            known[unknown[0]] = value
            pending = True
    return True


def quotient(value: Affine, divisor: int) -> Affine | None:
    """`value / divisor` where it is whole."""
    numbers = (*value.terms.values(), value.constant)
    if any(n % divisor for n in numbers):
        return None
    return Affine({s: f // divisor for s, f in value.terms.items()}, value.constant // divisor)


def least(value: Affine, ranges: Iterable[tuple[SSAValue, Affine | None]]) -> int:
    """A lower bound of `value` over the ranges of the counters, innermost first; 0 where unknown."""
    for counter, count in ranges:
        factor = value.terms.get(counter, 0)
        if factor > 0:
            value = value - Affine.of(counter) * factor
        elif factor < 0:
            if count is None:
                return 0
            value = value + (count - 1 - Affine.of(counter)) * factor
    return value.constant if value.is_constant else 0


def negated(condition: Affine) -> Affine:
    """At least 0 where `condition` is not."""
    return -condition - 1
