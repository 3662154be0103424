"""`vjp`, `pullback`, shared memory, `check_gradient`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from handmade import SCALAR, SUM, SUM_GRADIENT, SUM_SPLIT, Handmade

import mutad
from mutad import Active, Const, Duplicated, GradientError, check_gradient


def square_sum(x):
    return (x * x).sum()


@mutad.compile(grad=True)
def product(x, y, k=2.0):
    return (x * y).sum() * k


@mutad.compile(grad=True)
def scale(x, k):
    x *= k


@mutad.compile(grad=True)
def outer(x, y, n):
    return x * y[0], (x * x).sum(), n


@mutad.compile(grad=True)
def store(u, k):
    u[:] = k * k
    return u.sum()


@pytest.fixture
def x():
    return np.array([1.0, 2.0, 3.0])


def test_functions_give_functions(x: Any):
    for gradient in (
        mutad.grad(square_sum),
        mutad.grad(square_sum, "x"),
        mutad.grad(mutad.compile(square_sum)),
    ):
        np.testing.assert_array_equal(gradient(x), 2 * x)
    value, (gradient,) = mutad.value_and_grad(square_sum, wrt=("x",))(x)
    assert value == 14.0
    np.testing.assert_array_equal(gradient, 2 * x)
    out, back = mutad.vjp(square_sum)(x)
    assert out == 14.0
    np.testing.assert_array_equal(back(0.5), x)


def test_arguments_keep_the_primal_s_effects(x: Any):
    k = 3.0
    scale(x, k)
    np.testing.assert_array_equal(x, [3.0, 6.0, 9.0])
    assert store.value_and_grad(x, 2.0, wrt="k") == (12.0, 12.0)
    np.testing.assert_array_equal(x, [4.0, 4.0, 4.0])
    np.testing.assert_array_equal(store.grad(x, 2.0), [0.0, 0.0, 0.0])


def test_a_const_array_that_active_values_are_written_to(x: Any):
    result, (k_bar,) = store.pullback(Const(x), Active(3.0), cotangent=1.0)
    assert (result, k_bar) == (27.0, 18.0)


def test_vjp_is_about_the_time_of_the_call(x: Any):
    out, back = scale.vjp(x, 3.0, wrt=("x", "k"))
    assert out is None
    np.testing.assert_array_equal(x, [3.0, 6.0, 9.0])
    x[:] = 100.0
    for _ in range(2):
        x_bar, k_bar = back(x=np.array([1.0, 1.0, 2.0]))
        np.testing.assert_array_equal(x_bar, [3.0, 3.0, 6.0])
        assert k_bar == 9.0
    zero, k_bar = back()
    assert (zero.tolist(), k_bar) == ([0.0, 0.0, 0.0], 0.0)
    with pytest.raises(ValueError, match="shape"):
        back(x=np.ones(2))
    with pytest.raises(TypeError, match="'y'"):
        back(y=np.ones(3))
    with pytest.raises(TypeError, match="None"):
        back(1.0)


def test_vjp_of_a_tuple(x: Any):
    y = np.array([2.0, 5.0])
    (first, second, third), back = outer.vjp(x, y, 4, wrt=("x", "y"))
    assert (first.tolist(), second, third) == ([2.0, 4.0, 6.0], 14.0, 4)
    x_bar, y_bar = back((np.array([1.0, 0.0, 1.0]), 0.5, None))
    np.testing.assert_array_equal(x_bar, [3.0, 2.0, 5.0])
    np.testing.assert_array_equal(y_bar, [4.0, 0.0])
    x_bar, _ = back((None, 1.0, None))
    np.testing.assert_array_equal(x_bar, 2 * x)
    with pytest.raises(ValueError, match="shape"):
        back((np.ones(2), 0.0, None))
    with pytest.raises(TypeError, match="tuple"):
        back(1.0)
    with pytest.raises(TypeError, match="cotangent"):
        back((None, 0.0, 1.0))


def test_pullback_accumulates_into_the_caller_s_shadows(x: Any):
    y = np.array([4.0, 5.0, 6.0])
    dx, dy = np.ones(3), np.zeros(6)[::2]
    result, bars = product.pullback(Duplicated(x, dx), Duplicated(y, dy), cotangent=0.5)
    assert (result, bars) == (64.0, ())
    np.testing.assert_array_equal(dx, 1 + y)
    np.testing.assert_array_equal(dy, x)
    result, (k_bar,) = product.pullback(Const(x), Const(y), Active(1.0), cotangent=1.0)
    assert (result, k_bar) == (32.0, 32.0)


def test_pullback_without_a_result(x: Any):
    dx = np.array([1.0, 1.0, 2.0])
    result, (k_bar,) = scale.pullback(Duplicated(x, dx), Active(3.0))
    assert result is None
    assert k_bar == 9.0
    np.testing.assert_array_equal(dx, [3.0, 3.0, 6.0])
    np.testing.assert_array_equal(x, [3.0, 6.0, 9.0])


def wrong_pullbacks(x: Any) -> dict[str, Any]:
    y, dx, dy = x + 1, np.zeros(3), np.zeros(3)
    big, shadow = np.zeros(6), np.zeros(6)
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    return {
        "wrap": lambda: product.pullback(x, Const(y), cotangent=1.0),
        "pass cotangent=": lambda: product.pullback(Duplicated(x, dx), Const(y)),
        "is a number": lambda: product.pullback(Duplicated(x, dx), Const(y), cotangent="a"),
        "returns None": lambda: scale.pullback(Duplicated(x, dx), Const(1.0), cotangent=1.0),
        "float64.3.": lambda: product.pullback(Duplicated(x, np.zeros(4)), Const(y), cotangent=1.0),
        "float32": lambda: product.pullback(
            Duplicated(x, np.zeros(3, np.float32)), Const(y), cotangent=1.0
        ),
        "no numpy.ndarray": lambda: product.pullback(
            Duplicated(x, [0.0] * 3), Const(y), cotangent=1.0
        ),  # pyright: ignore
        "read-only": lambda: product.pullback(Duplicated(x, read_only), Const(y), cotangent=1.0),
        "use Duplicated": lambda: product.pullback(Active(x), Const(y), cotangent=1.0),
        "use Active": lambda: product.pullback(
            Const(x), Const(y), Duplicated(1.0, dx), cotangent=1.0
        ),  # pyright: ignore
        "its type is int": lambda: scale.pullback(Duplicated(x, dx), Active(1)),
        "shadows of x and y share": lambda: product.pullback(
            Duplicated(x, dx), Duplicated(y, dx), cotangent=1.0
        ),
        "do not share memory as": lambda: product.pullback(
            Duplicated(x, dx), Duplicated(x, dy), cotangent=1.0
        ),
        "all of them are Duplicated": lambda: product.pullback(
            Duplicated(x, dx), Const(x), cotangent=1.0
        ),
        "shadow of x shares memory with y": lambda: product.pullback(
            Duplicated(x, y), Const(y), cotangent=1.0
        ),
        "not share memory as the arrays": lambda: product.pullback(
            Duplicated(big[:3], shadow[1:4]), Duplicated(big[1:4], shadow[:3]), cotangent=1.0
        ),
        "overlaps itself": lambda: product.pullback(
            Duplicated(np.broadcast_to(x[:1], 3), dx), Const(y), cotangent=1.0
        ),
    }


@pytest.mark.parametrize("words", wrong_pullbacks(np.ones(3)))
def test_wrong_pullbacks_leave_everything_alone(x: Any, words: str):
    before = x.copy()
    with pytest.raises((TypeError, ValueError), match=words):
        wrong_pullbacks(x)[words]()
    np.testing.assert_array_equal(x, before)


# Shared memory.


def test_the_same_array_twice(x: Any):
    dx, dy = product.grad(x, x, 1.0, wrt=("x", "y"))
    np.testing.assert_array_equal(dx, 2 * x)
    assert np.shares_memory(dx, dy)
    np.testing.assert_array_equal(product.grad(x, x, 1.0), 2 * x)
    shadow = np.zeros(3)
    product.pullback(Duplicated(x, shadow), Duplicated(x, shadow), Const(1.0), cotangent=1.0)
    np.testing.assert_array_equal(shadow, 2 * x)


def test_an_array_and_its_transpose():
    a = np.arange(9.0).reshape(3, 3)
    da, dt = product.grad(a, a.T, 1.0, wrt=("x", "y"))
    np.testing.assert_array_equal(da, 2 * a.T)
    np.testing.assert_array_equal(dt, da.T)
    assert np.shares_memory(da, dt)


@pytest.mark.parametrize("step", [1, 2])
def test_neighbours_in_one_array(step: int):
    memory = np.arange(12.0)[::step]
    x, y = memory[:-1], memory[1:]
    expected = np.zeros(memory.size)
    expected[:-1] += y
    expected[1:] += x
    dx, dy = product.grad(x, y, 1.0, wrt=("x", "y"))
    np.testing.assert_array_equal(dx, expected[:-1])
    np.testing.assert_array_equal(dy, expected[1:])
    shadow = np.zeros(memory.size * 3)[::3]
    product.pullback(
        Duplicated(x, shadow[:-1]), Duplicated(y, shadow[1:]), Const(1.0), cotangent=1.0
    )
    np.testing.assert_array_equal(shadow, expected)


def test_vjp_of_shared_arguments(x: Any):
    _, back = product.vjp(x, x[::-1], 1.0, wrt=("x", "y"))
    dx, dy = back(1.0)
    np.testing.assert_array_equal(dx, 2 * x[::-1])
    np.testing.assert_array_equal(dy, 2 * x)
    assert np.shares_memory(dx, dy)


def test_gradients_of_broadcasts_are_refused(x: Any):
    for call in (
        lambda: product.grad(np.broadcast_to(x[:1], 3), x),
        lambda: product.vjp(np.broadcast_to(x[:1], 3), x),
        lambda: product.grad(np.lib.stride_tricks.sliding_window_view(x, 2), np.ones((2, 2))),
    ):
        with pytest.raises(ValueError, match="overlaps itself"):
            call()
    np.testing.assert_array_equal(product.grad(np.broadcast_to(1.0, 3), x, wrt="y"), [2, 2, 2])


def test_grad_needs_a_float():
    for function in (outer, scale):
        args = (np.ones(2), np.ones(2), 1) if function is outer else (np.ones(2), 1.0)
        with pytest.raises(TypeError, match="returns"):
            function.grad(*args)


# check_gradient.


def test_check_gradient_accepts_what_is_right(x: Any):
    report = check_gradient(product, x, x[::-1])
    assert report.error < report.tolerance
    check_gradient(outer, x, np.ones(2), 3)
    check_gradient(scale, x, 2.0)
    check_gradient(store, x, 2.0, wrt="k")
    check_gradient(product, x.astype(np.float32), np.ones(3, np.float32), np.float32(2.0))
    assert "relative error" in str(report)


def summed(gradient: str, split: str) -> mutad.CompiledFunction:
    """The sum of squares of (1, 2) by hand."""
    made = Handmade(SCALAR, SUM, gradient, split, record=4)
    return made.of(lambda x: float((x * x).sum()))


def test_check_gradient_sees_a_wrong_gradient():
    wrong = SUM_GRADIENT.replace("fmul double %v, 2.0", "fmul double %v, 2.001")
    with pytest.raises(GradientError, match="relative error"):
        check_gradient(summed(wrong, SUM_SPLIT), np.array([1.0, 2.0]))


def test_check_gradient_sees_a_wrong_vjp():
    for wrong in ("double 2.0, double 4.001", "double 1.0, double 2.0"):
        split = SUM_SPLIT.replace("double 2.0, double 4.0", wrong)
        with pytest.raises(GradientError, match="from vjp"):
            check_gradient(summed(SUM_GRADIENT, split), np.array([1.0, 2.0]))
    with pytest.raises(GradientError, match="result of vjp"):
        check_gradient(summed(SUM_GRADIENT, SUM_SPLIT.replace("5.0", "5.1")), np.array([1.0, 2.0]))


def test_check_gradient_sees_a_wrong_value(x: Any):
    with pytest.raises(GradientError, match="result: differs"):
        check_gradient(Handmade(SCALAR, SUM, SUM_GRADIENT).of(lambda x: float((x**3).sum())), x)
    with pytest.raises(GradientError, match=r"float64.*compiled code float"):
        check_gradient(Handmade(SCALAR, SUM, SUM_GRADIENT).of(square_sum), x)


def test_check_gradient_sees_a_wrong_effect(x: Any):
    def clears(x):
        s = float((x * x).sum())
        x[:] = 0
        return s

    with pytest.raises(GradientError, match="'x' after the call"):
        check_gradient(Handmade(SCALAR, SUM, SUM_GRADIENT).of(clears), x)


# Of float64 arguments and results, with float32 between them.


def squares_of_float32(x):
    scratch = np.empty(x.size, np.float32)
    for i in range(x.size):
        scratch[i] = np.sin(x[i])
    total = 0.0
    for i in range(x.size):
        total += scratch[i] * scratch[i]
    return total


def sum_of_float32(x):
    weights = 1.0 / np.arange(1.0, 200.0).astype(np.float32)
    return (x * x).sum() * np.float64(weights.sum())


def stored_as_float32(x, y):
    single = x.astype(np.float32)
    y[:] = single.cumsum() * y


@pytest.mark.parametrize(
    ("function", "arguments", "tolerance"),
    [
        (squares_of_float32, (np.linspace(0.1, 2.0, 30),), 2e-2),
        (stored_as_float32, (np.linspace(0.1, 2.0, 30), np.ones(30)), 2e-2),
        (sum_of_float32, (np.linspace(0.1, 2.0, 30),), 1e-5),
        (square_sum, (np.linspace(0.1, 2.0, 30),), 1e-5),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_check_gradient_goes_by_the_narrowest_floats_that_move(
    function: Any, arguments: Any, tolerance: float
):
    report = check_gradient(mutad.compile(function, grad=True), *arguments)
    assert report.tolerance == tolerance


def half_square(x):
    y = x.astype(np.float32)
    return np.float64((y * y).sum()) / 2


@pytest.mark.parametrize("factor", [0.9, 1.1, 0.0])
def test_check_gradient_sees_a_wrong_rule_in_float32(factor: float):
    def inner(x):
        return half_square(x)

    @mutad.rule(inner, needs=("x",))
    def wrong(x, result):
        y = x.value.astype(np.float32)
        x.shadow += factor * y * result.cotangent

    whole = mutad.compile(lambda x: inner(x * 1.0) + half_square(x), grad=True)
    with pytest.raises(GradientError, match=r"relative error.*tolerance 2e-02"):
        check_gradient(whole, np.linspace(1.0, 20.0, 30))


def test_check_gradient_needs_something_to_check():
    with pytest.raises(TypeError, match="no argument is a float"):
        check_gradient(mutad.compile(lambda n: n, grad=True), 3)
    with pytest.raises(TypeError, match=r"not function.*@compile\(grad=True\)"):
        check_gradient(square_sum, np.ones(3))
    with pytest.raises(TypeError, match="without gradient"):
        check_gradient(mutad.compile(square_sum), np.ones(2))


@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-6, 1e-9])
def test_check_gradient_sees_small_gradients(size, offset) -> None:
    """The scale is the gradient's own, as far as differences tell it from rounding."""

    def waves(x):
        return size * np.sin(x).sum() + offset

    factor = [1.0]

    @mutad.rule(waves)
    def waves_rule(x, result):
        x.shadow += factor[0] * size * np.cos(x.value) * result.cotangent

    f = mutad.compile(lambda x: waves(x), grad=True, cache=False, opt=0)
    x = np.linspace(0.3, 1.0, 7)
    assert check_gradient(f, x, second=False).error <= 1e-5
    for factor[0] in (0.9, 1.1, 2.0, -1.0, 0.0):
        f.forget()
        with pytest.raises(GradientError, match="relative error"):
            check_gradient(f, x, second=False)


def test_check_gradient_takes_rounding_for_no_error() -> None:
    def cancelled(x):
        return (1e6 + x).sum() - 1e6 * x.size

    def saturated(x):
        return np.log1p(np.exp(-70.0 - x * x)).sum()

    def normalized(x):
        y = np.exp(x - x.max())
        return (y / y.sum()).sum()

    def stationary(x):
        return np.cos(x - 0.5).sum()

    def absorbed(x):
        return np.log(1.0 + np.exp(-60.0 * x)).sum()

    x = np.full(5, 0.5)
    for function in (cancelled, saturated, normalized, stationary, absorbed):
        f = mutad.compile(function, grad=True, cache=False, opt=0)
        check_gradient(f, x)
        check_gradient(f, np.linspace(0.4, 1.2, 5))


def test_check_gradient_sees_a_small_result_beside_arrays_that_stay() -> None:
    def tiny(x, k):
        return 1e-6 * k * np.sin(x).sum()

    f = mutad.compile(tiny, grad=True, cache=False, opt=0)
    assert abs(check_gradient(f, np.ones(3), 2.0).directional) < 1e-4
