"""Gradients through recursive functions with new arrays, objects, lists, exceptions."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests
from recursive_algorithms import fourier_transform, merge_sort

from mutad import check_gradient, compile

programs = GradientPrograms()
on = programs.on


@on("f64[8]")
def power_of_a_frequency(x):
    re, im = fourier_transform(x * x, x)
    return re[1] ** 2 + im[1] ** 2 + re[3] * im[2]


@on("f64[n]", n="1 7")
def sorted_by_merging(x):
    y = merge_sort(x)
    return (y * y * np.arange(y.size)).sum() + x[0]


@on("f64[4] n", n="0 3")
def stores_to_what_it_receives(x, n):
    def go(k):
        if k == 0:
            return x * x
        y = go(k - 1)
        y[0] *= y[1]
        y *= y
        return y

    return go(n).sum()


@on("f64[3] n b", n="2", b="True False")
def the_argument_or_a_new_array(x, n, new):
    def go(v, i):
        if i == 0:
            return v * v if new else v
        return go(v, i - 1)

    y = go(x, n)
    y[0] = y[1] * y[2]
    return (x * y).sum()


@dataclass
class State:
    pos: Any
    t: float = 0.0
    n: int = 0

    def walk(self, i):
        if i == 0:
            return 1.0
        self.t += 0.5 * self.pos[0] * self.t + self.pos[1]
        self.n += 1
        self.pos[0] *= 1.1
        return self.t * self.walk(i - 1) + self.t


@on("f64[2] n", n="0 3")
def a_method(x, n):
    s = State(x * 1.0, x[1])
    y = s.walk(n)
    return y * s.t + s.n


@on("f64[3] n", n="0 3")
def fields_bound_anew(x, n):
    def go(s, i):
        if i > 0:
            s.pos = s.pos * s.pos + 0.1
            go(s, i - 1)
            s.t = s.t + s.pos.sum()

    s = State(x)
    go(s, n)
    return (s.pos * s.t).sum() + s.t


class Pair(NamedTuple):
    a: float
    b: float


@on("f64[2] n", n="0 4")
def named_tuples(x, n):
    def go(p, i):
        if i == 0:
            return p
        q = go(Pair(p.a * p.b, p.b + p.a), i - 1)
        return Pair(q.b * q.a, q.a + 0.25)

    p = go(Pair(x[0], x[1]), n)
    return p.a * p.b


@on("f64[3] n", n="0 2")
def new_objects(x, n):
    def go(k):
        if k == 0:
            return State(x * x, x[0])
        s = go(k - 1)
        s.t *= x[1]
        return State(s.pos * s.t, s.t + 1.0, s.n + k)

    s = go(n)
    return s.pos.sum() * s.t + s.n


@on("f64[7]")
def a_list_of_a_walk(x):
    out = [x[0] * x[1]]

    def walk(i):
        if i < x.size:
            walk(2 * i + 1)
            out.append(x[i] * out[-1])
            walk(2 * i + 2)

    walk(0)
    return sum(out) + out[-1] * len(out)


@on("f64[7]")
def a_list_that_is_read_as_a_whole(x):
    out = [x[0] * x[1]]

    def walk(i):
        s = 0.0
        if i < x.size:
            s += walk(2 * i + 1)
            out.append(x[i] * out[-1])
            a = np.array(out)
            s += (a * a * a).sum() + walk(2 * i + 2)
            out[0] = out[-1] * 1.5
        return s

    return walk(0)


@on("f64[7]")
def a_path_that_is_pushed_and_popped(x):
    path, best = [0.0], np.zeros(1)

    def search(i):
        if i >= x.size:
            best[0] = max(best[0], sum(path))
            return
        path.append(x[i] * x[i])
        search(2 * i + 1)
        search(2 * i + 2)
        path.pop()

    search(0)
    return best[0]


@on("f64[2]")
def adaptive_quadrature(x):
    def area(f, a, b, n):
        m = 0.5 * (a + b)
        one = (b - a) * f(m)
        two = 0.5 * (b - a) * (f(0.5 * (a + m)) + f(0.5 * (m + b)))
        if n == 0 or abs(one - two) < 1e-4:
            return two
        return area(f, a, m, n - 1) + area(f, m, b, n - 1)

    return area(lambda v: math.exp(-x[0] * v * v), 0.0, 1.0, 8) * x[1]


def roots(x, i):
    if i >= x.size:
        return 0.0
    if x[i] < 0.0:
        raise ValueError("negative")
    x[i] = x[i] * x[i] + 0.1
    return math.sqrt(x[i]) * x[0] + roots(x, i + 1)


@on("f64[4]:pos", "f64[4]")
def caught_by_the_caller(x):
    try:
        return roots(x, 0)
    except ValueError:
        return (x * x).sum()


@on("f64[6]", "f64[6]:pos")
def caught_on_the_way(x):
    def go(i):
        if i >= x.size:
            return x[0]
        try:
            if x[i] < 0.0:
                raise ValueError("negative")
            y = go(i + 1) * x[i]
        except ValueError:
            y = 0.25 * x[i] * x[i]
        finally:
            x[i] *= 1.5
        return y + x[i] * 0.5

    return go(0)


@on("f64[2] n", n="5 100000")
def too_deep_or_not(x, n):
    def deep(i):
        return x[0] if i == 0 else x[0] * 0.5 + deep(i - 1)

    try:
        return deep(n) * x[1]
    except RecursionError:
        return x[1] * x[1]


@on("f64[2] f64[4]")
def active_in_one_call_and_not_in_another(x, c):
    def go(v, i):
        return v * c[0] if i == 0 else go(v * 0.5, i - 1)

    return (go(c, 1)[:2] * go(x, 2)).sum()


TestGradients = gradient_tests(programs, tangents=True)


def test_gradients_that_go_too_deep_raise_with_arrays() -> None:
    @compile(grad=True)
    def loss(x, n):
        def deeper(v, i):
            return v * v if i == 0 else deeper(v + 1.0, i - 1) * v

        return deeper(x, n).sum()

    assert loss.grad(np.full(3, 0.01), 20).shape == (3,)
    with pytest.raises(RecursionError):
        loss.grad(np.full(3, 0.01), 10**6)


def test_gradients_of_new_arrays_pass_the_users_check() -> None:
    @compile(grad=True)
    def loss(x):
        re, im = fourier_transform(x, x * x)
        return (re * im).sum()

    check_gradient(loss, np.linspace(0.1, 0.9, 4))
