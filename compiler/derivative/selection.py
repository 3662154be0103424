"""Which of several groups of values to save as a whole, before the rest is cut.

A group (the old contents of a store) makes every value in it free at one price. A vertex cut has no
node for that: such a value can be recovered in two ways, and a cut must close all ways. So the groups
are chosen first. Each choice is priced with the minimum cut of what it leaves. With few groups every
choice is tried, with many only the neighbours of the best so far.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Group = TypeVar("Group", bound=Hashable)
Member = TypeVar("Member", bound=Hashable)

FEW = 4
"""Of this many groups all choices are tried."""

PASSES = 3
"""Otherwise each group is tried in and out this many times at most, from each start."""


def worthwhile(
    price: Mapping[Group, float],
    groups_of: Mapping[Member, frozenset[Group]],
    value: Callable[[Member], float],
) -> list[Group]:
    """The groups that cost less than saving each of their members, one by one.

    A member that takes several groups counts for each of them while all are worth their price.
    """
    left = dict(price)
    while True:
        worth = dict.fromkeys(left, 0.0)
        for member, groups in groups_of.items():
            if groups <= left.keys():
                for group in groups:
                    worth[group] += value(member)
        dear = [group for group in left if left[group] >= worth[group]]
        if not dear:
            return list(left)
        for group in dear:
            del left[group]


def cheapest(
    groups: Sequence[Group], cost: Callable[[frozenset[Group]], float]
) -> frozenset[Group]:
    """The cheapest set of groups found; the cost of a set is asked once."""
    known: dict[frozenset[Group], float] = {}

    def priced(chosen: frozenset[Group]) -> float:
        if chosen not in known:
            known[chosen] = cost(chosen)
        return known[chosen]

    if len(groups) <= FEW:
        sizes = range(len(groups) + 1)
        subsets = itertools.chain.from_iterable(itertools.combinations(groups, n) for n in sizes)
        return min(map(frozenset[Group], subsets), key=priced)
    starts = (frozenset[Group](), frozenset(groups))
    return min((descended(start, groups, priced) for start in starts), key=priced)


def descended(
    start: frozenset[Group], groups: Iterable[Group], priced: Callable[[frozenset[Group]], float]
) -> frozenset[Group]:
    """From `start`, take in or leave out one group at a time while that is cheaper."""
    best = start
    for _ in range(PASSES):
        before = best
        for group in groups:
            best = min(best, best ^ {group}, key=priced)
        if best == before:
            break
    return best
