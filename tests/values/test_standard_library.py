"""Functions of `math`, `functools`, `operator` and builtins that are compiled along, against CPython's."""

import bisect
import functools
import heapq
import itertools
import math
import operator
import statistics
from dataclasses import dataclass, field

import numpy as np
import pytest
from whole_programs import WholePrograms, agrees

from mutad import CompileError, compile

programs = WholePrograms()
on = programs.on


@on((0.7, 1.3, 0.4), (0.7,), ())
def reduce_of_a_vector(x):
    return functools.reduce(lambda a, b: a * b, x)


@on((0.7, 1.3, 0.4), ())
def reduce_with_a_start(x):
    return functools.reduce(operator.mul, x, 2.0)


@on()
def reduce_of_arrays(x):
    return functools.reduce(operator.add, (x, x * x, 2.0 * x)).sum()


@on()
def products_and_sums(x):
    return math.prod(x) + math.prod([x[0], 2, x[1]], start=3) + sum(x, start=1.5) + math.fsum(x)


@on((0.7, 1.3, 0.4), (0.0, 0.0, 0.0))
def distances(x):
    return math.dist((x[0], x[1] + 1.0), (1.0, x[2])) + math.hypot(x[0], x[1], x[2] + 1.0)


@on((0.7, 1.3, 0.4), ())
def extremes_by_key(x):
    best = min(x, key=lambda v: (v - 0.6) ** 2)
    return best * max(x[0], x[1], key=lambda v: -v)


@on((0.7, 1.3, 0.4), ())
def extremes_with_a_default(x):
    return max([v for v in x if v > 1.0], default=3.0) * min((v * v for v in x), default=2.0)


@on()
def getters(x):
    second = operator.itemgetter(1)
    return second((x[0], x[1])) * operator.itemgetter(0, 2)(x)[1] * operator.attrgetter("T")(x)[0]


@on()
def operators(x):
    a, b = operator.neg(x[0]), operator.truediv(x[1], x[2])
    return a * b if operator.lt(a, b) and not operator.not_(x.size) else operator.getitem(x, 0)


@on((0.73, 1.36, 0.42))
def rounding_has_no_slope(x):
    return round(x[0], 1) * x[1] + round(float(x[2]), 1) * np.round(x, 1).sum() + round(x[1], -1)


@on((1.7, -2.3), (0.4, 0.2))
def parts_of_a_float(x):
    rest, whole = math.modf(x[0])
    return rest * rest + whole * x[1] + math.remainder(x[0], 0.5)


@on((0.7, 1.3, 0.4, 0.9))
def heaps(x):
    heap, s = [], 0.0
    for i, v in enumerate(x):
        heapq.heappush(heap, (v * v, i))
    while heap:
        d, i = heapq.heappop(heap)
        s = 0.5 * s + d * (i + 1)
    return s


@on((0.7, 1.3, 0.45), (0.2, 1.9, 1.1))
def sorted_places(x):
    knots, values, inserted, s = [0.0, 0.5, 1.0, 2.0], [1.0, 3.0, 2.0, 5.0], [0.6], 0.0
    for v in x:
        k = min(max(bisect.bisect_right(knots, v) - 1, 0), 2)
        t = (v - knots[k]) / (knots[k + 1] - knots[k])
        s += values[k] * (1.0 - t) + values[k + 1] * t
        bisect.insort(inserted, v)
    return s + inserted[0] * inserted[1] + bisect.bisect_left(inserted, 0.65)


@dataclass
class Trace:
    total: float
    items: list = field(default_factory=list)


@on()
def lists_made_by_a_call(x):
    trace, found = Trace(1.0), list()
    for v in x:
        trace.items.append(v * v)
        found.append(v)
    for name, v in sorted({"b": x[0], "a": x[1]}.items()):
        trace.total = trace.total * 0.5 + v * len(name)
    return trace.total + sum(trace.items) * found[-1]


@pytest.mark.parametrize(("function", "point"), programs.cases, ids=programs.names)
def test_as_in_cpython_and_differences(function, point):
    agrees(function, point)


def outcome(function, *args):
    try:
        return repr(function(*args))
    except Exception as error:
        return type(error).__name__, str(error)


def rounded_0(x):
    return round(x, 0)


def rounded_1(x):
    return round(x, 1)


def rounded_3(x):
    return round(x, 3)


def rounded_15(x):
    return round(x, 15)


@pytest.mark.parametrize("function", [rounded_0, rounded_1, rounded_3, rounded_15])
def test_rounding_is_that_of_the_exact_decimal(function):
    rng = np.random.default_rng(0)
    values = [0.5, 1.5, 2.5, -0.5, 2.675, 1.005, 0.15, 0.25, 0.35, 1e15, 1e22, 4503599627370497.5]
    values += [-0.0, math.inf, -math.inf, math.nan, 5e-324, 1.7e308, 0.0005, 0.0015, 1e-20]
    values += (rng.integers(-10000, 10000, 400) / 16.0).tolist()
    values += (rng.integers(-100000, 100000, 400) / 2000.0).tolist()
    values += (rng.normal(size=200) * 10.0 ** rng.integers(-8, 12, 200)).tolist()
    compiled = compile(function)
    for v in values:
        assert outcome(compiled, float(v)) == outcome(function, float(v)), v


