"""Recurrences of the adjoint take a product and a sum (`shorten-recurrences`), where that loses nothing."""

import math
from fractions import Fraction

import numpy as np
import pytest
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

import mutad
from mutad.compiler.transforms import shorten_recurrences

programs = GradientPrograms()
on = programs.on
FAST = {"fastmath": True}


@on("f64[N] 0.3 0.4", N="40 0 1 2 200")
@on("f64[N] 0.3 0.4", N="40 0 1 2 200", options=FAST)
@on("f32[40] 0.3 0.4", relative=1e-2, options=FAST)
def sines(x, a, b):
    state = 0.5
    total = 0.0
    for i in range(x.size):
        state = a * math.sin(state) + b * math.cos(x[i] * state)
        total += state * x[i]
    return total


@on("f64[40] 0.1")
@on("f64[40] 0.1", options=FAST)
def logistic(x, k):
    v = 0.3
    total = 0.0
    for i in range(x.size):
        v = 20.0 * k * v * (1.0 - v) + 0.01 * x[i]
        total += v * x[i]
    return total


@on("f64[N] 0.1", N="40 3 0")
@on("f64[N] 0.1", N="40 3 0", options=FAST)
def two_stages(x, k):
    v = 0.3
    total = 0.0
    for i in range(x.size):
        a = x[i] * v - v * v * v
        w = v + 0.5 * k * a
        v = v + k * (x[i] * w - w * w * w)
        total += v * x[i]
    return total


@on("f64[N] 0.1", N="40 200")
@on("f64[N] 0.1", N="40 200", options=FAST)
def gated(x, k):
    """Divisions in the chain."""
    v = 0.3
    total = 0.0
    for i in range(x.size):
        z = 1.0 / (1.0 + math.exp(-(x[i] + k * v)))
        v = (1.0 - z) * v + z * math.tanh(x[i] * v)
        total += v
    return total


@on("f64[40] 0.1")
@on("f64[40] 0.1", options=FAST)
def newton(x, k):
    v = 1.3
    total = 0.0
    for i in range(x.size):
        v = v - k * (v * v * v - 2.0 - 0.1 * x[i]) / (3.0 * v * v)
        total += v
    return total


@on("f64[30,N] 0.1", N="7 1")
@on("f64[30,N] 0.1", N="7 1", options=FAST)
def in_rows(x, k):
    """The recurrence begins anew in each row."""
    total = 0.0
    for i in range(x.shape[0]):
        v = 0.3
        for j in range(x.shape[1]):
            v = math.tanh(k * v + x[i, j]) * v + x[i, j]
        total += v * v
    return total


SHORTENED = [sines, logistic, two_stages, gated, newton, in_rows]


# What stays as it is.


@on("f64[40] 0.1")
@on("f64[40] 0.1", options=FAST)
def averages(x, k):
    """One product and one sum already."""
    v = 0.3
    total = 0.0
    for i in range(x.size):
        v = 0.9 * v + k * x[i]
        total += v
    return total


@on("f64[40] 0.1")
@on("f64[40] 0.1", options=FAST)
def two_that_wait_for_each_other(x, k):
    v = 0.3
    w = 0.1
    total = 0.0
    for i in range(x.size):
        w = w - k * math.sin(v) * w + 0.01 * x[i]
        v = v + k * w * v
        total += v * x[i]
    return total


@on("f64[40] 0.1")
@on("f64[40] 0.1", options=FAST)
def that_goes_to_memory(x, k):
    """What the chain adds is loaded of what the loop stores to."""
    v = 0.3
    total = 0.0
    for i in range(x.size):
        v = math.tanh(k * v + x[i]) * v + x[i]
        x[i] = v * v
        total += v
    return total


KEPT = [averages, two_that_wait_for_each_other, that_goes_to_memory]


