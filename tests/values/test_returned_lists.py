"""Lists of arrays, lists, tuples and objects that a function returns are those of CPython."""

from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from object_oracle import agrees

import mutad

Pair = namedtuple("Pair", "a b")


@dataclass
class Particle:
    x: float
    v: np.ndarray


@dataclass(frozen=True)
class Level:
    depth: int
    at: tuple[float, bool]


class Slotted:
    __slots__ = ("n", "x")

    def __init__(self, x, n):
        self.x, self.n = x, n


@dataclass
class Run:
    states: list[Any] = field(default_factory=list)
    t: float = 0.0


def arrays(x, n):
    scaled, sums, last = [], [], [x * 2.0]
    u = np.zeros(x.size)
    for i in range(n):
        scaled.append(x * i)
        u = u * 0.5 + x
        sums.append(u)
        if i % 2:
            last.append(last[-1] + 1.0)
        else:
            last.append(x[1:].copy() if n < 0 else x - i)
    views = []
    for i in range(n):
        views.append((x + i)[::-1])
    return scaled, sums, last, views, [np.outer(x, x) > 1.0 for _ in range(n)]


def numbers(x, n):
    tuples = [(v, i, v > 1.0, float(v)) for i, v in enumerate(x[:n])]
    pairs = []
    for i in range(n):
        pairs.append(Pair(i, (x[i], x * i)))
    return tuples, {"pairs": pairs, "few": [(1, 2.5)]}, [("a", i) for i in range(3)]


def lists(x, n):
    table = [[0.0] * 3 for _ in range(n)]
    ragged = [[] for _ in range(n)]
    for i in range(n):
        table[i][1] = float(i)
        for j in range(i):
            ragged[j].append(x[j] * i)
    for i in range(n):
        ragged[i % 2].append(x[i])
    tuples = [[(i, 0.5) for i in range(k)] for k in range(n)]
    return table, ragged, tuples, [[] for _ in range(n)], [[1] * n], table


def objects(x, n):
    particles, levels, slotted = [], [], []
    for i in range(n):
        particles.append(Particle(float(x[i]), x * i))
        levels.append(Level(i, (float(i), i > 1)))
        slotted.append(Slotted(x[i], i))
    for p in particles:
        p.x += 1.0
        p.v[0] = -1.0
    return Run(particles, 0.5), (levels, slotted)


def moved(x, n):
    rows, table, particles, pairs = [x - 1.0], [[], [2.0, 0.5], [0.5]], [], []
    for i in range(n):
        rows.insert(0, x * i)
        table.append([float(i)] * i)
        particles.append(Particle(-float(i), x + i))
        pairs.append((i, x * x))
    rows.pop()
    table.reverse()
    del table[1]
    particles.sort(key=lambda p: p.x)
    pairs.reverse()
    return rows, table, particles, pairs


def nothing(x, n):
    found = []
    for v in x[:n]:
        if v > 100.0:
            found.append(x * v)
    return [], found, [[]], [[], []]


def constants(x, n):
    names = ["a", "b"]
    return names, [x, names[1], 1, None], [s + "c" for s in names], "a" in names


def in_fields(run, x, n):
    states = []
    for i in range(n):
        states.append(x * i)
        run.t += 0.5
    run.states = states
    if x[0] > 10.0:
        raise ValueError("too large")
    return run


X = np.array([0.5, 1.5, 2.5])


@pytest.mark.parametrize(
    "function",
    [arrays, numbers, lists, objects, moved, nothing, constants],
    ids=lambda f: f.__name__,
)
def test_lists_come_back_as_in_cpython(function):
    for n in (3, 0):
        agrees(function, X, n, calls=2)


def test_lists_in_fields_of_arguments_come_back_as_in_cpython():
    for x in (X, X * 100.0):
        agrees(in_fields, Run([1.0]), x, 3, calls=2)


def test_each_array_owns_its_memory():
    scaled, sums, *_ = mutad.compile(arrays)(X, 3)
    assert all(a.flags.owndata and a.flags.writeable for a in (*scaled, *sums))
    scaled[0][:] = 9.0
    assert scaled[1].tolist() == X.tolist()


def test_an_item_that_is_twice_in_lists_of_places_is_refused_when_it_is():
    def halves(x, k):
        out = [x * 2.0, x * 3.0]
        out.insert(0, out[k])
        del out[1]
        return out

    compiled = mutad.compile(halves)
    assert [a.tolist() for a in compiled(X[:1], 0)] == [[1.0], [1.5]]
    with pytest.raises(NotImplementedError, match="append copies"):
        compiled(X[:1], 1)
