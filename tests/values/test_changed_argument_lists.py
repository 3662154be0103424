"""Lists of arrays and objects that are arguments and change: what is kept are the caller's very items."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from object_oracle import outcome, parts_of

import mutad


@dataclass
class Particle:
    x: float
    v: float


@dataclass
class Body:
    pos: np.ndarray
    mass: float


@dataclass
class State:
    x: np.ndarray
    history: list


def items_of(value: Any) -> list[Any]:
    """All lists, arrays and objects in a value."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, list | tuple | dict):
        inner = value.values() if isinstance(value, dict) else value
        return [value, *(one for item in inner for one in items_of(item))]
    return [value, *items_of(list(vars(value).values()))[1:]] if hasattr(value, "__dict__") else []


def agrees(function: Callable[..., Any], *args: Any) -> None:
    """The compiled function does what CPython does, to the items that the arguments had, too."""
    found = list[Any]()
    for called in (function, mutad.compile(function)):
        mine = copy.deepcopy(args)
        before = items_of(mine)
        result = outcome(called, mine)
        found.append({**result, **parts_of([mine, before], "before", {})})
    expected, actual = found
    np.testing.assert_equal(actual, expected)


def arrays(n):
    return [np.arange(1.0, 4.0) + k for k in range(n)]


def particles(n):
    return [Particle(float(3 * k % 5), 1.0 + k) for k in range(n)]


def window(history, u, n):
    for k in range(n):
        u = u * 0.5
        history.append(u.copy())
        if len(history) > 3:
            history.pop(0)
        history[0] += k
    return history[-1]


def descent(layers, g, rate):
    for k in range(len(layers)):
        layers[k] = layers[k] - rate * g
    layers[0] *= 2.0
    return sum((w * w).sum() for w in layers)


def reordered(items, m):
    first = items.pop(0)
    first += 1.0
    m.append(first)
    items.append(m[0])
    items.reverse()
    items[0], items[1] = items[1], items[0]
    items[0] += 10.0
    del items[-1]
    m.insert(1, items[0] * 2.0)
    return first


def repeated(items):
    items *= 2
    items += [items[0] + 1.0]
    items[2][0] = 7.0
    return len(items), items[1:3]


def bubbles(items):
    for i in range(len(items)):
        for j in range(len(items) - 1 - i):
            if items[j][0] > items[j + 1][0]:
                items[j], items[j + 1] = items[j + 1], items[j]


def kept_name(items, g):
    a = items[0]
    items[0] = a - g
    a *= 3.0
    items[0] += a


def swarm(ps, limit):
    for p in ps:
        p.x += 0.5 * p.v
    ps.append(Particle(limit, 0.0))
    ps.sort(key=lambda p: -p.x)
    fastest = ps[1]
    i = 0
    while i < len(ps):
        if ps[i].x > limit:
            del ps[i]
        else:
            i += 1
    fastest.v = -1.0
    return fastest


def leads(ps, p):
    ps.sort(key=lambda q: q.x)
    p.x += 10.0
    ps.insert(0, Particle(p.x, 0.0))
    ps[0].v = ps[-1].x
    return ps[0]


def bodies_sorted(bodies, dt):
    bodies.sort(key=lambda b: -b.mass)
    for b in bodies:
        b.pos += dt * b.mass
    bodies[0].pos = bodies[1].pos * 2.0
    bodies.append(Body(bodies[0].pos + 1.0, 9.0))
    bodies[-1].pos[0] = bodies.pop(0).mass


def remembers(s, n):
    for _ in range(n):
        s.x = s.x * 0.5
        s.history.append(s.x.copy())
    s.history[0] += 1.0
    return s.history[-1].sum()


def logs(d, u):
    d["log"].append(u * 2.0)
    d["log"].reverse()
    d["log"][0][0] = 5.0


def pairs(layers, g):
    w, b = layers.pop(0)
    layers.append((w * 2.0, b - g))
    w += 1.0
    layers.reverse()


def helps(items, u):
    items.append(u.copy())
    items[0] = u * 2.0
    return items


def called(items, u):
    m = helps(items, u)
    m[-1] += 1.0
    return m


def midway(items, ps, k):
    for i in range(5):
        items.append(items[-1] * 2.0)
        items[0] += 1.0
        ps.append(Particle(1.0 * i, 2.0))
        ps[0].x += 1.0
        ps.sort(key=lambda p: -p.x)
        if i == k:
            items[10][0] = 1.0
        items.pop(0)


def partition(ps, p, limit):
    near, far = [], []
    ps.append(p)
    for q in ps:
        q.x *= 1.5
        if q.x < limit:
            near.append(q)
        else:
            far.append(q)
    ps[:] = far
    near.sort(key=lambda q: q.x)
    ps += near
    return near


