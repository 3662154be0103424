"""Lists of lists as arguments: indexed at run time, changed, and still the caller's own lists."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from object_oracle import agrees

import mutad


@dataclass
class Graph:
    edges: list[Any]
    best: Any = None


def sums(table):
    s = 0.0
    for i in range(len(table)):
        for j in range(len(table[i])):
            s += table[i][j] * (i + j)
    return s, len(table)


def reached(graph, start):
    seen = [False] * len(graph)
    order, k = [start], 0
    seen[start] = True
    while k < len(order):
        for j in graph[order[k]]:
            if not seen[j]:
                seen[j] = True
                order.append(j)
        k += 1
    return order


def changed(table, k, v):
    table[k][0] = v
    table[k].append(v + 1)
    table[k - 1].append(1.5)
    table.append([v])
    for row in table:
        row.append(v)
    if v > 10.0:
        raise ValueError("too large")
    return table[k], sum(table[k - 1]), table


def symmetric(table):
    n = len(table)
    for i in range(n):
        for j in range(n):
            table[i][j] += table[j][i]
    return np.array(table).sum()


def weighted(graph, k):
    s = 0.0
    for j, w in graph[k]:
        s += j * w
    graph[k].append((7, 0.25))
    return s


def in_a_field(g, k):
    g.best = g.edges[k]
    g.edges[k].append(3)
    return g.edges[k]


def compared(a, b):
    made = [[v + 0.0] for v in (1.0, 2.0)]
    flat = [row[0] for row in a]
    return a == b, a < b, b == [[1.0], [2.0]], made == a, flat == CONSTANTS


def beside(table, row):
    table[0][0] = 5.0
    return sum(row)


CONSTANTS = [1.0, 2.0]


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (sums, [([[1.0, 2.0], [3.0]],), ([[1, 2], [3, 4]],), ([],), ([[], []],), ([[], [1.0]],)]),
        (reached, [([[1, 2], [3], [3], [0], []], 0), ([[k + 1] for k in range(300)] + [[]], 5)]),
        (
            changed,
            [
                ([[1.0, 2.0], [3.0, 4.0]], -1, 0.5),
                ([[1.0], [], [2.0]], 1, 0.5),
                ([[1.0], [2.0]], 1, 50.0),
                ([[1.0], [2.0]], 2, 0.5),
            ],
        ),
        (symmetric, [([[1.0, 2.0], [3.0, 4.0]],)]),
        (weighted, [([[(1, 0.5)], [(2, 0.5), (3, 1.5)]], 1)]),
        (compared, [([[1.0], [2.0]], [[1.0], [2.0]]), ([[1.0], [2.0]], [[1.0], [1.0, 3.0]])]),
        (in_a_field, [(Graph([[1], [2, 3]]), 1)]),
    ],
)
def test_tables_are_those_of_cpython(function, calls):
    for args in calls:
        agrees(function, *args)


def test_the_lists_in_a_table_stay_themselves():
    g = Graph([[1], [2, 3]])
    rows = list(g.edges)
    assert mutad.compile(in_a_field)(g, 1) is rows[1] is g.best is g.edges[1]
    assert g.edges[0] is rows[0]


def test_a_list_in_a_table_that_is_elsewhere_too_is_one_list():
    compiled, a = mutad.compile(beside), [[1.0], [2.0]]
    for table, row in ((a, a[0]), (a, a[1]), ([a[1], a[1]], a[1]), (a, [0.5]), (a, a[0])):
        expected = sum(row) if row is not table[0] else 5.0
        assert compiled(table, row) == expected
        assert table[0][0] == 5.0
