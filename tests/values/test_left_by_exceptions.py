"""What an exception leaves of objects and lists is what CPython leaves."""

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from object_oracle import agrees, gradient_agrees, outcome

import mutad


@dataclass
class Body:
    pos: np.ndarray
    vel: np.ndarray
    t: float = 0.0
    log: list[float] = field(default_factory=list)


@dataclass
class Case:
    body: Body
    best: Any = None


def body():
    return Body(np.arange(3.0), np.ones(3), 0.0, [0.5])


def rebinds(s, k):
    s.pos = s.pos + s.vel
    s.t += 1.0
    if k > 0:
        raise ValueError("no")
    return s.t


def changes_what_it_has_bound(s, k):
    s.pos = s.pos + s.vel
    s.pos[0] = 7.0
    s.vel[k] = 2.0
    s.pos[1] = 8.0
    return s.t


def in_a_loop(s, n):
    for i in range(n):
        s.t += 1.0
        s.vel[i] *= 2
        s.pos = s.pos + s.vel
        s.log.append(float(s.pos[0]))
    return s.t


def swaps(s, k):
    s.pos, s.vel = s.vel, s.pos
    s.pos = s.pos[::-1]
    return s.pos[k]


def binds_views(s, k):
    s.pos = s.vel
    s.vel = s.pos[1:]
    s.vel[0] = 5.0
    if k > 1:
        raise ValueError("v")


def binds_one_array_twice(s, k):
    s.pos = s.vel = s.pos * 2
    s.pos[0] = s.vel[k]


def binds_objects(c, k):
    c.best = Body(c.body.pos * 2, c.body.vel, 3.0, [1.0, 2.0])
    c.body.log = [c.body.t]
    return c.body.pos[k]


def in_a_called_function(s, k):
    s.pos = s.pos * 2

    def g(i):
        s.log.append(1.0)
        return s.vel[i]

    return g(k)


def is_raised_again(s, k):
    s.pos = s.pos * 2
    try:
        s.vel[k] = 3.0
    except IndexError:
        s.t = 5.0
        raise


def on_a_branch(s, k):
    if k > 1:
        s.pos = s.pos * 2
    s.vel[k] = 3.0


@pytest.mark.parametrize(
    "function",
    [
        rebinds, changes_what_it_has_bound, in_a_loop, swaps, binds_views, binds_one_array_twice,
        in_a_called_function, is_raised_again, on_a_branch,
    ],
)  # fmt: skip
@pytest.mark.parametrize("k", [0, 2, 3, 5])
def test_objects(function, k):
    agrees(function, body(), k)


@pytest.mark.parametrize("k", [0, 3])
def test_objects_in_objects(k):
    agrees(binds_objects, Case(body()), k)


def pops(items, n):
    for _ in range(n):
        items.pop()
    return items[0]


def appends(items, x, n):
    for i in range(n):
        items.append(float(x[i]))
    return items[0]


def empties(items, k):
    items.clear()
    items.append(3.0)
    if k > 1:
        raise ValueError("bad")


def checks_before_it_appends(items, n):
    for i in range(n):
        if items[i] > 1.5:
            raise ValueError("large")
        items.append(items[i] + 1.0)


def stores(items, k):
    items[0] = 5.0
    items[k] = 6.0


def table(rows, k):
    rows.append((k, 2.0))
    rows[0] = (5, 6.0)
    return rows[k]


def overflows(items, k):
    items.append(1)
    return k * k


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
def test_lists(n):
    agrees(pops, [1.0, 2.0, 3.0], n)
    agrees(appends, [1.0], np.arange(3.0), n)
    agrees(empties, [1.0], n)
    agrees(checks_before_it_appends, [1.0], n)
    agrees(stores, [1.0, 2.0], n)
    agrees(table, [(1, 2.0)], n)


def test_ints_that_are_too_large():
    items = [1]
    with pytest.raises(OverflowError):
        mutad.compile(overflows)(items, 2**40)
    assert items == [1, 1]


def test_dicts():
    def f(d, x):
        d["a"] = d["a"] + 1
        d["items"].append(1.0 / x)
        return d

    for x in (2.0, 0.0):
        agrees(f, {"a": np.ones(2), "items": [1.0]}, x)


def test_arrays_stay_what_they_are():
    s = body()
    pos, vel = s.pos, s.vel
    with pytest.raises(IndexError) as caught:
        mutad.compile(swaps)(s, 9)
    assert s.vel is pos
    assert s.pos.base is not None
    assert np.shares_memory(s.pos, vel)
    assert not any(note.startswith("mutad:") for note in caught.value.__notes__)


@pytest.mark.parametrize("function", [rebinds, in_a_loop, changes_what_it_has_bound, swaps])
def test_gradient_calls_leave_the_same(function):
    compiled = mutad.compile(function, grad=True)
    for call in (compiled.value_and_grad, compiled.vjp):
        mine, theirs = (copy.deepcopy((body(), 5)) for _ in range(2))
        np.testing.assert_equal(outcome(call, mine), outcome(function, theirs))


def test_gradients_where_nothing_is_raised():
    gradient_agrees(in_a_loop, body(), 3)
    gradient_agrees(changes_what_it_has_bound, body(), 2)
    gradient_agrees(swaps, body(), 1)
    gradient_agrees(appends, [1.0], np.arange(3.0), 2, wrt=(0, 1))
    assert mutad.compile(swaps, grad=True).explain(body(), 1).saved_bytes == 0
