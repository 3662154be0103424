"""Functions, methods, class methods, static methods, partials and stacked decorators, in every mode.

Each is `k * sum(x**3)` of a vector `x`, with k = 2, however it comes by its k.
"""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad
from mutad import Duplicated, compile
from mutad.runtime.lost_classmethod import ASKS_NOBODY


def cubes(k, x):
    return k * (x**3).sum()


def doubled(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return 2.0 * function(*args, **kwargs)

    return call


def unchanged(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


@compile(grad=True, opt=1)
@doubled
@unchanged
def stacked(x):
    return (x**3).sum()


class Model:
    factor = 2.0

    def __init__(self, k: float) -> None:
        self.k = k

    @compile(grad=True, opt=1)
    def method(self, x):
        return self.k * (x**3).sum()

    @compile(grad=True, opt=1)
    @doubled
    def decorated(self, x):
        return self.k / 2.0 * (x**3).sum()

    @compile(grad=True, opt=1)
    @classmethod
    def of_class(cls, x):
        return cls.factor * (x**3).sum()

    @classmethod
    @compile(grad=True, opt=1)
    def below_classmethod(cls, x):
        return cls.factor * (x**3).sum()

    @compile(grad=True, opt=1)
    @staticmethod
    def static(x):
        return 2.0 * (x**3).sum()

    @staticmethod
    @compile(grad=True, opt=1)
    def below_staticmethod(x):
        return 2.0 * (x**3).sum()

    def plain(self, x):
        return self.k * (x**3).sum()

    def scaled(self, by, x):
        return by * self.k * (x**3).sum()


compiled = compile(cubes, grad=True, opt=1)
MODEL = Model(2.0)
options: dict[str, Any] = {"grad": True, "opt": 1}
CALLABLES: dict[str, Callable[..., Any]] = {
    "a method": MODEL.method,
    "a decorated method": MODEL.decorated,
    "a class method": Model.of_class,
    "a class method of an object": MODEL.of_class,
    "a static method": Model.static,
    "compile below staticmethod": MODEL.below_staticmethod,
    "a method of Python": compile(MODEL.plain, **options),
    "stacked decorators": stacked,
    "a partial": compile(functools.partial(cubes, 2.0), **options),
    "a partial by name": compile(functools.partial(cubes, k=2.0), **options),
    "a partial of a partial": compile(
        functools.partial(functools.partial(lambda a, x, b: a * b * (x**3).sum(), 4.0), b=0.5),
        **options,
    ),
    "a partial of a compiled function": compile(functools.partial(compiled, 2.0), **options),
    "a partial of a method": compile(functools.partial(MODEL.scaled, 1.0), **options),
    "a partial of a compiled method": compile(functools.partial(MODEL.method), **options),
    "a partial of stacked decorators": compile(functools.partial(stacked), **options),
}
if not ASKS_NOBODY:
    CALLABLES["compile below classmethod"] = Model.below_classmethod
X = np.array([1.0, 2.0, 0.5])
V = np.array([0.5, -1.0, 2.0])
VALUE, GRADIENT, PRODUCT = 2.0 * (X**3).sum(), 6.0 * X**2, 12.0 * X * V


@pytest.fixture(params=list(CALLABLES))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def f(name: str) -> Any:
    return CALLABLES[name]


def call(f: Any, name: str, method: str, *more: Any, **options: Any) -> Any:
    """A method of it, at X: a name that is given must not be given by position."""
    by_name = name == "a partial by name"
    return getattr(f, method)(
        *(() if by_name else (X,)), **({"x": X} if by_name else {}), **options
    )


def test_values_and_first_derivatives(f: Any, name: str) -> None:
    assert call(f, name, "__call__") == pytest.approx(VALUE)
    np.testing.assert_allclose(call(f, name, "grad"), GRADIENT)
    np.testing.assert_allclose(call(f, name, "grad", wrt=("x",))[0], GRADIENT)
    value, gradient = call(f, name, "value_and_grad")
    assert value == pytest.approx(VALUE)
    np.testing.assert_allclose(gradient, GRADIENT)
    value, back = call(f, name, "vjp")
    np.testing.assert_allclose(back(2.0), 2.0 * GRADIENT)
    value, tangent = call(f, name, "jvp", tangents={"x": V})
    assert tangent == pytest.approx(GRADIENT @ V)
    np.testing.assert_allclose(call(f, name, "jacobian"), GRADIENT)
    assert (call(f, name, "linear_operator") @ V)[0] == pytest.approx(GRADIENT @ V)


def test_in_place_derivatives(f: Any, name: str) -> None:
    shadow = np.zeros(3)
    wrapped = Duplicated(X.copy(), shadow)
    given = {"x": wrapped} if name == "a partial by name" else {}
    f.pullback(*(() if given else (wrapped,)), **given, cotangent=1.0)
    np.testing.assert_allclose(shadow, GRADIENT)
    wrapped = Duplicated(X.copy(), V.copy())
    given = {"x": wrapped} if name == "a partial by name" else {}
    value, tangent = f.pushforward(*(() if given else (wrapped,)), **given)
    assert (value, tangent) == (pytest.approx(VALUE), pytest.approx(GRADIENT @ V))


def test_second_derivatives(f: Any, name: str) -> None:
    np.testing.assert_allclose(call(f, name, "hvp", direction=V), PRODUCT)
    value, gradient, product = call(f, name, "value_grad_hvp", direction=V)
    assert value == pytest.approx(VALUE)
    np.testing.assert_allclose(gradient, GRADIENT)
    np.testing.assert_allclose(product, PRODUCT)
    np.testing.assert_allclose(call(f, name, "hessian"), np.diag(12.0 * X))


def test_what_tells_of_it(f: Any, name: str) -> None:
    assert call(f, name, "explain").saved_bytes == 0
    call(f, name, "__call__")
    given = {"x": X} if name == "a partial by name" else {}
    assert "func.func" in f.inspect("frontend", *(() if given else (X,)), **given)
    assert "func.func" in f.inspect("frontend")  # of the latest call
    assert f.has_gradient
    assert "x" in f.parameters
    assert f.__wrapped__(**{"x": X}) == pytest.approx(VALUE)
    keywords = {"x": X} if given else {}
    mutad.check_gradient(f, *(() if given else (X,)), **keywords)


def test_functions_of_the_package_take_it(f: Any, name: str) -> None:
    given = {"x": X} if name == "a partial by name" else {}
    args = () if given else (X,)
    np.testing.assert_allclose(mutad.grad(f)(*args, **given), GRADIENT)
    np.testing.assert_allclose(mutad.hvp(f)(*args, **given, direction=V), PRODUCT)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))]
)
def test_copies_and_pickles(f: Any, name: str, copied: Any) -> None:
    if "of a partial" in name and copied is not copy.copy:
        return  # a lambda, which no pickle finds
    again = copied(f)
    np.testing.assert_allclose(call(again, name, "grad"), GRADIENT)
    assert again.options == f.options


