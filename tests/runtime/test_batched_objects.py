"""Several derivatives at once, and sparse matrices, of functions of objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mutad import compile


@dataclass
class Body:
    x: Any
    k: Any
    n: int
    name: str


@compile(grad=True, opt=1)
def moved(b, dt, s):
    for _ in range(b.n):
        b.x += dt * b.k * b.x * b.x
        b.k = b.k * 1.1
    b.x = b.x * 2.0
    return (b.x * s["w"]).sum() * b.k, b


@compile(grad=True, opt=1)
def energy(b, s):
    return (b.x * b.x * s["w"]).sum() * b.k * b.k


@compile(grad=True, opt=1)
def stepped(b, dt):
    b.x[1:-1] += dt * b.k * (b.x[:-2] - 2 * b.x[1:-1] + b.x[2:])
    return Body(b.x * 1.0, b.k, b.n, b.name)


@compile(grad=True, opt=1)
def rough(b, dt):
    b.x[1:-1] += dt * b.k * (b.x[:-2] - 2 * b.x[1:-1] + b.x[2:])
    return (b.x**4).sum() * b.k


def start(n: int = 2) -> tuple[Body, float, dict[str, np.ndarray]]:
    return Body(np.linspace(0.3, 0.5, n), 0.7, 3, "a"), 0.1, {"w": np.arange(1.0, n + 1)}


def body(x: np.ndarray, k: Any) -> Body:
    return Body(x.copy(), k if np.ndim(k) == 0 else k.copy(), 3, "a")


def given(lanes: int) -> Any:
    rng = np.random.default_rng(lanes)
    return rng.normal(size=(lanes, 2)), *rng.normal(size=(2, lanes)), rng.normal(size=(lanes, 2))


def assert_lane(together: Any, lane: int, alone: Any) -> None:
    """Of two bodies or dicts, or numbers: the one is a lane of the other."""
    if isinstance(alone, Body):
        assert (together.n, together.name) == (alone.n, alone.name)
        alone, together = (alone.x, alone.k), (together.x, together.k)
    elif isinstance(alone, dict):
        alone, together = (alone["w"],), (together["w"],)
    else:
        alone, together = (alone,), (together,)
    for one, several in zip(alone, together, strict=True):
        np.testing.assert_allclose(several[lane], one, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("lanes", [1, 3])
def test_tangents_of_objects_are_objects_of_stacks(lanes: int) -> None:
    x, k, dt, w = given(lanes)
    arguments, along = start(), {"b": body(x, k), "dt": dt, "s": {"w": w.copy()}}
    (value, same), (dot, tangent) = moved.jvp(*arguments, tangents=along, batch=lanes)
    assert same is arguments[0]
    assert tangent is along["b"]
    for lane in range(lanes):
        again, one = start(), {"b": body(x[lane], float(k[lane])), "dt": float(dt[lane])}
        one["s"] = {"w": w[lane].copy()}
        (plain, _), (alone, own) = moved.jvp(*again, tangents=one)
        assert value == plain
        np.testing.assert_array_equal(arguments[0].x, again[0].x)
        assert_lane(dot, lane, alone)
        assert_lane(tangent, lane, own)


def test_products_of_objects_are_objects_of_stacks() -> None:
    x, k, _, w = given(3)
    b, _, s = start()
    products = energy.hvp(b, s, wrt=("b", "s"), direction=(body(x, k), {"w": w}), batch=3)
    for lane in range(3):
        along = body(x[lane], float(k[lane])), {"w": w[lane]}
        alone = energy.hvp(b, s, wrt=("b", "s"), direction=along)
        for together, one in zip(products, alone, strict=True):
            assert_lane(together, lane, one)


@pytest.mark.parametrize("lanes", [1, 3])
def test_cotangents_of_objects_are_objects_of_stacks(lanes: int) -> None:
    x, k, bars, _ = given(lanes)
    wrt = "b", "dt", "s"
    _, back = moved.vjp(*start(), wrt=wrt, batch=lanes)
    _, one = moved.vjp(*start(), wrt=wrt)
    for first, final in ((bars, {}), (None, {"b": body(x, k)})):
        gradients = back((first, body(x, k)), **final)
        for lane in range(lanes):
            own = body(x[lane], float(k[lane]))
            bar = None if first is None else float(first[lane])
            alone = one((bar, own), **dict.fromkeys(final, own))
            for together, gradient in zip(gradients, alone, strict=True):
                assert_lane(together, lane, gradient)
    b, _, s = start()  # a number that stays as it is has the cotangent of its final value
    gradient = energy.vjp(b, s, wrt="b", batch=lanes)[1](bars, b=body(x, k))
    for lane in range(lanes):
        own = body(x[lane], float(k[lane]))
        assert_lane(gradient, lane, energy.vjp(b, s, wrt="b")[1](float(bars[lane]), b=own))


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_sparse_blocks_stand_in_the_place_of_floats(mode: str) -> None:
    b, dt, _ = start(7)
    sparse = stepped.jacobian(b, dt, wrt="b", sparsity="auto", mode=mode)
    again, _, _ = start(7)
    dense = stepped.jacobian(again, dt, wrt="b")
    np.testing.assert_array_equal(b.x, again.x)
    assert sparse.name == "a"
    assert sparse.x.x.nnz == 17
    for row, other in ((sparse.x, dense.x), (sparse.k, dense.k)):
        np.testing.assert_allclose(row.x.toarray(), np.reshape(other.x, row.x.shape), rtol=1e-13)
        np.testing.assert_allclose(row.k.toarray(), np.reshape(other.k, row.k.shape), rtol=1e-13)


def test_patterns_and_hessians_of_objects_are_sparse() -> None:
    b, dt, _ = start(7)
    pattern = stepped.jacobian_sparsity(b, dt, wrt="b")
    assert pattern.pattern.shape == (8, 8)
    again = stepped.jacobian(start(7)[0], dt, wrt="b", sparsity=pattern)
    assert again.x.x.nnz == 17
    sparse = rough.hessian(start(7)[0], dt, wrt="b", sparsity="auto")
    dense = rough.hessian(start(7)[0], dt, wrt="b")
    np.testing.assert_allclose(sparse.x.x.toarray(), dense.x.x, rtol=1e-12)
    np.testing.assert_allclose(sparse.k.x.toarray()[0], dense.k.x, rtol=1e-12)


@compile(grad=True, opt=1)
def listed(m):
    return m["a"][0] * m["b"]


@compile(grad=True, opt=1)
def grown(x, log):
    log.append((x[0] * 2.0, 1))
    return x.sum()


LISTS = {"a": [1.0, 2.0], "b": np.ones(2)}
TANGENTS = {"a": [np.ones(2), np.ones(2)], "b": np.ones((2, 2))}
WRONG: dict[str, Any] = {
    "jvp with batch=: \"m\\['a'\\]\" is a list of numbers": lambda: listed.jvp(
        LISTS, tangents={"m": TANGENTS}, batch=2
    ),
    "vjp with batch=: \"m\\['a'\\]\" is a list": lambda: listed.vjp(LISTS, batch=2),
    "jacobian with sparsity=: \"m\\['a'\\]\"": lambda: listed.jacobian(LISTS, sparsity="auto"),
    "jvp with batch=: grown makes a list, or changes one": lambda: grown.jvp(
        np.ones(2), [(1.0, 1)], tangents={"x": np.ones((3, 2))}, batch=3
    ),
}


@pytest.mark.parametrize("words", WRONG)
def test_lists_of_numbers_have_no_room(words: str) -> None:
    with pytest.raises(TypeError, match=words) as refused:
        WRONG[words]()
    assert "array" in str(refused.value)


def test_a_number_has_as_many_cotangents() -> None:
    b, _, s = start()
    _, back = energy.vjp(b, s, wrt="b", batch=2)
    with pytest.raises(ValueError, match=r"the cotangents of a number have shape \(\): use \(2,\)"):
        back(np.ones(2), b=Body(np.ones((2, 2)), 1.0, 3, "a"))
