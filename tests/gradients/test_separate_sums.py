"""Sums that a map adds to an array that it adds to elsewhere have memory of their own (`separate-sums`)."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[N,N]", N="7 0 1 2")
@on("f32[6,6]", relative=1e-2)
def shortest_paths(d):
    for k in range(d.shape[0]):
        d[:, :] = np.minimum(d, d[:, k : k + 1] + d[k : k + 1, :])


@on("f64[5,N]", N="7 0 1")
def each_row_adds_one(x):
    for k in range(5):
        x[:] = np.sin(x + 0.3 * x[k])


@on("f64[N,4]", N="7 0 1")
def each_row_adds_an_element_of_its_own(x):
    for k in range(4):
        x[:] = x * (1.0 + 0.1 * x[:, k : k + 1])


@on("f64[N]", N="9 1")
def each_element_adds_one(x):
    for k in range(x.size):
        x[:] = x * (1.0 + 0.1 * x[k])


@on("f64[2,3,4]")
def planes_and_lines(x):
    x[:] = x * (1.0 + 0.1 * x[1]) + 0.2 * x[:, 2:] - 0.3 * x[:, :, :1] * x[0, 1:2]


@on("f64[6,6]")
def backwards_and_transposed(x):
    for k in range(6):
        x[::-1] = x[::-1] * (1.0 + 0.1 * x[k, ::-1]) + 0.1 * x.T[:, k : k + 1]


@on("f64[6,6] f64[6]")
def two_sums_alone(x, v):
    """Nothing adds to the elements, but a row and a column meet in one."""
    for k in range(6):
        v += (x[:, k : k + 1] * x[k : k + 1, :]).sum(axis=0)


TestGradients = gradient_tests(programs, tangents=True)


def test_infinite_lengths_and_ties() -> None:
    """A tie gives half to each side, and no path gives nothing."""
    from mutad import compile

    @compile(grad=True)
    def paths(d):
        for k in range(d.shape[0]):
            d[:, :] = np.minimum(d, d[:, k : k + 1] + d[k : k + 1, :])
        return d[0, 2] + d[3, 0]

    d = np.full((5, 5), np.inf)
    np.fill_diagonal(d, 0.0)
    d[0, 1], d[1, 2], d[0, 2], d[3, 0] = 1.0, 2.0, 3.0, 4.0
    slopes = paths.grad(d.copy())
    assert np.isfinite(slopes).all()
    assert slopes[3, 0] > 0.0
    assert slopes[0, 1] == slopes[1, 2] > 0.0
    assert slopes[4].sum() - slopes[4, 4] == 0.0
