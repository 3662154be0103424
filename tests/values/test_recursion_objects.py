"""Recursive functions with objects, lists, cells and functions: passed, captured, made."""

import enum
import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from object_oracle import agrees


@dataclass
class State:
    pos: Any
    t: float = 0.0
    n: int = 0

    def walk(self, i):
        if i == 0:
            return 0.0
        self.t += 0.5 * self.pos[0]
        self.n += 1
        self.pos[0] += 0.1
        return self.t * self.walk(i - 1) + self.t


@dataclass
class Params:
    k: float
    state: State


class Pair(NamedTuple):
    a: float
    b: float


class Kind(enum.Enum):
    ADD = 1
    MUL = 2


def a_method(s, n):
    return s.walk(n) + s.t * s.n


def a_field_bound_anew(s, n):
    if n == 0:
        return
    s.pos = s.pos * 1.5 + 0.1
    a_field_bound_anew(s, n - 1)
    s.t = s.pos.sum()


def an_object_in_an_object(p, i):
    if i == 0:
        return p.k
    p.state.t += p.k
    p.k *= 1.25
    return an_object_in_an_object(p, i - 1) + p.state.t


def fields_and_exceptions(s, i):
    s.pos = s.pos * 2.0
    s.t += 1.0
    if i == 0:
        raise KeyError("end")
    fields_and_exceptions(s, i - 1)


def fields_in_a_handler(s, i):
    try:
        fields_and_exceptions(s, i)
    except KeyError:
        s.n = s.n + int(s.t)
    return s.pos * 2.0


def returns_its_object(s, i):
    return s if i == 0 else returns_its_object(s, i - 1)


def calls_what_returns_its_object(s, i):
    same = returns_its_object(s, i)
    same.t += 5.0
    return s.t


def makes_objects(s, n):
    if n == 0:
        return State(s.pos * 1.0, 1.0)
    made = makes_objects(s, n - 1)
    made.n += n
    return State(made.pos * 2.0 + s.pos, made.t + 1.0, made.n)


def captured_objects(s, n):
    d = {"a": 0.5, "b": 1}

    def go(i):
        if i > 0:
            s.t += s.pos[0] * d["b"]
            d["b"] += 1
            go(i - 1)
            d["a"] += s.t

    go(n)
    return d["a"]


def named_tuples(s, n):
    def go(p, i):
        if i == 0:
            return p
        q = go(Pair(p.a * 1.5, p.b + p.a), i - 1)
        return Pair(q.b, q.a + 0.25)

    return go(Pair(s.t, s.pos[0]), n)


def names_rebound_by_nested_functions(s, n):
    total, count = 0.5, 0

    def go(i):
        nonlocal total, count
        if i > 0:
            total += s.pos[0] * total
            go(i - 1)
            count += 1

    go(n)
    return total, count


def functions_and_methods_as_arguments(s, n):
    def area(f, a, b, n):
        m = 0.5 * (a + b)
        one, two = (b - a) * f(m), 0.5 * (b - a) * (f(0.5 * (a + m)) + f(0.5 * (m + b)))
        return (
            two if n == 0 or abs(one - two) < 1e-4 else area(f, a, m, n - 1) + area(f, m, b, n - 1)
        )

    def bell(k, v):
        return math.exp(-k * v * v)

    def visited(f, i):
        return 0.0 if i == 0 else f(i) + visited(f, i - 1)

    return (
        area(partial(bell, s.pos[0]), 0.0, 1.0, 8),
        visited(s.walk, n),
        area(lambda v: v * v, 0.0, 2.0, 3),
    )


def constants_that_differ_per_call(s, n):
    def alternate(i, kind, how):
        if i == 0:
            return s.pos[0]
        if kind is Kind.ADD:
            return 1.0 + alternate(i - 1, Kind.MUL, "mul" if how == "add" else None)
        return 1.5 * alternate(i - 1, Kind.ADD, "add" if how is None else how)

    return alternate(n, Kind.ADD, "add")


def defaults_and_keywords(s, n, i=0):
    def go(i=0, *rest, scale=1.0):
        if i >= n:
            return scale
        if rest:
            return s.pos[0] * go(i + 1, scale=scale * 0.5) + rest[0]
        return s.pos[1] + go(i + 1, 2.0, scale=scale)

    return go()


