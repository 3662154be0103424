"""Bytes that code takes: what a block leaves taken, and the most that it has taken at one time.

Code in sequence, a branch and a loop make one such summary of those of their parts. Of a loop whose
iterations take alike it is a closed form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .entry_numbers import Arithmetic, Number
from .entry_values import Why

LINE, WORD = 64, 8
"""What sizes are rounded up to, and those of segments of a tape."""


@dataclass(frozen=True)
class Amount:
    """A number of bytes."""

    number: Number = 0
    sign: int | None = 0
    """1 or -1: nowhere below or above 0; 0: it is 0; None: unknown."""
    unknown: Why | None = None
    """Why the number is known only at run time."""
    loose: Why | None = None
    """Why the number is at most this, and may be less."""

    @property
    def is_zero(self) -> bool:
        return self.sign == 0

    def as_bound(self, reason: Why) -> Amount:
        return self if self.is_zero else replace(self, loose=self.loose or reason)


ZERO = Amount()


def unknown(reason: Why, sign: int | None = 1) -> Amount:
    return Amount(0, sign, reason)


@dataclass(frozen=True)
class Taken:
    """What code takes."""

    scratch: Amount = ZERO
    """What is taken until the iteration around it ends."""
    held: Amount = ZERO
    """What is taken until the call ends."""
    peak: Amount = ZERO
    """The most that is taken at one time, beyond what was before."""
    rises: bool = True
    """Whether the end is the peak."""

    @property
    def is_nothing(self) -> bool:
        return self.scratch.is_zero and self.held.is_zero and self.peak.is_zero


NOTHING = Taken()


def scratch(size: Amount) -> Taken:
    return Taken(scratch=size, peak=size)


def held(size: Amount) -> Taken:
    return Taken(held=size, peak=size)


def passing(size: Amount) -> Taken:
    """What is taken and given back."""
    return Taken(peak=size, rises=size.is_zero)


class Amounts:
    """Computes with amounts."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.a = arithmetic

    def made(self, number: Number, sign: int | None, *parts: Amount) -> Amount:
        """A number made of these parts."""
        no = next((p.unknown for p in parts if p.unknown), None)
        most = next((p.loose for p in parts if p.loose), None)
        if isinstance(number, int):
            sign = (number > 0) - (number < 0) if no is None else sign
        return Amount(number, sign, no, most)

    def add(self, x: Amount, y: Amount) -> Amount:
        if x.is_zero:
            return y
        if y.is_zero:
            return x
        if x.unknown or y.unknown:
            return self.made(0, x.sign if x.sign == y.sign else None, x, y)
        sign = x.sign if x.sign == y.sign else None
        return self.made(self.a.add(x.number, y.number), sign, x, y)

    def larger(self, x: Amount, y: Amount) -> Amount:
        """The maximum of amounts that are not negative."""
        if x.is_zero or y.is_zero:
            return self.add(x, y)
        if x.unknown or y.unknown:
            return self.made(0, 1, x, y)
        return self.made(self.a.larger(x.number, y.number), 1, x, y)

    def times(self, trips: Amount, x: Amount) -> Amount:
        if x.is_zero or trips.is_zero:
            return ZERO
        if trips.unknown or x.unknown:
            return self.made(0, x.sign, trips, x)
        if trips.loose and x.sign != 1:
            return unknown(trips.loose, x.sign)
        return self.made(self.a.mul(trips.number, x.number), x.sign, trips, x)

    def where_it_runs(self, trips: Amount, x: Amount) -> Amount:
        """`x` where there is an iteration, else 0."""
        if x.is_zero or trips.is_zero:
            return ZERO
        if trips.unknown:
            return x.as_bound(trips.unknown)
        if isinstance(trips.number, int) or x.unknown:
            return x
        runs = self.a.compare("sgt", trips.number, 0)
        chosen = self.a.choose(runs, x.number, 0)
        return self.made(chosen, x.sign, trips, x)

    # Summaries.

    def then(self, x: Taken, y: Taken) -> Taken:
        """One after the other."""
        if x.is_nothing:
            return y
        if y.is_nothing:
            return x
        left = self.add(x.scratch, x.held)
        peak = x.peak
        if not y.peak.is_zero:
            reached = self.add(left, y.peak)
            peak = reached if x.rises else self.larger(x.peak, reached)
        rises = x.rises and y.rises
        return Taken(self.add(x.scratch, y.scratch), self.add(x.held, y.held), peak, rises)

    def released(self, x: Taken) -> Taken:
        """The end of an iteration: its scratch memory is given back."""
        if x.scratch.is_zero:
            return x
        return replace(x, scratch=ZERO, rises=False)

    def repeated(self, trips: Amount, x: Taken) -> Taken:
        """A loop whose iterations take alike."""
        if x.is_nothing or trips.is_zero:
            return NOTHING
        total = self.times(trips, x.held)
        if x.held.sign in (0, -1):
            return Taken(held=total, peak=self.where_it_runs(trips, x.peak), rises=False)
        if x.rises:
            return Taken(held=total, peak=total)
        grown = x.held
        if grown.sign is None and grown.unknown is None:
            grown = self.made(self.a.larger(grown.number, 0), 1, grown)
        if trips.unknown:
            return Taken(held=total, peak=unknown(trips.unknown), rises=False)
        before = self.made(self.a.sub(trips.number, 1), 1, trips)
        last = self.add(self.times(before, grown), x.peak)
        return Taken(held=total, peak=self.where_it_runs(trips, last), rises=False)

    def either(self, x: Taken, y: Taken, reason: Why) -> Taken:
        """One of two, unknown which: at most the larger."""

        def most(a: Amount, b: Amount) -> Amount:
            if a.sign == -1 or b.sign == -1 or a.sign is None or b.sign is None:
                return ZERO if a.sign in (0, -1) and b.sign in (0, -1) else unknown(reason, None)
            return self.larger(a, b).as_bound(reason)

        return Taken(
            most(x.scratch, y.scratch), most(x.held, y.held), most(x.peak, y.peak), rises=False
        )
