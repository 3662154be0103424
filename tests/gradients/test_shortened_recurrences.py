"""With `fastmath` recurrences of the adjoint take a product and a sum (`shorten-recurrences`)."""

import math

import numpy as np
import pytest
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

import mutad
from mutad.compiler.transforms import shorten_recurrences

programs = GradientPrograms()
on = programs.on
FAST = {"fastmath": True}


@on("f64[N] 0.3 0.4", N="40 0 1 2 200", options=FAST)
@on("f32[40] 0.3 0.4", relative=1e-2, options=FAST)
def sines(x, a, b):
    state = 0.5
    total = 0.0
    for i in range(x.size):
        state = a * math.sin(state) + b * math.cos(x[i] * state)
        total += state * x[i]
    return total


@on("f64[40] 0.1", options=FAST)
def logistic(x, k):
    v = 0.3
    total = 0.0
    for i in range(x.size):
        v = 20.0 * k * v * (1.0 - v) + 0.01 * x[i]
        total += v * x[i]
    return total


@on("f64[N] 0.1", N="40 3 0", options=FAST)
def two_stages(x, k):
    v = 0.3
    total = 0.0
    for i in range(x.size):
        a = x[i] * v - v * v * v
        w = v + 0.5 * k * a
        v = v + k * (x[i] * w - w * w * w)
        total += v * x[i]
    return total


@on("f64[N] 0.1", N="40 200", options=FAST)
def gated(x, k):
    """Divisions in the chain."""
    v = 0.3
    total = 0.0
    for i in range(x.size):
        z = 1.0 / (1.0 + math.exp(-(x[i] + k * v)))
        v = (1.0 - z) * v + z * math.tanh(x[i] * v)
        total += v
    return total


@on("f64[40] 0.1", options=FAST)
def newton(x, k):
    v = 1.3
    total = 0.0
    for i in range(x.size):
        v = v - k * (v * v * v - 2.0 - 0.1 * x[i]) / (3.0 * v * v)
        total += v
    return total


@on("f64[30,N] 0.1", N="7 1", options=FAST)
def in_rows(x, k):
    """The recurrence begins anew in each row."""
    total = 0.0
    for i in range(x.shape[0]):
        v = 0.3
        for j in range(x.shape[1]):
            v = math.tanh(k * v + x[i, j]) * v + x[i, j]
        total += v * v
    return total


SHORTENED = [sines, logistic, two_stages, gated, newton, in_rows]


# What stays as it is.


@on("f64[40] 0.1", options=FAST)
def averages(x, k):
    """One product and one sum already."""
    v = 0.3
    total = 0.0
    for i in range(x.size):
        v = 0.9 * v + k * x[i]
        total += v
    return total


@on("f64[40] 0.1", options=FAST)
def two_that_wait_for_each_other(x, k):
    v = 0.3
    w = 0.1
    total = 0.0
    for i in range(x.size):
        w = w - k * math.sin(v) * w + 0.01 * x[i]
        v = v + k * w * v
        total += v * x[i]
    return total


@on("f64[40] 0.1", options=FAST)
def that_goes_to_memory(x, k):
    """What the chain adds is loaded of what the loop stores to."""
    v = 0.3
    total = 0.0
    for i in range(x.size):
        v = math.tanh(k * v + x[i]) * v + x[i]
        x[i] = v * v
        total += v
    return total


TestGradients = gradient_tests(programs)


@pytest.fixture
def shortened(monkeypatch):
    """How many chains are shortened."""
    found = []
    shorten = shorten_recurrences.Chain.shorten
    monkeypatch.setattr(
        shorten_recurrences.Chain, "shorten", lambda chain: (found.append(chain), shorten(chain))
    )
    return found


@pytest.mark.parametrize("program", [p for p in programs.first if "f32" not in str(p)], ids=str)
def test_which_chains_are_shortened(program, shortened):
    compiled = mutad.compile(program.function, grad=True, cache=False, **FAST)
    compiled.inspect("optimize", *program.arguments(), wrt=program.active())
    assert bool(shortened) is (program.function in SHORTENED)


def test_kept_without_fastmath(shortened):
    """Products of partials may underflow where those with the cotangent do not."""
    mutad.compile(sines, grad=True, cache=False).inspect("optimize", np.ones(9), 0.1, 0.2, wrt="x")
    assert not shortened


def test_same_as_without(monkeypatch):
    r = np.random.default_rng(0)
    x = r.normal(size=1000)
    short = mutad.compile(gated, grad=True, cache=False, **FAST).grad(x, 0.1)
    monkeypatch.setattr(shorten_recurrences, "MOST", 0)
    long = mutad.compile(gated, grad=True, cache=False, **FAST).grad(x, 0.1)
    assert np.allclose(short, long, rtol=1e-12, atol=0.0)
