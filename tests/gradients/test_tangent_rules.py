"""Tangents that users write: `mutad.tangent_rule`, in forward mode and in second derivatives."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import cython_special

import mutad
from mutad import CompileError, GradientError, check_gradient, check_rule, compile

# An opaque function that overwrites what its rule and its tangent read.


def product() -> Any:
    @mutad.opaque
    def product(a, x, y):
        y[:] = a * x * y

    @product.rule(reads=("x", "y"), overwrites="y")
    def product_rule(a, x, y):
        a.cotangent += (x.value * y.value * y.shadow).sum()
        x.shadow += a.value * y.value * y.shadow
        y.shadow *= a.value * x.value

    return product


def right(a, x, y):
    y.tangent *= a.value * x.value
    y.tangent += (a.tangent * x.value + a.value * x.tangent) * y.value


def by_its_result(a, x, y):
    y.tangent[:] = y.after * (a.tangent / a.value + x.tangent / x.value + y.tangent / y.value)


def forgetful(a, x, y):
    y.tangent *= a.value * x.value


opaque_product, other_product = product(), product()
mutad.tangent_rule(opaque_product, right)
other_product.tangent_rule(by_its_result)


def in_a_loop(a, x, y, n):
    for _ in range(n):
        opaque_product(a, x, y)
        x[1:] += y[:-1]
    return (y**2).sum()


def by_what_it_holds_after(a, x, y):
    other_product(a, x, y)
    return y.sum() * a


def with_a_constant(a, y):
    x = np.array([1.0, 0.5, 2.0])
    opaque_product(2.0, x, y)
    return (a * y).sum() + x[0]


# Numbers: C functions, whose rules call each other.

cosine = ctypes.CDLL("libm.so.6").cos
cosine.argtypes, cosine.restype = [ctypes.c_double], ctypes.c_double
sine = ctypes.CDLL("libm.so.6").sin
sine.argtypes, sine.restype = [ctypes.c_double], ctypes.c_double


@mutad.rule(cosine)
def cosine_rule(x, result):
    x.cotangent -= sine(x.value) * result.cotangent


@mutad.tangent_rule(cosine)
def cosine_tangent(x, result):
    result.tangent -= sine(x.value) * x.tangent


@mutad.rule(sine)
def sine_rule(x, result):
    x.cotangent += cosine(x.value) * result.cotangent


@mutad.tangent_rule(sine)
def sine_tangent(x, result):
    result.tangent += cosine(x.value) * x.tangent


def waves(x, k):
    total = 0.0
    for v in x:
        total += cosine(k * v) * sine(v) ** 2
    return total


# Functions that return arrays and tuples.


def softplus(x):
    return np.log1p(np.exp(x))


@mutad.rule(softplus)
def softplus_rule(x, result):
    x.shadow += result.shadow / (1.0 + np.exp(-x.value))


@mutad.tangent_rule(softplus)
def softplus_tangent(x, result):
    result.tangent += x.tangent / (1.0 + np.exp(-x.value))


def both(x, k):
    return x * k, (x * x).sum() * k


@mutad.rule(both)
def both_rule(x, k, result):
    scaled, total = result
    x.shadow += k.value * (scaled.shadow + 2.0 * x.value * total.cotangent)
    k.cotangent += (scaled.shadow * x.value).sum() + total.cotangent * (x.value**2).sum()


@mutad.tangent_rule(both)
def both_tangent(x, k, result):
    scaled, total = result
    scaled.tangent[:] = x.tangent * k.value + x.value * k.tangent
    total.tangent += 2.0 * (x.value * x.tangent).sum() * k.value
    total.tangent += (x.value**2).sum() * k.tangent


def smooth(x):
    return softplus(softplus(x) * 2.0).sum()


def of_a_tuple(x, k):
    y, total = both(x, k)
    return (y * y).sum() * total


def descends(x, k, n):
    if n == 0:
        return cosine(k)
    opaque_product(k, x, x * 0.5 + 1.0)
    return descends(x, k * 0.9, n - 1) + x[0] * cosine(k)


def vector(*numbers: float) -> np.ndarray:
    return np.array(numbers or (1.0, -0.5, 2.0))


ROWS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "in place, in a loop": (in_a_loop, (1.2, vector(), vector(0.3, 1.0, -1.0), 3)),
    "by what it holds after": (by_what_it_holds_after, (1.2, vector(), vector(0.3, 1.0, -1.0))),
    "constants have zeros": (with_a_constant, (1.2, vector())),
    "numbers": (waves, (vector(), 1.3)),
    "an array is returned": (smooth, (vector(),)),
    "a tuple is returned": (of_a_tuple, (vector(), 1.3)),
    "in a recursive function": (descends, (vector(), 1.3, 3)),
}


@pytest.mark.parametrize("name", ROWS)
def test_tangents_and_cotangents_agree(name: str) -> None:
    function, args = ROWS[name]
    check_gradient(compile(function, grad=True, opt=1), *args)


@pytest.mark.parametrize("name", [n for n in ROWS if "recursive" not in n])
def test_products_are_differences_of_gradients(name: str) -> None:
    function, args = ROWS[name]
    f, h = compile(function, grad=True, opt=1), 1e-5
    wrt = tuple(k for k, a in enumerate(args) if not isinstance(a, int))
    rng = np.random.default_rng(1)
    along = [rng.standard_normal(np.shape(args[k])) for k in wrt]

    def at(step: float) -> list[Any]:
        moved = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
        for k, d in zip(wrt, along, strict=True):
            moved[k] = (
                moved[k] + step * d
                if isinstance(args[k], np.ndarray)
                else args[k] + step * float(d)
            )
        return moved

    product = f.hvp(*at(0.0), wrt=wrt, direction=tuple(along))
    again = f.hvp(*at(0.0), wrt=wrt, direction=tuple(along), mode="reverse-over-reverse")
    ahead, behind = f.grad(*at(h), wrt=wrt), f.grad(*at(-h), wrt=wrt)
    for got, other, a, b in zip(product, again, ahead, behind, strict=True):
        np.testing.assert_allclose(got, (a - b) / (2 * h), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(other, got, rtol=1e-12, atol=1e-12)


def test_rules_of_gradients_are_enough_for_reverse_over_reverse() -> None:
    """A function in C that overwrites, and whose rule calls one: neither has a tangent rule."""
    libm = ctypes.CDLL("libm.so.6")
    exponential, expm1 = libm.exp, libm.expm1
    for one in (exponential, expm1):
        one.argtypes, one.restype = [ctypes.c_double], ctypes.c_double

    @mutad.opaque
    def grows(a, y):
        y *= exponential(a)

    @grows.rule(overwrites="y")
    def grows_rule(a, y):
        a.cotangent += (y.after * y.shadow).sum()
        y.shadow *= 1.0 + expm1(a.value)

    @mutad.rule(expm1)
    def expm1_rule(x, result):
        x.cotangent += (1.0 + result.value) * result.cotangent

    @compile(grad=True, opt=1)
    def f(a, y):
        for k in range(3):
            grows(a * y[k], y)
            y[k] += 0.1
        return (y**3).sum()

    def at(h: float) -> Any:
        return f.grad(0.3 + h, vector() + h * vector(0.2, -1.0, 0.4), wrt=("a", "y"))

    given = {"wrt": ("a", "y"), "direction": (1.0, vector(0.2, -1.0, 0.4))}
    product = f.hvp(0.3, vector(), **given, mode="reverse-over-reverse")
    for got, ahead, behind in zip(product, at(1e-5), at(-1e-5), strict=True):
        np.testing.assert_allclose(got, (ahead - behind) / 2e-5, rtol=1e-6)
    with pytest.raises(CompileError, match="tangent"):
        f.hvp(0.3, vector(), **given)


def test_rules_may_call_their_own_function() -> None:
    libm = ctypes.CDLL("libm.so.6")
    libm.exp2.argtypes, libm.exp2.restype = [ctypes.c_double], ctypes.c_double
    power = libm.exp2

    @mutad.rule(power)
    def power_rule(x, result):
        x.cotangent += result.cotangent * power(x.value) * np.log(2.0)

    f = compile(lambda x: power(x) * x, grad=True, opt=1)
    assert abs(f.grad(1.5) - 2.0**1.5 * (1.0 + 1.5 * np.log(2.0))) < 1e-12

    @mutad.tangent_rule(power)
    def power_tangent(x, result):
        result.tangent += x.tangent * power(x.value) * np.log(2.0)

    assert f.jvp(1.5, tangents={"x": 1.0})[1] == pytest.approx(f.grad(1.5), rel=1e-14)


def test_a_rule_that_calls_what_has_none_has_no_second_derivative() -> None:
    @mutad.rule(cython_special.y0)
    def y0_rule(x, result):
        x.cotangent -= cython_special.y1(x.value) * result.cotangent

    f = compile(lambda x: cython_special.y0(x) * x, grad=True, opt=1)
    with pytest.raises(CompileError, match="the gradient needs the derivative of `y1`") as refused:
        f.hvp(1.5, direction=1.0, mode="reverse-over-reverse")
    assert "write its rule" in str(refused.value)


def test_the_rule_decides_not_the_code() -> None:
    f = compile(smooth, grad=True, opt=1)
    x, dx = vector(800.0, 0.0), vector(1.0, 0.0)
    assert np.isinf(f(x))
    assert f.jvp(x, tangents={"x": dx})[1] == 2.0  # the code's own tangent is inf / inf


smooth_compiled = compile(smooth, grad=True, opt=1)
loop_compiled = compile(in_a_loop, grad=True, opt=1)


def asks_for_gradients(x, v):
    g = smooth_compiled.grad(x)
    h = loop_compiled.grad(1.2, x * 1.0, v * 1.0, 2, wrt="x")
    return (g * g).sum() + h[0]


def asks_for_tangents(x, v):
    value, dot = smooth_compiled.jvp(x, tangents={"x": v})
    return value * dot + smooth_compiled.hvp(x, direction=v).sum()


@pytest.mark.parametrize("function", [asks_for_gradients, asks_for_tangents])
def test_compiled_code_may_ask_for_them(function: Callable[..., Any]) -> None:
    args = vector(), vector(0.1, -0.2, 0.3)
    np.testing.assert_allclose(compile(function, opt=1)(*args), function(*args), rtol=1e-12)


@pytest.mark.parametrize("tangent", [right, by_its_result])
def test_check_rule_passes(tangent: Callable[..., None]) -> None:
    function = product()
    mutad.tangent_rule(function, tangent)
    check_rule(function, 2.0, vector(), vector(0.5, -1.0, 2.0))
    check_rule(softplus, vector())
    check_rule(cosine, 0.3)


def test_check_rule_finds_a_wrong_tangent() -> None:
    function = product()
    mutad.tangent_rule(function, forgetful)
    with pytest.raises(
        GradientError, match=r"tangents give .* in a direction in which the gradient"
    ):
        check_rule(function, 2.0, vector(), vector(0.5, -1.0, 2.0))


def test_a_second_derivative_that_nobody_knows_is_refused() -> None:
    @mutad.rule(cython_special.j0)
    def j0_rule(x, result):
        x.cotangent -= cython_special.j1(x.value) * result.cotangent

    @mutad.tangent_rule(cython_special.j0)
    def j0_tangent(x, result):
        result.tangent -= cython_special.j1(x.value) * x.tangent

    f = compile(lambda x: cython_special.j0(x) * x, grad=True, opt=1)
    value, slope = f.jvp(1.5, tangents={"x": 1.0})
    assert f.value_and_grad(1.5) == (value, slope)
    with pytest.raises(CompileError, match="the tangent needs the derivative of `j1`") as refused:
        f.hvp(1.5, direction=1.0)
    assert "@mutad.tangent_rule" in str(refused.value)
    assert "x.cotangent -= cython_special.j1" in str(refused.value)

    # The way out: a rule with a tangent for what the rule calls.
    @mutad.rule(cython_special.j1)
    def j1_rule(x, result):
        slope = cython_special.j0(x.value) - cython_special.j1(x.value) / x.value
        x.cotangent += slope * result.cotangent

    @mutad.tangent_rule(cython_special.j1)
    def j1_tangent(x, result):
        slope = cython_special.j0(x.value) - cython_special.j1(x.value) / x.value
        result.tangent += slope * x.tangent

    measured = (f.grad(1.5 + 1e-5) - f.grad(1.5 - 1e-5)) / 2e-5
    assert abs(f.hvp(1.5, direction=1.0) - measured) < 1e-8


def test_a_rule_that_is_replaced_has_no_tangent() -> None:
    function = product()
    mutad.tangent_rule(function, right)

    def call(x, y):
        function(2.0, x, y)
        return y.sum()

    f = compile(call, grad=True, opt=1)
    dx = np.ones(3)
    assert f.jvp(vector(), vector(), tangents={"x": dx})[1] == 5.0

    @function.rule(overwrites="y")
    def again(a, x, y):
        y.shadow *= a.value * x.value

    with pytest.raises(CompileError, match="`product` has a rule for its adjoint, and none"):
        f.jvp(vector(), vector(), tangents={"x": dx})


def stores_elsewhere(a, x, y):
    x.tangent[:] = 0.0


def asks_for_shadows(a, x, y):
    y.tangent += x.shadow


def stores_to_values(a, x, y):
    y.value[:] = 0.0


def returns(a, x, y):
    return y.tangent


REFUSED = {
    "stores to the tangent of `x`, which product": stores_elsewhere,
    "has no attribute `shadow`": asks_for_shadows,
    "stores to y": stores_to_values,
    "returns something": returns,
}


@pytest.mark.parametrize("words", REFUSED)
def test_wrong_tangents_are_refused_where_they_are(words: str) -> None:
    function = product()
    mutad.tangent_rule(function, REFUSED[words])

    @compile(grad=True, opt=1)
    def call(x, y):
        function(2.0, x, y)
        return y.sum()

    with pytest.raises(CompileError, match=words) as refused:
        call.jvp(vector(), vector(), tangents={"x": np.ones(3)})
    name = REFUSED[words].__name__
    assert f"def {name}" in str(refused.value) or "x.shadow" in str(refused.value)


def test_what_is_no_tangent_rule_is_no_tangent_rule() -> None:
    def plain(x):
        return x

    with pytest.raises(TypeError, match="plain has no rule"):
        mutad.tangent_rule(plain, lambda x, result: None)
    with pytest.raises(TypeError, match="has 2 parameters, and the rule 3"):
        mutad.tangent_rule(product(), lambda x, y: None)
    with pytest.raises(TypeError, match="not ufunc"):
        mutad.tangent_rule(product(), np.sin)
