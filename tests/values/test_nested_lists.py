"""Lists of lists: even and ragged, with names for their items. CPython is the oracle of each."""

import numpy as np
import pytest
from python_oracle import Case, Programs

import mutad

programs = Programs()
on = programs.on


@on("f64[4]")
def arrays_of_named_lists(x):
    rows = [[1.0, 2.0], [3.0, x[0]]]
    a = np.array(rows)
    a[0, 0] = 7.0
    row = [x[1], 2.0]
    b = np.asarray([row, row])
    b[0] = 9.0
    return a, rows[0][0], b, row[0], np.array((row, x[:2])), np.array([[row], [row]])


@on("f64[4]")
def arrays_of_ragged_lists(x):
    rows = [[1.0], [2.0, x[0]]]
    return np.array(rows)


@on("f64[4]")
def arrays_of_ragged_rows(x):
    return np.array([[x, x], [x[1:], x]])


@on("f64[4] n", "i64[3] n", n="0 1 3")
def a_table(x, n):
    table = [[x[0] * 0] * n for _ in range(x.size)]
    for i in range(x.size):
        for j in range(n):
            table[i][j] += x[i] * j
            table[i][j - 1] *= 2
    return [sum(row) for row in table], len(table), [len(row) for row in table]


@on("f64[3] n", n="1 2")
def subscripts_out_of_range(x, n):
    table = [[v, v * 2.0] for v in x]
    return table[-n][n]


@on("f64[4] n", n="1 3")
def rows_that_have_names(x, n):
    rows = []
    for k in range(n):
        row = []
        for v in x:
            row.append(v * k)
        rows.append(row)
        row[0] = x[1]
        rows[-1][1] = 5.0
    first = rows[0]
    first[2] += x[3]
    again = rows[0]
    last = rows[-1]
    return list(first), again is first, last is first, last == first, row is last, last


@on("f64[5] n", n="1 2 5")
def buckets(x, n):
    near = [[] for _ in range(n)]
    for i in range(x.size):
        near[i % n].append(x[i])
        near[0].append(x[i] * i)
    near[n // 2].insert(0, x[0])
    near[-1] += [x[0], x[1]]
    near[0].pop()
    near[0].sort()
    total = [sum(a) for a in near]
    return total, [len(a) for a in near], near[0], max(near[-1]), near[n // 2][::-1]


@on("n", n="0 1 4")
def neighbours(n):
    adj = []
    for i in range(n):
        adj.append([])
    for i in range(n):
        for j in range(n):
            if (i + j) % 3 != 1:
                adj[i].append(j)
                adj[j].append(i)
    seen = [False] * n
    order = []
    queue = list(range(min(n, 1)))
    while queue:
        i = queue.pop(0)
        if seen[i]:
            continue
        seen[i] = True
        order.append(i)
        for j in adj[i]:
            if not seen[j]:
                queue.append(j)
    return order, [len(a) for a in adj]


@on("f64[2] n", n="0 1 5")
def pascal(x, n):
    rows = [[x[0]]]
    for k in range(n):
        last = rows[-1]
        new = [last[0]]
        for i in range(len(last) - 1):
            new.append(last[i] + last[i + 1] * x[1])
        new.append(last[-1])
        rows.append(new)
    return rows[-1], len(rows[n // 2])


@on("f64[3] n", n="0 2")
def a_display_of_rows(x, n):
    m = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
    for i in range(3):
        for j in range(3):
            m[i][j] *= x[j]
    best = m[n]
    for row in m:
        if sum(row) > sum(best):
            best = row
    best[0] = -1.0
    return m[0].copy(), m[1].copy(), m[2], np.array(m), best is m[2]


@on("f64[4] n", n="0 3")
def rows_of_tuples(x, n):
    edges = [[] for _ in range(3)]
    for k in range(x.size):
        edges[k % 3].append((k, x[k] * 2.0))
    s = 0.0
    u = n
    for v, w in edges[u % 3]:
        s += w * v
    k, w = edges[0][-1]
    return s, k, w


@on("f64[4] n", n="0 1 3")
def tables_of_an_iteration(x, n):
    s = 0.0
    for k in range(n):
        table = [[0.0] * (k + 1) for _ in range(n)]
        rows = [[x[i]] for i in range(n)]
        for i in range(n):
            table[i][k] = x[i] * x[k]
            rows[i].extend(table[i])
        s += sum([sum(r) for r in table]) + rows[-1][-1] + len(rows[0])
    return s


@on("f64[3] n", n="0 4")
def a_row_that_a_loop_goes_through(x, n):
    rows = [[v, v * v, 1.0] for v in x]
    row = rows[0]
    k = 0
    while k < n:
        row[k % 3] += x[1]
        row = rows[k % len(rows)]
        k += 1
    a, b, c = row
    row[:] = [c, a, b]
    del row[1:2]
    return rows[0], list(rows[-1]), [len(r) for r in rows]


def filled(rows, v):
    for row in rows:
        row.append(v)
    return rows[-1]


@on("f64[3]")
def passed_to_functions(x):
    rows = [[] for _ in range(2)]
    last = filled(rows, x[0])
    filled(rows, x[1])
    last.append(x[2])
    return rows[0][:], rows[1]


@on("f64[3] n", n="500")
def rows_that_move_again_and_again(x, n):
    rows = [[] for _ in range(7)]
    for k in range(n):
        rows[k * k % 7].append(x[k % 3] * k)
    return [sum(r) for r in rows], [len(r) for r in rows]


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_python_agrees(case: Case) -> None:
    case.check()


def test_an_array_of_a_table_is_the_table():
    @mutad.compile
    def table(x, n):
        rows = [[v * k for k in range(n)] for v in x]
        return np.array(rows), np.sum(rows, axis=0)

    a, s = table(np.arange(3.0), 2)
    np.testing.assert_array_equal(a, [[0, 0], [0, 1], [0, 2]])
    np.testing.assert_array_equal(s, [0, 3])
