"""Lists, dicts, sets and objects that a branch of a loop binds first, and that later iterations read.

Both ways to save agreed on wrong gradients of these once: only differences and CPython's values tell.
"""

from collections import Counter, deque
from dataclasses import dataclass

from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[4]")
def bound_once(a):
    s = 0.0
    for i in range(a.size):
        if i == 0:
            made = [a[1]]
        s += made[0]
    return s


@on("f64[4]")
def bound_in_a_case_and_grown(a):
    s = 0.0
    for i in range(a.size):
        match i:
            case 0:
                made = []
            case 2:
                made = [(a[1], a[i])]
        made.append((a[i] * a[0], a[i]))
        s += made[0][0] * made[-1][1]
    return s


@on("f64[4]")
def bound_in_a_handler(a):
    s = 0.0
    for v in a:
        try:
            if v > 0.3:
                raise ValueError
        except ValueError:
            made = [v, v * v]
        else:
            if s == 0.0:
                made = [a[2]]
        made[0] *= a[1]
        s += made[0] * made[-1]
    return s


@on("f64[4]")
def bound_in_a_while(a):
    s, i = 0.0, 0
    while True:
        if i == 0:
            made = [a[0]]
        elif i >= a.size:
            break
        else:
            made.append(a[i] * made[-1])
        s += sum(made)
        i += 1
    return s + made[-1]


@on("f64[4]")
def bound_in_a_nest_and_read_behind_it(a):
    for i in range(a.size):
        for j in range(i):
            if a[j] > a[i] or j == 0:
                made = [a[j] * a[i], a[0]]
            made.append(made[0] * made[-1])
    return made[0] * made[-1] + len(made)


@on("f64[4]")
def the_list_of_the_last_iteration(a):
    for v in a:
        last = [v * v, v]
    return last[0] * last[1]


@on("f64[4]")
def the_list_of_the_iteration_before(a):
    s = 0.0
    for v in a:
        new = [v, v * a[0]]
        if s != 0.0:
            s += new[0] * old[1]  # noqa: F821 (bound by the iteration before)
        old = new
        s += a[1]
    return s


@on("f64[4]")
def an_older_list_beside_a_newer(a):
    s = 0.0
    old = [a[1], a[2]]
    for v in a:
        new = [v, v * a[0]]
        s += new[0] * old[1]
        old = new
    return s


@on("f64[4]")
def lists_in_a_list(a):
    s = 0.0
    for i in range(a.size):
        if i % 2 == 0:
            made = [[a[i]], [a[i], a[0]]]
        made[0].append(a[i] * 2.0)
        s += made[-1][0] * made[0][-1] * len(made[0])
    return s


@on("f64[4]")
def arrays_in_a_list(a):
    s = 0.0
    for i in range(a.size):
        if i == 0:
            made = []
            made.append(a * 2.0)
        elif i == 2:
            made.append(a * s)
        made[0][0] *= a[1]
        s += made[-1][1] * made[0][0]
    return s


@on("f64[4]")
def arrays_that_were_written_out(a):
    s = 0.0
    for i in range(a.size):
        if i % 2 == 0:
            made = [a * i, a + i]
        else:
            made.append(a)
        s += made[0][1] * made[-1][0]
    return s


@on("f64[4]")
def made_by_a_function(a):
    s = 0.0
    for i in range(a.size):
        if i % 3 == 0:
            made = pair(a, i)
        made[0] *= a[1]
        s += made[0] + made[1]
    return s


def pair(a, i):
    made = [a[i]]
    made.append(a[i] * a[0])
    return made


@on("f64[4]")
def unbound_until_an_exception(a):
    s = 0.0
    for v in a:
        try:
            made.append(v * made[0])  # noqa: F821 (bound by the first handler)
        except UnboundLocalError:
            made = [a[1]]
        s += sum(made)
    return s


@on("f64[4]")
def an_array_that_was_in_the_list(a):
    """The list is given other items; who has an old one keeps it."""
    made = [a * 1.0, a * 2.0]
    made.append(a * 3.0)
    row = made[0]
    if a[0] > -1.0:
        made = []
        made.append(a * 4.0)
    return made[0].sum() * a[1] + row.sum()


# Objects: each is a place in a store, or its fields.


class Pair:
    def __init__(self, first, second):
        self.first = first
        self.second = second

    def product(self):
        return self.first * self.second


@dataclass
class Weight:
    value: float
    times: int


