"""`itertools`, `filter`, `map`, `next` and generators that have names, against CPython's."""

import itertools
import operator
from dataclasses import dataclass
from itertools import chain, count, cycle, islice, pairwise, repeat

import pytest
from whole_programs import WholePrograms, X, outcome

from mutad import check_gradient, compile

programs = WholePrograms()
on = programs.on


@dataclass
class Body:
    x: float
    v: float


class Node:
    def __init__(self, v, left=None, right=None):
        self.v, self.left, self.right = v, left, right

    def __iter__(self):
        if self.left is not None:
            yield from self.left
        yield self.v
        if self.right is not None:
            yield from self.right


class Countdown:
    def __init__(self, x):
        self.x, self.i = x, x.size

    def __iter__(self):
        return self

    def __next__(self):
        if self.i == 0:
            raise StopIteration
        self.i -= 1
        return self.x[self.i] ** 2


def positive(x, k):
    for v in x:
        if v > k:
            yield v * k


def halved(v):
    while True:
        yield v
        v = v * 0.5


def counted(x):
    for _ in range(10):
        x[0] += 1.0
        yield x[0]


def in_order(x, i):
    if i < x.size:
        yield from in_order(x, 2 * i + 1)
        yield x[i]
        yield from in_order(x, 2 * i + 2)


@on()
def chained_and_accumulated(x):
    squares = [v * v for v in x]
    s = sum(chain(x, squares))
    for v in itertools.accumulate(x, operator.mul, initial=0.5):
        s += v
    return s + max(itertools.accumulate(chain.from_iterable(([1.0], x))))


@on()
def combined(x):
    bodies = [Body(v, 0.1) for v in x]
    for a, b in itertools.combinations(bodies, 2):
        a.v -= (a.x - b.x) * b.v
        b.x += a.v
    s = sum(b.x * b.v for b in bodies)
    for i, j, k in itertools.product(range(2), repeat=3):
        s += x[i] * x[j + 1] * x[k]
    for i, w in itertools.product(range(x.size), (-1.0, 2.0)):
        s += w * x[i] ** 2
    for p in itertools.permutations(range(3)):
        s += x[p[0]] * x[p[1]] ** 2 * p[2]
    return s + sum(a * b for a, b in itertools.combinations_with_replacement(x, 2))


@on()
def sliced_and_paired(x):
    s = sum((b - a) ** 2 for a, b in pairwise(x)) + sum(islice(x, 0, None, 2))
    for v in islice(halved(s), x.size):
        s += 0.3 * v
    for a, b in itertools.zip_longest(x, x[:1], fillvalue=2.0):
        s += a * b
    return s + sum(itertools.starmap(lambda a, b: a * b, pairwise(x)))


@on()
def selected(x):
    s = sum(filter(lambda v: v > 0.5, x)) + sum(itertools.filterfalse(lambda v: v > 0.5, x)) ** 2
    s += sum(itertools.takewhile(lambda v: v < 1.0, x)) * 2.0
    for v in itertools.dropwhile(lambda v: v < 1.0, x):
        s -= v**3
    return s + sum(itertools.compress(x, x > 0.3)) + sum(map(lambda a, b: a * b, x, x[::-1]))


@on()
def without_an_end(x):
    s = 0.0
    for k, v, w, t in zip(count(2, -3), x, repeat(x[0]), count(0.5, 0.25)):
        s += k * v * w + t
    for v, c in zip(x, cycle([1.0, -2.0])):
        s += v * v * c
    for k in count():
        s *= 0.9
        if s < 0.1 or k > 20:
            break
    for _ in repeat(None, 3):
        s += x[1]
    return s


@on()
def generators_have_names(x):
    def total(items, w):
        return sum(w * v for v in items)

    def smooth(items):
        m = 0.0
        for v in items:
            m = 0.5 * m + v
            yield m

    g, s = positive(x, 0.5), 1.0
    if x[0] > 0.5:
        s += sum(g)
    s += total(positive(x, 0.3), 2.0) + total((v for v in x if v > 0.2), 3.0)
    for i, v in enumerate(smooth(positive(x, 0.1))):
        s += i * v
    a, b, c = smooth(x)
    found = [s]
    found.extend(positive(x, 0.2))
    return a * b * c + sum(found) + sum(map(lambda v, w: v * w, positive(x, 0.2), x))


@on()
def items_asked_for_one_by_one(x):
    s = next(positive(x, 0.5)) * next((v for v in x if v > 9.0), 2.0)
    return s * next(i for i, v in enumerate(x) if v > 1.0)


@on((0.7, 1.3, 0.4), (-1.0,))
def none_is_left(x):
    return next(v for v in x if v > 0.0)


@on()
def objects_are_iterated(x):
    tree, s = Node(x[0], Node(x[1]), Node(x[2])), 0.0
    for v in tree:
        s = 0.5 * s + v * v
    for v in Countdown(x):
        s = 0.5 * s + v
    return s + sum(tree) + sum(Countdown(x))


@on((0.7, 1.3, 0.4, 0.9, 0.2))
def generators_call_themselves(x):
    s = 0.0
    for v in in_order(x, 0):
        s = 0.5 * s + v * v
        if s > 2.0:
            break
    return s + x[0]


@on()
def what_stands_first_in_a_zip_ends_it(x):
    s = 0.0
    for a, b in zip(x[1:], counted(x)):
        s += a * b
    for b, _ in zip(counted(x), x[1:]):
        if b > 100.0:
            break
        s += b
    else:
        s *= 2.0
    return s + x[0]


@on()
def items_change_while_they_are_run_over(x):
    s, w, found = 0.0, [1.0, 2.0], [v for v in x]
    late, later = (v * v for v in found if v > 0.5), enumerate(found)
    found.append(5.0)
    s += sum(late) + sum(i * v for i, v in later)
    for a, b in itertools.combinations(x, 2):
        x[1] += 0.1 * a
        s += a * b
    for a, b in pairwise(x):
        x *= 0.9
        s += a * b
    for a, b in itertools.product(found, repeat=2):
        found[0] += 1.0
        s += a * b * b
    for v, c in zip(x, cycle(w)):
        w[1] = 9.0
        s += v * c
    return s


@on()
def names_of_loops_belong_to_the_function(x):
    for v in x:
        g = lambda: v * 2.0  # noqa: E731 - what it sees in the end is the point
    for v in positive(x, 0.1):
        t = v
    for t in x[:0]:
        t = 0.0
    return g() * t + v


@pytest.mark.parametrize(("function", "point"), programs.cases, ids=programs.names)
def test_values_are_cpythons(function, point):
    got, want = (outcome(f, point.copy())[0] for f in (compile(function, cache=False), function))
    assert got == (want if isinstance(want, tuple) else pytest.approx(want, rel=1e-13))


@pytest.mark.parametrize("function", [combined, generators_have_names, generators_call_themselves])
def test_gradients_are_derivatives(function):
    check_gradient(compile(function, grad=True, cache=False, opt=1), X.copy())
