"""Gradients through arrays and objects that are chosen at run time among those of a list or tuple."""

from dataclasses import dataclass

import numpy as np
import pytest
from object_oracle import gradient_agrees

import mutad


@dataclass
class Body:
    x: float
    v: np.ndarray


def network(params, x):
    for i in range(len(params) - 1):
        w, b = params[i]
        x = np.tanh(w @ x + b)
    return (params[-1][0] @ x).sum()


def recurrent(ws, x, steps):
    for t in range(steps):
        x = np.tanh(ws[t % len(ws)] @ x)
    return x.sum()


def item_scaled(ws, k):
    ws[k] *= ws[k - 1]
    ws[k][0] = 2.0 * ws[k][1]
    return (ws[k] * ws[k]).sum()


def overwritten_in_a_loop(a, b, c, steps):
    ws = [a, b, c]
    s = 0.0
    for t in range(steps):
        w = ws[(t * t) % 3]
        w[0] = np.sin(w[0]) * w[1]
        s += w[0] * ws[(t + 1) % 3][1]
    return s


def pair_forces(bodies, dt, steps):
    for _ in range(steps):
        for i in range(len(bodies)):
            for j in range(i + 1, len(bodies)):
                d = bodies[j].x - bodies[i].x
                bodies[i].v += dt * d
                bodies[j].v -= dt * d * d
        for i in range(len(bodies)):
            bodies[i].x += dt * bodies[i].v.sum()
    return sum(b.x * b.x for b in bodies)


def object_chosen(bodies, k, n):
    p = bodies[k]
    p.x *= 2.0
    for j in range(n):
        q = bodies[(k + j * j) % len(bodies)]
        q.x += float(p.x * q.v[0])
        q.v *= q.x
    return bodies[0].x * bodies[1].v[0] + p.v.sum()


def layers():
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(n, m)), rng.normal(size=n)) for m, n in ((2, 3), (3, 2))]


def arrays(*shapes):
    rng = np.random.default_rng(1)
    return [rng.normal(size=shape) for shape in shapes]


def bodies():
    return [Body(0.5, np.array([1.0, 0.5])), Body(-0.25, np.array([0.25])), Body(1.5, np.ones(3))]


@pytest.mark.parametrize(
    ("function", "args", "wrt"),
    [
        (network, (layers(), np.ones(2)), (0, 1)),
        (recurrent, (arrays((3, 3), (3, 3)), np.ones(3), 5), (0, 1)),
        (item_scaled, (arrays(3, 3, 3), 1), 0),
        (overwritten_in_a_loop, (*arrays(2, 3, 4), 7), (0, 1, 2)),
        (pair_forces, (bodies()[:2], 0.1, 2), ("bodies", "dt")),
        (object_chosen, (bodies()[:2], 1, 3), 0),
    ],
)
def test_gradients(function, args, wrt):
    gradient_agrees(function, *args, wrt=wrt)


def test_parts_of_the_list_by_path_and_what_is_not_chosen():
    f = mutad.compile(item_scaled, grad=True)
    whole = f.grad(arrays(3, 3, 3), 1)
    assert [type(part) for part in whole] == [np.ndarray] * 3
    np.testing.assert_array_equal(whole[2], 0.0)
    np.testing.assert_array_equal(f.grad(arrays(3, 3, 3), 1, wrt="ws[0]"), whole[0])
    shared = np.array([0.5, 1.5])
    da, db = f.grad([shared, shared], 1)
    assert np.shares_memory(da, db)
