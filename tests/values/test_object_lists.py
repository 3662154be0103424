"""Lists of objects that grow: objects move into the list, and their names with them."""

import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from python_oracle import Case, Programs

programs = Programs()
on = programs.on


@dataclass
class Particle:
    x: float
    v: float
    hits: int = 0

    def step(self, dt):
        self.x += dt * self.v
        self.hits += 1

    @property
    def energy(self):
        return 0.5 * self.v * self.v + self.x


@dataclass
class Body:
    pos: np.ndarray
    vel: np.ndarray
    mass: float = 1.0


class Pair(NamedTuple):
    a: float
    b: float


@on("f64[5] n", "f64[1] n", n="0 1 4")
def particles(x, n):
    ps = []
    for k in range(x.size):
        ps.append(Particle(x[k], x[k] * x[0]))
    for _ in range(n):
        for p in ps:
            p.step(0.5)
        ps[0].v = ps[0].v * ps[-1].x
    return [p.x for p in ps], [p.energy for p in ps], ps[-1].hits, len(ps)


@on("f64[5] n", n="-6 -5 -1 0 4 5")
def one_of_them(x, n):
    ps = [Particle(v, v * v) for v in x]
    p = ps[n]
    p.x = p.v * 3.0
    return [q.x for q in ps]


@on("f64[5]", "f64[1]")
def the_best_of_them(x):
    ps = [Particle(v, v * v) for v in x]
    best = ps[0]
    for p in ps:
        if p.energy > best.energy:
            best = p
    best.x = x[0] * 10.0
    best.hits += 2
    return [p.x for p in ps], [p.hits for p in ps], best is ps[-1], best is best, ps[0] is ps[-1]


@on("f64[4]")
def names_go_along(x):
    ps = []
    p = Particle(x[0], x[1])
    p.x = x[2]
    ps.append(p)
    p.v = x[3]
    ps[0].x += x[1]
    q = Particle(x[3], x[0])
    ps.append(q)
    ps[-1].hits = 7
    pair = (p, q)
    return p.x, p.v, ps[0].v, q.hits, q is ps[1], pair[0] is ps[0], bool(pair[1] == ps[0])


@on("f64[6]")
def left_and_right(x):
    left = []
    right = []
    for v in x:
        p = Particle(v, v * v)
        if v > 0.0:
            left.append(p)
        else:
            right.append(p)
    for p in right:
        p.x = p.x * p.x
    return [p.x for p in left], [p.x for p in right]


@on("f64[3] n", n="0 1 3")
def a_display_that_grows(x, n):
    ps = [Particle(x[0], x[1]), Particle(x[1], x[2])]
    for k in range(n):
        ps.append(Particle(ps[k].x * 2.0, ps[k].v))
        ps[-1].hits = k
    k = 0
    p = ps[0]
    while k < n:
        p.x += 1.0
        p = ps[k + 1]
        k += 1
    other = copy.copy(p)
    other.x = x[0]
    return [q.x for q in ps], p.hits, p.x


@on("f64[3] n", n="1 3")
def arrays_in_fields(x, n):
    bodies = [Body(x * k, x + k) for k in range(n)]
    for _ in range(3):
        for b in bodies:
            b.pos += 0.5 * b.vel
            b.vel = b.vel - 0.25 * b.pos
            b.vel[0] = 1.0
            b.mass = b.mass * 0.5 + b.pos[0]
    return np.stack([b.pos for b in bodies]), bodies[-1].vel, [b.mass for b in bodies]


@on("f64[4]")
def named_tuples(x):
    pairs = []
    for v in x:
        pairs.append(Pair(v, v * v))
    pairs.insert(0, pairs[1]._replace(a=x[3]))
    pairs.sort(key=lambda p: p.b)
    pairs.pop()
    return [p.a for p in pairs], pairs[-1].b


@on("f64[3] n", n="0 2")
def fields_that_become_floats(x, n):
    ps = []
    for k in range(n):
        ps.append(Particle(0, k))
    for p in ps:
        p.x = p.x + x[0]
        p.v += x[1]
    return [p.x for p in ps], [p.v for p in ps]


@on("f64[3] n", n="0 3")
def made_by_each_iteration(x, n):
    s = 0.0
    for k in range(n):
        ps = [Particle(x[0], x[1])]
        while len(ps) <= k:
            ps.append(Particle(ps[-1].v, ps[-1].x * x[2]))
        s += ps[-1].x
    return s


@on("f64[5]")
def few_objects_whose_shapes_are_known_one_by_one(x):
    bodies = [Body(x[k : k + 2].copy(), np.zeros(2), 1.0 + k) for k in range(3)]
    for b in bodies:
        for c in bodies:
            if b is not c:
                b.vel += (c.pos - b.pos) / c.mass
    s = 0.0
    for b in bodies:
        b.pos = b.pos + 0.1 * b.vel
        s += (b.pos * b.pos).sum()
    return s


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_python_agrees(case: Case) -> None:
    case.check()
