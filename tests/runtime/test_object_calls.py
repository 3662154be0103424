"""Calls with objects end in one function for each structure: bound as CPython binds, chained, cheap."""

import threading
import timeit
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mutad


@dataclass
class Body:
    x: np.ndarray
    m: float = 1.0

    def go(self, k, *, scale=2.0):
        self.m += k
        return self.m * scale * self.x.sum()


@dataclass
class Other(Body):
    pass


@dataclass
class Five:
    pos: np.ndarray
    vel: np.ndarray
    mass: float = 1.0
    t: float = 0.0
    steps: int = 0


def test_structures_and_types_take_turns():
    f = mutad.compile(Body.go, grad=True)
    calls: list[Any] = [
        lambda go: go(Body(np.ones(2)), 1.0),
        lambda go: go(Other(np.ones(3)), 1.0, scale=3.0),
        lambda go: go(Body(np.ones(2)), k=1),
        lambda go: go(k=1.0, self=Other(np.ones(2))),
        lambda go: go(Body(np.array([1, 2], np.float32)), 1.0),
        lambda go: go(Body(np.ones(2), 3), 1),
    ]
    for _ in range(3):
        for call in calls:
            expected, actual = call(Body.go), call(f)
            assert (actual, type(actual)) == (expected, type(expected))


def test_arguments_are_bound_as_cpython_binds_them():
    f = mutad.compile(Body.go, grad=True)
    b = Body(np.ones(2))
    f(b, 1.0)
    for args, named in (((), {}), ((b, 1, 2), {}), ((b, 1), {"other": 3}), ((b,), {})):
        with pytest.raises(TypeError) as expected:
            Body.go(*args, **named)
        with pytest.raises(TypeError) as actual:
            f(*args, **named)
        assert str(actual.value) == str(expected.value)


def test_gradients_of_any_choice_and_type():
    f = mutad.compile(Body.go, grad=True)
    for _ in range(3):
        g = f.grad(Body(np.ones(2), 2.0), 1.0)
        assert (g.x.tolist(), g.m) == ([6.0, 6.0], 4.0)
        assert f.grad(Other(np.ones(2), 2.0), 1.0, wrt="k") == 4.0
        value, parts = f.value_and_grad(
            Body(np.ones(2)), 1.0, wrt=("self.m", "k", "scale"), scale=2.5
        )
        assert (value, parts) == (10.0, (5.0, 5.0, 4.0))
        g = f.grad(Body(np.ones(2), 3), 1.0)
        assert (g.x.tolist(), g.m) == ([8.0, 8.0], 3)
        assert f.grad(Body(np.ones(2)), 1.0, wrt=["k"]) == (4.0,)
        with pytest.raises(TypeError, match="not a float"):
            f.grad(Body(np.ones(2)), 1, wrt="k")


def assigned(a, b):
    a.m += 1.0
    return (a.x * b.x).sum() * a.m


def test_gradients_where_fields_share_memory_and_numbers_are_assigned():
    f = mutad.compile(assigned, grad=True)
    x = np.ones(2)
    for _ in range(2):
        ga, gb = f.grad(Body(x), Body(x), wrt=(0, 1))
        assert np.shares_memory(ga.x, gb.x)
        assert (ga.x.tolist(), ga.m, gb.m) == ([4.0, 4.0], 2.0, 0.0)
        one = Body(x)
        ga, gb = f.grad(one, one, wrt=(0, 1))
        assert ga is gb
        assert one.m == 2.0
        ga, gb = f.grad(Body(x), Body(np.ones(2)), wrt=(0, 1))
        assert not np.shares_memory(ga.x, gb.x)
        assert ga.x.tolist() == gb.x.tolist() == [2.0, 2.0]


def raises(s, n):
    for i in range(n):
        s.m += s.x[i]
    return s.m


def test_a_journal_serves_many_calls():
    f = mutad.compile(raises)
    for _ in range(3):
        assert f(Body(np.ones(2)), 2) == 3.0
        s = Body(np.ones(2), 5.0)
        with pytest.raises(IndexError):
            f(s, 3)
        assert s.m == 7.0


def test_threads_have_journals_of_their_own():
    f = mutad.compile(raises)
    found = list[float]()

    def run() -> None:
        for _ in range(100):
            s = Body(np.ones(300))
            f(s, 300)
            try:
                f(s, 301)
            except IndexError:
                found.append(s.m)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [601.0] * 400


def test_grad_of_what_returns_no_float_is_refused():
    f = mutad.compile(lambda s: (s.m, s.x), grad=True)
    for _ in range(2):
        with pytest.raises(TypeError, match="a tuple of 2"):
            f.grad(Body(np.ones(2)))


def per_call(call) -> float:
    call()
    return min(timeit.repeat(call, number=500, repeat=20)) / 500


def test_a_call_with_five_fields_costs_little():
    empty = mutad.compile(lambda x, dt: None)

    def step(s, dt):
        s.pos += dt * s.vel
        s.t += dt
        return s.mass

    f = mutad.compile(step, grad=True)
    s, x = Five(np.ones(3), np.ones(3)), np.ones(3)
    unit = per_call(lambda: empty(x, 0.1))
    assert per_call(lambda: f(s, 0.1)) < 60 * unit
    assert per_call(lambda: f.grad(s, 0.1, wrt="s.mass")) < 300 * unit
