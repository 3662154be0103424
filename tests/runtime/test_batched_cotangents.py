"""Several cotangents in one reverse sweep: what `vjp(batch=)` and `BatchDuplicated` take, refuse and return.

That each is what it is alone, over many programs, `tests/gradients` has (`lane_oracle`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mutad import (
    Active,
    BatchDuplicated,
    CompileError,
    Const,
    Duplicated,
    compile,
    rule,
    tangent_rule,
)


@compile(grad=True, opt=1)
def parts(u, k, steps):
    for _ in range(steps):
        u[1:] += k * u[:-1] * u[1:]
    return u * u, k * u[0], float(u.sum()), steps


def start() -> np.ndarray:
    return np.array([0.5, 1.5, -0.7, 0.2])


def gradients_alone(bars: list[Any], **finals: Any) -> list[Any]:
    _, back = parts.vjp(start(), 0.1, 2, wrt=("u", "k"))
    return [back(bar, **{k: f[i] for k, f in finals.items()}) for i, bar in enumerate(bars)]


@pytest.mark.parametrize("lanes", [1, 3, 8])
def test_cotangents_and_gradients_have_a_first_axis(lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    y, k, s = rng.normal(size=(lanes, 4)), *rng.normal(size=(2, lanes))
    value, back = parts.vjp(start(), 0.1, 2, wrt=("u", "k"), batch=lanes)
    assert value[3] == 2
    alone = gradients_alone([(y[i], k[i], s[i], None) for i in range(lanes)])
    for _ in range(2):
        du, dk = back((y, k, s, None))
        assert (du.shape, dk.shape) == ((lanes, 4), (lanes,))
        np.testing.assert_allclose(du, [one for one, _ in alone], rtol=1e-13)
        np.testing.assert_allclose(dk, [one for _, one in alone], rtol=1e-13)


def test_cotangents_come_in_any_layout_and_none_is_zeros() -> None:
    rng = np.random.default_rng(0)
    y, numbers = rng.normal(size=(4, 3)).T, rng.normal(size=(3, 5))
    _, back = parts.vjp(start(), 0.1, 2, wrt=("u", "k"), batch=3)
    given = back((y, numbers[:, 1], None, None), u=y[:, ::-1])
    bars = [(y[i], numbers[i, 1], None, None) for i in range(3)]
    alone = gradients_alone(bars, u=y[:, ::-1])
    for together, *ones in zip(given, *alone, strict=True):
        np.testing.assert_allclose(together, ones, rtol=1e-13)


@pytest.mark.parametrize("lanes", [1, 3])
def test_shadows_lie_side_by_side_in_place(lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    shadows, bars = rng.normal(size=(2, 4, lanes))
    before, numbers = shadows.copy(), rng.normal(size=lanes)
    wrapped = (BatchDuplicated(start(), shadows), Active(0.1), Const(2))
    _, (dk,) = parts.pullback(*wrapped, cotangent=(bars, numbers, None, None))
    for i in range(lanes):
        alone = before[:, i].copy()
        bar = (bars[:, i], numbers[i], None, None)
        _, (one,) = parts.pullback(Duplicated(start(), alone), Active(0.1), Const(2), cotangent=bar)
        np.testing.assert_allclose(shadows[:, i], alone, rtol=1e-13)
        np.testing.assert_allclose(dk[i], one, rtol=1e-13)


def test_each_number_has_the_dtype_that_it_has_alone() -> None:
    @compile(grad=True, opt=1)
    def scaled(x, k):
        return (x * k).sum()

    x, k = np.arange(3, dtype=np.float32), np.float32(2.0)
    _, back = scaled.vjp(x, k, wrt=(0, 1), batch=2)
    dx, dk = back(np.array([1.0, 2.0]))
    assert dx.dtype == dk.dtype == np.float32
    np.testing.assert_array_equal(dx, [[2.0] * 3, [4.0] * 3])
    np.testing.assert_array_equal(dk, [3.0, 6.0])


def test_zeros_stay_zeros_beside_what_is_not_finite() -> None:
    @compile(grad=True, opt=1)
    def guarded(x):
        return np.where(x > 0.0, np.sqrt(x), 0.0) * 3.0 + np.log(x + 1.0)

    x, bars = np.array([0.0, 1.0, 4.0]), np.zeros((3, 3))
    bars[1], bars[2, 1] = 1.0, np.nan
    _, back = guarded.vjp(x, batch=3)
    zeros, ones, nans = back(bars)
    assert not zeros.any()
    np.testing.assert_allclose(ones, [1.0, 2.0, 0.95])
    np.testing.assert_array_equal(np.isnan(nans), [False, True, False])


def test_products_with_several_vectors_are_those_with_each() -> None:
    operator = parts.linear_operator(start(), 0.1, 2, wrt=("u", "k"))
    rng = np.random.default_rng(1)
    for one, two in ((operator, (5, 11)), (operator.T, (6, 9))):
        x = rng.normal(size=two)
        np.testing.assert_allclose(one @ x, np.stack([one @ c for c in x.T], 1), rtol=1e-13)
    by_rows = parts.jacobian(start(), 0.1, 2, wrt=("u", "k"), mode="reverse")
    by_columns = parts.jacobian(start(), 0.1, 2, wrt=("u", "k"), mode="forward")
    for row, other in zip(by_rows[:3], by_columns[:3], strict=True):
        for block, same in zip(row, other, strict=True):
            assert type(block) is type(same)
            np.testing.assert_allclose(block, same, rtol=1e-12)


# Rules, which know one derivative.


def axpy(a, x, y):
    y += a * x
    return (x * x).sum()


@rule(axpy, overwrites="y", needs=("a", "x"))
def axpy_adjoint(a, x, y, result):
    a.cotangent += (y.shadow * x.value).sum()
    x.shadow += a.value * y.shadow + 2.0 * x.value * result.cotangent


@tangent_rule(axpy)
def axpy_tangent(a, x, y, result):
    y.tangent += a.tangent * x.value + a.value * x.tangent
    result.tangent += (2.0 * x.value * x.tangent).sum()


@compile(grad=True, opt=1)
def repeated(k, x, y):
    s = 0.0
    for i in range(3):
        s += axpy(k * y[0, i], x, y)
    return y * s


@pytest.mark.parametrize("order", ["C", "F"])
def test_rules_are_run_for_each_derivative(order: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (np.array(a, order=order) for a in rng.normal(size=(2, 2, 3)))
    k, dx, dy, bars = rng.normal(size=4), *rng.normal(size=(3, 4, 2, 3))
    given = {"k": k, "x": dx.copy(), "y": dy.copy()}
    dots = repeated.jvp(0.5, x, y.copy(order="K"), tangents=given, batch=4)[1]
    _, back = repeated.vjp(0.5, x, y.copy(order="K"), wrt=(0, 1, 2), batch=4)
    _, alone = repeated.vjp(0.5, x, y.copy(order="K"), wrt=(0, 1, 2))
    gradients = back(bars)
    for i in range(4):
        one = {"k": k[i], "x": dx[i].copy(), "y": dy[i].copy()}
        dot = repeated.jvp(0.5, x, y.copy(order="K"), tangents=one)[1]
        np.testing.assert_allclose(dots[i], dot, rtol=1e-12)
        np.testing.assert_allclose(given["y"][i], one["y"], rtol=1e-12)
        for together, gradient in zip(gradients, alone(bars[i]), strict=True):
            np.testing.assert_allclose(together[i], gradient, rtol=1e-12)


def test_rules_of_arrays_that_may_share_memory_go_one_at_a_time() -> None:
    @compile(grad=True, opt=1)
    def both_ends(k, x, y):
        return axpy(k, x[1:], y) + blend(x[1:], x[:-1])

    def blend(a, b):
        return (a * b).sum()

    @rule(blend, needs=("a", "b"))
    def blend_adjoint(a, b, result):
        a.shadow += b.value * result.cotangent
        b.shadow += a.value * result.cotangent

    x, y = start(), start()[1:]
    with pytest.raises(CompileError, match="may share memory") as refused:
        both_ends.vjp(0.5, x, y, wrt="x", batch=2)
    assert "one at a time" in str(refused.value)
    _, back = both_ends.vjp(0.5, x, y.copy(), wrt="x")
    by_rows = both_ends.jacobian(0.5, x, y.copy(), wrt="x", mode="reverse")
    np.testing.assert_allclose(by_rows, back(1.0))


def call(*bars: Any, **finals: Any) -> Any:
    return lambda: parts.vjp(start(), 0.1, 1, batch=2)[1](*bars, **finals)


def pull(shadows: Any, cotangent: Any, k: Any = None) -> Any:
    wrapped = BatchDuplicated(start(), shadows), Const(0.1) if k is None else k, Const(1)
    return lambda: parts.pullback(*wrapped, cotangent=cotangent)


ONES = np.ones((4, 2))
WRONG: dict[str, tuple[type[Exception], Any]] = {
    r"the cotangents of the result have shape \(4,\): with 2 of them use \(2, 4\)": (
        ValueError,
        call((np.ones(4), None, None, None)),
    ),
    r"the cotangents of a number have shape \(\): use \(2,\)": (
        ValueError,
        call((None, 1.0, None, None)),
    ),
    r"the cotangents of u have shape \(4, 2\)": (ValueError, call(None, u=ONES)),
    "use 1 to 64": (ValueError, lambda: parts.vjp(start(), 0.1, 1, batch=65)),
    "use the number of": (TypeError, lambda: parts.vjp(start(), 0.1, 1, batch="2")),
    "cotangent is not 2, one for each": (
        ValueError,
        pull(ONES, (np.ones((4, 3)), None, None, None)),
    ),
    "the result has shape": (ValueError, pull(ONES, (np.ones((3, 2)), None, None, None))),
    "use BatchDuplicated with one k": (
        TypeError,
        pull(ONES, None, Duplicated(0.1, np.ones(2))),
    ),
    r"use Active\(float\)": (
        TypeError,
        pull(ONES, (ONES, None, None, None), BatchDuplicated(0.1, np.ones(2))),
    ),
    r"have shape \(4,\): use \(4, k\)": (ValueError, pull(np.ones(4), None)),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_calls_are_refused(words: str) -> None:
    kind, wrong = WRONG[words]
    with pytest.raises(kind, match=words):
        wrong()


def test_products_of_parallel_code_are_not_taken_for_others_of_that_name() -> None:
    """The part that threads run is another function: its values may be called as others of the caller are."""

    def product(a, b, k):
        return a * b * k

    a = np.arange(1.0, 13.0).reshape(3, 4)
    b, bars = a + 1.0, np.cos(np.arange(24.0)).reshape(2, 3, 4)
    f = compile(product, grad=True, opt=0, parallel=True)
    _, back = f.vjp(a, b, 1.3, wrt=("a", "b"), batch=2)
    for found, other in zip(back(bars), (b, a), strict=True):
        np.testing.assert_allclose(found, bars * other * 1.3, rtol=1e-14)


@pytest.mark.parametrize("batch", [2, 8])
def test_threads_are_handed_cotangents_of_all_lanes(batch: int) -> None:
    def scaled(a, b):
        return a * b.mean()

    a = np.random.default_rng(0).random((300, 700))
    bars = np.arange(1.0, batch + 1.0)[:, None, None] * np.ones((batch, *a.shape))
    _, back = compile(scaled, grad=True, opt=0, parallel=True).vjp(a, a + 1.0, wrt="b", batch=batch)
    wanted = np.broadcast_to((bars * a).mean(axis=(1, 2), keepdims=True), bars.shape)
    np.testing.assert_allclose(back(bars), wanted, rtol=1e-12)
