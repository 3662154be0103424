"""What classes define, ranges and slices as values, map and zip, what is decided by type."""

import math
import operator

import numpy as np
import pytest
from whole_programs import WholePrograms, agrees

from mutad import CompileError, compile

programs = WholePrograms()
on = programs.on


class Vector:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]

    def __setitem__(self, i, v):
        self.items[i] = v

    def __iter__(self):
        return iter(self.items)

    def __add__(self, other):
        return Vector(self.items + other.items)

    def __iadd__(self, other):
        self.items = self.items + other.items
        return self

    def __contains__(self, v):
        return v == self.items[0]

    def __abs__(self):
        return (self.items * self.items).sum()

    def __float__(self):
        return float(self.items[0])

    def __matmul__(self, other):
        return self.items @ other.items


class Switch:
    def __init__(self, v):
        self.v = v

    def __bool__(self):
        return bool(self.v > 1.0)


class Loose(Switch):
    def __bool__(self):
        return self.v > 1.0


class Dual:
    def __init__(self, value, slope):
        self.value = value
        self.slope = slope

    def __add__(self, other):
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.slope + other.slope)
        return Dual(self.value + other, self.slope)

    __radd__ = __add__

    def __mul__(self, other):
        if isinstance(other, Dual):
            slope = self.value * other.slope + self.slope * other.value
            return Dual(self.value * other.value, slope)
        return Dual(self.value * other, self.slope * other)

    __rmul__ = __mul__

    def __neg__(self):
        return Dual(-self.value, -self.slope)

    def __pow__(self, n):
        result = Dual(1.0, 0.0)
        for _ in range(n):
            result = result * self
        return result


@on()
def items_of_an_object(x):
    v = Vector(x * 1.0)
    v[0] = 2.0 * v[1]
    v[1] += 0.5
    s = 0.0
    for c in v:
        s += c * c
    w = v + v
    return s + len(v) + w[2] + (v @ w)


@on()
def operators_in_place(x):
    v = Vector(x * 1.0)
    w = v
    v += v
    return abs(w) + float(v) if v[0] in v else 0.0


@on((0.7, 1.3), (1.3, 0.7))
def truth_of_objects(x):
    if Switch(x[0]):
        return x[0] * x[1]
    return x[1] if Vector(x) and not Switch(x[0]) else 0.0


@on()
def truth_is_a_bool(x):
    return x[0] if Loose(x[0]) else x[1]


@on()
def dual_numbers(x):
    d = Dual(x[0], 1.0)
    y = 3.0 * d * d + 2.0 * d + d**3 + -d
    return y.slope * x[1] + y.value


@on()
def maps(x):
    s = sum(map(lambda v: v * v, x)) + sum(map(operator.mul, x, x))
    for k, v in enumerate(map(math.sin, x)):
        s += k * v
    return s + len(list(map(abs, x)))


@on()
def maps_over_tuples_call_in_turn(x):
    def said(v):
        print("called", v)
        return 2.0 * v

    s = 0.0
    for k, v in enumerate(map(said, (x[0], x[1], 3.0))):
        print("used", k, v)
        if v > 2.0:
            break
        s += v
    return s


def in_pairs(a, b, c):
    s = 0.0
    for k, (u, v, w) in enumerate(zip(a, b, c, strict=True)):
        a[k] = 2.0 * u
        s += u * v * w
    return s


@pytest.mark.parametrize(
    "lengths", [(3, 3, 3), (2, 3, 3), (3, 2, 3), (3, 3, 2), (0, 1, 0), (1, 0, 2)]
)
def test_zip_that_is_strict_raises_at_the_end(lengths):
    def arguments():
        return [np.arange(1.0, 1.0 + n) for n in lengths]

    def outcome(function):
        given = arguments()
        try:
            return function(*given), given[0].tolist()
        except ValueError as error:
            return str(error), given[0].tolist()

    assert outcome(compile(in_pairs, cache=False)) == outcome(in_pairs)


@on()
def ranges_as_values(x):
    r = range(0, x.size, 2)
    ks = range(x.size)
    k = len(r) + r.stop + r.step
    inside = (2 in ks) + (x.size in ks) + (1 in r) + (2 in r)
    return x[0] * k + x[ks[-1]] * inside


@on()
def slices_as_values(x):
    inner = slice(1, None)
    return (x[inner] * x[slice(0, -1)]).sum() + x[slice(None, None, 2)].sum()


@on()
def decided_by_type(x):
    if type(x) is np.ndarray and type(x[0]) is np.float64 and int is not float:
        x = x * 2.0
    if issubclass(Dual, object) and callable(math.sin) and not callable(x.size):
        x = x * 3.0
    if hasattr(x, "shape") and hasattr(math, "pi") and not hasattr(x, "nothing"):
        return getattr(x, "sum")() * getattr(math, "pi")
    return 0.0


@pytest.mark.parametrize(("function", "point"), programs.cases, ids=programs.names)
def test_as_in_cpython_and_differences(function, point):
    agrees(function, point)


def loops_over_a_dual(x):
    s = 0.0
    for v in Dual(x[0], x[1]):
        s += v
    return s


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (loops_over_a_dual, "a loop over `Dual`, a Dual"),
    ],
)
def test_refused(function, words):
    with pytest.raises(CompileError, match=words) as caught:
        compile(function)(np.array([0.7, 1.3, 0.4]))
    assert caught.value.span is not None
