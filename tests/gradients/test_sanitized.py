"""`MUTAD_SANITIZE=grad`: the first cotangent or tangent that is not finite is named with its place."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad


def checked(function: Callable[..., Any]) -> Any:
    return mutad.compile(function, grad=True, cache=False, opt=1, sanitize="grad")


def reciprocal(v):
    return 1.0 / v


def in_a_chain(x):
    y = np.exp(x)
    z = np.log(y - 1.0)
    return np.sin(z).sum() + (3.0 * y).sum()


def in_a_loop(x):
    s = 0.0
    for i in range(x.size):
        s += 2.0 * np.log(x[i])
    return s


def in_a_nest(x):
    s = 0.0
    for i in range(3):
        for j in range(1, x.size - 1):
            s += x[j - 1] * x[j + 1] ** -1.0 * (i - 1.0)
    return s


def in_a_helper(x):
    a = x * 3.0
    return reciprocal(a).sum()


def in_a_slice(u):
    for _ in range(2):
        u[1:-1] = u[1:-1] + 0.1 / (u[2:] - u[:-2])
    return u.sum()


def by_a_subscript(x):
    places = np.array([3, 1, 2])
    s = 0.0
    for k in range(3):
        s += 1.0 / x[places[k]]
    return s


def in_a_sum(x):
    s = 0.0
    for _ in range(4):
        s += x[0] * 1e308
    return s


def in_a_product(a):
    b = np.full((2, 2), 1e200)
    return 1e200 * (a @ b).sum()


def once_over_all_from(a, i):
    if i == a.size:
        return 1.0
    return np.float64(1.0) / a[i] * once_over_all_from(a, i + 1)


def in_a_recursion(a):
    return once_over_all_from(a, 0)


def a_reciprocal_s_slope(x):
    return np.log(x).sum()


A_SLOPE = mutad.compile(a_reciprocal_s_slope, grad=True)


ONES = np.ones(5)
WITH_A_ZERO = np.array([1.0, 2.0, 0.0, 3.0])
FOUND: list[tuple[Callable[..., Any], np.ndarray, str, str]] = [
    (in_a_chain, np.array([[1.0, 2.0], [0.0, 1.0]]), "np.sin(z)",
     "np.sin(z): the cotangent of z at [1, 0] is nan"),
    (in_a_loop, WITH_A_ZERO, "np.log(x[i])",
     "np.log(x[i]): the cotangent of x[2] is inf: 2.0 / 0.0 (iteration 2 of line {head}, counted from 0)"),
    (in_a_nest, np.array([1.0, 2.0, 3.0, 0.0, 1.0]), "x[j + 1]", "the cotangent of x[1] is inf"),
    (in_a_helper, np.array([1.0, 0.0]), "1.0 / v",
     "1.0 / v: the cotangent of a at [1] is -inf: -1.0 / 0.0 * inf"),
    (in_a_slice, np.array([1.0, 2.0, 3.0, 2.0, 1.0, 5.0]), "0.1 / (", "the cotangent of u[3] is -inf"),
    (by_a_subscript, WITH_A_ZERO, "1.0 / x[places[k]]", "the cotangent of x[2] is -inf: -1.0 / 0.0 * inf"),
    (in_a_sum, ONES, "x[0] * 1e308", "the cotangent of x[0], a sum, is inf: 1e+308 + 1e+308"),
    (in_a_product, np.ones((3, 2)), "(a @ b)", "a @ b: the cotangent of a[0, 0] is inf"),
    (in_a_recursion, WITH_A_ZERO, "np.float64(1.0) / a[i]", "is inf"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "x", "text", "said"), FOUND, ids=[row[0].__name__ for row in FOUND]
)
def test_the_first_that_is_not_finite_is_found(
    function: Callable[..., Any], x: np.ndarray, text: str, said: str
) -> None:
    line = line_of(text)
    said = said.replace("{head}", str(line - 1))
    with pytest.raises(FloatingPointError) as raised:
        checked(function).grad(x.copy())
    assert str(raised.value).startswith(f"test_sanitized.py:{line}: ")
    assert said in str(raised.value)
    assert any(f"test_sanitized.py:{line}:" in note for note in raised.value.__notes__)


def line_of(text: str) -> int:
    with open(__file__) as file:
        return next(n for n, line in enumerate(file, 1) if text in line)


def test_vjp_tangents_and_products_are_checked_as_well() -> None:
    f, x = checked(in_a_chain), np.array([1.0, 0.0])
    back = f.vjp(x.copy(), wrt="x")[1]
    with pytest.raises(FloatingPointError, match="cotangent"):
        back(1.0)
    with pytest.raises(
        FloatingPointError, match=r"log\(y - 1\.0\): the tangent .* is inf: 1\.0 / 0"
    ):
        f.jvp(x.copy(), tangents={"x": np.ones(2)})
    with pytest.raises(FloatingPointError):
        f.hvp(x.copy(), direction=np.ones(2))
    with pytest.raises(FloatingPointError, match="tangent"):
        checked(reciprocal).jacobian(np.array([1.0, 2.0, 0.0]))


def asks_for_a_slope(x):
    return (A_SLOPE.grad(x) ** 2).sum()


def test_so_are_derivatives_that_programs_ask_for() -> None:
    with pytest.raises(
        FloatingPointError, match=r"np\.log\(x\): the cotangent of x at \[1\] is inf"
    ):
        checked(asks_for_a_slope)(np.array([1.0, 0.0]))


def at_kinks(x):
    chosen = np.where(x > 0.0, np.sqrt(x), 0.0)
    return (chosen + np.minimum(1.0, 1.0 / x) + np.sqrt(x)).sum() + abs(x[0]) * np.linalg.norm(x)


def with_values_that_are_not_finite(x):
    y = np.log(x - x)
    return x.sum() + np.where(x > 9.0, y, 0.0).sum()


def updated_in_place(x):
    for k in range(3):
        x[1:] = np.sin(x[1:]) * x[:-1] + k
        x[0] += math.exp(-x[1]) * x.max()
    return (x @ x) + np.prod(x)


@pytest.mark.parametrize("f", [at_kinks, with_values_that_are_not_finite, updated_in_place])
def test_clean_programs_compute_what_they_do(f: Callable[..., Any]) -> None:
    plain = mutad.compile(f, grad=True, cache=False, opt=1)
    x, v = np.array([0.0, 1.0, 2.0]), np.array([0.3, -0.2, 0.1])
    one = checked(f)
    for mine, theirs in zip(
        one.value_and_grad(x.copy()), plain.value_and_grad(x.copy()), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-14)
    if f is not at_kinks:  # where what is not finite is dropped afterwards
        dots = [g.jvp(x.copy(), tangents={"x": v.copy()})[1] for g in (one, plain)]
        np.testing.assert_allclose(*dots, rtol=1e-14)
    back = one.vjp(x.copy(), wrt="x")[1]
    np.testing.assert_allclose(back(1.0), plain.grad(x.copy()), rtol=1e-14)


def test_patterns_are_found_by_what_is_not_a_number() -> None:
    matrix = checked(reciprocal).jacobian(np.array([1.0, 2.0]), sparsity="auto")
    np.testing.assert_array_equal(matrix.toarray(), [[-1.0, 0.0], [0.0, -0.25]])


def test_nothing_is_added_where_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = mutad.compile(in_a_loop, grad=True, cache=False)
    text = plain.inspect("llvm", ONES, wrt="x")
    monkeypatch.setenv("MUTAD_SANITIZE", "grad")
    asked = mutad.compile(in_a_loop, grad=True, cache=False)
    assert asked.inspect("llvm", ONES, wrt="x") != text
    assert "ad.made" not in plain.inspect("adjoint", ONES, wrt="x")
    assert "raise_if" in asked.inspect("adjoint", ONES, wrt="x")
    assert plain.inspect("llvm", ONES, wrt="x") == text
    monkeypatch.setenv("MUTAD_SANITIZE", "everything")
    with pytest.raises(ValueError, match="use '' or 'grad'"):
        mutad.compile(in_a_loop)
