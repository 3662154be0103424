"""Kinks and edges: the convention is JAX's where that is finite, else 0; a zero cotangent stays zero."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.special
from python_oracle import compiled

import mutad


def gradient(function, *arguments):
    """The gradient with respect to every argument, arrays as lists."""
    made = [np.array(a, float) if isinstance(a, list) else float(a) for a in arguments]
    got = compiled(function, grad=True).grad(*made, wrt=tuple(range(len(made))))
    return [g.tolist() if isinstance(g, np.ndarray) else g for g in got]


def guarded_root(x):
    return np.where(x > 0, np.sqrt(x), 0.0).sum()


def guarded_logarithm(x):
    return np.where(x > 0, np.log(x), 0.0).sum()


def guarded_quotient(x):
    return np.where(x == 0, 1.0, 1 / x).sum()


def test_a_branch_not_chosen_by_where_contributes_nothing() -> None:
    assert gradient(guarded_root, [0.0, -1.0, 4.0]) == [[0.0, 0.0, 0.25]]
    assert gradient(guarded_logarithm, [0.0, -1.0, 4.0]) == [[0.0, 0.0, 0.25]]
    assert gradient(guarded_quotient, [0.0, 2.0]) == [[0.0, -0.25]]


def guarded_roots_by_elements(x):
    s = 0.0
    for i in range(x.size):
        s += np.where(x[i] > 0, np.sqrt(x[i]), 0.0)
    return s


def guarded_roots_of_rows(a):
    for row in a:
        row[:] = np.where(row > 0, np.sqrt(row), row * row)
    return a.sum()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("step", [1, -1, 2])
def test_guards_hold_in_every_dtype_and_layout(dtype, step) -> None:
    around = np.zeros(9, dtype)
    x = around[::step] if step != 2 else around[::2]
    x[:3] = [0.0, -1.0, 4.0]
    for function in (guarded_root, guarded_roots_by_elements):
        got = compiled(function, grad=True).grad(x)
        assert got.dtype == dtype
        assert got[:3].tolist() == [0.0, 0.0, 0.25]
        assert not got[3:].any()
    a = np.array([[0.0, -1.0], [4.0, 0.0]], dtype)
    for matrix in (a.copy(), np.asfortranarray(a), a.T.copy().T):
        got = compiled(guarded_roots_of_rows, grad=True).grad(matrix)
        assert got.tolist() == [[0.0, -2.0], [0.25, 0.0]]


def clipped_reciprocal(x):
    return np.minimum(1, 1 / x).sum()


def ramp(x):
    return np.maximum(x, 0).sum()


def ramp_of_scalars(x):
    return np.maximum(x, 0.0)


def smaller(x, y):
    return np.minimum(x, y).sum()


def larger(x, y):
    return np.maximum(x, y).sum()


def test_minimum_and_maximum() -> None:
    assert gradient(clipped_reciprocal, [0.0, 2.0]) == [[0.0, -0.25]]
    assert gradient(ramp, [0.0, 1.0, -1.0]) == [[0.5, 1.0, 0.0]]
    assert gradient(ramp_of_scalars, 0.0) == [0.5]
    assert gradient(smaller, [1.0, 2.0, 3.0], [1.0, 3.0, 2.0]) == [[0.5, 1.0, 0.0], [0.5, 0.0, 1.0]]
    assert gradient(larger, [1.0, 2.0, 3.0], [1.0, 3.0, 2.0]) == [[0.5, 0.0, 1.0], [0.5, 1.0, 0.0]]


def magnitudes(x):
    return np.abs(x).sum()


def magnitudes_of_elements(x):
    s = 0.0
    for v in x:
        s += abs(v)
    return s


def test_magnitude_has_slope_one_at_zero() -> None:
    assert gradient(magnitudes, [0.0, 2.0, -3.0]) == [[1.0, 1.0, -1.0]]
    assert gradient(magnitudes_of_elements, [0.0, 2.0, -3.0]) == [[1.0, 1.0, -1.0]]


def largest(x):
    return x.max()


def smallest(x):
    return np.min(x)


def largest_of_columns(a):
    return a.max(axis=0).sum()


def test_equal_entries_share_the_cotangent_of_an_extreme() -> None:
    assert gradient(largest, [1.0, 3.0, 3.0]) == [[0.0, 0.5, 0.5]]
    assert gradient(largest, [2.0, 2.0, 2.0, 2.0]) == [[0.25, 0.25, 0.25, 0.25]]
    assert gradient(smallest, [1.0, 3.0, 1.0]) == [[0.5, 0.0, 0.5]]
    assert gradient(largest, [5.0]) == [[1.0]]
    assert gradient(largest_of_columns, [[1.0, 5.0], [1.0, 2.0]]) == [[[0.5, 1.0], [0.5, 0.0]]]


def python_larger(x, y):
    return max(x, y)


def python_smaller(x, y):
    return min(x, y)


def branch(x):
    if x > 0:
        return x * 2
    return x * 3


def test_builtins_differentiate_the_branch_that_ran() -> None:
    assert gradient(python_larger, 1.0, 1.0) == [1.0, 0.0]
    assert gradient(python_smaller, 1.0, 1.0) == [1.0, 0.0]
    assert gradient(python_larger, 1.0, 2.0) == [0.0, 1.0]
    assert gradient(branch, 0.0) == [3.0]


def angles(y, x):
    return np.arctan2(y, x).sum()


def angle(y, x):
    return math.atan2(y, x)


def test_polar_coordinates_at_the_origin() -> None:
    assert gradient(angles, [0.0, 1.0], [0.0, 0.0]) == [[0.0, 0.0], [0.0, -1.0]]
    assert gradient(angle, 0.0, 0.0) == [0.0, 0.0]
    assert gradient(angles, [0.0], [2.0]) == [[0.5], [0.0]]


def lengths(x, y):
    return np.hypot(x, y).sum()


def length(x, y):
    return math.hypot(x, y)


def norm(x):
    return np.linalg.norm(x)


def norms_of_rows(a):
    s = 0.0
    for row in a:
        s += np.linalg.norm(row)
    return s


def logarithms(x):
    return np.log1p(x).sum()


def logarithms_without_the_first(x):
    return np.log1p(x)[1:].sum()


def test_hypot_and_norm_at_zero() -> None:
    got = gradient(lengths, [0.0, 3.0, 0.0], [0.0, 4.0, 2.0])
    assert np.allclose(got, [[0.5, 0.6, 0.0], [0.5, 0.8, 1.0]], rtol=1e-14)
    assert np.allclose(gradient(length, 3.0, 4.0), [0.6, 0.8], rtol=1e-14)
    assert gradient(length, 0.0, 0.0) == [0.5, 0.5]
    assert gradient(norm, [0.0, 0.0]) == [[0.0, 0.0]]
    assert np.allclose(gradient(norm, [3.0, 4.0]), [[0.6, 0.8]], rtol=1e-14)
    got = gradient(norms_of_rows, [[0.0, 0.0], [3.0, 4.0]])
    assert np.allclose(got, [[[0.0, 0.0], [0.6, 0.8]]], rtol=1e-14)


def test_log1p_at_its_edge() -> None:
    assert gradient(logarithms, [0.0, 1.0, -1.0]) == [[1.0, 0.5, math.inf]]
    assert gradient(logarithms_without_the_first, [-1.0, 1.0]) == [[0.0, 0.5]]


def raised(x, y):
    return (x**y).sum()


def raised_by_function(x, y):
    return np.power(x, y).sum()


def raised_scalar(x, y):
    return x**y


def squared(x):
    return (x**2).sum()


def to_the_zeroth(x):
    return (x**0).sum()


def cubed(x):
    return (x**3.0).sum()


@pytest.mark.parametrize("power", [raised, raised_by_function])
def test_powers_at_zero(power) -> None:
    x = [0.0, 0.0, 0.0, 2.0, 2.0, -2.0]
    y = [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]
    got = gradient(power, x, y)
    assert got[0] == [0.0, 1.0, 0.0, 0.0, 1.0, -4.0]
    want = [0.0, 0.0, 0.0, LOG2, 2 * LOG2]
    assert np.allclose(got[1][:5], want, rtol=1e-15, atol=0)


def test_powers_with_constant_exponents() -> None:
    assert gradient(squared, [0.0, -3.0]) == [[0.0, -6.0]]
    assert gradient(to_the_zeroth, [0.0, -3.0]) == [[0.0, 0.0]]
    assert np.allclose(gradient(cubed, [0.0, -2.0]), [[0.0, 12.0]], rtol=1e-15)
    assert gradient(raised_scalar, 0.0, 0.0) == [0.0, 0.0]
    assert gradient(raised_scalar, 0.0, 1.0) == [1.0, 0.0]


def test_strong_zeros() -> None:
    """A cotangent of 0 times a slope that is not finite is 0; a cotangent that is not 0 meets the slope."""
    assert gradient(unused_root, [0.0, 4.0]) == [[0.0, 0.25]]
    assert gradient(zero_times_logarithm, [0.0, 1.0]) == [[0.0, 0.0]]


def unused_root(x):
    r = np.sqrt(x)
    r[0] = 0
    return r.sum()


def zero_times_logarithm(x):
    return (np.log(x) * 0.0)[1:].sum()


def product(x):
    return x.prod()


def test_products_with_zeros() -> None:
    assert gradient(product, [2.0, 0.0, 3.0]) == [[0.0, 6.0, 0.0]]
    assert gradient(product, [0.0, 0.0, 3.0]) == [[0.0, 0.0, 0.0]]
    assert gradient(product, [2.0, 5.0, 3.0]) == [[15.0, 6.0, 10.0]]


def rounded_to_steps(x):
    return (x // 1 + x % 1).sum()


def test_floor_division_is_flat_and_the_remainder_has_slope_one() -> None:
    assert gradient(rounded_to_steps, [0.5, 1.75, -0.25]) == [[1.0, 1.0, 1.0]]


def conditioned(x):
    s = 0.0
    for v in x:
        if v > 0:
            s += v * v
        elif v < -1:
            s -= v
    return s


def test_branches_on_data() -> None:
    assert gradient(conditioned, [2.0, -0.5, -2.0, 0.0]) == [[4.0, 0.0, -1.0, 0.0]]


def log_of_sum(x):
    return np.logaddexp(x[0], x[1])


def distance(x):
    return np.hypot(x[0], x[1])


def filtered(x):
    return np.sinc(x).sum()


@pytest.mark.parametrize(
    ("function", "x", "wanted"),
    [
        (log_of_sum, [0.3, 0.3], [[0.25, -0.25], [-0.25, 0.25]]),
        (distance, [-2.0, 2.0], np.array([[1.0, 1.0], [1.0, 1.0]]) / 32**0.5),
        (filtered, [0.0, 0.0], np.eye(2) * -(np.pi**2) / 3),
    ],
)
@pytest.mark.parametrize("mode", ["forward-over-reverse", "reverse-over-reverse"])
def test_what_is_computed_by_a_choice_is_smooth_where_it_changes(function, x, wanted, mode) -> None:
    f, x = compiled(function, grad=True), np.array(x)
    found = [f.hvp(x, direction=v, mode=mode) for v in np.eye(2)]
    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-15)


def determinant(x):
    return np.linalg.det(x)


@pytest.mark.parametrize(
    "x",
    [
        [[0, 1], [0, 0]],
        [[0, 1, 2], [0, 3, 4], [0, 5, 6]],
        [[1, 2, 3], [1, 2, 4], [2, 4, 9]],
        [[0] * 3] * 3,
    ],
)
def test_determinants_where_elimination_stops(x: list[list[float]]) -> None:
    """A column of zeros: the gradient is the matrix of cofactors all the same, its derivative polynomial."""
    a = np.array(x, float)
    f = mutad.compile(determinant, grad=True)
    n = len(a)

    def cofactor(a: Any, i: int, j: int) -> float:
        return (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))

    def cofactors(a: Any) -> Any:
        return np.array([[cofactor(a, i, j) for j in range(n)] for i in range(n)])

    direction = np.random.default_rng(0).normal(size=a.shape)
    step = 1e-6 * direction
    expected = (cofactors(a + step) - cofactors(a - step)) / 2e-6
    assert f(a) == pytest.approx(np.linalg.det(a))
    np.testing.assert_allclose(f.grad(a), cofactors(a), atol=1e-12)
    np.testing.assert_allclose(f.hvp(a, direction=direction), expected, atol=1e-6)


@mutad.compile(grad=True)
def of_all(x):
    return np.prod(x)


@mutad.compile(grad=True)
def curvature(x, d):
    return (of_all.hvp(x, direction=d) * d).sum()


@pytest.mark.parametrize("x", [[0.0, 0.0, -0.7], [0.0, 0.0, 0.0], [0.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
def test_third_derivatives_of_products_of_zeros(x: list[float]) -> None:
    assert curvature.grad(np.array(x), np.ones(3)) == pytest.approx([2.0, 2.0, 2.0])


def power(x, y):
    return x**y


def times_log(x, y):
    return scipy.special.xlogy(x, y)


def times_log1p(x, y):
    return scipy.special.xlog1py(x, y)


MODES = ("forward-over-reverse", "reverse-over-reverse")
LOG, LOG2 = math.log(1.3), math.log(2.0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("function", "x", "y", "gradient", "second"),
    [
        (power, 2.0, 0.0, (0.0, LOG2), ((0.0, 0.5), (0.5, LOG2**2))),
        (power, 2.0, 1.0, (1.0, 2 * LOG2), ((0.0, 1 + LOG2), (1 + LOG2, 2 * LOG2**2))),
        (power, 0.0, 2.0, (0.0, 0.0), ((2.0, 0.0), (0.0, 0.0))),
        (times_log, 0.0, 1.3, (LOG, 0.0), ((0.0, 1 / 1.3), (1 / 1.3, 0.0))),
        (times_log, -0.0, 1.3, (LOG, 0.0), ((0.0, 1 / 1.3), (1 / 1.3, 0.0))),
        (times_log1p, 0.0, 0.3, (LOG, 0.0), ((0.0, 1 / 1.3), (1 / 1.3, 0.0))),
        (times_log, 0.0, 0.0, (0.0, 0.0), ((0.0, 0.0), (0.0, 0.0))),
    ],
)  # fmt: skip
def test_what_is_smooth_at_zero_has_second_derivatives(
    function: Any, x: float, y: float, gradient: Any, second: Any, mode: str
) -> None:
    f = compiled(function, grad=True)
    of_rows = compiled(function, grad=True)
    assert f.grad(x, y, wrt=("x", "y")) == pytest.approx(gradient)
    _, back = of_rows.vjp(np.full(9, x), np.full(9, y), wrt=("x", "y"))
    for found, wanted in zip(back(np.ones(9)), gradient, strict=True):
        assert found == pytest.approx(np.full(9, wanted))
    for direction, row in zip(((1.0, 0.0), (0.0, 1.0)), second, strict=True):
        found = f.hvp(x, y, wrt=("x", "y"), direction=direction, mode=mode)
        assert found == pytest.approx(row)


@pytest.mark.parametrize("function", [times_log, times_log1p])
def test_times_log_has_the_values_of_scipy(function: Any) -> None:
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, math.inf, -math.inf, math.nan]
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    expected = function(x, y)
    found = compiled(function)(x, y)
    np.testing.assert_array_equal(found, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))
