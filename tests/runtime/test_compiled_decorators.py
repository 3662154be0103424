"""`compile` above decorators whose functions have `*args` and `**kwargs` and another's signature."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import mutad
from mutad import Active, Duplicated, compile


def doubled(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return 2.0 * function(*args, **kwargs)

    return wrapper


def counted(function):
    """Shows how it was called."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return 100.0 * len(args) + 10.0 * len(kwargs) + function(*args, **kwargs)

    return wrapper


def completed(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args, 2.0)

    return wrapper


def squared_first(function):
    @functools.wraps(function)
    def wrapper(x, *args, **kwargs):
        return function(x * x, *args, **kwargs)

    return wrapper


def product(x, y=3.0, *, z=1.0):
    return x * y * z


def two(x, y):
    return x * y


plain = doubled(product)


@compile(grad=True, opt=1)
@doubled
def stored(x, y):
    x[0] = x[1] * y
    return (x * x).sum()


class Spring:
    def __init__(self, k):
        self.k = k

    @compile(grad=True, opt=1)
    @doubled
    def energy(self, x, y=1.0):
        return self.k * x * x * y


CALLS: list[tuple[tuple[float, ...], dict[str, float]]] = [
    ((2.0,), {}), ((2.0, 5.0), {}), ((2.0,), {"y": 5.0}), ((), {"y": 5.0, "x": 2.0}),
    ((2.0,), {"z": 7.0}), ((2.0, 5.0), {"z": 7.0}),
]  # fmt: skip


@pytest.mark.parametrize(
    "decorate", [doubled, counted, squared_first, lambda f: doubled(counted(f))]
)
def test_a_call_is_what_cpython_makes_of_it(decorate: Any) -> None:
    f = compile(decorate(product), grad=True, opt=1)
    for args, kwargs in CALLS * 2:
        assert f(*args, **kwargs) == f.__wrapped__(*args, **kwargs), (args, kwargs)
        value, gradient = f.value_and_grad(*args, **kwargs, wrt="x")
        assert value == f.__wrapped__(*args, **kwargs)
        assert gradient == f.grad(*args, **kwargs, wrt=0)
        mutad.check_gradient(f, *args, **kwargs)


def test_a_decorator_that_gives_an_argument_itself() -> None:
    f = compile(completed(two), grad=True, opt=1)
    assert (f(3.0), f.grad(3.0)) == (6.0, 2.0)


def test_positions_and_names_are_those_of_the_signature() -> None:
    f = compile(plain, grad=True, opt=1)
    assert f.grad(2.0, 5.0, wrt=(1, "x")) == (4.0, 10.0)
    assert f.grad(y=5.0, x=2.0, wrt=0) == 10.0
    assert f.grad(2.0, z=1.0, wrt=-1) == 12.0
    with pytest.raises(TypeError, match="'y', which this call leaves out: pass it"):
        f.grad(2.0, wrt="y")
    with pytest.raises(TypeError, match="there is no parameter 3; there are 3"):
        f.grad(2.0, wrt=3)


def test_every_mode() -> None:
    x = np.array([1.0, 2.0])
    want = [0.0, 80.0]
    assert stored(x.copy(), 3.0) == stored.__wrapped__(x.copy(), 3.0) == 80.0
    np.testing.assert_array_equal(stored.grad(x.copy(), 3.0), want)
    np.testing.assert_array_equal(stored.vjp(x.copy(), y=3.0)[1](1.0), want)
    shadow = np.zeros(2)
    assert stored.pullback(Duplicated(x.copy(), shadow), Active(3.0), cotangent=1.0)[1] == (48.0,)
    np.testing.assert_array_equal(shadow, want)
    assert stored.explain(x, 3.0).saved_bytes == stored.explain().saved_bytes == 0
    assert stored.inspect("llvm", x, 3.0) == stored.inspect("llvm", x, 3.0)
    assert "arith.mulf" in stored.inspect("simplify", x, 3.0, wrt="y")
    np.testing.assert_array_equal(mutad.grad(stored)(x.copy(), 3.0), want)
    assert mutad.grad(plain)(2.0) == 6.0
    mutad.assert_saved_bytes(stored, x, 3.0, at_most=0)


def test_as_a_method() -> None:
    s = Spring(2.0)
    assert s.energy(3.0) == Spring.energy(s, 3.0) == 36.0
    assert s.energy.grad(3.0) == 24.0
    assert s.energy.grad(3.0, 2.0, wrt=1) == 36.0
    assert s.energy.grad(3.0, wrt="self.k") == 18.0
    mutad.check_gradient(s.energy, 3.0, wrt=("x", "self.k"))


def test_in_compiled_code_it_is_the_decorated_function() -> None:
    inner = compile(counted(product), opt=1)

    @compile(grad=True, opt=1)
    def calls(x):
        return inner(x) + inner(x, y=4.0)

    assert calls(2.0) == inner(2.0) + inner(2.0, y=4.0)
    assert calls.grad(2.0) == 7.0


def test_looks_like_its_function_and_pickles() -> None:
    f = compile(plain, grad=True, opt=1)
    assert (repr(f), f.__name__) == ("<compiled function product>", "product")
    assert inspect.signature(f) == inspect.signature(product)
    assert (f.has_gradient, f.options["opt"]) == (True, 1)
    x = np.array([1.0, 2.0])
    for g, args in (
        (stored, (x, 3.0)),
        (mutad.grad(stored), (x, 3.0)),
        (Spring(2.0).energy, (3.0,)),
    ):
        again, apart = pickle.loads(pickle.dumps(g)), copy.deepcopy(g)
        np.testing.assert_array_equal(again(*copy.deepcopy(args)), apart(*copy.deepcopy(args)))


def test_parameters_that_nobody_names_are_refused() -> None:
    def total(*values):
        return values[0] + values[1]

    with pytest.raises(TypeError, match="name the parameters"):
        compile(total)
