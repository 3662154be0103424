"""Loops in which a name is something else at first: the caller's array, another type, another rank."""

from dataclasses import dataclass

import numpy as np
import pytest
from python_oracle import Case, Programs, compiled

programs = Programs()
on = programs.on


# Changed in place, then bound anew: in the first iteration it is the array from before the loop.


@on("f64[5] N", "f64[5]R 3", "f32[5] 2", N="0 1 4")
def an_argument(u, n):
    for _ in range(n):
        u[0] = 0.5
        u = u + 0.25 * u * u
    return u


@on("f64[5] N", N="0 1 2 3")
def used_and_changed_afterwards(u, n):
    first = u
    for _ in range(n):
        u += 1.0
        u = np.sqrt(u)
    u[1] = 7.0
    return u, first


@on("f64[5] N", N="0 1 3")
def a_local_with_another_name(x, n):
    u = x * 2.0
    v = u
    for _ in range(n):
        u[0] = 0.0
        u = u + 1.0
    return u * 1.0, v * 1.0


@on("f64[3,4] N", "f64[3,4]F 2", N="0 1 3")
def a_row_of_an_argument(a, n):
    u = a[1]
    for i in range(n):
        u[i % 4] = 0.5
        u = u * u
    return u.sum()


@on("f64[4] f64[4] N", N="0 1 2 3 5")
def two_that_change_places(u, v, n):
    for i in range(n):
        u[0] = i
        u, v = v, u + 0.5 * v
    return u, v


@on("f64[4] f64[4] N", "f64[4]& f64[4]& 3", N="0 1 3")
def two_at_once(u, v, n):
    for i in range(n):
        u[0] = i
        v[-1] = 1.0
        u, v = u + v, v * u
    return u, v


@on("f64[4] M N", M="0 1 2", N="0 1 3")
def in_an_inner_loop(u, m, n):
    for i in range(m):
        for k in range(n):
            u[k] *= 0.5
            u = u + i
        u[0] += 1.0
    return u


@on("f64[4] N", N="0 1 2 6")
def until_a_break(u, n):
    k = 0
    while k < n:
        u[k % 4] = 2.0
        u = u * 0.5 + 1.0
        if u[0] > 1.6:
            break
        k += 1
    else:
        k = -1
    return u, k


@on("f64[4] N", N="0 1 3")
def through_nonlocal(u, n):
    def step(c):
        nonlocal u
        u[0] = c
        u = u * 2.0

    for i in range(n):
        step(i)
    return u


@on("f64[4] N", N="0 1 3")
def an_item_of_a_dict(u, n):
    state = {"u": u, "t": 0}
    for _ in range(n):
        state["u"][0] = 0.0
        state["u"] = state["u"] + 0.5
        state["t"] += 1
    return state["u"], state["t"]


@on("f64[6] N", N="0 1 4")
def while_its_exceptions_are_caught(x, n):
    u, k = x, 0
    try:
        for i in range(n):
            u[i] = 1.0
            u = u * x[2 * i]
            k += 1
    except IndexError:
        k = -k
    return u, k


# Bound anew in some iterations only: the caller's array until then.


@on("f64[4] N", N="0 1 2 3 4")
def on_a_branch(u, n):
    for i in range(n):
        u[0] = i
        if i % 3 == 1:
            u = u * 2.0
        u[1] += 1.0
    return u


@on("f64[4] T", T="0.5 0.01")
def where_a_step_is_accepted(u, tolerance):
    dt, t, tried = 1.0, 0.0, 0
    while t < 2.0 and tried < 20:
        u[0] = 1.0
        trial = u - dt * u * u
        tried += 1
        if np.max(np.abs(trial - u)) < 2.0 * tolerance**0.5:
            u = trial
            t += dt
            dt *= 1.25
        else:
            dt *= 0.5
    return u, t, tried


@on("f64[4] f64[4] N", "f64[4]& f64[4]& 3", N="0 1 2 5")
def two_on_different_branches(u, v, n):
    for i in range(n):
        u[1] += v[0]
        v[0] = u[1]
        if i % 2:
            u = u + v
        elif i > 2:
            v = v * u
        else:
            v[2] = 0.5
    return u, v


@on("f64[4] f64[4] N", N="0 1 2 3")
def what_was_another_ones_array_before(x, y, n):
    u, w = y, x * 2.0
    for i in range(n):
        w[i % 3] *= 0.5
        w, u = u, 0.5 * u - x
    return u * 1.0, w * 1.0


@on("f64[4] N", N="0 1 3")
def two_names_of_one_local(x, n):
    a = x + 1.0
    u = w = a
    for _ in range(n):
        u = np.sqrt(u)
        w = u * 2.0
    w[0] = 2.5
    return u * 1.0, w * 1.0


@on("f64[4] N", N="0 1 3")
def two_names_one_of_which_an_inner_loop_rebinds(x, n):
    u = v = x + 1.0
    for i in range(n):
        u += u * 0.25
        for _ in range(n):
            v = np.sqrt(v)
            u[i % 3] *= v[0]
        u = v * 2.0
    return u * 1.0, v * 1.0


@on("f64[3] K", K="0 1 2")
def another_name_for_what_an_inner_loop_rebinds(x, k):
    for i in range(3):
        y = x * i
        before = y
        for _ in range(k):
            y = y * 0.5
        y[0] = 5.0
        x[1] = before[0]
    return x, y[0] + y[2]


@on("f64[4] M N", M="0 1 2", N="0 1 2")
def nothing_is_read_afterwards(u, m, n):
    for _ in range(m):
        for k in range(n):
            u[k] *= 0.5
            u = np.sqrt(u)
        u = u + 1.0


# Another type at first.


@on("f64[3] N", N="1 2 5")
def a_sum_of_arrays_that_begins_as_zero(x, n):
    s = 0
    for i in range(n):
        s = s + x * i
    return s


@on("f32[3] f64[3] N", N="1 2 4")
def wider_from_the_first_product_on(u, w, n):
    for _ in range(n):
        u = u * w
    return u


@on("f64[2,3,2] N", N="1 2 4")
def less_and_less_rank(a, n):
    v = a
    for _ in range(n):
        v = v.sum()
    return v


@on("f64[2,3,2]")
def one_axis_after_another(a):
    for _ in range(a.ndim):
        a = a.max(axis=0)
    return a


@on("f64[3,2]")
def what_rows_add_up_to(rows):
    total = 0
    for row in rows:
        total = total + row
    return total


@on("f64[3] 3")
def of_no_type_in_particular_where_nobody_reads_it(x, n):
    s, t = 0, 0.0
    for i in range(n):
        s = s + x
        t += s[0] * i
    return t


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()


@dataclass
class State:
    u: np.ndarray
    steps: int = 0


def advance(state: State, n: int) -> None:
    for _ in range(n):
        state.u[0] = 0.0
        state.u = state.u + 0.5
        state.steps += 1


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_field_of_the_callers_object(n: int) -> None:
    outcomes = list[tuple[list[float], list[float], bool, int]]()
    for f in (compiled(advance), advance):
        u = np.arange(1.0, 4.0)
        state = State(u)
        f(state, n)
        outcomes.append((u.tolist(), state.u.tolist(), state.u is u, state.steps))
    assert outcomes[0] == outcomes[1]


def test_a_name_that_would_stay_what_no_iteration_leaves_raises() -> None:
    with pytest.raises(
        NotImplementedError, match=r"'s' would stay an int.*an array of f64, rank 1"
    ):
        compiled(a_sum_of_arrays_that_begins_as_zero)(np.ones(3), 0)
