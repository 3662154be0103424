"""Jacobians and Hessians of functions of objects, dicts, lists and tuples."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from mutad import compile


@dataclass
class Body:
    pos: np.ndarray
    mass: float = 2.0
    name: str = "body"


class Pair(NamedTuple):
    first: Any
    second: Any


@compile(grad=True, opt=1)
def energy(b, dt, kinds):
    b.pos[1:] *= dt * b.mass
    b.mass = b.mass * b.pos[0]
    return (b.pos**2).sum() * b.mass * len(kinds)


@compile(grad=True, opt=1)
def parts(b, xs):
    b.mass = b.mass * xs[0]
    return Pair(Body(b.pos * b.mass, b.mass, "out"), {"n": 3, "y": b.pos[:2] * xs[1] ** 2}), b.mass


@compile(grad=True, opt=1)
def of_lists(rows, pairs, k):
    total = 0.0
    for row in rows:
        row[0] = row[0] * k
        total += sum(row) ** 2
    for n, x in pairs:
        total += n * x**2 * k
    return total


def body() -> Body:
    return Body(np.array([1.0, -2.0, 0.5]))


def moved(value: Any, along: Any, step: float) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(moved(v, d, step) for v, d in zip(value, along, strict=True))
    if isinstance(value, Body):
        return Body(value.pos + step * along.pos, value.mass + step * along.mass)
    return value if isinstance(value, int | dict) else value + step * along


def floats(tree: Any) -> list[float]:
    """All floats of a tree, in order."""
    match tree:
        case Body():
            return [*floats(tree.pos), *floats(tree.mass)]
        case dict():
            return [x for item in tree.values() for x in floats(item)]
        case list() | tuple():
            return [x for item in tree for x in floats(item)]
        case float() | np.ndarray():
            return np.ravel(tree).tolist()
        case _:
            return []


def test_the_jacobian_has_the_form_of_the_result_around_that_of_the_arguments() -> None:
    b = body()
    (pair, mass) = parts.jacobian(b, [2.0, 3.0], wrt=("b", "xs"))
    assert (b.mass, b.pos.tolist()) == (4.0, [1.0, -2.0, 0.5])
    assert type(pair) is Pair
    assert (pair.first.name, pair.second["n"]) == ("out", 3)
    of_body, of_list = pair.first.pos
    assert type(of_body) is Body
    np.testing.assert_array_equal(of_body.pos, 4.0 * np.eye(3))
    np.testing.assert_array_equal(of_list[0], 2.0 * body().pos)
    np.testing.assert_array_equal(of_list[1], np.zeros(3))
    np.testing.assert_array_equal(pair.second["y"][1][1], 6.0 * body().pos[:2])
    assert mass[0].mass == 2.0
    assert mass[1] == [2.0, 0.0]


def test_both_modes_and_the_operator_agree() -> None:
    forward, reverse = (
        parts.jacobian(body(), [2.0, 3.0], wrt=("b", "xs"), mode=m) for m in ("forward", "reverse")
    )
    assert floats(forward) == floats(reverse)
    operator = parts.linear_operator(body(), [2.0, 3.0], wrt=("b", "xs"))
    assert operator.shape == (3 + 1 + 2 + 1, 3 + 1 + 2)
    dense = operator @ np.eye(6)
    np.testing.assert_array_equal(dense, (operator.T @ np.eye(7)).T)
    np.testing.assert_array_equal(dense[:3, :3], forward[0].first.pos[0].pos)
    np.testing.assert_array_equal(dense[3], floats(forward[0].first.mass))


ROWS = {
    "an object and a number": (energy, (body(), 0.5, {"on": 1}), ("b", "dt")),
    "lists": (of_lists, ([[1.0, 2.0], [3.0]], [(1, 0.5), (2, 1.5)], 0.7), ("rows", "pairs", "k")),
}


@pytest.mark.parametrize("name", ROWS)
def test_hessians_are_products_with_all_units(name: str) -> None:
    function, args, wrt = ROWS[name]
    names = function.parameters
    own = tuple(args[names.index(n)] for n in wrt)
    hessian = np.array(floats(function.hessian(*copy.deepcopy(args), wrt=wrt)))
    count = len(floats(own))
    rng, along = np.random.default_rng(0), copy.deepcopy(own)

    def drawn(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(drawn, value))
        if isinstance(value, Body):
            return Body(rng.standard_normal(3), float(rng.standard_normal()))
        return value if isinstance(value, int) else float(rng.standard_normal())

    along = drawn(along)
    product = function.hvp(*copy.deepcopy(args), wrt=wrt, direction=along)
    matrix = np.array(hessian)
    assert matrix.size == count**2
    if name == "lists":  # row by row; of an object the blocks of its fields follow each other
        np.testing.assert_allclose(matrix.reshape(count, count) @ floats(along), floats(product))
    h = function.hessian(*copy.deepcopy(args), wrt=wrt)
    last = np.array(floats(h[-1]))  # the row of a number
    np.testing.assert_allclose(last @ floats(along), floats(product)[-1], rtol=1e-12)


def test_effects_are_those_of_one_call() -> None:
    for method in ("jacobian", "hessian", "linear_operator"):
        mine, theirs = body(), body()
        getattr(energy, method)(mine, 0.5, {"on": 1}, wrt=("b.mass", "dt"))
        energy.__wrapped__(theirs, 0.5, {"on": 1})
        np.testing.assert_array_equal(mine.pos, theirs.pos)
        assert mine.mass == theirs.mass


@compile(grad=True, opt=1)
def plain_lists_come_back(x):
    return [x[0], x[1] * 2.0]


@compile(grad=True, opt=1)
def nothing_comes_back(b):
    b.mass *= 2.0


WRONG = {
    "its result holds a list": lambda: plain_lists_come_back.jacobian(np.ones(2)),
    "holds a list": lambda: plain_lists_come_back.linear_operator(np.ones(2)),
    "needs a function that returns floats": lambda: nothing_comes_back.jacobian(body()),
    "it holds no floats": lambda: energy.hessian(body(), 0.5, {"on": 1}, wrt="kinds"),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_has_no_jacobian_is_refused(words: str) -> None:
    with pytest.raises(TypeError, match=words):
        WRONG[words]()
