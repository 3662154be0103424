"""Gradients with respect to objects: instances of the same class, exact, with the call's side effects."""

import copy
import math
from collections import namedtuple
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from object_oracle import gradient_agrees

import mutad
from mutad import Active, Const, Duplicated


def vector(*numbers):
    return np.array(numbers, float)


@dataclass
class State:
    pos: np.ndarray
    vel: np.ndarray
    t: float = 0.0
    steps: int = 0
    name: str = "state"

    def energy(self):
        return 0.5 * (self.vel**2).sum() + (self.pos**3).sum() * self.t


@dataclass
class System:
    a: State
    b: State
    k: float = 2.0


@dataclass(frozen=True)
class Params:
    W: np.ndarray
    b: np.ndarray
    rate: float = 0.5


class Layer:
    def __init__(self, W, scale=1.0):
        self.W = W
        self.scale = scale

    def __call__(self, x):
        return np.tanh(self.W @ x) * self.scale


@dataclass
class Holder:
    x: np.ndarray
    children: dict = field(default_factory=dict)


Point = namedtuple("Point", "x y")


def state():
    return State(vector(0.1, -0.4, 0.9), vector(0.5, 1.2, -0.7), 0.3)


def system():
    return System(state(), State(vector(1, 2, 0.5), vector(0.2, 0.1, -0.3), 1.1, 4))


def mutated_in_a_loop(s, dt, n):
    for _ in range(n):
        s.pos += dt * s.vel
        s.vel -= dt * np.sin(s.pos)
        s.t += dt * s.t
        s.steps += 1
    return s.energy()


def rebound_in_a_loop(s, dt, n):
    for _ in range(n):
        s.pos = s.pos + dt * s.vel * s.vel
        s.t = s.t * s.t + dt
    return s.energy()


def rebound(s, dt):
    s.vel = s.pos * s.vel
    s.pos = s.pos + dt * s.vel
    return (s.pos * s.vel).sum() * s.t


def nested(w, dt, n):
    for k in range(n):
        for_one(w.a, dt)
        if k % 2 == 0:
            for_one(w.b, w.k * dt)
        w.k *= 1.1
    return w.a.energy() + w.b.energy() * w.k


def for_one(s, dt):
    s.pos += dt * s.vel**2
    s.t = math.sin(s.t) if s.steps > 3 else s.t * 1.5


def swapped(w):
    w.a, w.b = w.b, w.a
    w.a.pos *= w.b.pos
    return w.a.energy() * w.k


def branched(s, limit):
    if s.t > limit:
        s.t = s.t * 2.0
    else:
        s.pos = s.pos * s.t
        s.t += 1.0
    return s.energy()


def while_time(s, end):
    while s.t < end:
        dt = min(0.4, end - s.t)
        s.pos += dt * np.cos(s.pos) * s.t
        s.t += dt
    return (s.pos**2).sum() * s.t


def frozen(p, x):
    y = p.W @ x + p.b
    return (y * y).sum() * p.rate


def frozen_updated(p, x, n):
    for _ in range(n):
        y = p.W @ x + p.b
        p = replace(p, b=p.b - p.rate * y, rate=p.rate * 0.9)
    return (p.b**2).sum() * p.rate


def tied(first, second, x):
    return (second(first(x)) ** 2).sum()


def held_and_passed(h, x):
    x *= 2.0
    h.x *= h.x
    return (h.x * x).sum()


def of_dict(d, x):
    d["w"] *= d["rate"]
    d["rate"] = d["rate"] ** 2
    return (d["w"] * x).sum() * d["rate"]


def of_tuple(p, n):
    for _ in range(n):
        p = Point(p.x * p.y, p.y + 1.0)
    return (p.x**2).sum() * p.y


def made_inside(x, k):
    s = State(x * k, np.ones_like(x), k)
    for _ in range(3):
        s.pos *= s.t
        s.t = s.t**2
    return s.energy()


def caught(s, n):
    try:
        for k in range(n):
            s.t = s.t * 1.5
            s.pos[k] = s.pos[k] * s.t
    except IndexError:
        s.t = s.t**2
    return s.energy()


