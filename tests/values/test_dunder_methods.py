"""What classes of the program say of operators, comparisons, attributes: reflected, inherited, remembered."""

import functools
import math

import numpy as np
import pytest
from whole_programs import WholePrograms, agrees

programs = WholePrograms()
on = programs.on
POINT = (0.5, 1.5, 2.5, 0.25)


class Base:
    scale = 2.0
    __slots__ = ("_v",)

    def __init__(self, v):
        self._v = v

    @property
    def v(self):
        return self._v

    @v.setter
    def v(self, w):
        self._v = w * self.scale

    @classmethod
    def make(cls, v):
        return cls(v)

    @staticmethod
    def tw(v):
        return 2.0 * v

    def __add__(self, o):
        return type(self)(self._v + (o._v if isinstance(o, Base) else o))

    def __radd__(self, o):
        return self + o

    def __matmul__(self, o):
        return self._v * o._v

    def __neg__(self):
        return type(self)(-self._v)

    def __eq__(self, o):
        return self._v == o._v

    def __lt__(self, o):
        return self._v < o._v

    def __iadd__(self, o):
        self._v += o
        return self

    def __bool__(self):
        return bool(self._v > 0.0)

    def __call__(self, y):
        return self._v * y

    def __len__(self):
        return 3

    def __getitem__(self, k):
        return self._v * k

    def __setitem__(self, k, w):
        self._v = w + k

    def __contains__(self, k):
        return k == 2


class Derived(Base):
    scale = 3.0
    __slots__ = ()

    def __init__(self, v):
        super().__init__(v * 1.5)

    @classmethod
    def make(cls, v):
        return super().make(v + 1.0)


@on(POINT)
def operators_and_inheritance(x):
    b = Base(x[0])
    d = Derived.make(x[1])
    d.v = x[2]
    b += 1.0
    s = (b + d) @ (-b) + sum([b, d], Base(0.0))._v + (1.0 + b)._v
    if b < d and not b == d and 2 in b and b:
        s += b(x[3]) * len(b) + b[2] + Base.tw(x[0])
    b[1] = x[1]
    return s + b._v


class V:
    def __init__(self, v):
        self.v = v

    def __eq__(self, o):
        if not isinstance(o, V):
            return NotImplemented
        return self.v == o.v

    def __add__(self, o):
        if isinstance(o, (int, float)):
            return V(self.v + o)
        if not isinstance(o, V):
            return NotImplemented
        return V(self.v + o.v)

    def __sub__(self, o):
        return V(self.v - o.v)

    def __mul__(self, o):
        return NotImplemented

    def __getitem__(self, k):
        return self.v * k


class W(V):
    def __add__(self, o):
        return W(10.0 * self.v)

    def __radd__(self, o):
        return W(self.v + 100.0 * (o.v if isinstance(o, V) else o))

    def __rmul__(self, o):
        return W(self.v * 3.0)

    def __rsub__(self, o):
        return W(o.v * 7.0)

    def __gt__(self, o):
        return self.v > o.v


@on(POINT)
def equality_that_the_class_defines(x):
    a, b = V(x[0]), V(x[0])
    s = 0.0
    if a != b:
        s += 1.0
    if a == b:
        s += 2.0
    if not (a != V(x[1])):
        s += 4.0
    if a == 3:
        s += 8.0
    if a != 3:
        s += 16.0
    return s + x[0]


@on(POINT)
def reflected_operators_and_not_implemented(x):
    a, w = V(x[0]), W(x[1])
    return (a + w).v + (w + a).v + (a * w).v + (1.0 + w).v + (a + 1.0).v + (a - w).v


@on(POINT)
def comparisons_are_reflected(x):
    a, w = W(x[0]), W(x[1])
    return x[2] if a < w else x[3]


class L:
    def __init__(self, x):
        self.x = x
        self.calls = 0

    @functools.cached_property
    def norm(self):
        self.calls += 1
        return math.sqrt((self.x * self.x).sum())

    @functools.cached_property
    def unit(self):
        return self.x / self.norm


@on(POINT)
def cached_properties(x):
    held = L(x)
    s = 0.0
    if x[0] > 0.3:
        s += held.norm
    for i in range(3):
        s += held.norm * i
    x[0] += 1.0
    return s + held.norm + held.calls + held.unit[0] + held.unit[1]


class Prop:
    scale = 2.0

    def __init__(self, v):
        self._v = v

    @property
    def v(self):
        return self._v * self.scale

    @v.setter
    def v(self, w):
        self._v = w / self.scale


class Prop2(Prop):
    scale = 4.0

    @property
    def v(self):
        return super().v + 1.0

    @classmethod
    def two(cls, v):
        return cls(v), cls(v + cls.scale)


@on(POINT)
def properties_class_methods_and_super(x):
    p = Prop(x[0])
    q, r = Prop2.two(x[1])
    p.v = x[2]
    p.v += 1.0
    return p.v * q.v + r.v


@on(POINT)
def total_ordering(x):
    items = [Ord(v) for v in x]
    return (
        max(items).v * min(items).v
        + sorted(items)[1].v
        + (x[0] if Ord(x[0]) >= Ord(x[1]) else x[2])
    )


@functools.total_ordering
class Ord:
    def __init__(self, v):
        self.v = v

    def __eq__(self, o):
        return self.v == o.v

    def __lt__(self, o):
        return self.v < o.v


class Grid:
    __slots__ = ("a", "n")

    def __init__(self, a):
        self.a = a
        self.n = 0

    def __getitem__(self, ij):
        return self.a[ij]

    def __setitem__(self, ij, v):
        self.a[ij] = v
        self.n += 1

    def __len__(self):
        return self.a.size

    def __contains__(self, v):
        return bool((self.a == v).any())

    def __iter__(self):
        return iter(self.a)

    def __call__(self, *ks, scale=1.0):
        return sum(self.a[k] for k in ks) * scale

    def __bool__(self):
        return self.n > 2

    def __neg__(self):
        return Grid(-self.a)

    def __invert__(self):
        return self.a.sum()

    def __abs__(self):
        return np.abs(self.a).sum()

    def __iadd__(self, o):
        self.a += o
        return self

    def __matmul__(self, o):
        return self.a @ o.a

    def __pow__(self, k):
        return Grid(self.a**k)

    def __float__(self):
        return float(self.a[0])


def f_grid(x):
    pass


@on(POINT)
def subscripts_calls_and_conversions(x):
    g = Grid(x * 1.0)
    g[0] = x[1]
    g[1:] = x[:-1] * 2.0
    g[-1] += 1.0
    g += 0.5
    s = g(0, 1, scale=2.0) + g @ (-g) + ~g + abs(g) + (g**2)[1] + float(g)
    for v in g:
        s += v * v
    if x[2] in g:
        s += 100.0
    if g:
        s += 3.0
    if not Grid(x):
        s += 7.0
    return s * len(g)


@pytest.mark.parametrize(("function", "point"), programs.cases, ids=programs.names)
def test_python_agrees(function, point):
    agrees(function, point)
