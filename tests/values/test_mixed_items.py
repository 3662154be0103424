"""Items that do not have one form: numbers or None, texts, tuples with either, arrays or None."""

from collections import deque
from dataclasses import dataclass

import numpy as np
import pytest
from whole_programs import WholePrograms, agrees

programs = WholePrograms()
on = programs.on


@dataclass
class Point:
    x: float


@on()
def none_behind_numbers(x):
    shown, grown, heads = [x[0], None, 1], [], deque()
    for v in x:
        grown.append(v)
        heads.append(2.0 * v)
    grown.append(None)
    heads.append(None)
    grown.insert(1, None)
    grown.extend(shown)
    grown.reverse()
    total = 0.0
    for v in grown + shown * 2 + grown[1:4]:
        if v is not None:
            total += v * x[1]
    while heads:
        v = heads.popleft()
        total += v**2 if v is not None else x[2]
    return total


@on()
def none_in_place_of_numbers(x):
    items, by_number = [v * 2.0 for v in x], {}
    for i in range(4):
        by_number[i] = i * x[1]
    items[1] = by_number[2] = None
    items[0], items[2] = items[2], None
    by_number.setdefault(7, None)
    kept = [v for v in items if v is not None]
    return sum(v * x[0] for v in by_number.values() if v is not None) + kept[0]


@on()
def none_in_tuples_lists_and_for_objects(x):
    pairs, rows, points = [(x[0], 1)], [[x[1]], [x[2], 1.0]], [Point(x[0])]
    pairs.append((x[1], None))
    rows[0].append(None)
    points.append(None)
    points.append(Point(x[2] ** 2))
    total = sum(a * b for a, b in pairs if b is not None)
    for row in rows:
        for v in row:
            if v is not None:
                total += v * x[0]
    for p in points:
        if p is not None:
            total += p.x * x[1]
    return total


@on()
def arrays_or_none(x):
    parts = [np.outer(x, x)[::2, 1]]
    parts.append(None)
    parts.append(x * 3.0)
    total = 0.0
    for part in parts:
        if part is not None:
            total += part[1] * part[0]
    return total


@on()
def what_the_first_build_takes_for_a_number(x):
    items, wide = [1], [1]
    for v in x:
        wide.append(v)
        items.append(None if v > 1.0 else v)
    first = items[1]
    return first * wide[2] if first is not None else wide[1]


@on()
def raises_as_python_does(x):
    items = [float(x[0])]
    items.append(None)
    return max(items)


@on()
def removes_from_a_list_that_never_had_an_item(x):
    items = []
    try:
        items.remove(x[0])
    except ValueError:
        return x[1] ** 2
    return 0.0


@on()
def asks_for_items_of_a_list_that_never_has_one(x):
    q, deep = [], deque()
    for i in range(x.size):
        while deep and x[deep[-1]] <= x[i]:
            deep.pop()
        if q and x[q[-1]] <= x[i]:
            q.pop()
    return x[1] ** 2


@on()
def classes_of_rows(x):
    rows = [[v] for v in x]
    return x[0] ** 2 if isinstance(rows[1], list) else 0.0


@pytest.mark.parametrize(("function", "point"), programs.cases, ids=programs.names)
def test_as_in_cpython_and_differences(function, point):
    agrees(function, point)