@on("f64[4]")
def an_object(a):
    s = 0.0
    for i in range(a.size):
        if i == 0:
            k = Pair(a[1], a[2])
        s += k.product() * a[i]
    return s


@on("f64[4]")
def objects_that_change(a):
    s = 0.0
    for i in range(a.size):
        if i % 2 == 0:
            k = Pair(a[i], Weight(a[0], 1))
        k.first *= a[1]
        k.second.times += 1
        s += k.first * k.second.value * k.second.times
    return s


@on("f64[4]")
def an_object_that_holds_arrays(a):
    s = 0.0
    for i in range(a.size):
        if i % 2 == 0:
            k = Pair(a * 2.0, a)
        k.first[0] += a[i]
        k.second[i] *= a[0]
        s += k.first[0] * k.second[i]
    return s


@on("f64[4]")
def one_of_two_objects(a):
    s = 0.0
    one, other = Weight(a[0], 1), Weight(a[2], 3)
    for i in range(a.size):
        if i % 2 == 0:
            k = one
        else:
            k = other
        k.value += a[i]
        s += k.value * one.value
    return s


@on("f64[4]")
def an_object_with_a_list_in_a_nest(a):
    s = 0.0
    for i in range(a.size):
        j = 0
        while True:
            if j > i:
                break
            if j == 1:
                j += 1
                continue
            if j == 0:
                k = Pair([a[i]], Weight(a[j], 1))
            k.first.append(a[j])
            k.second.value *= a[i]
            j += 1
        s += sum(k.first) * k.second.value
    return s


@on("f64[4]")
def an_object_that_is_read_behind_the_loop(a):
    for v in a:
        if v > -10.0:
            best = Weight(v, 2)
    return best.value * best.times


@on("f64[4]")
def an_object_of_a_handler(a):
    s = 0.0
    for v in a:
        try:
            s += k.first * v  # noqa: F821 (bound by the first handler)
            k.first += k.second  # noqa: F821
        except UnboundLocalError:
            k = Pair(a[1], a[2])
    return s


@on("f64[4]")
def a_set_a_deque_and_a_counter(a):
    s = 0.0
    for i in range(a.size):
        if i == 0:
            seen, last, count = set(), deque([a[0]]), Counter()
        if i % 2 not in seen:
            seen.add(i % 2)
            s += a[i]
        last.append(a[i])
        if i > 1:
            s += last.popleft() * a[i]
        count[i % 2] += 1
    return s * len(seen) * count[1]


@on("f64[4]")
def a_set_that_a_display_makes(a):
    s = 0.0
    for i in range(a.size):
        if i == 1:
            seen = {0, 1, i + 1}
        if i > 0 and i in seen:
            s += a[i] * a[0]
    return s


@on("f64[4]")
def dicts_that_are_read(a):
    s, i = 0.0, 0
    while i < a.size:
        if i == 0:
            d = {"x": a[1], "y": a * 2.0}
        elif a[i] > 0.2:
            d = {"x": a[i] * d["x"], "y": d["y"] * a[0]}
        s += d["x"] + d["y"][i]
        i += 1
    return s


# Lists in lists, tuples and dicts, in nests of loops that differ.


@on("f64[4]")
def lists_that_an_inner_loop_makes_and_leaves(a):
    s, i = 0.0, 0
    while i < a.size:
        for j in range(3):
            if j > i:
                break
            if j == 0:
                m = [[], [a[i]]]
            m[0].append(a[j] * m[-1][-1])
            m[1].append(a[i])
        s += sum(m[0]) * sum(m[1])
        i += 1
    return s


@on("f64[4]")
def lists_of_tuples_that_shrink_in_an_inner_loop(a):
    s = 0.0
    for i in range(a.size):
        for j in range(i + 1):
            if j == 0:
                m = [[(a[i], a[0])], []]
            m[1].append((m[0][0][1], a[j]))
            if j == 2:
                m[0].pop()
                break
        s += sum(p * q for p, q in m[1])
    return s + len(m[0])


@on("f64[4]")
def a_stack_of_tuples_with_lists(a):
    s, i = 0.0, 0
    while i < a.size:
        if i == 0:
            stack = [(a[0], [a[1]])]
        top, rest = stack[-1]
        rest.append(top * a[i])
        if i % 2:
            stack.append((a[i], [rest[-1]]))
        s += sum(rest)
        i += 1
    return s + len(stack)


TestGradients = gradient_tests(programs, tangents=True)
