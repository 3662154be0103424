"""What code of packages is made of besides arithmetic: texts, local imports, guards, old-style `super`."""

import operator
import warnings

import numpy as np
import pytest
from whole_programs import WholePrograms, agrees

programs = WholePrograms()
on = programs.on


class Base:
    def __init__(self, v):
        self.v = v

    def size(self):
        return self.v * 2.0


class Derived(Base):
    def __init__(self, v, w):
        super(Derived, self).__init__(v)  # noqa: UP008
        self.w = w

    def size(self):
        return super(Derived, self).size() + self.w  # noqa: UP008


@on()
def weighted_averages(x):
    return np.average(x, weights=x * x) * np.average(x)


@on((0.7, 1.3, 0.4), (-0.5, 1.0, 2.0), (-5.0, 0.1, 0.2), (-9.0, 0.25, 0.3))
def raises_with_texts(x):
    text = "%s and %.3f of %d, {%g} 100%%" % (x[1], x[0], x.size, 2.5)  # noqa: UP031
    if x[0] < -8.0:
        raise ValueError(text + " " + f"{x[1]:8.3f}|{x.size:>4d}|{'a':>3}")
    if x[0] < -4.0:
        raise ArithmeticError("x {0:.2e} {1} {name}".format(x[0], "q", name=x[1]))
    if x[0] < 0.0:
        raise ValueError(text)
    return x[0] * x[1]


@on()
def imports_where_it_computes(x):
    import math as m
    from colorsys import ONE_THIRD
    from math import sin

    def inner(v):
        import os.path

        return v if os.path.sep else 0.0

    return m.cos(x[0]) * sin(x[1]) * ONE_THIRD + inner(x[2])


@on((0.7, 1.3, 0.4), (-0.7, 1.3, 0.4))
def warns(x):
    if x[0] < 0.0:
        warnings.warn("negative: %g" % x[0], stacklevel=2)  # noqa: UP031
    return x[0] * x[1]


@on()
def tries_an_attribute_of_a_series(x):
    y = np.sin(x)
    try:
        y.name = "sine"
    except AttributeError:
        y = y * 2.0
    return y.sum()


@on()
def unpacks_a_map(x):
    a, b = map(np.asarray, [x[0], x[1]])
    c, d = map(lambda u, v: u * v, (a, 2.0), (b, x[2]))
    return float(c + d)


@on()
def reads_letters(x):
    s = 0.0
    for k, letter in enumerate("xyz"):
        if letter in ["x", "z"] and "a" < letter <= "z" and "rzxy"[1:] == "zxy":
            s += x[k] * x[k]
    return s if "rzxy"[0] == "r" else x[0]


@on()
def calls_the_method_above(x):
    return Derived(x[0], x[1]).size() * x[2]


@on()
def asks_what_it_was_given(x):
    n = operator.index(x.size)
    if not callable(np.sin) or callable(x) or np.isscalar(x) or not np.isscalar(x[0]):
        return x[0]
    if np.iscomplexobj(x) or x.dtype.kind != "f" or np.finfo(x.dtype).eps > 1e-3:
        return x[1]
    return (x.real * n + x.imag).sum() * np.broadcast(x, x[0]).size


@pytest.mark.parametrize("case", programs.cases, ids=programs.names)
def test_agrees_with_cpython_and_differences(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agrees(*case)
