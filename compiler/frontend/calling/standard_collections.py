"""`bisect`, `heapq` and `statistics`, in Python: what compiled code runs in their place.

As in `standard`. A heap is laid out as CPython lays it out, for its list is the program's.
"""

# pyright: basic, reportOperatorIssue=false, reportIndexIssue=false

from __future__ import annotations

import math
from statistics import StatisticsError
from typing import Any

from ..library.written_matrices import refuse

# bisect


def bisect_left(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    first, last = lo, len(a) if hi is None else hi
    while first < last:
        middle = (first + last) // 2
        here = a[middle] if key is None else key(a[middle])
        if here < x:
            first = middle + 1
        else:
            last = middle
    return first


def bisect_right(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    first, last = lo, len(a) if hi is None else hi
    while first < last:
        middle = (first + last) // 2
        here = a[middle] if key is None else key(a[middle])
        if x < here:
            last = middle
        else:
            first = middle + 1
    return first


def insort_left(a: Any, x: Any) -> Any:
    a.insert(bisect_left(a, x), x)


def insort_right(a: Any, x: Any) -> Any:
    a.insert(bisect_right(a, x), x)


# heapq


def rise(heap: Any, top: Any, at: Any) -> Any:
    """The item at a place goes up, as long as it is less than its parent."""
    item = heap[at]
    while at > top and item < heap[(at - 1) // 2]:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = item


def sink(heap: Any, top: Any) -> Any:
    """The lesser children go up along a path, to its end; the item rises from there."""
    size = len(heap)
    item = heap[top]
    at = top
    child = 2 * at + 1
    while child < size:
        if child + 1 < size and not heap[child] < heap[child + 1]:
            child += 1
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = item
    rise(heap, top, at)


def heappush(heap: Any, item: Any) -> Any:
    heap.append(item)
    rise(heap, 0, len(heap) - 1)


def heappop(heap: Any) -> Any:
    if len(heap) == 0:
        raise IndexError("index out of range")
    found = heap[0]
    last = heap.pop()
    if len(heap) > 0:
        heap[0] = last
        sink(heap, 0)
    return found


def heapreplace(heap: Any, item: Any) -> Any:
    if len(heap) == 0:
        raise IndexError("index out of range")
    found = heap[0]
    heap[0] = item
    sink(heap, 0)
    return found


def heappushpop(heap: Any, item: Any) -> Any:
    found = item
    if len(heap) > 0 and heap[0] < item:
        found = heap[0]
        heap[0] = item
        sink(heap, 0)
    return found


def heapify(heap: Any) -> Any:
    for at in range(len(heap) // 2 - 1, -1, -1):
        sink(heap, at)


def nsmallest(n: Any, items: Any, key: Any = None) -> Any:
    return sorted(items, key=key)[: max(n, 0)]


def nlargest(n: Any, items: Any, key: Any = None) -> Any:
    return sorted(items, key=key, reverse=True)[: max(n, 0)]


# statistics


def of_floats(data: Any, least: Any, message: Any) -> Any:
    """The data as a list; StatisticsError where they are too few."""
    found = list(data)
    if len(found) < least:
        raise StatisticsError(message)
    if isinstance(found[0], int):
        refuse("statistics of ints, whose type depends on their values", "make floats of them")
    return found


def fmean(data: Any) -> Any:
    found = list(data)
    if len(found) == 0:
        raise StatisticsError("fmean requires at least one data point")
    return math.fsum(found) / len(found)


def mean(data: Any) -> Any:
    found = of_floats(data, 1, "mean requires at least one data point")
    return total(found) / len(found)


def total(found: Any) -> Any:
    """The sum, of the items' type."""
    return math.fsum(found) + 0.0 * found[0]


def median(data: Any) -> Any:
    found = sorted(data)
    if len(found) == 0:
        raise StatisticsError("no median for empty data")
    if isinstance(found[0], int):
        refuse("statistics of ints, whose type depends on their values", "make floats of them")
    middle = len(found) // 2
    if len(found) % 2 == 1:
        return found[middle]
    return (found[middle - 1] + found[middle]) / 2


def squares(found: Any) -> Any:
    """The sum of the squares of the distances from the mean."""
    center = total(found) / len(found)
    return total([(v - center) * (v - center) for v in found])


def variance(data: Any) -> Any:
    found = of_floats(data, 2, "variance requires at least two data points")
    return squares(found) / (len(found) - 1)


def pvariance(data: Any) -> Any:
    found = of_floats(data, 1, "pvariance requires at least one data point")
    return squares(found) / len(found)


def stdev(data: Any) -> Any:
    found = of_floats(data, 2, "stdev requires at least two data points")
    return math.sqrt(squares(found) / (len(found) - 1))


def pstdev(data: Any) -> Any:
    found = of_floats(data, 1, "pstdev requires at least one data point")
    return math.sqrt(squares(found) / len(found))