def shares(s, u):
    s.history.append(s.x)
    s.history.append(u)
    s.x = s.x + u
    s.history[-2] *= 2.0
    u += 1.0


def rows_move(table, x):
    first = table.pop(0)
    first.append(x)
    table.append([x, 2.0 * x])
    table.sort(key=lambda row: -row[0])
    table[0].append(first[0])
    table[0], table[-1] = table[-1], table[0]
    table.insert(1, first)
    del table[0]
    return first, [row for row in table if len(row) > 2]


def trained(layers, x, steps, rate):
    for _ in range(steps):
        y = x
        for k in range(0, len(layers), 2):
            y = np.tanh(layers[k] @ y + layers[k + 1])
        for k in range(len(layers)):
            layers[k] = layers[k] - rate * y.sum() * layers[k]
    layers[-1][0] = 3.0
    return layers[1]


def assigned(items, ps, c):
    for i, a in enumerate(items):
        if i + 1 < len(items):
            items[i + 1] = items[i + 1] + a
    if c > 0:
        items[0] = items[1]
    items[0] += 1.0
    ps[0], ps[1] = ps[1], Particle(c, ps[0].x)
    ps[0].x += 1.0
    items[3] = items[0]


def mirrored(items, n):
    for _ in range(n):
        items.reverse()
    return len(items)


def renamed(items, n):
    other = items
    for _ in range(n):
        other = items
        other[0] = other[0] * 2.0
    items[0] = items[0] + 1.0
    return other[0].sum()


def stacked(items, u):
    items.append(u * 2.0)
    whole = np.stack(items), np.concatenate(items)
    items.pop(0)
    return whole, np.array(items), sum(items)


PROGRAMS = [
    (window, (arrays(2), np.ones(3), 4)),
    (descent, (arrays(3), np.ones(3), 0.1)),
    (descent, ([np.ones(3), np.ones((2, 3)).sum(0), np.array([1.0, 2.0, 3.0])[::-1]], 2.0, 0.1)),
    (reordered, (arrays(3), arrays(2))),
    (repeated, (arrays(2),)),
    (bubbles, (arrays(4)[::-1],)),
    (kept_name, (arrays(2), np.ones(3))),
    (swarm, (particles(4), 3.0)),
    (bodies_sorted, ([Body(np.arange(2.0) + k, 3.0 * k % 5) for k in range(3)], 0.5)),
    (remembers, (State(np.ones(2), [np.zeros(2)]), 2)),
    (remembers, (State(np.ones(2), []), 2)),
    (logs, ({"log": [np.ones(2), np.zeros(2)], "t": 1.0}, np.ones(2))),
    (pairs, ([(np.ones(2), np.ones(2)), (np.zeros(2), np.arange(2.0))], np.full(2, 0.1))),
    (called, (arrays(2), np.ones(3))),
    (midway, (arrays(2), particles(2), 2)),
    (trained, ([np.eye(2, 3), np.ones(2), np.ones((3, 2)), np.zeros(3)], np.ones(3), 3, 0.1)),
    (assigned, (arrays(3), particles(2), 1.0)),
    (assigned, (arrays(3), particles(2), -1.0)),
    (renamed, (arrays(2), 2)),
    (stacked, (arrays(2), np.ones(3))),
    (mirrored, (arrays(3), 1)),
    (mirrored, (arrays(2), 0)),
    (partition, (particles(4), Particle(1.5, 0.0), 3.0)),
    (partition, ([], Particle(1.5, 0.0), 3.0)),
    (shares, (State(np.ones(2), [np.zeros(2)]), np.arange(2.0))),
    (rows_move, ([[1.0], [4.0, 3.0], [2.0, 6.0]], 0.5)),
]


@pytest.mark.parametrize(("function", "args"), PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_the_callers_list_is_what_cpython_leaves(function: Any, args: tuple[Any, ...]) -> None:
    agrees(function, *args)


def test_what_is_in_a_list_and_is_found_elsewhere_is_one_thing() -> None:
    items, ps = arrays(3), particles(3)
    agrees(reordered, items, items)
    agrees(reordered, [items[0], items[0], items[1]], [items[1], items[2]])
    agrees(leads, ps, ps[1])
    x = np.arange(1.0, 5.0)
    for change in (window, mutad.compile(window)):
        whole = x.copy()
        items = [whole, whole[1:], np.zeros(4)]
        change(items, np.ones(4), 1)
        assert items[0].base is whole
        np.testing.assert_array_equal(whole, x)
