"""What a function returns shares memory as in CPython: the same object, views of one buffer."""

from __future__ import annotations

import _testcapi
import gc
import sys
from typing import Any

import numpy as np
import pytest
from python_oracle import compiled

import mutad


def twice(x):
    y = x * 2.0
    return y, y


def with_tail(x):
    y = x * 2.0
    return y, y[1:]


def tail_first(x):
    y = x * 2.0
    return y[1:], (y[::-1], y), x


def two_views(x):
    y = x * 2.0
    return y[1:], y[:3]


def disjoint_views(x):
    y = x * 2.0
    return y[3:], y[:3]


def whole_view(x):
    y = x * 2.0
    return y, y[:]


def either_way(x):
    y = x * 2.0
    z = y
    if x[0] > 0:
        z = x * 3.0
    return y, z, z


def arguments_or_each_other(x):
    z = x if x[0] > 0 else x * 1.0
    w = x * 2.0 if x[0] > 0 else x
    return z, w, z


def views_without_their_array(x):
    y = x * 2.0
    return y[1:], y[2:], y[::2], y[1:], y[:3]


def views_of_either(x):
    y = x * 2.0
    if x[0] > 0:
        y = x * 3.0
    return y[1:], y[2:], y[:]


def views_chosen(x):
    y = x * 2.0
    v = y[1:] if x[0] > 0 else y[2:]
    return v, y[3:]


def part_of_a_matrix(x):
    y = np.outer(x, x)
    return y[:, 1:]


def parts_of_a_matrix(x):
    y = np.outer(x, x)
    return y[::2], y.T[1:, ::-1]


def view_of_the_argument_or_not(x):
    y = x if x[0] > 0 else x * 2.0
    return y[1:], y[:]


def sharing(found: list[np.ndarray]) -> list[Any]:
    """For each pair, all that tells whose memory it is."""
    return [
        (a is b, a.base is b, a.base is b.base, np.shares_memory(a, b))
        for a in found
        for b in found
    ]


def flat(value: Any) -> list[np.ndarray]:
    return [a for v in value for a in flat(v)] if isinstance(value, tuple) else [value]


FUNCTIONS = [
    twice,
    with_tail,
    tail_first,
    two_views,
    disjoint_views,
    whole_view,
    either_way,
    arguments_or_each_other,
    views_without_their_array,
    views_of_either,
    views_chosen,
    part_of_a_matrix,
    parts_of_a_matrix,
    view_of_the_argument_or_not,
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("first", [1.0, -1.0])
def test_results_share_as_in_python(function: Any, first: float) -> None:
    def run(f: Any) -> tuple[list[np.ndarray], list[Any]]:
        x = np.arange(6.0) + first
        found = [*flat(f(x)), x]
        return found, sharing(found)

    got, shared = run(compiled(function))
    want, expected = run(function)
    assert [a.tolist() for a in got] == [a.tolist() for a in want]
    assert [a.strides for a in got] == [a.strides for a in want]
    assert shared == expected
    keep = got[0]
    del got
    gc.collect()
    keep += 1.0
    assert keep.tolist() == (want[0] + 1.0).tolist()


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("first", [1.0, -1.0])
def test_cotangents_of_shared_results_add_up(function: Any, first: float) -> None:
    mutad.check_gradient(compiled(function, grad=True), np.arange(5.0) + first)


def test_owners_that_are_not_returned_have_no_cotangent() -> None:
    f = compiled(views_without_their_array, grad=True)
    x = np.arange(5.0)
    _, back = f.vjp(x)
    bars = np.arange(1.0, 5.0), 10.0 * np.ones(3), None, None, 100.0 * np.ones(3)
    assert back(bars).tolist() == [200.0, 202.0, 224.0, 26.0, 28.0]
    x_bar = np.zeros(5)
    f.pullback(mutad.Duplicated(x, x_bar), cotangent=bars)
    assert x_bar.tolist() == [200.0, 202.0, 224.0, 26.0, 28.0]
    with pytest.raises(TypeError, match="a tuple of 5"):
        back((*bars, None))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("first", [1.0, -1.0])
def test_memory_is_given_back_once_when_the_last_view_goes(function: Any, first: float) -> None:
    """References are balanced, whichever result lives longest; no block leaks."""
    f = compiled(function)
    x = np.arange(6.0) + first
    count = len(flat(f(x)))
    before = sys.getrefcount(x)
    for k in range(3 * count):
        found = flat(f(x))
        kept = found[k % count]
        del found
        assert np.isfinite(kept).all()
        kept.sum()
    del kept
    assert sys.getrefcount(x) == before
    x = np.arange(700.0) + first
    f(x)
    size = resident()
    for _ in range(200):
        f(x)
    assert resident() - size < 20 << 20


def test_objects_that_cannot_be_made_leave_nothing_behind() -> None:
    """Wherever memory runs out while the results become objects: MemoryError, and no reference lost."""
    f = compiled(views_without_their_array)
    x = np.arange(5.0)
    f(x)
    before, failures = sys.getrefcount(x), 0
    for k in range(25):
        try:
            _testcapi.set_nomemory(k, k + 1)
            found = f(x)
        except MemoryError:
            failures += 1
            found = None
        finally:
            _testcapi.remove_mem_hooks()
        assert found is None or found[4].tolist() == [0.0, 2.0, 4.0]
        del found
    assert failures > 3
    assert sys.getrefcount(x) == before


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def first_of(pair):
    a, b = pair
    a[0] = b[-1]
    return a


def nested(k, pairs):
    (a, _), b = pairs
    return b[1:], (a, b, a[:])


def chosen(pair, first):
    a, b = pair
    y = a if first else b
    return y, y[1:]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (first_of, lambda a, b: ((a, b),)),
        (nested, lambda a, b: (None, ((a, 2), b))),
        (chosen, lambda a, b: ((a, b), True)),
        (chosen, lambda a, b: ((a, b), False)),
    ],
)
def test_arrays_inside_of_tuples_come_back_themselves(function: Any, arguments: Any) -> None:
    def run(f: Any) -> tuple[list[np.ndarray], list[Any]]:
        a, b = np.arange(4.0), np.arange(5.0)
        found = [*flat(f(*arguments(a, b))), a, b]
        counts = [sys.getrefcount(o) for o in found]
        return found, [sharing(found), counts]

    (got, shared), (want, expected) = run(compiled(function)), run(function)
    assert [a.tolist() for a in got] == [a.tolist() for a in want]
    assert shared == expected


