"""`items[k]` of a list or tuple of arrays or objects, where `k` is known at run time: the item itself."""

from dataclasses import dataclass

import numpy as np
import pytest
from object_oracle import agrees

import mutad


@dataclass
class Body:
    x: float
    v: np.ndarray
    steps: int = 0

    def step(self, dt):
        self.x += dt * float(self.v.sum())
        self.steps += 1
        self.v *= 2.0

    @property
    def energy(self):
        return self.x * self.v[0]


WEIGHTS = [np.ones(3), np.arange(3.0)]


def layers_of_several_shapes(params, x):
    for i in range(len(params)):
        w, b = params[i]
        x = np.maximum(w @ x + b, 0.0)
    for i in reversed(range(len(params) - 1)):
        x = params[i][0] @ x[: params[i + 1][0].shape[1]]
    return x


def leaves_the_loop(params, x):
    i = 0
    while i < len(params):
        x = np.abs(params[i] @ x)
        i += 1
    for i in range(1, len(params)):
        if i % 2:
            continue
        x = params[i] @ x + params[i - 1][0, 0]
        if x[0] > 1.0:
            break
    return x, [p.sum() for p in params], sum(params[i].sum() for i in range(len(params)))


def writes(ws, k, x):
    ws[k][0] = 5.0
    ws[k] += 1.0
    ws[k - 1][...] *= 3.0
    w = ws[k]
    w[1:] = w[:-1]
    s = 0.0
    for j in range(9):
        v = ws[(j * 7) % len(ws)]
        v[0] *= 1.5
        s += (v * x[j % x.size]).sum()
    return s, w is None, w[1:], ws[k]


def names_of_one_array(a, b, c, n):
    ws, pair = [a, b, c], (a, c)
    for i in range(n):
        ws[i % 3][0] += i
        pair[i % 2][1] -= ws[(i + 1) % 3][0]
    a, b = ws[n % 3], ws[(n + 1) % 3]
    for _ in range(3):
        a, b = b, a
        a[0] += b[1]
    return a.sum(), WEIGHTS[n % 2] * 2.0


def numbers_beside_arrays(pairs, k):
    w, c = pairs[k]
    w += c
    return w.sum() * pairs[k][1]


def optimizer(params, grads, moments, rate):
    for i in range(len(params)):
        moments[i][...] = 0.9 * moments[i] + 0.1 * grads[i]
        params[i] -= rate * moments[i]


def objects(bodies, k, dt):
    p = bodies[k]
    p.step(dt)
    bodies[k - 1].x = 3.0
    bodies[k].v = bodies[k].v + 1.0
    bodies[k].v[0] += 1.0
    total = 0.0
    for j in range(k * 4):
        bodies[(j * 3) % len(bodies)].x += 0.5
        bodies[j % 2].steps -= j
        total += bodies[(j * 5) % len(bodies)].energy
    for i in range(len(bodies)):
        for j in range(i + 1, len(bodies)):
            bodies[i].v += bodies[j].x
    return p.x + p.energy + total


def arrays(*shapes):
    rng = np.random.default_rng(1)
    return [rng.integers(-4, 5, size=shape) / 4 for shape in shapes]


def bodies():
    return [Body(0.5, np.array([1.0, 0.5])), Body(-0.25, np.array([0.25])), Body(1.5, np.ones(3))]


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (
            layers_of_several_shapes,
            [(list(zip(arrays((3, 3), (4, 3)), arrays(3, 4), strict=True)), np.ones(3))],
        ),
        (leaves_the_loop, [(arrays((3, 3), (3, 3), (3, 3)), np.ones(3)), ([], np.ones(3))]),
        (writes, [(arrays(3, 2, 5), k, np.ones(4)) for k in (0, 2, -2, 3, -4)]),
        (names_of_one_array, [(*arrays(3, 3, 3), n) for n in (0, 7)]),
        (numbers_beside_arrays, [([(np.ones(3), 0.5), (np.ones(2), 2)], k) for k in (0, -1, 2)]),
        (optimizer, [(arrays(3, (2, 2)), arrays(3, (2, 2)), arrays(3, (2, 2)), 0.1)]),
        (objects, [(bodies(), 1, 0.5), (bodies(), -1, 0.5), (bodies(), 5, 0.5)]),
    ],
)
def test_items_are_those_of_cpython(function, calls):
    for args in calls:
        agrees(function, *args)


def test_an_item_that_is_returned_is_the_argument_itself():
    def item(items, k):
        return items[k], k

    compiled, items = mutad.compile(item), arrays(3, 3, 2)
    assert [compiled(items, k)[0] is items[k] for k in (0, 1, 2, -1)] == [True] * 4
    shared = [items[0], items[1], items[0]]
    assert compiled(shared, 2)[0] is items[0]


def test_many_arrays_are_told_apart():
    def add(items, x, k):
        items[k] += x
        return items[0].sum()

    compiled, items = mutad.compile(add), [np.zeros(2) for _ in range(13)]
    assert compiled(items, np.ones(2), 12) == 0.0
    assert [a.sum() for a in items] == [0.0] * 12 + [2.0]
    items[0] = items[12]
    assert compiled(items, np.ones(2), 12) == 4.0
    assert compiled([*items[:11], np.zeros(2), items[1][::-1]], items[1], 12) == 4.0
    assert items[1].tolist() == [0.0, 0.0]