def summed(x):
    return math.fsum(x)


def test_fsum_rounds_once():
    compiled = compile(summed)
    rng = np.random.default_rng(1)
    cases = [[], [0.1] * 10, [1e100, 1.0, -1e100], [1e308, 1e308, -1e308], [1.0, 1e16, -1e16]]
    cases += [[math.inf, 1.0], [math.inf, -math.inf], [math.nan, 1.0], [1.0, 1e-16, 1e-16]]
    cases += [(rng.normal(size=40) * 10.0 ** rng.integers(-20, 20, 40)).tolist() for _ in range(40)]
    for case in cases:
        x = np.array(case, float)
        assert outcome(compiled, x) == outcome(summed, x), case


def of_two_ints(n, k):
    return math.gcd(n, k), math.lcm(n, k), math.comb(n, k), math.isclose(n, k, abs_tol=1.0)


def permuted(n, k):
    return math.perm(n, k)


def of_one_int(n):
    return math.factorial(n), math.isqrt(n), math.perm(n)


def modular(n, k):
    return pow(n, k, 7), pow(3, k, mod=-5)


def ieee(n, k):
    return math.remainder(n * 0.5, k * 0.25), math.isclose(n, k + 1e-10)


INTS_ALONE = [
    math.gcd,
    math.lcm,
    math.perm,
    math.comb,
    lambda n, _: math.isqrt(n),
    lambda n, _: operator.index(n),
]


@pytest.mark.parametrize("function", INTS_ALONE)
def test_floats_are_no_ints(function):
    def called(n, k):
        return function(n, k)

    with pytest.raises(TypeError):
        called(4.0, 2)
    with pytest.raises(CompileError, match="an integer is needed here"):
        compile(called)(4.0, 2)


@pytest.mark.parametrize("function", [of_two_ints, permuted, modular, ieee])
def test_functions_of_two_ints(function):
    compiled = compile(function)
    for n, k in itertools.product(range(-4, 12), range(-3, 8)):
        assert outcome(compiled, n, k) == outcome(function, n, k), (n, k)


def test_functions_of_one_int():
    compiled = compile(of_one_int)
    for n in (*range(-2, 20),):
        assert outcome(compiled, n) == outcome(of_one_int, n)
    root = compile(rooted)
    for n in (10**12, 10**12 - 1, 2**62, 2**63 - 1, 3037000499**2, 3037000499**2 - 1):
        assert root(n) == math.isqrt(n)


def rooted(n):
    return math.isqrt(n)


def to_digits_of_the_run(x):
    return round(float(x[0]), int(x[1]))


def test_refused():
    with pytest.raises(CompileError, match="constant number of digits"):
        compile(to_digits_of_the_run)(np.ones(2))


def test_a_heap_is_laid_out_as_cpythons():
    def changed(x):
        heap = [v for v in x]
        heapq.heapify(heap)
        heapq.heappush(heap, 0.35)
        taken = heapq.heapreplace(heap, 0.5) + heapq.heappushpop(heap, 0.05) + heapq.heappop(heap)
        return heap, taken, heapq.nlargest(2, x), heapq.nsmallest(3, heap)

    x = np.random.default_rng(0).integers(0, 9, 12) / 8.0
    assert compile(changed, cache=False)(x) == changed(x)


def test_statistics_of_floats():
    def described(x):
        v = list(x)
        spread = (
            statistics.stdev(v),
            statistics.variance(v),
            statistics.pstdev(v),
            statistics.pvariance(v),
        )
        return (statistics.fmean(x), statistics.mean(v), statistics.median(v), *spread)

    x = np.array([0.7, 1.3, 0.4, 0.9])
    assert compile(described, cache=False)(x) == pytest.approx(described(x), rel=1e-14)
    with pytest.raises(statistics.StatisticsError, match="at least two data points"):
        compile(described, cache=False)(x[:1])


def test_strings_and_unions_of_classes():
    def kind(v, name):
        if isinstance(v, np.ndarray | list):
            return len(name) + int(name[-1])
        return 1.0 if isinstance(v, int | float) else 2.0

    def kinds(x):
        return kind(x, "rk4") + kind(2, "a") + kind((x, x), "b")

    assert compile(kinds, cache=False)(np.ones(2)) == 10.0


def test_what_is_not_compiled_says_what_to_write():
    def runs(x):
        return sum(1.0 for _ in itertools.groupby(x))

    with pytest.raises(
        CompileError, match="way out: loop, and compare each key with the one before"
    ):
        compile(runs, cache=False)(np.ones(2))