def test_gradients_in_what_is_given() -> None:
    f = compile(functools.partial(cubes, 2.0), grad=True, opt=1)
    assert f.grad(X, wrt="k") == pytest.approx((X**3).sum())
    assert MODEL.method.grad(X, wrt="self.k") == pytest.approx((X**3).sum())
    g = compile(functools.partial(cubes, k=2.0), grad=True, opt=1)
    assert g(x=X, k=4.0) == pytest.approx(2.0 * VALUE)
    with pytest.raises(TypeError, match="multiple values"):
        g(X)


def test_compiled_code_calls_them() -> None:
    part = compile(functools.partial(cubes, 2.0), grad=True, opt=1)

    @compile(grad=True, opt=1)
    def twice(x):
        return part(x) + MODEL.method(x)

    assert twice(X) == pytest.approx(2.0 * VALUE)
    np.testing.assert_allclose(twice.grad(X), 2.0 * GRADIENT)

    @compile(opt=1)
    def slope(x):
        return part.grad(x)

    np.testing.assert_allclose(slope(X), GRADIENT)


def test_compile_below_classmethod() -> None:
    """Since Python 3.13 a plain call has the class, and for a derivative there is another way to write it."""
    if ASKS_NOBODY:
        with pytest.raises(TypeError, match=r"not told its class.*Write @compile above @classmeth"):
            Model.below_classmethod.grad(X)
    assert Model.below_classmethod(X) == pytest.approx(VALUE)
    assert MODEL.below_classmethod(X) == pytest.approx(VALUE)
    np.testing.assert_allclose(mutad.grad(Model.below_classmethod)(X), GRADIENT)
