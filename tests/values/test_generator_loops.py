"""Loops over generators: values, what is printed on the way, gradients, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from python_oracle import Tolerance, assert_same_outcome, run

import mutad
from mutad import CompileError, check_gradient


@dataclass
class Mesh:
    points: Any

    def cells(self, step):
        for i in range(0, self.points.size - 1, step):
            yield i, self.points[i] * self.points[i + 1]


def parts(x, k):
    for v in x:
        if v > k:
            yield v * k
        yield v


def logged(x, log):
    try:
        for i in range(x.size):
            log[0] += 1.0
            yield x[i]
    finally:
        log[1] += 1.0


def leaves_and_skips(x, k):
    s = 0.0
    for v in parts(x, k):
        if v < 0.4:
            continue
        if v > 0.95:
            break
        s += v * v
    else:
        s = s * 2
    return s


def reads_the_last_item(x, k):
    v = 0.0
    for v in parts(x, k):
        x[0] = 0.5 * v
    return v * x[0]


def returns_from_the_loop(x, k):
    log = np.zeros(2)
    for i, v in enumerate(logged(x, log), 1):
        if v > k:
            return v * i + log[0]
    return log.sum() * k


def left_generators_finish(x, k):
    log = np.zeros(2)
    for v in logged(x, log):
        if v > k:
            break
    for _ in logged(x, log):
        pass
    return log[0] + 10 * log[1] * k


def zipped_and_nested(x, k):
    s = 0.0
    for v, w in zip(parts(x, k), x):
        for u in parts(x, v):
            if u > 0.9:
                break
            s += u * w
    return s


def zipped_in_the_second_place(x, k):
    s = 0.0
    for i, (w, v) in enumerate(zip(x[1:], parts(x, k))):
        s += i * v * w
    return s


def in_comprehensions(x, k):
    total = sum(v * v for v in parts(x, k) if v > 0.3)
    weighed = [i * v for i, v in enumerate(parts(x, k))]
    return total + sum(weighed) + max(v for v in parts(x, k))


def of_methods(x, k):
    mesh, s = Mesh(x), 0.0
    for i, a in mesh.cells(2):
        s += a * i + a
    return s * k + sum(a for _, a in mesh.cells(1))


def of_nested_functions(x, k):
    def halved(n):
        t = k
        while n > 0:
            yield t
            t = t * 0.5 + x[n]
            n -= 1

    y = np.zeros(3)
    for j, v in enumerate(halved(3)):
        y[j] += v
    for v in halved(2):
        y = y * v
    return y.sum()


def grows_a_list(x, k):
    found = []
    for v in parts(x, k):
        found.append(v * v)
        if len(found) > 4:
            found.pop()
    return sum(found)


def of_filtered_expressions(x, k):
    s = x[0]
    for i, v in enumerate(v * w for v in x if v > k for w in (0.5, 2.0)):
        s += i * v
    return s


def raises_in_the_body(x, k):
    log = np.zeros(2)
    s = 0.0
    try:
        for v in logged(x, log):
            s += math.sqrt(v - k)
    except ValueError:
        s += log[1]
    return s


def of_a_generator_of_generators(x, k):
    def both():
        yield from parts(x, k)
        for v in parts(x[::-1], 0.5):
            yield 2.0 * v

    s = 0.0
    for v in both():
        s = 0.5 * s + v
    return s


def exhausted_before_the_generator(x, k):
    """What stands before a generator in `zip` is asked first: the generator is not asked again."""
    log, s = np.zeros(2), 0.0
    for i, (w, v) in enumerate(zip(x[:2], logged(x, log))):
        if i == 1:
            continue
        s += v * w
    else:
        s += log[0] * k
    for v, w in zip(logged(x, log), range(2)):
        if v > k:
            break
        s += v * w
    else:
        s += 10.0 * log[0]
    for w, v in zip(x[:0], logged(x, log)):
        s += v * w
    s += sum(v * w for w, v in zip(x[:1], logged(x, log)))
    return s * log[0] + log[1]


def operands_are_evaluated_in_order(x, k):
    log = np.ones(1)

    def then(a, value):
        log[0] = log[0] * 2.0 + a
        return value

    s = 0.0
    for v, w in zip(parts(then(1.0, x), k), then(5.0, x)):
        s += v * w
    for i, v in enumerate(parts(then(2.0, x), k), then(3.0, 1)):
        s += v * i
    for w, v in zip(then(4.0, x[:0]), parts(then(7.0, x), k)):
        s += v * w
    return s * log[0]


def unpacked_lazily(x, k):
    log = np.zeros(2)

    def doubled(v):
        log[0] += 1.0
        return 2.0 * v

    try:
        a, b = (doubled(v) for v in x)
    except ValueError:
        log[0] *= 10.0
    try:
        c, d = map(doubled, x[:1])
    except ValueError:
        log[0] *= 10.0
    a, b = map(doubled, x[:2])
    try:
        c, d = logged(x, log)
    except ValueError:
        log[0] *= 10.0
    c, d = logged(x[:2], log)
    return a * b * log[0] * k + c * d * log[1]


FUNCTIONS = [
    leaves_and_skips,
    reads_the_last_item,
    returns_from_the_loop,
    left_generators_finish,
    zipped_and_nested,
    zipped_in_the_second_place,
    in_comprehensions,
    of_methods,
    of_nested_functions,
    grows_a_list,
    of_filtered_expressions,
    raises_in_the_body,
    of_a_generator_of_generators,
    exhausted_before_the_generator,
    operands_are_evaluated_in_order,
    unpacked_lazily,
]


def arguments(k: float) -> tuple[Any, ...]:
    return np.random.default_rng(0).uniform(0.2, 1, 5), k


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("k", [0.45, 0.9, 2.0])
def test_values_are_cpythons(function: Any, k: float) -> None:
    want = run(function, lambda: arguments(k))
    got = run(mutad.compile(function, cache=False), lambda: arguments(k))
    assert_same_outcome(got, want, lambda: arguments(k), Tolerance(ulp=64))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_are_derivatives(function: Any) -> None:
    check_gradient(mutad.compile(function, grad=True, cache=False), *arguments(0.45))


def test_no_items_leave_names_unbound() -> None:
    def last(x):
        for v in parts(x, 0.5):
            pass
        return v

    compiled = mutad.compile(last)
    assert compiled(np.ones(2)) == 1.0
    with pytest.raises(UnboundLocalError, match="'v'"):
        compiled(np.ones(0))


def left_in_finally(x):
    for v in x:
        try:
            yield v
        finally:
            return


def test_a_generator_that_would_notice_its_consumer_is_refused() -> None:
    def loops(x):
        s = 0.0
        for v in left_in_finally(x):
            s += math.sqrt(v)
        return s

    with pytest.raises(CompileError, match="leaves the `finally`"):
        mutad.compile(loops)(np.ones(3))


def test_what_has_no_subscripts_is_not_zipped_with_a_generator() -> None:
    def loops(x):
        s = 0.0
        for v, key in zip(parts(x, 2.0), {0: 1.0, 3: 2.0}):
            s += v * key
        return s

    with pytest.raises(CompileError, match="a generator beside this in `zip`"):
        mutad.compile(loops)(np.ones(3))
