"""Gradients of programs around objects: views, loops over objects, networks, what comes from outside."""

from dataclasses import dataclass

import numpy as np
import pytest
from object_oracle import gradient_agrees

import mutad
from mutad import Active, Duplicated

G = 3.0
SCALE = np.array([1.0, 2.0, 3.0])


def vector(*numbers):
    return np.array(numbers, float)


@dataclass
class State:
    x: np.ndarray
    t: float = 0.5
    n: int = 2

    def weighed(self, y):
        return (self.x * SCALE * y).sum() * G * self.t


@dataclass
class Tree:
    weight: float
    left: object = None
    right: object = None


class Layer:
    def __init__(self, W, b):
        self.W = W
        self.b = b

    def __call__(self, x):
        return np.tanh(self.W @ x + self.b)


class Net:
    def __init__(self, layers):
        self.layers = layers

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def state():
    return State(vector(0.1, 0.2, 0.3))


def net():
    r = np.random.default_rng(0)
    return Net((Layer(r.random((3, 2)), r.random(3)), Layer(r.random((2, 3)), r.random(2))))


def rebinds_to_views(s):
    s.x = s.x[1:]
    s.x[0] *= s.t
    s.x = s.x * s.x
    return s.x.sum()


def pairs_of_objects(ps, dt, n):
    energy = 0.0
    for _ in range(n):
        for a in ps:
            for b in ps:
                if a is not b:
                    a.x += dt * (b.x - a.x) * b.t
                    b.t *= 1.1
        energy += (ps[0].x * ps[1].x).sum()
    return energy


def leaves_a_while_loop(s):
    while s.t < 20.0:
        s.x = s.x * s.t
        s.t = s.t * s.t + 1.0
        s.n += 1
        if s.n > 4:
            break
    return s.x.sum() * s.t


def one_object_under_two_keys(h):
    h["a"].x *= 2.0
    h["b"].x *= h["a"].x
    return h["a"].x.sum()


def network(model, x, y):
    d = model(x) - y
    return (d * d).sum()


def descent(p, x, y, rate, n):
    for _ in range(n):
        r = p["w"] * x + p["b"] - y
        p["w"] -= rate * (r * x).mean()
        p["b"] -= rate * r.mean()
    return ((p["w"] * x + p["b"] - y) ** 2).sum()


def list_of_fields(s, n):
    found = []
    for _ in range(n):
        s.t = s.t * 1.5
        found.append(s.t)
    return sum(found)


def weighs_a_tree(tree, k):
    if tree is None:
        return 0.0
    tree.weight = tree.weight * k
    return tree.weight**2 + weighs_a_tree(tree.left, k) + weighs_a_tree(tree.right, k)


def makes_a_state(x, k):
    return State(x * k, k * k)


class Private:
    def __init__(self, x):
        self.__x = x

    def __squared(self):
        return self.__x * self.__x

    def of(self, k):
        items, nested = {"x": self.__squared()}, [[k], self.__x * k]
        items["x"] += k
        items["x"] *= self.__x[0]
        nested[0] += [k * k]
        nested[1] *= items["x"]
        return nested[1].sum() + sum(nested[0]) + (nested[0] * 2)[3]


class Derived(Private):
    def __init__(self, x):
        super().__init__(x * 2.0)
        self.__x = x[1]

    def both(self, k):
        self.__x *= k
        return self.of(k) * self.__x


def private_names_and_items_changed(x, k):
    return Derived(x).both(k)


CASES = [
    (private_names_and_items_changed, (vector(1, 2, 0.5), 1.5), ("x", "k")),
    (rebinds_to_views, (state(),), "s"),
    (pairs_of_objects, ((state(), State(vector(3, 1, 0.5), 1.5)), 0.1, 3), ("ps", "dt")),
    (leaves_a_while_loop, (state(),), "s"),
    (one_object_under_two_keys, ({"a": (s := state()), "b": s},), "h"),
    (one_object_under_two_keys, ({"a": (s := state()), "b": State(s.x[::-1])},), "h"),
    (network, (net(), vector(1, 2), vector(0, 1)), ("model", "x")),
    (descent, ({"w": 0.5, "b": 0.1}, vector(1, 2, 3), vector(2, 4, 7), 0.1, 4), ("p", "rate", "x")),
    (list_of_fields, (state(), 4), "s"),
    (weighs_a_tree, (Tree(1.5, Tree(0.5, None, Tree(2.0)), Tree(-1.0)), 1.2), ("tree", "k")),
]


@pytest.mark.parametrize(
    ("function", "args", "wrt"), CASES, ids=lambda v: getattr(v, "__name__", "")
)
def test_differences_agree(function, args, wrt):
    gradient_agrees(function, *args, wrt=wrt)


def test_a_network_of_layers_has_a_network_for_its_gradient():
    g = mutad.grad(network)(net(), vector(1, 2), vector(0, 1))
    assert type(g) is Net
    assert [type(layer) for layer in g.layers] == [Layer, Layer]


def test_what_methods_read_outside_may_be_named():
    f = mutad.compile(lambda s, y: s.weighed(y), grad=True)
    one = State(vector(1, 1, 1))
    _, (gs, scale, g) = f.value_and_grad(one, vector(1, 2, 3), wrt=("s", "SCALE", "G"))
    np.testing.assert_allclose(scale, vector(1, 2, 3) * G * 0.5)
    np.testing.assert_allclose(gs.x, vector(1, 4, 9) * G * 0.5)
    assert (g, gs.t) == (pytest.approx(7.0), pytest.approx(42.0))


def test_results_that_are_objects_have_cotangents_that_are():
    out, back = mutad.vjp(makes_a_state, ("x", "k"))(vector(1, 2), 3.0)
    assert type(out) is State
    gx, gk = back(State(vector(1, 1), 2.0))
    np.testing.assert_allclose(gx, [3.0, 3.0])
    assert gk == pytest.approx(3.0 + 2 * 2 * 3.0)
    shadow = np.zeros(2)
    result, (bar,) = mutad.compile(makes_a_state, grad=True).pullback(
        Duplicated(vector(1, 2), shadow), Active(3.0), cotangent=State(vector(1, 1), 2.0)
    )
    assert type(result) is State
    np.testing.assert_allclose(shadow, [3.0, 3.0])
    assert bar == pytest.approx(15.0)


def test_floats_of_other_types_stay_of_their_types():
    def f(s):
        s.x *= s.t
        return float((s.x**2).sum()) * s.t

    g = mutad.grad(f)(State(np.array([1, 2, 3], np.float32), np.float64(0.5)))
    assert g.x.dtype == np.float32
    assert type(g.t) is np.float64


def test_fields_of_time_expanded_storage_save_nothing():
    def f(h, n):
        for t in range(n - 1):
            h.x[t + 1] = h.x[t] * h.x[t] * h.t
        return h.x[n - 1].sum()

    h = State(np.full((4, 3), 0.9), 1.1)
    mutad.assert_saved_bytes(mutad.compile(f, grad=True), h, 4, at_most=0, wrt="h")
    gradient_agrees(f, h, 4, wrt="h")
