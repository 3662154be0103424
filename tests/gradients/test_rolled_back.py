"""Integers that count under conditions are rolled back: they cost no memory, however the program counts."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[9]", "f32[9]", "f64[9]S", "f64[0]", "f64[1]", saved=0)
def compacted(x):
    out = np.zeros(x.size)
    k = 0
    for i in range(x.size):
        if x[i] > 0.0:
            out[k] = x[i] * x[i]
            k += 1
    s = 0.0
    for i in range(k):
        s += out[i] * out[k - 1 - i]
    return s


@on("f64[9]", "f64[0]", saved=0)
def appended_under_a_condition(x):
    found = []
    for v in x:
        if v > 0.0:
            found.append(v * v)
    s = 0.0
    for i in range(len(found)):
        s += found[i] * found[len(found) - 1 - i]
    return s


@on("f64[9]", saved=0)
def counted_by_different_amounts(x):
    """The value read in the branch is not the one at the end of the iteration."""
    s, k, step = 0.0, 3, x.size // 4
    for i in range(x.size):
        k += 2
        if x[i] > 0.0:
            s += x[k % x.size] ** 2
            k -= step
            s += x[k % x.size] ** 3
        elif x[i] < -0.5:
            k = 5 - k
        s += x[k % x.size] * x[i]
    return s


@on("f64[9]", saved=0)
def within_nested_conditions(x):
    s, k = 0.0, 0
    for i in range(x.size):
        if x[i] > -0.8:
            if x[x.size - 1 - i] > 0.0:
                s += x[k] * x[i]
                k += 1
            else:
                s -= x[k] ** 2
    return s


@on("f64[9]", saved=0)
def toggled(x):
    """Two rows that change places where the data says so; what is overwritten is linear."""
    b = np.zeros((2, x.size))
    b[0] = x
    now = 0
    for t in range(x.size):
        if x[t] > 0.0:
            for i in range(x.size):
                b[1 - now, i] = b[now, i] * 0.5 + x[i]
            now = 1 - now
    return (b[now] * x).sum()


@on("f64[9]", saved=0)
def flipped_bits(x):
    s, k = 0.0, 1
    for i in range(x.size):
        if x[i] > 0.0:
            k ^= 3
        s += x[k] * x[i]
    return s


@on("f64[3,4]", "f64[0,4]", "f64[3,0]", saved=lambda x: 8 * max(x.shape[0] - 1, 0))
def counted_anew_in_each_row(x):
    """`k = 0` cannot be undone: the last value of each row is saved, but that of the last row."""
    s = 0.0
    at = np.zeros(x.shape)
    for r in range(x.shape[0]):
        k = 0
        for c in range(x.shape[1]):
            if x[r, c] > 0.0:
                at[r, k] = x[r, c] ** 2
                k += 1
        for c in range(k):
            s += at[r, c] * at[r, k - 1 - c]
    return s


@on("f64[3,4]", "f64[0,4]", saved=0)
def counted_across_rows(x):
    s = 0.0
    at = np.zeros(x.size)
    k = 0
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            if x[r, c] > 0.0:
                at[k] = x[r, c] ** 2
                k += 1
        if k > 2:
            s += x[r, k % x.shape[1]] * x[r, 0]
    return s


@on("f64[6] f64[8]", "f64[0] f64[3]", "f64[2] f64[0]")
def merged(x, y):
    """Which side was taken depends on what is counted: it is saved, the three counters are not."""
    out = np.zeros(x.size + y.size)
    i = j = k = 0
    while i < x.size and j < y.size:
        if x[i] <= y[j]:
            out[k] = x[i] * 2.0
            i += 1
        else:
            out[k] = y[j] * y[j]
            j += 1
        k += 1
    while i < x.size:
        out[k] = x[i] * x[i]
        i += 1
        k += 1
    s = 0.0
    for q in range(k):
        s += out[q] * out[q] * (q + 1)
    return s


@on("f64[9]")
def pushed_and_popped(x):
    stack = []
    s = 0.0
    for v in x:
        if v > 0.0:
            stack.append(v * v)
        elif len(stack) > 0:
            s += stack.pop() * v
    return s


@on("f64[9]")
def left_early(x):
    s, k = 0.0, 0
    for i in range(x.size):
        if x[i] > 0.0:
            k += 1
            s += x[k] * x[i]
        if k > 3:
            break
        if x[i] < -0.9:
            continue
        s += x[k] ** 2
    return s


@on("f64[9]")
def returned_from_within(x):
    s, k = 0.0, 0
    for i in range(x.size):
        for j in range(3):
            if x[(i + j) % x.size] > 0.0:
                k += 1
                s += x[k % x.size] * x[i]
            if k > 6:
                return s * x[k]
    return s


@on("f64[9]")
def with_caught_exceptions(x):
    s, k = 0.0, 0
    for i in range(x.size):
        try:
            k += 2
            if x[i] > 0.0:
                k -= 1
                s += x[k] * x[i]
        except IndexError:
            k = 1
    return s * x[k]


@on("f64[9]")
def while_a_condition_holds(x):
    s, k = 0.0, 0
    for i in range(x.size):
        while k < x.size and x[k] < 0.5 * i:
            s += x[k] * x[i]
            k += 1
    return s


@on("f64[9]")
def read_before_an_inner_loop_counts(x):
    """The value from before the inner loop is asked for after it."""
    s, k = 0.0, 0
    for _ in range(3):
        first = k
        for j in range(3):
            if x[j] > 0.0:
                k += 1
        s += x[first] * x[k % x.size]
    return s


@on("f64[9]")
def set_to_something_else_at_times(x):
    s, k = 0.0, 0
    for i in range(x.size):
        if x[i] > 0.0:
            s += x[k % x.size] ** 2
            k += 1
        if x[i] < -0.5:
            k = i
        s += x[k % x.size] * x[i]
    return s


def walk(x, depth):
    """Counters of each activation, and a call between the counts."""
    s, k = 0.0, depth
    for i in range(x.size):
        if x[i] > 0.0:
            s += x[k % x.size] * x[i]
            k += 1
        if i == depth and depth < 3:
            s += walk(x, depth + 1) * x[k % x.size]
    return s


@on("f64[5]")
def in_activations(x):
    return walk(x, 0)


@on("f64[9] 4")
def counts_of_inner_loops(x, steps):
    """A tape is popped in front of the loop in which its count is saved: there it is computed again."""
    size = 2
    for _ in range(steps):
        for start in range(3):
            for k in range(size // 2):
                x[start] *= np.cos(x[k + 1])
        size += 2
    return x.sum()


@on("f64[12] 4")
def counts_that_cost_less_than_what_they_are_computed_of(x, steps):
    """A tape must have room for as many iterations in the reverse sweep: it was read elsewhere."""
    a, b, c = 2, 3, 1
    for _ in range(steps):
        for start in range(1):
            for k in range(a // b + c):
                x[start] *= np.cos(x[k + 1])
        a, b, c = (a * 3 + 1) % 7 + 2, (b * 5 + 1) % 4 + 2, (c * 5 + 2) % 3 + 1
    return x.sum()


TestGradients = gradient_tests(programs, tangents=True)
