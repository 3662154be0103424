"""Lists that a branch of a loop binds first, and that later iterations read.

Both ways to save agreed on wrong gradients of these once: only differences and CPython's values tell.
"""

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


TestGradients = gradient_tests(programs, tangents=True)
