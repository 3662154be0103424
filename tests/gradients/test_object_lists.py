"""Gradients through lists of objects that grow."""

from dataclasses import dataclass

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@dataclass
class Particle:
    x: float
    v: float

    def step(self, dt):
        self.x += dt * self.v * self.x
        self.v -= dt * self.x


@dataclass
class Body:
    pos: np.ndarray
    vel: np.ndarray
    mass: float = 1.0


@on("f64[4] n", n="0 2")
def particles(x, n):
    ps = []
    for v in x:
        ps.append(Particle(v, v * x[0]))
    for _ in range(n):
        for p in ps:
            p.step(0.1)
        ps[0].v = ps[0].v * ps[-1].x
    return sum([p.x * p.v for p in ps])


@on("f64[4]")
def the_best_of_them(x):
    ps = [Particle(v, np.sin(v)) for v in x]
    best = ps[0]
    for p in ps:
        if p.v > best.v:
            best = p
    best.x = best.x * best.v
    return sum([p.x * p.x for p in ps])


@on("f64[3] n", n="1 3")
def bodies(x, n):
    made = [Body(x * (k + 1), x * x) for k in range(n)]
    for _ in range(2):
        for b in made:
            b.pos += 0.1 * b.vel * b.pos
            b.vel = b.vel - 0.1 * b.pos
            b.mass = b.mass * b.pos[0]
    return sum([b.pos.sum() * b.mass for b in made]) + made[0].vel[1]


@on("f64[5]")
def left_and_right(x):
    left = []
    right = []
    for v in x:
        p = Particle(v, v * v)
        if v > 0.1:
            left.append(p)
        else:
            right.append(p)
    return sum([p.x * p.v for p in left]) - sum([p.v for p in right]) * x[0]


TestGradients = gradient_tests(programs, tangents=True)
