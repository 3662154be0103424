"""A name may be a number on one path and an array on the other where a constant decides for one of them."""

import math
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pytest

import mutad

X = np.array([0.7, 1.3, 0.4])


class Kind(Enum):
    SUM = 1
    ALL = 2


class Options(NamedTuple):
    flag: bool
    n: int


FLAG, MODE, N, NOTHING, KIND, OPTIONS = True, "sum", 3, None, Kind.SUM, Options(True, 2)


def is_vector(x: Any) -> bool:
    for n in (1, 2):
        if x.ndim == n:
            return True
    return False


def defaulted(x: Any, axis: Any = None, keep: bool = False) -> bool:
    return axis is None and not keep


def named_list(x: Any) -> bool:
    several = [x[0], 2.0]
    none: list[float] = []
    return len(several) == 2 and bool(several) and not none


CONDITIONS: list[tuple[str, Callable[[Any], Any]]] = [
    ("flag", lambda x: FLAG),
    ("text", lambda x: MODE == "sum" and MODE in ("sum", "all") and MODE.startswith("s")),
    ("int", lambda x: 1 < N < 5 and N % 2 == 1 and -N // 2 < 0),
    ("none", lambda x: NOTHING is None or x.sum() > 100.0),
    ("enum", lambda x: KIND is Kind.SUM and KIND != Kind.ALL),
    ("fields", lambda x: OPTIONS.flag and OPTIONS.n == 2),
    ("rank", lambda x: x.ndim == 1 and len(x.shape) == 1 and np.ndim(x) < 2),
    ("dtype", lambda x: x.dtype == np.float64 and x.dtype.kind == "f"),
    ("class", lambda x: isinstance(x, np.ndarray) and not np.isscalar(x)),
    ("numbers", lambda x: np.isinf(np.inf) and not np.isnan(2.5) and math.isfinite(1.0)),
    ("NumPy numbers", lambda x: np.float64(3.0) > 2 and np.int64(4) == 4 and np.uint8(250) > -1),
    ("machine", lambda x: np.finfo(x.dtype).eps < 1e-3),
    ("logic", lambda x: np.logical_and(FLAG, x.ndim == 1)),
    ("call", is_vector),
    ("defaults", lambda x: defaulted(x) and not defaulted(x, 0) and not defaulted(x, keep=True)),
    ("part of a condition", lambda x: not (x[0] > 9.0 and x.ndim == 2)),
    ("any", lambda x: any(isinstance(v, np.ndarray) for v in (1.0, x))),
    ("lengths", lambda x: len([1, 2]) == 2 and len("ab") == 2 and len((x, x)) == 2 and [0]),
    ("named list", named_list),
    ("displays", lambda x: any([False, FLAG]) and all([FLAG, N]) and sum([1, N]) == 4),
    ("extremes of displays", lambda x: min([N, 5]) == 3 and max([1.5, 2]) == 2),
    ("functions of NumPy", lambda x: np.abs(-2.0) > 1 and np.sqrt(4.0) == 2 and np.sign(-N) < 0),
    ("reductions", lambda x: np.all([FLAG, True]) and np.any((0, 1)) and np.max([1, N]) == N),
    (
        "arithmetic",
        lambda x: np.int64(7) // 2 == N and np.maximum(1, 2) == 2 and x.shape[0] * 0 == 0,
    ),
    ("half known", lambda x: not ((x.size > 1) & False) and (x[0] > 1) | FLAG),
    ("half known by or", lambda x: (x[0] > 9.0 or FLAG) and not np.logical_and(x[0] > 1, False)),
    (
        "identity",
        lambda x: FLAG is True and NOTHING is not FLAG and x is not True and (N > 1) is FLAG,
    ),
    ("__debug__", lambda x: __debug__),
    ("a function", lambda x: np.sum and defaulted and x.dtype and not range(0)),
]


@pytest.mark.parametrize("test", [c for _, c in CONDITIONS], ids=[n for n, _ in CONDITIONS])
def test_one_path_is_lowered(test: Callable[[Any], Any]) -> None:
    def number(x):
        if test(x):
            y = x.sum()
        else:
            y = x * x
        return y

    def array(x):
        y = x[0] if not test(x) else x * x
        return y.sum()

    for function in (number, array):
        got, want = mutad.compile(function, cache=False)(X), function(X)
        assert type(got) is type(want)
        np.testing.assert_allclose(got, want, rtol=1e-14)
        mutad.check_gradient(mutad.compile(grad=True, cache=False)(function), X.copy(), wrt=0)


@pytest.mark.parametrize("flag", [True, 1])
def test_an_argument_is_no_constant(flag: Any) -> None:
    def program(x, flag):
        return (1.0 if flag else x) * 2.0

    with pytest.raises(mutad.CompileError, match="on one path"):
        mutad.compile(program, cache=False)(X, flag)


def while_items(x, k):
    items = [1, 2]
    same, n = items, 0
    while items:
        same.pop()
        n += 1
    return n, not items


def popped_inside(x, k):
    items = [1]

    def pop():
        items.pop()

    pop()
    return 1 if items else 0


def changed_on_a_path(x, k):
    items = [1, 2]
    if k > 1:
        items.pop()
    return len(items) == 2


def changed_and_raised(x, k):
    items = [1]
    try:
        items.pop()
        x[2 + k]
    except IndexError:
        return 1 if items else 2
    return 3 if items else 4


def changed_later_in_the_loop(x, k):
    items, s = [1.0], 0.0
    for i in range(3):
        s += 1.0 if items else 10.0
        if i == 0:
            items.pop()
    return s


def one_or_the_other(x, k):
    if k > 1:
        items = [1]
    else:
        items = [1, 2]
    return len(items) == 1


def changed_by_a_recursion(x, k):
    items = [1]

    def grow(into, n):
        if n > 0:
            into.append(n)
            grow(into, n - 1)

    grow(items, k)
    return len(items) == 1


def changed_at_last(x, k):
    items = [1]
    try:
        if k > 1:
            raise ValueError
    except ValueError:
        items.append(2)
    finally:
        items.append(4)
    return len(items) == 2


def decided_half_way(x, k):
    n = 0
    done = k > 100
    while not done:
        n += 1
        done = n > 3 or (k > 5 and False)
    return n


@pytest.mark.parametrize(
    "program",
    [
        while_items,
        popped_inside,
        changed_on_a_path,
        changed_and_raised,
        changed_later_in_the_loop,
        one_or_the_other,
        changed_by_a_recursion,
        changed_at_last,
        decided_half_way,
    ],
)
def test_what_changes_is_not_known(program: Callable[..., Any]) -> None:
    compiled = mutad.compile(program, cache=False, opt=1)
    for k in (0, 2):
        assert compiled(X, k) == program(X, k)


def identities(x, flag, k):
    whether = flag is True, flag is not False, (x[0] > 1) is True, (k > 1) is (k > 0)
    return *whether, k is True, x is False, np.isnan(x[0]) is np.False_, k is not None


@pytest.mark.parametrize("flag", [True, False, np.True_, 1])
def test_bools_are_the_same_objects(flag: Any) -> None:
    got = mutad.compile(identities, cache=False, opt=1)(X, flag, 2)
    assert got == identities(X, flag, 2)