def fixed(x, k):
    v = 0.3
    total = 0.0
    for i in range(40):
        v = math.tanh(k * v + x[i]) * v * math.sin(v) + x[i]
        total += v
    return total


TestGradients = gradient_tests(programs)


@pytest.fixture
def shortened(monkeypatch):
    """How many chains are shortened."""
    found = []
    shorten = shorten_recurrences.Chain.shorten

    def noting(chain, **options):
        found.append(chain)
        shorten(chain, **options)

    monkeypatch.setattr(shorten_recurrences.Chain, "shorten", noting)
    return found


@pytest.mark.parametrize("options", [{}, FAST], ids=["default", "fastmath"])
@pytest.mark.parametrize("function", [*SHORTENED, *KEPT], ids=lambda f: f.__name__)
def test_which_chains_are_shortened(function, options, shortened):
    x = np.ones((30, 7)) if function is in_rows else np.ones(40)
    arguments = (x, 0.1, 0.2)[: function.__code__.co_argcount]
    compiled = mutad.compile(function, grad=True, cache=False, **options)
    compiled.inspect("optimize", *arguments, wrt=function.__code__.co_varnames[: len(arguments)])
    assert bool(shortened) is (function in SHORTENED)


def test_kept_where_a_budget_runs_single_iterations(shortened):
    """Alone, an iteration is no loop: the gradient would have other bits."""
    for options in ({}, FAST):
        compiled = mutad.compile(fixed, grad=True, cache=False, **options)
        compiled.inspect("optimize", np.ones(40), 0.1, wrt="x")
        assert bool(shortened) is bool(options)


@pytest.mark.parametrize("options", [{}, FAST], ids=["default", "fastmath"])
def test_close_to_what_the_program_computes(options, monkeypatch):
    x = np.random.default_rng(0).normal(size=1000)
    short = mutad.compile(gated, grad=True, cache=False, **options).grad(x, 0.1)
    monkeypatch.setattr(shorten_recurrences, "MOST", 0)
    long = mutad.compile(gated, grad=True, cache=False, **options).grad(x, 0.1)
    assert not np.array_equal(short, long)
    assert np.allclose(short, long, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 127, 128, 129, 140, 300])
def test_blocks_of_few_iterations_are_the_program_s_own(count, monkeypatch):
    x = np.random.default_rng(0).normal(size=count)
    short = mutad.compile(gated, grad=True, cache=False).grad(x, 0.1)
    monkeypatch.setattr(shorten_recurrences, "MOST", 0)
    long = mutad.compile(gated, grad=True, cache=False).grad(x, 0.1)
    assert np.allclose(short, long, rtol=1e-12, atol=0.0)
    assert count >= 16 or np.array_equal(short, long)


# Products of partials that are lost where the cotangent times one after the other is not.


def products(v, a, b, c, x, scale):
    total = 0.0
    for i in range(a.size):
        v = v * a[i] * b[i] * c[i]
        total += math.sin(x[i])
    return total + scale * v


def sums_of_products(v, a, b, c, x, scale):
    total = 0.0
    for i in range(a.size):
        v = v * a[i] * b[i] + v * b[i] * c[i]
        total += math.sin(x[i])
    return total + scale * v


def quotients(v, a, b, c, x, scale):
    total = 0.0
    for i in range(a.size):
        v = v / a[i] / b[i] * c[i]
        total += math.sin(x[i])
    return total + scale * v


PARTIALS = {
    products: ((1.0, 1.0, 1.0), lambda a, b, c: a * b * c, lambda s, a, b, c: [s * c, b, a]),
    sums_of_products: (
        (0.5, 1.0, 0.5),
        lambda a, b, c: a * b + b * c,
        lambda s, a, b, c: [s * c + s * a, b],
    ),
    quotients: (
        (1.0, 1.0, 1.0),
        lambda a, b, c: c / a / b,
        lambda s, a, b, c: [s * c, 1 / b, 1 / a],
    ),
}
"""Factors with which an iteration hands on what it is given, the partial, and by what programs multiply."""

