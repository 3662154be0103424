"""Loops whose branches became selections: the gradient is still that of the branch that ran."""

import math

import numpy as np
import pytest
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

import mutad

programs = GradientPrograms()
on = programs.on


@on("f64[9]", "f64[0]", "f64[5]R", saved=0)
def one_side_adds(x):
    total = 0.0
    for v in x:
        if v > 0.0:
            total += v * v
    return total


def root_of(v):
    if v < 0.0:
        raise ValueError("negative")
    return math.sqrt(v)


@on("f64[9]", "f64[1]", saved=0)
def an_exception_is_caught(x):
    total = 0.0
    for v in x:
        try:
            total += root_of(v)
        except ValueError:
            total += 0.1 * v * v
    return total


@on("f64[9] f64[9]", saved=0)
def three_sides_and_two_sums(x, y):
    total, other = 1.0, 0.0
    for i in range(x.size):
        v, w = x[i], y[i]
        if v > 0.5:
            total += v * w
            other -= v
        elif v < -0.5:
            other += v / (1.0 + w * w)
        else:
            total += w * w
    return total * other


@on("f64[9] f64[9]", saved=lambda x, y: 8 * x.size)
def what_is_chosen_is_stored(x, y):
    for i in range(x.size):
        w = x[i] * x[i] if x[i] > 0.0 else 0.5 * x[i]
        y[i] = w
        x[i] = 0.5
    return (y * y).sum() + x.sum()


@on("f64[4,5]", saved=lambda a: 8 * (a.shape[0] - 1))
def rows(a):
    total = 0.0
    for i in range(a.shape[0]):
        row = 0.0
        for j in range(a.shape[1]):
            if a[i, j] > a[i, 0]:
                row += a[i, j] ** 2
        total += row * a[i, 0]
    return total


@on("f64[9]", "f64[0]", saved=0)
def mean_of_some(x):
    total, count = 0.0, 0
    for i in range(x.size):
        if x[i] > -0.5 and x[i] < 1.0:
            total += x[x.size - 1 - i] * x[i]
            count += 1
    return total / (count + 1)


@on("f64[9] f64[5]")
def an_element_that_is_there_for_some(x, y):
    total = 0.0
    for i in range(x.size):
        if i < y.size:
            total += x[i] * y[i]
        if i > 0 and x[i] > 0.0:
            total -= x[i - 1]
    return total


@on("f64[9] f64[9]")
def what_is_read_is_written(x, y):
    total = 0.0
    for i in range(x.size):
        if y[i] > 0.0:
            total += x[x.size - 1 - i]
        x[i] = total
    return (x * y).sum()


TestGradients = gradient_tests(programs, tangents=True)


def test_the_side_that_did_not_run_has_no_part_in_the_gradient():
    @mutad.compile(grad=True)
    def f(x, s):
        total = 0.0
        for v in x:
            if v > 0.0:
                total += math.sqrt(v)
            else:
                total += v / s
        return total

    x = np.array([-1.0, 0.0, 4.0, 0.25])
    dx, ds = f.grad(x, np.float64(2.0), wrt=("x", "s"))
    np.testing.assert_allclose(dx, [0.5, 0.5, 0.25, 1.0])
    assert ds == 0.25
    x = np.array([4.0, 0.25])
    dx, ds = f.grad(x, np.float64(0.0), wrt=("x", "s"))
    np.testing.assert_allclose(dx, [0.25, 1.0])
    assert ds == 0.0


def test_the_branches_are_gone_from_both_sweeps():
    f = mutad.compile(an_exception_is_caught, grad=True)
    text = f.inspect("optimize", np.ones(3), wrt="x")
    assert "scf.if" not in text
    assert "ad.push" not in text


@pytest.mark.parametrize("first", [0.0, -0.0, np.inf, -np.inf, np.nan])
def test_sums_are_those_of_the_branches_to_the_bit(first):
    def f(x, total):
        for v in x:
            if v > 1.0:
                total += v
            elif v < -1.0:
                total -= v * v
        return total

    g = mutad.compile(f)
    rng = np.random.default_rng(0)
    for x in (
        np.zeros(3),
        -np.zeros(3),
        rng.normal(size=101) * 1.3,
        np.array([np.nan, np.inf, 3.0]),
    ):
        with np.errstate(invalid="ignore"):
            mine, theirs = g(x, first), f(x, first)
        assert np.float64(mine).tobytes() == np.float64(theirs).tobytes() or np.isnan(mine + theirs)
        assert np.isnan(mine) == np.isnan(theirs)
