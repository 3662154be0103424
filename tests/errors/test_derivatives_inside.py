"""Refusals of derivatives that compiled code asks for, with their places and ways out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mutad
from mutad import CompileError

CASES: list[tuple[Callable[..., Any], str, str]] = []


def refused(words: str, way_out: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The program is refused with these words, and this way out."""

    def record(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((function, words, way_out))
        return function

    return record


def plain(x):
    return (x * x).sum()


without_gradient = mutad.compile(plain)


@mutad.compile(grad=True)
def dot(a, b, n=2):
    return (a * b).sum() * n


@mutad.compile(grad=True)
def doubled(a):
    return 2.0 * a


def again(x, n):
    return x if n == 0 else again(x * x, n - 1)


@mutad.compile(grad=True)
def recursive(x):
    return again(x, 3).sum()


@mutad.compile(grad=True)
def own(x):
    return own.grad(x)


@dataclass
class Model:
    k: np.ndarray


@mutad.compile(grad=True)
def of_model(model, x):
    return (model.k * x).sum()


@refused(
    "`plain` has no attribute `grad`: it is not compiled",
    "decorate `plain` with @compile(grad=True)",
)
def of_a_plain_function(x):
    return plain.grad(x)


@refused("compiled without gradient", "decorate `plain` with @compile(grad=True)")
def of_a_function_without_gradient(x):
    return without_gradient.hvp(x, direction=x)


@refused("`dot.vjp` cannot be called", "compiled code may call .grad, .value_and_grad, .jvp, .hvp")
def other_derivatives(x):
    return dot.vjp(x, x)


@refused("dot() has no parameter 'c'", "its parameters are a, b, n")
def an_unknown_parameter(x):
    return dot.grad(x, x.copy(), wrt="c")


@refused("wrt='a[0]'", "an argument of its own")
def a_part_of_a_parameter(x):
    return dot.grad(x, x.copy(), wrt="a[0]")


@refused("`wrt` is no parameter of dot()")
def a_parameter_beyond_the_last(x):
    return dot.grad(x, x.copy(), wrt=3)


@refused("with respect to `n`, a number of type int", "convert it")
def an_integer(x):
    return dot.grad(x, x.copy(), 3, wrt="n")


@refused("with respect to `a`, an array of dtype i64", "convert it")
def an_array_of_integers(x):
    return dot.grad(np.arange(3), x)


@refused("neither a number nor an array", "an argument of its own")
def a_tuple(x):
    return dot.grad((x, x), x)


@refused("returns one float; doubled() returns an array", "a sum")
def of_an_array(x):
    return doubled.grad(x)


@refused("dot.hvp() needs an argument `direction`")
def without_direction(x):
    return dot.hvp(x, x.copy())


@refused("dot.grad() has no argument `direction`")
def with_a_direction(x):
    return dot.grad(x, x.copy(), direction=x)


@refused("wrt names 2 arguments, and there are 1 directions")
def too_few_directions(x):
    return dot.hvp(x, x.copy(), wrt=("a", "b"), direction=(x,))


@refused("the direction of `a` is not an array of dtype float64")
def a_direction_of_another_dtype(x):
    return dot.hvp(x, x.copy(), direction=x.astype(np.float32))


@refused("the direction of `a` is not an array of rank 1")
def a_direction_that_is_a_number(x):
    return doubled.jvp(x, tangents={"a": 1.0})


@refused("tangents= is no dict", "write it there")
def tangents_that_are_no_dict(x):
    return doubled.jvp(x, tangents=x)


@refused(
    "differentiated with respect to `a`, which may share memory with `b`", "pass a copy: b.copy()"
)
def one_array_twice(x):
    return dot.grad(x, x)


@refused("updates the tangent of `a`, which may share memory with `a`", "pass a copy: a.copy()")
def a_tangent_that_is_the_array(x):
    return doubled.jvp(x, tangents={"a": x})


@refused("recursive(), whose derivative is taken here, calls a recursive function", "write a loop")
def of_a_recursive_function(x):
    return recursive.grad(x)


@refused("own(), whose derivative is taken here, calls a recursive function", "write a loop")
def its_own(x):
    return own(x)


@mutad.compile(grad=True)
def counts(model, x):
    model.k = model.k * 2.0
    return (model.k * x).sum()


@refused("counts(), whose derivative is taken here, assigns to `k` of an object", "in place")
def an_object_that_is_assigned_to(x):
    return counts.grad(Model(x), x.copy(), wrt="x")


@refused("with respect to `model`, neither a number nor an array", "an argument of its own")
def with_respect_to_an_object(x):
    return of_model.grad(Model(x), x)


@refused("dot() missing a required argument: 'b'")
def too_few_arguments(x):
    return dot.grad(x)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0].__name__)
def test_refused(case: Any) -> None:
    function, words, way_out = case
    with pytest.raises(CompileError) as caught:
        mutad.compile(function, cache=False, opt=0)(np.array([3.0, 1.0, 2.0]))
    assert words in str(caught.value)
    assert way_out in str(caught.value.way_out or "")
    assert caught.value.span is not None


def cube(x):
    return x * x * x


@mutad.rule(cube)
def cube_rule(x, result):  # pyright: ignore[reportUnusedFunction]
    x.cotangent += 3 * x.value**2 * result.cotangent


@mutad.compile(grad=True)
def with_a_rule(x):
    return cube(x) * x


def test_second_derivatives_through_rules() -> None:
    """The rule need not be the derivative of the function, so nobody knows its own."""

    def slope(x, k):
        return with_a_rule.grad(x) * k

    assert mutad.compile(slope)(2.0, 1.0) == 32.0
    with pytest.raises(CompileError, match="a function with a rule, whose second derivatives"):
        mutad.grad(slope)(2.0, 1.0)

    def stopped(x, k):
        return mutad.stop_gradient(with_a_rule.grad(x)) * k

    assert mutad.grad(stopped, wrt="k")(2.0, 1.0) == 32.0


def test_a_handler_around_what_may_raise() -> None:
    @mutad.compile(grad=True)
    def root(x):
        if x < 0.0:
            raise ValueError("no root")
        return x**0.5

    def handled(x):
        try:
            return root.grad(x)
        except ValueError:
            return 0.0

    with pytest.raises(CompileError, match="`root` is called in a `try`"):
        mutad.compile(handled)(4.0)


def test_derivatives_where_strides_say_what_is_in_place() -> None:
    """A copy of the argument, and its tangent, have other strides: there the function would be another."""

    @mutad.compile(grad=True, opt=0)
    def flattened(u):
        flat = u.reshape(-1)
        u[0] = u[1] * u[1]
        return (flat * flat * u.size).sum()

    def slope(a):
        return (flattened.grad(a[:, :2]) ** 2).sum()

    def moved(a, b):
        return flattened.jvp(a[:, :2], tangents={"u": b})[1]

    def copied(a, b):
        first = (flattened.grad(a[:, :2].copy()) ** 2).sum()
        return first + flattened.jvp(a[:, :2].copy(), tangents={"u": b})[1]

    a, b = np.linspace(0.1, 0.9, 12).reshape(3, 4), np.ones((3, 2))
    assert mutad.compile(slope, opt=0)(a.copy()) == slope(a.copy())
    with pytest.raises(CompileError, match="whether the function reshapes an argument"):
        mutad.grad(slope)(a)
    with pytest.raises(CompileError, match="whether flattened\\(\\) reshapes an argument"):
        mutad.compile(moved)(a, b)
    mutad.check_gradient(mutad.compile(copied, grad=True, opt=0), a, b)