def scaled(x, pair):
    a, b = pair
    return x * a, b, a[1:]


def test_arrays_inside_of_tuples_have_no_cotangent() -> None:
    f = compiled(scaled, grad=True)
    x, a, b = np.ones(3), np.arange(3.0), np.ones(4)
    (_, same, _), back = f.vjp(x, (a, b))
    assert same is b
    assert back((np.ones(3), np.ones(4), np.ones(2))).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match=r"shape \(3,\), not \(4,\)"):
        back((None, np.ones(3), None))
    x_bar = np.zeros(3)
    f.pullback(mutad.Duplicated(x, x_bar), mutad.Const((a, b)), cotangent=(np.ones(3), None, None))
    assert x_bar.tolist() == [0.0, 1.0, 2.0]


def itself_or_fresh(x, c):
    if c > 0:
        return x
    return x * 2


@pytest.mark.parametrize("shape", [(1,), (0,), (3, 0), (0, 3), (1, 4), (4, 1), (1, 1)])
@pytest.mark.parametrize("step", [1, -1])
def test_arguments_of_few_elements_come_back_themselves(shape: Any, step: int) -> None:
    """Their strides say nothing: a view that nobody recognizes would own memory of the caller's."""
    compiled = mutad.compile(itself_or_fresh, cache=False)
    x = np.ones(shape)[::step]
    for _ in range(3):
        assert compiled(x, 1) is x
        assert (compiled(x, -1) == 2).all()


def seen_wider(x):
    y = np.broadcast_to(x, (2, x.size))
    return y, y[0], y.T, np.broadcast_to(x, x.shape), y.reshape(-1), np.asarray(y)


def of_fresh_memory(x):
    y = np.outer(x, x)
    d = np.diagonal(y)
    return d, d[1:], d.copy(), np.diag(y, 1), np.einsum("ii->i", y), y, np.broadcast_to(y, y.shape)


def parts(x):
    return x.imag, x.real, x[1:], x


@pytest.mark.parametrize("function", [seen_wider, of_fresh_memory, parts])
@pytest.mark.parametrize("writeable", [True, False])
def test_what_numpy_makes_read_only_comes_back_read_only(function: Any, writeable: bool) -> None:
    def flags(f: Any) -> list[bool]:
        x = np.array([0.5, 1.5, 2.5])
        x.flags.writeable = writeable
        return [a.flags.writeable for a in f(x)]

    assert flags(mutad.compile(function, cache=False, opt=1)) == flags(function)
