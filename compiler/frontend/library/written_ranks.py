"""The places of a vector's elements in order, in Python: see `written`.

Elements become integers that compare as they do (`bits.ordered`). What is sorted are numbers that hold the
first bits of such a key, and a place: a radix sort of three digits, which no data make slow. Elements with
the same first bits, and short vectors, are sorted by insertion.
"""

from __future__ import annotations

import numpy as np

from .plans import has_many_threads
from .ranges import Independent
from .written_matrices import Array


def rank(a: Array, order: Array, spare: Array) -> None:
    """The places of a vector's elements in order."""
    if has_many_threads():
        by_counting(ordered_bits(a), order, spare)
    else:
        by_bits(ordered_bits(a), order, spare)


def by_counting(keys: Array, order: Array, behind: Array) -> None:
    """Each element goes behind those that are smaller, or equal and before it: a thread each counts them."""
    n = keys.size
    for i in range(n):
        key, before = keys[i], 0
        for j in range(n):
            before += keys[j] < key or (keys[j] == key and j < i)
        behind[i] = before
    for i in Independent(n):  # pyright: ignore[reportGeneralTypeIssues, reportCallIssue]
        order[behind[i]] = i


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
