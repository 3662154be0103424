"""The places of a vector's elements in order, in Python: see `written`.

Elements become integers that compare as they do (`bits.ordered`). What is sorted are numbers that hold the
first bits of such a key, and a place: a radix sort of three digits, which no data make slow. Elements with
the same first bits, and short vectors, are sorted by insertion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .ranges import Independent
from .written_matrices import Array


def rank(a: Array, order: Array, spare: Array) -> None:
    """The places of a vector's elements in order."""
    by_bits(ordered_bits(a), order, spare)


def rank_slabs(a: Array, order: Array) -> None:
    """The places of elements in order along the second of three axes, for many threads.

    Runs of few elements are sorted by counting; then two and two of them become one, a thread for each place
    of the result (`merge`). So n elements take log(n) launches, and n log(n)^2 steps.
    """
    keys, n, columns = ordered_bits(a), a.shape[1], a.shape[2]
    by_counting(keys, order)
    width, other = RUN, np.empty(order.shape, np.int64)
    while width < n:
        other[...] = order
        merge(np.reshape(keys, keys.size), np.reshape(other, other.size), order, width, n, columns)
        width *= 2


RUN = 128
"""Elements that are sorted by counting."""


def by_counting(keys: Array, order: Array) -> None:
    """Each element goes behind those of its run that are smaller, or equal and before it."""
    behind = np.empty(keys.shape, np.int64)
    for r in range(keys.shape[0]):
        for i in range(keys.shape[1]):
            for c in range(keys.shape[2]):
                key, first = keys[r, i, c], i - i % RUN
                place = first
                for j in range(first, min(first + RUN, keys.shape[1])):
                    before = keys[r, j, c]
                    place += before < key or (before == key and j < i)
                behind[r, i, c] = place
    for r in Independent(keys.shape[0]):  # pyright: ignore[reportGeneralTypeIssues, reportCallIssue]
        for i in Independent(keys.shape[1]):  # pyright: ignore[reportGeneralTypeIssues, reportCallIssue]
            for c in Independent(keys.shape[2]):  # pyright: ignore[reportGeneralTypeIssues, reportCallIssue]
                order[r, behind[r, i, c], c] = i


def merge(keys: Array, runs: Array, order: Array, width: int, n: int, columns: int) -> None:
    """Two and two runs of that width become one: the element of a place is at a cut through both.

    The place has `low` elements of the first run before it, and the others are of the second. Bisection finds
    how many: the last of them is no larger than what comes next in the second run.
    """
    for r in range(order.shape[0]):
        for i in range(n):
            for c in range(columns):
                slab = np.int64(r) * n * columns + c
                first = np.int64(i) // (2 * width) * (2 * width)
                middle, end = np.minimum(first + width, n), np.minimum(first + 2 * width, n)
                low = np.maximum(i - first - (end - middle), 0)
                high = np.minimum(i - first, middle - first)
                while low < high:
                    half = (low + high) >> 1
                    one = known_element(runs, slab + (first + half) * columns)
                    other = known_element(runs, slab + (middle + i - first - 1 - half) * columns)
                    after = key_of(keys, slab, other, columns) < key_of(keys, slab, one, columns)
                    low, high = (low, half) if after else (half + 1, high)
                at, behind = first + low, middle + i - first - low
                one = known_element(runs, slab + np.minimum(at, n - 1) * columns)
                other = known_element(runs, slab + np.minimum(behind, n - 1) * columns)
                after = key_of(keys, slab, other, columns) < key_of(keys, slab, one, columns)
                is_second = behind < end and (at >= middle or after)
                order[r, i, c] = other if is_second else one


def key_of(keys: Array, slab: Any, place: Any, columns: int) -> Any:
    return known_element(keys, slab + place * columns)


def known_element(a: Array, place: Any) -> Any:
    """An element of a vector, at a place that is known to be in range."""
    return a[place]


def by_bits(keys: Array, order: Array, spare: Array) -> None:
    """By the first bits of keys, then by insertion.

    Where that would move places too often (many elements have the same first bits, and others behind) all
    bits of the keys count.
    """
    n = keys.size
    for i in range(n):
        order[i] = i
    rounds, width = 0, 8 if n < 4096 else DIGIT
    if MANY <= n < 1 << 64 - 3 * DIGIT:  # no place takes a bit of a key
        drop_equal_bits(keys)
        rounds = 1
    while True:
        for k in range(rounds):
            sort_by_bits(keys, order, spare, width, k < rounds - 1)
        if inserted(keys, order, 4 * n if rounds == 1 else n * n):
            break
        rounds, width = 2, DIGIT


MANY = 64
"""From so many elements on digits cost less than insertion."""
DIGIT = 11
"""Bits of a digit; three of them are more than half of a key."""
SIGN = -(2**63)


def ordered_bits(a: Array) -> Array:
    """Of each element an integer that compares as it does, the same for equal ones; NaN is the largest."""
    return a


def drop_equal_bits(keys: Array) -> None:
    """Shift keys such that they differ in their first bit."""
    differing, count = keys[0] ^ keys[0], 0
    for i in range(keys.size):
        differing |= keys[i] ^ keys[0]
    while count < 63 and differing << count >= 0:
        count += 1
    sign = SIGN if count > 0 else 0
    for i in range(keys.size):
        keys[i] = keys[i] << count ^ sign


def sort_by_bits(keys: Array, order: Array, spare: Array, width: int, last: bool) -> None:
    """Sort places by three digits of their keys, the first or the last ones: equal ones stay in order.

    A number holds these digits, and the place. The lowest digit comes first (LSD radix sort).
    """
    n, low = keys.size, 64 - 3 * width
    places, drop, sign = (1 << low) - 1, low if last else 0, 0 if last else SIGN
    other, first = np.empty(n, np.int64), np.empty(1 << DIGIT, np.int64)
    for i in range(n):
        spare[i] = (keys[order[i]] << drop ^ sign) & ~places | order[i]
    for at in range(low, 64, width):
        sort_by_digit(spare, other, first, 1 << width, at)
    for i in range(n):
        order[i] = spare[i] & places


def sort_by_digit(items: Array, other: Array, first: Array, count: int, low: int) -> None:
    """Sort by the bits from `low` on that make a number below `count`."""
    first[:count] = 0
    for i in range(items.size):
        first[items[i] >> low & count - 1] += 1
    if first[items[0] >> low & count - 1] == items.size:
        return
    total = 0
    for digit in range(count):
        here = first[digit]
        first[digit] = total
        total += here
    for i in range(items.size):
        digit = items[i] >> low & count - 1
        other[first[digit]] = items[i]
        first[digit] += 1
    items[:] = other


def inserted(keys: Array, order: Array, most: int) -> bool:
    """Move each place behind those before it that have no larger keys, in so many steps at most."""
    steps = 0
    for i in range(1, order.size):
        place, j = order[i], i
        key = keys[place]
        while j > 0 and keys[order[j - 1]] > key:
            order[j] = order[j - 1]
            j -= 1
        order[j] = place
        steps += i - j
        if steps > most:
            return False
    return True
