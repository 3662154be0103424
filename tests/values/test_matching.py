"""`match`, `isinstance`, `with np.errstate`, `del`."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from python_oracle import Case, Programs


@dataclass
class Place:
    x: float
    y: float


@dataclass
class Charged(Place):
    charge: float = 1.0


class Pair(NamedTuple):
    left: float
    right: float


programs = Programs()
on = programs.on


@on("n", n="0 1 2 3 9 -4")
def values_alternatives_and_guards(n):
    match n:
        case 0:
            return 10
        case 1 | 2:
            return 20
        case k if k > 5:
            return k * 2
        case _:
            return -1


@on(lambda: ((0, 3),))
@on(lambda: ((3, 0),))
@on(lambda: ((3, 2),))
@on(lambda: ((2, 3),))
@on(lambda: ((2, 3, 4),))
@on(lambda: (7,))
@on(lambda: (np.ones(2),))
def tuples_are_taken_apart(p):
    match p:
        case (0, y):
            return y
        case (x, 0):
            return 2 * x
        case (x, y) if x > y:
            return x - y
        case (x, y):
            return x * y
        case (x, *_):
            return -x
    return 100


@on(lambda: (Charged(1.5, 2.0, 3.0), 0.5))
@on(lambda: (Charged(150.0, 2.0, 3.0), 0.5))
@on(lambda: (Place(1.5, 2.0), 0.5))
@on(lambda: (Pair(1.5, 2.0), 0.5))
@on(lambda: ({"kind": 1, "value": 2.5}, 0.5))
@on(lambda: ({"kind": 2, "value": 2.5}, 0.5))
@on(lambda: ({"value": 2.5}, 0.5))
@on(lambda: (np.ones((2, 3)), 0.5))
@on(lambda: (np.ones(3), 0.5))
@on(lambda: (None, 0.5))
def objects_and_mappings_are_taken_apart(o, a):
    match o:
        case Charged(x=x, charge=q) if x > 100:
            return x
        case Charged(x=x, charge=q):
            return x * q * a
        case Place(x, y):
            return x - y * a
        case Pair(left, right=right):
            return left * right * a
        case {"kind": 1, "value": v}:
            return v * a
        case {"kind": kind, "value": v}:
            return kind + v * a
        case np.ndarray(ndim=2):
            return o.sum() * a
    return a


@on(lambda: ((0, 2.5), 0.5))
@on(lambda: ((3.5, 0), 0.5))
@on(lambda: ((3.5, 1), 0.5))
@on(lambda: ((1.0, 2.0, 3.0, 4.0), 0.5))
@on(lambda: ((1.0, 2.0, 4.0), 0.5))
@on(lambda: ((1.0, (2.0, 3.0)), 0.5))
@on(lambda: ((1.0, (2.0, 3.0, 4.0)), 0.5))
@on(lambda: (2.5, 0.5))
@on(lambda: (3, 0.5))
def alternatives_bind_names_and_stars_lists(o, a):
    match o:
        case (c, (b, _) | (b, _, _)):
            return c * b * a
        case [0, v] | [v, 0]:
            return v * a
        case [first, *rest, last] if len(rest) > 1:
            return first * sum(rest) * last * a
        case [_, _, *rest]:
            return a * len(rest)
        case float(v) | (int() as v) if v > 2:
            return v * a
    return a


@on(lambda: (1.5,))
@on(lambda: (True,))
@on(lambda: (3,))
@on(lambda: (None,))
@on(lambda: ((1, (2, 3)),))
@on(lambda: (np.float64(2.5),))
@on(lambda: (np.bool_(True),))
@on(lambda: (np.ones(3),))
def classes_and_singletons(x):
    match x:
        case True:
            return 0
        case float(v):
            return v * 2
        case int():
            return x + 1
        case (a, (_, b) as inner):
            return a + b + len(inner)
        case None:
            return 5
        case np.ndarray():
            return x.sum()
        case _:
            return -1


@on("f64[6]")
def exits_inside_of_cases(x):
    s = x[0]
    for i in range(6):
        match i % 3, bool(x[i] > 0):
            case 0, True:
                s += x[i] ** 2
            case 1, _:
                continue
            case _, False:
                s -= x[i]
            case _:
                break
    return s


@on("f64[3]")
def a_subject_is_evaluated_once(x):
    match changed(x):
        case 1:
            x[1] = 5.0
        case 2:
            x[1] = 6.0


def changed(x):
    x[0] += 1.0
    return 2


@on("f64[4]")
@on("f64[0]")
def errstate_changes_nothing_and_is_left(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = 1.0 / (x - x)
        for v in y:
            if v > 0:
                return v
    with np.errstate(all="ignore"):
        pass
    return y.sum()


@on("f64[4]")
def names_are_deleted(x):
    y = x * 2.0
    z = y.sum()
    del y
    for i in range(3):
        t = x[i]
        z += t
        del t
    return z


@on(lambda: (1, 2.0, np.float32(1), np.ones(2)))
def is_instance(i, f, g, a):
    return (
        isinstance(i, int),
        isinstance(i, float),
        isinstance(f, (int, float)),
        isinstance(np.float64(f), float),
        isinstance(g, np.floating),
        isinstance(a, np.ndarray),
        isinstance((i, f), tuple),
        isinstance(i > 0, int),
    )


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()
