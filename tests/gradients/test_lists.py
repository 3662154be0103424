"""Gradients of programs with lists: elements are memory, lengths are integers that are undone."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

import mutad

programs = GradientPrograms()
on = programs.on


@on("f64[5]", "f64[1]", "f64[0]", "f32[4]", saved=0)
def appended_and_popped(x):
    made = []
    for v in x:
        made.append(v * v)
    made.append(x.sum())
    made.pop()
    s = 0.0
    for v in made:
        s += v * v
    return s


@on("f64[5]", "f64[1]", saved=0)
def a_sum_of_a_list(x):
    return sum([v * v * v for v in x])


@on("f64[5]", saved=0)
def an_array_of_a_list(x):
    return np.array([np.sin(v) * v for v in x]).sum()


@on("f64[6]", saved=0)
def a_sum_of_some(x):
    return sum(v * v for v in x if v > 0.1)


@on("f64[4] n", n="0 1 3")
def appended_in_a_nested_loop(x, n):
    made = []
    for i in range(n):
        for v in x:
            if v > 0.1:
                made.append(v * v * (i + 1))
    s = x[0] * 0.0
    for k in range(len(made)):
        s += made[k] * made[k - 1]
    return s


@on("f64[4] n", n="3 9", saved=0)
def a_recurrence_kept_in_a_list(x, n):
    """The appended items overwrite nothing."""
    made = [x[0], x[1]]
    while len(made) < n:
        made.append(made[-1] * 0.5 + made[-2] * x[2] * made[-1])
    return made[-1]


@on("f64[6]")
def a_stack(x):
    stack = []
    for v in x:
        stack.append(v * v)
        if len(stack) > 2:
            a, b = stack.pop(), stack.pop()
            stack.append(a * b)
    s = 1.0
    while stack:
        s = s * stack.pop() + s
    return s


@on("f64[5]")
def changed_in_every_way(x):
    made = [v for v in x]
    made.insert(1, x[0] * x[1])
    made.insert(-1, 2.0)
    made.pop(0)
    made.reverse()
    made[0] *= made[1]
    del made[1]
    made.extend(x)
    made += [1.5]
    s = x[0]
    for v in made + [x[2] * 2.0]:
        s = s * v + v
    return s


@on("f64[5]")
def items_assigned(x):
    made = [1.0] * 5
    for i in range(len(made)):
        made[i] *= x[i] * i + 1.0
    s = x[0]
    for i, v in enumerate(made):
        s += i * v * v
    for a, b in zip(made, x):
        s += a * b * s
    for v in reversed(made):
        s = s * 0.5 + v * s
    return s


@on("f64[7] n", n="2 3")
def batches(x, n):
    batch = []
    s = x[0]
    for v in x:
        batch.append(v * v)
        if len(batch) == n:
            s += batch[0] * batch[-1] * s
            batch = []
    return s + len(batch)


@on("f64[4]")
def rebuilt_from_itself(x):
    made = list(x)
    for _ in range(3):
        made = [v * v + 0.5 for v in made]
        made = made[1:] + [made[0]]
    return made[0] * made[1] + made[2]


@on("f64[4]")
def tuples(x):
    made = [(v * v, i, v) for i, v in enumerate(x)]
    s = x[0]
    for a, i, b in made:
        s += a * i * s + b
    first, _, _ = made[0]
    return s * first


@on("f64[4]")
def a_row_in_each_iteration(x):
    s = x[0]
    for i in range(len(x)):
        row = []
        for j in range(i + 1):
            row.append(x[j] * x[i])
        s += sum(row) * row[-1] * s
    return s


@on("f64[4]")
def a_row_of_unknown_length_in_each_iteration(x):
    """The memory of one iteration's list is that of the next's: its shadow is 0 again."""
    s = x[0]
    for i in range(len(x)):
        row = [x[i]]
        while len(row) < i + 2:
            row.append(row[-1] * x[0] + 1.0)
            row.append(row[-2] * row[-1])
        s += row[-1] * row[1]
    return s


@on("f64[3]")
def grown_while_it_is_iterated(x):
    queue = [x[0] * 2.0]
    s = x[1]
    for v in queue:
        s += v * v
        if len(queue) < 5:
            queue.append(v * x[2] + 0.5)
    return s


@on("f64[5]")
def extremes(x):
    made = [v * v for v in x]
    return max(made) * min(v * 2.0 for v in made)


@on("f64[4]", "f64[4]")
def as_operands(x):
    made = [v * v for v in x]
    return (np.array(made) * x).sum() + np.sum(made) * made[0]


@on("f64[6] n", n="0 3")
def left_early(x, n):
    made = []
    for v in x:
        if len(made) > n:
            break
        made.append(v * v)
    return made[-1] * made[0]


@on("f64[5] n", n="0 1")
def one_of_two_lists(x, n):
    if n == 1:
        made = [x[0] * x[1]]
    else:
        made = [x[1], x[2] * x[3]]
    made.append(x[4])
    return made[0] * made[1] * made[-1]


def halves(v, n):
    for _ in range(n):
        yield v * v
        v = v * 0.5


@on("f64[4] n", n="1 3")
def a_generator_function(x, n):
    return sum(halves(x[0], n)) * max(halves(x[1] + 2.0, n)) + x[2]


TestGradients = gradient_tests(programs, tangents=True)


def test_one_list_is_one_allocation():
    x = np.arange(1.0, 5.0)
    f = mutad.compile(an_array_of_a_list, grad=True)
    plan = f.explain(x, wrt="x")
    assert plan.saved_bytes == 0
    assert plan.temporary_bytes == 32
    # A block of the list's shadow: the list itself is only summed.
    assert f.inspect("optimize", x, wrt="x").count("array.alloc(") == 1


def test_a_sum_has_no_list_in_its_gradient():
    x = np.arange(1.0, 5.0)
    plan = mutad.compile(a_sum_of_a_list, grad=True).explain(x, wrt="x")
    assert (plan.saved_bytes, plan.temporary_bytes) == (0, 0)


def test_nobody_knows_before_the_run_how_long_a_list_grows():
    x = np.arange(1.0, 5.0)
    f = mutad.compile(a_recurrence_kept_in_a_list, grad=True)
    plan = f.explain(x, 9, wrt="x")
    assert plan.saved_bytes == 0
    assert plan.temporary_bytes is None