def scratch(s, x):
    total = 0.0
    for k in range(x.size):
        s.pos[:] = x[k] * s.vel
        total += np.exp(s.pos).sum()
    return total


W = np.array([[0.3, -0.2], [0.5, 0.7]])
CASES = [
    (mutated_in_a_loop, (state(), 0.1, 5), ("s", "dt")),
    (mutated_in_a_loop, (state(), 0.1, 0), "s"),
    (rebound_in_a_loop, (state(), 0.1, 4), ("s", "dt")),
    (rebound_in_a_loop, (state(), 0.1, 0), "s"),
    (rebound, (state(), 0.3), ("s", "dt")),
    (nested, (system(), 0.1, 5), ("w", "dt")),
    (nested, (system(), 0.1, 5), ("w.b.t", "w.a", "w.k")),
    (swapped, (system(),), "w"),
    (branched, (state(), 0.0), "s"),
    (branched, (state(), 9.0), "s"),
    (while_time, (state(), 2.0), ("s", "end")),
    (frozen, (Params(W, vector(1, 2)), vector(0.5, 0.2)), ("p", "x")),
    (frozen_updated, (Params(W, vector(1, 2)), vector(0.5, 0.2), 3), ("p", "x")),
    (tied, (Layer(W), Layer(W.T, 2.0), vector(1, 2)), ("first", "second", "x")),
    (tied, (layer := Layer(W), layer, vector(1, 2)), ("first", "x")),
    (of_dict, ({"w": vector(1, 2), "rate": 0.5}, vector(3, 4)), ("d", "x")),
    (of_tuple, (Point(vector(1, 2), 0.5), 3), "p"),
    (made_inside, (vector(1, 2), 0.9), ("x", "k")),
    (caught, (state(), 2), "s"),
    (caught, (state(), 5), "s"),
    (scratch, (state(), vector(1, 2)), ("s", "x")),
]


@pytest.mark.parametrize(
    ("function", "args", "wrt"), CASES, ids=lambda v: getattr(v, "__name__", "")
)
def test_differences_agree(function, args, wrt):
    gradient_agrees(function, *args, wrt=wrt)


def shared():
    x = vector(1.0, 2.0, -0.5)
    return Holder(x), x


def test_a_buffer_that_an_object_holds_and_an_argument_is_has_one_shadow():
    h, x = shared()
    gradient_agrees(held_and_passed, h, x, wrt=("h", "x"))
    g = mutad.grad(held_and_passed, ("h", "x"))(*shared())
    assert g[0].x is g[1] or np.shares_memory(g[0].x, g[1])
    np.testing.assert_allclose(g[1], 64 * shared()[1] ** 3)


def test_tied_weights_have_one_shadow_with_both_contributions():
    compiled = mutad.compile(tied, grad=True)
    first, second = compiled.grad(Layer(W), Layer(W.T), vector(1, 2), wrt=("first", "second"))
    assert type(first) is Layer
    assert np.shares_memory(first.W, second.W)
    np.testing.assert_array_equal(first.W, second.W.T)
    alone = compiled.grad(Layer(W), Layer(W.T.copy()), vector(1, 2), wrt=("first", "second"))
    np.testing.assert_allclose(first.W, alone[0].W + alone[1].W.T, rtol=1e-12)


def test_the_gradient_of_an_object_is_of_its_class_and_keeps_what_has_no_derivative():
    s = state()
    g = mutad.grad(mutated_in_a_loop)(s, 0.1, 3)
    assert type(g) is State
    assert (g.steps, g.name) == (0, "state")
    assert s.steps == 3
    assert type(g.t) is float
    assert g.pos is not s.pos
    assert g.pos.dtype == np.float64


