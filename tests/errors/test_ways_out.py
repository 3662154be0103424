"""A way out is true: the program that follows it compiles, and does what the refused one does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad

CASES: list[tuple[Callable[..., Any], str, Callable[..., Any], str]] = []
ARGUMENTS = {
    "vector": lambda: np.array([3.0, 1.0, 2.0]),
    "matrix": lambda: np.arange(6.0).reshape(2, 3) + 1.0,
    "square": lambda: np.arange(9.0).reshape(3, 3) + 9.0 * np.eye(3),
}


def way_out(
    says: str, followed: Callable[..., Any], of: str = "vector"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The function is refused, its way out says that, and `followed` is the program that heeds it."""

    def record(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((function, says, followed, of))
        return function

    return record


def whole(x, parts):
    if parts:
        return x * 2.0, x[0]
    return x * 2.0


@way_out("a constant for `parts`", lambda x: whole(x, False))
def a_flag_of_the_run(x):
    return whole(x, x[0] > 9.0)


def floored(x):
    y = np.atleast_1d(x.sum())
    y[y > 1.0] = 1.0
    return y[0]


@way_out("np.atleast_1d", floored)
def a_mask_of_a_number(x):
    y = np.asarray(x.sum())
    y[y > 1.0] = 1.0
    return y[()]


@way_out("x.copy()", lambda x: x.copy().sum())
def a_copy_by_the_module(x):
    return copy.copy(x).sum()


@way_out("np.concatenate", lambda x: np.concatenate(([1.0], x)).sum())
def an_array_spread_out(x):
    return np.array([1.0, *x]).sum()


def pieces(x):
    s, ends = 0.0, [0, int(x[1]), x.size]
    for k in range(2):
        s = s * 2.0 + x[ends[k] : ends[k + 1]].sum()
    return s


@way_out("slice in a loop", pieces)
def split_at_places_of_the_run(x):
    s = 0.0
    for part in np.split(x, np.array([int(x[1])])):
        s = s * 2.0 + part.sum()
    return s


def over_sorted(x):
    s = 0.0
    for v in sorted({2.0, 1.0, x[2]}):
        s += v
    return s


@way_out("loop over sorted(s)", over_sorted)
def over_a_set(x):
    s = 0.0
    for v in {2.0, 1.0, x[2]}:
        s += v
    return s


def bounds_in_a_list(x):
    starts = []
    for i in range(3):
        starts.append(i)
    for i in starts:
        x[i:] += 1.0
    return x.sum()


@way_out("keep bounds or an index in the list", bounds_in_a_list)
def views_in_a_list(x):
    views = []
    for i in range(3):
        views.append(x[i:])
    for v in views:
        v += 1.0
    return x.sum()


def strict_by_hand(x):
    a, b = [v for v in x], [v for v in x]
    if len(a) != len(b):
        raise ValueError("zip() argument 2 is shorter than argument 1")
    return sum(v * w for v, w in zip(a, b))


@way_out("compare the lengths before", strict_by_hand)
def strict(x):
    a, b = [v for v in x], [v for v in x]
    return sum(v * w for v, w in zip(a, b, strict=True))


def where_for_putmask(x):
    x[...] = np.where(x > 1.0, 2.0 * x, x)
    return x.sum()


@way_out("a[...] = np.where(mask, values, a)", where_for_putmask)
def putmask(x):
    np.putmask(x, x > 1.0, 2.0 * x)
    return x.sum()


def assigned_for_copyto(x):
    x[...] = np.ones(3)
    return x.sum()


@way_out("dst[...] = src", assigned_for_copyto)
def copyto(x):
    np.copyto(x, np.ones(3), casting="unsafe")
    return x.sum()


@way_out("compute with real and imaginary parts", lambda x: np.hypot(x[0], x[1]))
def complex_numbers(x):
    return np.abs(x[0] + 1j * x[1])


@way_out("np.concatenate((a, b))", lambda x: np.concatenate((x, np.array([1.0]))))
def r_(x):
    return np.r_[x, 1.0]


@way_out("np.stack((a, b), axis=1)", lambda x: np.stack((x, x), axis=1))
def c_(x):
    return np.c_[x, x]


@way_out("use np.round(x)", lambda x: np.round(x / 3.0, 2))
def method_round(x):
    return (x / 3.0).round(2)


@way_out("use np.nonzero", lambda m: np.nonzero(m > 2.0)[0] * 3 + np.nonzero(m > 2.0)[1], "matrix")
def flatnonzero(m):
    return np.flatnonzero(m > 2.0)


@way_out("reshape the array", lambda m: np.median(m.reshape(-1)), "matrix")
def median_over_axes(m):
    return np.median(m, axis=(0, 1))


@way_out("index the sorted array", lambda x: np.sort(x)[1])
def nearest_quantile(x):
    return np.quantile(x, 0.5, method="nearest")


@way_out("loop over the others", lambda q: np.linalg.pinv(q).sum() > 0.0, "square")
def solve_of_stacks(q):
    return np.linalg.pinv(q[None]).sum() > 0.0


@way_out("np.diagonal(a.copy())", lambda q: np.diagonal(q.copy(), 1) * 1.0, "square")
def diagonal_of_either(q):
    a = q.T if q[0, 1] > 1e9 else q
    return np.diagonal(a, 1) * 1.0


@way_out(
    "use np.concatenate", lambda x: np.concatenate((np.array([5.0]), x[:1], np.array([6.0]), x[1:]))
)
def insert_of_several(x):
    return np.insert(x, [0, 1], [5.0, 6.0])


@way_out("use x.max() or np.max(x)", lambda x: x.max())
def builtin_max(x):
    return max(x)


def truncated(x):
    print("%d" % int(x[0]))  # noqa: UP031


@way_out("convert it with int(...)", truncated)
def format_of_a_float(x):
    print("%d" % x[0])  # noqa: UP031


@way_out("compare its numbers", lambda x: int(x[0]) == 3)
def texts_of_numbers(x):
    return f"{int(x[0])}" == "3"


def by_number(x):
    return 1.0 if int(x[0]) == 3 else 2.0


@way_out("compare its numbers", by_number)
def patterns_of_texts(x):
    match f"{int(x[0])}":
        case "3":
            return 1.0
        case _:
            return 2.0


@way_out("use any or all", lambda x: (x > 2.0).any())
def sum_of_bools(x):
    return np.sum(x > 2.0, dtype=bool)


@way_out(
    "convert to int64, and test for > 0",
    lambda q: (q > 3.0).astype(np.int64) @ (q > 9.0).astype(np.int64) > 0,
    "square",
)
def product_of_bools(q):
    return (q > 3.0) @ (q > 9.0)


@way_out("out=np.zeros_like(x)", lambda x: np.sqrt(x, where=x > 0.0, out=np.zeros_like(x)))
def where_without_out(x):
    return np.sqrt(x, where=x > 0.0)  # all are


@way_out("leave them out", lambda x: np.zeros_like(x))
def order_of_zeros_like(x):
    return np.zeros_like(x, order="K")


@way_out("use `==`", lambda x: bool(x[0] == x[0]))
def identity_of_numbers(x):
    y = x[0]
    return y is y


def cast_in_each_branch(x):
    return x.astype(np.float32).sum() * 1.0 if x[0] > 2.0 else x.astype(np.float64).sum() * 1.0


@way_out("use it in each branch", cast_in_each_branch)
def cast_to_a_choice(x):
    dtype = np.float32 if x[0] > 2.0 else np.float64
    return x.astype(dtype).sum() * 1.0


def swept_by_bounds(x):
    s = 0.0
    for sweep in range(2):
        first, last, step = (0, 3, 1) if sweep == 0 else (2, -1, -1)
        for i in range(first, last, step):
            s = 0.5 * s + x[i]
    return s


@way_out("choose its parts (bounds, steps, arrays)", swept_by_bounds)
def swept_by_ranges(x):
    s = 0.0
    for sweep in range(2):
        rows = range(3) if sweep == 0 else range(2, -1, -1)
        for i in rows:
            s = 0.5 * s + x[i]
    return s


def enumerated_behind_the_branch(x):
    a = x if x[0] > 2.0 else x[::-1]
    s = 0.0
    for i, v in enumerate(a):
        s += i * v
    return s


@way_out("choose its parts (bounds, steps, arrays)", enumerated_behind_the_branch)
def enumerated_in_branches(x):
    items = enumerate(x) if x[0] > 2.0 else enumerate(x[::-1])
    s = 0.0
    for i, v in items:
        s += i * v
    return s


def sliced_by_start(x):
    start = 0 if x[0] > 2.0 else 1
    x[start::2] *= 2.0
    return x.sum()


@way_out("choose its parts (bounds, steps, arrays)", sliced_by_start)
def sliced_by_slices(x):
    part = slice(0, None, 2) if x[0] > 2.0 else slice(1, None, 2)
    x[part] *= 2.0
    return x.sum()


@way_out("give it the same type on every path", lambda x: (x if x[0] > 0.0 else np.ones(3)) * 2.0)
def a_number_or_an_array(x):
    return (x if x[0] > 0.0 else 1.0) * 2.0


@way_out("np.array(l)", lambda x: np.array([1.0, 2.0, x[0]]) / x[1])
def arithmetic_of_lists(x):
    return [1.0, 2.0, x[0]] / x[1]


@way_out("call it outside compiled code", lambda m: m.sum(), "matrix")
def unique_rows(m):
    return np.unique(m, axis=0).sum()


@way_out("print the whole line at once", lambda x: print(f"{x[0]} {x[1]}"))
def print_in_parts(x):
    print(x[0], end=" ")
    print(x[1])


def reshaped_before_the_loop(x):
    m = np.ones((3, 2))
    v, flat = x, m.reshape(-1)
    for _ in range(2):
        v[1] += v[0]
        v = flat
    return m


@way_out("make that before the loop: flat = a.reshape(-1)", reshaped_before_the_loop)
def reshaped_in_the_loop(x):
    m = np.ones((3, 2))
    v = x
    for _ in range(2):
        v[1] += v[0]
        v = m.reshape(-1)
    return m


def outcome(function: Callable[..., Any], of: str, capsys: Any) -> tuple[Any, np.ndarray, str]:
    given = ARGUMENTS[of]()
    result = function(given)
    return result, given, capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:.where. used without .out.")
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0].__name__)
def test_the_way_out_is_one(case: Any, capsys: pytest.CaptureFixture[str]) -> None:
    function, says, followed, of = case
    with pytest.raises(mutad.CompileError) as caught:
        mutad.compile(function, cache=False, opt=0)(ARGUMENTS[of]())
    assert says in str(caught.value.way_out)
    want = outcome(function, of, capsys)
    got = outcome(mutad.compile(followed, cache=False, opt=0), of, capsys)
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_array_equal(got[1], want[1])
    assert got[2] == want[2]


def test_what_is_not_compiled_always_has_a_way_out() -> None:
    for message in ("x is not compiled", "`k` of y are not supported here"):
        assert mutad.CompileError(None, message).way_out
    assert mutad.CompileError(None, "tuple index out of range").way_out is None
