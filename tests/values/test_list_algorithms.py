"""Lists sorted, compared, and changed by slices. CPython is the oracle of each."""

import numpy as np
import pytest
from python_oracle import Case, Programs

import mutad

programs = Programs()
on = programs.on


@on("f64[0]", "f64[1]", "f64[7]", "f32[6]", "i64[9]")
def sorted_in_place_and_anew(x):
    made = list(x)
    made.sort()
    down = sorted(made, reverse=True)
    made.reverse()
    return made, down, sorted(x), sorted([3, 1, 2])


@on("f64[0]", "f64[8]", "i64[9]")
def sorted_by_keys(x):
    made = [v for v in x]
    made.sort(key=lambda v: -v * v, reverse=True)
    by_sign = sorted(x, key=lambda v: v > 0.0)
    return made, by_sign, sorted((v * v for v in x), key=abs)


@on("i64[6] n", n="2 3")
def sorting_is_stable(x, n):
    pairs = [(v % n, k) for k, v in enumerate(x)]
    pairs.sort(key=lambda p: p[0])
    down = sorted(pairs, key=lambda p: p[0], reverse=True)
    pairs.sort()
    return [p[1] for p in pairs], [p[1] for p in down], sorted(pairs, reverse=True)[0][1]


@on("f64[6]")
def all_names_of_a_list_see_it_sorted(x):
    made = list(x)
    other = made
    made.sort()
    made *= 2
    made[1:3] = []
    return other


@on("f64[5] n", n="-7 -2 0 1 3 5 9")
def slices_assigned(x, n):
    a = list(x)
    a[n:4] = [1.0, 2.0, 3.0]
    b = list(x)
    b[1:n] = x[:2]
    c = list(x)
    c[n:] = c
    d = list(x)
    d[:n] = (v * 2.0 for v in d)
    return a, b, c, d


@on("f64[6] n", n="-2 -1 1 2 3")
def slices_with_steps_assigned(x, n):
    a = list(x)
    a[::n] = [float(k) for k in range(len(a[::n]))]
    a[4:0:-2] = (7.0, 8.0)
    return a


@on("f64[6] n", n="0 2 3 4")
def slices_with_steps_of_another_size(x, n):
    a = list(x)
    a[::2] = [float(k) for k in range(n)]
    return a


@on("f64[7] n", n="-3 -2 -1 1 2 3 9")
def slices_deleted(x, n):
    a = list(x)
    del a[n:5]
    b = list(x)
    del b[::n]
    c = list(x)
    del c[5:1:-2]
    return a, b, c


@on("f64[4] n", n="0 3")
def compared(x, n):
    a = list(x)
    b = a[:n] + [x[0]]
    return (
        a == b, a != b, a == list(x), a < b, a <= b, a > b, a >= a, a == [], [] == [], [1, 2] < [1, 2, 0],
        [(1, 2)] < [(1, 3)], (1, 2.5) < (1, 2.0), (1, 2) <= (1, 2), (1,) > (1, 2), a == (1.0, 2.0),
    )  # fmt: skip


@on("f64[5]", "f64[1]")
def extremes_by_key(x):
    made = list(x)
    return (
        min(made, key=lambda v: v * v), max(x, key=abs), min([], default=2.5), max(made, default=0.0),
        max([(v, k) for k, v in enumerate(x)], key=lambda p: p[0])[1],
    )  # fmt: skip


@on("f64[5]", "f32[5]", "i64[4]", "i32[4]", "u8[4]", "b1[4]")
def extremes_keep_the_type(x):
    made = []
    for v in x:
        made.append(v)
    return min(made), max(made), min(*made), max(v for v in x), max(v for v in x if v > 0)


@on("f64[5]")
def a_queue_in_order(x):
    queue = [(v * v, k) for k, v in enumerate(x)]
    s = 0.0
    while queue:
        queue.sort(key=lambda p: p[0])
        v, k = queue.pop(0)
        s = s * 0.5 + v * k
        if k % 2 == 0:
            queue.append((v + 1.0, k + 1))
    return s


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_python_agrees(case: Case) -> None:
    case.check()


def test_the_least_of_nothing_raises():
    @mutad.compile
    def least(x):
        return min([v for v in x], key=lambda v: -v)

    with pytest.raises(ValueError, match="empty"):
        least(np.zeros(0))
