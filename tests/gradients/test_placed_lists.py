"""Gradients through lists of arrays, lists and objects whose items move from place to place."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


class Particle:
    def __init__(self, u, v):
        self.u, self.v = u, v
        self.alive = True

    def step(self, dt):
        self.u += dt * self.v * self.u
        if self.u > 0.9:
            self.alive = False


class Body:
    def __init__(self, pos, mass):
        self.pos, self.mass = pos, mass


@on("f64[3] n", n="5")
def a_window_of_states(x, n):
    history = [x.copy()]
    w = np.outer(x, x) + np.eye(3)
    s = 0.0
    for _ in range(n):
        y = np.sin(w @ history[-1]) * 1.5 + x * history[0]
        history.append(y.copy())
        if len(history) > 3:
            history.pop(0)
        s += sum([(h * h).sum() for h in history]) * x[1]
    return s + (history[0] * history[-1]).sum()


@on("f64[3] n", n="3")
def limited_memory(x, n):
    steps, changes = [], []
    g = np.sin(x) + x
    for k in range(n):
        d = g.copy()
        factors = []
        for s, y in zip(reversed(steps), reversed(changes)):
            a = (s @ d) / (y @ s)
            d = d - a * y
            factors.append(a)
        for s, y, a in zip(steps, changes, reversed(factors)):
            d = d + (a - (y @ d) / (y @ s)) * s
        steps.append(-0.3 * d)
        new = g * 1.3 + 0.2 * g * g - 0.1 * x
        changes.append(new - g)
        g = new
        if len(steps) > 2:
            steps.pop(0)
            changes.pop(0)
    return g @ steps[0] + steps[-1].sum()


@on("f64[3] n", n="4")
def items_overwritten_in_their_places(x, n):
    layers = [x * (k + 1) for k in range(3)]
    for _ in range(n):
        for i in range(3):
            layers[i] = np.tanh(layers[i] * layers[i - 1] + x)
        layers = [np.sin(v * layers[0]) for v in layers]
    return (np.stack(layers) ** 2).sum()


@on("f64[3] n", n="4")
def moved_and_shared(x, n):
    rows = [x * x * k for k in range(n + 1)]
    rows[0], rows[1] = rows[1], rows[0]
    a = rows[0]
    rows.reverse()
    a *= x[0]
    some = rows[1:4]
    some[0][1] = x[2] * some[1][0]
    del rows[0]
    both = rows + some
    both[-1][2] *= x[1]
    rows.insert(1, np.sin(x) * a)
    rows[2] = rows[0]
    rows[0][0] *= 3.0
    return sum([(r * r).sum() * (k + 1) for k, r in enumerate(rows)]) + sum([b.sum() for b in both])


@on("f64[4] n", n="3")
def a_simplex(x, n):
    simplex = [(float((x * k).sum()), x * k) for k in range(3)]
    for _ in range(n):
        simplex.sort(key=lambda t: t[0])
        worst = simplex[-1][1]
        centre = (simplex[0][1] + simplex[1][1]) * 0.5
        moved = centre + 0.7 * (centre - worst) + 0.1 * x * x
        simplex[-1] = (float((moved * moved).sum()), moved)
    best = min(simplex, key=lambda t: t[0])
    return best[0] * best[1][0] + simplex[1][1].sum()


@on("f64[5] n", n="9")
def from_one_list_to_another(x, n):
    active, done = [], []
    for v in x:
        active.append(Particle(v, v * v + 0.3))
    k = 0
    while active and k < n:
        p = active.pop(0)
        p.step(0.5)
        if p.alive:
            active.append(p)
        else:
            done.insert(0, p)
            p.v *= x[k % 5]
        k += 1
    active.sort(key=lambda p: p.v)
    active = [p for p in active if p.u > -5.0]
    return sum([p.u * (i + 1) for i, p in enumerate(done + active)]) + len(done) * x[0]


@on("f64[3,3]")
def elimination_with_rows_swapped(A):
    n = 3
    rows = [[A[i, j] for j in range(n)] for i in range(n)]
    d = 1.0
    for k in range(n):
        p = max(range(k, n), key=lambda i: abs(rows[i][k]))
        if p != k:
            rows[k], rows[p] = rows[p], rows[k]
            d = -d
        for i in range(k + 1, n):
            f = rows[i][k] / rows[k][k]
            for j in range(k, n):
                rows[i][j] -= f * rows[k][j]
        d *= rows[k][k]
    return d


@on("f64[6]")
def cells_of_objects(x):
    particles = [Particle(v, v * v) for v in x]
    cells = [[] for _ in range(3)]
    for p in particles:
        cells[min(int((p.u + 1.0) * 1.5), 2)].append(p)
    for i, cell in enumerate(cells):
        for p in cell:
            for q in cell:
                if p is not q:
                    p.v += q.u * p.u * (i + 1)
    cells[0].append(particles[0])
    cells[0][-1].u *= x[5]
    return sum([p.u * p.v for p in particles])


TestGradients = gradient_tests(programs, tangents=True)