CASES = [
    a_method, a_field_bound_anew, fields_and_exceptions, fields_in_a_handler, returns_its_object,
    calls_what_returns_its_object, makes_objects, captured_objects, named_tuples,
    names_rebound_by_nested_functions, functions_and_methods_as_arguments,
    constants_that_differ_per_call, defaults_and_keywords,
]  # fmt: skip


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [0, 3])
def test_objects(function: Any, n: int) -> None:
    agrees(function, State(np.array([0.5, 1.25]), 0.25), n, calls=2)


@pytest.mark.parametrize("n", [0, 3])
def test_nested_objects(n: int) -> None:
    agrees(an_object_in_an_object, Params(0.5, State(np.ones(2))), n, calls=2)


def test_one_object_under_two_names() -> None:
    def both(s, q, i):
        if i > 0:
            s.t += 1.0
            q.t *= 2.0
            both(s, q, i - 1)

    s = State(np.ones(1), 0.5)
    agrees(lambda s, q: both(s, q, 3), s, s)
    agrees(lambda s, q: both(s, q, 3), s, State(np.ones(1), 0.75))


# Lists


def in_order(x):
    out = []

    def walk(i):
        if i < x.size:
            walk(2 * i + 1)
            out.append(x[i])
            walk(2 * i + 2)

    walk(0)
    return out


def pushed(out, x, i):
    if i < x.size:
        pushed(out, x, 2 * i + 2)
        out.append(x[i] * len(out))
        pushed(out, x, 2 * i + 1)


def passed_along(x):
    out = [0.5]
    pushed(out, x, 0)
    return np.array(out), float(sum(out))


def the_heaviest_path(x):
    path, best = [], np.zeros(1)

    def search(i):
        if i >= x.size:
            best[0] = max(best[0], sum(path))
            return
        path.append(abs(x[i]))
        search(2 * i + 1)
        search(2 * i + 2)
        path.pop()

    search(0)
    return best[0], len(path)


def ints_and_floats(x):
    out = []

    def go(i):
        if i == 0:
            out.append(1)
        else:
            go(i - 1)
            out.append(out[-1] * 0.5)

    go(x.size)
    return np.array(out) * 1.0


def subsets(x):
    chosen, found = [], [0.0]

    def go(i):
        if i == x.size:
            found.append(sum(chosen) * 1.0)
            return
        go(i + 1)
        chosen.append(x[i])
        go(i + 1)
        del chosen[-1]

    go(0)
    return np.array(found)


def never_filled(x):
    out = []

    def go(i):
        if i >= 0:
            if x[i] > 10.0:
                out.append(x[i])
            go(i - 1)

    go(x.size - 1)
    return len(out), sum(out)


def changed_while_a_caller_loops(x):
    out = [1.0]

    def go(i):
        if i < x.size:
            for k in range(len(out)):
                out[k] += x[i]
            out.append(x[i])
            go(i + 1)

    go(0)
    return np.array(out)


LISTS = [
    in_order, passed_along, the_heaviest_path, ints_and_floats, subsets, never_filled,
    changed_while_a_caller_loops,
]  # fmt: skip


@pytest.mark.parametrize("function", LISTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [0, 1, 6])
def test_lists(function: Any, n: int) -> None:
    agrees(function, np.linspace(-0.5, 1.5, n))


def test_lists_of_the_caller() -> None:
    def grows(out, i):
        out.append(float(i))
        if i == 0:
            raise KeyError("end")
        grows(out, i - 1)

    def shrinks(out, i):
        if i == 0:
            return 0.0
        out[0] += i
        return out.pop() + shrinks(out, i - 1)

    agrees(grows, [1.0], 3)
    agrees(shrinks, [1.0, 2.0, 3.0], 2)
    agrees(shrinks, [1.0, 2.0], 4)


FACTOR = 0.5


def scaled(x, i):
    return FACTOR if i == 0 else x[i] * scaled(x, i - 1)


def scales(x, i):
    return scaled(x, 2) if i == 0 else scaled(x, 1) + scales(x, i - 1)


def test_what_two_functions_read_from_outside() -> None:
    def total(x):
        return scales(x, 2) + scaled(x, 1)

    agrees(total, np.arange(4.0))


def push(out, i):
    if i > 0:
        out.append(0.5)
        push(out, i - 1)


def pushes(out, i):
    if i > 0:
        push(out, 2)
        pushes(out, i - 1)
        out.append(2.0)


def test_one_list_in_two_functions() -> None:
    def total(n):
        out = [1.0]
        pushes(out, n)
        push(out, 1)
        return sum(out) + len(out)

    agrees(total, 3)
