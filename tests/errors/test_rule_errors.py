"""Refusals: calls of foreign functions, and rules."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import mutad
from mutad import CompileError

libm = ctypes.CDLL("libm.so.6")
cosh = libm.cosh
cosh.argtypes, cosh.restype = [ctypes.c_double], ctypes.c_double
undeclared = libm.sinh
pointers = libm.frexp
pointers.argtypes, pointers.restype = (
    [ctypes.c_double, ctypes.POINTER(ctypes.c_int)],
    ctypes.c_double,
)
with_gil = ctypes.pythonapi.PyFloat_AsDouble
with_gil.argtypes, with_gil.restype = [ctypes.c_double], ctypes.c_double
rounds = libm.lround
rounds.argtypes, rounds.restype = [ctypes.c_long], ctypes.c_long
memcpy = ctypes.CDLL(None).memcpy
vector = np.ctypeslib.ndpointer(np.float64, ndim=1, flags="C_CONTIGUOUS")
memcpy.argtypes, memcpy.restype = [vector, vector, ctypes.c_size_t], None


@mutad.opaque
def scale(x, y):
    y[:] = 2 * x


@scale.rule(overwrites="y")
def scale_rule(x, y):
    x.shadow += 2 * y.shadow
    y.shadow[:] = 0.0


@mutad.opaque
def number(x: float) -> float:
    return x * x


def message(program: Any, *args: Any, gradient: bool = False) -> str:
    function = mutad.grad(program) if gradient else mutad.compile(program)
    with pytest.raises(CompileError) as caught:
        function(*args)
    return str(caught.value)


X = np.ones(3)


@pytest.mark.parametrize(
    ("program", "args", "words"),
    [
        (lambda x: undeclared(x), (1.0,), "its argtypes are not declared"),
        (lambda x: pointers(x, 3), (1.0,), "np.ctypeslib.ndpointer"),
        (lambda x: with_gil(x), (1.0,), "wants the GIL"),
        (lambda x: cosh(x, x), (1.0,), r"takes 1 arguments, not 2"),
        (lambda x: cosh(x), (X,), "must be a number"),
        (lambda x: rounds(x), (1.0,), "must be an integer"),
        (lambda x: cosh(x=x), (1.0,), "keyword arguments"),
        (lambda x: memcpy(x, x[::2], 8), (X,), "must be contiguous"),
        (lambda x: memcpy(x, np.ones((2, 2)), 8), (X,), "must have 1 dimension"),
        (lambda x: memcpy(x, np.ones(2, np.float32), 8), (X,), "must have dtype f64"),
        (lambda x: scale((x, x), x), (X,), "neither a number nor an array"),
    ],
)
def test_calls(program: Any, args: tuple[Any, ...], words: str) -> None:
    import re

    assert re.search(words, message(program, *args))


def test_no_handler_gets_what_cpython_raises() -> None:
    def program(x):
        try:
            return number(x)
        except ValueError:
            return 0.0

    assert "`number` is called in a `try`" in message(program, 1.0)


def test_a_gradient_through_a_function_without_rule() -> None:
    def program(x):
        y = x * x
        return number(y) + cosh(x)

    text = message(program, 1.0, gradient=True)
    assert "derivative of `number`" in text or "derivative of `cosh`" in text
    assert "@mutad.rule(" in text
    assert "mutad.stop_gradient" in text
    assert mutad.compile(program)(1.0) == program(1.0)


def test_memory_that_an_opaque_function_without_rule_overwrites() -> None:
    @mutad.opaque
    def noise(x):
        x[:] = 1.0

    def program(x):
        y = x * 2
        noise(y)
        return (y * x).sum()

    assert "derivative of `noise`" in message(program, X, gradient=True)


@pytest.mark.parametrize(
    "program",
    [lambda x: scale(x, x), lambda x: scale(x[1:], x[:-1]), lambda x: scale(x[::-1], x)],
    ids=["itself", "shifted", "reversed"],
)
def test_an_overwritten_argument_that_shares_memory(program: Any) -> None:
    def loss(x):
        program(x)
        return x.sum()

    text = message(loss, X, gradient=True)
    assert "overwrites `y`, which may share memory with `x`" in text
    assert "pass a copy: x.copy()" in text


def of(rule: Any, **declared: Any) -> str:
    """What the compiler says to a rule of `y[:] = a * x`."""

    @mutad.opaque
    def step(a, x, y):
        y[:] = a * x

    mutad.rule(step, rule, **({"overwrites": "y"} | declared))

    def loss(a, x):
        y = np.zeros(3)
        step(a, x, y)
        return y.sum()

    return message(loss, 2.0, X, gradient=True)


def test_rules_that_do_not_compile() -> None:
    def stores(a, x, y):
        x.value[0] = 1.0

    def assigns(a, x, y):
        a.cotangent = 1.0

    def rebinds(a, x, y):
        x.shadow = y.shadow

    def returns(a, x, y):
        return x.shadow.sum()

    def mistakes(a, x, y):
        x.cotangent += 1.0

    def mistaken(a, x, y):
        a.shadow += 1.0

    def unknown(a, x, y):
        x.bar += 1.0

    def more(a, x, y, result):
        pass

    def fewer(a, y):
        pass

    def arrays(a, x, y):
        a.cotangent += x.value * y.shadow

    assert "stores to x" in of(stores)
    assert "add to a cotangent" in of(assigns)
    assert "change a shadow in place" in of(rebinds)
    assert "returns something" in of(returns)
    assert "write x.shadow" in of(mistakes)
    assert "write a.cotangent" in of(mistaken)
    assert "has no attribute `bar`" in of(unknown)
    assert "there is no result" in of(more)
    assert "2 parameters, and the call 3 arguments" in of(fewer)
    assert "add its sum" in of(arrays)
    assert "test_rule_errors.py" in of(returns)


def test_a_store_that_the_rule_of_a_compiled_function_does_not_declare() -> None:
    def step(x, y):
        y[:] = x

    @mutad.rule(step, overwrites=())
    def step_rule(x, y):  # pyright: ignore[reportUnusedFunction]
        pass

    def loss(x):
        y = np.zeros(3)
        step(x, y)
        return y.sum()

    assert "step() stores to `y`, which its rule does not say" in message(loss, X, gradient=True)


def test_a_read_that_the_rule_of_a_compiled_function_does_not_declare() -> None:
    def step(x, y, z):
        y[1:] = x[1:] * z[0]

    @mutad.rule(step, reads="x", overwrites="y")
    def step_rule(x, y, z):  # pyright: ignore[reportUnusedFunction]
        pass

    def loss(x):
        y = np.zeros(3)
        step(x, y, x * 2)
        return y.sum()

    assert "step() reads `z`, which its rule does not say" in message(loss, X, gradient=True)


def test_results_that_a_function_with_a_rule_cannot_have() -> None:
    def argument(x):
        return x

    def view(x):
        return x[1:]

    def chosen(x):
        return x[x > 0]

    for function, words in (
        (argument, "a view of one"),
        (view, "a view of one"),
        (chosen, "shape"),
    ):

        def rule(x, result):
            x.shadow += 0.0

        mutad.rule(function, rule)

        def loss(x):
            return function(x).sum()

        assert words in message(loss, X, gradient=True)


def test_a_rule_of_a_function_that_calls_itself() -> None:
    def power(x, n):
        return x if n <= 1 else x * power(x, n - 1)

    @mutad.rule(power)
    def power_rule(x, n, result):  # pyright: ignore[reportUnusedFunction]
        x.cotangent += n.value * result.value / x.value * result.cotangent

    def loss(x, n):
        return power(x, n)

    assert "calls a recursive function" in message(loss, 2.0, 3, gradient=True)
    assert mutad.compile(loss)(2.0, 3) == 8.0


def test_objects_as_arguments_of_a_function_with_a_rule() -> None:
    def apply(f, x):
        return f(x)

    @mutad.rule(apply)
    def apply_rule(f, x, result):  # pyright: ignore[reportUnusedFunction]
        x.cotangent += result.cotangent

    def loss(x):
        k = x + 1.0
        return apply(lambda v: v * k, x)

    assert "not a number, array or tuple" in message(loss, 2.0, gradient=True)


def test_singular_values_have_no_derivative() -> None:
    """Refused where they are differentiated; the solution has its gradient."""

    @mutad.compile(grad=True)
    def sizes(a, b):
        x, _, _, s = np.linalg.lstsq(a, b)
        return x.sum() + s.sum()

    @mutad.compile(grad=True)
    def solution(a, b):
        x, _, _, s = np.linalg.lstsq(a, b)
        return x.sum() + mutad.stop_gradient(s.sum())

    a, b = np.array([[2.0, 1.0], [0.5, 3.0], [1.0, 1.0]]), np.array([1.0, 2.0, 0.5])
    with pytest.raises(mutad.CompileError, match="the derivative of singular values is not known"):
        sizes.grad(a, b)
    np.testing.assert_allclose(solution.grad(a, b, wrt="b"), np.linalg.pinv(a).sum(axis=0))
    plain = sizes.__wrapped__
    assert mutad.compile(plain)(a, b) == pytest.approx(plain(a, b))
