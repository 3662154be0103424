"""Lists of arrays that grow: rows of one buffer, which nobody can tell from arrays of their own."""

import numpy as np
import pytest
from python_oracle import Case, Programs

import mutad

programs = Programs()
on = programs.on


@on("f64[3] n", "f32[2] n", "i64[4] n", "f64[3,2] n", n="0 1 4")
def appended_copies(x, n):
    u = x.copy()
    states = [u.copy()]
    for k in range(n):
        u += u * k
        states.append(u.copy())
    return np.stack(states), len(states)


@on("f64[3] n", "f64[2,2] n", n="1 4")
def appended_to_an_empty_list(x, n):
    rows = []
    for k in range(n):
        rows.append(x * k)
    return np.array(rows), rows[-1].sum(), sum([r.sum() for r in rows])


@on("f64[3] n", n="0 1 5")
def read_in_a_loop_before_it_appends(x, n):
    states = [x * 0.5]
    for _ in range(n):
        u = states[-1]
        states.append(np.sin(u) + x)
    return states[-1], states[0].sum()


@on("f64[3] n", n="-5 -4 -1 0 3 4")
def subscripts_of_any_sign(x, n):
    rows = [x + k for k in range(4)]
    return rows[n].sum()


@on("f64[3] n", n="1 3")
def an_array_that_is_changed_after_it_was_appended(x, n):
    rows = []
    for k in range(n):
        u = x * k
        rows.append(u)
    rows.append(np.zeros(3))
    rows[-1][0] = 5.0
    rows[0] += x
    rows[0][1] *= 3.0
    last = rows[-1]
    last += 1.0
    return np.array(rows)


@on("f64[3] n", n="0 1 4")
def the_name_goes_on(x, n):
    u = x
    path = []
    for _ in range(n):
        path.append(u)
        u = u * 0.5 + x
    path.append(u)
    s = 0.0
    for k in range(len(path) - 1, -1, -1):
        s = s * 0.5 + path[k].sum()
    return s, u


@on("f64[3] n", n="0 2 5")
def an_array_with_a_name_that_goes_on_changing(x, n):
    rows = [x * 0.5]
    if n > 0:
        u = x + 1.0
        rows.append(u)
        u[0] = 5.0
        rows[-1][1] += u[0]
    w = x * 3.0
    rows.append(w)
    w += 1.0
    return np.array(rows), w.sum()


@on("f64[3] n", n="0 2 5")
def popped_backwards(x, n):
    u = x.copy()
    states = []
    for _ in range(n):
        states.append(u)
        u = u * 0.5 + x
    total = u * 0.0
    while states:
        total = total * 0.5 + states.pop()
    states.append(total)
    return states.pop(), len(states)


@on("f64[3] n", n="0 1 5")
def slices_run_over(x, n):
    rows = [x * k for k in range(n)]
    s = 0.0
    for a, b, _ in zip(rows, rows[1:], x):
        s += (a * b).sum()
    for a in rows[::-2]:
        s = s * 0.5 + a[0]
    return s, sum([a[0] for a in rows[-3:-1]])


@on("f64[3]")
def popped_from_nothing(x):
    rows = [x * 2.0]
    rows.pop()
    return rows.pop()


def trace(u, n):
    out = [u]
    for _ in range(n):
        u = u * 2.0
        out.append(u)
    return out


@on("f64[3] n", n="0 3")
def a_list_from_a_function(x, n):
    path = trace(x, n)
    s = 0.0
    for k, u in enumerate(path):
        s += k * u.sum()
    for u, v in zip(path, reversed(path)):
        s += (u * v).sum()
    return s, len(path)


@on("f64[3] n", n="0 3")
def in_tuples(x, n):
    history = []
    t = 0.0
    for k in range(n):
        t = t + 0.5
        history.append((t, x * t, k))
    s = 0.0
    for t, u, k in history:
        s += t * u.sum() * k
    return s


@on("f64[4] n", n="1 4")
def joined_by_numpy(x, n):
    rows = []
    for k in range(n):
        rows.append(x.reshape(2, 2) * k)
    flat = [r[0] for r in rows]
    return (
        np.concatenate(rows), np.vstack(rows), np.vstack(flat), np.concatenate(flat),
        np.sum(rows, axis=0), np.max(flat),
    )  # fmt: skip


@on("f64[3,4] 4", "f32[2,2] 1")
def stacked_along_any_axis(x, n):
    blocks = [x[:, k : k + 1] * 2.0 for k in range(n)]
    return (
        np.stack([r * r for r in x], axis=1), np.stack([r for r in x if r[0] > -9.0], axis=-1),
        np.stack(blocks, axis=2), np.stack(blocks, 1), np.stack([r[0] for r in x], axis=-1),
        np.column_stack([r * 2.0 for r in x]), np.dstack(blocks), np.concatenate(blocks, axis=-1),
    )  # fmt: skip


@on("f64[3,4] 4", "i64[2,3] 3")
def side_by_side(x, n):
    wide = [x[:, : k + 1] * 2 for k in range(n)]
    flat = [x[0, : k + 1] for k in range(n)]
    return np.concatenate(wide, axis=1), np.hstack(wide), np.concatenate(flat), np.hstack(flat)


