"""Gradients through lists of lists: rows are memory like any other."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[4] n", n="1 3")
def a_table_of_alignments(x, n):
    """Every entry is stored to once and read twice."""
    d = [[0.0] * (n + 1) for _ in range(x.size + 1)]
    for i in range(1, x.size + 1):
        for j in range(1, n + 1):
            a = d[i - 1][j] * x[i - 1]
            b = d[i][j - 1] + x[j - 1] * x[i - 1]
            d[i][j] = max(a, b)
    return d[x.size][n]


@on("f64[5] n", n="1 3")
def buckets(x, n):
    near = [[] for _ in range(n)]
    for i in range(x.size):
        near[i % n].append(x[i] * x[i])
        near[0].append(x[i])
    near[0].pop()
    s = 0.0
    for k, one in enumerate(near):
        s += (k + 1) * sum(one) * sum(one)
    return s + near[-1][0] * near[0][-1]


@on("f64[3] n", n="0 3")
def pascal(x, n):
    rows = [[x[0]]]
    for _ in range(n):
        last = rows[-1]
        new = [last[0] * x[2]]
        for i in range(len(last) - 1):
            new.append(last[i] + last[i + 1] * x[1])
        new.append(last[-1])
        rows.append(new)
    return sum([v * v for v in rows[-1]])


@on("f64[4] n", n="2")
def one_row_or_another(x, n):
    rows = [[v, v * v] for v in x]
    best = rows[0]
    for k in range(len(rows)):
        row = rows[k]
        if row[1] > best[1]:
            best = row
        row[0] *= x[1]
    best[0] = best[0] * best[1]
    return sum([r[0] for r in rows])


@on("f64[4] n", n="3")
def weights_of_edges(x, n):
    edges = [[] for _ in range(n)]
    for k in range(x.size):
        edges[k % n].append((k, np.sin(x[k])))
    s = 0.0
    for u in range(n):
        for v, w in edges[u]:
            s += w * w * x[v] * x[u]
    return s


TestGradients = gradient_tests(programs, tangents=True)