PLACE, COUNT = 20, 40
"""The iteration that has other factors, of how many."""


def given(function, extremes, scale, dtype):
    factors = [np.full(COUNT, number, dtype) for number in PARTIALS[function][0]]
    for factor, number in zip(factors, extremes, strict=True):
        factor[PLACE] = number
    return dtype(1.0), *factors, np.ones(COUNT, dtype), dtype(scale)


def exact(function, extremes, scale):
    """The gradient in v, or None where it is not finite."""
    try:
        return float(PARTIALS[function][1](*map(Fraction, extremes)) * Fraction(scale))
    except (OverflowError, ZeroDivisionError):
        return None


def stays_finite(function, dtype, a, b, c, scale):
    """Whether the cotangent times one factor after the other does."""
    with np.errstate(all="ignore"):
        s, a, b, c = map(dtype, (scale, a, b, c))
        steps = np.cumprod(PARTIALS[function][2](s, a, b, c), dtype=dtype)
        others = [s * c, s * a, s * b, s * b * c, s * b * a]
        inverse = [1 / a, 1 / b, a * b, a * c] if function is quotients else []
        return np.isfinite([*steps, *others, *inverse]).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=lambda d: d.__name__)
@pytest.mark.parametrize("function", PARTIALS, ids=lambda f: f.__name__)
def test_no_number_is_lost(function, dtype, monkeypatch):
    """With powers of two, what neither underflows nor overflows is exact."""
    r = np.random.default_rng(3)
    least, most = (-1074, 1023) if dtype is np.float64 else (-149, 127)
    wrt, start = ("v", "x"), given(function, PARTIALS[function][0], 1.0, dtype)
    short = mutad.compile(function, grad=True, cache=False)
    assert "shortened = " in str(short.inspect("optimize", *start, wrt=wrt))
    short.grad(*start, wrt=wrt)
    monkeypatch.setattr(shorten_recurrences, "MOST", 0)
    long = mutad.compile(function, grad=True, cache=False)
    better = 0
    for _ in range(2000):
        exponents = r.integers(least, most, 4, endpoint=True) // r.choice([1, 1, 2, 4], 4)
        signs = r.choice([1.0, -1.0, 0.0], 4, p=[0.6, 0.3, 0.1])
        a, b, c, scale = (2.0**exponents * signs).tolist()
        if not stays_finite(function, dtype, a, b, c, scale):
            continue  # with a NaN, all later calls have guards
        arguments = given(function, (a, b, c), scale, dtype)
        (kept, _), (found, _) = (f.grad(*arguments, wrt=wrt) for f in (long, short))
        if found != kept:
            assert found == dtype(exact(function, (a, b, c), scale)), (a, b, c, scale, found, kept)
            better += 1
    assert better
    assert not short._dispatcher.era.guarded


@pytest.mark.parametrize("function", PARTIALS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "extremes",
    [
        (math.inf, 0.0, 1.0),
        (math.inf, 2.0**-1074, 1.0),
        (2.0**1023, 2.0**1023, 0.0),
        (-math.inf, 2.0, math.inf),
        (math.nan, 0.0, 1.0),
        (1.0, 1.0, math.nan),
    ],
    ids=str,
)
def test_what_is_not_finite_is_as_in_the_program(function, extremes, monkeypatch):
    """The first call, and the second, which may have guards."""
    found = []
    for most in (shorten_recurrences.MOST, 0):
        monkeypatch.setattr(shorten_recurrences, "MOST", most)
        compiled = mutad.compile(function, grad=True, cache=False)
        for scale in (1.0, 0.0, 2.0**-1000):
            arguments = given(function, extremes, scale, np.float64)
            found.append(compiled.grad(*arguments, wrt=("v", "x"))[0])
    assert np.array_equal(found[:3], found[3:], equal_nan=True)
