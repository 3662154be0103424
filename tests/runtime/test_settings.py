"""Objects from outside: their attributes are read at each call, and nothing goes stale."""

import math
import types
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from mutad import CompileError, check_gradient, compile


def square(v):
    return v * v


@dataclass
class Inner:
    gain: float = 1.5


@dataclass
class Config:
    rate: float = 0.2
    steps: int = 3
    weights: Any = field(default_factory=lambda: np.array([1.0, 2.0, 3.0]))
    inner: Inner = field(default_factory=Inner)
    activation: Any = math.tanh
    unread: Any = None

    @property
    def total(self):
        return self.rate * self.steps

    def scaled(self, v):
        return self.inner.gain * v


class Model:
    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        return np.tanh(self.w * x).sum()


@dataclass(frozen=True)
class Frozen:
    w: Any
    k: float


CONFIG = Config()
SPACE = types.SimpleNamespace(k=1.5, n=2)
MODEL = Model(np.array([0.5, 1.0, 1.5]))
FROZEN = Frozen(np.array([1.0, 2.0, 3.0]), 2.0)


def loss(x):
    s = 0.0
    for i in range(CONFIG.steps):
        s += CONFIG.rate * CONFIG.activation(x[i]) * CONFIG.weights[i]
    return CONFIG.scaled(s) + CONFIG.total * SPACE.k * SPACE.n


def of_model(x):
    return MODEL(x) + FROZEN.k * (FROZEN.w * x).sum()


def x():
    return np.array([0.7, 1.3, 0.4])


@pytest.fixture
def config(monkeypatch):
    fresh = Config()
    monkeypatch.setitem(globals(), "CONFIG", fresh)
    monkeypatch.setitem(globals(), "SPACE", types.SimpleNamespace(k=1.5, n=2))
    return fresh


def test_every_attribute_is_read_at_each_call(config):
    compiled = compile(loss)

    def agree():
        assert compiled(x()) == pytest.approx(loss(x()), rel=1e-14)

    agree()
    config.rate = 0.7
    agree()
    config.steps = 2
    agree()
    config.weights = np.array([3.0, 1.0, 1.0])
    agree()
    config.weights[0] = 5.0
    agree()
    config.inner.gain = 2.5
    agree()
    config.inner = Inner(0.25)
    agree()
    config.activation = square
    agree()
    SPACE.k = 7.0
    SPACE.n = 3
    agree()
    globals()["CONFIG"] = Config(rate=0.9)
    agree()


def test_a_new_float_compiles_nothing(config, monkeypatch):
    compiled = compile(loss)
    compiled(x())
    monkeypatch.setattr(compiled._dispatcher.compiler, "compile", None)
    config.rate = 0.35
    config.unread = object()
    assert compiled(x()) == pytest.approx(loss(x()), rel=1e-14)


def test_gradients_with_respect_to_attributes(config):
    compiled = compile(loss, grad=True)
    check_gradient(compiled, x(), wrt="x")
    d_rate, d_weights = compiled.grad(x(), wrt=("CONFIG.rate", "CONFIG.weights"))
    h = 1e-6
    config.rate += h
    above = loss(x())
    config.rate -= 2 * h
    assert d_rate == pytest.approx((above - loss(x())) / (2 * h), rel=1e-6)
    assert d_weights == pytest.approx(0.2 * 1.5 * np.tanh(x()), rel=1e-4)


def test_objects_that_are_called_and_frozen_ones_with_arrays():
    compiled = compile(of_model, grad=True)
    assert compiled(x()) == pytest.approx(of_model(x()), rel=1e-14)
    check_gradient(compiled, x(), wrt="x")
    MODEL.w = 2.0 * MODEL.w
    assert compiled(x()) == pytest.approx(of_model(x()), rel=1e-14)


def test_an_attribute_that_appears(config):
    def optional(v):
        return v * CONFIG.extra if hasattr(CONFIG, "extra") else v

    compiled = compile(optional)
    assert compiled(2.0) == 2.0
    config.extra = 3.0
    assert compiled(2.0) == 6.0
    del config.extra
    assert compiled(2.0) == 2.0


def assigns(v):
    CONFIG.rate = v
    return v


def test_assignment_is_refused():
    with pytest.raises(CompileError, match="is from outside, and is assigned to") as caught:
        compile(assigns)(1.0)
    assert caught.value.span is not None
