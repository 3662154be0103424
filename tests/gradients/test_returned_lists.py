"""Gradients of functions that return lists: cotangents come in the form of the result."""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import mutad
from mutad import Const, Duplicated

Pair = namedtuple("Pair", "when state")


@dataclass
class Particle:
    x: float
    path: np.ndarray


@dataclass
class Run:
    states: list
    t: float = 0.0


def trajectory(u, dt, n):
    states, t = [u.copy()], []
    for i in range(n):
        u = u + dt * np.sin(u)
        states.append(u)
        t.append(i * dt)
    return states, t


def in_every_form(x, n):
    pairs, table, ragged, particles = [], [[0.0] * n for _ in range(x.size)], [], []
    for i in range(x.size):
        pairs.append(Pair(i, x * x[i]))
        ragged.append([])
        for j in range(i):
            table[i][j % n] += x[j] ** 2
            ragged[i // 2].append((j, x[i] * x[j]))
        particles.append(Particle(float(x[i]) ** 3, np.exp(x) * i))
    return {"pairs": pairs, "table": table}, (ragged, particles)


def moved_about(x, n):
    rows, table = [x.copy()], [[x[0]]]
    for i in range(n):
        rows.insert(0, rows[-1] * x)
        table.insert(0, [x[1] * x[2]] * i)
    rows.pop()
    return rows, table


def kept_in_a_field(run, x, n):
    states = []
    for _ in range(n):
        x = x * x
        states.append(x)
        run.t += float(x[0])
    run.states = states
    return x.sum() * run.t


X = np.array([0.5, 1.5, 0.75])


@pytest.mark.parametrize(
    ("function", "args", "wrt"),
    [
        (trajectory, (X, 0.1, 3), ("u", "dt")),
        (in_every_form, (X, 2), 0),
        (moved_about, (X, 3), 0),
        (kept_in_a_field, (Run([], 1.0), X, 2), ("run", "x")),
    ],
)
def test_gradients(function, args, wrt):
    mutad.check_gradient(mutad.compile(function, grad=True), *args, wrt=wrt)


def test_cotangents_are_lists_as_the_result_is():
    f = mutad.compile(trajectory, grad=True)
    assert f.explain(X, 0.1, 2, wrt=("u", "dt")).saved_bytes == 24 * 2
    assert "array.loop" in mutad.compile(trajectory).inspect("frontend", X, 0.1, 2)
    (states, times), back = f.vjp(X, 0.1, 2, wrt=("u", "dt"))
    assert [type(s) for s in (states, *states)] == [list] + [np.ndarray] * 3
    zeros = [np.zeros(3) for _ in states]
    du, dt = back((zeros, [1.0, 2.0]))
    assert (du.tolist(), dt) == ([0.0] * 3, 2.0)
    np.testing.assert_array_equal(back(([np.ones(3), *zeros[1:]], times))[0], np.ones(3))
    states[0][0] = 7.0
    assert states[1][0] != 7.0
    du = np.zeros(3)
    _, (dt,) = f.pullback(
        Duplicated(X, du),
        mutad.Active(0.1),
        Const(2),
        cotangent=([np.ones(3), *zeros[1:]], [0.0, 1.0]),
    )
    assert (du.tolist(), dt) == ([1.0] * 3, 1.0)
    with pytest.raises(ValueError, match="shape"):
        back((zeros[:2], [1.0, 2.0]))
