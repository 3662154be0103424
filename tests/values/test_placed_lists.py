"""Lists of arrays, lists and objects whose items move from place to place, and into other lists."""

from dataclasses import dataclass

import numpy as np
import pytest
from python_oracle import Case, Programs

programs = Programs()
on = programs.on


class Particle:
    def __init__(self, u, v):
        self.u, self.v = u, v
        self.alive = True

    def step(self, dt):
        self.u += dt * self.v
        if self.u > 1.0:
            self.alive = False


@dataclass
class Point:
    x: float
    y: float


@on("f64[3] n", n="0 3")
def inserted_in_an_empty_list(x, n):
    rows = []
    for i in range(n):
        rows.insert(0, x * i)
    rows.append(x)
    return rows[0].sum(), np.stack(rows), len(rows)


@on("f64[3] n", "f32[3,2] n", n="0 4")
def arrays_that_move(x, n):
    rows = [x * k for k in range(n + 2)]
    rows[0], rows[-1] = rows[-1], rows[0]
    a = rows[0]
    rows.reverse()
    a[0] = 7.0
    some = rows[1:4]
    some[0][1] = 5.0
    del rows[0]
    both = rows + some
    both[-1][2] += 1.0
    both *= 2
    copies = rows.copy()
    rows.clear()
    rows.append(x + 0.5)
    b = copies.pop(0)
    rows.extend(copies)
    rows[0:1] = [b, b]
    rows[1][0] = -1.0
    return np.stack(rows), np.array(both), np.stack(copies[-1:] + rows[::2]), b * 2.0


@on("f64[3] n", n="0 5")
def a_window(x, n):
    history = [x.copy()]
    s = 0.0
    for k in range(n):
        y = np.sin(history[-1]) + x * k
        history.append(y)
        y[0] += 0.5
        if len(history) > 3:
            history.pop(0)
        history = [history[-1]] + history[:-1]
        for a, b in zip(history[:-1], history[-2:], strict=False):
            s += (a * b).sum()
    return s, np.stack(history[-2:]), sum(history[-2:])


@on("f64[3]")
def items_overwritten(x):
    rows = [x * k for k in range(3)]
    a = rows[1]
    rows[1] = x + 5.0
    rows[1][0] = 3.0
    buffers = [x.copy(), np.zeros(3)]
    for k in range(3):
        buffers[1][:] = buffers[0] * 0.5 + k
        buffers[0], buffers[1] = buffers[1], buffers[0]
    y = x * 2.0
    rows[0] = y
    y[2] = 8.0
    rows[-1] = rows[0]
    rows[-1][1] = 6.0
    return a.sum(), np.stack(rows), buffers[0] - buffers[1], y


@on("f64[4] n", n="1 6")
def overwritten_and_read(x, n):
    layers = [x * (k + 1) for k in range(3)]
    for t in range(n):
        for i in range(3):
            layers[i] = (layers[i] + t) / (1.0 + layers[i - 1] * layers[i - 1])
        layers[t % 3] = layers[0] + layers[-1]
    return np.stack(layers)


@on("f64[4] n", n="0 3")
def all_items_anew(x, n):
    states, few = [x * (k + 1) for k in range(n + 1)], [x, x + 1.0]
    s = 0.0
    a = states[0]
    for t in range(3):
        states = [v * v + x for v in states if v.sum() > -2.0 or t > 1]
        s += a.sum()
        if states:
            a = states[0]
        states.append(x * 2.0)
        states[-1][0] = 3.0
        few = [v * 2.0 for v in few if v.sum() > -1000.0]
        if t == 1:
            few = [x * 0.5]
        else:
            few.append(x * t)
    return np.stack(states), s, np.stack(few)


@on("f64[3] n", n="4")
def the_best_and_the_worst(x, n):
    rows = [np.cos(x * k * 3) for k in range(n)]
    best = min(rows, key=lambda v: v.sum())
    ranked = sorted(rows, key=lambda v: -v[1])
    best[0] = 3.0
    pairs = [(float(v[0]), v) for v in ranked]
    pairs.sort(key=lambda p: p[0], reverse=True)
    pairs[-1] = (0.5, x + 1.0)
    pairs.append(pairs[0])
    pairs[0][1][2] = 9.0
    f, v = max(pairs, key=lambda p: p[1].sum())
    return np.stack(ranked), [p[0] for p in pairs], np.stack([p[1] for p in pairs]), f, v * 1.0


