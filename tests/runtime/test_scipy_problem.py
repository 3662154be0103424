"""`mutad.scipy.Problem`: SciPy's optimizers find the same points as with derivatives written by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import least_squares, minimize

import mutad
from mutad.scipy import Problem


@mutad.compile(grad=True, opt=1)
def rosenbrock(x):
    total = 0.0
    for i in range(x.size - 1):
        total += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    x[:] = 0.0  # nobody's business but the function's
    return total


@dataclass
class Model:
    rate: float
    weights: np.ndarray[Any, Any]
    steps: int = 3


@mutad.compile(grad=True, opt=1)
def misfit(u, model, data):
    for _ in range(model.steps):
        u[1:-1] += model.rate * (u[:-2] - 2.0 * u[1:-1] + u[2:])
    r = u * model.weights - data
    return (r * r).sum() + model.rate**2 + 0.1 * (model.weights**2).sum()


@mutad.compile(grad=True, opt=1)
def residuals(k, t, y):
    return k[0] * np.exp(-k[1] * t) - y


@mutad.compile(grad=True, opt=1)
def broyden(x):
    out = np.empty_like(x)
    for i in range(x.size):
        left = x[i - 1] if i > 0 else 0.0
        right = x[i + 1] if i + 1 < x.size else 0.0
        out[i] = (3.0 - 2.0 * x[i]) * x[i] - left - 2.0 * right + 1.0
    return out


def model_problem(wrt: Any) -> Problem:
    rng = np.random.default_rng(0)
    u, data = rng.normal(size=(2, 8))
    return Problem(misfit, u, Model(0.1, np.ones(8)), data, wrt=wrt)


def test_minimize_finds_the_minimum() -> None:
    fit = Problem(rosenbrock, np.full(5, 1.3))
    for method, given in (
        ("BFGS", {}),
        ("trust-ncg", {"hessp": fit.hessp}),
        ("dogleg", {"hess": fit.hess}),
    ):
        found: Any = minimize(fit.value_and_grad, fit.start, jac=True, method=method, **given)
        assert found.success
        np.testing.assert_allclose(found.x, 1.0, rtol=1e-4)
    np.testing.assert_array_equal(fit.start, 1.3)


def test_least_squares_finds_what_derivatives_by_hand_find() -> None:
    t = np.linspace(0.0, 1.0, 20)
    y = 2.5 * np.exp(-1.3 * t) + 0.01 * np.cos(50.0 * t)
    fit = Problem(residuals, np.ones(2), t, y, wrt="k")

    def by_hand(k: Any) -> Any:
        e = np.exp(-k[1] * t)
        return np.stack([e, -k[0] * t * e], axis=1)

    np.testing.assert_allclose(fit.jacobian(fit.start), by_hand(fit.start), rtol=1e-14)
    mine: Any = least_squares(fit.value, fit.start, jac=fit.jacobian)
    theirs: Any = least_squares(lambda k: k[0] * np.exp(-k[1] * t) - y, np.ones(2), jac=by_hand)
    np.testing.assert_allclose(mine.x, theirs.x, rtol=1e-12)
    assert mine.nfev == theirs.nfev


def test_sparse_jacobians() -> None:
    fit = Problem(broyden, -np.ones(50), sparsity="auto")
    dense = Problem(broyden, -np.ones(50))
    jacobian = fit.jacobian(fit.start)
    assert sparse.issparse(jacobian)
    np.testing.assert_array_equal(jacobian.toarray(), dense.jacobian(fit.start))
    found: Any = least_squares(fit.value, fit.start, jac=fit.jacobian)
    assert found.cost < 1e-15


@pytest.mark.parametrize("wrt", ["u", "model", ("u", "model.rate"), ("model.weights", "u", "data")])
def test_derivatives_are_those_of_the_vector(wrt: Any) -> None:
    fit = model_problem(wrt)
    n, x, h = len(fit.start), fit.start + 0.01, 1e-6
    value, gradient = fit.value_and_grad(x)
    assert value == fit.value(x)
    np.testing.assert_array_equal(gradient, fit.grad(x))
    numeric = [(fit.value(x + h * e) - fit.value(x - h * e)) / (2 * h) for e in np.eye(n)]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7)
    hessian = fit.hess(x)
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-12)
    numeric = [(fit.grad(x + h * e) - fit.grad(x - h * e)) / (2 * h) for e in np.eye(n)]
    np.testing.assert_allclose(hessian, numeric, rtol=1e-6, atol=1e-6)


def test_vectors_are_unpacked_in_the_form_of_the_arguments() -> None:
    fit = model_problem(("u", "model"))
    u, model = fit.unpack(np.arange(17.0))
    np.testing.assert_array_equal(u, np.arange(8.0))
    assert (model.rate, model.steps) == (8.0, 3)
    np.testing.assert_array_equal(model.weights, np.arange(9.0, 17.0))
    assert model_problem("model.rate").unpack(np.array([0.5])) == 0.5
    assert isinstance(fit.unpack(fit.start), tuple)


def test_arguments_are_copied() -> None:
    u, data = np.ones(8), np.zeros(8)
    fit = Problem(misfit, u, Model(0.1, np.ones(8)), data)
    before = fit.value(fit.start)
    u[:], data[:] = 7.0, 7.0
    assert fit.value(fit.start) == before
    assert (u == 7.0).all()


def test_arguments_share_memory_as_they_did() -> None:
    @mutad.compile(grad=True, opt=1)
    def moved(u, v):
        u[0] = 3.0
        return (u * v).sum()

    x = np.arange(1.0, 5.0)
    assert Problem(moved, x, x).value(x) == moved(x.copy(), y := x.copy()) + (9.0 - 3.0 * y[0])


def test_numbers_and_single_precision() -> None:
    @mutad.compile(grad=True, opt=1)
    def f(x, k):
        return k * (x * x).sum()

    fit = Problem(f, np.ones((2, 3), np.float32), 2.0, wrt=("x", "k"))
    assert fit.start.dtype == np.float64
    x, k = fit.unpack(fit.start)
    assert (x.dtype, x.shape, k) == (np.float32, (2, 3), 2.0)
    np.testing.assert_array_equal(fit.grad(fit.start), [4.0] * 6 + [6.0])


def test_methods() -> None:
    class Spring:
        def __init__(self, k: float) -> None:
            self.k = k

        @mutad.compile(grad=True, opt=1)
        def energy(self, x):
            return 0.5 * self.k * (x * x).sum()

    spring = Spring(3.0)
    assert Problem(spring.energy, np.ones(2)).grad(np.full(2, 2.0)).tolist() == [6.0, 6.0]
    assert Problem(spring.energy, np.ones(2), wrt="self.k").grad(np.array([5.0])).tolist() == [1.0]


def test_refusals() -> None:
    fit = Problem(rosenbrock, np.ones(3))
    with pytest.raises(ValueError, match=r"x has shape \(2,\): use \(3,\)"):
        fit.value(np.ones(2))
    plain: Any = np.sum
    with pytest.raises(TypeError, match=r"@compile\(grad=True\)"):
        Problem(plain, np.ones(3))
    with pytest.raises(TypeError, match="no parameter"):
        model_problem("steps")
    with pytest.raises(TypeError, match="is not a float"):
        model_problem("model.steps")