@on("f64[3,4]")
def returned_as_they_are(x):
    return np.stack([r for r in x], axis=0), np.array([r for r in x[1:]])


@on("f64[3] n", n="0 2")
def appended_under_a_condition_and_in_try(x, n):
    rows = [x]
    try:
        for k in range(4):
            if k > 1:
                rows.append(np.exp(x * k))
            if k == n:
                raise ValueError
    except ValueError:
        rows.append(x * 3.0)
    return np.array(rows)


@on("f64[3] n", n="0 2")
def made_anew_in_each_iteration(x, n):
    s = 0.0
    for k in range(n):
        rows = []
        while len(rows) <= k:
            rows.append(x * len(rows))
        for r in rows:
            s += r.sum()
    return s


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_value(case: Case) -> None:
    case.check()


def test_an_array_of_no_arrays_has_no_rows():
    @mutad.compile
    def stacked(x, n):
        rows = []
        for k in range(n):
            rows.append(x * k)
        return np.stack(rows)

    with pytest.raises(ValueError, match="need at least one array to stack"):
        stacked(np.ones(2), 0)


@pytest.mark.parametrize(
    "join",
    [
        lambda x: np.stack([r for r in x if r[0] > 9.0], axis=1),
        lambda x: np.concatenate([r[None] for r in x if r[0] > 9.0], axis=1),
        lambda x: np.stack(x[:0]),
        lambda x: np.concatenate([x[:, :k] for k in range(1, 3)], axis=0),
    ],
)
def test_what_cannot_be_joined_raises_as_in_numpy(join):
    x = np.ones((2, 3))
    with pytest.raises(ValueError, match="array") as want:
        join(x)
    with pytest.raises(ValueError, match="array") as got:
        mutad.compile(join, cache=False, opt=1)(x)
    assert str(want.value).startswith(str(got.value))


@pytest.mark.parametrize("axis", [3, -4])
def test_an_axis_that_is_not_there_is_refused(axis):
    def outside(x):
        return np.stack((x, x), axis=axis)

    with pytest.raises(mutad.CompileError, match=f"axis {axis} is out of bounds"):
        mutad.compile(outside, cache=False)(np.ones((2, 3)))


def test_arrays_of_several_shapes_cannot_be_stacked():
    @mutad.compile
    def prefixes(x):
        rows = []
        for k in range(1, 3):
            rows.append(x[:k] * 2.0)
        return np.stack(rows)

    with pytest.raises(ValueError, match="all input arrays must have the same shape"):
        prefixes(np.ones(3))


def name_read_after_the_loop(x):
    rows = []
    for i in range(3):
        y = x * i
        rows.append(y)
    y[1] = 100.0
    return rows[2].sum()


def row_changed_and_name_read(x):
    rows = []
    for i in range(3):
        y = x * i
        rows.append(y)
    rows[2][0] = 7.0
    return y.sum()


def bound_in_a_branch(x):
    rows, y = [x * 1.0], x * 2.0
    for i in range(3):
        if i > 0:
            y = rows[-1] * i
            rows.append(y)
    y[1] = 100.0
    return rows[-1][1]


def changed_in_the_next_round(x):
    u, rows = x * 1.0, []
    for i in range(3):
        u[0] = 0.5 * i
        u = u * x
        rows.append(u)
    return rows[0][0]


def in_two_lists(x):
    a, b = [], []
    for i in range(2):
        y = x * i
        a.append(y)
        b.append(y)
    a[1][0] = 5.0
    return b[1][0]


def in_one_list_twice(x):
    rows, y = [], x * 2.0
    for _ in range(2):
        rows.append(y)
    rows[0][0] = 5.0
    return rows[1][0]


def a_row_of_one_list_only(x):
    a, b = [], []
    for i in range(2):
        y = x * i
        if i > 0:
            a.append(y)
        y[0] = 5.0
        b.append(y)
        y[1] = 6.0
    return a[0][0]


@pytest.mark.parametrize(
    "function",
    [
        name_read_after_the_loop, row_changed_and_name_read, bound_in_a_branch,
        changed_in_the_next_round, in_two_lists, in_one_list_twice, a_row_of_one_list_only,
    ],
)  # fmt: skip
def test_an_array_that_a_list_and_a_name_share_is_refused_where_it_changes(function):
    with pytest.raises(mutad.CompileError, match="is put in a list, and one of the two is changed"):
        mutad.compile(function)(np.ones(3))


def test_an_array_that_nobody_changes_is_in_a_list_and_has_a_name():
    def path(x, k):
        rows, u = [], x * 2.0
        rows.append(u)
        for i in range(3):
            y = x * i if i > k else x + i
            y[1] = 3.0
            rows.append(y)
            u = u + rows[-1]
            u[0] = 0.5
            rows.append(u)
        rows[1][0] = 100.0
        return sum(r.sum() for r in rows) * len(rows)

    x = np.arange(1.0, 4.0)
    assert mutad.compile(path)(x, 1) == pytest.approx(path(x, 1), rel=1e-15)
