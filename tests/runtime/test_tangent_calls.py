"""Calls of tangents and Hessian-vector products at the edges: what raises, what lies how in memory."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from mutad import Duplicated, compile

# What the primal raises.


def out_of_range(x, n):
    for i in range(n):
        x[i] = x[i] ** 2
    return x.sum()


def divides_by_zero(x, k):
    x[0] = 5.0 * k
    k = k - 1.0
    x[1] = 1.0 / k
    return x.sum() * k


def out_of_domain(x, k):
    x[0] *= 2.0
    return math.log(k - 2.0) * x.sum()


def with_its_own_words(x, k):
    for i in range(3):
        x[i] += k * x[i]
        if x[i] > 4.0:
            raise ValueError("too large", i)
    return x.sum()


def shapes_that_differ(x, y):
    x *= 2
    return (x + y).sum()


def of_nothing(x):
    return x.max()


RAISING: dict[Callable[..., Any], tuple[tuple[Any, ...], dict[str, Any]]] = {
    out_of_range: ((np.array([2.0, 3.0]), 5), {"x": np.ones(2)}),
    divides_by_zero: ((np.array([2.0, 3.0]), 1.0), {"x": np.ones(2), "k": 1.0}),
    out_of_domain: ((np.array([2.0, 3.0]), 1.0), {"x": np.ones(2), "k": 1.0}),
    with_its_own_words: ((np.array([2.0, 3.0, 4.0]), 1.0), {"x": np.ones(3), "k": 1.0}),
    shapes_that_differ: ((np.ones(3), np.ones(4)), {"x": np.ones(3), "y": np.ones(4)}),
    of_nothing: ((np.zeros(0),), {"x": np.zeros(0)}),
}


def raised_by(call: Callable[[], Any]) -> tuple[type[BaseException], str]:
    try:
        call()
    except Exception as error:
        return type(error), str(error)
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("function", RAISING)
def test_what_the_primal_raises_and_stores_they_raise_and_store(function: Any) -> None:
    args, moves = RAISING[function]
    f, theirs = compile(function, grad=True, opt=1), copy.deepcopy(args)
    expected = raised_by(lambda: function(*theirs))
    wrt = tuple(moves)
    mine = copy.deepcopy(args)
    assert raised_by(lambda: f.jvp(*mine, tangents=copy.deepcopy(moves))) == expected
    np.testing.assert_equal(mine, theirs)
    mine = copy.deepcopy(args)
    assert raised_by(lambda: f.hvp(*mine, wrt=wrt, direction=tuple(moves.values()))) == expected
    np.testing.assert_equal(mine, theirs)


@pytest.mark.parametrize("tangent", [np.ones(2), np.ones(4)[::2]], ids=["dense", "strided"])
def test_tangents_are_those_of_what_was_stored(tangent: np.ndarray) -> None:
    f = compile(out_of_range, grad=True, opt=1)
    with pytest.raises(IndexError):
        f.jvp(np.array([2.0, 3.0]), 5, tangents={"x": tangent})
    np.testing.assert_array_equal(tangent, [4.0, 6.0])


# How arrays lie in memory.


@compile(grad=True, opt=1)
def mixes(m):
    m[1:] *= m[:-1]
    return (m * m).sum()


def memory_of(values: np.ndarray, kind: str) -> np.ndarray:
    wide = np.zeros((*(2 * e for e in values.shape),))
    made = {
        "C": values.copy(),
        "F": np.asfortranarray(values),
        "strided": wide[tuple(slice(None, None, 2) for _ in values.shape)],
        "backwards": values.copy()[::-1],
    }[kind]
    made[...] = values
    return made


LAYOUTS = ("C", "F", "strided", "backwards")


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
def test_layouts_are_the_callers(kind: str, other: str) -> None:
    start, along = np.arange(1.0, 7.0).reshape(2, 3), np.linspace(-1.0, 1.0, 6).reshape(2, 3)
    primal, tangent = memory_of(start, kind), memory_of(along, other)
    value, dot = mixes.jvp(primal, tangents={"m": tangent})
    again, again_dot = start.copy(), along.copy()
    np.testing.assert_allclose(
        mixes.jvp(again, tangents={"m": again_dot}), (value, dot), rtol=1e-14
    )
    np.testing.assert_array_equal(primal, again)
    np.testing.assert_array_equal(tangent, again_dot)
    product = mixes.hvp(memory_of(start, kind), direction=memory_of(along, other))
    np.testing.assert_allclose(product, mixes.hvp(start.copy(), direction=along), rtol=1e-14)


def test_views_of_one_buffer_at_a_distance() -> None:
    @compile(grad=True, opt=1)
    def shifted(a, b):
        a[:] = b * b
        return a.sum() * b[0]

    def at(step: float) -> tuple[float, np.ndarray]:
        buffer = np.array([1.0, 2.0, 3.0, 4.0]) + step * np.array([0.1, 0.2, 0.3, 0.4])
        return shifted.__wrapped__(buffer[:3], buffer[1:]), buffer

    buffer, dots = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.1, 0.2, 0.3, 0.4])
    _, slope = shifted.jvp(buffer[:3], buffer[1:], tangents={"a": dots[:3], "b": dots[1:]})
    (ahead, after), (behind, before) = at(1e-6), at(-1e-6)
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-7)
    np.testing.assert_allclose(dots, (after - before) / 2e-6, rtol=1e-7)


@compile(grad=True, opt=1)
def scaled(m, k):
    m *= k
    return (m * m).sum() * k, m


def test_kinds_of_arrays() -> None:
    for shape, dtype in (((0,), float), ((), float), ((2, 0, 3), float), ((3,), np.float32)):
        array, tangent = np.ones(shape, dtype), np.full(shape, 0.5, dtype)
        k = dtype(2.0)
        (value, same), (dot, same_dot) = scaled.jvp(array, k, tangents={"m": tangent, "k": 1})
        count = array.size
        assert (value, dot) == (8.0 * count, (8.0 + 12.0) * count)
        assert type(dot) is type(value)
        assert same is array
        assert same_dot is tangent
        np.testing.assert_array_equal(tangent, np.full(shape, 2.0))


def test_a_read_only_array_moves() -> None:
    f = compile(lambda m: (m * m).sum(), grad=True, opt=1)
    array, direction = np.ones(3), np.ones(3)
    array.flags.writeable = direction.flags.writeable = False
    assert f.jvp(array, tangents={"m": np.ones(3)})[1] == 6.0
    np.testing.assert_array_equal(f.hvp(array, direction=direction), np.full(3, 2.0))
    np.testing.assert_array_equal(f.hvp(array, direction=array), np.full(3, 2.0))


def test_the_direction_of_a_product_may_be_the_argument() -> None:
    x, y = np.arange(1.0, 7.0).reshape(2, 3), np.arange(1.0, 7.0).reshape(2, 3)
    np.testing.assert_array_equal(mixes.hvp(x, direction=x), mixes.hvp(y.copy(), direction=y))


def frozen() -> np.ndarray:
    made = np.ones((2, 3))
    made.flags.writeable = False
    return made


WRONG: dict[str, tuple[type[Exception], Any]] = {
    "is float64.3, 2., the array": (ValueError, np.ones((3, 2))),
    "is float32": (ValueError, np.ones((2, 3), np.float32)),
    "is int64": (ValueError, np.ones((2, 3), int)),
    "is >f8": (ValueError, np.ones((2, 3), ">f8")),
    "is no numpy.ndarray": (TypeError, np.ma.ones((2, 3))),
    "is read-only": (ValueError, frozen()),
    "is not aligned": (ValueError, np.zeros(49, np.uint8)[1:].view(float).reshape(2, 3)),
    "is list: use an array": (TypeError, [[1.0] * 3] * 2),
    "is NoneType: use an array": (TypeError, None),
}


@pytest.mark.parametrize("words", WRONG)
@pytest.mark.parametrize("call", ["jvp", "pushforward"])
def test_wrong_tangents_are_refused_before_anything_runs(words: str, call: str) -> None:
    kind, tangent = WRONG[words]
    array = np.arange(6.0).reshape(2, 3)
    calls: Mapping[str, Callable[[], Any]] = {
        "jvp": lambda: mixes.jvp(array, tangents={"m": tangent}),
        "pushforward": lambda: mixes.pushforward(Duplicated(array, tangent)),
    }
    with pytest.raises(kind, match=words):
        calls[call]()
    np.testing.assert_array_equal(array, np.arange(6.0).reshape(2, 3))


@compile(grad=True, opt=1)
def times(x, n):
    return x * n


OTHER_WRONG: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "tangents is tuple: use a dict": (TypeError, lambda: times.jvp(2.0, 3.0, tangents=(1.0, 1.0))),
    "'x' is bool: use a number": (TypeError, lambda: times.jvp(2.0, 3.0, tangents={"x": True})),
    "'x' is ndarray: use a number": (
        TypeError,
        lambda: times.pushforward(Duplicated(2.0, np.ones(2)), Duplicated(3.0, 0.0)),
    ),
    "type is int": (TypeError, lambda: times.jvp(2.0, 3, tangents={"n": 1.0})),
    "has shape .2,., not": (
        ValueError,
        lambda: times.hvp(2.0, 3.0, direction=np.ones(2)),
    ),
    "tangents of x and n share memory": (
        ValueError,
        lambda: (lambda t: times.jvp(np.ones(2), np.ones(2), tangents={"x": t, "n": t}))(
            np.ones(2)
        ),
    ),
    "share memory differ in it": (
        ValueError,
        lambda: (
            lambda a: compile(lambda x, n: (x * n).sum(), grad=True, opt=1).hvp(
                a, a, wrt=(0, 1), direction=(np.ones(2), np.zeros(2))
            )
        )(np.ones(2)),
    ),
}


@pytest.mark.parametrize("words", OTHER_WRONG)
def test_other_wrong_calls_are_refused(words: str) -> None:
    kind, call = OTHER_WRONG[words]
    with pytest.raises(kind, match=words):
        call()


# Other kinds of arguments and results.


def test_numbers_keep_their_types() -> None:
    for x, n, kind in ((np.float32(2.0), np.float32(3.0), np.float32), (2.0, 3, float)):
        value, dot = times.jvp(x, n, tangents={"x": 1})
        assert (value, dot) == (6.0, 3.0)
        assert type(value) is type(dot) is kind
    assert math.isnan(times.jvp(2.0, 3.0, tangents={"x": math.nan})[1])
    assert times.jvp(math.inf, 0.0, tangents={"x": 0.0})[1] == 0.0  # a strong zero


def test_a_generator_draws_once() -> None:
    @compile(grad=True, opt=1)
    def drawn(x, rng):
        return (x * x * rng.standard_normal(3)).sum()

    for call in ("jvp", "hvp"):
        mine, theirs = np.random.default_rng(0), np.random.default_rng(0)
        expected = drawn.__wrapped__(np.ones(3), theirs)
        if call == "jvp":
            value = drawn.jvp(np.ones(3), mine, tangents={"x": np.ones(3)})[0]
        else:
            value = drawn.value_grad_hvp(np.ones(3), mine, direction=np.ones(3))[0]
        assert value == expected
        assert mine.random() == theirs.random()


def test_leaving_a_while_loop() -> None:
    @compile(grad=True, opt=1)
    def grows(x, k):
        n = 0
        while x < 100.0:
            x = x * k
            n += 1
            if n > 6:
                break
        return x

    for start in (1.5, 1e-3):  # by the condition, by break
        h = 1e-6
        slope = (grows(start, 1.9 + h) - grows(start, 1.9 - h)) / (2 * h)
        ahead, behind = (grows.grad(start, 1.9 + s, wrt="k") for s in (h, -h))
        assert math.isclose(grows.jvp(start, 1.9, tangents={"k": 1.0})[1], slope, rel_tol=1e-7)
        product = grows.hvp(start, 1.9, wrt="k", direction=1.0)
        assert math.isclose(product, (ahead - behind) / (2 * h), rel_tol=1e-7)


def test_arrays_that_change_places_take_their_tangents_along() -> None:
    @compile(grad=True, opt=1)
    def swaps(a, b, n):
        for _ in range(n):
            a, b = b, a
            a *= 2.0
        return a, b

    x, y, dx, dy = np.ones(2), np.full(2, 3.0), np.array([1.0, 0.0]), np.array([0.0, 1.0])
    (first, _), (first_dot, second_dot) = swaps.jvp(x, y, 3, tangents={"a": dx, "b": dy})
    assert first is y
    assert first_dot is dy
    assert second_dot is dx


def test_what_does_not_move_has_zeros() -> None:
    f = compile(lambda x, y: y * 2.0, grad=True, opt=1)
    assert f.jvp(1.0, 2.0, tangents={"x": 1.0}) == (4.0, 0.0)
    assert f.hvp(1.0, 2.0, wrt=("x", "y"), direction=(1.0, 1.0)) == (0.0, 0.0)
    constant = compile(lambda x: 2.0, grad=True, opt=1)
    assert constant.jvp(np.ones(3), tangents={"x": np.ones(3)}) == (2.0, 0.0)
    np.testing.assert_array_equal(constant.hvp(np.ones(3), direction=np.ones(3)), np.zeros(3))


def test_several_threads_at_once() -> None:
    f = compile(lambda x: (x**3).sum(), grad=True, opt=1)
    x, found = np.ones(50), list[bool]()

    def work() -> None:
        products = [f.hvp(x.copy(), direction=x.copy()) for _ in range(100)]
        found.append(all(np.array_equal(p, 6 * x) for p in products))

    work()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def only_the_second(x, y):
    return (y * y).sum()


def test_gradient_and_product_never_share_memory() -> None:
    f = compile(only_the_second, grad=True)
    x, y = np.ones(3), np.arange(3.0)
    both = {"wrt": ("x", "y"), "direction": (y, x)}
    _, gradients, products = f.value_grad_hvp(x, y, **both)
    for one in gradients:
        assert not any(np.shares_memory(one, other) for other in products)
    for alone, product in zip(f.hvp(x, y, **both), products, strict=True):
        np.testing.assert_array_equal(alone, product)


# Numbers that nothing depends on.


def does_not_read(x, k):
    return 0.5 * (x * x).sum()


@pytest.mark.parametrize("mode", ["forward-over-reverse", "reverse-over-reverse"])
def test_products_with_respect_to_a_number_that_nothing_depends_on(mode: str) -> None:
    function, x = compile(does_not_read, grad=True), np.array([1.0, 2.0])
    given: dict[str, Any] = {"wrt": "k", "direction": 1.0, "mode": mode}
    assert function.value_grad_hvp(x, 3.0, **given) == (2.5, 0.0, 0.0)
    assert function.hvp(x, 3.0, **given) == 0.0
    assert function.hessian(x, 3.0, wrt="k") == 0.0
    assert function.hvp(x, 3.0, wrt="k", direction=np.ones(2), batch=2).tolist() == [0.0, 0.0]
