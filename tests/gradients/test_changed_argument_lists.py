"""Gradients with respect to lists of arrays and objects that change have the form of what comes in."""

from dataclasses import dataclass

import numpy as np
import pytest
from object_oracle import gradient_agrees

import mutad
from mutad import Const, Duplicated


@dataclass
class Particle:
    x: float
    v: float


@dataclass
class State:
    x: np.ndarray
    history: list


def arrays(n):
    return [np.arange(1.0, 4.0) + k for k in range(n)]


def particles(n):
    return [Particle(float(3 * k % 5), 1.0 + k) for k in range(n)]


def window(items, u, n):
    for k in range(n):
        items.append(u * items[-1])
        if len(items) > 2:
            items.pop(0)
        items[0] *= 1.0 + k
    return sum((a * a).sum() for a in items)


def exchanged(items, others, g):
    for k in range(len(items)):
        items[k] = items[k] - g * items[k]
    others.append(items.pop(0))
    items.append(others[0])
    others[0] *= g
    items[0], items[1] = items[1], items[0]
    return (items[0] * others[1]).sum() + (items[1] ** 2).sum()


def swarm(ps, limit):
    for p in ps:
        p.x += 0.5 * p.v * p.x
    ps.append(Particle(limit * ps[0].v, limit))
    ps.sort(key=lambda p: -p.x)
    ps.pop().v *= limit
    return sum(p.x * p.x * p.v for p in ps)


def remembers(s, n):
    for _ in range(n):
        s.x = s.x * s.x
        s.history.append(s.x.copy())
    s.history[0] *= s.x
    return sum(h.sum() for h in s.history)


def pushes(items, u):
    items[0] *= u
    items.append(u * u)
    items.reverse()
    return items[0].sum()


def partition(ps, p, limit):
    ps.append(p)
    near = [q for q in ps if q.x < limit]
    for q in near:
        q.x *= q.v
    ps[:] = near
    return sum(q.x * q.x for q in ps) * p.x


def shares(s, u):
    s.history.append(s.x)
    s.history.append(u)
    s.x = s.x * u
    s.history[-2] *= u
    return (s.history[0] * s.history[-1] * s.x).sum()


def rows_move(table, x):
    first = table.pop(0)
    first.append(x * x)
    table.append([x, 2.0 * x])
    table.sort(key=lambda row: -row[0])
    table[0][0] *= first[-1]
    table.insert(1, first)
    del table[0]
    return sum(row[0] * row[-1] for row in table)


def trained(layers, x, rate):
    for _ in range(2):
        y = np.tanh(layers[0] @ x + layers[1])
        for k in range(len(layers)):
            layers[k] = layers[k] - rate * y.sum() * layers[k]
        layers[1] *= y
    return sum((w * w).sum() for w in layers)


@pytest.mark.parametrize(
    ("function", "args", "wrt"),
    [
        (window, (arrays(2), np.array([0.5, 1.0, 2.0]), 3), ("items", "u")),
        (exchanged, (arrays(2), arrays(1), np.array([0.5, 1.0, 2.0])), ("items", "others", "g")),
        (swarm, (particles(2), 1.1), ("ps", "limit")),
        (trained, ([np.eye(2, 3), np.ones(2)], np.ones(3), 0.1), ("layers", "x", "rate")),
        (partition, (particles(2), Particle(1.5, 0.5), 3.5), ("ps", "p")),
        (shares, (State(np.array([0.5, 1.5]), []), np.array([2.0, 3.0])), ("s", "u")),
        (rows_move, ([[1.0, 2.0], [4.0, 3.0], [2.0, 6.0]], 0.5), ("table", "x")),
        (remembers, (State(np.array([0.5, 1.5]), []), 2), 0),
    ],
)
def test_gradients(function, args, wrt):
    gradient_agrees(function, *args, wrt=wrt)


def test_one_array_in_two_places_has_one_gradient():
    x = np.array([1.0, 2.0])
    f = mutad.compile(pushes, grad=True)
    first, second = f.grad([x, x], np.ones(2))
    assert np.shares_memory(first, second)


def test_cotangents_are_of_the_list_that_is_left():
    f = mutad.compile(pushes, grad=True)
    items, u = [np.array([1.0, 2.0]), np.array([3.0, 4.0])], np.array([0.5, 2.0])
    _, back = f.vjp(items, u, wrt=("items", "u"))
    bars = [np.array([1.0, 2.0]), np.array([10.0, 20.0]), np.array([100.0, 300.0])]
    (first, second), d_u = back(1.0, items=bars)
    np.testing.assert_array_equal([first, second, d_u], [[50, 600], [10, 20], [102, 612]])
    with pytest.raises(ValueError, match="a list of 3 items has 2 cotangents"):
        back(1.0, items=bars[:2])
    shadows, u_bar = [np.array([1.0, 1.0]), np.zeros(2)], np.zeros(2)
    items = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
    f.pullback(Duplicated(items, shadows), Duplicated(u, u_bar), cotangent=1.0)
    np.testing.assert_array_equal([*shadows, u_bar], [[0.5, 2], [0, 0], [2, 6]])


def test_cotangents_of_items_that_are_assigned():
    f = mutad.compile(trained, grad=True)
    layers = [np.eye(2, 3), np.ones(2)]
    whole = f.grad([np.eye(2, 3), np.ones(2)], np.ones(3), 0.1)
    _, back = f.vjp(layers, np.ones(3), 0.1)
    for mine, theirs in zip(back(0.0, layers=[2.0 * w for w in layers]), whole, strict=True):
        np.testing.assert_allclose(mine, theirs)
    shadows = [2.0 * w for w in layers]
    f.pullback(Duplicated([np.eye(2, 3), np.ones(2)], shadows), Const(np.ones(3)), Const(0.1))
    for mine, theirs in zip(shadows, whole, strict=True):
        np.testing.assert_allclose(mine, theirs)


def picked(ps, x):
    p = ps.pop(0)
    ps.append(Particle(x * p.x, p.v))
    p.x = p.x * x
    return p, ps[-1]


def test_items_that_are_returned_are_those_of_the_list():
    f = mutad.compile(picked, grad=True)
    ps = particles(2)
    mine = list(ps)
    (p, last), back = f.vjp(ps, 2.0, wrt=("ps", "x"))
    assert p is mine[0]
    assert ps[0] is mine[1]
    assert last is ps[1]
    bars = (Particle(1.0, 0.0), Particle(10.0, 0.0))
    first, second = back(bars, ps=[Particle(0.0, 1.0), Particle(0.0, 5.0)])[0]
    assert (first.x, first.v, second.x, second.v) == (22.0, 5.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="use vjp"):
        f.pullback(Duplicated(ps, particles(2)), Const(2.0), cotangent=bars)


def test_cotangents_of_tables_whose_lists_move() -> None:
    f = mutad.compile(rows_move, grad=True)
    table = [[1.0, 2.0], [4.0, 3.0], [2.0, 6.0]]
    _, back = f.vjp(
        table, 0.5, wrt=("table", "x")
    )  # leaves [1, 2, .25], [2, 6], [.5, 1]; drops [4 * .25, 3]
    bars = [[1.0, 2.0, 3.0], [10.0, 20.0], [100.0, 200.0]]
    assert back(0.0, table=bars) == ([[1.0, 2.0], [0.0, 0.0], [10.0, 20.0]], 3.0 + 100.0 + 400.0)
    with pytest.raises(ValueError, match="use vjp"):
        f.pullback(Duplicated([[1.0, 2.0], [4.0, 3.0]], [[1.0, 0.0], [0.0, 0.0]]), Const(0.5))