def test_wrt_names_parts():
    f = mutad.compile(nested, grad=True)
    whole = f.grad(system(), 0.1, 3)
    a, t = f.grad(system(), 0.1, 3, wrt=("w.a", "w.b.t"))
    np.testing.assert_allclose(a.pos, whole.a.pos, rtol=1e-12)
    assert t == pytest.approx(whole.b.t)
    assert type(f.grad(system(), 0.1, 3, wrt="w.k")) is float
    with pytest.raises(TypeError, match=r"no parameter or part of one is called 'w.c'"):
        f.grad(system(), 0.1, 3, wrt="w.c")
    with pytest.raises(TypeError, match="derivatives are with respect to floats"):
        f.grad(system(), 0.1, 3, wrt="w.a.steps")


def seeds(s):
    return State(np.cos(s.pos), np.sin(s.vel), 0.7)


def final(function, *args):
    """The function of the initial fields whose gradient is that of `seeds` of the final ones."""
    bar = seeds(args[0])

    def scalar(s, *rest):
        value = function(s, *rest)
        return 2.0 * value + (bar.pos * s.pos).sum() + (bar.vel * s.vel).sum() + bar.t * s.t

    return bar, scalar


PROGRAMS = [
    (mutated_in_a_loop, (0.1, 3)),
    (rebound_in_a_loop, (0.1, 3)),
    (rebound, (0.3,)),
    (branched, (0.0,)),
]


def differences(scalar, *rest, h=1e-6):
    found = state()
    for name in ("pos", "vel"):
        bars = np.zeros(3)
        for k in range(3):
            ends = []
            for sign in (1, -1):
                s = state()
                getattr(s, name)[k] += sign * h
                ends.append(scalar(s, *rest))
            bars[k] = (ends[0] - ends[1]) / (2 * h)
        setattr(found, name, bars)
    ends = [scalar(replace(state(), t=state().t + sign * h), *rest) for sign in (1, -1)]
    found.t = (ends[0] - ends[1]) / (2 * h)
    return found


def assert_close(found, expected):
    np.testing.assert_allclose(found.pos, expected.pos, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.vel, expected.vel, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.t, expected.t, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("function", "rest"), PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_vjp_takes_cotangents_of_final_fields(function, rest):
    bar, scalar = final(function, state(), *rest)
    s = state()
    value, back = mutad.compile(function, grad=True).vjp(s, *rest)
    expected = state()
    assert value == pytest.approx(function(expected, *rest))
    assert s.t == expected.t
    found = back(2.0, s=bar)
    assert_close(found, differences(scalar, *rest))
    again = back(2.0, s=bar)
    np.testing.assert_array_equal(found.pos, again.pos)
    assert type(found) is State


@pytest.mark.parametrize(("function", "rest"), PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_pullback_accumulates_into_an_object(function, rest):
    bar, scalar = final(function, state(), *rest)
    shadow = copy.deepcopy(bar)
    s = state()
    compiled = mutad.compile(function, grad=True)
    value, bars = compiled.pullback(Duplicated(s, shadow), *map(Const, rest), cotangent=2.0)
    assert value == pytest.approx(function(state(), *rest))
    assert bars == ()
    assert_close(shadow, differences(scalar, *rest))


def test_pullback_mixes_objects_and_numbers():
    compiled = mutad.compile(mutated_in_a_loop, grad=True)
    shadow = State(np.zeros(3), np.zeros(3))
    _, (dt,) = compiled.pullback(Duplicated(state(), shadow), Active(0.1), Const(3), cotangent=1.0)
    expected = compiled.grad(state(), 0.1, 3, wrt=("s", "dt"))
    assert dt == pytest.approx(expected[1])
    assert_close(shadow, expected[0])


def test_explain_names_the_field():
    plan = mutad.compile(mutated_in_a_loop, grad=True).explain(state(), 0.1, 4, wrt="s")
    assert "s.pos" in str(plan)


def test_a_gradient_call_that_raises_leaves_the_object_as_the_plain_call_does():
    def f(s, k):
        s.t = s.t * 3.0
        s.steps += 1
        s.pos[k] = 1.0
        return s.pos.sum() * s.t

    mine, theirs = state(), state()
    with pytest.raises(IndexError):
        f(theirs, 9)
    with pytest.raises(IndexError):
        mutad.value_and_grad(f)(mine, 9)
    assert (mine.t, mine.steps) == (theirs.t, theirs.steps)
