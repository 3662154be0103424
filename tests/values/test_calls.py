"""Calls of Python functions: what is called, how arguments find their parameters, what comes back."""

import colorsys
import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from python_oracle import Case, Programs

from mutad import check_gradient, compile

programs = Programs()
on = programs.on


class Settings:
    G = 2.5
    SCALES = (1.0, 3.0)

    @staticmethod
    def square(x):
        return x * x

    def shifted(x):
        return x + 1.0

    @classmethod
    def scaled(cls, x):
        return cls.G * x


def square(x):
    return x * x


def cube(x):
    return x * x * x


def applied(f, x, times=1):
    for _ in range(times):
        x = f(x)
    return x


def keyword_only(x, *, k=2.0, m):
    return x * k - m


def positional_only(x, /, k=2.0):
    return x * k


def total(*terms, start=0.0):
    for t in terms:
        start = start + t
    return start


def first_and_rest(x, *rest):
    return x, rest, len(rest)


cubed = functools.partial(applied, cube)
powered = functools.partial(keyword_only, m=0.5)


@on("v", v="0.7 -1.5")
def functions_are_arguments(x):
    return applied(square, x) + applied(math.sin, x, times=2) + applied(lambda v: v - x, 2.0)


@on("v", v="0.7")
def functions_are_items_of_tuples(x):
    s = 0.0
    for f in (square, cube, math.exp):
        s += f(x)
    return s


@on("v", v="0.7")
def a_function_returns_functions(x):
    def scaled_by(k):
        return lambda y: y * k

    f, g = scaled_by(2.0), scaled_by(3.0)
    return f(x) - g(x)


@on("v", v="0.7")
def a_closure_is_called_by_another_function(x):
    k = x + 1.0

    def grow(y):
        return y * k

    return applied(grow, x, 3)


@on("v", v="0.7")
def functions_of_classes(x):
    return Settings.square(x) + Settings.shifted(x) + Settings.scaled(x)


@on("v", v="0.7")
def classes_have_other_names(x):
    s = Settings
    t = s
    return t.G * x + s.SCALES[1] + s.square(x)


@on("v", v="0.7")
def keywords_and_defaults(x):
    return keyword_only(x, m=1.0), keyword_only(m=x, k=x, x=2.0), positional_only(x, k=3.0)


@on("v", v="0.7")
def leftover_arguments_are_a_tuple(x):
    return total(), total(x), total(x, 2.0, x, start=1.0), first_and_rest(x, 1, 2.0)


@on("v", v="0.7")
def tuples_are_written_out_in_calls(x):
    t = (x, 2 * x)
    return total(*t), total(1.0, *t, *t), first_and_rest(*t), applied(*(cube, x))


@on("v", v="0.7")
def constant_keys_are_written_out_in_calls(x):
    return keyword_only(**{"x": x, "m": 1.0}), total(x, **{"start": 2 * x})


@on("v", v="0.7")
def nested_functions_take_leftover_arguments(x):
    def mean(*values):
        return total(*values) / len(values)

    return mean(x, 2 * x, 5.0)


@on("v", v="0.7")
def partials_from_outside(x):
    return cubed(x), cubed(x, times=2), powered(x), powered(x, k=x)


@on("v", v="0.7")
def partials_made_inside(x):
    p = functools.partial(keyword_only, k=4.0, m=x)
    q = functools.partial(p, m=2.0)
    return p(x), q(x), q(1.0, k=3.0)


@on("v n", v="0.7", n="3")
def operators_as_functions(x, n):
    return operator.mul(x, x) + operator.add(x, n), operator.floordiv(n, 2)


@on("v", v="0.7 0.2 -1.0")
def names_bound_in_conditions(x):
    if (y := 2 * x) > 1.0 and (z := y - 1.0) < 0.5:
        return y + z
    return y


@on("v", v="0.7 0.2")
def names_bound_where_only_one_way_evaluates(x):
    w = -1.0
    v = (w := x * 2) if x > 0.5 else 3.0
    ok = x > 0.5 or (w := 7.0) > 1.0
    return v, w, ok


@on("n", n="27 1 6")
def names_bound_by_the_condition_of_a_while(n):
    steps = 0
    while (r := n % 7) > 1:
        n = n // 2
        steps += 1
    return n, r, steps


@on("v", v="0.1 0.6 0.9")
def functions_of_the_standard_library(x):
    return (
        colorsys.rgb_to_yiq(x, 0.5, 0.2),
        colorsys.rgb_to_hls(x, 0.5, 0.2),
        colorsys.rgb_to_hsv(x, 0.5, 0.2),
    )


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_as_python_calls(case: Case) -> None:
    case.check()


# Functions as arguments of compiled functions


@compile(grad=True)
def mapped(f, x):
    for i in range(x.size):
        x[i] = f(x[i])
    return x.sum()


SCALE = 2.0


def scaled_square(v):
    return SCALE * v * v


def by(k):
    return lambda v: k * v


X = np.linspace(0.1, 0.9, 5)


@pytest.mark.parametrize(
    "f",
    [
        scaled_square, math.sin, np.cos, lambda v: v + 1.0, by(2.0), by(3.0),
        functools.partial(operator.mul, 3.0), compile(scaled_square),
    ],
)  # fmt: skip
def test_functions_are_arguments_of_compiled_functions(f: Callable[[Any], Any]) -> None:
    got, want = X.copy(), X.copy()
    np.testing.assert_allclose(mapped(f, got), mapped.__wrapped__(f, want), rtol=1e-14)
    np.testing.assert_allclose(got, want, rtol=1e-15)


def test_gradients_of_functions_with_function_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    check_gradient(mapped, scaled_square, X, wrt="x")
    np.testing.assert_allclose(mapped.grad(scaled_square, X.copy(), wrt="x"), 4.0 * X)
    np.testing.assert_allclose(mapped.grad(by(7.0), X.copy(), wrt="x"), np.full(5, 7.0))
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    np.testing.assert_allclose(mapped.grad(scaled_square, X.copy(), wrt="x"), 10.0 * X)


def test_a_function_argument_is_not_compiled_twice() -> None:
    mapped(scaled_square, X.copy())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapped._dispatcher.compiler, "compile", None)
        assert mapped(scaled_square, X.copy()) == mapped.__wrapped__(scaled_square, X.copy())
