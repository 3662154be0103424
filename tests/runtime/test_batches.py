"""Several tangents in one call: what `batch=` and `BatchDuplicated` take, refuse and return.

That each is what it is alone, over many programs, `tests/gradients` has (`tangent_oracle.check_batch`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad import (
    BatchDuplicated,
    Const,
    Duplicated,
    compile,
    rule,
    tangent_rule,
)


@compile(grad=True, opt=1)
def swing(u, k, steps):
    for _ in range(steps):
        u[1:] += k * u[:-1] * u[1:]
    return (u * u).sum()


@compile(grad=True, opt=1)
def parts(x, n):
    y = x * 2.0
    x[0] = 0.0
    return y, x, n, np.ones(2), (x[1], float(n))


@compile(grad=True, opt=1)
def layers(x, w, v):
    h = np.tanh(x @ w)
    return np.exp(0.1 * (h @ v)).sum() + h.max() + h.prod()


def walk(x, w, depth):
    """What its loop overwrites is kept in the record of each activation, on a tape for each array."""
    s = x[0] * w[0]
    t, y = s, x * w
    for i in range(x.size):
        s = s * x[i] + y[i] * t
        t = t * s + w[i]
        y = y * s + x * t
        if i == depth and depth < 2:
            s += walk(x, y, depth + 1) * t
    return s + (y * y).sum()


@compile(grad=True, opt=1)
def walked(x, w):
    return walk(x, w, 0)


def start() -> np.ndarray:
    return np.array([0.5, 1.5, -0.7])


@pytest.mark.parametrize("lanes", [1, 2, 3, 8])
def test_each_tangent_is_what_it_is_alone(lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    along, rates = rng.normal(size=(lanes, 3)), rng.normal(size=lanes)
    u, given = start(), along.copy()
    value, dots = swing.jvp(u, 0.1, 3, tangents={"u": given, "k": rates}, batch=lanes)
    assert dots.shape == (lanes,)
    products = swing.hvp(start(), 0.1, 3, wrt=("u", "k"), direction=(along, rates), batch=lanes)
    for lane in range(lanes):
        v, move = start(), along[lane].copy()
        alone = swing.jvp(v, 0.1, 3, tangents={"u": move, "k": rates[lane]})
        assert value == alone[0]
        np.testing.assert_array_equal(u, v)
        np.testing.assert_allclose(dots[lane], alone[1], rtol=1e-14)
        np.testing.assert_allclose(given[lane], move, rtol=1e-14)
        one = swing.hvp(
            start(), 0.1, 3, wrt=("u", "k"), direction=(along[lane].copy(), rates[lane])
        )
        np.testing.assert_allclose(products[0][lane], one[0], rtol=1e-13)
        np.testing.assert_allclose(products[1][lane], one[1], rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lanes", [1, 3, 8])
def test_records_of_recursive_functions_keep_each_tangent(lanes: int, dtype: type) -> None:
    rng = np.random.default_rng(lanes)
    x, w = rng.uniform(0.3, 0.6, (2, 3)).astype(dtype)
    along = tuple(rng.normal(size=(2, lanes, 3)).astype(dtype))
    products = walked.hvp(x, w, wrt=("x", "w"), direction=along, batch=lanes)
    for lane in range(lanes):
        alone = walked.hvp(x, w, wrt=("x", "w"), direction=tuple(d[lane] for d in along))
        for together, one in zip(products, alone, strict=True):
            assert together.dtype == dtype
            tolerance = 1e-12 if dtype is np.float64 else 1e-4
            np.testing.assert_allclose(together[lane], one, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 4), (40, 33, 35), (1, 30, 40), (30, 40, 1)])
def test_matrix_products_of_tangents(shape: tuple[int, int, int], dtype: type) -> None:
    n, k, m = shape
    rng = np.random.default_rng(n)
    x, w = (0.1 * rng.normal(size=s).astype(dtype) for s in ((n, k), (k, m)))
    v = np.asfortranarray(rng.normal(size=(m, 2)).astype(dtype))
    moves = {a: rng.normal(size=(8, *b.shape)).astype(dtype) for a, b in zip("xwv", (x, w, v))}
    dots = layers.jvp(x, w, v, tangents={a: d.copy() for a, d in moves.items()}, batch=8)[1]
    alone = [
        layers.jvp(x, w, v, tangents={a: d[lane].copy() for a, d in moves.items()})[1]
        for lane in range(8)
    ]
    assert dots.dtype == dtype
    tolerance = 1e-11 if dtype is np.float64 else 2e-3
    np.testing.assert_allclose(dots, alone, rtol=tolerance, atol=tolerance)


def test_the_tangents_have_the_form_of_the_result() -> None:
    x, along = start(), np.stack((np.ones(3), np.arange(3.0)))
    value, (dy, dx, dn, dones, (d1, df)) = parts.jvp(x, 4, tangents={"x": along}, batch=2)
    assert value[1] is x
    assert dx is along
    np.testing.assert_array_equal(dy, [[2.0, 2.0, 2.0], [0.0, 2.0, 4.0]])
    np.testing.assert_array_equal(along, [[0.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
    assert dn is None
    np.testing.assert_array_equal(dones, np.zeros((2, 2)))
    np.testing.assert_array_equal(d1, [1.0, 1.0])
    np.testing.assert_array_equal(df, [0.0, 0.0])


def test_in_place_tangents_lie_side_by_side() -> None:
    x, beside = start(), np.stack((np.ones(3), np.arange(3.0)), -1)
    _, (dy, dx, *_) = parts.pushforward(BatchDuplicated(x, beside), Const(4))
    assert dx is beside
    np.testing.assert_array_equal(beside, [[0.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    np.testing.assert_array_equal(dy, [[2.0, 0.0], [2.0, 2.0], [2.0, 4.0]])


def test_layouts_of_tangents_are_the_callers() -> None:
    matrix = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    squares = compile(lambda m: (m * m).sum(), grad=True, opt=1)
    along = np.random.default_rng(0).normal(size=(4, 3, 2)).transpose(0, 2, 1)
    expected = [2.0 * (matrix * d).sum() for d in along]
    dots = squares.jvp(matrix, tangents={"m": along}, batch=4)[1]
    np.testing.assert_allclose(dots, expected, rtol=1e-14)
    dots = squares.pushforward(BatchDuplicated(matrix, np.moveaxis(along, 0, -1)))[1]
    np.testing.assert_allclose(dots, expected, rtol=1e-14)


def halved(x, y, n):
    if n == 0:
        return 0.0
    x[n] *= 0.5 * y[n]
    return halved(x, y, n - 1) + x[n]


def in_turn(x, y, n):
    a, b = x, y
    for _ in range(n):
        a[0] = 2.0 * b[1]
        a, b = b, a
    return a[0]


def chosen(x, y, n):
    both = [x, y]
    both[n % 2][1:][0] *= 3.0
    return both[0][1] * both[1][1]


@pytest.mark.parametrize("function", [halved, in_turn, chosen])
def test_tangents_are_updated_however_their_arrays_are_stored_to(
    function: Callable[..., float],
) -> None:
    """One call updates those of arrays that it stores to, and leaves the others as they are."""
    f, rng = compile(function, grad=True, opt=1), np.random.default_rng(0)
    given = {name: rng.normal(size=(3, 3)) for name in "xy"}
    alone = [{name: d[lane].copy() for name, d in given.items()} for lane in range(3)]
    before = {name: d.copy() for name, d in given.items()}
    dots = f.jvp(start(), start() + 1.0, 1, tangents=given, batch=3)[1]
    for lane, tangents in enumerate(alone):
        np.testing.assert_allclose(
            f.jvp(start(), start() + 1.0, 1, tangents=tangents)[1], dots[lane]
        )
        for name, tangent in tangents.items():
            np.testing.assert_allclose(tangent, given[name][lane])
    assert any(not np.array_equal(given[name], before[name]) for name in "xy")


def test_shared_arguments_have_tangents_that_share() -> None:
    @compile(grad=True, opt=1)
    def both(x, y):
        x[0] = 2.0 * y[1]
        return x[0] * y[2]

    memory, along = np.array([1.0, 2.0, 3.0]), np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 0.0]])
    dots = {"x": along, "y": along[:, ::-1]}
    value, dot = both.jvp(memory, memory[::-1], tangents=dots, batch=2)
    assert value == 16.0
    np.testing.assert_array_equal(dot, [2 * 4.0 * 2.0, 0.0])
    np.testing.assert_array_equal(along[:, 0], [2.0, 0.0])
    apart = {"x": along, "y": along[:, ::-1].copy()}
    with pytest.raises(ValueError, match="do not share memory as the arrays do"):
        both.jvp(memory, memory[::-1], tangents=apart, batch=2)


def test_what_the_primal_raises_leaves_tangents_of_what_was_stored() -> None:
    @compile(grad=True, opt=1)
    def stops(x, n):
        x[0] *= 2.0
        if n > 1:
            raise ValueError("too many")
        return x.sum()

    x, along = start(), np.ones((2, 3))
    with pytest.raises(ValueError, match="too many"):
        stops.jvp(x, 2, tangents={"x": along}, batch=2)
    assert x[0] == 1.0
    np.testing.assert_array_equal(along[:, 0], [2.0, 2.0])


def test_partials_that_are_not_finite_meet_tangents_of_zero() -> None:
    """Strips with a root of 0 and without; divisors whose reciprocals are infinite, or have few digits."""

    @compile(grad=True, opt=1)
    def guarded(x, d):
        return (np.where(x > 0.0, np.sqrt(x), 0.0) * 3.0 + x / d).sum()

    x, d = np.ones(1000), np.ones(1000)
    x[:300] = 0.0
    along = np.zeros((3, 1000))
    along[1], along[2, 400] = 1.0, np.inf
    dots = guarded.jvp(x, d, tangents={"x": along.copy()}, batch=3)[1]
    assert dots[0] == 0.0
    np.testing.assert_allclose(dots[1], 1000.0 + 1.5 * 700.0, rtol=1e-13)
    assert dots[2] == np.inf
    for divisor, small in ((1e-310, 1e-315), (1e308, 1e300), (np.inf, 1.0)):
        d[:600:7] = divisor
        along = np.where(d == divisor, small, 0.0) * np.array([[1.0], [2.0]])
        dots = guarded.jvp(x, d, tangents={"x": along.copy()}, batch=2)[1]
        alone = [guarded.jvp(x, d, tangents={"x": one.copy()})[1] for one in along]
        np.testing.assert_allclose(dots, alone, rtol=1e-13, atol=0.0)


def cube(x):
    return x * x * x


@rule(cube, needs="x")
def cube_adjoint(x, result):
    x.cotangent += 3.0 * x.value * x.value * result.cotangent


@tangent_rule(cube)
def cube_tangent(x, result):
    result.tangent += 3.0 * x.value * x.value * x.tangent


def test_rules_move_each_tangent() -> None:
    @compile(grad=True, opt=1)
    def cubes(k, u):
        return cube(k) * u * u

    u, along = start(), np.array([1.0, -2.0])
    dots = cubes.jvp(2.0, u, tangents={"k": along}, batch=2)[1]
    np.testing.assert_allclose(dots, 12.0 * along[:, None] * u * u)
    by_columns = cubes.jacobian(2.0, u, wrt=("k", "u"), mode="forward")
    by_rows = cubes.jacobian(2.0, u, wrt=("k", "u"), mode="reverse")
    for one, other in zip(by_columns, by_rows, strict=True):
        np.testing.assert_allclose(one, other)


def call(**given: Any) -> Any:
    return lambda: swing.jvp(start(), 0.1, 1, **given)


WRONG: dict[str, tuple[type[Exception], Any]] = {
    r"with batch=2 use \(2, 3\)": (ValueError, call(tangents={"u": np.ones(3)}, batch=2)),
    r"with batch=2 use \(2,\)": (ValueError, call(tangents={"k": 1.0}, batch=2)),
    "use an array of shape": (TypeError, call(tangents={"u": [1.0]}, batch=2)),
    "use 1 to 64 directions": (ValueError, call(tangents={"k": np.ones(0)}, batch=0)),
    "use the number of directions": (TypeError, call(tangents={"k": np.ones(2)}, batch=2.0)),
    "BatchDuplicated with one k": (
        TypeError,
        lambda: swing.pushforward(
            BatchDuplicated(start(), np.ones((3, 2))), Duplicated(0.1, 1.0), Const(1)
        ),
    ),
    r"use \(3, k\)": (
        ValueError,
        lambda: swing.pushforward(BatchDuplicated(start(), np.ones(3)), Const(0.1), Const(1)),
    ),
    r"float64\[2, 2\]": (
        ValueError,
        lambda: swing.pushforward(BatchDuplicated(start(), np.ones((2, 2))), Const(0.1), Const(1)),
    ),
    r"the directions of 'u' have shape \(3,\): with batch=2 use \(2, 3\)": (
        ValueError,
        lambda: swing.hvp(start(), 0.1, 1, direction=np.ones(3), batch=2),
    ),
    "hold objects or lists": (
        TypeError,
        lambda: compile(lambda m: m["a"], grad=True).pushforward(
            BatchDuplicated({"a": 1.0}, np.ones(2))
        ),
    ),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_calls_are_refused(words: str) -> None:
    kind, wrong = WRONG[words]
    with pytest.raises(kind, match=words):
        wrong()
