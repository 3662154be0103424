"""Tangents of arguments with objects, lists, dicts and tuples; the derivatives are in `tests/gradients`."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from object_oracle import products_agree, tangents_agree

from mutad import Const, Duplicated, compile


@dataclass
class Body:
    pos: np.ndarray
    mass: float = 2.0
    name: str = "body"
    hits: int = 0


@dataclass
class World:
    bodies: list = field(default_factory=list)
    heaviest: Any = None


class Pair(NamedTuple):
    x: np.ndarray
    k: float


def body(*numbers: float) -> Body:
    return Body(np.array(numbers or (1.0, -2.0, 0.5)))


@compile(grad=True, opt=1)
def kick(b, dt, kinds):
    b.pos[1:] *= dt * b.mass
    b.mass = b.mass * b.pos[0]
    b.hits += len(kinds["on"])
    return (b.pos**2).sum() * b.mass


@compile(grad=True, opt=1)
def made(b, xs, n):
    xs.append(xs[0] * b.mass)
    b.pos = b.pos * xs[1]
    return Pair(b.pos * 2.0, b.mass**2), {"n": n, "half": xs[0] / 2}, b, (n, b.name, None, xs[1])


@compile(grad=True, opt=1)
def swapped(w):
    w.bodies[0], w.bodies[1] = w.bodies[1], w.bodies[0]
    w.heaviest.pos[0] = w.bodies[0].pos[1] ** 2
    w.heaviest = w.bodies[0]
    return w.heaviest.mass * (w.bodies[1].pos ** 2).sum()


@compile(grad=True, opt=1)
def lists(rows, pairs, k):
    total = 0.0
    for row in rows:
        row[0] = row[0] * k
        total += sum(row) ** 2
    for n, x in pairs:
        total += n * x**2
    return total


def world() -> World:
    one, two = body(), body(0.5, 1.5, 2.5)
    return World([one, two], one)


ROWS = {
    "fields and dicts": (kick, (body(), 0.5, {"on": [1, 2]}), ("b", "dt")),
    "a field": (kick, (body(), 0.5, {"on": [1]}), "b"),
    "objects, lists and words come back": (made, (body(), [2.0, 3.0], 4), ("b", "xs")),
    "objects that change places": (swapped, (world(),), "w"),
    "lists of lists and of tuples": (
        lists,
        ([[1.0, 2.0], [3.0]], [(1, 0.5), (2, 1.5)], 0.7),
        ("rows", "pairs", "k"),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_tangents_are_those_of_differences(name: str) -> None:
    function, args, wrt = ROWS[name]
    tangents_agree(function, *args, wrt=wrt)


@pytest.mark.parametrize(
    "name", ["fields and dicts", "objects that change places", "lists of lists and of tuples"]
)
def test_products_are_differences_of_gradients(name: str) -> None:
    function, args, wrt = ROWS[name]
    products_agree(function, *args, wrt=wrt)


def test_the_tangent_of_an_object_has_its_form() -> None:
    xs, dxs, b, db = [2.0, 3.0], [1.0, 0.0], body(), Body(np.ones(3), 0.0, "unread", 99)
    value, dot = made.jvp(b, xs, 4, tangents={"b": db, "xs": dxs})
    assert type(dot[0]) is Pair
    assert dot[1] == {"n": 4, "half": 0.5}
    assert value[2] is b
    assert dot[2] is db
    assert dot[3] == (None, None, None, 0.0)
    assert xs[2:] == [4.0]
    assert dxs == [1.0, 0.0, 2.0]
    np.testing.assert_array_equal(db.pos, [3.0, 3.0, 3.0])
    assert (db.name, db.hits) == ("unread", 99)


def test_objects_that_share_have_tangents_that_share() -> None:
    w = world()
    dot = copy.deepcopy(w)
    one, two = dot.bodies
    swapped.jvp(w, tangents={"w": dot})
    assert dot.bodies[0] is two
    assert dot.bodies[1] is one
    assert dot.heaviest is two


def test_parts_move_alone_and_in_place() -> None:
    b, move = body(), np.array([0.0, 1.0, 0.0])
    value, dot = kick.jvp(b, 0.5, {"on": [1]}, tangents={"b.pos": move})
    c, dc = body(), Body(np.array([0.0, 1.0, 0.0]), 0.0)
    wrapped = Duplicated(c, dc), Const(0.5), Const({"on": [1]})
    assert kick.pushforward(*wrapped) == (value, dot)
    np.testing.assert_array_equal(move, dc.pos)
    assert (b.mass, b.hits, c.mass, c.hits) == (2.0, 1, 2.0, 1)
    assert kick.hvp(body(), 0.5, {"on": []}, wrt="b.mass", direction=1.0) == 12.75
    value, gradient, product = kick.value_grad_hvp(
        body(), 0.5, {"on": []}, wrt=("b", "dt"), direction=(Body(np.zeros(3), 1.0), 0.0)
    )
    assert type(gradient[0]) is type(product[0]) is Body
    assert (product[0].name, product[0].hits) == ("body", 0)


@compile(grad=True, opt=1)
def stops(b, n):
    b.pos[0] *= b.mass
    b.mass = b.mass * 2.0
    if n > 1:
        raise ValueError("too many")
    return b.pos.sum()


@pytest.mark.parametrize("mode", ["jvp", "hvp"])
def test_what_the_primal_raises_it_raises(mode: str) -> None:
    b, db = body(), Body(np.ones(3), 1.0)
    with pytest.raises(ValueError, match="too many"):
        stops.jvp(b, 2, tangents={"b": db}) if mode == "jvp" else stops.hvp(b, 2, direction=db)
    assert (b.pos[0], b.mass) == (2.0, 4.0)


def shared_wrongly() -> World:
    one, two = body(), body(1, 2, 3)
    return World([one, two], two)


ONE = body()
WRONG: dict[str, tuple[type[Exception], Any]] = {
    "tangent of 'b' is float: use Body": (
        TypeError,
        lambda: stops.jvp(body(), 1, tangents={"b": 1.0}),
    ),
    "tangent of 'b.mass' is ndarray: use a number": (
        TypeError,
        lambda: stops.jvp(body(), 1, tangents={"b": Body(np.ones(3), np.ones(2))}),
    ),
    "tangent of 'b.pos' is list: use an array": (
        TypeError,
        lambda: stops.jvp(body(), 1, tangents={"b": Body([1.0, 2.0, 3.0])}),
    ),
    "tangent of 'b.pos' is float64": (
        ValueError,
        lambda: stops.jvp(body(), 1, tangents={"b": Body(np.ones(2))}),
    ),
    "no parameter or part of one is called 'b.speed'": (
        TypeError,
        lambda: stops.jvp(body(), 1, tangents={"b.speed": 1.0}),
    ),
    "'b.pos' has two tangents": (
        ValueError,
        lambda: stops.jvp(body(), 1, tangents={"b": body(), "b.pos": np.ones(3)}),
    ),
    "shares memory with b.pos": (
        ValueError,
        lambda: stops.jvp(ONE, 1, tangents={"b": Body(ONE.pos)}),
    ),
    "tangent of 'b' is not shared as it is itself": (
        ValueError,
        lambda: stops.jvp(ONE, 1, tangents={"b": ONE}),
    ),
    "tangent of 'w.bodies.0.' is not shared": (
        ValueError,
        lambda: swapped.jvp(world(), tangents={"w": shared_wrongly()}),
    ),
    "another length": (
        ValueError,
        lambda: swapped.jvp(world(), tangents={"w": World([body()], body())}),
    ),
    "does not hold one number for each": (
        ValueError,
        lambda: lists.jvp([[1.0]], [(1, 2.0)], 1.0, tangents={"rows": [[1.0, 2.0]]}),
    ),
    "the tangent of 'kinds' has no 'on'": (
        TypeError,
        lambda: kick.jvp(body(), 0.5, {"on": [1]}, tangents={"kinds": {}}),
    ),
    "'n' has no derivative, its type is int": (
        TypeError,
        lambda: stops.jvp(body(), 1, tangents={"n": 1.0}),
    ),
    "wrap argument 'n': Duplicated": (
        TypeError,
        lambda: stops.pushforward(Duplicated(body(), body()), 1),
    ),
    "the tangent of 'b' is dict: use Body": (
        TypeError,
        lambda: stops.hvp(body(), 1, direction={"pos": np.ones(3)}),
    ),
    "the direction of 'b.pos' has shape": (
        ValueError,
        lambda: stops.hvp(body(), 1, direction=body(1.0)),
    ),
    "there are 1 directions": (
        ValueError,
        lambda: kick.hvp(body(), 0.5, {"on": []}, wrt=("b", "dt"), direction=(body(),)),
    ),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_calls_are_refused(words: str) -> None:
    kind, call = WRONG[words]
    with pytest.raises(kind, match=words):
        call()