@on("f64[6] n", n="0 5")
def particles_that_leave(x, n):
    active, done = [], []
    for v in x:
        active.append(Particle(v, v * v + 0.3))
    for _ in range(n):
        if not active:
            break
        p = active.pop(0)
        p.step(0.5)
        if p.alive:
            active.append(p)
        else:
            done.insert(0, p)
    for p in active:
        p.step(0.25)
    active = [p for p in active if p.alive]
    first = done[-1] if done else active[0]
    first.v = 10.0
    if first in active:
        active.remove(first)
    return [p.u for p in active], [p.v for p in done], first in done, len(active)


@on("f64[6]")
def points_in_order(x):
    points = [Point(v * (v + 1.0), v) for v in x]
    points.sort(key=lambda p: p.x)
    other = sorted(points, key=lambda p: -p.y)
    other[0].x = x[0]
    points[0], points[2] = points[2], points[0]
    points.insert(1, Point(x[1], x[2]))
    del points[-1]
    highest = max(points, key=lambda p: p.x)
    highest.y = x[3]
    found = Point(x[1], x[2])
    places = points.count(found), points.index(highest)
    free = [points.pop(), points.pop(0)]
    points += free
    free[0].y *= 2.0
    return [p.x for p in points], [p.y for p in other], places, found in points, points[0] in free


@on("f64[6] n", n="0 1")
def not_in_the_list(x, n):
    points = [Point(v, v) for v in x]
    try:
        points.remove(Point(x[n], x[0]))
        points.insert(0, Point(0.5, x[1]))
        points.pop(17)
    except IndexError:
        points.append(points[1])
        points[-1].x = x[2]
    return [p.x for p in points], len(points)


@on("f64[5]")
def lists_that_move(x):
    rows = [[v, v * v] for v in x]
    rows.insert(0, [x[0]])
    rows.reverse()
    m = rows[2]
    rows[0], rows[1] = rows[1], rows[0]
    rows.append(m)
    m.append(x[3])
    rows[3] = [x[0], x[1], x[2]]
    part = rows[1:4] + rows[:2]
    part[0][0] = x[4]
    rows.remove([x[0], x[1], x[2]])
    even = [[v, v] for v in x]
    even[0], even[1] = even[1], even[0]
    even.sort(key=lambda r: r[0])
    return [sum(r) for r in rows], [len(r) for r in part], rows[-1][2], m in rows, np.array(even)


@on("f64[5] n", n="5")
def neighbours(x, n):
    near = [[] for _ in range(n)]
    for i in range(n):
        for j in range(n):
            if x[i] * x[j] > 0.0 and i != j:
                near[i].append(j)
    if near[0]:
        near[0].remove(near[0][-1])
    near[1].insert(0, 17)
    near[1], near[2] = near[2], near[1]
    return [len(r) for r in near], [sum(r) for r in near]


@on("f64[6]")
def cells_of_objects(x):
    particles = [Particle(v, 1.0) for v in x]
    cells = [[] for _ in range(3)]
    for p in particles:
        cells[min(int((p.u + 1.0) * 1.5), 2)].append(p)
    for i, cell in enumerate(cells):
        for p in cell:
            p.u += i * 10
    cells[0].append(particles[1])
    cells[0][-1].v = 9.0
    return [p.u for p in particles], [p.v for p in particles], [len(c) for c in cells]


@on("f64[6]")
def a_heap(x):
    heap, out = [], []
    for v in x:
        heap.append((float(np.sin(9 * v)), Particle(v, 1.0)))
        i = len(heap) - 1
        while i > 0 and heap[i][0] < heap[(i - 1) // 2][0]:
            j = (i - 1) // 2
            heap[i], heap[j] = heap[j], heap[i]
            i = j
    while heap:
        heap[0], heap[-1] = heap[-1], heap[0]
        p = heap.pop()[1]
        out.append(p)
        p.u *= len(out)
        i = 0
        while 2 * i + 1 < len(heap):
            j = 2 * i + 1
            if j + 1 < len(heap) and heap[j + 1][0] < heap[j][0]:
                j += 1
            if heap[i][0] <= heap[j][0]:
                break
            heap[i], heap[j] = heap[j], heap[i]
            i = j
    return [p.u for p in out]


@on("f64[3] n", n="0 -1")
def one_list_or_array_several_times(x, n):
    row = list(x)
    rows = [row] * 3
    rows[n][0] = x[1]
    rows.append(rows[0])
    rows[-1][2] = x[0]
    arrays = [x * 1.0] * 2
    arrays[n][1] = 5.0
    arrays.insert(1, arrays[0])
    arrays[-1] *= 3.0
    return [sum(r) for r in rows], row[2], np.stack(arrays)


@on("f64[3] n", n="0 2")
def changed_displays(x, n):
    some = [1.0, 2.0]
    found = 2.0 in some
    for _ in range(n):
        some[1] = 3.0
    return found, 2.0 in some, 3.0 in some


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_python_agrees(case: Case) -> None:
    case.check()
