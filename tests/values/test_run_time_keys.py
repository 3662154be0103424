"""Dicts with run-time keys, sets and deques: as CPython's, and differentiated."""

from collections import Counter, defaultdict, deque

import numpy as np
import pytest
from whole_programs import WholePrograms, agrees

from mutad import CompileError, compile

programs = WholePrograms()
on = programs.on
X = (0.7, 1.3, 0.4, -0.6, 2.0)


@on(X)
def memo_of_tuples_in_a_recursion(x):
    memo = {}

    def paths(i, j):
        if i == 0 or j == 0:
            return x[0]
        if (i, j) in memo:
            return memo[i, j]
        memo[i, j] = paths(i - 1, j) + paths(i, j - 1) * x[1]
        return memo[i, j]

    return paths(3, 3) + len(memo)


@on(X)
def entries_deleted_in_order(x):
    d = {i: x[i] for i in range(x.size)}
    del d[1]
    k, v = d.popitem()
    s = d.setdefault(7, 2.0) + d.setdefault(0, 9.0) + d.get(1, 0.25) + d.pop(99, 0.5)
    d.update({9: x[2]})
    for a, b in d.items():
        s = s * 3 + a * b
    return s + k * v + sum(d.values()) * len(d)


@on(X)
def graph_walked_with_lists_a_set_and_words(x):
    graph = defaultdict(list)
    for a, b in [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]:
        graph[a].append(b)
    seen, sums, queue = set(), {}, deque([0])
    while queue:
        v = queue.popleft()
        if v in seen:
            continue
        seen.add(v)
        word = "even" if v % 2 == 0 else "odd"
        sums[word] = sums.get(word, 0.0) * 0.5 + x[v]
        queue.extend([w for w in graph[v] if w not in seen])
    return sums["even"] * sums["odd"] + sum(sorted(seen & {1, 3, 9}))


@on(X)
def greatest_of_each_window(x):
    q, recent, s = deque(), deque(maxlen=2), 0.0
    for i in range(x.size):
        while q and x[q[-1]] <= x[i]:
            q.pop()
        q.append(i)
        if q[0] <= i - 3:
            q.popleft()
        recent.append(x[q[0]] * (i + 1))
        s += sum(recent)
    recent.appendleft(s)
    recent.rotate(1)
    return s * recent[-1] + recent[0]


@on(X)
def arrays_under_keys(x):
    d, counts = {}, Counter([1, 2, 1, 3, 1, 2])
    for i in range(4):
        d[i % 2] = x * (i + 1)
    d[0] += 1.0
    k, n = counts.most_common(1)[0]
    return (d[0] * d[1]).sum() * n + x[k] + counts[17]


@on(X)
def lists_under_keys(x):
    d, q = {}, deque([x * 1.0, x * 2.0])
    for i in range(4):
        d[i % 2] = [1]
    for i in range(2):
        d[i] += [i, 5]
        d[i] *= 2
        q[i] += x[i]
    return sum(d[0]) * 10 + d[1][4] + len(d[1]) + (q[0] * q[1]).sum()


@on(X)
def missing_key(x):
    d = {}
    for i in range(3):
        d[2 * i] = x[i]
    return d[x.size]


@on(X)
def changed_while_a_loop_runs(x):
    d = {}
    for i in range(3):
        d[i] = x[i]
    for k in d:
        d[k + 10] = 0.0
    return d[0]


@pytest.mark.parametrize(("function", "point"), programs.cases, ids=programs.names)
def test_agrees_with_cpython(function, point):
    agrees(function, point)


def looped_over(x):
    return sum(x[k] for k in {int(x.size), 1})


def returned(x):
    d = {}
    for i in range(3):
        d[i] = x[i]
    return d


@pytest.mark.parametrize(
    ("function", "words"), [(looped_over, "loop over sorted(s)"), (returned, "list(d.keys())")]
)
def test_what_shows_an_order_or_leaves_is_refused(function, words):
    with pytest.raises(CompileError) as caught:
        compile(function)(np.array(X))
    assert words in str(caught.value)


def test_an_array_under_a_key_that_has_a_name_is_not_replaced_behind_it():
    def named_before(x):
        d = {}
        for i in range(4):
            d[i % 2] = x * (i + 1)
        y = d[0]
        d[0] += 1.0
        return y.sum()

    with pytest.raises(CompileError, match="one of the two is changed afterwards"):
        compile(named_before, cache=False)(np.ones(3))
