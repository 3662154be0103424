"""Sums that are returned are computed in the sweep of an adjoint (`fuse-reductions`)."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[N]", N="9 0 1")
def squares(x):
    return (x * x).sum()


@on("f64[5,N] f64[5,N]", N="7 0 1")
def two_sums_of_products(x, y):
    return 0.5 * (x * y).sum() - 0.1 * (x * x * y).sum()


@on("f64[9]")
def two_sums_of_one_array_that_is_overwritten(x):
    total = (x * x).sum()
    x[:] = np.sin(x)
    return total + (x * x * x).sum()


@on("f64[9]")
def the_largest_is_compared(x):
    return (x * x).max() + x.min()


@on("f64[9]")
def a_sum_that_is_used(x):
    norm = (x * x).sum()
    x /= norm
    return (x * x * x).sum() / norm


@on("f64[6,6]")
def rows_that_are_handed_on(x):
    y = x[1:] - x[:-1]
    z = np.where(y > 0.0, y, 0.5 * y)
    return ((z[1:] + z[:-1]) ** 2).sum()


TestGradients = gradient_tests(programs, tangents=True)


def test_the_map_of_the_adjoint_has_the_sum() -> None:
    from mutad import compile

    f = compile(squares, grad=True, cache=False)
    x = np.arange(1.0, 100.0)
    value, slope = f.value_and_grad(x)
    np.testing.assert_allclose(value, squares(x), rtol=1e-14)
    np.testing.assert_array_equal(slope, 2.0 * x)
    assert f.inspect("optimize", x, wrt="x").count("array.map(") == 1
