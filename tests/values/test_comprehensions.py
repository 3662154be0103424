"""Comprehensions and generator expressions, and what consumes them. CPython is the oracle."""

import math

import numpy as np
import pytest
from python_oracle import Case, Programs

import mutad

programs = Programs()
on = programs.on


@on("f64[0]", "f64[5]", "f32[4]", "i64[3]")
def squares(x):
    return [v * v for v in x]


@on("f64[6]")
def some_of_them(x):
    return [v for v in x if v > 0], [v for v in x if v > -1 if v < 1]


@on("f64[3] n", n="0 1 3")
def nested_loops(x, n):
    return [v * i for i in range(n) for v in x], [i * j for i in range(n) for j in range(i)]


@on("f64[4]")
def of_tuples(x):
    return [a * b for a, b in zip(x, x[::-1])], [i * v for i, v in enumerate(x)]


@on("f64[3]")
def with_names_of_their_own(x):
    v = 5.0
    made = [v * v for v in x]
    return v, made


@on("f64[3]")
def over_what_the_name_was(x):
    return [x * 2.0 for x in x]


@on("f64[4]")
def in_a_loop(x):
    s = x[0]
    for k in range(3):
        s += sum([v * k for v in x])
        v = s
    return s, v


@on("f64[2,3]")
def of_rows(x):
    return [row[0] * row[1] for row in x], [v for row in x for v in row]


@on("f64[4]")
def of_a_comprehension(x):
    return [w + 1.0 for w in [v * 2.0 for v in x]], sum([w for w in (v for v in x)])


@on("f64[2,2]")
def of_arrays(x):
    made = [row * 2.0 for row in (x[0], x[1])]
    return made[0][1] + made[1][0], len(made)


def shifted(v, by=1.0):
    return v + by


@on("f64[4]")
def of_calls(x):
    k = 2.0
    return [shifted(v, by=k) for v in x], [math.floor(v * k) for v in x]


@on("f64[5]", "f64[0]", "i64[4]", "f32[3]")
def sums(x):
    return sum(v * v for v in x), sum([v for v in x]), sum((v for v in x), 10.0)


@on("n", n="0 1 6")
def sums_of_ints(n):
    return sum(i * i for i in range(n)), sum(range(n)), sum([1 for _ in range(n)]), sum((1, 2))


@on("f64[6]")
def sums_of_some(x):
    return sum(v for v in x if v > 0), sum(1 for v in x if v > 0)


@on("f64[3]")
def sums_of_floats(x):
    made = [float(v) for v in x]
    return sum(made), sum([0.1] * 10), sum([1e100, 1.0, -1e100]), sum([-0.0]), sum([math.inf, 1.0])


@on("f64[5]", "f64[1]")
def extremes(x):
    made = [v * v for v in x]
    return min(v for v in x), max(v for v in x), min(made), max([v - 1.0 for v in x]), max(made)


@on("f64[0]", "f64[2]")
def extreme_of_nothing(x):
    return max(v for v in x)


@on("f64[0]", "f64[2]")
def least_of_an_empty_list(x):
    return min([v for v in x])


@on("f64[5]", "f64[0]")
def some_and_every(x):
    return any(v > 1 for v in x), all(v > -9 for v in x), any([v > 9 for v in x]), all(x)


@on("f64[4]")
def stopped_by_the_first(x):
    """The second item would raise."""
    return any(1.0 / v > 0 for v in (2.0, 0.0)), x[0]


@on("f64[4]")
def raised_by_an_item(x):
    return [1.0 / (int(v) * 0) for v in x]


@on("f64[4]")
def lists_of_iterators(x):
    return list(range(4)), list(x), list(v * 2 for v in x), list(reversed(x))


@on("f64[4]")
def a_list_of_pairs(x):
    made = list(zip(x, range(4)))
    v, k = made[2]
    return v * k, len(list(enumerate(x)))


@on("f64[4]")
def tuples_of_known_length(x):
    return tuple(v * 2.0 for v in (x[0], x[1])), tuple([k for k in (1, 2)][:1] == 0 for _ in ())


@on("f64[4]")
def run_over_a_generator(x):
    s = 0.0
    for i, v in enumerate(w * 2.0 for w in x):
        s += i * v
    for a, b in zip((v + 1.0 for v in x), range(9)):
        s += a * b
    return s


@on("f64[5]")
def arrays_of_lists(x):
    a = np.array([v * v for v in x])
    a[0] = 3.0
    return a, np.array([i for i in range(3)]), np.array([v > 0 for v in x])


@on("f64[5]")
def sums_of_arrays_of_lists(x):
    return np.array([v * 0.5 for v in x]).max(), np.max([v + 1.0 for v in x])


@on("i64[5] n", n="-3 -1 2 7")
def ranges_of_any_step(x, n):
    return [i for i in range(5, -5, n)], [i for i in range(0, 10, n)]


def some_and_doubled(x, factor=2.0):
    """A docstring, defaults, an early return."""
    for v in x:
        if v > 1.0:
            return
        if v > 0:
            yield v * factor
        yield v
    yield factor


def twice(x):
    yield x[0]
    yield from x
    yield from (x[1], x[2])


@on("f64[5]", "f64[3]")
def generator_functions(x):
    first = any(v > 0.5 for v in list(some_and_doubled(x)))
    return sum(some_and_doubled(x)), list(some_and_doubled(x, factor=3.0)), max(twice(x)), first


@on("f64[5]", "f64[3]")
def generator_functions_that_are_left(x):
    return any(twice(x)), all(some_and_doubled(x)), sum(twice(x), x[0])


@on("f64[3] n", n="0 1 4")
def local_generator_functions(x, n):
    def steps(v):
        for k in range(n):
            yield v * k + x[2]

    return sum(steps(x[0])), list(steps(1.0 * x[1]))


@on("f64[4]")
def lists_as_subscripts(x):
    wanted = [2, 0]
    a = x[wanted]
    wanted.append(1)
    return a, x[wanted], x[[3, 3]]


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_python_agrees(case: Case) -> None:
    case.check()


def allocations(function, *args):
    """How many arrays the compiled function allocates."""
    compiled = mutad.compile(function)
    compiled(*args)
    return compiled.inspect("optimize", *args).count("array.alloc(")


def doubled_and_added(x):
    y = np.array([v * v for v in x])
    return y[0] * y.sum()


def test_a_consumed_comprehension_allocates_once():
    x = np.arange(4.0)
    assert allocations(doubled_and_added, x) == 1
    assert allocations(lambda x: np.array([v * v for v in x]).sum(), x) == 0


def test_a_sum_allocates_nothing():
    x = np.arange(4.0)
    assert allocations(lambda x: sum(v * v for v in x), x) == 0
    assert allocations(lambda x: sum([v * v for v in x]), x) == 0
    assert allocations(lambda x: max([v * v for v in x if v > 1]), x) == 0
