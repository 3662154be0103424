"""Gradients of programs that catch exceptions: of the path that ran, caught exceptions included."""

import contextlib
import math

import numpy as np
import pytest
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

import mutad

programs = GradientPrograms()
on = programs.on


class Failure(Exception):
    pass


def safe_sqrt(x):
    try:
        return math.sqrt(x)
    except ValueError:
        return 0.0


@on("v", v="4.0 -1.0")
def a_returning_handler(x):
    try:
        return math.sqrt(x) * x
    except ValueError:
        return x * x


@on("f64[6]")
def a_callee_that_catches_in_a_loop(x):
    s = 0.0
    for i in range(x.size):
        s += safe_sqrt(x[i]) * x[i]
    return s


@on("f64[6]", saved=lambda x: 8 * x.size)
def what_is_caught_costs_no_flag(x):
    s = 1.0
    for i in range(x.size):
        try:
            s += math.sqrt(x[i] + 0.2) * 2.0
            x[i] = s
        except ValueError:
            x[i] *= 3.0
    return s


@on("f64[6]")
def in_a_loop_that_stores(x):
    s = x[0] * 0.5
    for i in range(x.size):
        try:
            s += math.sqrt(x[i] + 0.05)
            x[i] = s * x[i]
        except ValueError:
            s *= 1.5
            x[i] *= s
    return s


@on("f64[5] v", v="2.5 -3.0 9.0")
def effects_before_the_raise(x, y):
    s = 0.1 * y
    try:
        for i in range(x.size):
            x[i] = x[i] * y + s
            s += math.sqrt(y - i) * x[i]
            x[i] *= s
    except ValueError:
        s = s * x[0]
    return s * x[1]


@on("f64[4] v", v="2.5 -0.5")
def names_at_the_raise(x, y):
    a, b = x[0] * y, y * y
    try:
        a = a * b
        b = b + math.log(y) * x[1]
        a = a + b
    except ValueError:
        b = b * a * x[2]
    else:
        a *= x[3]
    return a * b


@on("f64[4] v i", v="2.5 -0.5", i="1 7")
def nested_and_finally(x, y, i):
    s = y * x[0]
    try:
        try:
            x[1] = s * x[2]
            s += math.sqrt(y) * x[i]
        finally:
            x[2] *= s
            s *= x[1]
    except ValueError:
        s *= x[2] * 2.0
    except IndexError:
        s *= x[2] * 3.0
    return s + x[1] * x[2]


@on("f64[5] v", v="0.7 -0.4 3.0")
def a_while_that_a_raise_ends(x, y):
    k, s = 0, 0.5
    try:
        while s * s < 1e6:
            x[k] = x[k] * s + y
            s += x[k] ** 2 + 0.3
            k += 1
    except IndexError:
        s *= y
    return s


@on("f64[6] v", v="0.3 -9.0 9.0")
def left_from_a_try(x, limit):
    s = x[0] * limit
    for i in range(x.size):
        try:
            if x[i] > limit:
                break
            r = math.sqrt(x[i] + 0.2)
            if r > 0.8:
                continue
            s += r * x[i]
        except ValueError:
            s *= x[i]
        finally:
            x[0] += s * x[i]
    return s + x[0]


def checked(x, i):
    if i == 3:
        raise Failure("third")
    return math.log(x[i] + 0.1) * x[i]


@on("f64[6]", "f64[6]:pos", "f64[2]:pos")
def raised_by_a_callee(x):
    s = 1.0
    try:
        for i in range(x.size):
            s += checked(x, i) * s
            x[i] *= s
    except ValueError:
        s *= x[0]
    except Failure:
        s *= x[1] * x[2]
    return s


@on("f64[4] f64[4] n", n="2 4 5")
def arrays_change_places(x, y, n):
    u, v = x, y
    s = 0.0
    try:
        for i in range(n):
            u[i] = 0.5 * v[i] * u[i]
            s += u[i] * math.sqrt(2.5 - i)
            u, v = v, u
    except ValueError:
        s *= u[0]
    return s + u[1] * v[2]


@on("f64[3] f64[n]", n="3 4")
def shapes_that_do_not_fit(x, y):
    try:
        s = (x * y).sum()
    except ValueError:
        s = (x * x).sum() * y[0]
    return s


@on("f64[6] i", i="2 8")
def whole_arrays_around_a_check(x, i):
    y = np.zeros(3)
    try:
        y[:] = x[:3] * x[3:]
        y *= x[i]
        y[0] = y[1] * y[2]
    except IndexError:
        y *= y
        y[1] *= x[0]
    return y.sum() * x[1]


class Unstable(ArithmeticError):
    def __init__(self, step, value):
        super().__init__(f"unstable in step {step}")
        self.step, self.value = step, value


def advance(x, k):
    if x[k] > 0.5:
        raise Unstable(k, x[k] * x[k])
    return math.sqrt(x[k] + 9.0)


@contextlib.contextmanager
def scaled(x, k):
    kept = x.copy()
    x *= k
    try:
        yield kept
    except ValueError:
        x += kept
    finally:
        x[0] += kept[1]


class Halved:
    def __init__(self, x):
        self.x = x

    def __enter__(self):
        self.x[1] *= self.x[2]
        return self.x[1]

    def __exit__(self, kind, error, trace):
        self.x *= self.x[3]
        return kind is not None


@on("f64[6]")
def managers_change_arrays_on_the_way_out(x):
    s = x[0]
    for i in range(4):
        with scaled(x, 0.5) as old, Halved(x) as h:
            s += old[i] * h
            if i == 2:
                continue
            s += math.sqrt(float(i) - 1.0) * x[i]
        with scaled(x, 0.5):
            s += math.sqrt(-abs(x[i]) - 1.0)
        s += x[i] * x[i]
    return s


@on("f64[6]")
def the_fields_of_what_is_caught(x):
    s, k = x[0], 0
    while True:
        try:
            s += advance(x, k) * s
            k += 1
        except Unstable as e:
            if e.step > 4:
                return s * e.value
            s += e.value * e.step
            k += 1
        except IndexError:
            return s


TestGradients = gradient_tests(programs, tangents=True)


def test_the_gradient_is_that_of_the_path_that_ran() -> None:
    f = mutad.compile(safe_sqrt, grad=True)
    assert f.grad(4.0) == 0.25
    assert f.grad(-1.0) == 0.0


def may_fail(x, y):
    x[0] = x[0] * y
    try:
        x[1] = math.log(y)
    except ValueError:
        x[1] = 7.0
        raise
    finally:
        x[2] = x[0] + 1.0
    return x[0] * x[1]


def test_an_uncaught_exception_leaves_arrays_as_the_call_does_and_shadows_alone() -> None:
    f = mutad.compile(may_fail, grad=True)
    x, expected = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0])
    x_shadow = np.array([0.5, 0.25, 0.125])
    with pytest.raises(ValueError, match=r"math domain error|positive"):
        may_fail(expected, -2.0)
    with pytest.raises(ValueError, match=r"math domain error|positive"):
        f.pullback(mutad.Duplicated(x, x_shadow), mutad.Active(-2.0), cotangent=1.0)
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(x_shadow, [0.5, 0.25, 0.125])
